import HTTP
import OAuth

extension CredentialSource {
  /// What a person agrees to by adding a provider: where its credentials may go, and whose answers count.
  package func agreedPlaces(of provider: String) throws(CredentialError) -> [NewPlace] {
    guard let registration = try accountsIfAny()?.registration(of: provider), let agreement = registration.agreement
    else { return [] }
    var nothing = Agreement(endpoints: [])
    if agreement.places[.clusters] != nil { nothing.places[.clusters] = [:] }
    var places = nothing.newPlaces(in: agreement).filter {
      $0.kind != .redirect && $0.kind != .issuer
    }
    func add(_ kind: NewPlace.Kind, _ name: String) {
      places.append(NewPlace(kind: kind, name: name, before: [], place: nil))
    }
    let client = try client(descriptor(provider).descriptor, registration)
    if client.descriptor.grants.contains(where: \.traits.redirects), case .elsewhere(let text)? = try? client.redirect()
    {
      add(.redirect, text)
    }
    // One on a server of the provider says nothing new.
    if let issuer = agreement.issuer, let host = try? HostPattern.authority(URI(parsing: issuer)),
      !places.contains(where: { $0.name == host })
    {
      add(.issuer, issuer)
    }
    return places
  }
}
