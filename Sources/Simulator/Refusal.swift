import Descriptors
import Text

struct Refusal: Error, Equatable, Sendable {
  let sentence: String  // For a person: never a token, a secret or another value that was sent.
  /// The code of RFC 6749 (4.1.2.1, 5.2), RFC 6750 (3.1), RFC 7591 (3.2.2) or RFC 8628 (3.5), before the descriptor's
  /// own words for it.
  var code: String
  let problem: String  // The word of the problem reporting extension that most providers of OAuth 1.0a use.

  private init(_ sentence: String, _ code: String = "invalid_request", problem: String = "parameter_rejected") {
    self.sentence = sentence
    self.code = code
    self.problem = problem
  }

  func with(code: String) -> Refusal { Refusal(sentence, code, problem: problem) }
}

extension Refusal {
  static let foreignHost = Refusal("the request is for another host")
  static let noSuchPath = Refusal("no endpoint of the descriptor has this path")
  static let malformedBody = Refusal("the body cannot be read")
  static let unwantedBody = Refusal("the parameters belong into the query, and the body must be empty")

  static func wrongMethod(expected: [String]) -> Refusal {
    Refusal("the method must be \(expected.joined(separator: ", "))")
  }
  static func wrongMediaType(expected: String) -> Refusal { Refusal("the body must be of the type \(expected)") }
  static let header = "the header "

  static func missing(_ name: String, kind: String = "") -> Refusal {
    Refusal("\(kind)\(quoted(name)) is missing", problem: "parameter_absent")
  }
  static func wrongValue(_ name: String, kind: String = "") -> Refusal {
    Refusal("\(kind)\(quoted(name)) does not have the value that the descriptor says")
  }
  static func misplaced(_ name: String, expected: ParameterPlacement) -> Refusal {
    let place = [ParameterPlacement.form: "form body", .json: "JSON body"][expected] ?? expected.rawValue
    return Refusal("\(quoted(name)) must be in the \(place)")
  }
  static func repeated(_ name: String) -> Refusal { Refusal("\(quoted(name)) is there twice") }
  static func renamed(_ name: String, to wire: String) -> Refusal {
    Refusal("\(quoted(name)) is called \(quoted(wire)) here")
  }
  static func unwanted(_ name: String) -> Refusal { Refusal("\(quoted(name)) must not be there") }
  static func wrongScopeSeparator(expected: String) -> Refusal {
    Refusal("scopes must be separated by \(quoted(expected))", "invalid_scope")
  }

  static func wrongClientAuthentication(expected: ClientAuthentication) -> Refusal {
    Refusal("the client must authenticate by \(expected.rawValue)", "invalid_client")
  }
  static let twoClientAuthentications = Refusal("the client authenticates in two ways at once", "invalid_client")
  static let unknownClient = Refusal(
    "the client identifier or secret is not the registered one", "invalid_client", problem: "consumer_key_unknown")
  static let unsupportedGrantType = Refusal("the descriptor has no leg with this grant type", "unsupported_grant_type")
  static let unsupportedResponseType = Refusal(
    "the descriptor has no grant with this response type", "unsupported_response_type")

  // MARK: Authorization and token requests

  static let redirectMismatch = Refusal(
    "the redirect URI is not the registered one, or not the one of the authorization request")
  static let malformedChallenge = Refusal("the code challenge does not have the form of its method")
  static func unwantedChallenge(_ name: String) -> Refusal {
    Refusal("the descriptor says that there is no PKCE, and \(quoted(name)) is there")
  }
  static let verifierMismatch = grant("the code verifier does not belong to the challenge")
  static let codeUnknown = grant("the code is not known")
  static let codeExpired = grant("the code has expired")
  static let codeUsedTwice = grant("the code was used before, and what it gave is revoked")
  static let refreshTokenUnknown = grant("the refresh token is not known")
  static let refreshTokenExpired = grant("the refresh token has expired")
  static let refreshTokenReused = grant("the refresh token was replaced before, and what came of it is revoked")
  static let revoked = grant("the consent was revoked", problem: "token_revoked")
  static let denied = Refusal("the person said no", "access_denied", problem: "permission_denied")
  static let consentUnknown = Refusal("this page was answered before, or is from another start of the simulator")
  static let malformedAccount = Refusal("an account is a name of 1 to 64 characters")
  static let deviceCodeUnknown = grant("the device code is not known")
  static let userCodeUnknown = Refusal("no device waits with this code")
  static let devicePending = Refusal("nobody has confirmed yet", "authorization_pending")
  static let pollTooSoon = Refusal("the device asked sooner than it may", "slow_down")
  static let deviceCodeExpired = Refusal("the device code has expired", "expired_token")

  private static func grant(_ sentence: String, problem: String = "token_rejected") -> Refusal {
    Refusal(sentence, "invalid_grant", problem: problem)
  }

  static func notPresented(expected: String) -> Refusal { Refusal("the token must be presented as: \(expected)") }
  static let presentedTwice = Refusal("the token is presented twice")
  static let tokenUnknown = Refusal("the token is not known", "invalid_token", problem: "token_rejected")
  static let tokenExpired = Refusal("the token has expired", "invalid_token", problem: "token_expired")

  // MARK: OAuth 1.0a

  static func protocolParametersMisplaced(expected: SignatureTransport) -> Refusal {
    let sentence = "the signature and its parameters must be in the \(expected.rawValue), and nowhere else"
    return Refusal(sentence, problem: "parameter_absent")
  }
  static func wrongSignatureMethod(expected: SignatureMethod) -> Refusal {
    Refusal("the signature method must be \(expected.rawValue)", problem: "signature_method_rejected")
  }
  static let wrongSignature = Refusal("the signature is not that of the request", problem: "signature_invalid")
  static let timestampOutOfRange = Refusal(
    "the timestamp is missing, or far from the time here", problem: "timestamp_refused")
  static let nonceUsed = Refusal("the nonce was used before", problem: "nonce_used")
  static let temporaryCredentialsUnknown = grant("the temporary credentials are not known, or were used before")
  static let notAuthorized = grant("nobody has approved the temporary credentials")
  static let wrongVerifier = grant("the verifier is not the one of the approval")
  static let sessionHandleUnknown = grant("the session handle does not belong to the token")
}
