import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText

extension CredentialSource {
  /// Logs in and stores the credential. For each account name, only one process opens a browser; the others wait and
  /// return the account it creates. If this throws, existing data is unchanged.
  package func login(_ provider: String, _ options: LoginOptions, user: any User) throws(CredentialError) -> Account {
    let login = try Login(self, to: provider, options)
    let title = login.client.descriptor.title
    do throws(CredentialError) {
      let account = try login.run(user)
      login.ending.show(.loggedIn(account, title))
      return account
    } catch {
      login.ending.show(.failed(error, title))
      throw error
    }
  }

  package func login(_ provider: String, _ options: LoginOptions, token: Secret) throws(CredentialError) -> Account {
    let login = try Login(self, to: provider, options, hasToken: true)
    let descriptor = login.client.descriptor
    if descriptor.key != nil { try requireOwnKey(token.reveal(), of: login.loaded) }
    let text: String
    do throws(PasteFault) { text = try descriptor.givenToken(token.reveal()) } catch {
      throw .wrongPaste(provider: provider, error)
    }
    return try login.keep(Secret(text))
  }

  func grant(_ options: LoginOptions, _ offered: [Grant]) throws(CredentialError) -> Grant {
    if let grant = options.grant {
      guard offered.contains(grant) else { throw .grantNotOffered(grant, offered: offered) }
      return grant
    }
    return offered.first ?? .authorizationCode
  }
}

private struct Login {
  let source: CredentialSource
  let loaded: DescriptorLibrary.Loaded
  let permit: Permit
  let options: LoginOptions
  let grant: Grant
  /// The registration of a shipped provider that this login adds; `nil` if the provider was added before.
  let registration: Registration?
  let accounts: Accounts
  let id: AccountID
  let ending = LoginEnding()

  private var provider: String { id.provider }
  fileprivate var client: Client { permit.client }

  /// Opens everything that a login requires before it contacts the provider. A token that cannot be stored is lost.
  init(
    _ source: CredentialSource, to provider: String, _ options: LoginOptions, hasToken: Bool = false
  ) throws(CredentialError) {
    if let name = options.account, !Accounts.isName(name) { throw .malformedAccount(name) }
    _ = try source.network()
    self.source = source
    loaded = try source.descriptor(provider)
    var options = options
    // A login to an existing account repeats its scopes and variables.
    if let name = options.account, let there = try source.accountsIfAny()?.readableAccount(AccountID(provider, name)) {
      options.repeat(there.credential, among: loaded.descriptor.grants)
    }
    self.options = options
    let offered = loaded.descriptor.grants
    grant =
      hasToken
      ? loaded.descriptor.key != nil ? .apiKey : offered.first(where: \.traits.needsPerson) ?? .authorizationCode
      : try source.grant(options, offered)
    (permit, registration) = try source.permitToLogIn(
      loaded, needsClient: !hasToken && grant.traits.needsClient, variables: options.variables)
    let accounts = try source.accounts(.readWrite)
    let id = AccountID(provider, options.account)
    try inStore(accounts.store.check([RecordIdentifier(.credential, of: id), RecordIdentifier(.pending, of: id)]))
    (self.accounts, self.id) = (accounts, id)
  }

  // MARK: With the provider

  func run(_ user: any User) throws(CredentialError) -> Account {
    let others = try OtherProviders(source, than: provider, isOwn: !source.ownFiles(of: loaded).isEmpty)
    if grant.traits.needsPerson {
      if let conflict = others.conflict(of: client) { throw conflict }
      // Ignore the places that this account's own variables add.
      let agreed = try accounts.registration(of: provider)?.agreement
      let places = others.peculiarities(of: client, loaded, beyond: agreed)
      if !places.isEmpty { throw .peculiar(provider: provider, places, isBeingAdded: false) }
    }
    let before = try accounts.accounts(of: provider)
    let deadline = source.clock.monotonic() + options.timeout
    // Returns an account that another process logged in meanwhile.
    func done() throws(CredentialError) -> Account? {
      // A caller that only needs a token accepts any account with a valid one.
      if options.unlessAlive {
        guard let account = try? accounts.resolve(id.name, provider: provider) else { return nil }
        return try isAlive(account) ? account : nil
      }
      for account in try accounts.accounts(of: provider) where id.name == nil || id.name == account.name {
        let known = before.first { $0.name == account.name }
        // The other login may have asked for other scopes, for example.
        let isNew = account.credential.loggedInAt != known?.credential.loggedInAt
        if isNew, asksFor(account.credential, grant), account.revision != known?.revision, try isAlive(account) {
          return account
        }
      }
      return nil
    }
    return try source.withAccountLock(
      id, timeout: options.timeout,
      waiting: { user.tell(.waiting(for: $0, process: (try? accounts.note(id))?.process)) },
      isDone: { () throws(CredentialError) in
        if user.isCancelled { throw .interrupted }
        return try done()
      }
    ) { locked throws(CredentialError) in
      if let done = try done() { return done }
      let before = try accounts.accounts(of: provider)
      // Fail before opening a browser.
      if client.descriptor.account.isEmpty { try requireName(grant) }
      if let there = try accounts.readableAccount(id) { _ = try source.takeAnswer(of: there, accounts, locked) }
      let note = try accounts.note(id)
      if let kept = unfinished(note, grant) { return try commit(kept, in: locked.resume(), user) }
      if let note, note.isInterruption { source.notice(.beginsAnew(after: Interruption(id, note))) }
      if !before.isEmpty { user.tell(.alreadyLoggedIn(accounts: before.map(\.name))) }

      let session = LoginSession(
        source: source, loaded: loaded, permit: permit, grant: grant, options: options, user: user, others: others,
        person: PersonChoice(for: id, among: before), ending: ending,
        deadline: max(deadline, source.clock.monotonic() + .seconds(1)))
      // Without a name, the account is known only after the login.
      var begun = ExchangeNote(.login, startedAt: source.clock.now(), after: note)
      begun.process = ownProcess
      let pending = try locked.begin(begun, for: id.name == nil ? before.map(\.id) : [id])
      FaultPoint.reach("login.noted")
      let credential: Credential
      do throws(CredentialError) { credential = try session.credential(pending) } catch {
        _ = try? pending.finish(error.mayHaveArrived ? .unfinished : .ended(noting: nil))
        throw error
      }
      FaultPoint.reach("login.stored")
      return try commit(credential, in: pending, user)
    }
  }

  /// How long an interrupted login can be continued.
  private static let unfinishedLifetime = Duration.seconds(600)

  /// Returns the saved result of an interrupted login if it matches this one, which saves a second consent.
  private func unfinished(_ note: ExchangeNote?, _ grant: Grant) -> Credential? {
    let now = source.clock.now()
    // A token that must still be exchanged is useless by itself.
    guard client.descriptor.endpoints[.tokenExchange] == nil, let note,
      let kept = accounts.unfinishedLogin(note, id), asksFor(kept, grant),
      (.zero...Self.unfinishedLifetime).contains(now - kept.loggedInAt), AccountState(kept, at: now).isAlive
    else { return nil }
    return kept
  }

  /// Whether this login makes the same request as the login that got the credential.
  private func asksFor(_ credential: Credential, _ grant: Grant) -> Bool {
    !credential.isGiven && credential.grant == grant && credential.variables == options.variables
      && credential.requestedScope == (options.scope.isEmpty ? client.descriptor.scope.requested : options.scope)
  }

  private func commit(
    _ credential: Credential, in pending: consuming PendingExchange, _ user: any User
  ) throws(CredentialError) -> Account {
    let owned: (name: String, credential: Credential, changes: [Change])
    do throws(CredentialError) { owned = try identified(credential, user) } catch {
      // The next login continues after an interruption here.
      if error != .interrupted { discard(credential, error) }
      _ = try? pending.finish(error == .interrupted ? .unfinished : .ended(noting: nil))
      throw error
    }
    FaultPoint.reach("login.identified")
    do throws(CommitError) {
      let revision = try pending.finish(.committed(owned.changes)) ?? 0
      FaultPoint.reach("login.committed")
      return Account(provider: provider, name: owned.name, credential: owned.credential, revision: revision)
    } catch {
      if case .conflict = error.reason {
        discard(credential, nil)
        throw .notAdded(provider: provider, ClientNeeds(client.descriptor))
      }
      throw .uncommitted(provider: provider, account: id.name, isKept: error.isKept, error.reason)
    }
  }

  /// Revokes tokens that no account will use. Keeps those of a user with an existing account, because providers such as
  /// Google revoke all tokens of the user for this client.
  private func discard(_ credential: Credential, _ error: CredentialError?) {
    if case .identityMismatch(_, _, _, _, other: _?)? = error { return }
    // The user's own key may be in use elsewhere.
    if credential.isTyped { return }
    do throws(CredentialError) {
      if case .refused(let error) = try source.revoke(credential, with: permit) { throw error }
    } catch {
      source.notice(.notRevoked(provider: provider, error))
    }
  }

  // MARK: With a token

  func keep(_ token: Secret) throws(CredentialError) -> Account {
    let now = source.clock.now()
    var credential = Credential(
      grant: grant, accessToken: token, obtainedAt: now, margin: client.descriptor.expiry.margin)
    credential.isGiven = true
    credential.expiresAt = client.descriptor.key?.lifetime.map { now + $0 }
    let owned = try identified(credential, nil)
    do throws(StoreError) {
      let revision = try accounts.store.apply(owned.changes)
      return Account(provider: provider, name: owned.name, credential: owned.credential, revision: revision)
    } catch .conflict {
      throw .notAdded(provider: provider, ClientNeeds(client.descriptor))
    } catch {
      throw .vault(error)
    }
  }

  // MARK: Whose it is

  private static let standardName = "default"

  /// Returns the account for a credential. Asks `user` whether to store a typed key that could not be verified.
  private func identified(
    _ credential: Credential, _ user: (any User)?
  ) throws(CredentialError) -> (name: String, credential: Credential, changes: [Change]) {
    var credential = credential
    credential.add(options)
    credential = source.presentable(credential)
    let (found, kept, fault) = try identity(credential, user)
    if credential.isTyped, found == nil { try requireName(credential.grant) }
    let wanted = if let name = id.name ?? found { name } else { try freeName(credential.grant) }
    let existing = try accounts.readableAccount(AccountID(provider, wanted))
    // The same name may use other code points.
    let name = existing?.name ?? wanted
    if credential.isGiven, !options.replaces, let existing, existing.credential.accessToken != credential.accessToken {
      throw .alreadyThere([RecordIdentifier(.credential, of: existing.id)], files: [])
    }
    let expected = existing?.credential.ownIdentity
    let other = try accounts.accounts(of: provider).first { other in
      other.name != name && (found.map(other.isPerson) ?? false)
    }
    // If the provider names no user, accept the token, because losing it would be worse than an unverified user.
    if let expected, found.map({ $0 != expected }) ?? (fault == .unnameable) {
      throw .identityMismatch(
        provider: provider, account: name, expected: expected, found: found, other: other?.name)
    }
    switch fault {
    case .unnameable: source.notice(.unnameable(account: name, provider: provider))
    case .unidentified(let error): source.notice(.unidentified(account: name, error))
    case nil: break
    }
    if existing == nil, let found, let other {
      source.notice(.sameIdentity(provider: provider, account: name, identity: found, other: other.name))
    }
    credential.identity = found
    credential.earlierIdentity = found == nil ? expected : nil
    credential.kept.merge(kept.filter { !source.secrets.reveals($0.value) }) { ofToken, _ in ofToken }
    if let registration, try accounts.registration(of: provider) == nil {
      try source.store([provider: registration], with: [source.noting(.addProvider, of: provider)])
    }
    // Require the provider: if another process removed it, the account could never be refreshed.
    var changes: [Change] = [
      .require(Accounts.registration(provider)),
      .store(credential.encoded, as: RecordIdentifier(.credential, of: AccountID(provider, name))),
      .remove(RecordIdentifier(.pending, of: id)), .remove(RecordIdentifier(.pending, of: AccountID(provider, name))),
    ]
    if try accounts.accounts(of: provider).isEmpty {
      changes.append(.store(Secret(name), as: Accounts.selection(provider)))
    }
    changes.append(source.noting(.login, of: provider, account: name, detail: credential.grant.rawValue))
    return (name, credential, changes)
  }

  /// Whether a login of unknown identity would replace a valid account, which may belong to another user.
  private func isTaken(_ name: String, _ grant: Grant) throws(CredentialError) -> Bool {
    // Client credentials always belong to the same client.
    guard grant.traits.needsPerson, let there = try accounts.readableAccount(AccountID(provider, name)) else {
      return false
    }
    let state = try accounts.state(of: there, accounts.note(there.id), at: source.clock.now())
    if case .refused = state { return false }
    return state.loginReason == nil || there.credential.ownIdentity != nil
  }

  private func requireName(_ grant: Grant) throws(CredentialError) {
    if id.name == nil, try isTaken(Self.standardName, grant) {
      throw .nameNeeded(provider: provider, account: Self.standardName)
    }
  }

  /// Returns an unused name for a login of unknown identity.
  private func freeName(_ grant: Grant) throws(CredentialError) -> String {
    var (name, number) = (Self.standardName, 1)
    while try isTaken(name, grant) {
      number += 1
      name = "\(Self.standardName)-\(number)"
    }
    return name
  }

  private func isAlive(_ account: Account) throws(CredentialError) -> Bool {
    try accounts.state(of: account, accounts.note(account.id), at: source.clock.now()).isAlive
  }

  /// Why the user is unknown.
  private enum IdentityFault: Equatable {
    case unidentified(CredentialError)
    case unnameable  // The provider's user name is not valid as an account name.
  }

  /// Asks the provider who logged in. If this fails, the token is not lost.
  private func identity(
    _ credential: Credential, _ user: (any User)?
  ) throws(CredentialError) -> (name: String?, kept: [String: String], fault: IdentityFault?) {
    var name = client.accountName(in: credential)
    var kept: [String: String] = [:]
    // A key is verified even if the answer names no user.
    if client.asksIdentity || (user != nil && credential.isTyped || options.verifies) && client.canValidate,
      credential.grant.traits.needsPerson
    {
      do throws(CredentialError) {
        let (found, fields) = try answer(about: credential)
        (name, kept) = (found ?? name, fields)
      } catch {
        if credential.isTyped, error.refusesToken { throw .tokenRefused(provider: provider, words: error.refusalWords) }
        if credential.isTyped, let user, !error.concernsRights, error != .interrupted, !user.keepsUnverified(error) {
          throw user.isCancelled ? .interrupted : .unverified(provider: provider, error)
        }
        // The token does not belong to the user that the provider names, so it may have been swapped.
        if case .oauth(.idToken, _) = error { throw error }
        if case .oauth(.valueOutOfBounds, _) = error { throw error }
        if error == .interrupted { throw error }
        if credential.isGiven, options.verifies, !error.concernsRights { throw error }
        return (name, kept, .unidentified(error))
      }
    }
    if let name, source.secrets.reveals(name) { throw .oauth(.secretAccount, provider: provider) }
    guard let name, !Accounts.isName(name) else { return (name, kept, nil) }
    return (nil, kept, .unnameable)
  }

  /// Asks the provider who owns a credential, or else whether it is valid.
  private func answer(
    about credential: Credential
  ) throws(CredentialError) -> (name: String?, kept: [String: String]) {
    var permit = permit
    if credential.variables != options.variables {
      permit = try source.permitToLogIn(loaded, needsClient: false, variables: credential.variables).permit
    }
    let client = permit.client
    let hasIdentity = client.descriptor.endpoints[.identity] != nil
    let response = try source.send(to: permit, bound: client.binding(of: credential.grant)) {
      nonce throws(OAuthError) in
      try hasIdentity
        ? client.identityRequest(credential, nonce: nonce)
        : client.validationRequest(credential, nonce: nonce).request
    }
    if hasIdentity { return try source.core(provider, client.identity(response, of: credential)) }
    if try source.core(provider, client.validity(response, .introspection)) == .inactive {
      throw .tokenRefused(provider: provider, words: nil)
    }
    return (nil, [:])
  }
}

extension Credential {
  /// Adds what the user gave with the login.
  mutating func add(_ options: LoginOptions) {
    variables = options.variables.merging(variables) { _, typed in typed }
    if isTyped, let expiresAt = options.expiresAt { self.expiresAt = expiresAt }
  }
}

extension PersonChoice {
  /// Returns the user to ask for, because a browser session of another user would consent as that user; `nil` if
  /// there is no other account.
  init?(for id: AccountID, among accounts: [Account]) {
    guard accounts.contains(where: { $0.name != id.name }) else { return nil }
    self.init(identity: accounts.first { $0.name == id.name }?.credential.ownIdentity)
  }
}
