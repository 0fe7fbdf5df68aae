import Descriptors
import HTTP
import OAuth
import Platform
import Text
import Store

package struct ProviderRemoval: Sendable, Equatable {
  package enum RegisteredClient: Sendable, Equatable {
    case deleted(String)
    case kept  // It stays: the provider has no way to delete it, or was not to be asked.
  }

  package let client: RegisteredClient?  // `nil` where the person brought the client.
  /// The descriptor that the identifier stands for from now on; `nil` where there is none.
  package let successor: String?
}

extension CredentialSource {
  /// Removes the registration and the person's own descriptor. A client that was registered at our request is deleted
  /// at the provider before (RFC 7592, 2.3), unless `keepsRemote`. When this throws, nothing is changed here.
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
    // What is damaged says nothing of a client, and goes as well.
    let registration = try? existing?.registration(of: provider)
    let client = try deleteClient(registration, of: provider, keepsRemote: keepsRemote)
    if existing != nil { try forget(provider) }
    do throws(POSIXError) { _ = try File.remove(path) } catch { throw .system(error) }
    return ProviderRemoval(client: client, successor: home.library.path(of: provider))
  }

  /// The descriptor goes after this: another one in its place must not get the client's secret.
  private func forget(_ provider: String) throws(CredentialError) {
    let accounts = try accounts(.readWrite)
    let pending = try accounts.pending(of: provider)
    let gone = [Accounts.selection(provider)] + pending.map { RecordIdentifier(.pending, of: $0) }
    try store([provider: nil], with: gone.map { .remove($0) } + [noting(.removeProvider, of: provider)])
    for id in pending { accounts.store.removeAnswer(for: id) }
  }

  private func deleteClient(
    _ registration: Registration?, of provider: String, keepsRemote: Bool
  ) throws(CredentialError) -> ProviderRemoval.RegisteredClient? {
    guard let registration, let registered = registration.registered else { return nil }
    guard !keepsRemote, let text = registered.uri, let token = registered.accessToken, let uri = try? URI(parsing: text)
    else { return .kept }
    // The token goes to no other place than the client's own.
    guard let permit = try permitToDelete(provider, registered, at: uri) else { return .kept }
    // The proof that the vault can be changed: else the client would be gone there, and its secret stay here.
    let accounts = try accounts(.readWrite)
    try accounts.apply([.store(registration.encoded, as: Accounts.registration(provider))])
    secrets.learn(token)
    let response = try send(to: permit) { _ throws(OAuthError) in try ClientRegistration.deletion(at: uri, token) }
    let isDeleted = try core(provider, ClientRegistration.isDeleted(response))
    return isDeleted ? .deleted(text) : .kept
  }
}
