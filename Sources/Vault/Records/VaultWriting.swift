import CredmgrCryptography
import CredmgrPlatform
import CredmgrSQLite
import CredmgrStore

extension Vault {
  /// Makes the changes, then logs their events; a failure to log is not an error.
  @discardableResult package func apply(_ changes: [Change]) throws(VaultError) -> Int64 {
    try change { change, _ throws(VaultError) in
      for item in changes {
        switch item {
        case .store(let payload, as: let identifier, if: let precondition):
          try change.store(payload, as: identifier, if: precondition)
        case .remove(let identifier, if: let precondition): try change.remove(identifier, if: precondition)
        case .require(let identifier): try change.require(identifier)
        case .note(let event): change.events.append(event)
        }
      }
      return change.revision
    }
  }

  package func check(_ identifiers: [RecordIdentifier]) throws(VaultError) {
    try requireWritable()
    // A change may use other parts of the file than the change before it, so check all parts before the request.
    try transaction(.deferred) { _ throws(VaultError) in try file.requireSoundness() }
    try transaction(.immediate) { keys throws(VaultError) in
      try file.requireLength()
      var change = try VaultChange(self, keys)
      for identifier in identifiers { _ = try change.entry(identifier) }
    }
  }

  func change<Result>(
    _ body: (inout VaultChange, VaultKeys) throws(VaultError) -> Result
  ) throws(VaultError) -> Result {
    try requireWritable()
    let (result, events) = try transaction(.immediate) { keys throws(VaultError) in
      try file.requireLength()
      var change = try VaultChange(self, keys)
      let result = try body(&change, keys)
      try change.finish()
      return (result, change.events)
    }
    for event in events { try? note(event) }
    return result
  }

  func requireWritable() throws(VaultError) { guard access == .readWrite else { throw .readOnly(path: location.file) } }
}

/// A change in progress: the header and the parts of the index that it touches.
struct VaultChange {
  private let vault: Vault
  private let file: VaultFile
  private var keys: VaultKeys
  private var key: SealingKey
  private var header: VaultHeader
  private var buckets: [UInt8: IndexBucket] = [:]
  var events: [Secret] = []

  /// The revision of all records that the change stores.
  var revision: Int64 { header.generation }

  init(_ vault: Vault, _ keys: VaultKeys) throws(VaultError) {
    let (file, key) = (vault.file, try keys.index())
    guard let row = try file.header(), row.key == keys.identifier,
      let header = VaultHeader(opening: row.sealed, key: key)
    else { throw .damaged(path: file.path, .header) }
    guard header.slots == keys.digest(try file.slots()) else { throw .damaged(path: file.path, .slots) }
    try self.init(vault, keys, header: header, advancingBy: 1)
  }

  init(_ vault: Vault, _ keys: VaultKeys, header: VaultHeader, advancingBy count: Int64) throws(VaultError) {
    self.vault = vault
    file = vault.file
    self.keys = keys
    self.header = header
    self.header.generation += count
    key = try keys.index()
  }

  /// Continues without records and with other keys.
  mutating func begin(anew keys: VaultKeys) throws(VaultError) {
    self.keys = keys
    key = try keys.index()
    buckets = [:]
    header.buckets = [:]
    try file.execute("DELETE FROM record;DELETE FROM bucket")
  }

  mutating func store(
    _ payload: Secret, as identifier: RecordIdentifier, if precondition: Precondition
  ) throws(VaultError) {
    guard payload.count <= Format.payloadLimit, identifier.provider.utf8.count <= Int(UInt16.max),
      identifier.account.utf8.count <= Int(UInt16.max)
    else { throw .tooLarge(identifier) }
    try check(identifier, precondition)
    try store(Record(identifier: identifier, payload: payload, revision: revision))
  }

  /// Stores a record with its existing revision.
  mutating func store(_ record: Record) throws(VaultError) {
    let identifier = record.identifier
    let row = try SealedRecord(record, keys: keys, random: vault.random)
    try file.insert(row)
    // Two names with the same 64 bits: 10 000 records lead to that in one of 10^11 vaults.
    if let other = try bucket(of: identifier).entries
      .first(where: { $0.key != identifier && keys.lookup($0.key) == row.lookup })
    {
      throw .conflict(other.key, actual: other.value.revision)
    }
    try setEntry(identifier, .init(revision: row.revision, tag: row.tag))
  }

  mutating func remove(_ identifier: RecordIdentifier, if precondition: Precondition) throws(VaultError) {
    try check(identifier, precondition)
    try file.run("DELETE FROM record WHERE lookup=?1", .integer(keys.lookup(identifier)))
    try setEntry(identifier, nil)
  }

  /// Checks the row, because the caller has read it: a record with an altered row or index can still be replaced.
  private func check(_ identifier: RecordIdentifier, _ precondition: Precondition) throws(VaultError) {
    guard precondition != .any else { return }
    let actual = try vault.row(keys.lookup(identifier))?.revision
    let expected: Int64? = if case .revision(let number) = precondition { number } else { nil }
    guard actual == expected else { throw .conflict(identifier, actual: actual) }
  }

  func require(_ identifier: RecordIdentifier) throws(VaultError) {
    if try vault.row(keys.lookup(identifier)) == nil { throw .conflict(identifier, actual: nil) }
  }

  mutating func entry(_ identifier: RecordIdentifier) throws(VaultError) -> IndexBucket.Entry? {
    try bucket(of: identifier).entries[identifier]
  }

  private mutating func setEntry(_ identifier: RecordIdentifier, _ entry: IndexBucket.Entry?) throws(VaultError) {
    var bucket = try bucket(of: identifier)
    bucket.entries[identifier] = entry
    buckets[bucket.number] = bucket
  }

  private mutating func bucket(of identifier: RecordIdentifier) throws(VaultError) -> IndexBucket {
    try bucket(IndexBucket.number(keys.lookup(identifier)))
  }

  mutating func identifiers() throws(VaultError) -> [RecordIdentifier] {
    var identifiers: [RecordIdentifier] = []
    for number in header.buckets.keys { identifiers += try bucket(number).entries.keys }
    return identifiers
  }

  private mutating func bucket(_ number: UInt8) throws(VaultError) -> IndexBucket {
    if let bucket = buckets[number] { return bucket }
    let (sealed, tag) = (try file.bucket(number), header.buckets[number])
    guard sealed?.suffix(Format.tagByteCount) == tag?[...],
      let bucket = sealed.map({ IndexBucket(number: number, opening: $0, key: key) }) ?? IndexBucket(number: number)
    else { throw .damaged(path: file.path, .index(number)) }
    buckets[number] = bucket
    return bucket
  }

  mutating func setSlots(_ slots: [KeySlot]) throws(VaultError) {
    try file.query { connection throws(SQLiteError) in
      try connection.execute("DELETE FROM slot")
      for slot in slots { try connection.insert(slot) }
    }
    header.slots = keys.digest(slots.sorted { $0.number < $1.number })
  }

  /// Writes the touched parts of the index and the header.
  mutating func finish() throws(VaultError) {
    for (number, bucket) in buckets {
      guard !bucket.entries.isEmpty else {
        header.buckets[number] = nil
        try file.execute("DELETE FROM bucket WHERE number=\(number)")
        continue
      }
      let sealed = try bucket.sealed(key: key, random: vault.random)
      header.buckets[number] = Array(sealed.suffix(Format.tagByteCount))
      try file.insert(bucket: Int64(number), sealed)
    }
    header.libraryVersion = Connection.libraryVersion
    let (identifier, sealed) = (keys.identifier, try header.sealed(key: key, random: vault.random))
    try file.query { connection throws(SQLiteError) in
      try connection.replaceHeader(key: identifier, sealed: sealed)
      // Between changes no page is unused: SQLite's list of unused pages is not sealed, and could make a change
      // overwrite a used one.
      try connection.execute("PRAGMA incremental_vacuum")
    }
  }
}
