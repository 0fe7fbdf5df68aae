import CredmgrCredentialManager

/// A request from another program in its own protocol: how to read it, answer it, and report a failure.
/// ``HelperSession`` does everything else.
protocol HelperProtocol {
  /// `nil` if no provider claims the host.
  var provider: String? { get }
  /// The providers that a refused or stored token may come from.
  var providers: [String] { get }
  /// The refused token, if the program reports it.
  var refused: GivenToken? { get }
  /// The stored logins that match; `nil` if the program stores none.
  var logins: HostLoginPattern? { get }
  /// Whether a stored login takes precedence over an account's token.
  var prefersLogins: Bool { get }
  /// The receiver's name in the log.
  var recipient: String { get }

  /// `nil` for the default account.
  func choice(_ provider: String, _ context: Context) throws(CommandError) -> AccountChoice?
  func freshAccount(_ name: String?, of provider: String, _ context: Context) throws(CredentialError) -> Account
  /// Whether a login to store is an account's token, which only its provider may change.
  func isOurs(_ login: HostLogin, _ accounts: [Account]) -> Bool
  func answer(_ account: Account, _ context: Context) throws(CommandError) -> String
  func answer(_ login: HostLogin) throws(CommandError) -> String
}

/// A token returned to a program earlier.
struct GivenToken: Equatable {
  let provider: String
  let account: String
  let revision: Int64
  let isPassword: Bool  // If false, the program sends it as `Authorization: Bearer`.
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
}
