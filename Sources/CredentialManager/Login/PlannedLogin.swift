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
    if let there = try repeatedAccount(id.provider, options, hasToken: hasToken) {
      options.repeat(there.credential, in: descriptor)
    }
    let grant = try grant(options, descriptor.grants)
    let registration = try vault?.registration(of: descriptor.identifier)
    let identifier = registration?.clientIdentifier ?? descriptor.client.identifier
    var descriptor = registration?.applied(to: descriptor) ?? descriptor
    try descriptor.request(options.details)
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
      descriptor.identifier,
      LoginRequests(grant, client, scope: scope, demanding: options.demands, choosing: person, hasToken: hasToken))
    return (planned, identifier)
  }
}

extension CredentialSource {
  /// Returns the account whose scopes and variables a login repeats: the named one, or the only or default account if
  /// it needs a login.
  func repeatedAccount(
    _ provider: String, _ options: LoginOptions, hasToken: Bool
  ) throws(CredentialError) -> Account? {
    guard let accounts = try accountsIfAny() else { return nil }
    if let name = options.account { return try accounts.readableAccount(AccountID(provider, name)) }
    guard !hasToken, let likely = try accounts.likely(at: provider), likely.credential.grant.isConsent,
      options.grant?.isConsent ?? true
    else { return nil }
    if options.keepsScope { return likely }
    return try accounts.state(of: likely, accounts.note(likely.id), at: clock.now()).needsLogin ? likely : nil
  }
}

extension Accounts {
  /// Returns the only account or the default account.
  func likely(at provider: String) throws(CredentialError) -> Account? {
    let all = try accounts(of: provider)
    if all.count == 1 { return all[0] }
    let selected = try selected(for: provider)
    return all.first { $0.name == selected }
  }
}

extension Grant {
  /// Whether a user consents on a page, and types nothing.
  fileprivate var isConsent: Bool { traits.needsPerson && traits.typed == nil }
}

extension PersonChoice {
  /// Returns the user to ask for, because a browser session of another user would consent as that user; `nil` if the
  /// provider has no other account and the last login was not for another user.
  init?(for id: AccountID, among accounts: [Account], after failure: LoginFailure?) {
    guard accounts.contains(where: { $0.name != id.name }) || failure?.isWrongPerson == true else { return nil }
    self.init(identity: accounts.first { $0.name == id.name }?.credential.ownIdentity)
  }
}
