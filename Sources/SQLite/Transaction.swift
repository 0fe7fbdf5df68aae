/// What a transaction locks at its beginning.
public enum TransactionKind: Sendable {
  /// Nothing that hinders a writer before it commits: for reading.
  case deferred
  /// The place of the only writer, so that nothing which is read changes before the writing.
  case immediate
}

extension Connection {
  /// Runs the body in a transaction, which is undone if the body throws.
  ///
  /// - Parameter convert: makes an error of the caller's module out of one of this module.
  /// - Throws: what the body throws, or the failure of the beginning or of the commit. After a failed commit
  ///   nothing is   changed.
  public func transaction<Result, Failure: Error>(
    _ kind: TransactionKind,
    convert: (SQLiteError) -> Failure,
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
        throw convert(error)
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
