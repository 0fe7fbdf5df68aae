import CredmgrCryptography
import CredmgrSQLite
import CredmgrStore

extension VaultFinding {
  func error(path: String) -> VaultError {
    switch self {
    case .record(let identifier, _): .damagedRecord(identifier)
    case .index(let number, _): .damaged(path: path, .index(number))
    case .header: .damaged(path: path, .header)
    case .slots: .damaged(path: path, .slots)
    case .schema: .damaged(path: path, .schema)
    default: .damaged(path: path, .structure)
    }
  }
}

extension Vault {
  /// Finds everything that was altered, except the replacement of the whole file by an older copy, because nothing
  /// outside the file records its state.
  package func verify() throws(VaultError) -> [VaultFinding] {
    try transaction(.deferred) { keys throws(VaultError) in
      var verification = Verification(vault: self, keys: keys)
      try verification.run()
      return verification.findings
    }
  }
}

struct Verification {
  private let file: VaultFile
  private let keys: VaultKeys
  private(set) var findings: [VaultFinding] = []
  /// All records that could be opened.
  private(set) var records: [Record] = []
  private var index: [RecordIdentifier: IndexBucket.Entry] = [:]

  init(vault: Vault, keys: VaultKeys) {
    file = vault.file
    self.keys = keys
  }

  mutating func run() throws(VaultError) {
    let schema = try read([]) { connection throws(SQLiteError) in
      try connection.rows("SELECT name,sql FROM sqlite_schema ORDER BY rowid") { row throws(SQLiteError) in
        (try row.text(0), try row.text(1))
      }
    }
    if !schema.elementsEqual(Format.schema, by: { $0 == ($1.name, $1.sql) }) { report(.schema) }
    let key = try keys.index()
    try readIndex(try readHeader(key), key)
    try checkRecords()
    let isSound = try read(false) { connection throws(SQLiteError) in try connection.isSound() }
    let excess = try file.excess()
    if !isSound || excess < 0 { report(.structure) }
  }

  private mutating func report(_ finding: VaultFinding) {
    if !findings.contains(finding) { findings.append(finding) }
  }

  /// Converts SQLite's failures to read into findings; failures of the machine stay errors.
  private mutating func read<Result>(
    _ otherwise: Result, _ body: (Connection) throws(SQLiteError) -> Result
  ) throws(VaultError) -> Result {
    do throws(SQLiteError) {
      return try body(file.connection)
    } catch {
      switch error.condition {
      case .corrupt, .notADatabase, .other:
        report(.structure)
        return otherwise
      default: throw file.error(error)
      }
    }
  }

  private mutating func readHeader(_ key: SealingKey) throws(VaultError) -> VaultHeader? {
    let rows = try read([]) { connection throws(SQLiteError) in
      try connection.rows("SELECT number,key,sealed FROM header") { row throws(SQLiteError) in
        (number: try row.integer(0), key: try row.bytes(1), sealed: try row.bytes(2))
      }
    }
    guard rows.count == 1, rows[0].number == 0, rows[0].key == keys.identifier,
      let header = VaultHeader(opening: rows[0].sealed, key: key)
    else {
      report(.header)
      return nil
    }
    if (try? file.slots()).map(keys.digest) != header.slots { report(.slots) }
    return header
  }

  private mutating func readIndex(_ header: VaultHeader?, _ key: SealingKey) throws(VaultError) {
    let rows = try read([]) { connection throws(SQLiteError) in try connection.buckets() }
    var missing = Set(header?.buckets.keys.map { $0 } ?? [])
    for (row, sealed) in rows {
      guard let number = UInt8(exactly: row) else {
        report(.structure)
        continue
      }
      missing.remove(number)
      guard let bucket = IndexBucket(number: number, opening: sealed, key: key) else {
        report(.index(number, .altered))
        continue
      }
      if let header, header.buckets[number] != Array(sealed.suffix(Format.tagByteCount)) {
        report(.index(number, .replayed))
      }
      index.merge(bucket.entries) { first, _ in first }
    }
    for number in missing.sorted() { report(.index(number, .dropped)) }
  }

  private mutating func checkRecords() throws(VaultError) {
    let rows = try read([]) { connection throws(SQLiteError) in
      try connection.rows(SealedRecord.selection, as: SealedRecord.init)
    }
    let damagedBuckets = Set(
      findings.compactMap { finding -> UInt8? in
        if case .index(let number, let fault) = finding, fault != .replayed { number } else { nil }
      })
    var names: [Int64: RecordIdentifier] = [:]
    var tags: [[UInt8]: RecordIdentifier] = [:]
    for (identifier, entry) in index {
      names[keys.lookup(identifier)] = identifier
      tags[entry.tag] = identifier
    }
    for row in rows {
      let expected = names.removeValue(forKey: row.lookup)
      if let record = row.opened(keys) {
        records.append(record)
        let entry = index[record.identifier]
        let inForce = entry == .init(revision: row.revision, tag: row.tag)
        let unknowable = entry == nil && damagedBuckets.contains(IndexBucket.number(row.lookup))
        if !inForce && !unknowable { report(.record(record.identifier, .replayed)) }
      } else if let expected {
        let other = tags[row.tag].flatMap { $0 == expected ? nil : $0 }
        report(.record(expected, other.map { .swapped(with: $0) } ?? .altered))
      } else {
        report(.unknownRecord(lookup: String(UInt64(bitPattern: row.lookup), radix: 16)))
      }
    }
    for identifier in names.values { report(.record(identifier, .dropped)) }
  }
}
