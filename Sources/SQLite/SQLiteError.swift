import CredmgrCSQLite

/// A failure of SQLite, without SQL text, bound values or the content of a row.
package enum SQLiteError: Error, Equatable, Sendable {
  case failed(code: Int32)  // The extended result code (sqlite.org/rescode.html).
  /// A column has a value of the wrong type because the file was modified.
  case unexpectedType(column: Int32)

  package enum Condition: Sendable {
    case busy
    case full
    case readOnly  // Also after a writer was killed: a connection that only reads cannot undo its change.
    case cannotOpen
    case corrupt
    case notADatabase
    case inputOutput  // The disk failed, or the process reached a limit.
    case outOfMemory
    case other  // The SQL does not fit the file's schema, or the caller misused this module.
  }

  /// The extended result code, or 0 if SQLite reported no error.
  package var extendedCode: Int32 { if case .failed(let code) = self { code } else { 0 } }

  /// Whether a `COMMIT` that failed with this error made the change: only the removal of the journal may not be on disk
  /// (`SQLITE_IOERR_DIR_FSYNC`).
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
