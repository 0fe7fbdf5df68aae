import CSQLite

/// A failure of SQLite. It holds no SQL text, no bound value and no content of a row.
package enum SQLiteError: Error, Equatable, Sendable {
  case failed(code: Int32)  // The extended result code (sqlite.org/rescode.html).
  /// A column does not hold a value of the type that it must have: the file was altered.
  case unexpectedType(column: Int32)

  package enum Condition: Sendable {
    case busy
    case full
    case readOnly  // Or a writer died half-way, and a connection that may only read cannot undo that.
    case cannotOpen
    case corrupt
    case notADatabase
    case inputOutput  // The disk failed, or a limit of the process.
    case outOfMemory
    case other  // The SQL does not fit the file's schema, or this module was used wrongly.
  }

  /// 0 for what SQLite does not take for an error.
  package var extendedCode: Int32 { if case .failed(let code) = self { code } else { 0 } }

  /// Whether a `COMMIT` that failed with this has made the change: only the folder from which the journal was removed
  /// is not known to be on the disk (`SQLITE_IOERR_DIR_FSYNC`).
  var isBehindCommit: Bool { extendedCode == SQLITE_IOERR | (5 << 8) }

  package var condition: Condition {
    guard case .failed(let code) = self else { return .corrupt }
    return switch code & 0xff {
    case SQLITE_BUSY, SQLITE_LOCKED: .busy
    case SQLITE_FULL: .full
    case SQLITE_READONLY, SQLITE_PERM: .readOnly
    case SQLITE_CANTOPEN: .cannotOpen
    case SQLITE_CORRUPT: .corrupt
    case SQLITE_NOTADB: .notADatabase
    case SQLITE_IOERR: .inputOutput
    case SQLITE_NOMEM: .outOfMemory
    default: .other
    }
  }
}
