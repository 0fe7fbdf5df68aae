import CredentialManager

/// A question of another program for credentials, as its protocol has it: what is asked for, how an answer is written,
/// what happens where there is none. Everything between is shared (``HelperSession``).
protocol HelperProtocol {
  /// `nil` where the token is nobody's.
  var provider: String? { get }
  /// Those that a refused token, or one that is to be stored, may be from.
  var providers: [String] { get }
  /// What the program was given before and was refused, where it says so.
  var refused: GivenToken? { get }
  /// Which stored logins are meant; `nil` for a program that stores none.
  var logins: HostLoginPattern? { get }
  /// Whether a stored login goes before an account's token.
  var prefersLogins: Bool { get }
  /// As the log names it.
  var recipient: String { get }

  /// `nil` for the default account.
  func choice(_ provider: String, _ context: Context) throws(CommandError) -> AccountChoice?
  func freshAccount(_ name: String?, of provider: String, _ context: Context) throws(CredentialError) -> Account
  /// Whether a login that is to be stored is what an account got from its provider, which only the provider changes.
  func isOurs(_ login: HostLogin, _ accounts: [Account]) -> Bool
  func answer(_ account: Account, _ context: Context) throws(CommandError) -> String
  func answer(_ login: HostLogin) throws(CommandError) -> String
  /// Tells the program that there is no answer because of an error, as its protocol has it; returns the error.
  static func ending(_ error: CommandError, _ context: Context) throws(CommandError) -> CommandError
  /// What is done where there is nothing to hand out; `error` is `nil` without a provider.
  func refuse(_ error: CredentialError?, _ choice: AccountChoice?, _ session: HelperSession<Self>) throws(CommandError)
}

/// A token that a program was given.
struct GivenToken: Equatable {
  let provider: String
  let account: String
  let revision: Int64
  let isPassword: Bool  // Otherwise it was given for `Authorization: Bearer`.
}

extension HelperProtocol {
  var providers: [String] { provider.map { [$0] } ?? [] }
  var refused: GivenToken? { nil }
  var logins: HostLoginPattern? { nil }
  var prefersLogins: Bool { false }

  func choice(_ provider: String, _ context: Context) throws(CommandError) -> AccountChoice? {
    try context.choice(nil, of: provider, remotes: RepositoryContext(environment: context.environment).remotes)
  }

  func isOurs(_ login: HostLogin, _ accounts: [Account]) -> Bool {
    accounts.contains { $0.credential.accessToken == login.password }
  }

  static func ending(_ error: CommandError, _ context: Context) throws(CommandError) -> CommandError { error }

  func refuse(
    _ error: CredentialError?, _ choice: AccountChoice?, _ session: HelperSession<Self>
  ) throws(CommandError) {
    if let error { throw CommandError(error) }
  }
}
