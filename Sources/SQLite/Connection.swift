import CSQLite

/// A connection to one database file. Not thread-safe.
///
/// A connection trusts nothing in the file's schema, and overwrites deleted content with zeros.
@safe package final class Connection {
  package enum Access: Sendable {
    case readOnly
    case readWrite
    case memory
  }

  let database: OpaquePointer

  /// SQLite reads nothing yet: a file that is not a database is found out by the first statement.
  ///
  /// - Parameter busyTimeout: the milliseconds to wait for other processes.
  package init(path: String, _ access: Access, busyTimeout: Int32) throws(SQLiteError) {
    let flags =
      switch access {
      case .readOnly: SQLITE_OPEN_READONLY
      case .readWrite: SQLITE_OPEN_READWRITE
      case .memory: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY
      }
    var pointer: OpaquePointer?
    let status = unsafe sqlite3_open_v2(
      Self.name(path), &pointer, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
    // sqlite3_open_v2: "Whether or not an error occurs when it is opened, resources associated with the
    // database connection handle should be released by passing it to sqlite3_close() when it is no longer
    // required."
    guard status == SQLITE_OK, let opened = unsafe pointer else {
      unsafe sqlite3_close_v2(pointer)
      throw .failed(code: status & 0xff, extended: status, during: .open)
    }
    unsafe database = unsafe opened
    unsafe sqlite3_busy_timeout(opened, busyTimeout)
    for (option, value) in Self.configuration {
      unsafe csqlite_configure(opened, option, value)
    }
  }

  /// A database in memory that has the content of a file.
  package convenience init(image: [UInt8]) throws(SQLiteError) {
    try self.init(path: "", .memory, busyTimeout: 0)
    guard let copy = unsafe sqlite3_malloc64(UInt64(image.count)) else {
      throw .failed(code: SQLITE_NOMEM, extended: SQLITE_NOMEM, during: .open)
    }
    unsafe copy.copyMemory(from: image, byteCount: image.count)
    // sqlite3_deserialize: with SQLITE_DESERIALIZE_FREEONCLOSE the memory is SQLite's, also after a failure.
    let status = unsafe sqlite3_deserialize(
      database, "main", copy.assumingMemoryBound(to: UInt8.self), Int64(image.count), Int64(image.count),
      UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE))
    guard status == SQLITE_OK else { throw error(status, during: .open) }
  }

  deinit { unsafe sqlite3_close_v2(database) }

  /// Makes the library take little time and memory, for a process that opens one database and ends. Call it before the
  /// first connection.
  package static func configureForOneShotUse() { csqlite_configure_for_one_shot_use() }

  /// Some builds of SQLite take a name that begins with `file:` for a URI with parameters.
  private static func name(_ path: String) -> String {
    path.hasPrefix("/") ? path : "./" + path
  }

  /// A file that somebody altered cannot make SQLite run functions from its schema.
  private static let configuration: [(Int32, Int32)] = [
    (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    (SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    (SQLITE_DBCONFIG_DEFENSIVE, 1),
  ]

  package func execute(_ sql: String) throws(SQLiteError) {
    let status = unsafe sqlite3_exec(database, sql, nil, nil, nil)
    guard status == SQLITE_OK else { throw error(status, during: .step) }
  }

  package func prepare(_ sql: String) throws(SQLiteError) -> Statement {
    var pointer: OpaquePointer?
    let status = unsafe sqlite3_prepare_v2(database, sql, -1, &pointer, nil)
    guard status == SQLITE_OK, let pointer = unsafe pointer else {
      throw error(status, during: .prepare)
    }
    return unsafe Statement(pointer, self)
  }

  /// The integer in the only row.
  package func integer(_ sql: String) throws(SQLiteError) -> Int64 {
    let statement = try prepare(sql)
    guard try statement.step() else { throw .unexpectedType(column: 0) }
    return try statement.integer(0)
  }

  package var isInTransaction: Bool { unsafe sqlite3_get_autocommit(database) == 0 }

  package var changes: Int { Int(unsafe sqlite3_changes64(database)) }

  /// `nil` for a database in memory.
  package var fileSize: Int64? {
    let size = unsafe csqlite_file_size(database)
    return size < 0 ? nil : size
  }

  /// The first 100 bytes of the file, read without a lock and without SQL; missing bytes are zero.
  package func fileHeader() throws(SQLiteError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 100)
    let status = unsafe csqlite_read(database, &bytes, Int32(bytes.count), 0)
    // sqlite3_io_methods: "If xRead() returns SQLITE_IOERR_SHORT_READ it must also fill in the unread
    // portions of the buffer with zeros."
    guard status == SQLITE_OK || status == SQLITE_IOERR | (2 << 8) else {
      throw error(status, during: .open)
    }
    return bytes
  }

  /// As the library writes it into each file that it changes.
  package static var libraryVersion: Int64 { Int64(sqlite3_libversion_number()) }

  /// The bytes of the database file, as the open transaction sees them.
  package func serialize() throws(SQLiteError) -> [UInt8] {
    var count: Int64 = 0
    guard let bytes = unsafe sqlite3_serialize(database, "main", &count, 0) else {
      throw .failed(code: SQLITE_NOMEM, extended: SQLITE_NOMEM, during: .serialize)
    }
    defer { unsafe sqlite3_free(bytes) }
    return unsafe Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
  }

  func error(_ status: Int32, during operation: SQLiteError.Operation) -> SQLiteError {
    .failed(code: status & 0xff, extended: status, during: operation)
  }
}

extension SQLiteError {
  static func condition(_ code: Int32, _ extended: Int32) -> Condition {
    switch code {
    case SQLITE_BUSY, SQLITE_LOCKED: .busy
    case SQLITE_FULL: .full
    case SQLITE_READONLY: extended == SQLITE_READONLY | (3 << 8) ? .needsRecovery : .readOnly
    case SQLITE_PERM: .readOnly
    case SQLITE_CANTOPEN: .cannotOpen
    case SQLITE_CORRUPT: .corrupt
    case SQLITE_NOTADB: .notADatabase
    case SQLITE_IOERR: .inputOutput
    case SQLITE_NOMEM: .outOfMemory
    default: .other
    }
  }
}
