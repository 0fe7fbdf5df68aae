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
      try requirePlaces(in: vault, of: provider)
      FaultPoint.reach("share.published")
      if !account.credential.isMoving {
        if !replaces, try source.accounts().account(id) != nil {
          throw .shared(.nameTaken(provider: provider, account: account.name, vault: vault))
        }
        (account.credential.vault, account.credential.isMoving) = (vault, true)
        account.credential.isReplacing = replaces
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
    let replaces = replaces || whole.credential.isReplacing
    (whole.credential.vault, whole.credential.isMoving, whole.credential.isReplacing) = (nil, false, false)
    // The members may have changed the provider since the mark.
    do throws(CredentialError) {
      try requirePlaces(in: account.credential.vault ?? "", of: account.provider)
    } catch .shared(let refusal) {
      // Only one of the two may refresh the account.
      guard try theirs.account(account.id)?.credential.isSameLogin(as: whole.credential) == true else {
        _ = try storing(whole, in: local)
        throw .shared(refusal)
      }
    }
    // A login also puts a damaged default account right. The first contact also tells how the server's clock differs.
    var isFirst = try inStore(theirs.store.isLost(Accounts.selection(account.provider)))
    // There may be thousands of accounts, so they are not read if there is a default.
    if !isFirst, try theirs.selected(for: account.provider) == nil {
      isFirst = try theirs.accounts(of: account.provider).isEmpty
    }
    let moved = whole.credential.shifted(by: source.shared?.clockOffset ?? .zero)
    let identifier = RecordIdentifier(.credential, of: account.id)
    var changes: [Change] = [
      .require(Accounts.registration(account.provider)),
      .store(moved.encoded, as: identifier, if: replaces ? .any : .absent),
      source.noting(.share, of: account.provider, account: account.name),
    ]
    if isFirst {
      changes.append(.store(Secret(account.name), as: Accounts.selection(account.provider)))
    }
    do throws(StoreError) { try theirs.store.apply(changes) } catch {
      guard case .conflict(let found, _) = error, found == identifier else { throw .vault(error) }
    }
    FaultPoint.reach("share.stored")
    guard let stored = try theirs.account(account.id), stored.credential.isSameLogin(as: whole.credential) else {
      // The name belongs to another login, so this one stays here.
      _ = try storing(whole, in: local)
      throw .shared(
        .nameTaken(
          provider: account.provider, account: account.name, vault: account.credential.vault ?? ""))
    }
    if replaces { source.endLease(of: account.id) }
    let copy = try store(stored, insteadOf: account, in: local)
    note(.share, account.credential.vault)
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
  /// With `replaces`, it replaces that of the vault. From then on, this machine's registration follows the vault's.
  package func publish(
    _ provider: String, in vault: String, replaces: Bool = false
  ) throws(CredentialError) {
    let source = try joined(vault)
    let loaded = try descriptor(provider)
    guard var registration = try accounts().registration(of: provider) else {
      throw .notAdded(provider: provider, ClientNeeds(loaded.descriptor))
    }
    try requireShareable(registration.variables, of: loaded.descriptor)
    var changes: [Change] = [
      .store(
        registration.shareable.encoded, as: Accounts.registration(provider), if: replaces ? .any : .absent),
      source.noting(.addProvider, of: provider),
    ]
    for (name, text) in ownDescriptors(of: [provider]) {
      changes.append(.store(Secret(text), as: RecordIdentifier(kind: .descriptor, provider: name, account: "")))
    }
    let theirs = try source.accounts(.readWrite)
    do throws(StoreError) { try theirs.store.apply(changes) } catch {
      // Another member was faster.
      guard case .conflict = error else { throw .vault(error) }
      return
    }
    registration.vault = vault
    try store([provider: registration], with: [])
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
    let known = try theirs.accounts(of: provider)
    let accounts = try known.map(\.name) + theirs.unreadable(of: provider, without: known).map(\.account)
    guard accounts.isEmpty else { throw .accountsRemain(provider: provider, accounts: accounts, vault: vault) }
    let records = try theirs.records(.descriptor, of: nil)
    let texts = Dictionary(records.map { ($0.identifier.provider, $0.payload.reveal()) }) { first, _ in first }
    let dependents = texts.keys.filter { other in
      other != provider
        && (try? library(with: texts).load(other))?.bases.contains(path(ofOwn: provider)) == true
    }
    guard dependents.isEmpty else { throw .extended(provider: provider, by: dependents.sorted(), vault: vault) }
    try theirs.apply(found.map { .remove($0) } + [source.noting(.removeProvider, of: provider)])
  }

  /// Throws unless a shared vault accepts changes.
  package func requireChangeable(_ provider: String, in vault: String) throws(CredentialError) {
    let store = try joined(vault).accounts(.readWrite).store
    try inStore { () throws(StoreError) in try store.check([Accounts.registration(provider)]) }
  }
}

extension Credential {
  /// Whether both come from the same login. A refresh changes none of these values.
  fileprivate func isSameLogin(as other: Credential) -> Bool {
    grant == other.grant && loggedInAt == other.loggedInAt && isGiven == other.isGiven
      && requestedScope == other.requestedScope && variables == other.variables
      && (refreshedWith != nil || accessToken == other.accessToken || grant.traits.renewal == .login)
  }
}
