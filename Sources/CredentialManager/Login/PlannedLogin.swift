import CredmgrDescriptors
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore

extension CredentialSource {
  package func plannedLogin(
    _ descriptor: Descriptor, _ options: LoginOptions, hasToken: Bool
  ) throws(CredentialError) -> (planned: LoginRequests, clientIdentifier: String?) {
    let id = AccountID(descriptor.identifier, options.account)
    let vault = try accountsIfAny()
    var options = options
    if id.name != nil, let there = try vault?.readableAccount(id) {
      options.repeat(there.credential, among: descriptor.grants)
    }
    let grant = try grant(options, descriptor.grants)
    let registration = try vault?.registration(of: descriptor.identifier)
    let identifier = registration?.clientIdentifier ?? descriptor.client.identifier
    let descriptor = registration?.applied(to: descriptor) ?? descriptor
    let registered = registration?.variables.filter { descriptor.variable($0.key) != nil } ?? [:]
    let client = try wrapping(
      CredentialError.provider,
      Client(
        showing: descriptor, identifier: identifier,
        hasSecret: registration.map { $0.clientSecret != nil } ?? descriptor.client.hasSecret,
        variables: registered.merging(options.variables) { _, new in new }))
    let scope = options.scope.isEmpty ? descriptor.scope.requested : options.scope
    let person = PersonChoice(for: id, among: try vault?.accounts(of: descriptor.identifier) ?? [])
    let planned = try core(
      descriptor.identifier, LoginRequests(grant, client, scope: scope, choosing: person, hasToken: hasToken))
    return (planned, identifier)
  }
}
