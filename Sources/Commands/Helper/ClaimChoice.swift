import CredmgrCredentialManager
import CredmgrHTTP
import CredmgrStore

extension Context {
  /// Returns the provider for a host that several claim. Tries in this order: an account with the user name; the only
  /// provider whose tokens are sent with this user name; an account with the name in `CREDMGR_ACCOUNT`; the first
  /// matching rule; the first provider with an account; the first provider.
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
        return try accounts.name(forUsername: username, of: claim) != nil
      })
    {
      return named
    }
    let fixed = claims.filter { $0.username == username }
    if fixed.count == 1, try !manager(accounts.accounts(of: fixed[0].provider)).isEmpty { return fixed[0] }
    for claim in claims {
      guard let name = try environmentAccount(of: claim.provider) else { continue }
      if try manager(accounts.account(AccountID(claim.provider, name))) != nil { return claim }
    }
    let repository = RepositoryContext(environment: environment)
    let rule = try manager(source.accountRules()).first(
      for: claims.map(\.provider), remotes: remotes ?? repository.remotes, folders: repository.folders)
    if let rule { return claims.first { $0.provider == rule.provider } }
    return try first { claim throws(CredentialError) in !(try accounts.accounts(of: claim.provider).isEmpty) }
      ?? claims.first
  }
}
