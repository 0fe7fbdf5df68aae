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
      options.repeat(there.credential, in: descriptor)
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
    let person = PersonChoice(
      for: id, among: try vault?.accounts(of: descriptor.identifier) ?? [], after: try vault?.failure(id)?.0)
    let planned = try core(
      descriptor.identifier, LoginRequests(grant, client, scope: scope, choosing: person, hasToken: hasToken))
    return (planned, identifier)
  }
}

extension PersonChoice {
  /// Returns the user to ask for, because a browser session of another user would consent as that user; `nil` if the
  /// provider has no other account and the last login was not for another user.
  init?(for id: AccountID, among accounts: [Account], after failure: LoginFailure?) {
    guard accounts.contains(where: { $0.name != id.name }) || failure?.isWrongPerson == true else { return nil }
    self.init(identity: accounts.first { $0.name == id.name }?.credential.ownIdentity)
  }
}
