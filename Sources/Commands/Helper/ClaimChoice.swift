import CredentialManager
import HTTP
import Store

extension Context {
  /// Which of the providers with a host is meant: the one that has the user name as an account, or the account that
  /// `CREDMGR_ACCOUNT` names; the one of the first rule that matches; the first with an account; the first.
  func claim(
    among claims: [HostClaim], username: String? = nil, remotes: (() -> [RemoteAddress])? = nil
  ) throws(CommandError) -> HostClaim? {
    guard claims.count > 1, let accounts = try manager(source.accountsIfAny()) else { return claims.first }
    func first(
      where isMeant: (HostClaim) throws(CredentialError) -> Bool
    ) throws(CommandError) -> HostClaim? {
      for claim in claims where try manager(isMeant(claim)) { return claim }
      return nil
    }
    if let username, !username.isEmpty,
      let named = try first(where: { claim throws(CredentialError) in
        if username == claim.username || claim.ignoresUsername { return false }
        return try accounts.name(forUsername: username, of: claim.provider) != nil
      })
    {
      return named
    }
    let named = try first { claim throws(CredentialError) in
      guard let name = environmentAccount(of: claim.provider) else { return false }
      return try accounts.account(AccountID(claim.provider, name)) != nil
    }
    if let named { return named }
    let repository = RepositoryContext(environment: environment)
    let rule = try manager(source.accountRules()).first(
      for: claims.map(\.provider), remotes: remotes ?? repository.remotes, folders: repository.folders)
    if let rule { return claims.first { $0.provider == rule.provider } }
    return try first { claim throws(CredentialError) in !(try accounts.accounts(of: claim.provider).isEmpty) }
      ?? claims.first
  }
}
