import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText
import CredmgrStore

package struct ProviderRemoval: Sendable, Equatable {
  package enum RegisteredClient: Sendable, Equatable {
    case deleted(String)
    case kept  // The provider cannot delete it, or was not asked to.
  }

  package let client: RegisteredClient?  // `nil` if the user supplied the client.
  /// The descriptor that the identifier refers to from now on; `nil` if none does.
  package let successor: String?
}

/// A provider before an addition that may have to be undone.
package struct ProviderSnapshot: Sendable {
  let provider: String
  let registration: Registration?
  let accounts: [String]
  let hasFile: Bool
}

extension CredentialSource {
  package func snapshot(of provider: String) throws(CredentialError) -> ProviderSnapshot {
    let path = home.userProviders + "/" + provider + ".yaml"
    let accounts = try accountsIfAny()
    return ProviderSnapshot(
      provider: provider, registration: try accounts?.registration(of: provider),
      accounts: try accounts?.accounts(of: provider).map(\.name) ?? [],
      hasFile: File.exists(path) || File.isLink(path))
  }

  /// Undoes an addition without `replaces`, which never changes a file that existed before. The addition stays if an
  /// account or a login needs it, or if another process has changed it.
  package func restore(_ snapshot: ProviderSnapshot) throws(CredentialError) {
    let provider = snapshot.provider
    let accounts = try accounts(.readWrite)
    // No other process can begin a login meanwhile.
    try withAccountLock(AccountID(provider), timeout: .zero, waiting: { _ in }) { _ throws(CredentialError) in
      let isUsed = try accounts.accounts(of: provider).contains { !snapshot.accounts.contains($0.name) }
      let isUnderWay = try accounts.pending(of: provider).contains { $0.name != nil && accounts.store.isLocked($0) }
      // Only the added client can use the answer to an interrupted login.
      let isAwaited = try accounts.hasUnfinishedLogin(at: provider)
      let revision = try accounts.revision(ofRegistration: provider)
      if isUsed || isUnderWay || isAwaited || revision != ownRegistrations[provider] { return }
      if let registration = snapshot.registration {
        try store([provider: registration], with: [], after: [provider: revision])
      } else {
        try forget(provider, after: revision)
      }
      if snapshot.hasFile { return }
      let path = home.userProviders + "/" + provider + ".yaml"
      do throws(POSIXError) { _ = try File.remove(path) } catch { throw .system(error) }
    }
  }

  /// Removes the registration and the user's own descriptor. First deletes a client that credmgr registered at the
  /// provider (RFC 7592, 2.3), unless `keepsRemote`. If this throws, local data is unchanged.
  package func remove(_ provider: String, keepsRemote: Bool) throws(CredentialError) -> ProviderRemoval {
    let path = home.userProviders + "/" + provider + ".yaml"
    let hasFile = File.exists(path) || File.isLink(path)
    let existing = try accountsIfAny()
    let added = try existing?.addedProviders() ?? []
    guard hasFile || added.contains(provider) else {
      if home.library.path(of: provider) != nil { throw .nothingToRemove(provider: provider) }
      throw .provider(.unknown(identifier: provider, suggestion: nearMiss(provider, among: added)))
    }
    if let damaged = try existing?.unreadable(of: provider).first { throw .vault(.damagedRecord(damaged)) }
    let accounts = try existing?.accounts(of: provider).map(\.name) ?? []
    guard accounts.isEmpty else { throw .accountsRemain(provider: provider, accounts: accounts) }
    let dependents = added.filter { $0 != provider && (try? home.library.load($0))?.bases.contains(path) ?? false }
    guard dependents.isEmpty else { throw .extended(provider: provider, by: dependents) }
    for id in try existing?.pending(of: provider) ?? [] where existing?.store.isLocked(id) == true {
      throw .loginUnderWay(provider: provider, account: id.name)
    }
    if let words = try existing?.waitingImport(at: provider) { throw .importWaits(provider: provider, command: words) }
    try dropUnfinished(of: provider, keepsRemote: keepsRemote)
    // A damaged registration names no client, so just remove it.
    let registration = try? existing?.registration(of: provider)
    let client = try deleteClient(registration, of: provider, keepsRemote: keepsRemote)
    if let existing {
      // A login may have ended meanwhile. Without its provider, its account could never be refreshed.
      let revision = registration == nil ? nil : try existing.revision(ofRegistration: provider)
      let accounts = try existing.accounts(of: provider).map(\.name)
      guard accounts.isEmpty else { throw .accountsRemain(provider: provider, accounts: accounts) }
      do throws(CredentialError) { try forget(provider, after: revision) } catch .alreadyAdded {
        throw .vault(.conflict(Accounts.registration(provider), actual: nil))
      }
    }
    do throws(POSIXError) { _ = try File.remove(path) } catch { throw .system(error) }
    return ProviderRemoval(client: client, successor: home.library.path(of: provider))
  }

  /// Revokes the tokens of interrupted logins while the client exists, or only those of imports. Returns whether there
  /// were any.
  @discardableResult package func dropUnfinished(
    of provider: String, keepsRemote: Bool, onlyOfImports: Bool = false
  ) throws(CredentialError) -> Bool {
    guard let existing = try accountsIfAny() else { return false }
    var found: [(id: AccountID, credential: Credential)] = []
    for id in try existing.pending(of: provider) where !existing.store.isLocked(id) {
      guard let note = try existing.note(id), let kept = existing.unfinishedLogin(note, id),
        !onlyOfImports || kept.importedFrom != nil
      else { continue }
      found.append((id, kept))
    }
    if found.isEmpty { return false }
    if !keepsRemote { _ = try network() }
    let accounts = try accounts(.readWrite)
    try accounts.apply(found.map { .remove(RecordIdentifier(.pending, of: $0.id)) })
    for (id, _) in found { accounts.store.removeAnswer(for: id) }
    drop(found.map(\.credential), of: provider, keepsRemote: keepsRemote, areGivenUp: true)
    return true
  }

  /// The descriptor is removed last, because another with its name must not get the client's secret.
  private func forget(_ provider: String, after revision: Int64? = nil) throws(CredentialError) {
    let accounts = try accounts(.readWrite)
    let pending = try accounts.pending(of: provider)
    let failures = try accounts.records(.failure, of: provider).map(\.identifier)
    let gone =
      [Accounts.selection(provider), Accounts.keySet(provider)] + pending.map { RecordIdentifier(.pending, of: $0) }
      + failures
    try store(
      [provider: nil], with: gone.map { .remove($0) } + [noting(.removeProvider, of: provider)],
      after: revision.map { [provider: $0] } ?? [:])
    for id in pending { accounts.store.removeAnswer(for: id) }
  }

  private func deleteClient(
    _ registration: Registration?, of provider: String, keepsRemote: Bool
  ) throws(CredentialError) -> ProviderRemoval.RegisteredClient? {
    guard let registration, let registered = registration.registered else { return nil }
    guard !keepsRemote, let text = registered.uri, let token = registered.accessToken, let uri = try? URI(parsing: text)
    else { return .kept }
    // The token goes only to the client's own address.
    guard let permit = try permitToDelete(provider, registered, at: uri) else { return .kept }
    // Check that the vault is writable. Otherwise the provider would delete the client and its secret would stay here.
    let accounts = try accounts(.readWrite)
    try accounts.apply([.store(registration.encoded, as: Accounts.registration(provider))])
    secrets.learn(token)
    let response = try send(to: permit) { _ throws(OAuthError) in try ClientRegistration.deletion(at: uri, token) }
    let isDeleted = try core(provider, ClientRegistration.isDeleted(response))
    return isDeleted ? .deleted(text) : .kept
  }
}
