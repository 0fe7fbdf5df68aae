import CredmgrCredentialManager
import CredmgrDescriptors

extension Context {
  /// Whether a login adds this provider: a shipped one that needs no client and no variables.
  func isAddedByLogin(_ provider: String) -> Bool {
    guard let loaded = try? home.library.load(provider), source.isShipped(loaded) else { return false }
    return ClientNeeds(loaded.descriptor).options.isEmpty
  }

  /// Returns what a login still requires of a provider that has not been added; `nil` if it can add the provider.
  func missing(
    to provider: String, _ descriptor: Descriptor, _ variables: [String: String]
  ) -> CredentialError? {
    var needs = ClientNeeds(descriptor)
    guard isShipped(provider), !needs.needsIdentifier else { return .notAdded(provider: provider, needs) }
    needs.leaveOut(variables)
    let name = needs.variables.first.map { String($0.prefix { $0 != "=" }) }
    return name.flatMap(descriptor.variable).map { .provider(.missingVariable($0)) }
  }

  /// Whether the provider can say that it still accepts a token; `true` if its descriptor cannot be read.
  func canValidate(_ provider: String) -> Bool {
    guard let endpoints = try? home.library.load(provider).descriptor.endpoints else { return true }
    return endpoints[.identity] != nil || endpoints[.introspection] != nil
  }
}
