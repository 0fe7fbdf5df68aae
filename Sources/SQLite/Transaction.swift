/// What a transaction locks at its beginning.
package enum TransactionKind: Sendable {
  /// Nothing that hinders a writer before it commits.
  case deferred
  /// The place of the only writer: nothing that is read changes before the writing.
  case immediate
}

extension Connection {
  /// Runs the body in a transaction, which is undone if the body throws.
  ///
  /// - Parameter confirm: called when the change is made and seen by everybody, but may not survive a power cut: the
  /// journal is removed, and the folder could not be synchronized. Throws if that cannot be done, either. Without an
  /// error of `confirm` an error means that nothing is changed.
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

  /// Some errors have rolled back already (sqlite.org/lang_transaction.html, section 3.1). If the rollback
  /// fails, the journal stays and the next connection undoes the change.
  private func rollBack() {
    guard isInTransaction else { return }
    try? execute("ROLLBACK")
  }
}
