import Cryptography
import HTTP
import OAuth
import Platform
import Descriptors
import Vault

/// What a caller wants of a token.
public struct Freshen: Sendable {
  /// Seconds that the token has to live from now on; `nil`: as the provider's descriptor says.
  public var validity: Int64?
  /// Seconds that the token should live from now on, where a token of this provider lives for twice as long, and a longer
  /// one is to be had.
  public var comfort: Int64
  /// Whether to refresh although the token is good.
  public var always: Bool
  /// Whether to ask a provider again that has said that it will never take the refresh token.
  public var asksAgain: Bool
  /// Seconds that another process is waited for that refreshes the same account.
  public var timeout: Int64

  /// A token that is good for the descriptor's margin.
  public init(
    validity: Int64? = nil, comfort: Int64 = 0, always: Bool = false, asksAgain: Bool = false, timeout: Int64 = 60
  ) {
    self.validity = validity
    self.comfort = comfort
    self.always = always
    self.asksAgain = asksAgain
    self.timeout = timeout
  }
}

extension CredentialSource {
  /// The account with a token that is good, refreshed first if it must be. Never asks a person.
  ///
  /// A token that is good is handed out without a lock, a descriptor or a network.
  ///
  /// - Throws: `CredentialError.loginNeeded` when only a person can help; `.networkNeeded` before anything was done, in a
  ///   program without a network.
  public func freshAccount(
    _ name: String?, of provider: String, _ wish: Freshen = Freshen()
  ) throws(CredentialError) -> Account {
    guard let accounts = try accountsIfAny() else {
      throw .loginNeeded(provider: provider, account: name, .noCredential)
    }
    let now = clock.now()
    var note: ExchangeNote?
    let account = try accounts.atOnce { () throws(CredentialError) in
      let account = try accounts.resolve(name, provider: provider)
      note = try accounts.note(provider, account.name)
      return account
    }
    let isGood = !wish.always && account.credential.isUsable(at: now, for: wish.validity, comfort: wish.comfort)
    if isGood, try !isSuperseded(account, note, accounts) { return account }
    // Nobody asked for more than a token that is good.
    let isEnough = !wish.always && wish.validity == nil && account.credential.isUsable(at: now, for: 0)
    // A better one is not to be had.
    if isEnough, !account.credential.isRefreshable(at: now) { return account }
    do throws(CredentialError) {
      return try refreshed(account, wish)
    } catch {
      guard isEnough, error.leavesTokenGood, let left = secondsLeft(account) else { throw error }
      notice(.notRefreshed(provider: provider, account: account.name, secondsLeft: left, error))
      return account
    }
  }

  /// For how long the token is good still; `nil` if it is over, or is not the account's any more: it may have died while a
  /// provider was waited for, somebody may have been refused with it, or an answer in its place may wait.
  private func secondsLeft(_ account: Account) -> Int64? {
    let token = account.credential.accessToken
    guard let accounts = try? accounts(), let now = try? accounts.account(account.name, of: account.provider),
      now.credential.accessToken == token, now.credential.isUsable(at: clock.now(), for: 0),
      accounts.answer(of: now) == nil
    else { return nil }
    return now.credential.expiresAt.map { $0 - clock.now() }
  }

  /// The account with a new token. One process at a time does so for an account; who comes late gets what the first one
  /// got.
  func refreshed(_ account: Account, _ wish: Freshen) throws(CredentialError) -> Account {
    let started = clock.now()
    try requireRefreshable(account)
    // An answer that waits beside the vault goes before any refusal.
    if !wish.asksAgain, let accounts = try accountsIfAny(), let refusal = try accounts.refusal(account),
      accounts.answer(of: account) == nil
    {
      throw needed(account, refusal)
    }
    _ = try network()
    let client = try client(account.provider, variables: account.credential.variables)
    let vault = try accounts(.readWrite)
    // What somebody else stored since we looked is new enough for who wanted it new.
    func renewed() throws(CredentialError) -> Account? {
      guard let now = try vault.account(account.name, of: account.provider) else {
        throw .loginNeeded(provider: account.provider, account: account.name, .noCredential)
      }
      guard now.revision != account.revision, now.credential.isUsable(at: clock.now(), for: wish.validity) else {
        return nil
      }
      return now
    }
    var hasWaited = false
    func waits(_ seconds: Double) {
      hasWaited = true
      notice(.waiting(provider: account.provider, account: account.name, seconds: seconds))
    }
    return try exclusively(
      account.provider, account.name, seconds: wish.timeout, waiting: waits, isDone: renewed
    ) { () throws(CredentialError) in
      if let renewed = try renewed() { return renewed }
      // What was refused to the one whom we waited for would be refused to us, and the provider would count it as reuse.
      if hasWaited, let refusal = try vault.note(account.provider, account.name)?.refusal, refusal.at >= started {
        throw needed(account, refusal)
      }
      guard let current = try vault.account(account.name, of: account.provider) else {
        throw .loginNeeded(provider: account.provider, account: account.name, .noCredential)
      }
      // An earlier process died between the provider's answer and its commit.
      if let kept = vault.answer(of: current) {
        let renewed = try commit(kept.credential, of: current, vault, isKept: true)
        if renewed.credential.isUsable(at: clock.now(), for: wish.validity) { return renewed }
        return try refresh(renewed, client, vault)
      }
      if !wish.asksAgain, let refusal = try vault.refusal(current) { throw needed(account, refusal) }
      try tellUnfinishedLogin(account.provider, account.name, vault)
      return try refresh(current, client, vault)
    }
  }

  /// Whether a refresh can be tried: there is something to refresh the token with, and the provider has a place for it.
  public func canRefresh(_ account: Account) -> Bool {
    guard account.credential.isRefreshable(at: clock.now()) else { return false }
    // Where the descriptor cannot be read, the refresh says why.
    guard let descriptor = (try? home.library.load(account.provider))?.descriptor else { return true }
    return descriptor.endpoints[account.credential.grant == .clientCredentials ? .clientCredentials : .refresh] != nil
  }

  private func requireRefreshable(_ account: Account) throws(CredentialError) {
    guard !canRefresh(account) else { return }
    let reason: CredentialError.LoginReason =
      if account.credential.isRejected {
        .rejected
      } else if account.credential.isUsable(at: clock.now(), for: 0) {
        .notRefreshable
      } else {
        .expired
      }
    throw .loginNeeded(provider: account.provider, account: account.name, reason)
  }

  /// What came of a refresh.
  private struct Refreshed {
    var account: Account
    /// Fields of the answer that cannot be read.
    var unreadable: [ResponseField]
    /// Why the answer is none, though there was a refresh token in it, which is kept.
    var unusable: CredentialError?
  }

  /// The exchange itself, with the lock held.
  private func refresh(
    _ account: Account, _ client: Client, _ accounts: Accounts
  ) throws(CredentialError) -> Account {
    let provider = account.provider
    try requireRefreshable(account)
    let request = try core(provider) { () throws(OAuthError) in
      account.credential.grant == .oauth1
        ? try client.sessionRefreshRequest(account.credential, nonce: nonce)
        : try client.refreshRequest(account.credential)
    }
    FaultPoint.reach("refresh.locked")
    var before = try accounts.note(provider, account.name)
    secrets.learn(account.credential)
    let place = try accounts.begin(ExchangeNote(.refresh, startedAt: clock.now()), provider, account.name)
    FaultPoint.reach("refresh.noted")
    let refreshed: Refreshed
    do throws(CredentialError) {
      refreshed = try Signals.deferring { () throws(CredentialError) in
        try exchange(request, of: account, client, accounts, place, &before)
      }
    } catch {
      throw noting(error, of: account, accounts, before)
    }
    FaultPoint.reach("refresh.committed")
    if !refreshed.unreadable.isEmpty { notice(.unreadable(provider: provider, fields: refreshed.unreadable)) }
    if let unusable = refreshed.unusable { throw unusable }
    return refreshed.account
  }

  /// Asks the provider, and commits what it answers.
  ///
  /// - Parameter before: what was known before; `nil` from the moment on when there is another refresh token.
  private func exchange(
    _ request: HTTPRequest, of account: Account, _ client: Client, _ accounts: Accounts, _ place: borrowing AnswerFile,
    _ before: inout ExchangeNote?
  ) throws(CredentialError) -> Refreshed {
    let (provider, old) = (account.provider, account.credential)
    let kind: EndpointKind = old.grant == .clientCredentials ? .clientCredentials : .refresh
    let (credential, unreadable, unusable) = try answer(request, kind, of: old, client, isKeptIfRotated: true)
    let next =
      unusable == nil
      ? try core(provider) { () throws(OAuthError) in try client.tokenExchangeRequest(afterRefresh: credential) } : nil
    guard let next else {
      let isKept = keep(credential, of: account, place)
      return Refreshed(
        account: try commit(credential, of: account, accounts, isKept: isKept), unreadable: unreadable,
        unusable: unusable)
    }
    // The token itself is no use, but the refresh token beside it may be the only good one.
    var unfinished = credential
    unfinished.isRejected = true
    let isUnfinishedKept = keep(unfinished, of: account, place)
    let exchanged: (credential: Credential, unreadable: [ResponseField], unusable: CredentialError?)
    do throws(CredentialError) {
      exchanged = try answer(next, .tokenExchange, of: credential, client, isKeptIfRotated: false)
    } catch {
      _ = try commit(unfinished, of: account, accounts, isKept: isUnfinishedKept)
      before = nil
      throw error
    }
    let isKept = keep(exchanged.credential, of: account, place)
    return Refreshed(
      account: try commit(exchanged.credential, of: account, accounts, isKept: isKept),
      unreadable: exchanged.unreadable)
  }

  private func answer(
    _ request: HTTPRequest, _ kind: EndpointKind, of previous: Credential, _ client: Client, isKeptIfRotated: Bool
  ) throws(CredentialError) -> (credential: Credential, unreadable: [ResponseField], unusable: CredentialError?) {
    let provider = client.descriptor.identifier
    let response = try send(request, provider: provider)
    if kind != .tokenExchange { FaultPoint.reach("refresh.answered") }
    let outcome = client.outcome(response, kind, refreshing: previous, now: clock.now())
    return try core(provider) { () throws(OAuthError) in
      switch outcome {
      case .issued(let credential, let unreadable): return (credential, unreadable, nil)
      case .rotated(let credential, let error):
        guard isKeptIfRotated else { throw error }
        return (credential, [], .oauth(error.masked(by: secrets), provider: provider))
      case .refused(let kind, let refusal, _): throw .refused(kind, refusal)
      case .failed(let error): throw error
      case .noAnswer: throw .notRefreshable
      }
    }
  }

  /// Puts an answer beside the vault.
  ///
  /// - Returns: whether it is there; otherwise the commit is the only chance.
  private func keep(_ credential: Credential, of account: Account, _ place: borrowing AnswerFile) -> Bool {
    defer { FaultPoint.reach("refresh.kept") }
    let answer = KeptAnswer(credential, after: account.credential.accessToken)
    return (try? place.fill(answer.encoded, isForced: false)) != nil
  }

  /// Notes what is known after a refresh that failed.
  ///
  /// - Parameter before: what was known before, and is known still.
  /// - Returns: the error for who wanted the token.
  private func noting(
    _ error: CredentialError, of account: Account, _ accounts: Accounts, _ before: ExchangeNote?
  ) -> CredentialError {
    let refusal = refusal(error, of: account).map { refusal in
      ExchangeNote.Refusal(
        at: clock.now(), words: refusal.words, isAfterInterruption: before?.isInterruption ?? false,
        ended: isFinal(refusal) ? account.credential.refreshedWith : nil)
    }
    if !isAnswerLost(error) {
      let note = refusal.map { ExchangeNote(.refresh, startedAt: clock.now(), refusal: $0) } ?? before
      // Where this fails the note stays as it is, and says less than we know.
      try? accounts.setNote(note, account.provider, account.name)
      accounts.vault.removeAnswer(provider: account.provider, account: account.name)
    }
    return refusal.map { needed(account, $0) } ?? error
  }

  /// Whether a refusal says in so many words that the refresh token is over (RFC 6749, 5.2; RFC 6750, 3.1; the extension
  /// "problem reporting" of OAuth 1.0a). A status alone may come from whoever stands between us and the provider.
  private func isFinal(_ refusal: ErrorResponse) -> Bool {
    [
      "invalid_grant", "invalid_token", "token_used", "token_expired", "token_revoked", "token_rejected",
      "permission_denied",
    ].contains(refusal.code)
  }

  /// Puts the answers that wait beside the vault into it: those to refreshes that nobody committed. Those to logins need a
  /// person, or the provider, before they are an account's, and go to the note of the login.
  ///
  /// - Throws: `CredentialError.lockTimedOut`, `.vault`.
  func takeAnswersIn(_ accounts: Accounts) throws(CredentialError) {
    for account in try accounts.accounts(of: nil) where accounts.answer(of: account) != nil {
      _ = try exclusively(
        account.provider, account.name, seconds: 60,
        waiting: { notice(.waiting(provider: account.provider, account: account.name, seconds: $0)) },
        isDone: { () throws(CredentialError) -> Account? in nil }
      ) { () throws(CredentialError) -> Account? in
        guard let current = try accounts.account(account.name, of: account.provider),
          let kept = accounts.answer(of: current)
        else { return nil }
        return try commit(kept.credential, of: current, accounts, isKept: true)
      }
    }
    let pending = try inVault { () throws(VaultError) in try accounts.vault.records(.pending, provider: nil) }
    for identifier in pending.map(\.identifier) {
      let (provider, name) = (identifier.provider, identifier.account)
      // Who is at a login now has no answer yet, and is not waited for.
      guard accounts.keptAnswer(provider, name) != nil else { continue }
      try exclusively(
        provider, name.isEmpty ? nil : name, seconds: 60,
        waiting: { notice(.waiting(provider: provider, account: name.isEmpty ? nil : name, seconds: $0)) },
        isDone: { () throws(CredentialError) -> Void? in nil }
      ) { () throws(CredentialError) in
        guard var note = try accounts.note(provider, name), note.exchange == .login,
          let kept = accounts.keptAnswer(provider, name), kept.previous == nil
        else { return }
        note.answer = kept
        try accounts.setNote(note, provider, name)
        accounts.vault.removeAnswer(provider: provider, account: name)
      }
    }
  }

  /// Keeps what a refresh brought, unless somebody logged in meanwhile: then that is the newer one, and stays.
  private func commit(
    _ credential: Credential, of old: Account, _ accounts: Accounts, isKept: Bool
  ) throws(CredentialError) -> Account {
    let (provider, name) = (old.provider, old.name)
    var precondition = Precondition.revision(old.revision)
    // What is not kept now is lost: a disk that is full or busy gets some more seconds.
    var pauses: ArraySlice = [0.1, 0.4, 1, 2]
    while true {
      do throws(VaultError) {
        let stored = try accounts.vault.apply([
          .store(credential.encoded, as: Accounts.identifier(provider, name), if: precondition),
          .remove(Accounts.pending(provider, name), if: .any), noting(.refresh, provider, name),
        ])
        accounts.vault.removeAnswer(provider: provider, account: name)
        return Account(provider: provider, name: name, credential: credential, revision: stored)
      } catch .conflict(let identifier, let actual) {
        guard let current = try? accounts.account(name, of: provider) else {
          // A record that was damaged meanwhile is mended by storing it anew. An account that is gone (a backup was put back)
          // stays gone.
          if precondition != .any, (try? accounts.vault.isLost(identifier)) == true {
            precondition = .any
            continue
          }
          try? accounts.setNote(nil, provider, name)
          accounts.vault.removeAnswer(provider: provider, account: name)
          throw .uncommitted(
            provider: provider, account: name, isKept: false, .conflict(identifier, actual: actual))
        }
        guard current.credential.accessToken == old.credential.accessToken else {
          // It may be ours: a commit can fail behind the moment from which on it counts.
          try? accounts.setNote(nil, provider, name)
          accounts.vault.removeAnswer(provider: provider, account: name)
          return current
        }
        // It is the old token still, of which somebody noted that it was refused.
        precondition = .revision(current.revision)
      } catch {
        guard let pause = pauses.popFirst() else {
          throw .uncommitted(provider: provider, account: name, isKept: isKept, error)
        }
        do { try clock.sleep(seconds: pause) } catch { pauses = [] }
      }
    }
  }

  /// Whether the provider may have given an answer that was not kept; the note about it stays then.
  func isAnswerLost(_ error: CredentialError) -> Bool {
    if case .uncommitted = error { return true }
    guard case .http(.unreachable(_, let reason), _) = error else { return false }
    switch reason {
    case .timedOut, .broken, .other: return true
    case .nameNotResolved, .connectionRefused, .tls, .proxy: return false
    }
  }

  /// The provider's refusal when it will never take this refresh token again; `nil` for another error.
  private func refusal(_ error: CredentialError, of account: Account) -> ErrorResponse? {
    guard case .oauth(.refused(_, let refusal), _) = error else { return nil }
    let isGrantOver =
      refusal.code == "invalid_grant" || refusal.code == "invalid_token"
      || (account.credential.grant == .oauth1 && refusal.status == 401)
      || ["http_400", "http_401", "http_403"].contains(refusal.code)
    guard isGrantOver, account.credential.grant != .clientCredentials else { return nil }
    return refusal
  }

  private func needed(_ account: Account, _ refusal: ExchangeNote.Refusal) -> CredentialError {
    .loginNeeded(
      provider: account.provider, account: account.name,
      refusal.isAfterInterruption ? .refreshInterrupted(refusal.words) : .refreshRefused(refusal.words))
  }

  /// Notes that somebody was refused with a token, so that it is refreshed before it is handed out again. Another token
  /// than the one that is kept now is not touched: a newer one is not worse because an older one was refused.
  ///
  /// - Throws: `CredentialError.vault`.
  public func reject(_ token: Secret, account name: String?, of provider: String) throws(CredentialError) {
    let accounts = try accounts(.readWrite)
    for var account in try accounts.accounts(of: provider)
    where (name == nil || name == account.name) && account.credential.accessToken == token {
      account.credential.isRejected = true
      let identifier = Accounts.identifier(provider, account.name)
      do throws(VaultError) {
        try accounts.vault.apply([
          .store(account.credential.encoded, as: identifier, if: .revision(account.revision)),
          noting(.refused, provider, account.name),
        ])
      } catch .conflict {
        continue
      } catch {
        throw .vault(error)
      }
    }
  }
}

extension CredentialError {
  /// Whether a refresh that failed like this says nothing against the token that there is: nobody was reached, somebody
  /// is not able to answer, or what was refused is the refresh.
  fileprivate var leavesTokenGood: Bool {
    switch self {
    case .http, .oauth, .lockTimedOut, .notAdded, .provider, .malformedRegistration: true
    case .loginNeeded(_, _, .refreshRefused), .loginNeeded(_, _, .refreshInterrupted): true
    case .vault(.conflict), .vault(.absent): false
    case .vault: true
    default: false
    }
  }
}
