import CredmgrCryptography
import CredmgrSQLite
import CredmgrStore

extension Vault {
  package func record(_ identifier: RecordIdentifier) throws(VaultError) -> Record? {
    try transaction(.deferred) { keys throws(VaultError) in
      guard let row = try row(keys.lookup(identifier)) else { return nil }
      guard let record = row.opened(keys), record.identifier == identifier else { throw .damagedRecord(identifier) }
      return record
    }
  }

  /// Reads without SQLite's own index, which is not sealed and could hide a record.
  package func records(_ kind: RecordKind, provider: String?) throws(VaultError) -> [Record] {
    let records = try opened(kind, provider)
      .filter { record in provider.map { record.identifier.provider.utf8.elementsEqual($0.utf8) } ?? true }
      .sorted {
        ($0.identifier.provider, $0.identifier.account, $0.revision)
          < ($1.identifier.provider, $1.identifier.account, $1.revision)
      }
    // If the path to a row was altered, a change may have missed the row and stored another one with the same name.
    return records.indices.filter { $0 + 1 == records.endIndex || records[$0].identifier != records[$0 + 1].identifier }
      .map { records[$0] }
  }

  private func opened(_ kind: RecordKind, _ provider: String?) throws(VaultError) -> [Record] {
    try transaction(.deferred) { keys throws(VaultError) in
      let grouping = provider.map { SQLValue.integer(keys.grouping(kind, provider: $0)) }
      return try file.rows(
        SealedRecord.selection + " NOT INDEXED WHERE kind=?1" + (grouping == nil ? "" : " AND grouping=?2"),
        [.integer(Int64(kind.rawValue))] + (grouping.map { [$0] } ?? []), as: SealedRecord.init
      ).compactMap { $0.opened(keys) }
    }
  }

  /// - Throws: `.damaged` if the header, slots or index are also unreadable.
  package func unreadable(
    _ kind: RecordKind, provider: String?, without known: Set<RecordIdentifier> = []
  ) throws(VaultError) -> [RecordIdentifier] {
    try transaction(.deferred) { keys throws(VaultError) in
      var change = try VaultChange(self, keys)
      var unreadable: [RecordIdentifier] = []
      for identifier in try change.identifiers()
      where identifier.kind == kind && (provider == nil || identifier.provider == provider)
        && !known.contains(identifier)
      {
        if try !isReadable(identifier, keys) { unreadable.append(identifier) }
      }
      return unreadable.sorted { ($0.provider, $0.account) < ($1.provider, $1.account) }
    }
  }

  package func isLost(_ identifier: RecordIdentifier) throws(VaultError) -> Bool {
    try transaction(.deferred) { keys throws(VaultError) in
      var change = try VaultChange(self, keys)
      guard try change.entry(identifier) != nil else { return false }
      return try !isReadable(identifier, keys)
    }
  }

  private func isReadable(_ identifier: RecordIdentifier, _ keys: VaultKeys) throws(VaultError) -> Bool {
    try row(keys.lookup(identifier))?.opened(keys)?.identifier == identifier
  }
}
