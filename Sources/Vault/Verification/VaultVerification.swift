import Cryptography
import SQLite
import Store

extension VaultFinding {
  /// The finding as a reason not to do something.
  func error(path: String) -> VaultError {
    switch self {
    case .record(let identifier, _): .damagedRecord(identifier)
    case .index(let number, _): .damaged(path: path, .index(number))
    case .header: .damaged(path: path, .header)
    case .slots: .damaged(path: path, .slots)
    case .schema: .damaged(path: path, .schema)
    case .structure, .unknownRecord: .damaged(path: path, .structure)
    }
  }
}

extension Vault {
  /// Looks at all that the vault holds and names what is not as it was written.
  ///
  /// A whole file that is exchanged for an older copy of itself is not found out: nothing outside of the file
  /// knows better.
  ///
  /// - Returns: nothing if all is well.
  /// - Throws: `.busy`, `.inputOutput`, `.outOfMemory`.
  package func verify() throws(VaultError) -> [VaultFinding] {
    try transaction(.deferred) { keys throws(VaultError) in
      var verification = Verification(vault: self, keys: keys)
      try verification.run()
      return verification.findings
    }
  }
}

struct Verification {
  let vault: Vault
  let keys: VaultKeys
  private(set) var findings: [VaultFinding] = []
  /// All that could be opened.
  private(set) var records: [Record] = []
  private var index: [RecordIdentifier: IndexBucket.Entry] = [:]
  private var rows: [SealedRecord] = []
  private typealias HeaderRow = (number: Int64, key: [UInt8], sealed: [UInt8])

  init(vault: Vault, keys: VaultKeys) {
    self.vault = vault
    self.keys = keys
  }

  mutating func run() throws(VaultError) {
    try checkSchema()
    let header = try readHeader()
    try readIndex(header)
    rows = try read([]) { connection throws(SQLiteError) in
      let statement = try connection.prepare(SealedRecord.selection)
      var rows: [SealedRecord] = []
      while try statement.step() { rows.append(try SealedRecord(statement)) }
      return rows
    }
    checkRecords()
    try checkStructure()
  }

  private mutating func report(_ finding: VaultFinding) {
    if !findings.contains(finding) { findings.append(finding) }
  }

  /// What SQLite cannot read is a finding; what has to do with the machine is an error.
  private mutating func read<Result>(
    _ otherwise: Result, _ body: (Connection) throws(SQLiteError) -> Result
  ) throws(VaultError) -> Result {
    let (connection, location) = (vault.connection, vault.location)
    do throws(SQLiteError) {
      return try body(connection)
    } catch {
      switch error.condition {
      case .corrupt, .notADatabase, .other:
        report(.structure)
        return otherwise
      default: throw VaultError(error, location, connection)
      }
    }
  }

  private mutating func checkSchema() throws(VaultError) {
    let actual = try read([]) { connection throws(SQLiteError) -> [(String, String)] in
      let statement = try connection.prepare("SELECT name,sql FROM sqlite_schema ORDER BY rowid")
      var schema: [(String, String)] = []
      while try statement.step() { schema.append((try statement.text(0), try statement.text(1))) }
      return schema
    }
    if !actual.elementsEqual(Format.schema, by: { $0 == ($1.name, $1.sql) }) { report(.schema) }
  }

  private mutating func readHeader() throws(VaultError) -> VaultHeader? {
    let rows = try read([]) { connection throws(SQLiteError) -> [HeaderRow] in
      let statement = try connection.prepare("SELECT number,key,sealed FROM header")
      var rows: [HeaderRow] = []
      while try statement.step() {
        rows.append((try statement.integer(0), try statement.bytes(1), try statement.bytes(2)))
      }
      return rows
    }
    let key = try indexKey()
    guard rows.count == 1, rows[0].number == 0, rows[0].key == keys.identifier,
      let header = VaultHeader(opening: rows[0].sealed, key: key)
    else {
      report(.header)
      return nil
    }
    let slots = try? Vault.slots(vault.connection, vault.location)
    if slots.map({ keys.digest($0) }) != header.slots { report(.slots) }
    return header
  }

  private func indexKey() throws(VaultError) -> SealingKey {
    let keys = keys
    return try converting { () throws(CryptographyError) in try keys.index() }
  }

  private mutating func readIndex(_ header: VaultHeader?) throws(VaultError) {
    let rows = try read([]) { connection throws(SQLiteError) -> [(Int64, [UInt8])] in
      let statement = try connection.prepare("SELECT number,sealed FROM bucket")
      var rows: [(Int64, [UInt8])] = []
      while try statement.step() { rows.append((try statement.integer(0), try statement.bytes(1))) }
      return rows
    }
    let key = try indexKey()
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

  private mutating func checkRecords() {
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

  private mutating func checkStructure() throws(VaultError) {
    let (connection, location) = (vault.connection, vault.location)
    let isSound = try read(false) { connection throws(SQLiteError) in try connection.isSound() }
    let excess = try Vault.excess(connection, location)
    if !isSound || excess < 0 { report(.structure) }
  }
}
