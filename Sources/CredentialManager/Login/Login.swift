import Cryptography
import Descriptors
import HTTP
import OAuth
import Platform
import Store
import Text

extension CredentialSource {
  /// Logs in, and keeps what comes back. One process at a time does so for an account name; the others wait, get what
  /// the first one got, and open no browser. When this throws, nothing that was there before is changed.
  package func login(_ provider: String, _ options: LoginOptions, user: any User) throws(CredentialError) -> Account {
    let login = try Login(self, to: provider, options)
    let title = login.client.descriptor.title
    do throws(CredentialError) {
      let account = try login.run(try grant(login.options, login.client.descriptor.grants), user)
      login.ending.show(.loggedIn(account, title))
      return account
    } catch {
      login.ending.show(.failed(error, title))
      throw error
    }
  }

  package func login(_ provider: String, _ options: LoginOptions, token: Secret) throws(CredentialError) -> Account {
    let text = token.reveal()
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw .malformedToken }
    return try Login(self, to: provider, options).keep(token)
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
  let accounts: Accounts
  let id: AccountID
  let ending = LoginEnding()

  private var provider: String { id.provider }
  fileprivate var client: Client { permit.client }

  /// Opens what a login needs, before anything is asked of the provider: a token that cannot be kept is lost.
  init(_ source: CredentialSource, to provider: String, _ options: LoginOptions) throws(CredentialError) {
    if let name = options.account, !Accounts.isName(name) { throw .malformedAccount(name) }
    _ = try source.network()
    self.source = source
    loaded = try source.descriptor(provider)
    var options = options
    // A login to an account that is there is for the same as the one before.
    if let name = options.account, let there = try source.accountsIfAny()?.readableAccount(AccountID(provider, name)) {
      options.repeat(there.credential, among: loaded.descriptor.grants)
    }
    self.options = options
    permit = try source.permit(.login, loaded, variables: options.variables)
    let accounts = try source.accounts(.readWrite)
    let id = AccountID(provider, options.account)
    try inStore(accounts.store.check([RecordIdentifier(.credential, of: id), RecordIdentifier(.pending, of: id)]))
    (self.accounts, self.id) = (accounts, id)
  }

  // MARK: With the provider

  func run(_ grant: Grant, _ user: any User) throws(CredentialError) -> Account {
    let others = try OtherProviders(source, than: provider, isOwn: source.ownFile(of: loaded) != nil)
    if grant.traits.needsPerson {
      if let conflict = others.conflict(of: client) { throw conflict }
      // Without what this account's variables widen it by.
      let agreed = try accounts.registration(of: provider)?.agreement
      let places = others.peculiarities(of: client, loaded, beyond: agreed)
      if !places.isEmpty { throw .peculiar(provider: provider, places, isBeingAdded: false) }
    }
    let before = try accounts.accounts(of: provider)
    let deadline = source.clock.monotonic() + options.timeout
    // Who logged in since the first look: what was waited for, or what made the lock free.
    func done() throws(CredentialError) -> Account? {
      // Who asked for a token looked before this login was thought of: whatever gives one now is enough.
      if options.unlessAlive {
        guard let account = try? accounts.resolve(id.name, provider: provider) else { return nil }
        return try isAlive(account) ? account : nil
      }
      for account in try accounts.accounts(of: provider) where id.name == nil || id.name == account.name {
        let known = before.first { $0.name == account.name }
        let isNew = account.credential.loggedInAt != known?.credential.loggedInAt
        if isNew, account.revision != known?.revision, try isAlive(account) { return account }
      }
      return nil
    }
    return try source.withAccountLock(
      id, timeout: options.timeout, waiting: { user.tell(.waiting(for: $0)) },
      isDone: { () throws(CredentialError) in
        if user.isCancelled { throw .interrupted }
        return try done()
      }
    ) { locked throws(CredentialError) in
      if let done = try done() { return done }
      // Before a browser is opened in vain.
      if client.descriptor.account.isEmpty { try requireName(grant) }
      let note = try accounts.note(id)
      if let kept = unfinished(note, grant) { return try commit(kept, locked.resume()) }
      if let note, note.isInterruption { source.notice(.beginsAnew(after: Interruption(id, note))) }
      if !before.isEmpty { user.tell(.alreadyLoggedIn(accounts: before.map(\.name))) }

      let session = LoginSession(
        source: source, permit: permit, grant: grant, options: options, user: user, others: others,
        person: person(among: before), ending: ending,
        deadline: max(deadline, source.clock.monotonic() + .seconds(1)))
      // Whose it is may be known only when it is there.
      let pending = try locked.begin(
        ExchangeNote(.login, startedAt: source.clock.now()), for: id.name == nil ? before.map(\.id) : [id])
      FaultPoint.reach("login.noted")
      let credential: Credential
      do throws(CredentialError) { credential = try session.credential(pending) } catch {
        _ = try? pending.finish(error.mayHaveArrived ? .unfinished : .ended(noting: nil))
        throw error
      }
      FaultPoint.reach("login.stored")
      return try commit(credential, pending)
    }
  }

  /// A browser in which somebody else is signed in would consent for that person.
  private func person(among accounts: [Account]) -> PersonChoice? {
    guard accounts.contains(where: { $0.name != id.name }) else { return nil }
    return PersonChoice(identity: accounts.first { $0.name == id.name }?.credential.identity)
  }

  /// For so long an interrupted login is finished instead of begun anew.
  private static let unfinishedLifetime = Duration.seconds(600)

  /// What an interrupted login kept, if it is what this one is about to ask for: that saves a second consent.
  private func unfinished(_ note: ExchangeNote?, _ grant: Grant) -> Credential? {
    // A token that is exchanged for the one to keep is no use by itself.
    guard client.descriptor.endpoints[.tokenExchange] == nil, let note, note.exchange == .login,
      let answer = accounts.keptAnswer(id) ?? note.answer, answer.previous == nil
    else { return nil }
    let (kept, now) = (answer.credential, source.clock.now())
    guard kept.grant == grant, kept.variables == options.variables,
      kept.requestedScope == (options.scope.isEmpty ? client.descriptor.scope.requested : options.scope),
      (.zero...Self.unfinishedLifetime).contains(now - kept.loggedInAt), AccountState(kept, at: now).isAlive
    else { return nil }
    return kept
  }

  private func commit(
    _ credential: Credential, _ pending: consuming PendingExchange
  ) throws(CredentialError) -> Account {
    let owned: (name: String, credential: Credential, changes: [Change])
    do throws(CredentialError) { owned = try identified(credential, isGiven: false) } catch {
      // Who was interrupted here goes on from here with the next login.
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

  /// Revokes tokens that no account gets. Not those of a person who is an account already: providers that revoke all
  /// that a person gave to a client (Google) would end that account.
  private func discard(_ credential: Credential, _ error: CredentialError?) {
    if case .identityMismatch(_, _, _, _, other: _?)? = error { return }
    do throws(CredentialError) {
      if case .refused(let error) = try source.revoke(credential, with: permit) { throw error }
    } catch {
      source.notice(.notRevoked(provider: provider, error))
    }
  }

  // MARK: With a token

  func keep(_ token: Secret) throws(CredentialError) -> Account {
    var credential = Credential(
      grant: client.descriptor.grants.first(where: \.traits.needsPerson) ?? .authorizationCode, accessToken: token,
      obtainedAt: source.clock.now(), margin: client.descriptor.expiry.margin)
    credential.isGiven = true
    let owned = try identified(credential, isGiven: true)
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

  /// `isGiven`: the person brought the token, and one that the provider does not take is not kept.
  private func identified(
    _ credential: Credential, isGiven: Bool
  ) throws(CredentialError) -> (name: String, credential: Credential, changes: [Change]) {
    var credential = credential
    credential.variables = options.variables
    source.secrets.learn(credential)
    let (found, kept, fault) = try identity(credential, isGiven: isGiven)
    if isGiven, found == nil { try requireName(credential.grant) }
    let wanted = if let name = id.name ?? found { name } else { try freeName(credential.grant) }
    let existing = try accounts.readableAccount(AccountID(provider, wanted))
    // The same name may be written with other code points.
    let name = existing?.name ?? wanted
    let expected = existing?.credential.identity
    let other = try accounts.accounts(of: provider).first { other in
      other.name != name && (found.map(other.isPerson) ?? false)
    }
    // Where nobody says who it is, there is nothing to compare, and a token is not lost for that.
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
    credential.identity = found ?? expected
    credential.kept.merge(kept) { ofToken, _ in ofToken }
    // An account of a provider that somebody removed meanwhile could never be refreshed.
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

  /// A login of unknown identity must not replace one that is still good: it may be somebody else's.
  private func isTaken(_ name: String, _ grant: Grant) throws(CredentialError) -> Bool {
    // With its own credentials a client is always the same.
    guard grant.traits.needsPerson, let there = try accounts.readableAccount(AccountID(provider, name)) else {
      return false
    }
    let state = try accounts.state(of: there, accounts.note(there.id), at: source.clock.now())
    if case .refused = state { return false }
    return state.loginReason == nil || there.credential.identity != nil
  }

  private func requireName(_ grant: Grant) throws(CredentialError) {
    if id.name == nil, try isTaken(Self.standardName, grant) {
      throw .nameNeeded(provider: provider, account: Self.standardName)
    }
  }

  /// For a login of unknown identity.
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

  /// Why it is not known who logged in.
  private enum IdentityFault: Equatable {
    case unidentified(CredentialError)
    case unnameable  // The provider's name for the person cannot be an account's.
  }

  /// A provider that does not say who is logged in is no reason to lose a token.
  private func identity(
    _ credential: Credential, isGiven: Bool
  ) throws(CredentialError) -> (name: String?, kept: [String: String], fault: IdentityFault?) {
    let name: String?
    var kept: [String: String] = [:]
    if !client.asksIdentity || !credential.grant.traits.needsPerson {
      name = client.accountName(in: credential)
    } else {
      do throws(CredentialError) {
        let response = try source.send(to: permit, bound: client.binding(of: credential.grant)) {
          nonce throws(OAuthError) in try client.identityRequest(credential, nonce: nonce)
        }
        (name, kept) = try source.core(provider, client.identity(response, of: credential))
      } catch {
        if isGiven, case .oauth(.refused(_, let refusal), _) = error, refusal.status == 401 {
          throw .tokenRefused(provider: provider, words: refusal.words)
        }
        // The token is another person's than the provider says: it may have been put in the place of the right one.
        if case .oauth(.idToken, _) = error { throw error }
        if case .oauth(.valueOutOfBounds, _) = error { throw error }
        if error == .interrupted { throw error }
        return (nil, kept, .unidentified(error))
      }
    }
    if let name, client.reveals(name, credential) { throw .oauth(.secretAccount, provider: provider) }
    guard let name, !Accounts.isName(name) else { return (name, kept, nil) }
    return (nil, kept, .unnameable)
  }
}

extension CredentialSource {
  package func plannedLogin(
    _ descriptor: Descriptor, _ options: LoginOptions, hasToken: Bool
  ) throws(CredentialError) -> (planned: LoginRequests, clientIdentifier: String?) {
    let grant = try grant(options, descriptor.grants)
    let registration = try accountsIfAny()?.registration(of: descriptor.identifier)
    let identifier = registration?.clientIdentifier ?? descriptor.client.identifier
    let descriptor = registration?.applied(to: descriptor) ?? descriptor
    let registered = registration?.variables.filter { descriptor.variable($0.key) != nil } ?? [:]
    let client = try wrapping(
      CredentialError.provider,
      Client(
        showing: descriptor, identifier: identifier,
        hasSecret: registration.map { $0.clientSecret != nil } ?? descriptor.client.hasSecret,
        variables: registered.merging(options.variables) { _, new in new }))
    let scope = options.scope.isEmpty ? descriptor.scope.requested : options.scope
    let planned = try core(descriptor.identifier, LoginRequests(grant, client, scope: scope, hasToken: hasToken))
    return (planned, identifier)
  }
}
