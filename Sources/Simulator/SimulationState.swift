import Descriptors
import JSON

/// What somebody consented to once; revoking it revokes every token that came of it.
struct Consent: Sendable {
  var account: String
  var scope: [String]
  var kept: [String: String]  // What the descriptor keeps besides the tokens.
  var isRevoked = false
}

typealias ConsentID = Int

/// Also a token of RFC 5849. Moments are here the time since 1970: `Moment` has no milliseconds.
struct IssuedToken: Sendable {
  var consent: ConsentID
  var expiresAt: Duration?  // `nil`: it does not expire.
  var secret = ""  // The shared secret (RFC 5849).
  var replacedAt: Duration?  // When another refresh token took its place.
}

/// What is remembered of an authorization request until the person has decided, and with the code.
struct AuthorizationTerms: Sendable {
  var grant: Grant
  var redirectURI: String?  // `nil`: the request named none, and the registered one is meant.
  var scope: [String]
  var state: String?
  var challenge: String?
  var nonce: String?  // OpenID Connect Core 1.0, 3.1.2.1: what the ID token has to have in it.
}

enum ConsentSubject: Sendable {
  case authorization(AuthorizationTerms)  // RFC 6749, 4.1.1 and 4.2.1.
  case temporaryCredentials(String)  // RFC 5849, 2.2: the temporary token.
}

/// RFC 6749, 4.1.2.
struct IssuedCode: Sendable {
  var terms: AuthorizationTerms
  var consent: ConsentID
  var expiresAt: Duration
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
  var expiresAt: Duration
  var interval: Duration  // What has to lie between two questions.
  var askedAt: Duration?
  var decision = Decision.pending
}

/// Temporary credentials of RFC 5849, 2.1.
struct IssuedTemporaryCredentials: Sendable {
  var secret: String
  var callback: String
  var scope: [String]
  var authorization: (verifier: String, consent: ConsentID)?  // After the consent.
}

struct SimulationState: Sendable {
  var consents: [Consent] = []
  var pages: [String: ConsentSubject] = [:]
  var codes: [String: IssuedCode] = [:]
  var tokens: [String: IssuedToken] = [:]
  var refreshTokens: [String: IssuedToken] = [:]
  var sessionHandles: [String: ConsentID] = [:]
  var deviceCodes: [String: IssuedDeviceCode] = [:]
  var newestDeviceCode: String?  // The newest one, which is approved when none is named.
  var temporaryCredentials: [String: IssuedTemporaryCredentials] = [:]
  var nonces: Set<String> = []  // Timestamp, nonce and token of every signed request (RFC 5849, 3.3).
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
