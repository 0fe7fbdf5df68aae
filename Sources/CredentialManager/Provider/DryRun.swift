import Cryptography
import OAuth
import Descriptors

extension CredentialSource {
  /// The requests that a login would make. Nobody is asked anything, and nothing is changed; the provider need not have been
  /// added.
  ///
  /// - Parameter hasToken: whether the person brings a token.
  /// - Throws: `CredentialError.provider`, `.grantNotOffered`, `.vault`, and `.oauth` where a request does not come about.
  public func rehearse(
    _ descriptor: Descriptor, _ wish: LoginOptions, hasToken: Bool
  ) throws(CredentialError) -> (rehearsal: Rehearsal, clientIdentifier: String?) {
    let grant = try grant(wish, descriptor.grants)
    let registration = try accountsIfAny()?.registration(of: descriptor.identifier)
    let identifier = registration?.clientIdentifier ?? descriptor.client.identifier
    var descriptor = descriptor
    // As in a login: what the provider says of this one client goes before what the descriptor says of all.
    if let method = registration?.registered?.authentication { descriptor.client.authentication = method }
    let registered = registration?.variables.filter { descriptor.variable($0.key) != nil } ?? [:]
    do {
      let rehearsal = try Rehearsal(
        descriptor, grant, identifier: identifier,
        hasSecret: registration.map { $0.clientSecret != nil } ?? descriptor.client.hasSecret,
        variables: registered.merging(wish.variables) { _, new in new },
        scope: wish.scope.isEmpty ? descriptor.scope.requested : wish.scope, hasToken: hasToken)
      return (rehearsal, identifier)
    } catch let error as ProviderError {
      throw .provider(error)
    } catch let error as OAuthError {
      throw .oauth(error, provider: descriptor.identifier)
    } catch {
      throw .interrupted
    }
  }
}
