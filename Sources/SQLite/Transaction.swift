/// The lock that a transaction takes when it begins.
package enum TransactionKind: Sendable {
  case deferred  // A lock that hinders no writer until the commit.
  case immediate  // The lock of the only writer: nothing changes between reading and writing.
}

extension Connection {
  /// Runs the body in a transaction and undoes it if the body throws. `confirm` is called if the change was made but
  /// may not survive a power cut, because the journal's directory could not be synced. Other errors mean that nothing
  /// changed.
  package func transaction<Result, Failure: Error>(
    _ kind: TransactionKind, convert: (SQLiteError) -> Failure, confirm: (() throws(Failure) -> Void)? = nil,
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    do throws(SQLiteError) {
      try execute(kind == .immediate ? "BEGIN IMMEDIATE" : "BEGIN")
    } catch {
      throw convert(error)
    }
    do throws(Failure) {
      let result = try body()
      do throws(SQLiteError) {
        try execute("COMMIT")
      } catch {
        guard let confirm, error.isBehindCommit else { throw convert(error) }
        try confirm()
      }
      return result
    } catch {
      rollBack()
      throw error
    }
  }

  /// Undoes the change; if the rollback fails, the journal stays and the next connection undoes it.
  private func rollBack() {
    guard isInTransaction else { return }
    try? execute("ROLLBACK")
  }
}
