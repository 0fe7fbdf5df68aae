import CredmgrCredentialManager
import CredmgrDescriptors

extension Context {
  /// Whether a login adds this provider: a shipped one that needs no client and no variables.
  func isAddedByLogin(_ provider: String) -> Bool {
    guard let loaded = try? home.library.load(provider), source.isShipped(loaded) else { return false }
    return ClientNeeds(loaded.descriptor).options.isEmpty
  }

  /// Whether the provider can say that it still accepts a token; `true` if its descriptor cannot be read.
  func canValidate(_ provider: String) -> Bool {
    guard let endpoints = try? home.library.load(provider).descriptor.endpoints else { return true }
    return endpoints[.identity] != nil || endpoints[.introspection] != nil
  }
}
