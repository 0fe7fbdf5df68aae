import Descriptors
import HTTP
import OAuth
import Text

/// Where the credentials of a provider may go: computed from its descriptor, its variables and the registration, agreed
/// to when the provider is added, and sealed with the registration. Every ``Route`` asks `permit` or `handOut`, which
/// compare with it, whatever file the descriptor came from. Only this file makes a ``Permit``.
package struct Agreement: Sendable, Equatable {
  /// What is agreed to. Each kind has places of its own: one that gets a token does not get the client's secret.
  package enum Kind: String, Sendable, CaseIterable {
    case endpoints  // Origins that get the client's secret, codes, refresh tokens and assertions.
    case presented  // Origins below `hosts`, to which a credential is presented.
    case helpers  // Hosts of git and docker, which get tokens.
    case clusters  // Origins below `kubectl`.
    case pages  // Origins where a person consents.
    case redirect
    case devicePage = "device_page"  // Where a device's code is entered (RFC 8628, 3.3), if the descriptor says it.
    case deviceHosts = "device_hosts"  // Hosts of that page besides those of the endpoints.
    case issuer
    case carried  // Names, other than the token's, whose values go with each request to the API.
    case audience  // Whom an assertion is for (RFC 7523, 3), where that is not the token endpoint.

    static let ofOrigins: [Kind] = [.endpoints, .presented, .helpers, .clusters]
  }

  /// What each template becomes, by the template as it is written. A name that has no value for the registration
  /// stands as it is written: `https://{dc}.api.example`, `{instance_url}`.
  typealias Places = [String: [String]]

  var places: [Kind: Places] = [:]  // A kind of which the descriptor says nothing is not there.
  /// The client that was agreed to (RFC 6749, 2.2); `nil` in a registration of an earlier version.
  package var clientIdentifier: String?
  /// What protects a login and each secret, by the key of the descriptor (`Client.settings`).
  var settings: [String: [String]] = [:]
  /// A digest of the person's own files of the descriptor; `nil` in a registration of an earlier version.
  var ownFiles: String?
  var secrets: Set<String> = []  // The names of the secret variables.
  var shownSecrets: Set<String> = []  // Those that the descriptor does not call secret any more, as was agreed to.
  /// The hosts at which helpers hand out tokens; `nil` in a registration of an earlier version.
  package var claims: [HostClaim]?
  var bounds: OriginPattern.Bounds = [:]
  var isOfEarlierVersion = false  // Whether an earlier version sealed this, which did not know all of the above.

  init(_ client: Client, ownFiles: String?) {
    self.init(client)
    self.ownFiles = ownFiles
  }

  package init(_ client: Client) {
    let descriptor = client.descriptor
    let kept = Set(descriptor.endpoints.values.flatMap(\.response.keep).map(\.name))
    for name in kept { bounds[name] = descriptor.patterns(ofKept: name).joined(separator: "\n") }
    // The default of a variable stands in the descriptor, whatever that calls it.
    let hidden = descriptor.variables.filter { $0.isSecret && client.variables[$0.name] != $0.defaultValue }
    let filled = AgreedPlaces(client, hiding: kept.union(hidden.map(\.name)))
    func origins(_ templates: [Template]) -> Places {
      templates.reduce(into: [:]) { $0[$1.origin.text] = filled.origins(of: $1) }
    }
    func texts(_ template: Template?) -> Places? { template.map { [$0.text: filled.texts(of: $0)] } }
    clientIdentifier = client.identifier
    settings = client.settings
    secrets = Set(descriptor.variables.filter(\.isSecret).map(\.name))
    claims = Self.claims(descriptor, with: filled.values)
    places = [
      .endpoints: origins(descriptor.endpoints.values.map(\.url.template)),
      .redirect: texts(descriptor.redirect.template) ?? [:],
    ]
    places[.pages] = origins(
      [.authorization, .deviceAuthorization].compactMap { descriptor.endpoints[$0]?.url.template })
    places[.presented] = descriptor.hosts.isEmpty ? nil : origins(descriptor.hosts)
    places[.helpers] = origins((descriptor.git?.hosts ?? []) + (descriptor.docker?.hosts ?? []))
    places[.clusters] = descriptor.kubectl.map { origins($0.hosts) }
    places[.devicePage] = texts(descriptor.device.verificationURIComplete?.template)
    places[.deviceHosts] = descriptor.device.hosts.reduce(into: [:]) { $0[$1.text] = filled.texts(of: $1) }
    places[.issuer] = texts(descriptor.issuer)
    places[.audience] = texts(descriptor.foreignAudience)
    let carriers = (descriptor.extraHeaders + descriptor.headerStyle.parameters).flatMap(\.value.names)
    let carried = Self.protocolSecrets.union(descriptor.variables.map(\.name)).intersection(carriers)
    places[.carried] = carried.isEmpty ? nil : carried.reduce(into: [:]) { $0[$1] = [$1] }
  }

  private static func claims(_ descriptor: Descriptor, with values: @escaping (String) -> String?) -> [HostClaim] {
    func claims(_ helper: HostClaim.Helper, _ hosts: [Template], username: Template, any: Bool = false) -> [HostClaim] {
      let username = (try? username.filled { $0 == "account" ? "{account}" : values($0) }) ?? "oauth2"
      // As git and docker name it: without the ordinary port.
      let authorities = hosts.compactMap { try? HostPattern.authority(URI(parsing: "https://" + $0.host(values))) }
      return authorities.map {
        HostClaim(helper: helper, host: $0, provider: descriptor.identifier, username: username, ignoresUsername: any)
      }
    }
    return (descriptor.git.map { claims(.git, $0.hosts, username: $0.username, any: $0.ignoresUsername) } ?? [])
      + (descriptor.docker.map { claims(.docker, $0.hosts, username: $0.username) } ?? [])
  }

  /// The names of the protocol's own secrets, without the token.
  static let protocolSecrets: Set = ["client_secret", "refresh_token", "assertion", "id_token", "code", "device_code"]

  func texts(_ kind: Kind) -> [String] { Set((places[kind] ?? [:]).values.joined()).sorted() }

  package var issuer: String? { texts(.issuer).first }

  /// Whether a URL is at an origin of one of these kinds.
  func covers(_ uri: URI, as kinds: [Kind]) -> Bool {
    kinds.flatMap(texts).contains { OriginPattern($0).matches(uri, bounds) }
  }

  /// Whether a credential may be given for a cluster: one below `kubectl`, else one below `hosts` or on this machine.
  /// Where the descriptor says nothing of hosts, that is for the kubeconfig to say. `nil`: kubectl does not say which.
  func presents(toCluster uri: URI?) -> Bool {
    guard let uri else { return places[.clusters] == nil }
    guard uri.isSecure || (uri.scheme == "http" && uri.isLoopback) else { return false }
    let kind: Kind = places[.clusters] == nil ? .presented : .clusters
    if places[kind] == nil || (kind == .presented && uri.isLoopback) { return true }
    return texts(kind).contains { OriginPattern($0).matches(cluster: uri, bounds) }
  }

  /// The same with what the sealed templates become with the variables of one account, which a person gave for it. The
  /// descriptor that is there now has no say in that.
  func widened(by client: Client) -> Agreement {
    let filled = AgreedPlaces(client, hiding: Set(bounds.keys))
    var wider = self
    for (kind, templates) in places {
      for written in templates.keys {
        guard let template = try? Template(parsing: written) else { continue }
        let isOrigin = Kind.ofOrigins.contains(kind)
        wider.places[kind]?[written]? += isOrigin ? filled.origins(of: template) : filled.texts(of: template)
      }
    }
    return wider
  }
}

extension Descriptor {
  /// Whom an assertion is for, where one is made, and where that is not the token endpoint.
  fileprivate var foreignAudience: Template? {
    let methods = [client.authentication] + endpoints.values.map(\.authentication)
    let templates = endpoints.values.flatMap { $0.parameters.compactMap(\.value) + $0.headers.map(\.value) }
    guard
      methods.contains(.privateKeyJWT) || methods.contains(.clientSecretJWT)
        || templates.contains(where: { $0.names.contains("assertion") })
    else { return nil }
    guard let claim = assertion?.claims.last(where: { $0.name == "aud" }) else { return issuer }
    // Without an audience it is good everywhere.
    return claim.value ?? Template(literal: "*")
  }
}

// MARK: Asking it

/// A way on which a provider's credentials leave the vault.
package enum Route: String, Sendable, CaseIterable {
  case login, refresh, validate, logout, token, header, request, exec, library, browser
  case helper  // Another program asks in its own protocol, as git and docker do.
  case kubectl
  case registration  // A client is registered at the provider, or deleted there (RFC 7591, RFC 7592).
}

/// To whom a token is handed.
package enum Destination: Sendable {
  case caller  // The person who asked, or a program that the person started: it is theirs to say where it goes.
  case claimed(HostClaim)  // A host that another program asks about, as the sealed agreement claims it.
  case server(URI?)  // A cluster that kubectl asks about; `nil` where it does not say which.
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

  /// What goes to a place: the client's secret, a code, a refresh token or an assertion, or only an access token.
  enum Use { case exchange, presentation }

  /// Asked of each request, page and server before anything goes there.
  func require(_ uri: URI, for use: Use = .exchange) throws(CredentialError) {
    guard agreement.covers(uri, as: use == .exchange ? [.endpoints] : [.presented, .endpoints]) else {
      throw .notAgreed(provider: provider, origin: uri.origin, route)
    }
  }

  /// The same for a request that a person or a program makes with a credential.
  func require(_ uri: URI, of credential: Credential) throws(CredentialError) {
    guard client.presents(credential, to: uri) else {
      throw .oauth(.foreignHost(HostPattern.authority(uri) ?? uri.scheme), provider: provider)
    }
    try require(uri, for: .presentation)
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
    guard !variables.isEmpty else { return Permit(route, client: client, agreement.widened(by: client)) }
    let own = try self.client(loaded.descriptor, registration, variables: variables)
    let wider = agreement.widened(by: own)
    try requireNothingNew(beyond: wider, Agreement(own, ownFiles: wider.ownFiles), loaded, of: registration)
    return Permit(route, client: own, wider)
  }

  /// An account with a token that is good, for whoever asks on this route. Where no descriptor is read, because the
  /// token need not be refreshed, the sealed agreement is the answer.
  package func handOut(
    _ name: String?, of provider: String, by route: Route, to destination: Destination,
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
      guard agreement.presents(toCluster: uri) else {
        guard let uri else { throw .clusterNeeded(provider: provider) }
        throw .notAgreed(provider: provider, origin: uri.origin, route)
      }
    }
    let account = try freshAccount(name, of: provider, policy)
    try require(destination, isOf: account, route)
    return account
  }

  /// An account with variables or fields of its own belongs to the hosts that those make, and to no other.
  private func require(
    _ destination: Destination, isOf account: Account, _ route: Route
  ) throws(CredentialError) {
    let (provider, credential) = (account.provider, account.credential)
    let uri: URI?
    switch destination {
    case .caller: return
    case .claimed(let claim): uri = try? URI(parsing: "https://" + claim.host)
    case .server(let server): uri = server
    }
    guard !(credential.variables.isEmpty && credential.kept.isEmpty), let uri,
      let registration = try accountsIfAny()?.registration(of: provider), let agreement = registration.agreement
    else { return }
    let client = try client(descriptor(provider).descriptor, registration, variables: credential.variables)
    let values = AgreedPlaces(values: client.values(for: credential))
    let isClaim = if case .claimed = destination { true } else { false }
    let kind: Agreement.Kind = isClaim ? .helpers : agreement.places[.clusters] == nil ? .presented : .clusters
    guard let templates = agreement.places[kind]?.keys else { return }
    if kind == .presented, uri.isLoopback { return }
    let origins = templates.compactMap { try? Template(parsing: $0) }.flatMap(values.origins)
    let isOwn = origins.contains { origin in
      let pattern = OriginPattern(origin)
      return isClaim ? pattern.matches(uri, agreement.bounds) : pattern.matches(cluster: uri, agreement.bounds)
    }
    guard isOwn else { throw .notAgreed(provider: provider, origin: uri.origin, route) }
  }

  /// The agreement that a registration was sealed with, if the descriptor names nothing beyond it.
  private func agreed(
    _ loaded: DescriptorLibrary.Loaded, client: Client, _ registration: Registration
  ) throws(CredentialError) -> Agreement {
    let now = Agreement(client, ownFiles: ownFiles(of: loaded))
    var agreed = now
    if let sealed = registration.agreement {
      try requireNothingNew(beyond: sealed, now, loaded, of: registration)
      // Of an earlier version: from now on what the descriptor names is sealed, which is within the old hosts.
      agreed = sealed.completed(by: now)
      // Some of these took an issuer on another server unasked.
      if sealed.ownFiles == nil, now.ownFiles != "",
        try OtherProviders(self, than: loaded.descriptor.identifier, isOwn: true)
          .peculiarities(of: client, loaded, beyond: nil).contains(where: { $0.kind == .issuer })
      {
        agreed.places[.issuer] = nil
      }
      if agreed == sealed { return sealed }
    }
    var complete = registration
    complete.agreement = agreed
    if let accounts = try? accounts(.readWrite) {
      let identifier = Accounts.registration(loaded.descriptor.identifier)
      let revision = try? accounts.record(identifier)?.revision
      if let revision {
        _ = try? accounts.store.apply([.store(complete.encoded, as: identifier, if: .revision(revision))])
      }
    }
    return agreed
  }

  /// What is dropped here stays agreed to: the sealed agreement goes on.
  private func requireNothingNew(
    beyond agreement: Agreement, _ now: Agreement, _ loaded: DescriptorLibrary.Loaded, of registration: Registration
  ) throws(CredentialError) {
    let new = agreement.newPlaces(in: now, loaded, variables: registration.variables, isSealedAnew: false)
    if new.isEmpty { return }
    let own = ownFile(of: loaded)
    throw .descriptorChanged(
      provider: loaded.descriptor.identifier, file: own ?? loaded.path, isOwn: own != nil, places: new)
  }

  /// The client of a provider that is being added: `confirms` was asked about each new place for what is kept.
  func consent(
    to loaded: DescriptorLibrary.Loaded, _ client: Client, ownFiles: String, replacing agreed: Agreement?,
    kept: KeptSecrets, confirms: Consent
  ) throws(CredentialError) -> Permit {
    let now = Agreement(client, ownFiles: ownFiles)
    try requireConsent(loaded, client, now, replacing: agreed, kept: kept, confirms: confirms)
    return Permit(.registration, client: client, now.widened(by: client))
  }

  /// A client that was registered is deleted where it was registered (RFC 7592), and nowhere else.
  func permitToDelete(
    _ provider: String, _ registered: Registration.Registered, at uri: URI
  ) throws(CredentialError) -> Permit? {
    guard let place = try? URI(parsing: registered.place), place.origin == uri.origin else { return nil }
    var descriptor = Descriptor()
    descriptor.identifier = provider
    let client = try client(descriptor, Registration(clientIdentifier: ""))
    return Permit(.registration, client: client, Agreement(endpoints: [place.origin]))
  }
}
