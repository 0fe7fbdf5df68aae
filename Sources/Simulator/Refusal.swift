import CredmgrDescriptors
import CredmgrText

struct Refusal: Error, Equatable, Sendable {
  let sentence: String  // For people: without tokens, secrets or other received values.
  /// The code of RFC 6749 (4.1.2.1, 5.2), RFC 6750 (3.1), RFC 7591 (3.2.2) or RFC 8628 (3.5), which the descriptor may
  /// translate.
  var code: String
  /// The parameters of the challenge that say which token a request to the API needs.
  private(set) var demands: [String: String] = [:]
  let problem: String  // The word in the "problem reporting" extension of OAuth 1.0a.

  private init(_ sentence: String, _ code: String = "invalid_request", problem: String = "parameter_rejected") {
    self.sentence = sentence
    self.code = code
    self.problem = problem
  }

  init(_ sentence: String, code: String) { self.init(sentence, code) }

  func with(code: String) -> Refusal { Refusal(sentence, code, problem: problem) }
}

extension Refusal {
  static let foreignHost = Refusal("the request is for another host")
  static let noSuchPath = Refusal("no endpoint of the descriptor has this path")
  static let malformedBody = Refusal("the body is malformed")
  static let unwantedBody = Refusal("the parameters must be in the query and the body must be empty")

  static func wrongMethod(expected: [String]) -> Refusal {
    Refusal("the method must be \(expected.joined(separator: ", "))")
  }
  static func wrongMediaType(expected: String) -> Refusal { Refusal("the body must have the type \(expected)") }
  static let header = "the header "

  static func missing(_ name: String, kind: String = "") -> Refusal {
    Refusal("\(kind)\(quoted(name)) is missing", problem: "parameter_absent")
  }
  static func wrongValue(_ name: String, kind: String = "") -> Refusal {
    Refusal("\(kind)\(quoted(name)) must have the value from the descriptor")
  }
  static func misplaced(_ name: String, expected: ParameterPlacement) -> Refusal {
    let place = [ParameterPlacement.form: "form body", .json: "JSON body"][expected] ?? expected.rawValue
    return Refusal("\(quoted(name)) must be in the \(place)")
  }
  static func repeated(_ name: String) -> Refusal { Refusal("\(quoted(name)) occurs twice") }
  static func renamed(_ name: String, to wire: String) -> Refusal {
    Refusal("\(quoted(name)) is called \(quoted(wire)) here")
  }
  static func unwanted(_ name: String) -> Refusal { Refusal("\(quoted(name)) is not allowed") }
  static func wrongScopeSeparator(expected: String) -> Refusal {
    Refusal("scopes must be separated by \(quoted(expected))", "invalid_scope")
  }

  static func wrongClientAuthentication(expected: ClientAuthentication) -> Refusal {
    Refusal("the client must authenticate with \(expected.rawValue)", "invalid_client")
  }
  static let twoClientAuthentications = Refusal("the client uses two authentication methods", "invalid_client")
  static let unknownClient = Refusal(
    "the client ID or secret is wrong", "invalid_client", problem: "consumer_key_unknown")
  static let unsupportedGrantType = Refusal("the descriptor has no leg with this grant type", "unsupported_grant_type")
  static let unsupportedResponseType = Refusal(
    "the descriptor has no grant with this response type", "unsupported_response_type")

  // MARK: Authorization and token requests

  static let hints = Refusal("the request must have exactly one hint for the user")
  static let wrongBindingMessage = Refusal("the binding message is too long", "invalid_binding_message")
  static let wrongDetails = Refusal(
    "the authorization details must be a list of objects with known types", "invalid_authorization_details")
  static let redirectMismatch = Refusal(
    "the redirect URI differs from the registration or the authorization request")
  static let notPushed = Refusal("the page accepts only requests that were pushed before (RFC 9126)")
  static let pushedRequestUnknown = Refusal("the pushed request is unknown or was already used", "invalid_request_uri")
  static let pushedRequestExpired = Refusal("the pushed request has expired", "invalid_request_uri")
  static let malformedChallenge = Refusal("the code challenge does not fit its method")
  static func unwantedChallenge(_ name: String) -> Refusal {
    Refusal("\(quoted(name)) is not allowed: the descriptor disables PKCE")
  }
  static let grantOfAnotherClient = grant("the code or refresh token belongs to another client")
  static let documentElsewhere = Refusal(
    "the simulator reads the document of a client only from an https URL of this machine", "invalid_client")
  static let documentUnusable = Refusal(
    "the document of the client cannot be read, names another client, or is not for a public client", "invalid_client")
  static let verifierMismatch = grant("the code verifier does not belong to the challenge")
  static let codeUnknown = grant("unknown code")
  static let codeExpired = grant("the code has expired")
  static let codeUsedTwice = grant("the code was already used; its tokens are revoked")
  static let refreshTokenUnknown = grant("unknown refresh token")
  static let refreshTokenExpired = grant("the refresh token has expired")
  static let refreshTokenReused = grant("the refresh token was already replaced; all its tokens are revoked")
  static let revoked = grant("the consent was revoked", problem: "token_revoked")
  static let denied = Refusal("the user denied access", "access_denied", problem: "permission_denied")
  static let consentUnknown = Refusal("this page was already used, or the simulator was restarted")
  static let malformedAccount = Refusal("an account name must have 1 to 64 characters")
  static let deviceCodeUnknown = grant("unknown device code")
  static let userCodeUnknown = Refusal("no device is waiting with this code")
  static let devicePending = Refusal("the user has not confirmed yet", "authorization_pending")
  static let pollTooSoon = Refusal("the device polls too fast", "slow_down")
  static let deviceCodeExpired = Refusal("the device code has expired", "expired_token")

  private static func grant(_ sentence: String, problem: String = "token_rejected") -> Refusal {
    Refusal(sentence, "invalid_grant", problem: problem)
  }

  static func notPresented(expected: String) -> Refusal { Refusal("the token must be sent as: \(expected)") }
  static let presentedTwice = Refusal("the token is sent twice")
  static let tokenUnknown = Refusal("unknown token", "invalid_token", problem: "token_rejected")
  static let subjectTokenExpired = Refusal("the subject token has expired")
  static func insufficientScope(_ scope: String) -> Refusal {
    var refusal = Refusal("the token lacks a scope", "insufficient_scope")
    refusal.demand("scope", scope)
    return refusal
  }
  static func insufficientAuthentication(_ contexts: String?, maxAge: String?) -> Refusal {
    var refusal = Refusal("the user must authenticate in another way", "insufficient_user_authentication")
    refusal.demand("acr_values", contexts)
    refusal.demand("max_age", maxAge)
    return refusal
  }

  static func emptyDemand(_ name: String) -> Refusal { Refusal("\(quoted(name)) must have a value") }
  static let wrongAge = Refusal("\"needs_max_age\" must be a number of seconds, and at least 1")

  /// Adds a parameter, without the characters that would end it.
  private mutating func demand(_ name: String, _ value: String?) {
    demands[name] = value?.filter { $0.isASCII && !$0.isNewline && $0 != "\"" && $0 != "\\" }
  }
  static let tokenExpired = Refusal("the token has expired", "invalid_token", problem: "token_expired")

  // MARK: OAuth 1.0a

  static func protocolParametersMisplaced(expected: SignatureTransport) -> Refusal {
    let sentence = "the signature and its parameters must be only in the \(expected.rawValue)"
    return Refusal(sentence, problem: "parameter_absent")
  }
  static func wrongSignatureMethod(expected: SignatureMethod) -> Refusal {
    Refusal("the signature method must be \(expected.rawValue)", problem: "signature_method_rejected")
  }
  static let wrongSignature = Refusal("the signature does not match the request", problem: "signature_invalid")
  static let timestampOutOfRange = Refusal(
    "the timestamp is missing or differs too much from the current time", problem: "timestamp_refused")
  static let nonceUsed = Refusal("the nonce was already used", problem: "nonce_used")
  static let temporaryCredentialsUnknown = grant("the temporary credentials are unknown or were already used")
  static let notAuthorized = grant("the user has not approved the temporary credentials")
  static let wrongVerifier = grant("wrong verifier")
  static let sessionHandleUnknown = grant("the session handle does not belong to the token")
}
