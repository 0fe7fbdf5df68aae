import CredmgrOAuth
import CredmgrStore
import CredmgrText

/// How long the caller needs the token to stay valid.
package struct RefreshPolicy: Sendable {
  /// The required remaining lifetime; `nil` for the descriptor's default.
  package var validity: Duration?
  /// The preferred remaining lifetime, limited to half the lifetime of this provider's tokens.
  package var preferredLifetime: Duration
  package var always: Bool
  /// With `always`, whether a newer token that another machine of a shared vault got is enough.
  package var acceptsNewer: Bool
  /// Whether to retry a refresh token that the provider has permanently refused.
  package var asksAgain: Bool
  package var lockTimeout: Duration  // How long to wait for another process's refresh of the same account.

  package init(
    validity: Duration? = nil, preferredLifetime: Duration = .zero, always: Bool = false,
    acceptsNewer: Bool = false, asksAgain: Bool = false, lockTimeout: Duration = .seconds(60)
  ) {
    self.validity = validity
    self.preferredLifetime = preferredLifetime
    self.always = always
    self.acceptsNewer = acceptsNewer
    self.asksAgain = asksAgain
    self.lockTimeout = lockTimeout
  }
}

/// The state of an account. Only this file computes it; every command and the library depend on it
/// (docs/account-states.md).
package enum AccountState: Sendable, Equatable {
  case usable  // The token is valid for as long as needed.
  case expiring  // The token is valid for less time and will be refreshed first.
  case ending  // The token is valid for less time and cannot be refreshed. credmgr returns it until it expires.
  case refused(CredentialError.LoginReason)  // The token is valid, but the provider permanently refuses to refresh it.
  case refreshable  // The token has expired or was rejected, and can be refreshed.
  /// As `refreshable`, but the provider refused the last refresh without saying that it always will.
  case doubtful(CredentialError.LoginReason)
  case loggingIn(CredentialError.LoginReason)  // As `expired`, or locked by a login that is running.
  case expired(CredentialError.LoginReason)  // Only a login helps.

  /// Computes the state. `note` is the account's `pending` record. `answerWaits` says whether a saved answer will
  /// replace the token, or may do so for the copy of a shared account, whose token stays valid. `refreshes` says
  /// whether the descriptor has a refresh endpoint, and `isHeld` whether a login holds the account, so no other
  /// process can refresh it.
  init(
    _ credential: Credential, note: ExchangeNote? = nil, answerWaits: Bool = false, refreshes: Bool = true,
    isHeld: Bool = false, isLoggingIn: @autoclosure () -> Bool = false, for wish: RefreshPolicy = RefreshPolicy(),
    at now: Moment
  ) {
    let wouldRefresh = refreshes && credential.isRefreshable(at: now)
    let canRefresh = wouldRefresh && !isHeld
    let refusal = wish.asksAgain ? nil : note?.refusal(of: credential)
    switch (credential.life(for: wish, canRefresh: canRefresh && refusal == nil, at: now), refusal?.reason) {
    case _ where answerWaits && credential.vault == nil: self = .refreshable
    case (.wanted, nil): self = answerWaits && canRefresh ? .expiring : .usable
    case (.shorter, nil): self = canRefresh ? .expiring : .ending
    case (.wanted, let reason?), (.shorter, let reason?): self = .refused(reason)
    case (.over, nil) where canRefresh:
      let doubt = wish.asksAgain ? nil : note?.doubt
      self = doubt.map { .doubtful($0.reason) } ?? .refreshable
    case (.over, let reason):
      let isAlive = credential.expiresAt.map { $0 > now } ?? true
      let ended: CredentialError.LoginReason =
        credential.isRejected ? .rejected : isAlive ? .notRefreshable : .expired
      let reason = reason ?? (wouldRefresh ? .loginUnderWay : ended)
      self = isHeld || isLoggingIn() ? .loggingIn(reason) : .expired(reason)
    }
  }

  /// Whether the token can be used without a refresh.
  package var isAlive: Bool {
    switch self {
    case .usable, .expiring, .ending, .refused: true
    case .refreshable, .doubtful, .loggingIn, .expired: false
    }
  }

  /// Whether the account works only after a login.
  package var needsLogin: Bool {
    if case .doubtful = self { true } else { loginReason != nil }
  }

  /// Whether credmgr refreshes the token at its next use.
  var isRefreshed: Bool {
    switch self {
    case .expiring, .refreshable, .doubtful: true
    case .usable, .ending, .refused, .loggingIn, .expired: false
    }
  }

  /// Why a login is needed now; `nil` if no login is needed.
  package var loginReason: CredentialError.LoginReason? {
    switch self {
    case .loggingIn(let reason), .expired(let reason): reason
    case .usable, .expiring, .ending, .refused, .refreshable, .doubtful: nil
    }
  }
}

extension Account {
  /// Whether a refresh could work without the user, ignoring notes and the descriptor.
  package func isRefreshable(at now: Moment) -> Bool {
    AccountState(credential, for: RefreshPolicy(always: true), at: now) == .refreshable
  }
}

extension Accounts {
  /// Returns the state of an account; `isLocked` if the caller holds its lock.
  func state(
    of account: Account, _ note: ExchangeNote?, isLocked: Bool = false, refreshes: Bool = true,
    for wish: RefreshPolicy = RefreshPolicy(), at now: Moment
  ) -> AccountState {
    // A login without an account name locks the provider, because the account is not known yet.
    let anybody = AccountID(account.provider)
    return AccountState(
      account.credential, note: note, answerWaits: note.map { answerWaits($0, of: account) } ?? false,
      refreshes: refreshes,
      isHeld: !isLocked && isLogin(note, of: account.id),
      isLoggingIn: isLogin(try? self.note(anybody), of: anybody), for: wish, at: now)
  }

  /// Returns the state of each account, reading the notes once.
  package func states(of accounts: [Account], at now: Moment) throws(CredentialError) -> [AccountState] {
    var notes: [RecordIdentifier: ExchangeNote] = [:]
    for record in try records(.pending, of: nil) { notes[record.identifier] = ExchangeNote(decoding: record.payload) }
    let damaged = (try? store.unreadable(.pending, provider: nil, without: Set(notes.keys))) ?? []
    return try accounts.map { account throws(CredentialError) in
      let identifier = RecordIdentifier(.pending, of: account.id)
      if damaged.contains(identifier) { throw .vault(.damagedRecord(identifier)) }
      return state(of: account, notes[identifier], at: now)
    }
  }

  /// Whether an answer waits that a process has saved. That of a shared account is in a file of its vault, so the note
  /// of the copy says whether there may be one.
  private func answerWaits(_ note: ExchangeNote, of account: Account) -> Bool {
    guard account.credential.vault != nil else { return answer(of: account) != nil }
    return note.exchange == .refresh && !note.hasNoAnswer && !store.isLocked(account.id)
  }

  /// Whether a login that is under way wrote the note.
  func isLogin(_ note: ExchangeNote?, of id: AccountID) -> Bool {
    note?.exchange == .login && store.isLocked(id)
  }
}

extension Credential {
  fileprivate enum Life { case wanted, shorter, over }

  /// Returns how much life the token has left. If the clock was set back to before the token was issued, the token
  /// would seem to live too long, so it counts as expired and is refreshed once.
  fileprivate func life(for wish: RefreshPolicy, canRefresh: Bool, at now: Moment) -> Life {
    if isRejected || wish.always { return .over }
    guard let expiresAt else { return .wanted }
    if obtainedAt - now > Self.clockTolerance, canRefresh { return .over }
    let left = expiresAt - now
    if let validity = wish.validity { return left > max(validity, .zero) ? .wanted : .over }
    // Otherwise, a token with a lifetime below twice the margin would be refreshed at every call.
    let margin = min(max(margin, wish.preferredLifetime), max(expiresAt - obtainedAt, .zero) / 2)
    return left > margin ? .wanted : left > .zero ? .shorter : .over
  }

  /// The size of an ordinary clock correction. The margin is at least as long.
  private static var clockTolerance: Duration { .seconds(60) }

  fileprivate func isRefreshable(at now: Moment) -> Bool {
    // The shared vault of a copy may have a newer token, whatever the copy says.
    if grant.traits.renewal == .login || vault != nil { return true }
    return refreshedWith != nil && refreshTokenExpiresAt.map { $0 > now } ?? true
  }
}

extension ExchangeNote {
  /// The provider's permanent refusal of the current refresh token; `nil` without a refusal.
  fileprivate func refusal(of credential: Credential) -> Refusal? {
    guard let refusal, let ended = refusal.ended, ended == credential.refreshedWith else { return nil }
    return refusal
  }
}

extension ExchangeNote {
  /// The provider's last refusal, if it need not be permanent.
  fileprivate var doubt: Refusal? { refusal.flatMap { $0.ended == nil ? $0 : nil } }
}

extension ExchangeNote.Refusal {
  var reason: CredentialError.LoginReason { isAfterInterruption ? .refreshInterrupted(words) : .refreshRefused(words) }
}
