import CSQLite

/// A failure of SQLite. It holds no SQL text, no bound value and no content of a row.
package enum SQLiteError: Error, Equatable, Sendable {
  /// The primary and the extended result code (sqlite.org/rescode.html).
  case failed(code: Int32, extended: Int32, during: Operation)
  /// A column does not hold a value of the type that it must have: the file was altered.
  case unexpectedType(column: Int)

  package enum Operation: Equatable, Sendable {
    case open
    case prepare
    case bind
    case step
    case serialize
  }

  package enum Condition: Sendable {
    case busy
    case full
    case readOnly
    /// A writer died half-way, and a connection that may only read cannot undo that.
    case needsRecovery
    case cannotOpen
    case corrupt
    case notADatabase
    /// The disk failed, or a limit of the process.
    case inputOutput
    case outOfMemory
    /// The SQL does not fit the file's schema, or this module was used wrongly.
    case other
  }

  /// 0 for what SQLite does not take for an error.
  package var extendedCode: Int32 {
    switch self {
    case .unexpectedType: 0
    case .failed(_, let extended, _): extended
    }
  }

  /// Whether a `COMMIT` that failed with this has made the change: only the folder from which the journal was removed
  /// is not known to be on the disk (`SQLITE_IOERR_DIR_FSYNC`).
  var isBehindCommit: Bool { extendedCode == SQLITE_IOERR | (5 << 8) }

  package var condition: Condition {
    switch self {
    case .unexpectedType: .corrupt
    case .failed(let code, let extended, _): Self.condition(code, extended)
    }
  }
}
