import Cryptography
import JSON
import OAuth
import Platform
import Descriptors
import Vault

/// What a person may want to know while something goes on.
public enum Notice: Sendable, Equatable {
  /// Another process is at work with this account; seconds waited so far.
  case waiting(provider: String, account: String?, seconds: Double)
  /// An earlier process ended in the middle of an exchange.
  case interrupted(Interruption)
  /// Fields of a token answer cannot be read; the tokens were kept without them.
  case unreadable(provider: String, fields: [ResponseField])
  /// It cannot be noted who was handed a credential: something else is in the place of the file for it.
  case handOutNotNoted(POSIXError)
  /// The token is about to expire and could not be refreshed, and is handed out as long as it lives.
  case notRefreshed(provider: String, account: String, secondsLeft: Int64, CredentialError)
  /// The provider did not say for whom a login was, so that the account has a name and no identity.
  case unidentified(account: String, CredentialError)
  /// The provider named somebody in a way that no account can be named, so that the account has another name and no
  /// identity.
  case unnameable(account: String, provider: String)
}

/// An exchange that was under way when its process ended, so that nobody knows whether the provider had answered.
public struct Interruption: Sendable, Equatable {
  /// What was asked of the provider.
  public enum Exchange: String, Sendable {
    /// A new token for an old one.
    case refresh
    /// The first token.
    case login
    /// The revocation of tokens.
    case logout
  }

  /// The provider's identifier.
  public let provider: String
  /// The account's name; `nil` for a login that did not know yet whose it was.
  public let account: String?
  /// What was asked of the provider.
  public let exchange: Exchange
  /// Seconds since 1970.
  public let startedAt: Int64
}

/// The record of the kind `pending`: it is written before an exchange that must not happen twice, and its commit takes it
/// away again.
struct ExchangeNote: Equatable {
  /// What the provider said when it took a refresh token no more.
  struct Refusal: Equatable {
    let at: Int64
    let words: String?
    /// Whether an earlier exchange had been interrupted, so that its answer is lost.
    let isAfterInterruption: Bool
    /// What the provider will never take again: a refresh token or a session handle. `nil` if it did not say so.
    var ended: Secret?
  }

  let exchange: Interruption.Exchange
  let startedAt: Int64
  var refusal: Refusal?
  /// The answer to a login, where it does not wait beside the vault any more, because that has another key now.
  var answer: KeptAnswer?

  init(_ exchange: Interruption.Exchange, startedAt: Int64, refusal: Refusal? = nil) {
    self.exchange = exchange
    self.startedAt = startedAt
    self.refusal = refusal
  }

  /// Whether an answer of the provider may be lost.
  var isInterruption: Bool { refusal?.isAfterInterruption ?? true }

  var encoded: Secret {
    var members: [JSONValue.Member] = [
      .init("exchange", .string(exchange.rawValue)), .init("started_at", .integer(startedAt)),
    ]
    if let refusal {
      members.append(.init("refused_at", .integer(refusal.at)))
      members.append(.init("words", .optional(refusal.words)))
      members.append(.init("after_interruption", .boolean(refusal.isAfterInterruption)))
      if let ended = refusal.ended { members.append(.init("ended", .string(ended.reveal()))) }
    }
    if let answer { members.append(.init("answer", .string(answer.encoded.reveal()))) }
    return Secret(JSONValue.object(members).encoded)
  }

  /// Reads a record. What cannot be read stands for a refresh, which is the one that can lose something.
  init(decoding secret: Secret) {
    let value = try? JSONValue.parse(secret.revealBytes())
    self.init(
      value?["exchange"]?.text.flatMap(Interruption.Exchange.init) ?? .refresh,
      startedAt: value?["started_at"]?.integer ?? 0)
    if let refusedAt = value?["refused_at"]?.integer {
      refusal = Refusal(
        at: refusedAt, words: value?["words"]?.text,
        isAfterInterruption: value?["after_interruption"] == .boolean(true),
        ended: value?["ended"]?.text.map { Secret($0) })
    }
    answer = value?["answer"]?.text.flatMap { KeptAnswer(decoding: Secret($0)) }
  }
}

/// A credential that the provider gave, and that is not in the vault yet.
struct KeptAnswer: Equatable {
  /// The token that it was given for; `nil` for a login.
  let previous: Secret?
  let credential: Credential

  init(_ credential: Credential, after previous: Secret?) {
    self.credential = credential
    self.previous = previous
  }

  var encoded: Secret {
    Secret(
      JSONValue.object([
        .init("previous", .optional(previous?.reveal())), .init("credential", .string(credential.encoded.reveal())),
      ]).encoded)
  }

  init?(decoding secret: Secret) {
    guard let value = try? JSONValue.parse(secret.revealBytes()), let text = value["credential"]?.text,
      let credential = try? Credential(decoding: Secret(text))
    else { return nil }
    self.init(credential, after: value["previous"]?.text.map { Secret($0) })
  }
}

extension Accounts {
  /// What the provider answered to an exchange that was interrupted before its commit. For who holds the account's lock.
  func keptAnswer(_ provider: String, _ account: String) -> KeptAnswer? {
    vault.answer(provider: provider, account: account).flatMap { KeptAnswer(decoding: $0) }
  }

  /// The answer to a refresh of the token that an account has.
  func answer(of account: Account) -> KeptAnswer? {
    keptAnswer(account.provider, account.name).flatMap { $0.previous == account.credential.accessToken ? $0 : nil }
  }

  /// Makes the place for an answer.
  func prepareAnswer(_ provider: String, _ account: String) throws(CredentialError) -> AnswerFile {
    do { return try vault.prepareAnswer(provider: provider, account: account) } catch { throw .vault(error) }
  }

  /// The note about an account; `nil` when there is none.
  func note(_ provider: String, _ account: String) throws(CredentialError) -> ExchangeNote? {
    try inVault { () throws(VaultError) in try vault.record(Self.pending(provider, account)) }
      .map { ExchangeNote(decoding: $0.payload) }
  }

  /// The names under which there are notes about a provider; empty for a login that did not know yet whose it was.
  func pending(of provider: String) throws(CredentialError) -> [String] {
    try inVault { () throws(VaultError) in try vault.records(.pending, provider: provider) }.map(\.identifier.account)
  }

  /// The provider's word that it will never refresh this credential again; `nil` when it did not say so of the refresh
  /// token that the account has now.
  func refusal(_ account: Account) throws(CredentialError) -> ExchangeNote.Refusal? {
    refusal(account, try note(account.provider, account.name))
  }

  private func refusal(_ account: Account, _ note: ExchangeNote?) -> ExchangeNote.Refusal? {
    guard let refusal = note?.refusal, let ended = refusal.ended, ended == account.credential.refreshedWith
    else { return nil }
    return refusal
  }

  /// Whether the provider has said that it will never refresh this credential again: then only a login helps.
  ///
  /// - Throws: `CredentialError.vault`.
  public func isRefreshRefused(_ account: Account) throws(CredentialError) -> Bool { try refusal(account) != nil }

  /// The same for each of many accounts, of which the fewest have a note: all notes are read at once.
  ///
  /// - Throws: `CredentialError.vault`.
  public func areRefreshesRefused(_ accounts: [Account]) throws(CredentialError) -> [Bool] {
    var refused: [Bool] = []
    guard let records = try inVault({ () throws(VaultError) in try vault.wholeRecords(.pending) }) else {
      // One of them is damaged, which is told of the account that it belongs to.
      for account in accounts { refused.append(try isRefreshRefused(account)) }
      return refused
    }
    var notes: [RecordIdentifier: ExchangeNote] = [:]
    for record in records { notes[record.identifier] = ExchangeNote(decoding: record.payload) }
    for account in accounts {
      let note = notes.isEmpty ? nil : notes[Self.pending(account.provider, account.name)]
      refused.append(refusal(account, note) != nil)
    }
    return refused
  }

  /// Makes the place for an answer, and notes that the provider is about to be asked. Where this fails nothing is left of it.
  ///
  /// - Parameter accounts: those of which one gets the answer; `nil`: the account of the note.
  func begin(
    _ note: ExchangeNote, _ provider: String, _ account: String, for accounts: [String]? = nil
  ) throws(CredentialError) -> AnswerFile {
    let place = try prepareAnswer(provider, account)
    do throws(CredentialError) {
      try setNote(note, provider, account, for: accounts)
    } catch {
      vault.removeAnswer(provider: provider, account: account)
      throw error
    }
    return place
  }

  /// Writes a note, or takes it away. It is also the proof, before something is used up at the provider, that the vault can
  /// be written, and that what the provider answers can be stored for the accounts.
  func setNote(
    _ note: ExchangeNote?, _ provider: String, _ account: String, for accounts: [String]? = nil
  ) throws(CredentialError) {
    try inVault { () throws(VaultError) in
      if let note {
        // The change behind the answer needs other parts of the file than this one.
        try vault.requireStructure()
        let checks = (accounts ?? [account]).map { Change.check(Self.identifier(provider, $0)) }
        try vault.apply(checks + [.store(note.encoded, as: Self.pending(provider, account))])
      } else {
        try vault.remove(Self.pending(provider, account))
      }
    }
  }
}

extension CredentialSource {
  /// Exchanges that were under way when their process ended.
  ///
  /// - Throws: `CredentialError.vault`.
  public func interruptedExchanges() throws(CredentialError) -> [Interruption] {
    guard let accounts = try accountsIfAny() else { return [] }
    let records = try inVault { () throws(VaultError) in
      try accounts.vault.records(.pending, provider: nil)
    }
    var interruptions: [Interruption] = []
    for record in records {
      let (provider, account) = (record.identifier.provider, record.identifier.account)
      if let found = try interruption(ExchangeNote(decoding: record.payload), provider, account, accounts) {
        interruptions.append(found)
      }
    }
    return interruptions.sorted { ($0.provider, $0.account ?? "") < ($1.provider, $1.account ?? "") }
  }

  /// Whether an earlier process got a new token in the place of this one, and died before its commit: the provider may have
  /// ended the old one. An exchange that was interrupted before is told.
  func isSuperseded(
    _ account: Account, _ note: ExchangeNote?, _ accounts: Accounts
  ) throws(CredentialError) -> Bool {
    guard let note else { return false }
    if let found = try interruption(note, account.provider, account.name, accounts) {
      notice(.interrupted(found))
      return false
    }
    return accounts.answer(of: account) != nil
  }

  /// Tells of an exchange of this account that was interrupted.
  func tellInterruption(_ provider: String, _ account: String, _ accounts: Accounts) throws(CredentialError) {
    guard let note = try accounts.note(provider, account),
      let interruption = try interruption(note, provider, account, accounts)
    else { return }
    notice(.interrupted(interruption))
  }

  /// Tells of a login that was interrupted, where its note is about to go, and with it what was kept of its answer. To be called
  /// with the account's lock.
  func tellUnfinishedLogin(_ provider: String, _ account: String, _ accounts: Accounts) throws(CredentialError) {
    guard let note = try accounts.note(provider, account), note.exchange == .login, note.isInterruption else { return }
    notice(
      .interrupted(Interruption(provider: provider, account: account, exchange: .login, startedAt: note.startedAt)))
  }

  private func interruption(
    _ note: ExchangeNote, _ provider: String, _ account: String, _ accounts: Accounts
  ) throws(CredentialError) -> Interruption? {
    guard note.isInterruption, !isInUse(provider, account, accounts) else { return nil }
    // What a refresh brought is beside the vault, and taken up by the next one: nothing is lost.
    if note.exchange == .refresh, note.refusal == nil, accounts.keptAnswer(provider, account)?.previous != nil {
      return nil
    }
    return Interruption(
      provider: provider, account: account.isEmpty ? nil : account, exchange: note.exchange, startedAt: note.startedAt)
  }

  /// Whether a process holds the account's lock, and so is still at what its note tells of.
  func isInUse(_ provider: String, _ account: String, _ accounts: Accounts) -> Bool {
    (try? FileLock.isHeld(home.lock(accounts.vault.lockName(provider: provider, account: account)))) ?? false
  }
}

extension Credential {
  /// What a refresh uses up: the refresh token, or the session handle of OAuth 1.0a.
  var refreshedWith: Secret? {
    switch grant {
    case .clientCredentials: nil
    case .oauth1: sessionHandle
    default: refreshToken
    }
  }
}
