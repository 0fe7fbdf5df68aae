import CredmgrCryptography
import CredmgrJSON
import CredmgrOAuth
import CredmgrPlatform
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrStore
import CredmgrText

/// An exchange whose process ended midway, so it is unknown whether the provider had answered.
package struct Interruption: Sendable, Equatable {
  package enum Exchange: String, Sendable { case refresh, login, logout }

  package let provider: String
  package let account: String?  // `nil` for a login whose account was not yet known.
  package let exchange: Exchange
  package let startedAt: Moment
  /// The options of an interrupted login, without secret variables.
  package var options = LoginNote()
  /// The shared vault for which the answer may wait on this machine.
  package var vault: String?
}

/// The options of a login that its hint repeats.
package struct LoginNote: Sendable, Equatable {
  package var scope: [String] = []
  package var importWords: [String] = []  // The words of the `import` that it is a part of.
  package var variables: [String: String] = [:]
}

/// The `pending` record, written before an exchange that must not happen twice, and removed by its commit.
struct ExchangeNote: Equatable {
  struct Refusal: Equatable {
    let at: Moment
    let words: String?
    let isAfterInterruption: Bool  // Whether an earlier interrupted exchange lost its answer.
    /// A refresh token or session handle that the provider refuses permanently; `nil` if it did not say so.
    var ended: Secret?
  }

  let exchange: Interruption.Exchange
  let startedAt: Moment
  /// The process of a login, for others that wait for it.
  var process: Int32?
  var options = LoginNote()
  /// The refusal of an earlier refresh. A login or logout keeps it, because the login or logout may fail.
  var refusal: Refusal?
  /// Whether the answer to a refresh before this login or logout may be lost.
  private var isAfterLoss = false
  /// For the copy of an account of a shared vault: whether no answer waits on this machine, so that the note only says
  /// that one may be lost.
  var hasNoAnswer = false
  /// The answer to a login, moved here after a key rotation made its file unreadable.
  var answer: KeptAnswer?

  init(_ exchange: Interruption.Exchange, startedAt: Moment, refusal: Refusal? = nil) {
    self.exchange = exchange
    self.startedAt = startedAt
    self.refusal = refusal
  }

  /// Begins a login or a logout after the exchange of an earlier note.
  init(_ exchange: Interruption.Exchange, startedAt: Moment, after earlier: ExchangeNote?) {
    self.init(exchange, startedAt: startedAt, refusal: earlier?.refusal)
    isAfterLoss = earlier?.losesRefresh ?? false
  }

  /// Whether the exchange was interrupted: no process is still working on it.
  var isInterruption: Bool { exchange != .refresh || losesRefresh }

  /// Whether the answer to a refresh may be lost.
  var losesRefresh: Bool { exchange == .refresh ? refusal?.isAfterInterruption ?? true : isAfterLoss }

  /// Whether this is a login, and the note says nothing about an earlier refresh.
  var isOnlyLogin: Bool { exchange == .login && refusal == nil && !losesRefresh }

  var encoded: Secret {
    let value: JSONValue = [
      "exchange": .string(exchange.rawValue), "started_at": .moment(startedAt),
      "refused_at": refusal.map { .moment($0.at) } ?? .null, "words": .optional(refusal?.words),
      "after_interruption": .boolean(refusal?.isAfterInterruption == true || isAfterLoss),
      "process": process.map { .integer($0) } ?? .null, "scope": .array(options.scope.map(JSONValue.string)),
      "import": .array(options.importWords.map(JSONValue.string)),
      "variables": .object(options.variables.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) }),
      "ended": .optional(refusal?.ended?.reveal()),
      "answer": .optional(answer?.encoded.reveal()), "no_answer": .boolean(hasNoAnswer),
    ]
    return Secret(value.encoded)
  }

  /// Reads a record. An unreadable one counts as a refresh, because only a refresh can lose a token.
  init(decoding secret: Secret) {
    let value = try? JSONValue.parse(secret.revealBytes())
    self.init(
      value?["exchange"]?.text.flatMap(Interruption.Exchange.init) ?? .refresh,
      startedAt: value?["started_at"]?.moment ?? 0)
    let isAfterInterruption = value?["after_interruption"] == .boolean(true)
    isAfterLoss = exchange != .refresh && isAfterInterruption
    process = value?["process"]?.integer.flatMap { Int32(exactly: $0) }
    options.scope = value?["scope"]?.elements?.compactMap(\.text) ?? []
    options.importWords = value?["import"]?.elements?.compactMap(\.text) ?? []
    for member in value?["variables"]?.members ?? [] { options.variables[member.name] = member.value.text }
    if let refusedAt = value?["refused_at"]?.moment {
      refusal = Refusal(
        at: refusedAt, words: value?["words"]?.text,
        isAfterInterruption: isAfterInterruption,
        ended: value?["ended"]?.text.map { Secret($0) })
    }
    answer = value?["answer"]?.text.flatMap { KeptAnswer(decoding: Secret($0)) }
    hasNoAnswer = value?["no_answer"] == .boolean(true)
  }
}

struct KeptAnswer: Equatable {
  let previous: Secret?  // The token that it replaces; `nil` for a login.
  let credential: Credential

  init(_ credential: Credential, after previous: Secret?) {
    self.credential = credential
    self.previous = previous
  }

  var encoded: Secret {
    let value: JSONValue = [
      "previous": .optional(previous?.reveal()), "credential": .string(credential.encoded.reveal()),
    ]
    return Secret(value.encoded)
  }

  init?(decoding secret: Secret) {
    guard let value = try? JSONValue.parse(secret.revealBytes()), let text = value["credential"]?.text,
      let credential = try? Credential(decoding: Secret(text))
    else { return nil }
    self.init(credential, after: value["previous"]?.text.map { Secret($0) })
  }
}

extension LockedAccount {
  borrowing func begin(
    _ note: ExchangeNote, keepsAnswer: Bool = true, for accounts: [AccountID]? = nil
  ) throws(CredentialError) -> PendingExchange {
    do { return try begin(noting: note.encoded, keepsAnswer: keepsAnswer, for: accounts) } catch { throw .vault(error) }
  }
}

extension PendingExchange {
  /// Saves a provider's answer until the commit. `previous` is `nil` for a login, whose commit may take a while.
  borrowing func keep(_ credential: Credential, after previous: Secret?) {
    keep(KeptAnswer(credential, after: previous).encoded, isForced: previous == nil)
  }
}

extension Accounts {
  /// Returns the answer to an exchange that was interrupted before its commit. The caller holds the account's lock.
  func keptAnswer(_ id: AccountID) -> KeptAnswer? { store.answer(for: id).flatMap { KeptAnswer(decoding: $0) } }

  func answer(of account: Account) -> KeptAnswer? {
    keptAnswer(account.id).flatMap { $0.previous == account.credential.accessToken ? $0 : nil }
  }

  /// Whether an interrupted login already received its token, which the next login will use.
  func hasUnfinishedLogin(at provider: String) throws(CredentialError) -> Bool {
    try records(.pending, of: provider).contains { record in
      unfinishedLogin(ExchangeNote(decoding: record.payload), record.identifier.accountID) != nil
    }
  }

  /// The words of an interrupted import whose answer waits, and which only the provider's client can use; `nil` without
  /// one that another registration than `registration` began.
  func waitingImport(
    at provider: String, besides registration: Registration? = nil
  ) throws(CredentialError) -> [String]? {
    for id in try pending(of: provider) {
      guard let note = try note(id), let kept = unfinishedLogin(note, id), kept.importedFrom != nil else { continue }
      if let digest = kept.registrationDigest, digest == registration?.digest() { continue }
      return note.options.importWords
    }
    return nil
  }

  /// The result of a login that was interrupted before its commit.
  func unfinishedLogin(_ note: ExchangeNote, _ id: AccountID) -> Credential? {
    guard note.exchange == .login, let answer = keptAnswer(id) ?? note.answer, answer.previous == nil else {
      return nil
    }
    return answer.credential
  }

  func note(_ id: AccountID) throws(CredentialError) -> ExchangeNote? {
    try record(RecordIdentifier(.pending, of: id)).map { ExchangeNote(decoding: $0.payload) }
  }

  func pending(of provider: String?) throws(CredentialError) -> [AccountID] {
    try records(.pending, of: provider).map(\.identifier.accountID)
  }

  func interruption(_ note: ExchangeNote?, _ id: AccountID) -> Interruption? {
    // The holder of the account's lock is still working.
    guard let note, note.isInterruption, !store.isLocked(id) else { return nil }
    // The next refresh will use the saved answer, so nothing is lost.
    if note.exchange == .refresh, note.refusal == nil, keptAnswer(id)?.previous != nil { return nil }
    var interruption = Interruption(id, note)
    if !note.hasNoAnswer { interruption.vault = try? account(id)?.credential.vault }
    return interruption
  }
}

extension Interruption {
  init(_ id: AccountID, _ note: ExchangeNote) {
    self.init(
      provider: id.provider, account: id.name, exchange: note.exchange, startedAt: note.startedAt,
      options: note.options)
  }
}

extension CredentialSource {
  package func interruptedExchanges() throws(CredentialError) -> [Interruption] {
    guard let accounts = try accountsIfAny() else { return [] }
    return try accounts.records(.pending, of: nil)
      .compactMap { accounts.interruption(ExchangeNote(decoding: $0.payload), $0.identifier.accountID) }
      .sorted { ($0.provider, $0.account ?? "") < ($1.provider, $1.account ?? "") }
  }

  /// Reports an interruption. An interrupted login leaves the token of its account as it was, so `status` reports it.
  func tellInterruption(_ note: ExchangeNote?, of id: AccountID, _ accounts: Accounts) {
    guard let note, note.exchange != .login || id.name == nil, let interruption = accounts.interruption(note, id)
    else { return }
    notice(.interrupted(interruption))
  }

  /// Reports an interrupted login before its note and answer are removed. The caller holds the account's lock.
  func tellUnfinishedLogin(_ note: ExchangeNote?, _ id: AccountID) {
    guard let note, note.exchange == .login, note.isInterruption else { return }
    notice(.interrupted(Interruption(id, note)))
  }
}

extension CredentialError {
  /// Whether the provider may have sent an answer that was lost, in which case the note stays.
  var mayHaveArrived: Bool {
    guard case .http(.unreachable(_, let reason), _) = self else { return false }
    return switch reason {
    case .timedOut, .broken, .other: true
    case .nameNotResolved, .connectionRefused, .tls, .proxy: false
    }
  }
}
