import Cryptography
import Store

extension Vault {
  /// Appends an event to the log: takes some microseconds, and changes nothing in the vault's file. An event of more
  /// than 2048 bytes is not noted.
  ///
  /// - Throws: `.file` if the file beside the vault cannot be written.
  package func note(_ event: Secret) throws(VaultError) {
    guard event.count <= EventLog.eventLimit else { return }
    try EventLog(location).append(event, openingKeys, random: random)
  }

  /// The events that are kept, the oldest first, and how many are known to be missing.
  ///
  /// - Throws: `.file` when there is something else in the place of the log, so that nothing can be noted; and as
  ///   `record(_:)` does.
  package func events() throws(VaultError) -> (events: [Secret], lost: Int) {
    try transaction(.deferred) { keys throws(VaultError) in
      let lines = try EventLog(self.location).lines(keys)
      return (try self.earlierEvents() + lines.compactMap(\.event), lines.count(where: \.isFault))
    }
  }

  /// What earlier programs have kept in records, of up to 64 events each:
  /// `i64(number of the first event) ‖ u8(n) ‖ n bytes`, and then `u16(length) ‖ event` for each one.
  private func earlierEvents() throws(VaultError) -> [Secret] {
    var pages: [(series: String, first: Int64, events: [Secret])] = []
    for record in try records(.event, provider: nil) {
      var fields = BinaryReader(record.payload.revealBytes())
      guard let first = fields.number64(), let count = fields.byte(), fields.raw(Int(count)) != nil else { continue }
      var events: [Secret] = []
      while let count = fields.number16(), let event = fields.raw(Int(count)) { events.append(Secret(bytes: event)) }
      pages.append((record.identifier.provider, first, events))
    }
    return pages.sorted { ($0.series, $0.first) < ($1.series, $1.first) }.flatMap(\.events)
  }
}
