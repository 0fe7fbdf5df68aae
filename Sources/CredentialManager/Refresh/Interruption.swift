import Cryptography
import JSON
import OAuth
import Platform
import Descriptors
import HTTP
import Store
import Text

/// An exchange that was under way when its process ended, so that nobody knows whether the provider had answered.
package struct Interruption: Sendable, Equatable {
  package enum Exchange: String, Sendable { case refresh, login, logout }

  package let provider: String
  package let account: String?  // The account's name; `nil` for a login that did not know yet whose it was.
  package let exchange: Exchange
  package let startedAt: Moment
}

/// The record of the kind `pending`, written before an exchange that must not happen twice, removed by its commit.
struct ExchangeNote: Equatable {
  struct Refusal: Equatable {
    let at: Moment
    let words: String?
    let isAfterInterruption: Bool  // Whether an earlier exchange had been interrupted, so that its answer is lost.
    /// What the provider will never take again: a refresh token or a session handle. `nil` if it did not say so.
    var ended: Secret?
  }

  let exchange: Interruption.Exchange
  let startedAt: Moment
  var refusal: Refusal?
  /// The answer to a login, where it does not wait beside the vault any more, because that has another key now.
  var answer: KeptAnswer?

  init(_ exchange: Interruption.Exchange, startedAt: Moment, refusal: Refusal? = nil) {
    self.exchange = exchange
    self.startedAt = startedAt
    self.refusal = refusal
  }

  var isInterruption: Bool { refusal?.isAfterInterruption ?? true }

  var encoded: Secret {
    let value: JSONValue = [
      "exchange": .string(exchange.rawValue), "started_at": .moment(startedAt),
      "refused_at": refusal.map { .moment($0.at) } ?? .null, "words": .optional(refusal?.words),
      "after_interruption": .boolean(refusal?.isAfterInterruption == true),
      "ended": .optional(refusal?.ended?.reveal()), "answer": .optional(answer?.encoded.reveal()),
    ]
    return Secret(value.encoded)
  }

  /// Reads a record. What cannot be read stands for a refresh, which is the one that can lose something.
  init(decoding secret: Secret) {
    let value = try? JSONValue.parse(secret.revealBytes())
    self.init(
      value?["exchange"]?.text.flatMap(Interruption.Exchange.init) ?? .refresh,
      startedAt: value?["started_at"]?.moment ?? 0)
    if let refusedAt = value?["refused_at"]?.moment {
      refusal = Refusal(
        at: refusedAt, words: value?["words"]?.text,
        isAfterInterruption: value?["after_interruption"] == .boolean(true),
        ended: value?["ended"]?.text.map { Secret($0) })
    }
    answer = value?["answer"]?.text.flatMap { KeptAnswer(decoding: Secret($0)) }
  }
}

struct KeptAnswer: Equatable {
  let previous: Secret?  // The token that it was given for; `nil` for a login.
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
  /// Keeps what a provider gave until it is committed; `previous` is `nil` for a login, which may take a while.
  borrowing func keep(_ credential: Credential, after previous: Secret?) {
    keep(KeptAnswer(credential, after: previous).encoded, isForced: previous == nil)
  }
}

extension Accounts {
  /// The answer to an exchange that was interrupted before its commit. For who holds the account's lock.
  func keptAnswer(_ id: AccountID) -> KeptAnswer? { store.answer(for: id).flatMap { KeptAnswer(decoding: $0) } }

  func answer(of account: Account) -> KeptAnswer? {
    keptAnswer(account.id).flatMap { $0.previous == account.credential.accessToken ? $0 : nil }
  }

  /// Whether a login at a provider was interrupted after its token had come, which the next one takes.
  func hasUnfinishedLogin(at provider: String) throws(CredentialError) -> Bool {
    try records(.pending, of: provider).contains { record in
      let note = ExchangeNote(decoding: record.payload)
      return note.exchange == .login && (note.answer ?? keptAnswer(record.identifier.accountID)) != nil
    }
  }

  func note(_ id: AccountID) throws(CredentialError) -> ExchangeNote? {
    try record(RecordIdentifier(.pending, of: id)).map { ExchangeNote(decoding: $0.payload) }
  }

  func pending(of provider: String?) throws(CredentialError) -> [AccountID] {
    try records(.pending, of: provider).map(\.identifier.accountID)
  }

  func interruption(_ note: ExchangeNote?, _ id: AccountID) -> Interruption? {
    // Who holds the account's lock is still at it.
    guard let note, note.isInterruption, !store.isLocked(id) else { return nil }
    // What a refresh brought is beside the vault, and taken up by the next one: nothing is lost.
    if note.exchange == .refresh, note.refusal == nil, keptAnswer(id)?.previous != nil { return nil }
    return Interruption(id, note)
  }
}

extension Interruption {
  init(_ id: AccountID, _ note: ExchangeNote) {
    self.init(provider: id.provider, account: id.name, exchange: note.exchange, startedAt: note.startedAt)
  }
}

extension CredentialSource {
  package func interruptedExchanges() throws(CredentialError) -> [Interruption] {
    guard let accounts = try accountsIfAny() else { return [] }
    return try accounts.records(.pending, of: nil)
      .compactMap { accounts.interruption(ExchangeNote(decoding: $0.payload), $0.identifier.accountID) }
      .sorted { ($0.provider, $0.account ?? "") < ($1.provider, $1.account ?? "") }
  }

  func tellInterruption(of id: AccountID, _ accounts: Accounts) throws(CredentialError) {
    if let interruption = accounts.interruption(try accounts.note(id), id) { notice(.interrupted(interruption)) }
  }

  /// Tells of an interrupted login whose note and kept answer are about to go. For who holds the account's lock.
  func tellUnfinishedLogin(_ note: ExchangeNote?, _ id: AccountID) {
    guard let note, note.exchange == .login, note.isInterruption else { return }
    notice(.interrupted(Interruption(id, note)))
  }
}

extension CredentialError {
  /// Whether the provider may have given an answer that is lost; the note about it stays then.
  var mayHaveArrived: Bool {
    guard case .http(.unreachable(_, let reason), _) = self else { return false }
    return switch reason {
    case .timedOut, .broken, .other: true
    case .nameNotResolved, .connectionRefused, .tls, .proxy: false
    }
  }
}
