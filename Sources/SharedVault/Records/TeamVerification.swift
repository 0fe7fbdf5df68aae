import CredmgrCryptography
import CredmgrPostgreSQL
import CredmgrStore

extension TeamVault {
  package func verify() throws(StoreError) -> [VaultFinding] {
    var findings: Set<VaultFinding> = []
    do throws(StoreError) { try Schema.check(server) } catch .server(.schemaEdited, _) { findings.insert(.tables) }
    var used: [Roster.Invitation] = []
    do throws(StoreError) {
      try verifyRoster { entry, before in
        if case .join = entry.change { used += before.invitations.filter { $0.key == entry.signer } }
      }
    } catch .server(.altered, _) {
      // Without the list of members, nothing tells which key the records have.
      return [.members]
    }
    // All statements see the same moment, because the log and the cells that name its ends change together.
    try server.beginReading()
    defer { server.endReading() }
    try withAllSeen { () throws(StoreError) in try verifyCells(&findings) }
    if !findings.contains(.tables) { try verifyInvitations(used, &findings) }
    saveSeen()
    return findings.sorted { String(describing: $0) < String(describing: $1) }
  }

  private func verifyCells(_ findings: inout Set<VaultFinding>) throws(StoreError) {
    let rows = try current { _ in (Schema.listAll, []) }
    var cells: [CellName: Loaded] = [:]
    var unopened: [Row] = []
    for row in rows {
      guard let cell = Cell(opening: row.sealed, keys, vault: vault, lookup: row.lookup, revision: row.revision) else {
        unopened.append(row)
        continue
      }
      cells[cell.name] = try loaded(cell.name, row)
      // The server finds the rows of a kind by these columns, so another value or none hides the row.
      if row.groups.map({ $0 != keys.groups(of: cell.name) }) ?? true { findings.insert(cell.name.alteration) }
    }
    if cells[.log]?.mark == nil { findings.insert(.log(nil)) }
    var listed: Set<RecordIdentifier> = []
    for number in 0..<CellName.directoryCount {
      let part = CellName.directory(number)
      switch cells[part] {
      case .cell: listed.formUnion(try directory(part, in: cells).records)
      case .faulty: findings.insert(.index(UInt8(number), .replayed))
      case .absent, nil:
        let isAltered = unopened.contains { $0.lookup == keys.lookup(part) }
        findings.insert(.index(UInt8(number), isAltered ? .altered : .dropped))
      }
    }
    // The names of rows that cannot be opened, from the directory and from what this machine saw.
    let known = listed.union(seen.compactMap { name, mark in mark == nil ? nil : name.identifier })
    let names = Dictionary(known.map { (keys.lookup(.record($0)), $0) }) { first, _ in first }
    for row in unopened {
      if let identifier = names[row.lookup] {
        findings.insert(.record(identifier, .altered))
        cells[.record(identifier)] = .absent
      } else if !CellName.initial.contains(where: { keys.lookup($0) == row.lookup }) {
        findings.insert(.unknownRecord(lookup: Hexadecimal.encode(row.lookup)))
      }
    }
    for (name, loaded) in cells {
      guard let identifier = name.identifier else { continue }
      if case .faulty = loaded { findings.insert(.record(identifier, .replayed)) }
      // A row from before the record was stored, or from before it was removed.
      if case .cell(let stored) = loaded, let part = CellName.directory(of: identifier), case .cell? = cells[part],
        (stored.cell.record != nil) != listed.contains(identifier)
      {
        findings.insert(.record(identifier, .replayed))
      }
    }
    for identifier in known where cells[.record(identifier)] == nil { findings.insert(.record(identifier, .dropped)) }
    let ends = cells.compactMap { name, loaded -> (name: CellName, end: LogEnd)? in
      guard case .cell(let stored) = loaded else { return nil }
      return (name, stored.cell.log)
    }
    if findings.contains(.tables) { return }
    try verifyLog(ends, &findings)
    try verifyCopies(&findings)
  }

  /// An open invitation that is missing would be refused when its member joins. The join checks the content. The row of
  /// a used one must not look open again.
  private func verifyInvitations(
    _ used: [Roster.Invitation], _ findings: inout Set<VaultFinding>
  ) throws(StoreError) {
    let (now, epoch) = ((serverNow() ?? 0) / 1_000_000, membership.roster.epoch)
    let rows = try server.query(
      "SELECT id,expires,state FROM credmgr.invitation WHERE vault=$1 AND state>=0 AND sealed<>''", [.bytes(vault)])
    for invitation in membership.roster.invitations where invitation.expires > now {
      let identifier = InvitationText.identifier(invitation.key)
      let isThere = rows.contains { row in
        row.bytes(0) == identifier && row.integer(1) == invitation.expires && row.integer(2) == epoch
      }
      if !isThere { findings.insert(.invitation(invitation.name)) }
    }
    for invitation in used {
      let identifier = InvitationText.identifier(invitation.key)
      if rows.contains(where: { $0.bytes(0) == identifier }) { findings.insert(.invitation(invitation.name)) }
    }
  }

  /// A missing copy would make its member believe that he was removed.
  private func verifyCopies(_ findings: inout Set<VaultFinding>) throws(StoreError) {
    let rows = try server.query("SELECT member,epoch,sealed FROM credmgr.wrap WHERE vault=$1", [.bytes(vault)])
    let copies = rows.map { KeyCopy(member: $0.bytes(0) ?? [], sealed: $0.bytes(2) ?? []) }
    let roster = membership.roster
    let isSigned = roster.copies.isEmpty ? copies.isEmpty : KeyCopy.hash(copies) == roster.copies
    if !isSigned || rows.contains(where: { $0.integer(1) != roster.epoch }) { findings.insert(.keyCopies) }
  }
}

extension CellName {
  fileprivate var alteration: VaultFinding {
    switch self {
    case .record(let identifier): .record(identifier, .altered)
    case .directory(let number): .index(UInt8(number), .altered)
    case .log: .log(nil)
    }
  }
}
