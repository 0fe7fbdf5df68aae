import Cryptography

/// What is logged: each has room of its own, so that many of one kind do not push out the few of the other.
public enum EventSeries: String, Sendable, CaseIterable {
  /// What was done to accounts and to the vault.
  case changes
  /// What was given to whom.
  case handOuts = "hand-outs"
}

/// Some events that follow each other: a record of the kind `.event`.
///
/// Events go into the record `current` of their series. When it is full it becomes one of a ring of pages, in the place of
/// the oldest one: a change writes one record for the log, and the log does not grow.
struct EventPage {
  let series: EventSeries
  /// The number of the first event: they are counted from 0, and a number that is missing is an event that is lost.
  let first: Int64
  private(set) var events: [Secret] = []
  /// Which hand-out came last out of the journal: it may be there still.
  var lastDrained: [UInt8] = []

  static let capacity: Int64 = 64
  static let pageCount: Int64 = 16

  init(series: EventSeries, first: Int64) {
    self.series = series
    self.first = first
  }

  /// `nil` if the payload is not what was stored.
  init?(series: EventSeries, decoding payload: Secret) {
    var fields = FieldReader(payload.revealBytes())
    guard let first = fields.number64(), let count = fields.byte(), let last = fields.raw(Int(count)) else {
      return nil
    }
    self.init(series: series, first: first)
    lastDrained = last
    while !fields.isAtEnd {
      guard let count = fields.number16(), let event = fields.raw(Int(count)) else { return nil }
      events.append(Secret(bytes: event))
    }
  }

  var encoded: Secret {
    var fields = FieldWriter()
    fields.append(first)
    fields.append(UInt8(lastDrained.count))
    fields.append(raw: lastDrained)
    for event in events {
      fields.append(UInt16(clamping: event.count))
      fields.append(raw: event.revealBytes())
    }
    return Secret(bytes: fields.bytes)
  }

  var isFull: Bool { events.count >= Self.capacity }

  /// The number of the event that comes next.
  var next: Int64 { first + Int64(events.count) }

  mutating func append(_ event: Secret) { events.append(event) }

  /// The page that the next event goes to.
  var following: EventPage {
    var page = EventPage(series: series, first: next)
    page.lastDrained = lastDrained
    return page
  }

  static func current(_ series: EventSeries) -> RecordIdentifier {
    RecordIdentifier(kind: .event, provider: series.rawValue, account: "current")
  }

  /// The record of the ring that a full page goes to.
  var place: RecordIdentifier {
    RecordIdentifier(
      kind: .event, provider: series.rawValue, account: String(first / Self.capacity % Self.pageCount))
  }
}
