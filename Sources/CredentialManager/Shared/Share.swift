import CredmgrCryptography
import CredmgrDescriptors
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore

// An account moves to a shared vault in three steps, each of which is one change of one vault:
//
// 1. The account here gets the mark `moving`. From now on this machine asks the shared vault for a refresh.
// 2. The shared vault gets the credential, unless it has it already.
// 3. The account here becomes a copy, without the refresh token.
//
// Only the shared vault refreshes the account after step 1, so no refresh token ever has two holders. A process that
// finds the mark goes on with step 2.
extension CredentialSource {
  /// Moves an account of this machine to a shared vault. `replaces` says whether the vault's account of this name is
  /// the same account, whose credential a login has renewed.
  @discardableResult package func share(
    _ name: String?, of provider: String, in vault: String, replaces: Bool = false
  ) throws(CredentialError) -> Account {
    let source = try joined(vault)
    let accounts = try accounts(neededFor: name, of: provider)
    let id = try accounts.resolve(name, provider: provider).id
    _ = try self.accounts(.readWrite)
    return try withAccountLock(id) { locked throws(CredentialError) in
      let accounts = try self.accounts(.readWrite)
      var account = try accounts.existing(id)
      account = try takeAnswer(of: account, accounts, locked) ?? account
      if let other = account.credential.vault, other != vault || !account.credential.isMoving {
        throw .shared(.alreadyShared(provider: provider, account: account.name, vault: other))
      }
      // The refresh token may be used up or refused. The other members should not be the first to find out.
      if try accounts.note(id) != nil { throw .shared(.unfinishedExchange(provider: provider, account: account.name)) }
      try requireShareable(account.credential.variables, of: descriptor(provider).descriptor)
      if try source.accounts().registration(of: provider) == nil { try publish(provider, in: vault) }
      FaultPoint.reach("share.published")
      if !account.credential.isMoving {
        try requirePlaces(in: vault, of: provider)
        if !replaces, try source.accounts().account(id) != nil {
          throw .shared(.nameTaken(provider: provider, account: account.name, vault: vault))
        }
        (account.credential.vault, account.credential.isMoving) = (vault, true)
        account.credential.isReplacing = replaces
        let there = try replaces ? source.accounts().unlessLost(id) : nil
        (account.credential.replacedRevision, account.credential.replacedLogin) =
          (there?.revision, there?.credential.loggedInAt)
        account = try storing(account, in: accounts)
      }
      FaultPoint.reach("share.marked")
      return try finishMove(of: account, to: source, replaces: replaces)
    }
  }

  /// Throws if a vault has another account of this name than this machine.
  func requireFree(_ name: String, of provider: String, in vault: String) throws(CredentialError) {
    let id = AccountID(provider, name)
    guard let here = try accountsIfAny()?.readableAccount(id), here.credential.vault != vault,
      // A damaged account is replaced.
      let theirs = try? joined(vault).accounts().account(id)
    else { return }
    throw .shared(.nameTaken(provider: provider, account: theirs.name, vault: vault))
  }

  /// Stores a moving account in its shared vault, and makes it a copy here. The caller holds the account's lock.
  func finishMove(
    of account: Account, to source: CredentialSource, replaces: Bool = false
  ) throws(CredentialError) -> Account {
    let (local, theirs) = (try accounts(.readWrite), try source.accounts(.readWrite))
    var whole = account
    let isResumed = !replaces
    let replaces = replaces || whole.credential.isReplacing
    (whole.credential.vault, whole.credential.isMoving, whole.credential.isReplacing) = (nil, false, false)
    (whole.credential.replacedRevision, whole.credential.replacedLogin) = (nil, nil)
    let vault = account.credential.vault ?? ""
    // A login also puts a damaged default account right. The first contact also tells how the server's clock differs.
    var isFirst = try inStore(theirs.store.isLost(Accounts.selection(account.provider)))
    // There may be thousands of accounts, so they are not read if there is a default.
    if !isFirst, try theirs.selected(for: account.provider) == nil {
      isFirst = try theirs.accounts(of: account.provider).isEmpty
    }
    let moved = whole.credential.shifted(by: source.shared?.clockOffset ?? .zero)
    let identifier = RecordIdentifier(.credential, of: account.id)
    let place = Accounts.registration(account.provider)
    while true {
      let there = try replaces ? theirs.unlessLost(account.id) : theirs.account(account.id)
      // An earlier attempt has stored the account, and another machine may have refreshed it since.
      let isOurs = there?.credential.isSameLogin(as: whole.credential) == true
      if isOurs, !replaces || there?.revision != account.credential.replacedRevision { break }
      if isResumed, replaces, !isOurs, let there, account.credential.isOutdated(by: there) {
        _ = try storing(whole, in: local)
        throw .shared(.loggedInSince(provider: account.provider, account: account.name, vault: vault))
      }
      // The members may have changed the provider since the mark, or between this comparison and the change.
      let registration: Record?
      do throws(CredentialError) {
        registration = try requirePlaces(in: vault, of: account.provider)
      } catch .shared(let refusal) {
        _ = try storing(whole, in: local)
        throw .shared(refusal)
      }
      guard let registration else {
        try publish(account.provider, in: vault)
        continue
      }
      FaultPoint.reach("share.compared")
      let precondition = replaces ? there.map { .revision($0.revision) } ?? .any : Precondition.absent
      var changes: [Change] = [
        .store(moved.encoded, as: identifier, if: precondition),
        // A member who is changing the provider notices by the revision that there is another account.
        .store(registration.payload, as: place, if: .revision(registration.revision)),
        source.noting(.share, of: account.provider, account: account.name),
      ]
      if isFirst {
        changes.append(.store(Secret(account.name), as: Accounts.selection(account.provider)))
      }
      do throws(StoreError) {
        try theirs.store.apply(changes)
        break
      } catch {
        guard case .conflict(let found, _) = error, [identifier, place].contains(found) else { throw .vault(error) }
        if found == identifier, !replaces { break }
      }
    }
    FaultPoint.reach("share.stored")
    guard let stored = try theirs.account(account.id), stored.credential.isSameLogin(as: whole.credential) else {
      // The name belongs to another login, so this one stays here.
      _ = try storing(whole, in: local)
      throw .shared(.nameTaken(provider: account.provider, account: account.name, vault: vault))
    }
    if replaces { source.endLease(of: account.id) }
    var newest = stored
    if stored.credential.accessToken != moved.accessToken {
      // Another machine has refreshed it, perhaps at a server to which the members moved the provider since.
      newest = (try? source.accepted(stored, accepts(account))) ?? whole
    }
    let copy = try store(newest, insteadOf: account, in: local)
    note(.share, vault)
    FaultPoint.reach("share.done")
    return copy
  }

  /// Stores the credential of an account unless another process has changed it.
  private func storing(_ account: Account, in accounts: Accounts) throws(CredentialError) -> Account {
    let identifier = RecordIdentifier(.credential, of: account.id)
    let revision = try inStore(
      accounts.store.apply([
        .store(account.credential.encoded, as: identifier, if: .revision(account.revision))
      ]))
    return Account(
      provider: account.provider, name: account.name, credential: account.credential, revision: revision)
  }

  /// Stores the registration of a provider in a shared vault, with the descriptors that did not come with the program.
  /// It replaces `earlier`, unless a member has changed the provider or shared an account since. From then on, this
  /// machine's registration follows the vault's.
  package func publish(
    _ provider: String, in vault: String, replacing earlier: SharedProvider? = nil
  ) throws(CredentialError) {
    let source = try joined(vault)
    let loaded = try descriptor(provider)
    guard var registration = try accounts().registration(of: provider) else {
      throw .notAdded(provider: provider, ClientNeeds(loaded.descriptor))
    }
    try requireShareable(registration.variables, of: loaded.descriptor)
    var changes: [Change] = [
      .store(
        registration.shareable.encoded, as: Accounts.registration(provider), if: earlier?.precondition ?? .absent),
      source.noting(.addProvider, of: provider),
    ]
    var published: [Change] = []
    for (name, text) in ownDescriptors(of: [provider]) {
      changes.append(.store(Secret(text), as: RecordIdentifier(kind: .descriptor, provider: name, account: "")))
      if try !isTaken(Array(text.utf8), as: name, from: vault) {
        published.append(try taking(text, as: name, from: vault, isPublished: true))
      }
    }
    let theirs = try source.accounts(.readWrite)
    do throws(StoreError) { try theirs.store.apply(changes) } catch {
      // Another member was faster.
      guard case .conflict = error else { throw .vault(error) }
      if earlier != nil { throw .shared(.providerChanged(provider: provider, vault: vault, isChangedHere: true)) }
      return
    }
    registration.vault = vault
    try store([provider: registration], with: published)
  }

  /// Removes a provider's registration, default and descriptor from a shared vault. The machines that have them keep
  /// them.
  package func withdraw(_ provider: String, from vault: String) throws(CredentialError) {
    let source = try joined(vault)
    let theirs = try source.accounts(.readWrite)
    func has(_ identifier: RecordIdentifier) throws(CredentialError) -> Bool {
      do { return try theirs.record(identifier) != nil } catch .vault(.damagedRecord) { return true }
    }
    let descriptor = RecordIdentifier(kind: .descriptor, provider: provider, account: "")
    let parts = [Accounts.registration(provider), Accounts.selection(provider), descriptor]
    var found: [RecordIdentifier] = []
    for part in parts where try has(part) { found.append(part) }
    guard found.contains(where: { $0.kind != .selection }) else {
      throw .nothingToRemove(provider: provider, vault: vault)
    }
    let before = try sharedProvider(provider, in: vault)
    let unreadable = try theirs.unreadable(of: provider, without: before.accounts)
    let accounts = before.accounts.map(\.name) + unreadable.map(\.account)
    guard accounts.isEmpty else { throw .accountsRemain(provider: provider, accounts: accounts, vault: vault) }
    let records = try theirs.records(.descriptor, of: nil)
    let texts = Dictionary(records.map { ($0.identifier.provider, $0.payload.reveal()) }) { first, _ in first }
    let dependents = texts.keys.filter { other in
      other != provider
        && (try? library(with: texts).load(other))?.bases.contains(path(ofOwn: provider)) == true
    }
    guard dependents.isEmpty else { throw .extended(provider: provider, by: dependents.sorted(), vault: vault) }
    let removals = found.map { Change.remove($0, if: $0.kind == .registration ? before.precondition : .any) }
    do throws(StoreError) {
      try theirs.store.apply(removals + [source.noting(.removeProvider, of: provider)])
    } catch .conflict {
      throw .shared(.providerChanged(provider: provider, vault: vault, isChangedHere: false))
    } catch {
      throw .vault(error)
    }
  }

  /// Returns a provider of a shared vault that this machine will change. Throws unless the vault accepts changes.
  package func sharedProvider(_ provider: String, in vault: String) throws(CredentialError) -> SharedProvider {
    try requireChangeable(provider, in: vault)
    let theirs = try joined(vault).accounts()
    let place = Accounts.registration(provider)
    // The registration comes first: each account that is shared later gives it another revision.
    let isLost = try inStore(theirs.store.isLost(place))
    let record = isLost ? nil : try theirs.record(place)
    let accounts = try theirs.accounts(of: provider)
    // The server may hide an account from the question, and show it again later. Only this change replaces a
    // registration that is lost too.
    let unreadable = try theirs.unreadable(of: provider, without: accounts)
    if !isLost, let damaged = unreadable.first { throw .vault(.server(.damaged(damaged), vault: vault)) }
    return SharedProvider(
      accounts: accounts, unreadable: unreadable.map(\.account),
      agreement: record.flatMap { Registration(decoding: $0.payload)?.agreement },
      precondition: isLost ? .any : record.map { .revision($0.revision) } ?? .absent)
  }

  /// Throws unless a shared vault accepts changes.
  package func requireChangeable(_ provider: String, in vault: String) throws(CredentialError) {
    let store = try joined(vault).accounts(.readWrite).store
    try inStore { () throws(StoreError) in try store.check([Accounts.registration(provider)]) }
  }
}

extension Accounts {
  /// Returns an account of a shared vault; `nil` if it was altered, removed or set back, and may be replaced.
  fileprivate func unlessLost(_ id: AccountID) throws(CredentialError) -> Account? {
    try inStore(store.isLost(RecordIdentifier(.credential, of: id))) ? nil : account(id)
  }
}

/// A provider of a shared vault before a member changes it.
package struct SharedProvider: Sendable {
  /// The accounts whose tokens the changed provider gets.
  let accounts: [Account]
  /// The names of accounts that the server has altered or hides.
  let unreadable: [String]
  /// The agreement of the vault's registration; `nil` without a readable one.
  let agreement: Agreement?
  /// Holds until a member changes the registration or shares an account.
  let precondition: Precondition
}

extension Credential {
  /// Whether the account that this credential on its way replaces has another login now, or appeared since. A refresh
  /// changes only the revision.
  fileprivate func isOutdated(by there: Account) -> Bool {
    let login = there.credential.loggedInAt
    // Earlier versions did not mark what a login replaces.
    let hasAppeared = replacedRevision == nil && loginIdentifier != nil
    return there.revision != replacedRevision
      && (replacedLogin.map { $0 != login } ?? (hasAppeared || login >= loggedInAt))
  }

  /// Whether both come from the same login. A refresh changes none of these values.
  fileprivate func isSameLogin(as other: Credential) -> Bool {
    grant == other.grant && loggedInAt == other.loggedInAt && isGiven == other.isGiven
      && requestedScope == other.requestedScope && variables == other.variables
      && (loginIdentifier ?? other.loginIdentifier) == (other.loginIdentifier ?? loginIdentifier)
      && (refreshedWith != nil || accessToken == other.accessToken || grant.traits.renewal == .login)
  }
}
