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

/// What was wrong with a request, as data: never a token, a secret or another value that was sent.
enum Reason: Equatable, Sendable {
  // The shape of a request.
  case foreignHost
  case noSuchPath
  case wrongMethod(expected: [String])
  case wrongMediaType(expected: String)
  case malformedBody
  case unwantedBody

  // Parameters and headers.
  case missing(String)
  case misplaced(String, expected: ParameterPlacement)
  case repeated(String)
  case renamed(String, to: String)
  case unwanted(String)
  case wrongValue(String)
  case missingHeader(String)
  case wrongHeader(String)
  case wrongScopeSeparator(expected: String)

  // The client.
  case wrongClientAuthentication(expected: ClientAuthentication)
  case twoClientAuthentications
  case unknownClient
  case unsupportedGrantType
  case unsupportedResponseType

  // Authorization and token requests.
  case redirectMismatch
  case malformedChallenge
  case unwantedChallenge(String)
  case verifierMismatch
  case codeUnknown
  case codeExpired
  case codeUsedTwice
  case refreshTokenUnknown
  case refreshTokenExpired
  case refreshTokenReused
  case revoked
  case denied
  case consentUnknown
  case malformedAccount

  // Devices.
  case deviceCodeUnknown
  case userCodeUnknown
  case devicePending
  case pollTooSoon
  case deviceCodeExpired

  // The token at the API.
  case notPresented(expected: String)
  case presentedTwice
  case tokenUnknown
  case tokenExpired

  // OAuth 1.0a.
  case protocolParametersMisplaced(expected: SignatureTransport)
  case wrongSignatureMethod(expected: SignatureMethod)
  case wrongSignature
  case timestampOutOfRange
  case nonceUsed
  case temporaryCredentialsUnknown
  case notAuthorized
  case wrongVerifier
  case sessionHandleUnknown
}
