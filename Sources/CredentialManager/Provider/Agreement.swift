import Descriptors
import HTTP
import OAuth
import Text

/// Where the credentials of a provider may go: computed from its descriptor, its variables and the registration, agreed
/// to when the provider is added, and sealed with the registration. Every ``Route`` asks `permit` or `handOut`, which
/// compare with it, whatever file the descriptor came from. Only this file makes a ``Permit``.
///
/// A place that only an answer fills stands as it is written: `https://{dc}.api.example`, `{instance_url}`.
package struct Agreement: Sendable, Equatable {
  /// The client that was agreed to (RFC 6749, 2.2); `nil` in a registration of an earlier version.
  package var clientIdentifier: String?
  /// The origins that get the client's secret: of the endpoints, and those that a credential is presented to.
  package var secretOrigins: [String]
  /// The origins that get tokens: those of `secretOrigins`, and the hosts of the helpers.
  package var tokenOrigins: [String]
  /// The origins below `hosts`, to which a credential is presented; `nil` where the descriptor has no such list.
  package var presentedOrigins: [String]?
  /// The origins of clusters, below `kubectl`; `nil` where the descriptor has no such list.
  package var clusterOrigins: [String]?
  /// The redirect with its places filled; `nil` in a registration of an earlier version.
  package var redirect: String?
  /// The page where a person enters a device's code (RFC 8628, 3.3), where the descriptor says it.
  package var devicePage: String?
  package var issuer: String?
  /// The hosts at which helpers hand out tokens; `nil` in a registration of an earlier version.
  package var claims: [HostClaim]?
  var bounds: OriginPattern.Bounds = [:]  // The expressions that the values of places have to match.
  var isOfEarlierVersion = false  // Whether this is what an earlier version kept, which knew hosts alone.

  package init(_ client: Client) {
    let descriptor = client.descriptor
    let values = client.values()
    let places = AgreedPlaces(client)
    func text(_ template: Template) -> String { (try? template.filled(values)) ?? template.text }
    func claims(_ helper: HostClaim.Helper, _ hosts: [Template], username: Template, any: Bool = false) -> [HostClaim] {
      let username = (try? username.filled { $0 == "account" ? "{account}" : values($0) }) ?? "oauth2"
      // As git and docker name it: without the ordinary port.
      let authorities = hosts.compactMap { try? HostPattern.authority(URI(parsing: "https://" + $0.host(values))) }
      return authorities.map {
        HostClaim(helper: helper, host: $0, provider: descriptor.identifier, username: username, ignoresUsername: any)
      }
    }
    clientIdentifier = client.identifier
    redirect = text(descriptor.redirect.template)
    devicePage = descriptor.device.verificationURIComplete.map {
      places.texts(of: $0.template).joined(separator: " || ")
    }
    issuer = descriptor.issuer.map(text)
    self.claims =
      (descriptor.git.map { claims(.git, $0.hosts, username: $0.username, any: $0.ignoresUsername) } ?? [])
      + (descriptor.docker.map { claims(.docker, $0.hosts, username: $0.username) } ?? [])
    let own = descriptor.hosts + descriptor.endpoints.values.map(\.url.template)
    let clusters = descriptor.kubectl?.hosts
    let helperTemplates = (descriptor.git?.hosts ?? []) + (descriptor.docker?.hosts ?? []) + (clusters ?? [])
    secretOrigins = places.origins(of: own)
    tokenOrigins = places.origins(of: own + helperTemplates)
    presentedOrigins = descriptor.hosts.isEmpty ? nil : places.origins(of: descriptor.hosts)
    clusterOrigins = clusters.map(places.origins)
    bounds = places.bounds
  }

  /// Whether tokens may go to the origin of a URL.
  package func covers(_ uri: URI) -> Bool { tokenOrigins.contains { OriginPattern($0).matches(uri, bounds) } }

  /// Whether a credential may be given for a cluster: one below `kubectl`, else one below `hosts` or on this machine.
  /// Where the descriptor says nothing of hosts, that is for the kubeconfig to say.
  func presents(toCluster uri: URI) -> Bool {
    guard uri.isSecure || (uri.scheme == "http" && uri.isLoopback) else { return false }
    guard let origins = clusterOrigins ?? (uri.isLoopback ? nil : presentedOrigins) else { return true }
    return origins.contains { OriginPattern($0).matches(cluster: uri, bounds) }
  }

  /// The same with what the variables of one account bring, which a person gave for it.
  fileprivate func widened(by other: Agreement) -> Agreement {
    var wider = self
    wider.secretOrigins += other.secretOrigins
    wider.tokenOrigins += other.tokenOrigins
    if let more = other.clusterOrigins { wider.clusterOrigins = (clusterOrigins ?? []) + more }
    if let more = other.presentedOrigins { wider.presentedOrigins = (presentedOrigins ?? []) + more }
    return wider
  }
}

// MARK: Asking it

/// A way on which a provider's credentials leave the vault.
package enum Route: String, Sendable, CaseIterable {
  case login, refresh, validate, logout, token, header, request, exec, git, docker, kubectl, library, browser
  case registration  // A client is registered at the provider, or deleted there (RFC 7591, RFC 7592).
}

/// To whom a token is handed.
package enum Destination: Sendable {
  case caller  // The person who asked, or a program that the person started: it is theirs to say where it goes.
  case claimed(HostClaim)  // A host that another program asks about, as the sealed agreement claims it.
  case server(URI)  // A server that another program asks about.
}

/// A client that may use its secrets on one route. Whoever holds it has asked the agreement.
package struct Permit: Sendable {
  package let route: Route
  package let client: Client
  let agreement: Agreement
  var provider: String { client.descriptor.identifier }

  fileprivate init(_ route: Route, client: Client, _ agreement: Agreement) {
    (self.route, self.client, self.agreement) = (route, client, agreement)
  }

  /// Asked of each request, page and server before anything goes there.
  func require(_ uri: URI) throws(CredentialError) {
    guard agreement.covers(uri) else { throw .notAgreed(provider: provider, origin: uri.origin, route) }
  }

  /// The same for a request that a person or a program makes with a credential.
  func require(_ uri: URI, of credential: Credential) throws(CredentialError) {
    guard client.presents(credential, to: uri) else {
      throw .oauth(.foreignHost(HostPattern.authority(uri) ?? uri.scheme), provider: provider)
    }
    try require(uri)
  }
}

extension CredentialSource {
  /// Whether a provider's credentials may be used on a route: a place that is new in its descriptor throws
  /// `.descriptorChanged`. `variables` are of one account, and go before the registered ones.
  package func permit(
    _ route: Route, _ provider: String, variables: [String: String] = [:]
  ) throws(CredentialError) -> Permit {
    try permit(route, descriptor(provider), variables: variables)
  }

  func permit(
    _ route: Route, _ loaded: DescriptorLibrary.Loaded, variables: [String: String] = [:]
  ) throws(CredentialError) -> Permit {
    let provider = loaded.descriptor.identifier
    guard let registration = try accountsIfAny()?.registration(of: provider) else {
      throw .notAdded(provider: provider, ClientNeeds(loaded.descriptor))
    }
    let client = try client(loaded.descriptor, registration)
    let agreement = try agreed(loaded, client: client, registration)
    guard !variables.isEmpty else { return Permit(route, client: client, agreement) }
    let own = try self.client(loaded.descriptor, registration, variables: variables)
    return Permit(route, client: own, agreement.widened(by: Agreement(own)))
  }

  /// An account with a token that is good, for whoever asks on this route. Where no descriptor is read, because the
  /// token need not be refreshed, the sealed agreement is the answer.
  package func handOut(
    _ name: String?, of provider: String, by route: Route, to destination: Destination = .caller,
    _ policy: RefreshPolicy = RefreshPolicy()
  ) throws(CredentialError) -> Account {
    switch destination {
    case .caller: break
    case .claimed(let claim):
      guard claim.provider == provider else { throw .notAgreed(provider: provider, origin: claim.host, route) }
    case .server(let uri):
      let sealed = try accountsIfAny()?.registration(of: provider)?.agreement
      // An earlier version did not note it: the descriptor tells, once it was compared.
      let agreement =
        if let sealed, !sealed.isOfEarlierVersion { sealed } else { try permit(route, provider).agreement }
      guard agreement.presents(toCluster: uri) else { throw .notAgreed(provider: provider, origin: uri.origin, route) }
    }
    return try freshAccount(name, of: provider, policy)
  }

  /// The agreement that a registration was sealed with, if the descriptor names nothing beyond it.
  private func agreed(
    _ loaded: DescriptorLibrary.Loaded, client: Client, _ registration: Registration
  ) throws(CredentialError) -> Agreement {
    let now = Agreement(client)
    let new = registration.agreement?.newPlaces(of: client, loaded, registration: registration) ?? []
    guard new.isEmpty else {
      let own = ownFile(of: loaded)
      throw .descriptorChanged(
        provider: loaded.descriptor.identifier, file: own ?? loaded.path, isOwn: own != nil, places: new)
    }
    if let sealed = registration.agreement, !sealed.isOfEarlierVersion { return sealed }
    // Of an earlier version: from now on what the descriptor names is sealed, which is within the old hosts.
    var complete = registration
    complete.agreement = now
    if let claims = registration.agreement?.claims { complete.agreement?.claims = claims }
    if let accounts = try? accounts(.readWrite) {
      let identifier = Accounts.registration(loaded.descriptor.identifier)
      let revision = try? accounts.record(identifier)?.revision
      if let revision {
        _ = try? accounts.store.apply([.store(complete.encoded, as: identifier, if: .revision(revision))])
      }
    }
    return now
  }

  /// The client of a provider that is being added: `confirms` was asked about each new place for what is kept.
  func consent(
    to loaded: DescriptorLibrary.Loaded, _ client: Client, replacing agreed: Agreement?, kept: KeptSecrets,
    confirms: Consent
  ) throws(CredentialError) -> Permit {
    try requireConsent(loaded, client, replacing: agreed, kept: kept, confirms: confirms)
    return Permit(.registration, client: client, Agreement(client))
  }

  /// A client that was registered is deleted where it was registered (RFC 7592), on an origin that was agreed to.
  func permitToDelete(
    _ provider: String, _ registration: Registration, at uri: URI
  ) throws(CredentialError) -> Permit? {
    let place = registration.registered.flatMap { try? URI(parsing: $0.place) }?.origin
    let agreement = registration.agreement ?? Agreement(destinations: place.map { [$0] } ?? [])
    guard agreement.covers(uri) else { return nil }
    var descriptor = Descriptor()
    descriptor.identifier = provider
    return Permit(.registration, client: try client(descriptor, Registration(clientIdentifier: "")), agreement)
  }
}
