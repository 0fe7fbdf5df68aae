import CredmgrCryptography
import CredmgrOAuth
import CredmgrStore

/// A login with the refresh token of another tool. The provider may have replaced that token with its answer, which is
/// then the only way to get further tokens.
extension Login {
  /// Returns the account that another process made with the refresh token. Throws if the token may be for another
  /// account that has to stay. `before` are the accounts from the start of this login.
  func imported(_ token: Secret, since before: [Account]) throws(CredentialError) -> Account? {
    // Another import may have taken the client away again, or added its own. Only the token's client may send it.
    let own = options.clientIdentifier ?? client.identifier
    let now = try accounts.registration(of: provider)
    guard client.identifier == own, now?.clientIdentifier == own,
      options.clientSecret.map({ $0 == client.secret && $0 == now?.clientSecret }) ?? true
    else {
      throw .notAdded(provider: provider, ClientNeeds(client.descriptor))
    }
    let all = try accounts.accounts(of: provider)
    if let account = all.first(where: { $0.credential.importedFrom == token }) { return account }
    // Only a refresh would tell whose token it is, and many providers invalidate the token at a refresh.
    let isFree = options.replaces && options.keeps.isEmpty && !all.contains { $0.isNew(since: before) }
    if isFree || all.isEmpty { return nil }
    throw .alreadyThere(all.map { RecordIdentifier(.credential, of: $0.id) }, files: [])
  }

  /// Stores the answer to an interrupted import as an account of its own. Returns its name, or `nil` without an answer.
  func finishImport(_ note: ExchangeNote?, in locked: borrowing LockedAccount) throws(CredentialError) -> String? {
    guard let note, let kept = accounts.unfinishedLogin(note, locked.id), let token = kept.importedFrom,
      client.made(kept)
    else { return nil }
    if !isCurrent(kept) { throw .providerChanged(provider) }
    var wish = LoginOptions()
    (wish.refreshToken, wish.account, wish.replaces) = (token, locked.id.name, false)
    (wish.grant, wish.scope, wish.variables) = (kept.grant, kept.requestedScope, kept.variables)
    let account = try Login(source, to: provider, wish).commit(
      kept, in: locked.resume(), since: kept.loggedInAt, nil)
    source.notice(.importFinished(provider: provider, account: account.name))
    return account.name
  }

  /// Whether an account has to stay beside that of an imported token.
  func isKept(_ account: Account, besides owner: Owner, of credential: Credential) -> Bool {
    if !options.replaces || options.keeps.contains(account.name) { return true }
    guard let known = account.credential.ownIdentity, !isUser(account, owner, of: credential) else { return false }
    return owner.name.map { $0 != known } ?? false || isAnotherUser(account, than: owner, of: credential)
  }
}

extension Account {
  /// Whether a login made the account or replaced its credential since then.
  func isNew(since before: [Account]) -> Bool {
    before.first { $0.name == name }?.credential.loggedInAt != credential.loggedInAt
  }
}
