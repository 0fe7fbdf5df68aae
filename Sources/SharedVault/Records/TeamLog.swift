import CredmgrCryptography
import CredmgrPostgreSQL
import CredmgrStore

/// The end of a chain of events. Each cell has a chain of its own, so that logging a change needs no further statement
/// and no machine waits for another one. Each event contains the hash of the one before, and the cell that of the last
/// one.
struct LogEnd: Sendable, Equatable {
  /// Random and the same for all epochs; empty before the first event.
  var chain: [UInt8] = []
  var count: Int64 = 0
  var hash: [UInt8] = []

  /// How many events of a chain stay.
  static let limit: Int64 = 64
  static let hashByteCount = 16

  /// The number of the last event that may be missing.
  var trimmed: Int64 { max(count - Self.limit, 0) }

  static func hash(_ sealed: [UInt8]) -> [UInt8] { Array(blake2b(sealed).prefix(hashByteCount)) }
}

extension TeamVault {
  static let eventLimit = 2048

  package func note(_ event: Secret) throws(StoreError) { try apply([.note(event)]) }

  /// Seals events as the continuation of a chain, and moves its end.
  func sealed(_ events: [Secret], after end: inout LogEnd) throws(StoreError) -> [[UInt8]] {
    if end.chain.isEmpty { end.chain = place.random.bytes(16) }
    var rows: [[UInt8]] = []
    for event in events {
      end.count += 1
      var fields = FieldWriter()
      fields.append(end.hash)
      fields.append(raw: event.revealBytes())
      let context = eventContext(keys.epoch, end)
      rows.append(
        try cryptography(keys.records.sealed(Secret(bytes: fields.bytes), context, random: place.random)))
      end.hash = LogEnd.hash(rows[rows.count - 1])
    }
    return rows
  }

  private func eventContext(_ epoch: Int64, _ place: LogEnd) -> FieldWriter {
    var fields = FieldWriter()
    fields.append("credmgr shared event")
    fields.append(vault)
    fields.append(epoch)
    fields.append(place.chain)
    fields.append(place.count)
    return fields
  }

  private struct Event {
    let chain: [UInt8]
    let number: Int64
    let hash: [UInt8]
    let id: Int64
    /// The hash of the event before and the event; `nil` if the row was altered.
    let content: (before: [UInt8], event: Secret)?
  }

  /// Calls `body` with all events, chain by chain.
  private func forEachEvent(_ body: (Event) throws(StoreError) -> Void) throws(StoreError) {
    var opened: [Int64: EpochKeys] = [:]
    var place = LogEnd()
    while true {
      let rows = try server.query(
        "SELECT chain,number,epoch,sealed,id FROM credmgr.event WHERE vault=$1 AND (chain,number)>($2,$3) "
          + "ORDER BY chain,number LIMIT 1000", [.bytes(vault), .bytes(place.chain), .integer(place.count)])
      for row in rows {
        let (epoch, sealed) = (row.integer(2) ?? 0, row.bytes(3) ?? [])
        place = LogEnd(chain: row.bytes(0) ?? [], count: row.integer(1) ?? 0)
        let keys = opened[epoch] ?? (try? membership.keys(epoch))
        opened[epoch] = keys
        var fields = FieldReader(keys?.records.opened(sealed, eventContext(epoch, place))?.revealBytes() ?? [])
        let before = fields.list()
        try body(
          Event(
            chain: place.chain, number: place.count, hash: LogEnd.hash(sealed), id: row.integer(4) ?? 0,
            content: before.map { ($0, Secret(bytes: fields.remainder)) }))
      }
      if rows.isEmpty { return }
    }
  }

  package func events() throws(StoreError) -> (events: [Secret], lost: Int) {
    try refreshState()
    var events: [(id: Int64, event: Secret)] = []
    var lost = 0
    var last: (chain: [UInt8], number: Int64) = ([], 0)
    try forEachEvent { event in
      // A server may name any number.
      if event.chain == last.chain, event.number &- 1 != last.number { lost += 1 }
      last = (event.chain, event.number)
      if let content = event.content { events.append((event.id, content.event)) } else { lost += 1 }
    }
    return (events.sorted { $0.id < $1.id }.map(\.event), lost)
  }

  /// Compares the events with the ends of their chains, as the cells name them.
  func verifyLog(
    _ ends: [(name: CellName, end: LogEnd)], _ findings: inout Set<VaultFinding>
  ) throws(StoreError) {
    var open = Dictionary(ends.filter { $0.end.count > 0 }.map { ($0.end.chain, $0) }) { first, _ in first }
    var faulty: Set<[UInt8]> = []
    var last: Event?
    var current: (name: CellName, end: LogEnd)?
    func close() {
      guard let ended = current else { return }
      if last?.number != ended.end.count || last?.hash != ended.end.hash { faulty.insert(ended.end.chain) }
      if faulty.contains(ended.end.chain) { findings.insert(.log(ended.name.identifier)) }
    }
    try forEachEvent { event in
      if event.chain != last?.chain {
        close()
        current = open.removeValue(forKey: event.chain)
        // The chain begins where it was trimmed.
        if let current, event.number > current.end.trimmed + 1 { faulty.insert(event.chain) }
      } else if last?.number != event.number &- 1 || last?.hash != event.content?.before {
        faulty.insert(event.chain)
      }
      // Nobody wrote an event that cannot be opened. A cell that was replaced leaves its events behind.
      if event.content == nil {
        if current == nil { findings.insert(.log(nil)) } else { faulty.insert(event.chain) }
      }
      last = event
    }
    close()
    for (_, missing) in open { findings.insert(.log(missing.name.identifier)) }
  }
}
