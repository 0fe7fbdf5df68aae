import CredmgrCryptography
import CredmgrDescriptors
import CredmgrJSON
import CredmgrOAuth
import CredmgrStore
import CredmgrText

/// The `failure` record: how the last login failed. Processes that waited for that login fail with the same error,
/// instead of asking a user who has just said no.
struct LoginFailure: Equatable {
  let error: CredentialError
  /// Whether another user signed in since the last login that succeeded.
  let isWrongPerson: Bool

  /// `nil` if another attempt may succeed, such as after an interruption.
  init?(_ error: CredentialError, after earlier: LoginFailure?) {
    switch error {
    case .oauth(let fault, let provider):
      if case .refused = fault { self.error = error } else { self.error = .otherLoginFailed(provider: provider) }
    case .http(_, let provider): self.error = .otherLoginFailed(provider: provider)
    case .identityMismatch, .timedOut, .otherLoginFailed: self.error = error
    default: return nil
    }
    isWrongPerson = if case .identityMismatch = error { true } else { earlier?.isWrongPerson ?? false }
  }

  var encoded: Secret {
    var value: [JSONValue.Member] = [.init("wrong_person", .boolean(isWrongPerson))]
    switch error {
    case .oauth(.refused(let leg, let answer), _):
      value += [
        .init("leg", .string(leg.rawValue)), .init("code", .string(answer.code)),
        .init("words", .optional(answer.words)), .init("status", answer.status.map { .integer($0) } ?? .null),
      ]
    case .identityMismatch(_, let account, let expected, let found, let other):
      value += [
        .init("account", .string(account)), .init("expected", .string(expected)), .init("found", .optional(found)),
        .init("other", .optional(other)),
      ]
    case .timedOut(let time): value.append(.init("seconds", .integer(time.wholeSeconds)))
    default: break
    }
    return Secret(JSONValue.object(value).encoded)
  }

  init(decoding secret: Secret, of provider: String) {
    let value = try? JSONValue.parse(secret.revealBytes())
    isWrongPerson = value?["wrong_person"] == .boolean(true)
    if let leg = value?["leg"]?.text.flatMap(EndpointKind.init), let code = value?["code"]?.text {
      let status = value?["status"]?.integer.flatMap { Int(exactly: $0) }
      let answer = ErrorResponse(code: code, words: value?["words"]?.text, status: status)
      error = .oauth(.refused(leg, answer), provider: provider)
    } else if let account = value?["account"]?.text, let expected = value?["expected"]?.text {
      error = .identityMismatch(
        provider: provider, account: account, expected: expected, found: value?["found"]?.text,
        other: value?["other"]?.text)
    } else if let seconds = value?["seconds"]?.integer {
      error = .timedOut(after: .seconds(seconds))
    } else {
      error = .otherLoginFailed(provider: provider)
    }
  }
}

extension Accounts {
  /// How the last login failed, and the record's revision; `nil` if it succeeded.
  func failure(_ id: AccountID) throws(CredentialError) -> (LoginFailure, revision: Int64)? {
    do throws(CredentialError) {
      guard let record = try record(RecordIdentifier(.failure, of: id)) else { return nil }
      return (LoginFailure(decoding: record.payload, of: id.provider), record.revision)
    } catch .vault(.damagedRecord) {
      return nil
    }
  }
}

/// The logins that a login waits for.
struct AwaitedLogins {
  /// A login of another process, as it was when this process found it.
  private struct Found {
    let id: AccountID
    let note: ExchangeNote
    let failure: Int64?
  }

  private let accounts: Accounts
  private let id: AccountID
  private let options: LoginOptions
  private let dead: () throws(CredentialError) -> AccountID?
  /// The failure recorded before this login. A later failure belongs to a login for which this one waited.
  private let failure: Int64?
  private var ended: [ExchangeNote] = []

  /// `dead` returns the account that a login without a name would repair. Another process may find it dead meanwhile.
  init(
    besides id: AccountID, _ accounts: Accounts, _ options: LoginOptions,
    dead: @escaping () throws(CredentialError) -> AccountID?
  ) throws(CredentialError) {
    (self.accounts, self.id, self.options, self.dead) = (accounts, id, options, dead)
    failure = try accounts.failure(id)?.revision
  }

  /// Throws the error of a login to the same account name that failed since this login began. A user who starts a
  /// login tries again.
  func throwFailure() throws(CredentialError) { try throwFailure(of: id, since: failure) }

  private func throwFailure(of id: AccountID, since known: Int64?) throws(CredentialError) {
    guard options.unlessAlive, let (failure, revision) = try accounts.failure(id), revision != known else { return }
    // This login has more time left.
    if case .timedOut(let time) = failure.error, time < options.timeout { return }
    throw failure.error
  }

  /// Whether another login of this provider is under way, whose result may be enough for this login.
  func areUnderWay() throws(CredentialError) -> Bool { try next() != nil }

  /// Whether such a login stored its note before this one did. Each login looks before and after it stores its note, so
  /// of two that begin together, only the second one finds the other and gives way.
  func beganEarlier() throws(CredentialError) -> Bool {
    try next(before: accounts.record(RecordIdentifier(.pending, of: id))?.revision ?? 0) != nil
  }

  private func next(before revision: Int64 = .max) throws(CredentialError) -> Found? {
    for other in try others() where other != id {
      let failure = try accounts.failure(other)?.revision
      guard let record = try accounts.record(RecordIdentifier(.pending, of: other)), record.revision < revision else {
        continue
      }
      let note = ExchangeNote(decoding: record.payload)
      // Others that waited for the same login hold the lock for a moment.
      if !ended.contains(note), accounts.isLogin(note, of: other) {
        return Found(id: other, note: note, failure: failure)
      }
    }
    return nil
  }

  private func others() throws(CredentialError) -> [AccountID] {
    // A user who starts a login may want another account, unless an account needs a login.
    if !options.unlessAlive { return try dead().map { [$0] } ?? [] }
    // A login without a name repairs any account, and a login with a name may create the first one.
    return id.name == nil ? try accounts.pending(of: id.provider) : [AccountID(id.provider)]
  }

  /// Waits until no such login is under way. Returns the account that `done` finds meanwhile, and throws the error of
  /// a login that failed.
  mutating func account(
    _ source: CredentialSource, until deadline: MonotonicMoment, for user: any User,
    or done: () throws(CredentialError) -> Account?
  ) throws(CredentialError) -> Account? {
    while let found = try next() {
      func account() throws(CredentialError) -> Account? {
        if user.isCancelled { throw .interrupted }
        if let account = try done() { return account }
        try throwFailure(of: found.id, since: found.failure)
        return nil
      }
      let account: Account? = try source.withAccountLock(
        found.id, timeout: max(deadline - source.clock.monotonic(), .zero),
        waiting: { user.tell(.waiting(for: $0, process: found.note.process)) },
        isDone: { () throws(CredentialError) in try account().map { .some($0) } }
      ) { _ throws(CredentialError) in try account() }
      if let account { return account }
      ended.append(found.note)
    }
    return nil
  }
}

extension CredentialError {
  /// Whether a lookup found no account, or one that is damaged, so a login is needed.
  var meansNoAccount: Bool {
    switch self {
    case .loginNeeded, .unknownAccount, .ambiguousAccount, .vault(.damagedRecord): true
    default: false
    }
  }
}
