import CSQLite

/// A failure of SQLite. It holds no SQL text, no bound value and no content of a row.
package enum SQLiteError: Error, Equatable, Sendable {
  /// A call failed.
  ///
  /// - code: the primary result code (sqlite.org/rescode.html).
  /// - extended: the extended result code.
  /// - during: what was called.
  case failed(code: Int32, extended: Int32, during: Operation)
  /// A column does not hold a value of the type that it must have: the file was altered.
  case unexpectedType(column: Int)

  /// The calls that can fail.
  package enum Operation: Equatable, Sendable {
    /// Opening the file.
    case open
    /// Compiling a statement.
    case prepare
    /// Binding a value.
    case bind
    /// Running a statement.
    case step
    /// Copying the file into memory.
    case serialize
  }

  /// What can be done about it.
  package enum Condition: Sendable {
    /// Another process holds the file for longer than the time limit.
    case busy
    /// The disk or the quota is full.
    case full
    /// The file or its directory cannot be written.
    case readOnly
    /// A writer died half-way, and a connection that may only read cannot undo what it left.
    case needsRecovery
    /// The file or its journal cannot be opened.
    case cannotOpen
    /// The content of the file is not what SQLite writes.
    case corrupt
    /// The file is not a database.
    case notADatabase
    /// The system could not read or write: the disk, or a limit of the process.
    case inputOutput
    /// There is no memory.
    case outOfMemory
    /// The SQL does not fit the file's schema, or this module was used wrongly.
    case other
  }

  /// The extended result code; 0 for what SQLite does not take for an error.
  package var extendedCode: Int32 {
    switch self {
    case .unexpectedType: 0
    case .failed(_, let extended, _): extended
    }
  }

  /// Whether a `COMMIT` that failed with this has made the change: only the folder from which the journal was removed
  /// is not known to be on the disk (`SQLITE_IOERR_DIR_FSYNC`).
  var isBehindCommit: Bool { extendedCode == SQLITE_IOERR | (5 << 8) }

  /// What can be done about it.
  package var condition: Condition {
    switch self {
    case .unexpectedType: .corrupt
    case .failed(let code, let extended, _): Self.condition(code, extended)
    }
  }
}
