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
    try intoVault(of: provider, options) { () throws(CredentialError) in
      try ownLogin(provider, options, user: user)
    }
  }

  private func ownLogin(
    _ provider: String, _ options: LoginOptions, user: any User
  ) throws(CredentialError) -> Account {
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

  package func login(
    _ provider: String, _ options: LoginOptions, token: Secret, user: (any User)? = nil
  ) throws(CredentialError) -> Account {
    try login(provider, options, given: [token.reveal()], user: user)
  }

  /// Stores a token that the user brings. `given` has one text for each of `fieldsOfToken`. A token that the provider
  /// does not confirm is stored only if `user` agrees.
  package func login(
    _ provider: String, _ options: LoginOptions, given: [String], user: (any User)? = nil
  ) throws(CredentialError) -> Account {
    try intoVault(of: provider, options) { () throws(CredentialError) in
      try ownLogin(provider, options, given: given, user: user)
    }
  }

  private func ownLogin(
    _ provider: String, _ options: LoginOptions, given: [String], user: (any User)?
  ) throws(CredentialError) -> Account {
    let login = try Login(self, to: provider, options, hasToken: true)
    let descriptor = login.client.descriptor
    try requireOwnKey(given, of: login.loaded, login.client, agrees: options.keepsUnverified)
    let fields = descriptor.fieldsOfToken
    var values: [Secret] = []
    do throws(PasteFault) {
      guard given.count == fields.count else { throw .count(expected: fields.map(\.label)) }
      for (field, text) in zip(fields, given) { values.append(Secret(try field.value(of: text))) }
    } catch {
      throw .wrongPaste(provider: provider, error)
    }
    return try login.keep(values[0], secret: values.count > 1 ? values[1] : nil, user)
  }

  /// Logs in, and moves the account to the shared vault that `options` name. An account whose copy is here stays in its
  /// vault. The login itself needs only the user's own vault, so no lease of the server lasts as long as a user takes.
  private func intoVault(
    of provider: String, _ options: LoginOptions, _ login: () throws(CredentialError) -> Account
  ) throws(CredentialError) -> Account {
    if let vault = options.vault {
      let descriptor = try descriptor(provider).descriptor
      try requireShareable(options.variables, of: descriptor)
      // Gets the registration, and shows whether the server can be reached.
      try synchronize(with: vault, of: provider)
      try requirePlaces(in: vault, of: provider)
      if let name = options.account, !options.givesAway { try requireFree(name, of: provider, in: vault) }
    }
    let accounts = try accountsIfAny()
    let copies = try accounts?.accounts(of: provider).filter { $0.credential.vault != nil } ?? []
    if options.vault == nil, !copies.isEmpty {
      // The login is useless if the vault of the account that it is probably for does not take it.
      let meant = if let name = options.account { name } else { try accounts?.likely(at: provider)?.name }
      if let vault = copies.first(where: { $0.name == meant })?.credential.vault {
        try requireChangeable(provider, in: vault)
        try requirePlaces(in: vault, of: provider)
      }
    }
    let account = try login()
    let before = copies.first { $0.name == account.name }?.credential.vault
    guard let vault = options.vault ?? before else { return account }
    let replaces = vault == before || options.givesAway
    do throws(CredentialError) {
      return try share(account.name, of: provider, in: vault, replaces: replaces)
    } catch {
      throw .shared(.notInVault(provider: provider, account: account.name, vault: vault, replaces: replaces, error))
    }
  }

  func grant(_ options: LoginOptions, _ offered: [Grant]) throws(CredentialError) -> Grant {
    if let grant = options.grant {
      guard offered.contains(grant) else { throw .grantNotOffered(grant, offered: offered) }
      return grant
    }
    return offered.first ?? .authorizationCode
  }
}

extension Descriptor {
  /// Sets the authorization details of a login; throws if the provider does not know one of their types.
  mutating func request(_ details: AuthorizationDetails?) throws(CredentialError) {
    guard let details else { return }
    let known = authorizationDetails.types
    if let type = details.types.first(where: { !known.isEmpty && !known.contains($0) }) {
      throw .detailsNotSupported(provider: identifier, type: type, known: known)
    }
    authorizationDetails.requested = details
  }
}

/// A login to one provider.
struct Login {
  let source: CredentialSource
  let loaded: DescriptorLibrary.Loaded
  let permit: Permit
  let options: LoginOptions
  let grant: Grant
  /// The registration of a shipped provider that this login adds; `nil` if the provider was added before.
  let registration: Registration?
  /// The registration at the beginning of the login, or `registration`.
  let earlierRegistration: Registration?
  let earlierAccounts: [Account]  // At the beginning of the login.
  private let given: LoginNote
  let accounts: Accounts
  let id: AccountID
  let ending = LoginEnding()
  /// The account of an import that this login finished, whose refresh token is in no other place.
  var finished: String?

  var provider: String { id.provider }
  var client: Client { permit.client }

  /// Opens everything that a login requires before it contacts the provider. A token that cannot be stored is lost.
  init(
    _ source: CredentialSource, to provider: String, _ options: LoginOptions, hasToken: Bool = false
  ) throws(CredentialError) {
    if let name = options.account, !Accounts.isName(name) { throw .malformedAccount(name) }
    _ = try source.network()
    self.source = source
    var loaded = try source.descriptor(provider)
    let descriptor = loaded.descriptor
    given = LoginNote(
      scope: options.scope, importWords: options.importWords,
      variables: options.variables.filter { descriptor.variable($0.key)?.isSecret == false })
    var options = options
    if let there = try source.repeatedAccount(provider, options, hasToken: hasToken) {
      options.repeat(there.credential, in: loaded.descriptor)
    }
    try loaded.descriptor.request(options.details)
    self.options = options
    self.loaded = loaded
    let offered = loaded.descriptor.grants
    grant = hasToken ? loaded.descriptor.tokenGrant : try source.grant(options, offered)
    // Without the client, a signature would be wrong.
    let needsClient = grant.traits.needsClient && (!hasToken || grant.traits.tokenSecretField != nil)
    var began: (permit: Permit, registration: Registration?)
    var known: Registration?
    // Another process may change the provider meanwhile; and the first login after an update completes what is stored.
    repeat {
      known = try source.accountsIfAny()?.registration(of: provider)
      began = try source.permitToLogIn(loaded, needsClient: needsClient, variables: options.variables)
    } while try source.accountsIfAny()?.registration(of: provider) != known
    (permit, registration, earlierRegistration) = (began.permit, began.registration, began.registration ?? known)
    if let seen = options.seenDigest, seen != earlierRegistration?.digest(withClient: false) {
      throw .providerChanged(provider)
    }
    // The key of an older registration may be of no use. The user should know before a consent.
    if needsClient { try source.core(provider, permit.client.checkSecret()) }
    let accounts = try source.accounts(.readWrite)
    let id = AccountID(provider, options.account)
    try inStore(accounts.store.check([RecordIdentifier(.credential, of: id), RecordIdentifier(.pending, of: id)]))
    (self.accounts, self.id, earlierAccounts) = (accounts, id, try accounts.accounts(of: provider))
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
    let before = earlierAccounts
    let deadline = source.clock.monotonic() + options.timeout
    let likely = try likelyAccount()?.id
    var awaited = try AwaitedLogins(besides: id, accounts, options) { () throws(CredentialError) in
      guard let id = likely, let account = try accounts.readableAccount(id) else { return nil }
      return try isAlive(account) ? nil : id
    }
    // Returns an account that another process logged in meanwhile.
    func done() throws(CredentialError) -> Account? {
      // A caller that only needs a token accepts any account with a valid one.
      if options.unlessAlive {
        do throws(CredentialError) {
          let account = try accounts.resolve(id.name, provider: provider)
          return try isAlive(account) ? account : nil
        } catch {
          // A vault that another process keeps busy says nothing about the account.
          guard error.meansNoAccount else { throw error }
          return nil
        }
      }
      if let token = options.refreshToken { return try imported(token, since: before) }
      for account in try accounts.accounts(of: provider) where id.name == nil || id.name == account.name {
        let known = before.first { $0.name == account.name }
        // The other login may have asked for other scopes, for example.
        if account.isNew(since: before), asksFor(account.credential), account.revision != known?.revision,
          try isAlive(account)
        {
          return account
        }
      }
      return nil
    }
    while true {
      if let account = try awaited.account(source, until: deadline, for: user, or: done) { return account }
      if let account = try logIn(user, besides: others, until: deadline, after: awaited, or: done) { return account }
    }
  }

  /// Logs in as soon as no other process does so for the same name. Returns `nil` if this login must wait for others.
  private func logIn(
    _ user: any User, besides others: OtherProviders, until deadline: MonotonicMoment, after awaited: AwaitedLogins,
    or done: () throws(CredentialError) -> Account?
  ) throws(CredentialError) -> Account? {
    func result() throws(CredentialError) -> Account? {
      if let account = try done() { return account }
      try awaited.throwFailure()
      return nil
    }
    return try source.withAccountLock(
      id, timeout: max(deadline - source.clock.monotonic(), .zero),
      waiting: { user.tell(.waiting(for: $0, process: (try? accounts.note(id))?.process)) },
      isDone: { () throws(CredentialError) in
        if user.isCancelled { throw .interrupted }
        return try result().map { .some($0) }
      }
    ) { locked throws(CredentialError) in
      if let account = try result() { return account }
      if try awaited.areUnderWay() { return nil }
      if let there = try accounts.readableAccount(id) { _ = try source.takeAnswer(of: there, accounts, locked) }
      var note = try accounts.note(id)
      if let kept = unfinished(note) { return try commit(kept, in: locked.resume(), since: kept.loggedInAt, user) }
      var own = self
      own.finished = try finishImport(note, in: locked)
      if own.finished != nil {
        if let account = try result() { return account }
        note = nil
      }
      let before = try accounts.accounts(of: provider)
      // Fail before opening a browser.
      if client.descriptor.account.isEmpty {
        do throws(CredentialError) { try requireName() } catch {
          try drop(note, in: locked, removesNote: true)
          throw error
        }
      }
      if let note, note.isInterruption { source.notice(.beginsAnew(after: Interruption(id, note))) }
      // This login takes the place of an interrupted one, however it ends.
      try drop(note, in: locked, removesNote: note?.isOnlyLogin == true)
      if id.name != nil, let account = try endUnnamed() { own.finished = account }
      var usable: [String] = []
      for account in before where try !state(of: account).needsLogin { usable.append(account.name) }
      if !usable.isEmpty { user.tell(.alreadyLoggedIn(accounts: usable)) }

      let session = try LoginSession(
        self, user: user, others: others,
        person: PersonChoice(for: id, among: before, after: try accounts.failure(id)?.0),
        deadline: max(deadline, source.clock.monotonic() + .seconds(1)))
      // Without a name, the account is known only after the login.
      let start = source.clock.now()
      var begun = ExchangeNote(.login, startedAt: start, after: note)
      (begun.process, begun.options) = (ownProcess, given)
      FaultPoint.reach("login.begins")
      let pending = try locked.begin(begun, for: id.name == nil ? before.map(\.id) : [id])
      // A login with another lock may have begun since the last look. If the vault is busy, look again.
      guard let isSecond = try? awaited.beganEarlier(), !isSecond else {
        _ = try? pending.finish(.ended(noting: nil))
        return nil
      }
      FaultPoint.reach("login.noted")
      let credential: Credential
      do throws(CredentialError) { credential = try session.credential(pending) } catch {
        _ = try? pending.finish(error.mayHaveArrived ? .unfinished : .ended(noting: nil))
        share(error)
        throw error
      }
      FaultPoint.reach("login.stored")
      return try own.commit(
        credential, in: pending, since: start, clockAheadBy: session.clockDifference, with: session.element, user)
    }
  }

  /// How long an interrupted login can be continued.
  private static let unfinishedLifetime = Duration.seconds(600)

  /// Returns the saved result of an interrupted login if it matches this one, which saves a second consent.
  private func unfinished(_ note: ExchangeNote?) -> Credential? {
    let now = source.clock.now()
    // A token that must still be exchanged is useless by itself.
    guard client.descriptor.endpoints[.tokenExchange] == nil, let note,
      let kept = accounts.unfinishedLogin(note, id), asksFor(kept), client.made(kept), isCurrent(kept)
    else { return nil }
    // The refresh token that another tool has may be invalid since.
    if kept.importedFrom != nil { return kept }
    let isRecent = (.zero...Self.unfinishedLifetime).contains(now - kept.loggedInAt)
    return isRecent && AccountState(kept, at: now).isAlive ? kept : nil
  }

  /// Whether this login makes the same request as the login that got the credential.
  private func asksFor(_ credential: Credential) -> Bool {
    if let token = options.refreshToken { return credential.importedFrom == token }
    return options.demands.isEmpty && !credential.isGiven && credential.grant == grant
      && credential.importedFrom == nil && credential.variables == options.variables
      && credential.requestedDetails == client.descriptor.authorizationDetails.requested
      && credential.requestedScope == (options.scope.isEmpty ? client.descriptor.scope.requested : options.scope)
  }

  /// Stores the error for processes that wait for this login. They look for the error after this login's note was
  /// removed.
  func share(_ error: CredentialError) {
    let earlier = try? accounts.failure(id)
    guard let failure = LoginFailure(error, after: earlier?.0) else { return }
    try? accounts.apply([.store(failure.encoded, as: RecordIdentifier(.failure, of: id))])
  }
}
