import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText

// A machine that exchanges the refresh token of a shared account saves the answer in a file of the shared vault until
// the commit. It also stores a note with its own copy of the account. So the next use of the copy, which needs no
// connection, knows from the user's own vault whether an answer may wait.
extension CredentialSource {
  /// Returns the newest account of the vault, with a note of an exchange that it needs. The note stays if an answer
  /// waits, or if one may be lost.
  func noting(
    _ copy: Account, in accounts: Accounts, with source: CredentialSource, _ policy: RefreshPolicy
  ) throws(CredentialError) -> Account? {
    let identifier = RecordIdentifier(.pending, of: copy.id)
    let before = try accounts.note(copy.id)
    let accepts = accepts(copy)
    // A login that was interrupted goes on with its own note.
    if let before, before.exchange != .refresh {
      return try source.newest(than: copy, policy, accepts: accepts, begins: {})
    }
    var note = ExchangeNote(.refresh, startedAt: clock.now())
    do throws(CredentialError) {
      return try source.newest(than: copy, policy, accepts: accepts) { () throws(CredentialError) in
        try accounts.apply([.store(note.encoded, as: identifier)])
      }
    } catch {
      if source.hasAnswer(copy.id) { throw error }
      // Like the note in the vault, the note says only that an answer may be lost.
      note.hasNoAnswer = true
      let kept = error.mayHaveArrived || error.saysInterrupted ? note : before
      try? accounts.apply([kept.map { .store($0.encoded, as: identifier) } ?? .remove(identifier)])
      throw error
    }
  }

  /// Commits the answer that waits for the shared account of a valid copy. Needs no connection if none waits.
  func settle(
    _ copy: Account, with source: CredentialSource, in accounts: Accounts
  ) throws(CredentialError) -> Account {
    if let taken = try source.committed(copy.id), let theirs = try source.accepted(taken, accepts(copy)) {
      return try store(theirs, insteadOf: copy, in: accounts)
    }
    guard var note = try accounts.note(copy.id), note.exchange == .refresh else { return copy }
    note.hasNoAnswer = true
    try accounts.apply([.store(note.encoded, as: RecordIdentifier(.pending, of: copy.id))])
    notice(.interrupted(Interruption(copy.id, note)))
    return copy
  }

  /// Whether an answer to a refresh waits on this machine for an account of this shared vault. Needs no connection.
  func hasAnswer(_ id: AccountID) -> Bool { (try? accounts().keptAnswer(id))?.previous != nil }

  /// How long to wait for the account of another machine, because the token of the copy is valid.
  private static let patience = Duration.seconds(10)

  /// Commits the waiting answer of an account of this shared vault, and returns the account; `nil` if no answer waits.
  func committed(_ id: AccountID, timeout: Duration = CredentialSource.patience) throws(CredentialError) -> Account? {
    guard hasAnswer(id) else { return nil }
    let accounts = try accounts(.readWrite)
    return try withAccountLock(id, timeout: timeout) { locked throws(CredentialError) in
      guard let account = try accounts.account(id) else { return nil }
      if let taken = try takeAnswer(of: account, accounts, locked) { return taken }
      // Another machine has stored a newer token.
      accounts.store.removeAnswer(for: id)
      return account
    }
  }

  /// Ends the lease of an exchange whose process died on this machine, because a login has made its answer useless.
  func endLease(of id: AccountID) {
    guard let store = try? accounts(.readWrite).store, store.isLocked(id) else { return }
    // The lease of another machine stays.
    try? withAccountLock(id, timeout: .zero) { _ throws(CredentialError) in store.removeAnswer(for: id) }
  }

  /// Commits all answers that wait on this machine for a shared vault.
  package func commitAnswers(waitingFor vault: String) throws(CredentialError) {
    let source = try joined(vault)
    for copy in try accountsIfAny()?.accounts(of: nil) ?? []
    where copy.credential.vault == vault && !copy.credential.isMoving && source.hasAnswer(copy.id) {
      do throws(CredentialError) { _ = try refreshed(copy, RefreshPolicy()) } catch {
        if error == .interrupted { throw error }
        warn(copy, error)
      }
    }
  }
}

extension CredentialSource {
  /// Commits the answers that wait for a vault which this machine forgets. Throws if the vault does not take one. A
  /// user who logs out of the copy gives its answer up.
  func commitLastAnswers(waitingFor vault: String) throws(CredentialError) {
    guard let source = try? joined(vault) else { return }
    for copy in try accountsIfAny()?.accounts(of: nil) ?? []
    where copy.credential.vault == vault && !copy.credential.isMoving {
      do throws(CredentialError) { _ = try source.committed(copy.id) } catch .interrupted {
        throw .interrupted
      } catch .vault(.server(.removed, _)) {
        // The vault takes nothing from a removed member.
      } catch { throw .shared(.answerWaits(provider: copy.provider, account: copy.name, vault: vault, error)) }
    }
    for account in (try? source.accounts().accounts(of: nil)) ?? [] { _ = try? source.committed(account.id) }
  }
}

extension CredentialSource {
  /// The joined vaults for which an answer waits here although this machine has no copy of its account, as after a
  /// logout. Needs no connection.
  package func vaultsWithAnswersOfOthers() throws(CredentialError) -> [String] {
    let names = try joinedVaults()
    if names.isEmpty { return [] }
    let copies = try accounts().accounts(of: nil)
    return names.filter { name in
      let known = copies.filter { $0.credential.vault == name }.map(\.id)
      return (try? joined(name).sharedStore())?.hasAnswers(besides: known) == true
    }
  }
}

extension Accounts {
  /// The changes that end the note of a refresh of a copy; none without such a note.
  func removals(ofRefresh id: AccountID) throws(CredentialError) -> [Change] {
    try note(id)?.exchange == .refresh ? [.remove(RecordIdentifier(.pending, of: id))] : []
  }
}

extension CredentialError {
  fileprivate var saysInterrupted: Bool {
    if case .loginNeeded(_, _, .refreshInterrupted) = self { true } else { false }
  }
}
