import Cryptography
import SQLite
import Store

extension Vault {
  /// The record of this name; `nil` if there is none.
  ///
  /// - Throws: `.damagedRecord` if it was altered; `.busy`, `.damaged`, `.truncated`, `.inputOutput` as
  ///   `open` does.
  package func record(_ identifier: RecordIdentifier) throws(VaultError) -> Record? {
    try transaction(.deferred) { keys throws(VaultError) in
      guard let row = try self.row(keys.lookup(identifier)) else { return nil }
      guard let record = row.opened(keys), record.identifier == identifier
      else { throw .damagedRecord(identifier) }
      return record
    }
  }

  /// The records of a kind, of one provider or of all, in the order of their names.
  ///
  /// A damaged record is left out, and `verify` names it. SQLite's own index is not asked: nobody has sealed it, and a
  /// record that it hides would be missing without a word.
  ///
  /// - Throws: `.busy`, `.damaged`, `.truncated`, `.inputOutput` as `open` does.
  package func records(_ kind: RecordKind, provider: String?) throws(VaultError) -> [Record] {
    let records = try opened(kind, provider)
      .filter { record in provider.map { record.identifier.provider.utf8.elementsEqual($0.utf8) } ?? true }
      .sorted {
        ($0.identifier.provider, $0.identifier.account, $0.revision)
          < ($1.identifier.provider, $1.identifier.account, $1.revision)
      }
    // Where the way to a row was altered, a change did not find it, and stored another one of the same name.
    return records.indices.filter { $0 + 1 == records.endIndex || records[$0].identifier != records[$0 + 1].identifier }
      .map { records[$0] }
  }

  private func opened(_ kind: RecordKind, _ provider: String?) throws(VaultError) -> [Record] {
    try transaction(.deferred) { keys throws(VaultError) in
      let grouping = provider.map { keys.grouping(kind, provider: $0) }
      return try self.query { connection throws(SQLiteError) -> [SealedRecord] in
        let statement = try connection.prepare(
          SealedRecord.selection + " NOT INDEXED WHERE kind=?1" + (grouping == nil ? "" : " AND grouping=?2"))
        try statement.bind(Int64(kind.rawValue), at: 1)
        if let grouping { try statement.bind(grouping, at: 2) }
        var rows: [SealedRecord] = []
        while try statement.step() { rows.append(try SealedRecord(statement)) }
        return rows
      }
      .compactMap { $0.opened(keys) }
    }
  }

  /// The records of a kind, of one provider or of all, that the index has and that cannot be read, in the order of
  /// their names: they were altered or removed.
  ///
  /// - Parameter known: records that were read already, and are not read again.
  /// - Throws: `.damaged` if header, slots or index cannot be read, either; and as `record(_:)` does.
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
        if try !self.isReadable(identifier, keys) { unreadable.append(identifier) }
      }
      return unreadable.sorted { ($0.provider, $0.account) < ($1.provider, $1.account) }
    }
  }

  /// Whether the index has a record that cannot be read.
  ///
  /// - Throws: as `unreadable(_:provider:)`.
  package func isLost(_ identifier: RecordIdentifier) throws(VaultError) -> Bool {
    try transaction(.deferred) { keys throws(VaultError) in
      var change = try VaultChange(self, keys)
      guard try change.entry(identifier) != nil else { return false }
      return try !self.isReadable(identifier, keys)
    }
  }

  private func isReadable(_ identifier: RecordIdentifier, _ keys: VaultKeys) throws(VaultError) -> Bool {
    try row(keys.lookup(identifier))?.opened(keys)?.identifier == identifier
  }
}

extension SealedRecord {
  static let selection = "SELECT lookup,kind,grouping,revision,sealed FROM record"

  init(_ statement: borrowing Statement) throws(SQLiteError) {
    self.init(
      lookup: try statement.integer(0), kind: try statement.integer(1), grouping: try statement.integer(2),
      revision: try statement.integer(3), sealed: try statement.bytes(4))
  }
}
