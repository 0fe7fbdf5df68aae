import Descriptors

/// A moment in milliseconds since 1970.
typealias Milliseconds = Int64

/// What somebody consented to once, and all that came of it: revoking it revokes every token.
struct Consent: Sendable {
  var account: String
  var scope: [String]
  /// What the descriptor keeps besides the tokens.
  var kept: [String: String]
  var isRevoked = false
}

/// The number under which a consent is kept.
typealias ConsentID = Int

/// An access token, or a token of RFC 5849.
struct IssuedToken: Sendable {
  var consent: ConsentID
  /// `nil`: it does not expire.
  var expiresAt: Milliseconds?
  /// The shared secret (RFC 5849).
  var secret: String?
}

/// A refresh token.
struct IssuedRefreshToken: Sendable {
  var consent: ConsentID
  var expiresAt: Milliseconds
  /// When another one took its place.
  var replacedAt: Milliseconds?
}

/// What is remembered of an authorization request until the person has decided, and with the code.
struct AuthorizationTerms: Sendable {
  var grant: Grant
  var redirectURI: String
  var isRedirectExplicit: Bool
  var scope: [String]
  var state: String?
  var challenge: String?
  /// OpenID Connect Core 1.0, 3.1.2.1: what the ID token has to have in it.
  var nonce: String?
}

/// What a page of consent is about.
enum ConsentSubject: Sendable {
  /// RFC 6749, 4.1.1 and 4.2.1.
  case authorization(AuthorizationTerms)
  /// RFC 5849, 2.2: the temporary token.
  case temporaryCredentials(String)
}

/// A code of RFC 6749, 4.1.2.
struct IssuedCode: Sendable {
  var terms: AuthorizationTerms
  var consent: ConsentID
  var expiresAt: Milliseconds
  var isUsed = false
}

/// Codes of RFC 8628, 3.2.
struct IssuedDeviceCode: Sendable {
  enum Decision: Sendable {
    case pending
    case approved(ConsentID)
    case denied
  }

  var userCode: String
  var scope: [String]
  var expiresAt: Milliseconds
  /// Milliseconds that have to lie between two questions.
  var interval: Milliseconds
  var askedAt: Milliseconds?
  var decision = Decision.pending
}

/// Temporary credentials of RFC 5849, 2.1.
struct IssuedTemporaryCredentials: Sendable {
  var secret: String
  var callback: String
  var scope: [String]
  /// After the consent: the verifier, and the consent.
  var authorization: (verifier: String, consent: ConsentID)?
}

/// Everything that the simulated provider remembers.
struct SimulationState: Sendable {
  var consents: [Consent] = []
  var pages: [String: ConsentSubject] = [:]
  var codes: [String: IssuedCode] = [:]
  var tokens: [String: IssuedToken] = [:]
  var refreshTokens: [String: IssuedRefreshToken] = [:]
  var sessionHandles: [String: ConsentID] = [:]
  var deviceCodes: [String: IssuedDeviceCode] = [:]
  /// The newest one, which is approved when none is named.
  var newestDeviceCode: String?
  var temporaryCredentials: [String: IssuedTemporaryCredentials] = [:]
  /// Timestamp, nonce and token of every signed request (RFC 5849, 3.3).
  var nonces: Set<String> = []
  var log = SimulationLog()

  mutating func revoke(_ consent: ConsentID) {
    consents[consent].isRevoked = true
  }
}
