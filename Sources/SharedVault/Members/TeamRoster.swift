import CredmgrCryptography
import CredmgrPostgreSQL
import CredmgrStore
import CredmgrText

extension TeamVault {
  /// Reads and verifies the new entries of the list of members, and stores the result.
  func learnRoster() throws(StoreError) {
    let learned = try Self.learned(membership, from: server)
    membership = learned
    keys = try cryptography(learned.keys())
    // The rows of another epoch have other names and another seal, but the same marks.
    view?.cells = [:]
    try Self.store(learned, as: name, in: place.local)
  }

  static func learned(_ known: Membership, from server: Server) throws(StoreError) -> Membership {
    var known = known
    let rows = try server.query(
      "SELECT sequence,epoch,sealed FROM credmgr.roster WHERE vault=$1 AND sequence>$2 ORDER BY sequence",
      [.bytes(known.roster.vault), .integer(known.roster.head.sequence)])
    guard let epoch = rows.last?.integer(1) else { throw server.fault(.setBack(nil)) }
    guard let before = known.member else { throw server.fault(.removed) }
    if known.secrets[epoch] == nil {
      let wraps = try server.query(
        "SELECT sealed FROM credmgr.wrap WHERE vault=$1 AND member=$2 AND epoch=$3",
        [.bytes(known.roster.vault), .bytes(before.identifier), .integer(epoch)])
      guard let sealed = wraps.first?.bytes(0), let secret = known.box.opened(sealed), secret.count == 32 else {
        throw server.fault(.removed)
      }
      known.secrets[epoch] = secret
    }
    try follow(rows, vault: known.roster.vault, by: &known, on: server)
    guard known.member != nil else { throw server.fault(.removed) }
    return known
  }

  /// Opens entries from the last to the first, because each change of the key names the key before, and then follows
  /// the chain. Calls `sees` with each entry and the list before it.
  static func follow(
    _ rows: [SQLRow], vault: [UInt8], by known: inout Membership, on server: Server,
    sees: (Roster.Entry, Roster) -> Void = { _, _ in }
  ) throws(StoreError) {
    var entries: [[UInt8]] = []
    for row in rows.reversed() {
      guard let sequence = row.integer(0), let epoch = row.integer(1), let sealed = row.bytes(2),
        let keys = try? known.keys(epoch),
        let entry = keys.roster.opened(sealed, context(vault, sequence: sequence, epoch: epoch))
      else { throw server.fault(.altered) }
      entries.append(entry.revealBytes())
      guard let secret = Roster.keyBefore(entry.revealBytes()) else { continue }
      if let ours = known.secrets[epoch - 1], ours != secret { throw server.fault(.forked(nil)) }
      known.secrets[epoch - 1] = secret
    }
    for entry in entries.reversed() {
      let before = known.roster
      guard known.roster.follow(entry) else { throw server.fault(.forked(nil)) }
      guard known.roster.vault == vault else { throw server.fault(.forked(nil)) }
      // An administrator has signed a hash of the key, so no other member can choose it.
      guard (try? known.keys().commitment) == known.roster.commitment else { throw server.fault(.altered) }
      if let entry = Roster.Entry(entry) { sees(entry, before) }
    }
  }

  /// Follows the whole list of members again, which must end where this machine has arrived.
  func verifyRoster(sees: (Roster.Entry, Roster) -> Void = { _, _ in }) throws(StoreError) {
    try refreshState()
    var again = membership
    again.roster = Roster()
    let rows = try server.query(
      "SELECT sequence,epoch,sealed FROM credmgr.roster WHERE vault=$1 AND sequence<=$2 ORDER BY sequence",
      [.bytes(vault), .integer(membership.roster.head.sequence)])
    try Self.follow(rows, vault: vault, by: &again, on: server, sees: sees)
    guard again.roster == membership.roster else { throw server.fault(.forked(nil)) }
  }

  private static func context(_ vault: [UInt8], sequence: Int64, epoch: Int64) -> FieldWriter {
    var fields = FieldWriter()
    fields.append("credmgr shared roster")
    fields.append(vault)
    fields.append(sequence)
    fields.append(epoch)
    return fields
  }

  /// The parameters of a new row of the list of members: the last entry of `membership`.
  static func row(
    _ entry: [UInt8], of membership: Membership, random: any RandomSource
  ) throws(StoreError) -> [SQLParameter] {
    let roster = membership.roster
    let sealed = try cryptography(
      membership.keys().roster.sealed(
        Secret(bytes: entry), context(roster.vault, sequence: roster.head.sequence, epoch: roster.epoch), random: random
      ))
    return [.bytes(roster.vault), .integer(roster.head.sequence), .integer(roster.epoch), .bytes(sealed)]
  }

  static let rosterInsertion = "INSERT INTO credmgr.roster(vault,sequence,epoch,sealed) VALUES($1,$2,$3,$4)"

  static func store(_ membership: Membership, as name: String, in local: any AccountStore) throws(StoreError) {
    let identifier = RecordIdentifier(.membership, of: AccountID(name))
    while true {
      let record = try local.record(identifier)
      // Another process may have learned more.
      if let record, let stored = Membership(record.payload), stored.roster.vault == membership.roster.vault,
        stored.roster.head.sequence > membership.roster.head.sequence
      {
        return
      }
      do throws(StoreError) {
        try local.apply([
          .store(membership.encoded, as: identifier, if: record.map { .revision($0.revision) } ?? .absent)
        ])
        return
      } catch .conflict {
        continue
      }
    }
  }

  /// Reads the state of the vault, and what other administrators have changed.
  func refreshState() throws(StoreError) { _ = try current { _ in (Schema.readState, []) } }

  /// Appends an entry and makes the changes of `body` with it, all or none; again if another administrator was faster.
  /// `make` returns the entry's change and the membership after it.
  func append(
    _ make: () throws(StoreError) -> (Roster.Change, SigningKey, newSecret: Secret?),
    _ body: (_ next: Membership) throws(StoreError) -> Bool
  ) throws(StoreError) {
    for _ in 0..<20 {
      try refreshState()
      let time = (serverNow() ?? 0) / 1_000_000
      let (change, key, secret) = try make()
      var next = membership
      let entry = next.roster.entry(change, at: time, signedBy: key)
      guard next.roster.follow(entry) else { throw server.fault(.altered) }
      if let secret { next.secrets[next.roster.epoch] = secret }
      let (before, after) = (membership.roster, next.roster)
      let row = try Self.row(entry, of: next, random: place.random)
      let done: Bool? = try committing(row, at: after.head.sequence) { () throws(StoreError) in
        // Locks the vault's row: no other entry, and no new record with the old key.
        let rows = try server.query(
          "UPDATE credmgr.vault SET sequence=$2,epoch=$3 WHERE id=$1 AND sequence=$4 AND epoch=$5 RETURNING id,"
            + Schema.durable,
          [
            .bytes(vault), .integer(after.head.sequence), .integer(after.epoch), .integer(before.head.sequence),
            .integer(before.epoch),
          ])
        guard !rows.isEmpty else { return nil }
        try server.query(Self.rosterInsertion, row)
        return try body(next) ? true : nil
      }
      guard done == true else { continue }
      membership = next
      keys = try cryptography(next.keys())
      // A machine that left knows the new key, which it made.
      if next.member == nil { try place.forget(name) } else { try Self.store(next, as: name, in: place.local) }
      return
    }
    throw server.fault(.failed(detail: "other administrators change the members all the time"))
  }

  /// Runs a transaction that adds an entry. If the answer to its commit is lost, the entry itself shows the outcome.
  private func committing(
    _ row: [SQLParameter], at sequence: Int64, _ body: () throws(StoreError) -> Bool?
  ) throws(StoreError) -> Bool? {
    do throws(StoreError) { return try server.transaction(body) } catch {
      let rows = try? server.query(
        "SELECT sealed FROM credmgr.roster WHERE vault=$1 AND sequence=$2", [.bytes(vault), .integer(sequence)])
      guard let sealed = rows?.first?.bytes(0), case .bytes(let ours)? = row.last, sealed == ours else { throw error }
      return true
    }
  }

  func requireAdministrator() throws(StoreError) {
    guard membership.member?.isAdministrator == true else { throw server.fault(.notAdministrator) }
  }
}
