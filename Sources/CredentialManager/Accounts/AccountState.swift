import OAuth
import Store
import Text

/// How long a token has to be valid, for whom.
package struct RefreshPolicy: Sendable {
  /// How long the token has to live from now on; `nil`: as the provider's descriptor says.
  package var validity: Duration?
  /// The lifetime to have, if tokens of this provider live for twice as long and a longer one can be had.
  package var preferredLifetime: Duration
  package var always: Bool
  /// Whether to ask a provider again that has said that it will never take the refresh token.
  package var asksAgain: Bool
  package var lockTimeout: Duration  // How long another process is waited for that refreshes the same account.

  package init(
    validity: Duration? = nil, preferredLifetime: Duration = .zero, always: Bool = false, asksAgain: Bool = false,
    lockTimeout: Duration = .seconds(60)
  ) {
    self.validity = validity
    self.preferredLifetime = preferredLifetime
    self.always = always
    self.asksAgain = asksAgain
    self.lockTimeout = lockTimeout
  }
}

/// What an account is good for. Only this file computes it, and every command and the library decide from it
/// (docs/architecture.md, "The state of an account").
package enum AccountState: Sendable, Equatable {
  case usable  // The token is valid for as long as is wanted.
  case expiring  // The token is valid for less, and is refreshed first.
  case ending  // The token is valid for less, and nothing can refresh it: it is handed out until it expires.
  case refused(CredentialError.LoginReason)  // The token is valid, and the provider refuses to refresh it any more.
  case refreshable  // The token has expired or was refused, and can be refreshed.
  case loggingIn(CredentialError.LoginReason)  // As `expired`, while somebody logs in.
  case expired(CredentialError.LoginReason)  // Only a login helps.

  /// - Parameters:
  ///   - note: the account's record of the kind `pending`.
  ///   - answerWaits: whether an answer of the provider waits beside the vault, which replaces the token.
  ///   - refreshes: whether the descriptor has an endpoint that refreshes it.
  init(
    _ credential: Credential, note: ExchangeNote? = nil, answerWaits: Bool = false, refreshes: Bool = true,
    isLoggingIn: @autoclosure () -> Bool = false, for wish: RefreshPolicy = RefreshPolicy(), at now: Moment
  ) {
    let canRefresh = refreshes && credential.isRefreshable(at: now)
    let refusal = wish.asksAgain ? nil : note?.refusal(of: credential)
    switch (credential.life(for: wish, canRefresh: canRefresh && refusal == nil, at: now), refusal?.reason) {
    case _ where answerWaits: self = .refreshable
    case (.wanted, nil): self = .usable
    case (.shorter, nil): self = canRefresh ? .expiring : .ending
    case (.wanted, let reason?), (.shorter, let reason?): self = .refused(reason)
    case (.over, nil) where canRefresh: self = .refreshable
    case (.over, let reason):
      let isAlive = credential.expiresAt.map { $0 > now } ?? true
      let reason = reason ?? (credential.isRejected ? .rejected : isAlive ? .notRefreshable : .expired)
      self = isLoggingIn() ? .loggingIn(reason) : .expired(reason)
    }
  }

  /// Whether the token can be handed out without a refresh, if need be.
  package var isAlive: Bool {
    switch self {
    case .usable, .expiring, .ending, .refused: true
    case .refreshable, .loggingIn, .expired: false
    }
  }

  /// Why a login is needed now; `nil` if none is.
  package var loginReason: CredentialError.LoginReason? {
    switch self {
    case .loggingIn(let reason), .expired(let reason): reason
    case .usable, .expiring, .ending, .refused, .refreshable: nil
    }
  }
}

extension Account {
  /// Whether a new token can be had without a person, as far as is known without the note and the descriptor.
  package func isRefreshable(at now: Moment) -> Bool {
    AccountState(credential, for: RefreshPolicy(always: true), at: now) == .refreshable
  }
}

extension Accounts {
  func state(
    of account: Account, _ note: ExchangeNote?, refreshes: Bool = true, for wish: RefreshPolicy = RefreshPolicy(),
    at now: Moment
  ) -> AccountState {
    AccountState(
      account.credential, note: note, answerWaits: note != nil && answer(of: account) != nil, refreshes: refreshes,
      isLoggingIn: isLoginUnderWay(account.id), for: wish, at: now)
  }

  /// Of each of several accounts, with one look at the notes.
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

  /// A login without a name has the lock of the provider, because it does not know yet whose it is.
  private func isLoginUnderWay(_ id: AccountID) -> Bool {
    [id, AccountID(id.provider)].contains { (try? note($0))?.exchange == .login && store.isLocked($0) }
  }
}

extension Credential {
  fileprivate enum Life { case wanted, shorter, over }

  /// A clock that was set back behind the moment when the token was obtained would have it live longer than it does, so
  /// it is refreshed once.
  fileprivate func life(for wish: RefreshPolicy, canRefresh: Bool, at now: Moment) -> Life {
    if isRejected || wish.always { return .over }
    guard let expiresAt else { return .wanted }
    if obtainedAt - now > Self.clockTolerance, canRefresh { return .over }
    let left = expiresAt - now
    if let validity = wish.validity { return left > max(validity, .zero) ? .wanted : .over }
    // A token that lives for less than twice the margin would otherwise be refreshed at every call.
    let margin = min(max(margin, wish.preferredLifetime), max(expiresAt - obtainedAt, .zero) / 2)
    return left > margin ? .wanted : left > .zero ? .shorter : .over
  }

  /// By how much a clock is corrected now and then without anybody's doing; the margin is no shorter.
  private static var clockTolerance: Duration { .seconds(60) }

  fileprivate func isRefreshable(at now: Moment) -> Bool {
    if grant.traits.renewal == .login { return true }
    return refreshedWith != nil && refreshTokenExpiresAt.map { $0 > now } ?? true
  }
}

extension ExchangeNote {
  /// The provider's word that it will never take the present refresh token again; `nil` without one.
  fileprivate func refusal(of credential: Credential) -> Refusal? {
    guard let refusal, let ended = refusal.ended, ended == credential.refreshedWith else { return nil }
    return refusal
  }
}

extension ExchangeNote.Refusal {
  var reason: CredentialError.LoginReason { isAfterInterruption ? .refreshInterrupted(words) : .refreshRefused(words) }
}
