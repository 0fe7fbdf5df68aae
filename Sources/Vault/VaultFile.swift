import CredmgrPlatform
import CredmgrSQLite
import CredmgrStore

/// The open file of a vault, which needs no key.
struct VaultFile {
  let location: VaultLocation
  let connection: Connection

  /// - Throws: `.absent` if the file does not exist.
  init(_ location: VaultLocation, busyTimeout: Duration = .seconds(20)) throws(VaultError) {
    do throws(POSIXError) {
      try PrivateFile.check(location.file)
    } catch .notFound {
      // A file in place of the directory is not the same as a missing vault.
      if let reason = PrivateFile.inPlaceOfDirectory(location.directory) { throw .file(reason) }
      throw .absent(path: location.file)
    } catch {
      throw .file(error)
    }
    // SQLite opens these files itself, and would wait for a pipe without limit.
    for suffix in ["-journal", "-wal", "-shm"] {
      do throws(POSIXError) {
        try PrivateFile.check(location.file + suffix)
      } catch .notFound {
        continue
      } catch {
        throw .file(error)
      }
    }
    try wrapping(VaultError.file, PrivateFile.checkDirectory(location.directory))
    self.location = location
    connection = try converting(path: location.file) { () throws(SQLiteError) in
      // Also for reading: a connection that only reads could not undo the journal of a killed writer, nor read past it.
      // SQLite falls back to reading if writing is not allowed.
      try Connection(path: location.file, .readWrite, busyTimeout: busyTimeout)
    }
    guard connection.fileSize != 0 else { throw .truncated(path: location.file) }
    try Format.check(
      fileHeader: try query { connection throws(SQLiteError) in try connection.fileHeader() }, path: path)
  }

  init(image: [UInt8], of location: VaultLocation) throws(VaultError) {
    guard !image.isEmpty else { throw .truncated(path: location.file) }
    let header = Array(image.prefix(100)) + Array(repeating: 0, count: max(0, 100 - image.count))
    try Format.check(fileHeader: header, path: location.file)
    guard image.count >= Int(Format.number(in: image, at: 28)) * Format.pageSize else {
      throw .truncated(path: location.file)
    }
    self.location = location
    connection = try converting(path: location.file) { () throws(SQLiteError) in try Connection(image: image) }
  }

  var path: String { location.file }

  func query<Result>(_ body: (Connection) throws(SQLiteError) -> Result) throws(VaultError) -> Result {
    do throws(SQLiteError) { return try body(connection) } catch { throw self.error(error) }
  }

  func error(_ error: SQLiteError) -> VaultError {
    VaultError(error, path: path, isTruncated: (try? excess()) ?? 0 < 0)
  }

  func execute(_ sql: String) throws(VaultError) {
    try query { connection throws(SQLiteError) in try connection.execute(sql) }
  }

  func run(_ sql: String, _ values: SQLValue...) throws(VaultError) {
    try query { connection throws(SQLiteError) in try connection.run(sql, values) }
  }

  func rows<Row>(
    _ sql: String, _ values: [SQLValue] = [], as read: (borrowing Statement) throws(SQLiteError) -> Row
  ) throws(VaultError) -> [Row] {
    try query { connection throws(SQLiteError) in try connection.rows(sql, values, as: read) }
  }

  func transaction<Result>(
    _ kind: TransactionKind, _ body: () throws(VaultError) -> Result
  ) throws(VaultError) -> Result {
    try connection.transaction(kind, convert: error, confirm: { () throws(VaultError) in try location.confirm() }, body)
  }

  func makeDurable() throws(VaultError) {
    // EXTRA also syncs the directory after removing the journal, so that commits are permanent
    // (sqlite.org/pragma.html#pragma_synchronous).
    try execute("PRAGMA synchronous=EXTRA;PRAGMA secure_delete=ON")
  }

  /// The bytes of the file beyond the size on its first page; negative if bytes are missing. Call this in a transaction
  /// after a read, which has undone the change of a killed process.
  func excess() throws(VaultError) -> Int64 {
    guard let size = connection.fileSize else { return 0 }
    let header = try query { connection throws(SQLiteError) in try connection.fileHeader() }
    return size - Int64(Format.number(in: header, at: 28)) * Int64(Format.pageSize)
  }

  /// Checks for a missing end, which SQLite would notice only later, possibly after a request to a provider.
  func checkLength() throws(VaultError) {
    if try excess() < 0 { throw .truncated(path: path) }
  }

  /// Makes sure that a change overwrites nothing; requires the lock of the only writer.
  ///
  /// A process killed after a commit that shortens the file leaves pages after the end. They are unused if everything
  /// before them is consistent; otherwise the number of pages on the first page was altered.
  func requireLength() throws(VaultError) {
    let excess = try excess()
    if excess < 0 { throw .truncated(path: path) }
    if excess > 0 { try requireSoundness() }
  }

  func requireSoundness() throws(VaultError) {
    let isSound = try query { connection throws(SQLiteError) in try connection.isSound() }
    guard isSound else { throw .damaged(path: path, .structure) }
  }

  func slots() throws(VaultError) -> [KeySlot] {
    try rows("SELECT number,kind,created,parameters,wrapped FROM slot ORDER BY number", as: KeySlot.init)
  }

  func slotsAndIdentifier() throws(VaultError) -> (slots: [KeySlot], identifier: [UInt8]) {
    try transaction(.deferred) { () throws(VaultError) in
      let slots = try slots()
      try checkLength()
      return (slots, try keyIdentifier())
    }
  }

  static let keySelection = "SELECT key FROM header"

  /// The identifier of the vault key, or an empty array without a header.
  func keyIdentifier() throws(VaultError) -> [UInt8] {
    try rows(Self.keySelection) { row throws(SQLiteError) in try row.bytes(0) }.first ?? []
  }

  func header() throws(VaultError) -> (key: [UInt8], sealed: [UInt8])? {
    try rows("SELECT key,sealed FROM header") { row throws(SQLiteError) in (try row.bytes(0), try row.bytes(1)) }.first
  }

  func bucket(_ number: UInt8) throws(VaultError) -> [UInt8]? {
    try rows("SELECT sealed FROM bucket WHERE number=?1", [.integer(Int64(number))]) { row throws(SQLiteError) in
      try row.bytes(0)
    }.first
  }

  func buckets() throws(VaultError) -> [(number: Int64, sealed: [UInt8])] {
    try query { connection throws(SQLiteError) in try connection.buckets() }
  }

  func insert(_ row: SealedRecord) throws(VaultError) {
    try run(
      "INSERT OR REPLACE INTO record(lookup,kind,grouping,revision,sealed)VALUES(?1,?2,?3,?4,?5)",
      .integer(row.lookup), .integer(row.kind), .integer(row.grouping), .integer(row.revision), .blob(row.sealed))
  }

  func insert(bucket number: Int64, _ sealed: [UInt8]) throws(VaultError) {
    try run("INSERT OR REPLACE INTO bucket(number,sealed)VALUES(?1,?2)", .integer(number), .blob(sealed))
  }

  func status() throws(VaultError) -> VaultStatus {
    try transaction(.deferred) { () throws(VaultError) in
      let slots = try slots()
      try checkLength()
      let count = try query { connection throws(SQLiteError) in
        try connection.integer(
          "SELECT count(*) FROM record WHERE kind NOT IN(\(RecordKind.event.rawValue),\(RecordKind.host.rawValue))")
      }
      return VaultStatus(
        path: path, formatVersion: Format.version,
        slots: slots.map { .init(kind: SlotKind(rawValue: $0.kind), created: $0.created) }, recordCount: Int(count))
    }
  }
}

extension Connection {
  /// Whether SQLite finds the parts of the file consistent.
  func isSound() throws(SQLiteError) -> Bool {
    try rows("PRAGMA integrity_check(1)") { row throws(SQLiteError) in try row.text(0) }.first == "ok"
  }

  func buckets() throws(SQLiteError) -> [(number: Int64, sealed: [UInt8])] {
    try rows("SELECT number,sealed FROM bucket") { row throws(SQLiteError) in (try row.integer(0), try row.bytes(1)) }
  }

  func insert(_ slot: KeySlot) throws(SQLiteError) {
    try run(
      "INSERT INTO slot(number,kind,created,parameters,wrapped)VALUES(?1,?2,?3,?4,?5)",
      [
        .integer(slot.number), .integer(slot.kind), .integer(slot.created.secondsSince1970), .blob(slot.parameters),
        .blob(slot.wrapped),
      ])
  }

  func replaceHeader(key: [UInt8], sealed: [UInt8]) throws(SQLiteError) {
    try run(
      "INSERT OR REPLACE INTO header(number,digest,key,sealed)VALUES(0,zeroblob(32),?1,?2)",
      [.blob(key), .blob(sealed)])
  }
}
