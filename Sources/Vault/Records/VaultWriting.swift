import Cryptography
import Platform
import SQLite
import Store

extension Vault {
  /// Stores a payload under a name.
  ///
  /// - Returns: the record's revision.
  /// - Throws: as `apply` does.
  @discardableResult
  package func store(
    _ payload: Secret, as identifier: RecordIdentifier, if precondition: Precondition = .any
  ) throws(VaultError) -> Int64 {
    try apply([.store(payload, as: identifier, if: precondition)])
  }

  /// Removes a record.
  ///
  /// - Returns: whether there was one.
  /// - Throws: as `apply` does.
  @discardableResult
  package func remove(
    _ identifier: RecordIdentifier, if precondition: Precondition = .any
  ) throws(VaultError) -> Bool {
    try change { change, _ throws(VaultError) in
      try change.remove(identifier, if: precondition)
    }
  }

  /// Makes all of the changes or none, in their order. They are on the disk when the call returns. Events are noted
  /// after that; where they cannot be, that is no error.
  ///
  /// - Returns: the revision of all that was stored.
  /// - Throws: `.conflict` for the first precondition that does not hold; `.tooLarge`; `.full`, `.readOnly`,
  ///   `.busy`,   `.inputOutput`, `.damaged`. Nothing is changed then.
  @discardableResult
  package func apply(_ changes: [Change]) throws(VaultError) -> Int64 {
    try change { change, _ throws(VaultError) in
      for item in changes {
        switch item {
        case .store(let payload, as: let identifier, if: let precondition):
          try change.store(payload, as: identifier, if: precondition)
        case .remove(let identifier, if: let precondition):
          try change.remove(identifier, if: precondition)
        case .require(let identifier):
          try change.require(identifier)
        case .note(let event):
          change.events.append(event)
        }
      }
      return change.revision
    }
  }

  /// Checks that records could be stored under these names: the file can be written, and all that a change
  /// reads is what was written. A provider is asked for a new token after this only: one that cannot be kept
  /// is lost.
  ///
  /// - Throws: as `apply` does.
  package func check(_ identifiers: [RecordIdentifier]) throws(VaultError) {
    try requireWritable()
    // The change behind an answer needs other parts of the file than the one before it.
    try requireStructure()
    try transaction(.immediate) { keys throws(VaultError) in
      try self.requireLength()
      var change = try VaultChange(self, keys)
      for identifier in identifiers { _ = try change.entry(identifier) }
    }
  }

  /// Runs the body as one change, and notes what happened.
  func change<Result>(
    _ body: (inout VaultChange, VaultKeys) throws(VaultError) -> Result
  ) throws(VaultError) -> Result {
    try requireWritable()
    let (result, events) = try transaction(.immediate) { keys throws(VaultError) in
      try self.requireLength()
      var change = try VaultChange(self, keys)
      let result = try body(&change, keys)
      try change.finish()
      return (result, change.events)
    }
    for event in events { try? note(event) }
    return result
  }

  func requireWritable() throws(VaultError) {
    guard access == .readWrite else { throw .readOnly(path: location.file) }
  }
}

/// A change in the making: the header, and those parts of the index that it touches.
struct VaultChange {
  let vault: Vault
  private var keys: VaultKeys
  private var key: SealingKey
  private var header: VaultHeader
  private var buckets: [UInt8: IndexBucket] = [:]
  /// To be noted after the commit.
  var events: [Secret] = []

  /// The revision of all that the change stores.
  var revision: Int64 { header.generation }

  init(_ vault: Vault, _ keys: VaultKeys) throws(VaultError) {
    self.vault = vault
    self.keys = keys
    key = try converting { () throws(CryptographyError) in try keys.index() }
    guard let row = try vault.headerRow(), row.key == keys.identifier,
      let header = VaultHeader(opening: row.sealed, key: key)
    else { throw .damaged(path: vault.location.file, .header) }
    guard header.slots == keys.digest(try Vault.slots(vault.connection, vault.location)) else {
      throw .damaged(path: vault.location.file, .slots)
    }
    self.header = header
    self.header.generation += 1
  }

  /// A change of a vault whose header is known.
  init(_ vault: Vault, _ keys: VaultKeys, header: VaultHeader) throws(VaultError) {
    self.vault = vault
    self.keys = keys
    self.header = header
    key = try converting { () throws(CryptographyError) in try keys.index() }
  }

  /// Makes the revision of all that the change stores greater.
  mutating func advance(by count: Int64) { header.generation += count }

  /// Goes on without a record and with other keys.
  mutating func begin(anew keys: VaultKeys) throws(VaultError) {
    self.keys = keys
    key = try converting { () throws(CryptographyError) in try keys.index() }
    buckets = [:]
    header.buckets = [:]
    try vault.query { connection throws(SQLiteError) in
      try connection.execute("DELETE FROM record;DELETE FROM bucket")
    }
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

  /// Stores a record with the revision that it has.
  mutating func store(_ record: Record) throws(VaultError) {
    let (keys, random, identifier) = (keys, vault.random, record.identifier)
    let row = try converting { () throws(CryptographyError) in
      try SealedRecord(record, keys: keys, random: random)
    }
    try vault.query { connection throws(SQLiteError) in try connection.insert(row) }
    let entries = try bucket(of: identifier).entries
    // Two names with the same 64 bits: 10 000 records meet that once in 10^11 vaults.
    if let other = entries.first(where: { $0.key != identifier && keys.lookup($0.key) == row.lookup }) {
      throw .conflict(other.key, actual: other.value.revision)
    }
    try setEntry(identifier, .init(revision: row.revision, tag: row.tag))
  }

  @discardableResult
  mutating func remove(
    _ identifier: RecordIdentifier, if precondition: Precondition
  ) throws(VaultError) -> Bool {
    try check(identifier, precondition)
    let lookup = keys.lookup(identifier)
    let removed = try vault.query { connection throws(SQLiteError) in
      let statement = try connection.prepare("DELETE FROM record WHERE lookup=?1")
      try statement.bind(lookup, at: 1)
      try statement.run()
      return connection.changes
    }
    let entry = try entry(identifier)
    if entry != nil { try setEntry(identifier, nil) }
    return removed > 0 || entry != nil
  }

  /// The row counts, because it is what the caller has read: where somebody altered row or index, the record
  /// can still be stored anew.
  private func check(
    _ identifier: RecordIdentifier, _ precondition: Precondition
  ) throws(VaultError) {
    guard precondition != .any else { return }
    let actual = try vault.row(keys.lookup(identifier))?.revision
    switch precondition {
    case .any: return
    case .absent: guard actual == nil else { throw .conflict(identifier, actual: actual) }
    case .revision(let expected):
      guard actual == expected else { throw .conflict(identifier, actual: actual) }
    }
  }

  func require(_ identifier: RecordIdentifier) throws(VaultError) {
    if try vault.row(keys.lookup(identifier)) == nil { throw .conflict(identifier, actual: nil) }
  }

  mutating func entry(_ identifier: RecordIdentifier) throws(VaultError) -> IndexBucket.Entry? {
    try bucket(of: identifier).entries[identifier]
  }

  private mutating func setEntry(
    _ identifier: RecordIdentifier, _ entry: IndexBucket.Entry?
  ) throws(VaultError) {
    var bucket = try bucket(of: identifier)
    bucket.entries[identifier] = entry
    buckets[bucket.number] = bucket
  }

  private mutating func bucket(of identifier: RecordIdentifier) throws(VaultError) -> IndexBucket {
    try bucket(IndexBucket.number(keys.lookup(identifier)))
  }

  /// All that the index has.
  mutating func identifiers() throws(VaultError) -> [RecordIdentifier] {
    var identifiers: [RecordIdentifier] = []
    for number in header.buckets.keys { identifiers += try bucket(number).entries.keys }
    return identifiers
  }

  private mutating func bucket(_ number: UInt8) throws(VaultError) -> IndexBucket {
    if let bucket = buckets[number] { return bucket }
    let sealed = try vault.bucketRow(number)
    let bucket: IndexBucket
    if let tag = header.buckets[number] {
      guard let sealed, sealed.suffix(Format.tagByteCount).elementsEqual(tag),
        let opened = IndexBucket(number: number, opening: sealed, key: key)
      else { throw .damaged(path: vault.location.file, .index(number)) }
      bucket = opened
    } else {
      guard sealed == nil else { throw .damaged(path: vault.location.file, .index(number)) }
      bucket = IndexBucket(number: number)
    }
    buckets[number] = bucket
    return bucket
  }

  /// Exchanges all slots.
  mutating func setSlots(_ slots: [KeySlot]) throws(VaultError) {
    try vault.query { connection throws(SQLiteError) in
      try connection.execute("DELETE FROM slot")
      for slot in slots { try connection.insert(slot) }
    }
    header.slots = keys.digest(slots.sorted { $0.number < $1.number })
  }

  /// Writes the touched parts of the index, and the header.
  mutating func finish() throws(VaultError) {
    let (key, random) = (key, vault.random)
    for (number, bucket) in buckets {
      guard !bucket.entries.isEmpty else {
        header.buckets[number] = nil
        try vault.query { connection throws(SQLiteError) in
          try connection.execute("DELETE FROM bucket WHERE number=\(number)")
        }
        continue
      }
      let sealed = try converting { () throws(CryptographyError) in
        try bucket.sealed(key: key, random: random)
      }
      header.buckets[number] = Array(sealed.suffix(Format.tagByteCount))
      try vault.query { connection throws(SQLiteError) in try connection.insert(bucket: Int64(number), sealed) }
    }
    header.libraryVersion = Connection.libraryVersion
    let (keys, header) = (keys, header)
    let sealed = try converting { () throws(CryptographyError) in
      try header.sealed(key: key, random: random)
    }
    try vault.query { connection throws(SQLiteError) in
      try connection.replaceHeader(key: keys.identifier, sealed: sealed)
      // Between changes no page is unused: SQLite's list of those, which nobody seals, could make a change write over
      // one that is used.
      try connection.execute("PRAGMA incremental_vacuum")
    }
  }
}

extension Vault {
  func headerRow() throws(VaultError) -> (key: [UInt8], sealed: [UInt8])? {
    try query { connection throws(SQLiteError) in
      let statement = try connection.prepare("SELECT key,sealed FROM header")
      return try statement.step() ? (try statement.bytes(0), try statement.bytes(1)) : nil
    }
  }

  func bucketRow(_ number: UInt8) throws(VaultError) -> [UInt8]? {
    try query { connection throws(SQLiteError) in
      let statement = try connection.prepare("SELECT sealed FROM bucket WHERE number=?1")
      try statement.bind(Int64(number), at: 1)
      return try statement.step() ? try statement.bytes(0) : nil
    }
  }
}

extension Connection {
  /// Whether SQLite finds that the parts of the file fit together.
  func isSound() throws(SQLiteError) -> Bool {
    let statement = try prepare("PRAGMA integrity_check(1)")
    return try statement.step() ? try statement.text(0) == "ok" : false
  }

  func insert(_ row: SealedRecord) throws(SQLiteError) {
    let statement = try prepare(
      "INSERT OR REPLACE INTO record(lookup,kind,grouping,revision,sealed)VALUES(?1,?2,?3,?4,?5)")
    try statement.bind(row.lookup, at: 1)
    try statement.bind(row.kind, at: 2)
    try statement.bind(row.grouping, at: 3)
    try statement.bind(row.revision, at: 4)
    try statement.bind(row.sealed, at: 5)
    try statement.run()
  }

  func insert(bucket number: Int64, _ sealed: [UInt8]) throws(SQLiteError) {
    let statement = try prepare("INSERT OR REPLACE INTO bucket(number,sealed)VALUES(?1,?2)")
    try statement.bind(number, at: 1)
    try statement.bind(sealed, at: 2)
    try statement.run()
  }
}
