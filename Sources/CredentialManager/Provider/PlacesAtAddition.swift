import CredmgrHTTP
import CredmgrOAuth

extension CredentialSource {
  /// Returns what a user agrees to by adding a provider: where credentials may go, and whose answers count.
  package func agreedPlaces(of provider: String) throws(CredentialError) -> [NewPlace] {
    guard let registration = try accountsIfAny()?.registration(of: provider), let agreement = registration.agreement
    else { return [] }
    var nothing = Agreement(endpoints: [])
    nothing.places[.deviceHosts] = [:]
    if agreement.places[.clusters] != nil { nothing.places[.clusters] = [:] }
    var places = nothing.newPlaces(in: agreement).filter {
      $0.kind != .redirect && $0.kind != .issuer
    }
    func add(_ kind: NewPlace.Kind, _ name: String) {
      places.append(NewPlace(kind: kind, name: name, before: [], place: nil))
    }
    let descriptor = try descriptor(provider).descriptor
    let client = try client(descriptor, registration)
    // The accounts' own variables add places.
    for account in try accountsIfAny()?.accounts(of: provider) ?? [] where !account.credential.variables.isEmpty {
      guard let own = try? self.client(descriptor, registration, variables: account.credential.variables) else {
        continue
      }
      places.add(
        nothing.newPlaces(in: agreement.widened(by: own)).filter { $0.kind != .redirect && $0.kind != .issuer })
    }
    if client.descriptor.grants.contains(where: \.traits.redirects), case .elsewhere(let text)? = try? client.redirect()
    {
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
