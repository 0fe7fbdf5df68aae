import Cryptography
import HTTP
import OAuth
import Platform
import Descriptors
import Vault

extension CredentialSource {
  /// Logs in, and keeps what comes back.
  ///
  /// One process at a time does so for a provider and account name; who waited gets what the first one got, and opens no
  /// browser of its own.
  ///
  /// - Returns: the account, whose credential is in the vault already.
  /// - Throws: `CredentialError`; nothing that was there before is changed then.
  public func login(_ provider: String, _ wish: LoginWish, user: any User) throws(CredentialError) -> Account {
    if let name = wish.account, !Accounts.isName(name) { throw .malformedAccount(name) }
    _ = try network()
    let client = try client(provider, variables: wish.variables)
    let grant = try grant(wish, client.descriptor.grants)
    // Before anything is asked of the provider: a token that cannot be kept is lost.
    let vault = try accounts(.readWrite)
    let probed = [Accounts.identifier(provider, wish.account ?? ""), Accounts.pending(provider, wish.account ?? "")]
    try inVault { () throws(VaultError) in try vault.vault.check(probed) }
    let before = try vault.accounts(of: provider)
    let started = clock.now()
    func isLater(_ account: Account) -> Bool {
      // A clock that was set back leaves moments behind that are still to come.
      if let asked = wish.askedAt, let finished = account.credential.loginFinishedAt {
        return (asked...max(asked, clock.milliseconds())).contains(finished)
      }
      return account.credential.loggedInAt >= started
        && !before.contains { $0.name == account.name && $0.revision == account.revision }
    }
    func done() throws(CredentialError) -> Account? {
      try vault.accounts(of: provider).first { account in
        (wish.account == nil || wish.account == account.name) && isLater(account)
          && account.credential.isUsable(at: clock.now(), for: nil)
      }
    }
    return try exclusively(
      provider, wish.account, seconds: wish.timeout, waiting: { user.tell(.waiting(seconds: $0)) }, isDone: done
    ) { () throws(CredentialError) in
      // The lock may have become free because the other one was done.
      if let done = try done() { return done }
      // Before a browser is opened in vain.
      if client.descriptor.account.isEmpty {
        try requireName(wish, found: nil, grant, provider, try vault.accounts(of: provider))
      }
      if let kept = try unfinished(grant, client, wish, vault) { return try keep(kept, client, wish, vault) }
      try tellInterruption(of: wish, provider, vault)
      if !before.isEmpty { user.tell(.alreadyLoggedIn(accounts: before.map(\.name))) }
      let remaining = wish.timeout - (clock.now() - started)
      let session = LoginSession(
        source: self, client: client, wish: wish, user: user, vault: vault, seconds: max(remaining, 1))
      let credential = try session.credential(grant)
      FaultPoint.reach("login.stored")
      return try keep(credential, client, wish, vault)
    }
  }

  /// Keeps a token that the person has already, such as a personal access token.
  ///
  /// - Throws: `CredentialError.malformedToken`, and as `login`.
  public func login(
    _ provider: String, _ wish: LoginWish, token: Secret
  ) throws(CredentialError) -> Account {
    if let name = wish.account, !Accounts.isName(name) { throw .malformedAccount(name) }
    let text = token.reveal()
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw .malformedToken }
    _ = try network()
    let client = try client(provider, variables: wish.variables)
    let vault = try accounts(.readWrite)
    var credential = Credential(
      grant: client.descriptor.grants.first { $0 != .clientCredentials } ?? .authorizationCode, accessToken: token,
      obtainedAt: clock.now(), margin: client.descriptor.expiry.margin)
    credential.variables = wish.variables
    try inVault { () throws(VaultError) in
      try vault.vault.check([Accounts.identifier(provider, wish.account ?? "")])
    }
    return try keep(credential, client, wish, vault, isGiven: true)
  }

  /// The grant that the person named, else the one that the provider prefers.
  func grant(_ wish: LoginWish, _ offered: [Grant]) throws(CredentialError) -> Grant {
    if let grant = wish.grant {
      guard offered.contains(grant) else { throw .grantNotOffered(grant, offered: offered) }
      return grant
    }
    return offered.first ?? .authorizationCode
  }

  /// What an earlier login kept before it was interrupted, if it is what this one is about to ask for: the person need not
  /// consent once more.
  private func unfinished(
    _ grant: Grant, _ client: Client, _ wish: LoginWish, _ accounts: Accounts
  ) throws(CredentialError) -> Credential? {
    let (provider, name) = (client.descriptor.identifier, wish.account ?? "")
    // A token that is exchanged for the one to keep is no use by itself.
    guard client.descriptor.endpoints[.tokenExchange] == nil,
      let note = try accounts.note(provider, name), note.exchange == .login,
      let answer = accounts.keptAnswer(provider, name) ?? note.answer, answer.previous == nil
    else { return nil }
    let kept = answer.credential
    guard kept.grant == grant, kept.variables == wish.variables,
      kept.requestedScope == (wish.scope.isEmpty ? client.descriptor.scope.requested : wish.scope),
      (0...Self.unfinishedSeconds).contains(clock.now() - kept.loggedInAt), kept.isUsable(at: clock.now())
    else { return nil }
    return kept
  }

  /// For so long an interrupted login is finished instead of begun anew.
  private static let unfinishedSeconds: Int64 = 600

  private func tellInterruption(
    of wish: LoginWish, _ provider: String, _ accounts: Accounts
  ) throws(CredentialError) {
    // The lock is ours, so nobody is at work with it.
    let name = wish.account ?? ""
    guard let note = try accounts.note(provider, name), note.isInterruption else { return }
    notice(
      .interrupted(
        Interruption(provider: provider, account: wish.account, exchange: note.exchange, startedAt: note.startedAt)))
  }

  /// Asks who a new credential is for, and puts it under that name. It is on the disk already: until then nothing is asked
  /// of anybody.
  private func keep(
    _ credential: Credential, _ client: Client, _ wish: LoginWish, _ accounts: Accounts, isGiven: Bool = false
  ) throws(CredentialError) -> Account {
    let provider = client.descriptor.identifier
    var credential = credential
    credential.variables = wish.variables
    secrets.learn(credential)
    let waiting = Accounts.pending(provider, wish.account ?? "")
    func forget() {
      try? accounts.setNote(nil, provider, wish.account ?? "")
      accounts.vault.removeAnswer(provider: provider, account: wish.account ?? "")
    }
    let found: String?
    let remark: Notice?
    let kept: [String: String]
    let name: String
    do throws(CredentialError) {
      (found, kept, remark) = try identity(credential, client, accounts, wish, isGiven: isGiven)
      let wanted = wish.account ?? found ?? Self.standardAccount
      let existing = try accounts.readableAccount(wanted, of: provider)
      // The same name may be written with other code points.
      name = existing?.name ?? wanted
      if let expected = existing?.credential.identity, expected != found {
        throw .identityMismatch(account: name, expected: expected, found: found)
      }
      try requireName(wish, found: found, credential.grant, provider, try accounts.accounts(of: provider))
    } catch {
      // Who was interrupted here goes on from here with the next login.
      if error != .interrupted { forget() }
      throw error
    }
    if let remark { notice(remark) }
    FaultPoint.reach("login.identified")
    credential.identity = found
    credential.kept.merge(kept) { ofToken, _ in ofToken }
    credential.loginFinishedAt = clock.milliseconds()
    let isFirst = try accounts.accounts(of: provider).isEmpty
    // An account of a provider that somebody removed meanwhile could never be refreshed.
    var changes: [Change] = [
      .require(Accounts.registration(provider)),
      .store(credential.encoded, as: Accounts.identifier(provider, name), if: .any), .remove(waiting, if: .any),
      .remove(Accounts.pending(provider, name), if: .any),
    ]
    if isFirst { changes.append(.store(Secret(name), as: Accounts.selection(provider), if: .any)) }
    changes.append(noting(.login, provider, name, credential.grant.rawValue))
    let revision: Int64
    do throws(VaultError) {
      revision = try accounts.vault.apply(changes)
    } catch .conflict(Accounts.registration(provider), actual: nil) {
      forget()
      throw .notAdded(provider: provider, ClientNeeds(client.descriptor))
    } catch {
      if isGiven { throw .vault(error) }
      let isKept = accounts.keptAnswer(provider, wish.account ?? "") != nil
      throw .uncommitted(provider: provider, account: wish.account, isKept: isKept, error)
    }
    FaultPoint.reach("login.committed")
    accounts.vault.removeAnswer(provider: provider, account: wish.account ?? "")
    return Account(provider: provider, name: name, credential: credential, revision: revision)
  }

  /// A login of which nobody says whose it is must not take the place of another one that is still good: it may be
  /// somebody else's.
  private func requireName(
    _ wish: LoginWish, found: String?, _ grant: Grant, _ provider: String, _ accounts: [Account]
  ) throws(CredentialError) {
    // With its own credentials a client is always the same.
    guard wish.account == nil, found == nil, grant != .clientCredentials,
      let there = accounts.first(where: { $0.name == Self.standardAccount }),
      there.credential.isUsable(at: clock.now(), for: 0) || there.credential.isRefreshable(at: clock.now())
    else { return }
    throw .nameNeeded(provider: provider, account: there.name)
  }

  /// The name of an account whose provider names none.
  static let standardAccount = "default"

  /// Who is logged in, where the descriptor says how to find out.
  ///
  /// A provider that does not say it now is no reason to lose a token, unless the account that it would be put under is
  /// somebody's already.
  ///
  /// - Parameter isGiven: whether the person brought the token: one that the provider does not take is then not kept.
  /// - Returns: the account's name, or what the person is told in its place; and what is kept of the answer.
  private func identity(
    _ credential: Credential, _ client: Client, _ accounts: Accounts, _ wish: LoginWish, isGiven: Bool
  ) throws(CredentialError) -> (name: String?, kept: [String: String], remark: Notice?) {
    let provider = client.descriptor.identifier
    let name: String?
    var kept: [String: String] = [:]
    if !client.asksIdentity || credential.grant == .clientCredentials {
      name = client.accountName(in: credential)
    } else {
      do throws(CredentialError) {
        let request = try core(provider) { () throws(OAuthError) in
          try client.identityRequest(credential, nonce: nonce)
        }
        let response = try send(request, provider: provider)
        (name, kept) = try core(provider) { () throws(OAuthError) in try client.identity(response) }
      } catch {
        if isGiven, case .oauth(.refused(_, let refusal), _) = error, refusal.status == 401 {
          throw .tokenRefused(provider: provider, words: refusal.words)
        }
        let account = wish.account ?? Self.standardAccount
        if try accounts.readableAccount(account, of: provider) != nil || error == .interrupted { throw error }
        return (nil, kept, .unidentified(account: account, error))
      }
    }
    guard let name, !Accounts.isName(name) else { return (name, kept, nil) }
    return (nil, kept, .unnameable(account: wish.account ?? Self.standardAccount, provider: provider))
  }
}
