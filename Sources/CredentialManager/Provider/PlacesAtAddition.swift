import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth

extension CredentialSource {
  /// Returns what a user agrees to by adding a provider: where credentials may go, and whose answers count.
  package func agreedPlaces(of provider: String) throws(CredentialError) -> [NewPlace] {
    guard let registration = try accountsIfAny()?.registration(of: provider), let agreement = registration.agreement
    else { return [] }
    let descriptor = try descriptor(provider).descriptor
    var own: [Client] = []
    for account in try accountsIfAny()?.accounts(of: provider) ?? [] where !account.credential.variables.isEmpty {
      if let client = try? client(descriptor, registration, variables: account.credential.variables) {
        own.append(client)
      }
    }
    return places(of: agreement, try client(descriptor, registration), accounts: own)
  }

  /// Returns what the user would agree to by adding this provider, and what of it is unusual. Secret variables have no
  /// values yet.
  package func places(
    adding addition: ProviderAddition, variables: [String: String]
  ) throws(CredentialError) -> (all: [NewPlace], unusual: [NewPlace]) {
    var variables = variables
    for variable in addition.descriptor.variables where variable.isSecret { variables[variable.name] = "?" }
    let registration = Registration(
      clientIdentifier: "", variables: variables, redirect: Descriptor.standardRedirect(of: addition.identifier))
    let client = try client(addition.descriptor, registration)
    let isOwn = !ownFiles(of: addition.loaded, installing: addition.file).isEmpty
    let others = try OtherProviders(self, than: addition.identifier, isOwn: isOwn)
    return (
      places(of: Agreement(client), client, accounts: []),
      others.peculiarities(of: client, addition.loaded, beyond: nil)
    )
  }

  /// `accounts` are the clients of accounts with their own variables, which add places.
  private func places(of agreement: Agreement, _ client: Client, accounts: [Client]) -> [NewPlace] {
    var nothing = Agreement(endpoints: [])
    nothing.places[.deviceHosts] = [:]
    if agreement.places[.clusters] != nil { nothing.places[.clusters] = [:] }
    var places: [NewPlace] = []
    for agreement in [agreement] + accounts.map(agreement.widened) {
      places.add(nothing.newPlaces(in: agreement).filter { $0.kind != .redirect && $0.kind != .issuer })
    }
    func add(_ kind: NewPlace.Kind, _ name: String) {
      places.append(NewPlace(kind: kind, name: name, before: [], place: nil))
    }
    let grants = client.descriptor.grants
    // Without declared clusters, kubectl gets the token of any cluster that names no server, or is on this machine.
    if agreement.places[.clusters] == nil, grants.contains(where: { $0.traits.typed == nil || $0.traits.isKey }) {
      add(.tokens, "a cluster whose user in your kubeconfig names this provider")
    }
    if grants.contains(where: \.traits.redirects), case .elsewhere(let text)? = try? client.redirect() {
      add(.redirect, text)
    }
    // An issuer on one of the provider's servers adds nothing.
    if let issuer = agreement.issuer, let host = try? HostPattern.authority(URI(parsing: issuer)),
      !places.contains(where: { $0.name == host })
    {
      add(.issuer, issuer)
    }
    return places
  }
}
