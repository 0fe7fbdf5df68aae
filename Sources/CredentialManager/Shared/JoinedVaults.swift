import CredmgrCryptography
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText

/// The shared vault that a source uses instead of the user's own vault.
struct JoinedVault {
  let name: String
  let store: any SharedStore
  /// The user's own vault, which keeps everything that only this machine needs.
  let local: any AccountStore
}

extension JoinedVault {
  /// How far the server's clock is ahead, unless it is only inexact.
  var clockOffset: Duration {
    let seconds = store.clockOffset.wholeSeconds
    return (-30...30).contains(seconds) ? .zero : .seconds(seconds)
  }
}

/// The clock of a shared vault's server.
struct ServerClock: WallClock {
  let own: any WallClock
  let offset: Duration

  func now() -> Moment { own.now() + offset }
  func monotonic() -> MonotonicMoment { own.monotonic() }
  func sleep(for time: Duration) throws(POSIXError) { try own.sleep(for: time) }
}

extension CredentialSource {
  /// The names of the vaults that this machine joined, sorted. Needs no network.
  package func joinedVaults() throws(CredentialError) -> [String] {
    try accountsIfAny()?.records(.membership, of: nil).map(\.identifier.provider).sorted() ?? []
  }

  /// Returns the name of a joined vault: the given one, or else the only one.
  package func vaultName(_ given: String?) throws(CredentialError) -> String {
    let names = try joinedVaults()
    if let given {
      guard names.contains(given) else { throw .vault(.server(.notJoined, vault: given)) }
      return given
    }
    guard names.count == 1 else { throw .shared(.vaultNeeded(known: names)) }
    return names[0]
  }

  /// Returns a source whose accounts are those of a joined vault. The first use connects to its server.
  package func joined(_ given: String?) throws(CredentialError) -> CredentialSource {
    let name = try vaultName(given)
    if let source = joinedSources[name] { return source }
    let (vaults, place) = try sharedVaults()
    let source = CredentialSource(home: home, clock: ownClock, random: random, secrets: secrets, keys: keys)
    (source.http, source.renewal) = (http, renewal)
    source.shared = JoinedVault(name: name, store: try inStore(vaults.open(name, in: place)), local: place.local)
    source.notice = { [unowned self] in notice($0) }
    joinedSources[name] = source
    return source
  }

  /// Returns the library of shared vaults with what this machine contributes. Throws `.networkNeeded` without it.
  private func sharedVaults() throws(CredentialError) -> (any SharedVaults, SharedPlace) {
    guard let vaults else { throw .networkNeeded }
    let place = SharedPlace(
      local: try accounts(.readWrite).store, folder: home.vault + "/shared", random: random, clock: clock)
    return (vaults, place)
  }

  package func createVault(
    _ name: String, at server: String, password: Secret?, member: String
  ) throws(CredentialError) {
    let (vaults, place) = try sharedVaults()
    try inStore(vaults.create(name, at: server, password: password, member: member, in: place))
    note(.create, name)
  }

  /// Joins a vault, and gets its accounts. Returns its name on this machine.
  package func joinVault(
    _ invitation: Secret, as name: String?, member: String?
  ) throws(CredentialError) -> String {
    let (vaults, place) = try sharedVaults()
    let (joined, invited) = try inStore(vaults.join(invitation, as: name, member: member, in: place))
    note(.join, joined)
    // The other members learn who used which invitation.
    try? self.joined(joined).noteShared(.join, invited)
    return joined
  }

  /// Forgets a vault and the copies of its accounts. Returns whether the other members no longer list this machine, and
  /// whether an answer to a refresh is lost, because the vault did not take it after a logout. Throws if an account is
  /// still on its way to the vault, or if the answer of an account that is logged in would be lost.
  package func leaveVault(
    _ name: String
  ) throws(CredentialError) -> (isRemoved: Bool, losesAnswer: Bool) {
    try commitLastAnswers(waitingFor: name)
    let accounts = try accounts(.readWrite)
    let copies = try accounts.accounts(of: nil).filter { $0.credential.vault == name }
    if let account = copies.first(where: \.credential.isMoving) {
      throw .shared(.unfinishedShare(provider: account.provider, account: account.name, vault: name))
    }
    for copy in copies { try forget(copy, in: accounts) }
    // A machine also leaves a vault whose server is away.
    let store = try? joined(name).sharedStore()
    let losesAnswer = store?.hasAnswers(besides: []) == true
    let isRemoved = (try? store?.leave()) ?? false
    joinedSources[name] = nil
    let place = SharedPlace(local: accounts.store, folder: home.vault + "/shared", random: random, clock: clock)
    try inStore(place.forget(name))
    let taken = try accounts.records(.descriptor, of: nil).filter { $0.identifier.account == name }
    try accounts.apply(taken.map { .remove($0.identifier) })
    store?.removeFiles()
    note(.leave, name)
    return (isRemoved, losesAnswer)
  }

  /// Stores another password of a joined vault's database.
  package func setPassword(_ password: Secret, ofVault name: String) throws(CredentialError) {
    let store = try joined(name).sharedStore()
    try inStore { () throws(StoreError) in try store.setPassword(password) }
    joinedSources[name] = nil
  }

  /// Returns the store of a shared vault, for the operations that no other store has.
  package func sharedStore() throws(CredentialError) -> any SharedStore {
    guard let shared else { throw .shared(.vaultNeeded(known: [])) }
    return shared.store
  }

  /// Notes that a member did something with this vault, in the vault's own log.
  package func noteShared(_ action: LogEvent.Action, _ detail: String?) { note(action, detail) }

  /// Removes the copy of an account and, if it was the default, that choice. Another process may have replaced it.
  func forget(_ copy: Account, in accounts: Accounts) throws(CredentialError) {
    let changes = try forgetting(copy, in: accounts)
    do throws(StoreError) { try accounts.store.apply(changes) } catch .conflict { return } catch {
      throw .vault(error)
    }
  }

  /// Returns the changes that remove the copies of other vaults, if the provider's tokens will go to new places. The
  /// members of those vaults have not agreed to these places. The members of this vault have not agreed either for an
  /// account that it does not show now.
  func forgetting(
    copiesOfOthersThan vault: String, of provider: String, before places: [NewPlace], in accounts: Accounts
  ) throws(CredentialError) -> [Change] {
    if places.isEmpty { return [] }
    var (changes, others): ([Change], Set<String>) = ([], [])
    let shown = try joined(vault).accounts().accounts(of: provider).map(\.name)
    for copy in try accounts.accounts(of: provider) where !copy.credential.isMoving {
      guard let other = copy.credential.vault, other != vault || !shown.contains(copy.name) else { continue }
      changes += try forgetting(copy, in: accounts)
      if other != vault, others.insert(other).inserted {
        notice(
          .withheld(
            provider: provider, vault: other,
            .shared(.otherProvider(provider: provider, vault: other, places, .isOwn))))
      }
    }
    return changes
  }

  private func forgetting(_ copy: Account, in accounts: Accounts) throws(CredentialError) -> [Change] {
    var changes: [Change] = [
      .remove(RecordIdentifier(.credential, of: copy.id), if: .revision(copy.revision)),
      .remove(RecordIdentifier(.pending, of: copy.id)),
      noting(.logout, of: copy.provider, account: copy.name, detail: copy.credential.vault),
    ]
    if try accounts.selected(for: copy.provider) == copy.name {
      changes.append(.remove(Accounts.selection(copy.provider)))
    }
    return changes
  }

  // MARK: Accounts that this machine does not know

  /// Looks up an account, and once more after asking the joined vaults if this machine does not know it.
  func lookingFurther<Result>(
    at provider: String, _ look: () throws(CredentialError) -> Result
  ) throws(CredentialError) -> Result {
    do { return try look() } catch {
      guard error.meansUnknown, shared == nil else { throw error }
      let names = try joinedVaults()
      if names.isEmpty { throw error }
      // One of the vaults may have the account although another one does not answer.
      var failure: CredentialError?
      for name in names {
        do throws(CredentialError) { try synchronize(with: name, of: provider) } catch {
          if error == .networkNeeded || error == .interrupted { throw error }
          failure = failure ?? error
        }
      }
      do { return try look() } catch { throw error.meansUnknown ? failure ?? error : error }
    }
  }

  /// Gets the accounts of a provider from the joined vaults if this machine does not know the named one.
  package func find(_ name: String?, of provider: String) throws(CredentialError) {
    try lookingFurther(at: provider) { () throws(CredentialError) in
      _ = try accounts(neededFor: name, of: provider).resolve(name, provider: provider)
    }
  }
}

extension CredentialSource {
  /// Gets the providers of the joined vaults that this machine does not know. Returns whether there may be a new one.
  /// Asks at most once a minute, because helpers are asked about hosts of no provider as well.
  func learnProviders() throws(CredentialError) -> Bool {
    guard shared == nil, case let names = try joinedVaults(), !names.isEmpty else { return false }
    let folder = home.vault + "/shared"
    let path = folder + "/asked"
    let now = clock.now().secondsSince1970
    let last = (try? PrivateFile.read(path, limit: 32)).flatMap { Int64(String(decoding: $0, as: UTF8.self)) } ?? 0
    if (0..<Self.pause).contains(now - last) { return false }
    if vaults == nil { throw .networkNeeded }
    try? PrivateFile.createDirectory(folder)
    try? PrivateFile.replace(path, Array("\(now)".utf8))
    var hasLearned = false
    for name in names {
      // An unreachable server must not keep git from its other hosts.
      do throws(CredentialError) {
        let known = try Set(accounts().addedProviders())
        for provider in try joined(name).accounts().addedProviders() where !known.contains(provider) {
          try synchronize(with: name, of: provider)
          hasLearned = true
        }
      } catch .interrupted { throw .interrupted } catch {}
    }
    return hasLearned
  }

  private static var pause: Int64 { 60 }
}

extension CredentialSource {
  /// The shared vault that this source uses; `nil` for the user's own vault.
  package var sharedName: String? { shared?.name }
}

extension CredentialError {
  /// Returns the error with the shared vault that has the damaged record, because its remedy names the vault.
  package func inVault(_ name: String) -> CredentialError {
    if case .vault(.damagedRecord(let record)) = self { .vault(.server(.damaged(record), vault: name)) } else { self }
  }

  /// Whether this machine does not know the account.
  fileprivate var meansUnknown: Bool {
    switch self {
    case .loginNeeded(_, _, .noCredential), .unknownAccount: true
    default: false
    }
  }
}
