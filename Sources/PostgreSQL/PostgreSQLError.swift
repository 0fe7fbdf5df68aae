/// A failure of PostgreSQL. A text is the server's or the library's, and holds no password.
package enum PostgreSQLError: Error, Sendable, Equatable {
  case libraryMissing
  case badAddress
  case passwordInAddress
  case passwordNeeded
  case certificate(detail: String)
  /// No connection; nothing was sent.
  case unreachable(detail: String)
  /// The time ran out; the server may have run the statement.
  case silent
  /// The connection ended; the server may have run the statement.
  case lost(detail: String)
  /// The server refused the connection or the statement, which had no effect. `code` has five characters.
  case refused(code: String, detail: String)
  case interrupted
}
