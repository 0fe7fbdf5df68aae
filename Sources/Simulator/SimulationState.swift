import CredmgrDescriptors
import CredmgrJSON
import CredmgrTLS

/// A user's consent. Revoking it revokes every token that resulted from it.
struct Consent: Sendable {
  var account: String
  var scope: [String]
  var kept: [String: String]  // The kept fields besides the tokens.
  var details: JSONValue?  // The granted authorization details (RFC 9396, 7).
  var context: String?  // How the user authenticated: the `acr` of the ID token.
  var authenticatedAt = Duration.zero
  var client: String?  // The client of the standard server; `nil` for the only client of the provider.
  var isRevoked = false
}

typealias ConsentID = Int

/// A token, also of OAuth 1.0a. Times are durations since 1970, because `Moment` has no milliseconds.
struct IssuedToken: Sendable {
  var consent: ConsentID
  var expiresAt: Duration?  // `nil` if it never expires.
  var secret = ""  // For OAuth 1.0a.
  var replacedAt: Duration?  // `nil` unless replaced.
  var key: String?  // The hash of the key or certificate that it is bound to (RFC 9449, 6; RFC 8705, 3.1).
}

/// The terms of an authorization request, kept until the user decides, and then with the code.
struct AuthorizationTerms: Sendable {
  var grant: Grant
  var redirectURI: String?  // `nil` for the registered one.
  var scope: [String]
  var state: String?
  var challenge: String?
  var key: String?  // The key that must prove itself with the code (RFC 9449, 10).
  var nonce: String?  // For the ID token (OpenID Connect Core 1.0, 3.1.2.1).
  var context: String?  // The first of `acr_values`, for the ID token.
  var details: JSONValue?  // RFC 9396, 3
  var client: String?
}

enum ConsentSubject: Sendable {
  case authorization(AuthorizationTerms)  // RFC 6749, 4.1.1 and 4.2.1.
  case temporaryCredentials(String)  // The temporary token (RFC 5849, 2.2).
}

/// A code (RFC 6749, 4.1.2).
struct IssuedCode: Sendable {
  var terms: AuthorizationTerms
  var consent: ConsentID
  var expiresAt: Duration
  var isUsed = false
}

/// The codes of a device login (RFC 8628, 3.2).
struct IssuedDeviceCode: Sendable {
  enum Decision: Sendable {
    case pending
    case approved(ConsentID)
    case denied
  }

  var userCode: String
  var scope: [String]
  var details: JSONValue?  // RFC 9396
  var context: String?  // The first of `acr_values`.
  var expiresAt: Duration
  var interval: Duration  // The least time between polls.
  var askedAt: Duration?
  var decision = Decision.pending
}

/// A pushed authorization request (RFC 9126).
struct PushedRequest: Sendable {
  let terms: AuthorizationTerms
  let expiresAt: Duration
}

/// Temporary credentials (RFC 5849, 2.1).
struct IssuedTemporaryCredentials: Sendable {
  var secret: String
  var callback: String
  var scope: [String]
  var authorization: (verifier: String, consent: ConsentID)?  // After consent.
}

/// A key that a user of the provider could have made, and the other values that its login needs.
struct IssuedKey: Sendable {
  var token: String
  var variables: [String: String]
  var lines: [(label: String, value: String)]  // In the order of the login's prompts.
}

struct SimulationState: Sendable {
  var key: IssuedKey?
  var certificate: Certificate?  // The certificate that the client of the current request presented.
  var provenKey: String?  // The hash of the key or certificate to which the current request binds new tokens.
  var proofs: Set<String> = []  // The `jti` of each proof.
  var assertions: Set<String> = []  // The `jti` of each client assertion.
  var serverNonce: String?
  var tokenOfPath: String?  // The token before the path of the current request.
  var consents: [Consent] = []
  var pages: [String: ConsentSubject] = [:]
  var documents: [String: [String]] = [:]  // The redirects of each client whose identifier is the URL of a document.
  var pushedRequests: [String: PushedRequest] = [:]
  var codes: [String: IssuedCode] = [:]
  var tokens: [String: IssuedToken] = [:]
  var refreshTokens: [String: IssuedToken] = [:]
  var sessionHandles: [String: ConsentID] = [:]
  var deviceCodes: [String: IssuedDeviceCode] = [:]
  var newestDeviceCode: String?  // Approved if the user names none.
  var temporaryCredentials: [String: IssuedTemporaryCredentials] = [:]
  var nonces: Set<String> = []  // The time, nonce and token of each signed request (RFC 5849, 3.3).
  var log = SimulationLog()
}

struct SimulationLog: Sendable {
  enum Event: String, CaseIterable, Sendable {
    case logins, denials, tokens, refreshes, reuses
    case codeReuses = "code_reuses"
    case deviceCodes = "device_codes"
    case polls
    case slowDowns = "slow_downs"
    case introspections, identities, revocations
    case resourceOK = "resource_ok"
    case resourceRefused = "resource_refused"
    case refusals
  }

  private(set) var counts: [Event: Int] = [:]
  private(set) var reasons: [(place: String, sentence: String)] = []

  mutating func count(_ event: Event) { counts[event, default: 0] += 1 }

  mutating func refused(at place: String, _ refusal: Refusal) {
    count(.refusals)
    reasons.append((place, refusal.sentence))
    if reasons.count > 20 { reasons.removeFirst() }
  }

  var json: JSONValue {
    var members = Event.allCases.map { JSONValue.Member($0.rawValue, .integer(counts[$0] ?? 0)) }
    let list = reasons.map { reason -> JSONValue in ["at": .string(reason.place), "reason": .string(reason.sentence)] }
    members.append(.init("last_refusals", .array(list)))
    return .object(members)
  }
}
