import CSQLite

/// A compiled statement. Not thread-safe.
///
/// Positions of parameters begin at 1 and those of columns at 0, as they do in SQLite. Another type than the requested
/// one is an error: nothing is converted.
@safe package struct Statement: ~Copyable {
  private let pointer: OpaquePointer
  /// sqlite3_close_v2 would wait for the statement; the connection must live for its error codes.
  private let connection: Connection

  init(_ pointer: OpaquePointer, _ connection: Connection) {
    unsafe self.pointer = unsafe pointer
    self.connection = connection
  }

  deinit { unsafe sqlite3_finalize(pointer) }

  /// `false` when there is no further row.
  package func step() throws(SQLiteError) -> Bool {
    switch unsafe sqlite3_step(pointer) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let status: throw connection.error(status, during: .step)
    }
  }

  package func run() throws(SQLiteError) {
    while try step() {}
  }

  /// The bound values stay.
  package func reset() {
    unsafe sqlite3_reset(pointer)
  }

  package func bind(_ value: Int64, at index: Int32) throws(SQLiteError) {
    try check(unsafe sqlite3_bind_int64(pointer, index, value))
  }

  package func bind(_ value: String, at index: Int32) throws(SQLiteError) {
    let text = value.utf8.map { CChar(bitPattern: $0) } + [0]
    try check(unsafe csqlite_bind_text(pointer, index, text, UInt64(text.count - 1)))
  }

  /// No bytes are an empty blob, not NULL.
  package func bind(_ value: [UInt8], at index: Int32) throws(SQLiteError) {
    guard !value.isEmpty else {
      try check(unsafe sqlite3_bind_zeroblob(pointer, index, 0))
      return
    }
    try check(unsafe csqlite_bind_blob(pointer, index, value, UInt64(value.count)))
  }

  package func integer(_ column: Int32) throws(SQLiteError) -> Int64 {
    try check(column, is: SQLITE_INTEGER)
    return unsafe sqlite3_column_int64(pointer, column)
  }

  package func text(_ column: Int32) throws(SQLiteError) -> String {
    try check(column, is: SQLITE_TEXT)
    guard let text = unsafe sqlite3_column_text(pointer, column) else {
      throw .unexpectedType(column: Int(column))
    }
    let count = Int(unsafe sqlite3_column_bytes(pointer, column))
    return unsafe String(decoding: UnsafeBufferPointer(start: text, count: count), as: UTF8.self)
  }

  package func bytes(_ column: Int32) throws(SQLiteError) -> [UInt8] {
    try check(column, is: SQLITE_BLOB)
    // sqlite3_column_blob: "The return value from sqlite3_column_blob() for a zero-length BLOB is a NULL
    // pointer."
    guard let blob = unsafe sqlite3_column_blob(pointer, column) else { return [] }
    let count = Int(unsafe sqlite3_column_bytes(pointer, column))
    return unsafe Array(UnsafeRawBufferPointer(start: blob, count: count))
  }

  private func check(_ column: Int32, is type: Int32) throws(SQLiteError) {
    guard unsafe sqlite3_column_type(pointer, column) == type
    else { throw .unexpectedType(column: Int(column)) }
  }

  private func check(_ status: Int32) throws(SQLiteError) {
    guard status == SQLITE_OK else { throw connection.error(status, during: .bind) }
  }
}
