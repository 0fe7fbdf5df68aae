import JSON

/// What happened, in numbers, and the last reasons to say no.
struct SimulationLog: Sendable {
  /// What is counted; the raw values are the names at `/simulator/log`.
  enum Event: String, CaseIterable, Sendable {
    case logins
    case denials
    case tokens
    case refreshes
    case reuses
    case codeReuses = "code_reuses"
    case deviceCodes = "device_codes"
    case polls
    case slowDowns = "slow_downs"
    case introspections
    case identities
    case revocations
    case resourceOK = "resource_ok"
    case resourceRefused = "resource_refused"
    case refusals
  }

  private static let longest = 20
  private var counts: [Event: Int] = [:]
  private var reasons: [(place: String, sentence: String)] = []

  mutating func count(_ event: Event) { counts[event, default: 0] += 1 }

  mutating func refused(at place: String, _ refusal: Refusal) {
    count(.refusals)
    reasons.append((place, refusal.reason.sentence))
    if reasons.count > Self.longest { reasons.removeFirst() }
  }

  /// The counters, and the reasons with the newest one last.
  var json: JSONValue {
    var members = Event.allCases.map { JSONValue.Member($0.rawValue, .integer(counts[$0] ?? 0)) }
    let list = reasons.map { reason -> JSONValue in
      ["at": .string(reason.place), "reason": .string(reason.sentence)]
    }
    members.append(.init("last_refusals", .array(list)))
    return .object(members)
  }
}
