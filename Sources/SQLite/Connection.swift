import CredmgrCSQLite

/// A connection to one database file that trusts nothing in the file's schema. Not thread-safe.
@safe package final class Connection {
  package enum Access: Sendable {
    case readWrite
    case memory
  }

  let database: OpaquePointer

  /// Opens a file without reading it: only the first statement fails if the file is not a database. SQLite waits for
  /// `busyTimeout` in whole milliseconds.
  package init(path: String, _ access: Access, busyTimeout: Duration) throws(SQLiteError) {
    let flags = SQLITE_OPEN_READWRITE | (access == .memory ? SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY : 0)
    var pointer: OpaquePointer?
    // Some builds of SQLite interpret a name that begins with `file:` as a URI with parameters.
    let name = path.hasPrefix("/") ? path : "./" + path
    let status = unsafe sqlite3_open_v2(name, &pointer, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
    // sqlite3_open_v2: the handle must be closed even after an error.
    guard status == SQLITE_OK, let opened = unsafe pointer else {
      unsafe sqlite3_close_v2(pointer)
      throw .failed(code: status)
    }
    unsafe database = unsafe opened
    let (seconds, attoseconds) = busyTimeout.components
    unsafe sqlite3_busy_timeout(opened, Int32(clamping: seconds * 1000 + attoseconds / 1_000_000_000_000_000))
    for (option, value) in Self.configuration { unsafe csqlite_configure(opened, option, value) }
  }

  package convenience init(image: [UInt8]) throws(SQLiteError) {
    try self.init(path: "", .memory, busyTimeout: .zero)
    guard let copy = unsafe sqlite3_malloc64(UInt64(image.count)) else { throw .failed(code: SQLITE_NOMEM) }
    unsafe copy.copyMemory(from: image, byteCount: image.count)
    // sqlite3_deserialize: with SQLITE_DESERIALIZE_FREEONCLOSE SQLite owns the memory, even after a failure.
    try Self.check(
      unsafe sqlite3_deserialize(
        database, "main", copy.assumingMemoryBound(to: UInt8.self), Int64(image.count), Int64(image.count),
        UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE)))
  }

  deinit { unsafe sqlite3_close_v2(database) }

  /// Configures SQLite for a process that opens one database and ends; call it before the first connection.
  package static func configureForOneShotUse() { csqlite_configure_for_one_shot_use() }

  /// Options that stop a modified file from running functions in its schema.
  private static let configuration: [(Int32, Int32)] = [
    (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0), (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0), (SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    (SQLITE_DBCONFIG_DEFENSIVE, 1),
  ]

  static func check(_ status: Int32) throws(SQLiteError) {
    guard status == SQLITE_OK else { throw .failed(code: status) }
  }

  package func execute(_ sql: String) throws(SQLiteError) {
    try Self.check(unsafe sqlite3_exec(database, sql, nil, nil, nil))
  }

  package func prepare(_ sql: String) throws(SQLiteError) -> Statement {
    var pointer: OpaquePointer?
    try Self.check(unsafe sqlite3_prepare_v2(database, sql, -1, &pointer, nil))
    // An empty text compiles to nothing.
    guard let pointer = unsafe pointer else { throw .failed(code: SQLITE_MISUSE) }
    return unsafe Statement(pointer, self)
  }

  /// Runs one statement that returns no rows.
  package func run(_ sql: String, _ values: [SQLValue]) throws(SQLiteError) {
    let statement = try prepare(sql)
    try statement.bind(values)
    while try statement.step() {}
  }

  package func rows<Row>(
    _ sql: String, _ values: [SQLValue] = [], as read: (borrowing Statement) throws(SQLiteError) -> Row
  ) throws(SQLiteError) -> [Row] {
    let statement = try prepare(sql)
    try statement.bind(values)
    var rows: [Row] = []
    while try statement.step() { rows.append(try read(statement)) }
    return rows
  }

  /// The integer in the only row of the result.
  package func integer(_ sql: String) throws(SQLiteError) -> Int64 {
    let statement = try prepare(sql)
    guard try statement.step() else { throw .unexpectedType(column: 0) }
    return try statement.integer(0)
  }

  package var isInTransaction: Bool { unsafe sqlite3_get_autocommit(database) == 0 }

  /// The size in bytes, or `nil` for a database in memory.
  package var fileSize: Int64? {
    let size = unsafe csqlite_file_size(database)
    return size < 0 ? nil : size
  }

  /// The first 100 bytes of the file, read without a lock and without SQL; missing bytes are zero.
  package func fileHeader() throws(SQLiteError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 100)
    let status = unsafe csqlite_read(database, &bytes, Int32(bytes.count), 0)
    // sqlite3_io_methods: after SQLITE_IOERR_SHORT_READ the missing bytes are zero.
    if status != SQLITE_IOERR | (2 << 8) { try Self.check(status) }
    return bytes
  }

  /// The version that the library writes into each file it changes.
  package static var libraryVersion: Int64 { Int64(sqlite3_libversion_number()) }

  /// The bytes of the database file as the open transaction sees them.
  package func serialize() throws(SQLiteError) -> [UInt8] {
    var count: Int64 = 0
    guard let bytes = unsafe sqlite3_serialize(database, "main", &count, 0) else { throw .failed(code: SQLITE_NOMEM) }
    defer { unsafe sqlite3_free(bytes) }
    return unsafe Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
  }
}
