import Cryptography
import OAuth
import Descriptors

extension CredentialSource {
  /// The requests that a login would make. Nothing is sent or changed, and the provider need not have been added.
  package func plannedLogin(
    _ descriptor: Descriptor, _ options: LoginOptions, hasToken: Bool
  ) throws(CredentialError) -> (planned: LoginRequests, clientIdentifier: String?) {
    let grant = try grant(options, descriptor.grants)
    let registration = try accountsIfAny()?.registration(of: descriptor.identifier)
    let identifier = registration?.clientIdentifier ?? descriptor.client.identifier
    var descriptor = descriptor
    // As in a login: what the provider says of this one client goes before what the descriptor says of all.
    if let method = registration?.registered?.authentication { descriptor.client.authentication = method }
    let registered = registration?.variables.filter { descriptor.variable($0.key) != nil } ?? [:]
    let client: Client
    do throws(ProviderError) {
      client = try Client(
        showing: descriptor, identifier: identifier,
        hasSecret: registration.map { $0.clientSecret != nil } ?? descriptor.client.hasSecret,
        variables: registered.merging(options.variables) { _, new in new })
    } catch {
      throw .provider(error)
    }
    let scope = options.scope.isEmpty ? descriptor.scope.requested : options.scope
    let planned = try core(descriptor.identifier) { () throws(OAuthError) in
      try LoginRequests(grant, client, scope: scope, hasToken: hasToken)
    }
    return (planned, identifier)
  }
}
