import CredmgrCredentialManager

/// A helper that can refuse a request or log in. Only `credmgr-online` does that.
protocol RefusingHelper: HelperProtocol {
  /// Reports an error in the program's protocol; returns the error.
  static func ending(_ error: CommandError, _ context: Context) throws(CommandError) -> CommandError
  /// Refuses the request; `error` is `nil` if no provider has the host.
  func refuse(_ error: CredentialError?, _ choice: AccountChoice?, in session: HelperSession) throws(CommandError)
}

extension RefusingHelper {
  static func ending(_ error: CommandError, _ context: Context) throws(CommandError) -> CommandError { error }

  func refuse(
    _ error: CredentialError?, _ choice: AccountChoice?, in session: HelperSession
  ) throws(CommandError) {
    if let error { throw CommandError(error) }
  }
}

extension RefusingHelper {
  /// Answers, logs in or refuses.
  func get(_ context: Context) throws(CommandError) {
    let session = HelperSession(helper: self, context: context)
    var missing: CredentialError?
    var choice: AccountChoice?
    do throws(CommandError) {
      if let answer = try session.answer(&choice, orWhy: &missing) { return try context.output(answer) }
    } catch { throw try Self.ending(error, context) }
    try refuse(missing, choice, in: session)
  }
}
