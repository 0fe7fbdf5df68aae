import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText

extension CredentialSource {
  /// Returns an account with a valid token, refreshing it if needed. Never prompts. A token that is still valid needs
  /// no lock, descriptor or network. Callers must check the agreement.
  func freshAccount(
    _ name: String?, of provider: String, _ policy: RefreshPolicy = RefreshPolicy()
  ) throws(CredentialError) -> Account {
    try lookingFurther(at: provider) { () throws(CredentialError) in
      try freshAccount(name, of: provider, policy, in: accounts(neededFor: name, of: provider))
    }
  }

  private func freshAccount(
    _ name: String?, of provider: String, _ policy: RefreshPolicy, in accounts: Accounts
  ) throws(CredentialError) -> Account {
    let now = clock.now()
    func look() throws(CredentialError) -> (Account, ExchangeNote?) {
      let account = try accounts.resolve(name, provider: provider)
      return (account, try accounts.note(account.id))
    }
    let (account, note) = try inStore(accounts.store.snapshot(look)).get()
    let state = accounts.state(of: account, note, for: policy, at: now)
    switch state {
    case .usable, .ending, .refused:
      tellInterruption(note, of: account.id, accounts)
      if case .refused(let reason) = state { warn(account, needed(account, reason)) }
      return account
    case .loggingIn(let reason), .expired(let reason): throw needed(account, reason)
    case .expiring, .refreshable, .doubtful: break
    }
    do throws(CredentialError) {
      if state.isAlive { try requireAnswering(for: account) }
      return try refreshed(account, policy)
    } catch {
      guard state.isAlive, error.leavesTokenGood(of: account), isAlive(account) else { throw error }
      warn(account, error)
      return account
    }
  }

  func warn(_ account: Account, _ error: CredentialError) {
    let left = account.credential.expiresAt.map { $0 - clock.now() }
    notice(.notRefreshed(provider: account.provider, account: account.name, left: left, error))
  }

  /// Whether the token is still valid and current after waiting for a provider, and no saved answer exists.
  private func isAlive(_ account: Account) -> Bool {
    guard let accounts = try? accounts(), let current = try? accounts.account(account.id),
      current.credential.accessToken == account.credential.accessToken
    else { return false }
    return accounts.state(of: current, try? accounts.note(current.id), at: clock.now()).isAlive
  }

  /// Refreshes an account, unless its current token is the best available.
  func refreshed(_ account: Account, _ policy: RefreshPolicy) throws(CredentialError) -> Account {
    if let renewal { return try renewal(self)(account, policy) }
    guard account.credential.vault == nil, try refreshPlan(account, policy) == nil else { throw .networkNeeded }
    return account
  }

  /// Refreshes an account. One process does so at a time; the others wait and use its result.
  func renew(_ account: Account, _ policy: RefreshPolicy) throws(CredentialError) -> Account {
    if let vault = account.credential.vault { return try renewedCopy(account, from: vault, policy) }
    return try followingMetadata(of: account.provider) { () throws(CredentialError) in
      guard let plan = try refreshPlan(account, policy) else { return account }
      return try refreshed(account, policy, with: plan)
    }
  }

  /// Checks everything that is known without a network. Returns `nil` if the current token is the best available.
  func refreshPlan(_ account: Account, _ policy: RefreshPolicy) throws(CredentialError) -> RefreshPlan? {
    let loaded = try descriptor(account.provider)
    let known = try accountsIfAny()?.note(account.id)
    if let accounts = try accountsIfAny(),
      try refreshing(account, note: known, loaded: loaded, for: policy, in: accounts) != nil
    {
      return nil
    }
    _ = try network()
    return RefreshPlan(loaded: loaded, known: known, permit: try permit(toRefresh: account, loaded))
  }

  private func permit(
    toRefresh account: Account, _ loaded: DescriptorLibrary.Loaded
  ) throws(CredentialError) -> Permit {
    let permit = try permit(.refresh, loaded, variables: account.credential.variables)
    if !permit.client.made(account.credential) { throw needed(account, .otherIssuer) }
    return permit
  }

  func refreshed(
    _ account: Account, _ policy: RefreshPolicy, with plan: RefreshPlan
  ) throws(CredentialError) -> Account {
    let (loaded, known) = (plan.loaded, plan.known)
    var permit = plan.permit
    let accounts = try accounts(.readWrite)
    // Another process's new token satisfies a caller that asked for a refresh.
    func renewed() throws(CredentialError) -> Account? {
      let now = try accounts.existing(account.id)
      return now.revision != account.revision && isNewEnough(now, policy) ? now : nil
    }
    return try withAccountLock(
      account.id, timeout: policy.lockTimeout,
      isDone: { () throws(CredentialError) in
        if let renewed = try renewed() { return renewed }
        // A login may hold the lock for minutes.
        return try refreshing(
          accounts.existing(account.id), note: accounts.note(account.id), loaded: loaded, for: policy, in: accounts)
      }
    ) { locked throws(CredentialError) in
      if let renewed = try renewed() { return renewed }
      var current = try accounts.existing(account.id)
      let note = try accounts.note(account.id)
      // If another process was refused meanwhile, the provider would see a second try as a reused token.
      if let refusal = note?.refusal, refusal != known?.refusal { throw needed(account, refusal.reason) }
      if let taken = try takeAnswer(of: current, accounts, locked) {
        current = taken
        if isNewEnough(current, policy) { return current }
      } else {
        tellUnfinishedLogin(note, account.id)
        if let unused = note.flatMap({ accounts.unfinishedLogin($0, account.id) }) {
          drop(unused, of: account.provider, with: nil)
        }
      }
      let ours = try accounts.note(account.id)
      if let current = try refreshing(current, note: ours, loaded: loaded, for: policy, in: accounts, isLocked: true) {
        return current
      }
      if current.revision != account.revision {
        // A login may have replaced the refresh token since the plan, after the provider moved to another server.
        permit = try self.permit(toRefresh: current, descriptor(current.provider))
        try plan.accepts(accounts.registration(of: current.provider))
      }
      return try refresh(current, with: permit, in: locked)
    }
  }

  func isNewEnough(_ account: Account, _ policy: RefreshPolicy) -> Bool {
    AccountState(account.credential, for: RefreshPolicy(validity: policy.validity), at: clock.now()) == .usable
  }

  /// Returns `nil` if the account must be refreshed, or the account if its current token is the best available.
  private func refreshing(
    _ account: Account, note: ExchangeNote?, loaded: DescriptorLibrary.Loaded, for policy: RefreshPolicy,
    in accounts: Accounts, isLocked: Bool = false
  ) throws(CredentialError) -> Account? {
    let refreshes = loaded.descriptor.refreshes(account.credential)
    let state = accounts.state(
      of: account, note, isLocked: isLocked, refreshes: refreshes, for: policy, at: clock.now())
    if let reason = state.loginReason { throw needed(account, reason) }
    return state.isRefreshed ? nil : account
  }

  package func canRefresh(_ account: Account) -> Bool {
    // If the descriptor is unreadable, the refresh reports why.
    account.credential.vault != nil
      || account.isRefreshable(at: clock.now())
        && (try? home.library.load(account.provider))?.descriptor.refreshes(account.credential) ?? true
  }

  /// Whether only a login replaces the account's token.
  package func needsLogin(_ account: Account) -> Bool {
    guard canRefresh(account), let accounts = try? accountsIfAny() else { return true }
    let note = (try? accounts.note(account.id)) ?? nil
    return accounts.state(of: account, note, for: RefreshPolicy(always: true), at: clock.now()).needsLogin
  }

  private func needed(_ account: Account, _ reason: CredentialError.LoginReason) -> CredentialError {
    let reason = account.credential.typedWords.map { .typed($0, reason) } ?? reason
    return .loginNeeded(provider: account.provider, account: account.name, reason)
  }

  // MARK: The exchange

  private func refresh(
    _ account: Account, with permit: Permit, in locked: borrowing LockedAccount
  ) throws(CredentialError) -> Account {
    FaultPoint.reach("refresh.locked")
    secrets.learn(account.credential)
    let pending = try locked.begin(ExchangeNote(.refresh, startedAt: clock.now()))
    FaultPoint.reach("refresh.noted")
    let renewed = try Signals.deferring(pending) { pending throws(CredentialError) in
      do throws(CredentialError) { return try finish(pending, asking: permit, for: account) } catch {
        if case .oauth(.elementUnknown, _) = error { throw needed(account, .elementGone) }
        throw error
      }
    }
    FaultPoint.reach("refresh.committed")
    return renewed
  }

  private func finish(
    _ pending: consuming PendingExchange, asking permit: Permit, for account: Account
  ) throws(CredentialError) -> Account {
    let client = permit.client
    let old = account.credential
    let outcome: TokenOutcome
    do throws(CredentialError) {
      try requireLease(account.id)
      if let renewed = try core(account.provider, client.renewed(old, nonce: nonce)) {
        outcome = .issued(renewed, unreadable: [])
      } else {
        outcome = try ask(permit, old.grant.refreshEndpoint, refreshing: old) { nonce throws(OAuthError) in
          try client.refreshRequest(old, nonce: nonce)
        }
      }
    } catch {
      _ = try? pending.finish(error.mayHaveArrived ? .unfinished : .ended(noting: nil))
      throw error
    }
    var (credential, unreadable): (Credential, [ResponseField])
    var failure: CredentialError?
    switch outcome {
    case .issued(let token, let fields):
      (credential, unreadable) = (token, fields)
      if client.exchangesToken(afterRefreshOf: token) {
        // The access token is useless, but its refresh token may be the only valid one.
        credential.isRejected = true
        pending.keep(credential, after: old.accessToken)
        do throws(CredentialError) {
          try requireLease(account.id)
          let exchanged = try ask(permit, .tokenExchange, refreshing: credential) { nonce throws(OAuthError) in
            try client.tokenExchangeRequest(token, nonce: nonce)
          }
          if case .refused(_, let response, _) = exchanged {
            throw .loginNeeded(
              provider: account.provider, account: account.name, .refreshRefused(response.words.map(secrets.masked)))
          }
          (credential, unreadable) = try core(account.provider, exchanged.issued())
        } catch {
          failure = error
        }
      }
    case .rotated(let token, let error):
      (credential, unreadable) = (token, [])
      failure = self.failure(error, of: account.provider)
    case .refused(_, let response, let isFinal):
      let refusal = ExchangeNote.Refusal(
        at: clock.now(), words: response.words.map(secrets.masked),
        isAfterInterruption: pending.before.map { ExchangeNote(decoding: $0).losesRefresh } ?? false,
        ended: isFinal ? old.refreshedWith : nil)
      let note = ExchangeNote(.refresh, startedAt: clock.now(), refusal: refusal)
      _ = try? pending.finish(.ended(noting: note.encoded))
      throw needed(account, refusal.reason)
    case .failed(let error):
      _ = try? pending.finish(.ended(noting: nil))
      if old.proofKey == nil, error.demandsProof {
        let isDescribed = client.descriptor.tokenBinding.needsKey
        throw .proofNeeded(provider: account.provider, account: account.name, isDescribed: isDescribed)
      }
      throw self.failure(error, of: account.provider)
    }
    credential = learn(credential)
    pending.keep(credential, after: old.accessToken)
    FaultPoint.reach("refresh.kept")
    // If a wrong signature costs the answer, its refresh token may still be the only valid one.
    if failure == nil {
      do throws(CredentialError) {
        credential = try verifyingIDToken(of: credential, with: permit).credential
      } catch {
        // Any other error leaves the ID token unverified, and the next use tries again.
        if case .oauth(.idToken, _) = error {
          (credential, failure) = (old.rotated(by: credential), error)
          pending.keep(credential, after: old.accessToken)
        }
      }
    }
    if failure == nil, client.asksIdentity(afterRefreshOf: old.grant) {
      updateFields(of: &credential, permit, account: account.name)
    }
    keepNonces(in: &credential, after: old, permit)
    let renewed = try commit(credential, of: account, pending)
    if let failure { throw failure }
    if !unreadable.isEmpty { notice(.unreadable(provider: account.provider, fields: unreadable)) }
    return renewed
  }

  /// Asks the identity endpoint again for the fields that it keeps. Without an answer, the earlier fields stay.
  private func updateFields(of credential: inout Credential, _ permit: Permit, account name: String) {
    let client = permit.client
    do throws(CredentialError) {
      let current = credential
      let response = try send(to: permit, bound: client.binding(of: current)) { nonce throws(OAuthError) in
        try client.identityRequest(current, nonce: nonce)
      }
      let fields = try core(permit.provider, client.identity(response, of: current)).kept
      credential.kept.merge(fields.filter { !secrets.reveals($0.value) }) { _, new in new }
    } catch {
      notice(.unchecked(account: name, error))
    }
  }

  /// Throws if another machine may have taken over the account, because it would use up the same refresh token.
  private func requireLease(_ id: AccountID) throws(CredentialError) {
    guard let shared, !shared.store.stillHolds(id) else { return }
    throw .vault(.server(.overtaken(id), vault: shared.name))
  }

  private func ask(
    _ permit: Permit, _ kind: EndpointKind, refreshing credential: Credential,
    making request: (RequestNonce) throws(OAuthError) -> HTTPRequest
  ) throws(CredentialError) -> TokenOutcome {
    let response = try send(to: permit, bound: permit.client.binding(of: credential), request)
    if kind != .tokenExchange { FaultPoint.reach("refresh.answered") }
    return permit.client.outcome(response, kind, refreshing: credential, now: clock.now())
  }

  /// Stores a refresh's result, unless a login meanwhile stored a newer one.
  private func commit(
    _ credential: Credential, of old: Account, _ pending: consuming PendingExchange
  ) throws(CredentialError) -> Account {
    let revision: Int64?
    do throws(CommitError) {
      revision = try pending.finish(
        .renewed(
          credential.encoded,
          replacing: { stored in
            let current = try? Credential(decoding: stored)
            return current == nil || current?.accessToken == old.credential.accessToken
          }, [noting(.refresh, of: old.provider, account: old.name)]))
    } catch {
      throw .uncommitted(provider: old.provider, account: old.name, isKept: error.isKept, error.reason)
    }
    guard let revision else { return try accounts().existing(old.id) }
    ownToken = credential.accessToken
    return Account(provider: old.provider, name: old.name, credential: credential, revision: revision)
  }

  /// Commits the answer to a refresh whose process died before the commit; `nil` if no answer was saved.
  func takeAnswer(
    of account: Account, _ accounts: Accounts, _ locked: borrowing LockedAccount
  ) throws(CredentialError) -> Account? {
    guard let kept = accounts.answer(of: account) else { return nil }
    return try commit(kept.credential, of: account, locked.resume())
  }

  /// Moves the saved answers next to the vault into it. An answer to a login goes into the login's note, because only
  /// the user or the provider can name the account.
  func takeAnswersIn(_ accounts: Accounts) throws(CredentialError) {
    for account in try accounts.accounts(of: nil) where accounts.answer(of: account) != nil {
      try withAccountLock(account.id) { locked throws(CredentialError) in
        if let current = try accounts.account(account.id) { _ = try takeAnswer(of: current, accounts, locked) }
      }
    }
    // Skip accounts with a running login, which has no answer yet.
    for id in try accounts.pending(of: nil) where accounts.keptAnswer(id) != nil {
      try withAccountLock(id) { locked throws(CredentialError) in
        guard var note = try accounts.note(id), note.exchange == .login, let kept = accounts.keptAnswer(id),
          kept.previous == nil
        else { return }
        note.answer = kept
        do throws(CommitError) { try locked.resume().finish(.ended(noting: note.encoded)) } catch {
          throw .vault(error.reason)
        }
      }
    }
  }
}

extension Descriptor {
  fileprivate func refreshes(_ credential: Credential) -> Bool {
    // A private key makes the token if no endpoint does.
    credential.grant.traits.signsJWT || credential.vault != nil || endpoints[credential.grant.refreshEndpoint] != nil
  }
}

extension CredentialError {
  /// Whether a failed refresh leaves the current token valid: the provider did not answer, or refused only the refresh.
  fileprivate func leavesTokenGood(of account: Account) -> Bool {
    switch self {
    // The vault of a copy has no newer token either.
    case .loginNeeded where account.credential.vault != nil, .uncommitted where account.credential.vault != nil: true
    case .http, .oauth, .proofNeeded, .lockTimedOut, .notAdded, .provider, .malformedRegistration, .subjectToken: true
    case .loginNeeded(_, _, .refreshRefused), .loginNeeded(_, _, .refreshInterrupted),
      .loginNeeded(_, _, .elementGone):
      true
    case .vault(.conflict), .vault(.absent): false
    case .vault: true
    default: false
    }
  }
}
