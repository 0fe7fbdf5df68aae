import CredmgrCSQLite

package enum SQLValue {
  case integer(Int64)
  case blob([UInt8])
}

/// A compiled statement that converts nothing: a column of another type is an error. Not thread-safe.
@safe package struct Statement: ~Copyable {
  private let pointer: OpaquePointer
  private let connection: Connection  // Keeps the connection open: a closed one runs no statement.

  init(_ pointer: OpaquePointer, _ connection: Connection) {
    unsafe self.pointer = unsafe pointer
    self.connection = connection
  }

  deinit { unsafe sqlite3_finalize(pointer) }

  /// Runs the statement up to the next row; returns `false` at the end.
  package func step() throws(SQLiteError) -> Bool {
    switch unsafe sqlite3_step(pointer) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let status: throw .failed(code: status)
    }
  }

  /// Prepares the statement to run again with the same values.
  package func reset() { unsafe sqlite3_reset(pointer) }

  /// Binds the parameters, beginning with the first.
  package func bind(_ values: [SQLValue]) throws(SQLiteError) {
    for (value, index) in zip(values, Int32(1)...) {
      let status =
        switch value {
        case .integer(let number): unsafe sqlite3_bind_int64(pointer, index, number)
        // The pointer to an empty array would be NULL.
        case .blob([]): unsafe sqlite3_bind_zeroblob(pointer, index, 0)
        case .blob(let bytes): unsafe csqlite_bind_blob(pointer, index, bytes, UInt64(bytes.count))
        }
      try Connection.check(status)
    }
  }

  package func integer(_ column: Int32) throws(SQLiteError) -> Int64 {
    try check(column, is: SQLITE_INTEGER)
    return unsafe sqlite3_column_int64(pointer, column)
  }

  package func text(_ column: Int32) throws(SQLiteError) -> String {
    try check(column, is: SQLITE_TEXT)
    guard let text = unsafe sqlite3_column_text(pointer, column) else { throw .unexpectedType(column: column) }
    let count = Int(unsafe sqlite3_column_bytes(pointer, column))
    return unsafe String(decoding: UnsafeBufferPointer(start: text, count: count), as: UTF8.self)
  }

  package func bytes(_ column: Int32) throws(SQLiteError) -> [UInt8] {
    try check(column, is: SQLITE_BLOB)
    // sqlite3_column_blob returns NULL for an empty BLOB.
    guard let blob = unsafe sqlite3_column_blob(pointer, column) else { return [] }
    let count = Int(unsafe sqlite3_column_bytes(pointer, column))
    return unsafe Array(UnsafeRawBufferPointer(start: blob, count: count))
  }

  private func check(_ column: Int32, is type: Int32) throws(SQLiteError) {
    guard unsafe sqlite3_column_type(pointer, column) == type else { throw .unexpectedType(column: column) }
  }
}
