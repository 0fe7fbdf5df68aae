import OAuth

/// Which account of a provider is meant where a command runs, and why.
package struct AccountChoice: Sendable, Equatable {
  /// What decided.
  package enum Reason: Sendable, Equatable {
    /// The option `--account`.
    case option
    /// The user name that git passes, or that stands in a URL.
    case username
    /// The variable `CREDMGR_ACCOUNT`.
    case environment
    /// A rule of the configuration.
    case rule(AccountRule)
    /// It is the provider's default account.
    case selected
    /// The provider has no other.
    case only
  }

  /// The account's name.
  package let name: String
  /// What decided.
  package let reason: Reason

  /// A choice.
  package init(_ name: String, _ reason: Reason) {
    self.name = name
    self.reason = reason
  }
}

extension CredentialSource {
  /// The first rule of the configuration that matches.
  ///
  /// - Parameters:
  ///   - remotes: what is worked with; asked only where a rule needs it.
  ///   - folders: where the work is; asked only where a rule needs it.
  /// - Throws: `CredentialError.malformedRules`, `.system`.
  package func rule(
    for provider: String, remotes: () -> [RemoteAddress], folders: () -> [String]
  ) throws(CredentialError) -> AccountRule? {
    try accountRules().first(for: provider, remotes: remotes, folders: folders)
  }

  /// The rules of the configuration. One look at a file that is not there is what they cost who has none.
  ///
  /// - Throws: `CredentialError.malformedRules`, `.system`.
  package func accountRules() throws(CredentialError) -> AccountRules {
    try AccountRules(path: home.accountRules, home: home.person)
  }

  /// What is taken where nothing else decides.
  ///
  /// - Throws: `CredentialError.loginNeeded`, `.ambiguousAccount`, `.vault`.
  package func standardChoice(of provider: String) throws(CredentialError) -> AccountChoice {
    guard let accounts = try accountsIfAny() else {
      throw .loginNeeded(provider: provider, account: nil, .noCredential)
    }
    let account = try accounts.resolve(nil, provider: provider)
    return AccountChoice(account.name, try accounts.selected(for: provider) == account.name ? .selected : .only)
  }
}
