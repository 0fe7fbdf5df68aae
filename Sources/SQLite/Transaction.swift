/// What a transaction locks at its beginning.
package enum TransactionKind: Sendable {
  case deferred  // Nothing that hinders a writer before it commits.
  case immediate  // The place of the only writer: nothing that is read changes before the writing.
}

extension Connection {
  /// The transaction is undone if the body throws. `confirm` is called when the change is made, but may not survive a
  /// power cut: the folder of the journal could not be synchronized. Other errors mean that nothing changed.
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

  /// If the rollback fails, the journal stays and the next connection undoes the change.
  private func rollBack() {
    guard isInTransaction else { return }
    try? execute("ROLLBACK")
  }
}
