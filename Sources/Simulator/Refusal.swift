import Descriptors

/// Why the simulated provider says no: the code that goes over the wire, and what was wrong.
struct Refusal: Error, Equatable, Sendable {
  /// The code of RFC 6749 (4.1.2.1, 5.2), RFC 6750 (3.1) or RFC 8628 (3.5), before the descriptor's own words for it.
  var code: String
  /// What was wrong.
  var reason: Reason

  init(_ code: String, _ reason: Reason) {
    self.code = code
    self.reason = reason
  }

  static func request(_ reason: Reason) -> Refusal { Refusal("invalid_request", reason) }
  static func client(_ reason: Reason) -> Refusal { Refusal("invalid_client", reason) }
  static func grant(_ reason: Reason) -> Refusal { Refusal("invalid_grant", reason) }
  static func token(_ reason: Reason) -> Refusal { Refusal("invalid_token", reason) }
}

/// What was wrong with a request: never a token, a secret or another value that was sent.
struct Reason: Equatable, Sendable {
  /// For a person.
  let sentence: String
  /// The word of the problem reporting extension that most providers of OAuth 1.0a use.
  let problem: String

  init(_ sentence: String, problem: String = "parameter_rejected") {
    self.sentence = sentence
    self.problem = problem
  }
}

// The shape of a request.
extension Reason {
  static let foreignHost = Reason("the request is for another host")
  static let noSuchPath = Reason("no endpoint of the descriptor has this path")
  static let malformedBody = Reason("the body cannot be read")
  static let unwantedBody = Reason("the parameters belong into the query, and the body must be empty")

  static func wrongMethod(expected: [String]) -> Reason {
    Reason("the method must be \(expected.joined(separator: ", "))")
  }
  static func wrongMediaType(expected: String) -> Reason { Reason("the body must be of the type \(expected)") }
}

// Parameters and headers.
extension Reason {
  static func missing(_ name: String) -> Reason {
    Reason("\(quoted(name)) is missing", problem: "parameter_absent")
  }
  static func misplaced(_ name: String, expected: ParameterPlacement) -> Reason {
    let place =
      switch expected {
      case .query: "the query"
      case .form: "the form body"
      case .json: "the JSON body"
      case .fragment: "the fragment"
      }
    return Reason("\(quoted(name)) must be in \(place)")
  }
  static func repeated(_ name: String) -> Reason { Reason("\(quoted(name)) is there twice") }
  static func renamed(_ name: String, to wire: String) -> Reason {
    Reason("\(quoted(name)) is called \(quoted(wire)) here")
  }
  static func unwanted(_ name: String) -> Reason { Reason("\(quoted(name)) must not be there") }
  static func wrongValue(_ name: String) -> Reason {
    Reason("\(quoted(name)) does not have the value that the descriptor says")
  }
  static func missingHeader(_ name: String) -> Reason { Reason("the header \(quoted(name)) is missing") }
  static func wrongHeader(_ name: String) -> Reason {
    Reason("the header \(quoted(name)) does not have the value that the descriptor says")
  }
  static func wrongScopeSeparator(expected: String) -> Reason {
    Reason("scopes must be separated by \(quoted(expected))")
  }
}

// The client.
extension Reason {
  static func wrongClientAuthentication(expected: ClientAuthentication) -> Reason {
    Reason("the client must authenticate by \(expected.rawValue)")
  }
  static let twoClientAuthentications = Reason("the client authenticates in two ways at once")
  static let unknownClient = Reason(
    "the client identifier or secret is not the registered one", problem: "consumer_key_unknown")
  static let unsupportedGrantType = Reason("the descriptor has no leg with this grant type")
  static let unsupportedResponseType = Reason("the descriptor has no grant with this response type")
}

// Authorization and token requests.
extension Reason {
  static let redirectMismatch = Reason(
    "the redirect URI is not the registered one, or not the one of the authorization request")
  static let malformedChallenge = Reason("the code challenge does not have the form of its method")
  static func unwantedChallenge(_ name: String) -> Reason {
    Reason("the descriptor says that there is no PKCE, and \(quoted(name)) is there")
  }
  static let verifierMismatch = Reason("the code verifier does not belong to the challenge")
  static let codeUnknown = Reason("the code is not known")
  static let codeExpired = Reason("the code has expired")
  static let codeUsedTwice = Reason("the code was used before, and what it gave is revoked")
  static let refreshTokenUnknown = Reason("the refresh token is not known")
  static let refreshTokenExpired = Reason("the refresh token has expired")
  static let refreshTokenReused = Reason(
    "the refresh token was replaced before, and what came of it is revoked")
  static let revoked = Reason("the consent was revoked", problem: "token_revoked")
  static let denied = Reason("the person said no", problem: "permission_denied")
  static let consentUnknown = Reason(
    "this page was answered before, or is from another start of the simulator")
  static let malformedAccount = Reason("an account is a name of 1 to 64 characters")
}

// Devices.
extension Reason {
  static let deviceCodeUnknown = Reason("the device code is not known")
  static let userCodeUnknown = Reason("no device waits with this code")
  static let devicePending = Reason("nobody has confirmed yet")
  static let pollTooSoon = Reason("the device asked sooner than it may")
  static let deviceCodeExpired = Reason("the device code has expired")
}

// The token at the API.
extension Reason {
  static func notPresented(expected: String) -> Reason { Reason("the token must be presented as: \(expected)") }
  static let presentedTwice = Reason("the token is presented twice")
  static let tokenUnknown = Reason("the token is not known", problem: "token_rejected")
  static let tokenExpired = Reason("the token has expired", problem: "token_expired")
}

// OAuth 1.0a.
extension Reason {
  static func protocolParametersMisplaced(expected: SignatureTransport) -> Reason {
    Reason(
      "the signature and its parameters must be in the \(expected.rawValue), and nowhere else",
      problem: "parameter_absent")
  }
  static func wrongSignatureMethod(expected: SignatureMethod) -> Reason {
    Reason("the signature method must be \(expected.rawValue)", problem: "signature_method_rejected")
  }
  static let wrongSignature = Reason("the signature is not that of the request", problem: "signature_invalid")
  static let timestampOutOfRange = Reason(
    "the timestamp is missing, or far from the time here", problem: "timestamp_refused")
  static let nonceUsed = Reason("the nonce was used before", problem: "nonce_used")
  static let temporaryCredentialsUnknown = Reason(
    "the temporary credentials are not known, or were used before", problem: "token_rejected")
  static let notAuthorized = Reason("nobody has approved the temporary credentials", problem: "token_rejected")
  static let wrongVerifier = Reason("the verifier is not the one of the approval", problem: "token_rejected")
  static let sessionHandleUnknown = Reason("the session handle does not belong to the token")
}

func quoted(_ text: String) -> String { "\"\(text)\"" }
