import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrPlatform
import CredmgrStore

/// Answers another program's request with an account's token or a stored login, in any protocol.
struct HelperSession {
  let helper: any HelperProtocol
  let context: Context

  /// Answers from the vault, and leaves every other case to `credmgr-online`.
  func answer() throws(CommandError) {
    var missing: CredentialError?
    var choice: AccountChoice?
    guard let answer = try answer(&choice, orWhy: &missing) else { throw .handOver(input: nil) }
    try context.output(answer)
  }

  func answer(
    _ choice: inout AccountChoice?, orWhy missing: inout CredentialError?
  ) throws(CommandError) -> String? {
    if helper.prefersLogins, let login = try login() { return try text(login) }
    if let provider = helper.provider {
      choice = try helper.choice(provider, context)
      var account: Account?
      do throws(CredentialError) {
        try rejectRefused()
        account = try helper.freshAccount(choice?.name, of: provider, context)
      } catch {
        switch error {
        case .loginNeeded, .unknownAccount: missing = error
        default: throw CommandError(error)
        }
      }
      if let account { return try text(account) }
    }
    return helper.prefersLogins || !mayBeStored(missing) ? nil : try login().map(text)
  }

  /// Whether a stored login may answer the request. It may not if the request names an account without a token, because
  /// the login may be another user's.
  private func mayBeStored(_ missing: CredentialError?) -> Bool {
    switch missing {
    case nil, .loginNeeded(_, _, .noCredential): true
    default: helper.logins?.username != nil
    }
  }

  func answer(_ account: Account) throws(CommandError) { try context.output(text(account)) }

  private func text(_ account: Account) throws(CommandError) -> String {
    let answer = try helper.answer(account, context)
    try context.noteHandOut(account, to: helper.recipient)
    return answer
  }

  private func text(_ login: HostLogin) throws(CommandError) -> String {
    try context.leaveNotices()
    context.source.noteHandOut(helper.logins?.origin ?? "", login.username ?? "", to: helper.recipient)
    return try helper.answer(login)
  }

  private func login() throws(CommandError) -> HostLogin? {
    guard let pattern = helper.logins else { return nil }
    return try manager(context.source.hostLogin(pattern))
  }

  /// If a program asks again within one request, the server refused the earlier token.
  private func rejectRefused() throws(CredentialError) {
    guard let refused = helper.refused, helper.providers.contains(refused.provider),
      let account = try context.source.accountsIfAny()?.account(AccountID(refused.provider, refused.account)),
      account.revision == refused.revision, !account.credential.isRejected
    else { return }
    try context.source.reject(account.credential.accessToken, account: account.name, of: account.provider)
  }

  /// Stores a login; with `isOnly`, removes all other logins of the host.
  func store(_ login: HostLogin, isOnly: Bool) throws(CommandError) {
    guard let origin = helper.logins?.origin else { return }
    var accounts: [Account] = []
    for provider in helper.providers {
      accounts += try manager(context.source.accountsIfAny()?.accounts(of: provider) ?? [])
    }
    if !accounts.isEmpty, helper.isOurs(login, accounts) { return }
    try manager(context.source.store(login, for: origin, isOnly: isOnly))
  }

  /// Erases logins and marks a token as refused; `password` is `nil` if the program names none.
  func erase(_ password: Secret?) throws(CommandError) {
    if let password, try manager(context.source.accountsIfAny()) != nil {
      for provider in helper.providers where helper.refused.map({ $0.provider == provider }) ?? true {
        try manager(context.source.reject(password, account: helper.refused?.account, of: provider))
      }
    }
    guard var pattern = helper.logins else { return }
    pattern.password = password
    pattern.takesSchemes = true
    try manager(context.source.eraseHostLogins(pattern))
  }
}

extension Context {
  /// Runs an operation on standard input. `credmgr-online` gets the same input, and so can explain each error.
  func withInput(_ operation: ([UInt8]) throws(CommandError) -> Void) throws(CommandError) {
    let limit = 1 << 20
    let input: [UInt8]
    do throws(POSIXError) { input = try File.readStandardInput(limit: limit) } catch {
      guard case .tooLarge = error else { throw CommandError(error) }
      // The other program says the same of any input of this length.
      if online == nil { throw .handOver(input: [UInt8](repeating: 0, count: limit + 1)) }
      throw .usage("standard input is longer than 1 MiB")
    }
    do throws(CommandError) { try operation(input) } catch .ended(let status) { throw .ended(status) } catch {
      throw online == nil ? .handOver(input: input) : error
    }
  }
}
