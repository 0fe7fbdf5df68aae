import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrText

/// The destinations allowed for a provider's credentials. They come from its descriptor, variables and registration.
/// The user agrees when adding the provider, and the vault stores the agreement with the registration. Every ``Route``
/// goes through `permit` or `handOut`, which check it. Only this file makes a ``Permit``.
package struct Agreement: Sendable, Equatable {
  /// The kinds of destination. They are separate: a server that may get a token may not get the client's secret.
  package enum Kind: String, Sendable, CaseIterable {
    case endpoints  // Origins for the client's secret, codes, refresh tokens and assertions.
    case presented  // Origins below `hosts`, which may receive a credential.
    case helpers  // Hosts that git and docker send tokens to.
    case clusters  // Origins below `kubectl`.
    case pages  // Origins where the user consents.
    case redirect
    case devicePage = "device_page"  // The page for the device code (RFC 8628, 3.3), if the descriptor names it.
    case deviceHosts = "device_hosts"  // Hosts of that page other than endpoints' hosts.
    case issuer
    case keys  // Origins whose keys verify ID tokens.
    case carried  // Names of values, other than the token, sent with every API request.
    case audience  // The audience of assertions (RFC 7523, 3), unless it is the token endpoint.

    static let ofOrigins: [Kind] = [.endpoints, .presented, .helpers, .clusters]
  }

  /// The filled templates, by their text in the descriptor. Names without a value at registration stay unfilled:
  /// `https://{dc}.api.example`, `{instance_url}`.
  typealias Places = [String: [String]]

  var places: [Kind: Places] = [:]  // Kinds that the descriptor does not mention are absent.
  /// The client that the user agreed to (RFC 6749, 2.2); `nil` in a registration of an earlier version.
  package var clientIdentifier: String?
  /// The settings that protect a login and its secrets, by descriptor key (`Client.settings`).
  var settings: [String: [String]] = [:]
  /// Everything else in the descriptor that is not harmless, by key (`Descriptor.agreedValues`); `nil` in an earlier
  /// version's registration.
  var written: [String: String]?
  /// A digest of the descriptor's files that did not come with the program; `nil` in a registration of an earlier
  /// version.
  var ownFiles: String?
  /// A digest of all files (`DescriptorLibrary.Loaded.digest`); `nil` in a registration of an earlier version.
  var files: String?
  var secrets: Set<String> = []  // The names of the secret variables.
  var shownSecrets: Set<String> = []  // Formerly secret variables that the user agreed to show.
  /// The hosts for which helpers return tokens; `nil` in a registration of an earlier version.
  package var claims: [HostClaim]?
  var bounds: OriginPattern.Bounds = [:]
  var isOfEarlierVersion = false  // Whether an earlier version stored this agreement, without all these fields.

  package init(_ client: Client) {
    let descriptor = client.descriptor
    let kept = Set(descriptor.endpoints.values.flatMap(\.response.keep).map(\.name))
    for name in kept { bounds[name] = descriptor.patterns(ofKept: name).joined(separator: "\n") }
    let filled = AgreedPlaces(of: client)
    func origins(_ templates: [Template]) -> Places {
      templates.reduce(into: [:]) { $0[$1.origin.text] = filled.origins(of: $1) }
    }
    func texts(_ template: Template?) -> Places? { template.map { [$0.text: filled.texts(of: $0)] } }
    clientIdentifier = client.identifier
    settings = client.settings
    secrets = Set(descriptor.variables.filter(\.isSecret).map(\.name))
    claims = Self.claims(descriptor, with: filled.values)
    places = [
      .endpoints: origins(descriptor.endpoints.filter { !$0.key.leg.isPublic }.values.map(\.url.template)),
      .redirect: texts(descriptor.redirect.template) ?? [:],
    ]
    places[.pages] = origins(
      descriptor.endpoints.filter { !$0.key.leg.receivers.isEmpty }.values.map(\.url.template))
    for page in [client.keyPage, client.registerPage].compactMap(\.self) { places[.pages]?[page.text] = [page.origin] }
    places[.presented] = descriptor.hosts.isEmpty ? nil : origins(descriptor.hosts)
    places[.helpers] = origins((descriptor.git?.hosts ?? []) + (descriptor.docker?.hosts ?? []))
    places[.clusters] = descriptor.kubectl.map { origins($0.hosts) }
    places[.devicePage] = texts(descriptor.device.verificationURIComplete?.template)
    places[.deviceHosts] = descriptor.device.hosts.reduce(into: [:]) { $0[$1.text] = filled.texts(of: $1) }
    places[.issuer] = texts(descriptor.issuer)
    places[.keys] = descriptor.endpoints[.keySet].map { origins([$0.url.template]) }
    places[.audience] = texts(descriptor.foreignAudience)
    let style = descriptor.headerStyle
    let pair =
      [style.username, style.password, style.path].compactMap(\.self) + descriptor.extraQuery.compactMap(\.value)
    let carriers = ((descriptor.extraHeaders + style.parameters).map(\.value) + pair + descriptor.signatureTemplates)
      .flatMap(\.names)
    let named = descriptor.variables.map(\.name) + descriptor.keptSecrets.map(\.name)
    let carried = Self.protocolSecrets.union(named).intersection(carriers)
    places[.carried] = carried.isEmpty ? nil : carried.reduce(into: [:]) { $0[$1] = [$1] }
  }

  /// The names of the protocol's secrets, except the token.
  static let protocolSecrets: Set = [
    "client_secret", "refresh_token", "token_secret", "assertion", "id_token", "code", "device_code", "auth_req_id",
  ]

  func texts(_ kind: Kind) -> [String] { Set((places[kind] ?? [:]).values.joined()).sorted() }

  package var issuer: String? { texts(.issuer).first }

  /// Whether a URL is at an origin of one of these kinds.
  func covers(_ uri: URI, as kinds: [Kind]) -> Bool {
    kinds.flatMap(texts).contains { OriginPattern($0).matches(uri, bounds) }
  }

  /// Whether a cluster may receive a credential: one below `kubectl`, or else one below `hosts` or on this machine. If
  /// the descriptor names no hosts, the kubeconfig decides. `nil` means that kubectl names no cluster.
  func presents(toCluster uri: URI?) -> Bool {
    guard let uri else { return places[.clusters] == nil }
    guard uri.isSecure || (uri.scheme == "http" && uri.isLoopback) else { return false }
    let kind: Kind = places[.clusters] == nil ? .presented : .clusters
    if places[kind] == nil || (kind == .presented && uri.isLoopback) { return true }
    return texts(kind).contains { OriginPattern($0).matches(cluster: uri, bounds) }
  }

  /// Adds the stored templates, filled with the variables that the user gave for one account. The current descriptor
  /// cannot add any.
  func widened(by client: Client) -> Agreement {
    let filled = AgreedPlaces(client, hiding: Set(bounds.keys))
    var wider = self
    for (kind, templates) in places {
      for written in templates.keys {
        guard let template = try? Template(parsing: written) else { continue }
        let isOrigin = kind == .keys || Kind.ofOrigins.contains(kind)
        wider.places[kind]?[written]? += isOrigin ? filled.origins(of: template) : filled.texts(of: template)
      }
    }
    return wider
  }
}

// MARK: Asking it

/// A command or feature that takes a provider's credentials out of the vault.
package enum Route: String, Sendable, CaseIterable {
  case login, refresh, validate, logout, token, header, request, exec, library, browser
  case helper  // Another program asks in its own protocol, as git and docker do.
  case kubectl
  case registration  // Registers or deletes a client at the provider (RFC 7591, RFC 7592).
}

/// The receiver of a token.
package enum Destination: Sendable {
  case caller  // The user, or a program that the user started, who decides where it goes.
  case claimed(HostClaim)  // A host that another program asks about and that the agreement claims.
  case server(URI?)  // A cluster that kubectl asks about; `nil` if kubectl does not name one.
}

/// A client that may use its secrets on one route. It exists only after a check of the agreement.
package struct Permit: Sendable {
  package let route: Route
  package let client: Client
  let agreement: Agreement
  var provider: String { client.descriptor.identifier }
  /// Whether all files of the descriptor came with the program.
  package var isShipped: Bool { agreement.ownFiles == "" }

  fileprivate init(_ route: Route, client: Client, _ agreement: Agreement) {
    (self.route, self.client, self.agreement) = (route, client, agreement)
  }

  /// `exchange` sends the client secret, a code, a refresh token or an assertion; `presentation` a token; `keys` none.
  enum Use { case exchange, presentation, keys }

  /// Throws unless the agreement allows this request, page or server. Called before anything is sent.
  func require(_ uri: URI, for use: Use = .exchange) throws(CredentialError) {
    let own: [Agreement.Kind] = use == .keys ? [.keys] : use == .exchange ? [] : [.presented]
    guard agreement.covers(uri, as: own + [.endpoints]) else {
      throw .notAgreed(provider: provider, origin: uri.origin, route)
    }
  }

  /// Throws unless the user or a program may send the credential to this URL.
  func require(_ uri: URI, of credential: Credential) throws(CredentialError) {
    guard client.presents(credential, to: uri) else {
      throw .oauth(.foreignHost(HostPattern.authority(uri) ?? uri.scheme), provider: provider)
    }
    try require(uri, for: .presentation)
  }
}

extension CredentialSource {
  /// Returns permission to use a provider's credentials on a route. Throws `.descriptorChanged` if the descriptor names
  /// a new place. `variables` of one account override the registered ones.
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
    let values = try read(variables, of: loaded.descriptor, for: route)
    let own = try self.client(loaded.descriptor, registration, variables: values)
    let wider = agreement.widened(by: own)
    let now = Agreement(own, ownFiles: wider.ownFiles, files: wider.files, sealed: wider)
    try requireNothingNew(beyond: wider, now, loaded, of: registration)
    return Permit(route, client: own, wider)
  }

  /// Returns permission to log in. The first login to a provider whose files came with the program adds it, if its
  /// grant needs no client: then the registration to store is returned as well.
  func permitToLogIn(
    _ loaded: DescriptorLibrary.Loaded, needsClient: Bool, variables: [String: String]
  ) throws(CredentialError) -> (permit: Permit, registration: Registration?) {
    let descriptor = loaded.descriptor
    let needs = ClientNeeds(descriptor)
    if let there = try accountsIfAny()?.registration(of: descriptor.identifier) {
      if needsClient, needs.needsIdentifier, there.clientIdentifier.isEmpty {
        throw .notAdded(provider: descriptor.identifier, needs)
      }
      return (try permit(.login, loaded, variables: variables), nil)
    }
    guard ownFiles(of: loaded).isEmpty, !needsClient || !needs.needsIdentifier else {
      throw .notAdded(provider: descriptor.identifier, needs)
    }
    let registered = variables.filter { descriptor.variable($0.key)?.isAtLogin != true }
    if needsClient, descriptor.client.identifier == nil {
      // The provider registers the client.
      try add(
        addition(shipped: descriptor.identifier, as: nil), clientIdentifier: nil, clientSecret: nil,
        variables: registered, replaces: false, confirms: { _, _, _ in false })
      return (try permit(.login, loaded, variables: variables), nil)
    }
    var registration = Registration(
      clientIdentifier: descriptor.client.identifier ?? "", variables: registered,
      redirect: Descriptor.standardRedirect(of: descriptor.identifier))
    let client = try client(descriptor, registration)
    registration.seal(loaded, client, ownFiles: "")
    let values = try read(variables, of: descriptor, for: .login)
    let own = try self.client(descriptor, registration, variables: values)
    return (Permit(.login, client: own, Agreement(client).widened(by: own)), registration)
  }

  /// Returns an account with a valid token to a caller on this route. If no refresh is needed, checks only the stored
  /// agreement and reads no descriptor.
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
      // An earlier version did not record clusters, so compare the descriptor with the agreement and use it.
      let agreement =
        if let sealed, !sealed.isOfEarlierVersion { sealed } else { try permit(route, provider).agreement }
      guard agreement.presents(toCluster: uri) else {
        guard let uri else { throw .clusterNeeded(provider: provider) }
        throw .notAgreed(provider: provider, origin: uri.origin, route)
      }
    }
    let account: Account
    do throws(CredentialError) { account = try freshAccount(name, of: provider, policy) } catch {
      // A login does not help if the destination may not have the account's token.
      guard case .loginNeeded = error else { throw error }
      guard let stored = try? accountsIfAny()?.resolve(name, provider: provider) else {
        if case .caller = destination { throw error }
        let grants = try accountsIfAny()?.registration(of: provider)?.agreement?.knownGrants ?? []
        guard grants.isEmpty || grants.contains(where: \.isUsableAlone) else {
          throw .notUsableAlone(provider: provider, route)
        }
        throw error
      }
      try require(destination, isOf: stored, route)
      throw error
    }
    try require(destination, isOf: account, route)
    return account
  }

  /// Allows only a token that is usable alone, and an account with its own variables or fields only at the hosts that
  /// they produce.
  private func require(
    _ destination: Destination, isOf account: Account, _ route: Route
  ) throws(CredentialError) {
    let (provider, credential) = (account.provider, account.credential)
    let uri: URI?
    switch destination {
    case .caller:
      // The program gets the token in a variable, and cannot sign.
      guard route != .exec || !credential.isBound else { throw .notUsableAlone(provider: provider, route) }
      return
    case .claimed(let claim): uri = try? URI(parsing: "https://" + claim.host)
    case .server(let server): uri = server
    }
    guard try isUsableAlone(account) else { throw .notUsableAlone(provider: provider, route) }
    // Passwords are for the provider and the declared clusters.
    if case .server = destination, credential.grant.traits.typed != nil, !credential.grant.traits.isKey,
      try permit(route, provider, variables: credential.variables).agreement.places[.clusters] == nil
    {
      throw .notAgreed(provider: provider, origin: uri?.origin ?? "kubectl", route)
    }
    guard !(credential.variables.isEmpty && credential.kept.isEmpty), let uri,
      let registration = try accountsIfAny()?.registration(of: provider), let agreement = registration.agreement
    else { return }
    let client = try client(descriptor(provider).descriptor, registration, variables: credential.variables)
    let registered = try self.client(client.descriptor, registration)
    let values = AgreedPlaces(values: client.values(for: credential))
    let own = Set(client.variables.filter { registered.variables[$0.key] != $0.value }.keys)
    func names(_ template: String) -> [String] { (try? Template(parsing: template))?.names ?? [] }
    let isElsewhere = (agreement.places[.endpoints] ?? [:]).keys.contains { !own.isDisjoint(with: names($0)) }
    // An account at another server must not use a variable host of the registered server.
    func isOthers(_ template: String) -> Bool {
      isElsewhere && !names(template).isEmpty && own.union(credential.kept.keys).isDisjoint(with: names(template))
    }
    let isClaim = if case .claimed = destination { true } else { false }
    let kind: Agreement.Kind = isClaim ? .helpers : agreement.places[.clusters] == nil ? .presented : .clusters
    guard let templates = agreement.places[kind]?.keys.filter({ !isOthers($0) }) else { return }
    if kind == .presented, uri.isLoopback { return }
    let origins = templates.compactMap { try? Template(parsing: $0) }.flatMap(values.origins)
    let isOwn = origins.contains { origin in
      let pattern = OriginPattern(origin)
      return isClaim ? pattern.matches(uri, agreement.bounds) : pattern.matches(cluster: uri, agreement.bounds)
    }
    guard isOwn else { throw .notAgreed(provider: provider, origin: uri.origin, route) }
  }

  /// Returns the stored agreement; throws if the descriptor names anything beyond it.
  private func agreed(
    _ loaded: DescriptorLibrary.Loaded, client: Client, _ registration: Registration
  ) throws(CredentialError) -> Agreement {
    let now = Agreement(client, ownFiles: ownFiles(of: loaded), files: loaded.digest, sealed: registration.agreement)
    var agreed = now
    if let sealed = registration.agreement {
      try requireNothingNew(beyond: sealed, now, loaded, of: registration)
      // For an earlier version, add what the descriptor names, which the check above limited to the agreed hosts.
      agreed = sealed.completed(by: now)
      // Some earlier versions accepted an issuer on another server without asking.
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
    // A shared vault keeps the agreement of the member that added the provider.
    if shared == nil, let accounts = try? accounts(.readWrite) {
      let identifier = Accounts.registration(loaded.descriptor.identifier)
      // Another process may have added the provider again in the meantime.
      if let record = (try? accounts.record(identifier)) ?? nil,
        Registration(decoding: record.payload) == registration
      {
        _ = try? accounts.store.apply([.store(complete.encoded, as: identifier, if: .revision(record.revision))])
      }
    }
    return agreed
  }

  /// Throws if anything is new. The stored agreement keeps places that the descriptor dropped.
  private func requireNothingNew(
    beyond agreement: Agreement, _ now: Agreement, _ loaded: DescriptorLibrary.Loaded, of registration: Registration
  ) throws(CredentialError) {
    let new = agreement.newPlaces(in: now, loaded, variables: registration.variables, isSealedAnew: false)
    if new.isEmpty { return }
    // If the user's own files are the same, a shipped file that they extend differs.
    let isUnchanged = agreement.ownFiles != nil && agreement.ownFiles == now.ownFiles
    let own = isUnchanged ? nil : ownFile(of: loaded)
    let file = isUnchanged ? loaded.bases.last ?? loaded.path : own ?? loaded.path
    throw .descriptorChanged(provider: loaded.descriptor.identifier, file: file, isOwn: own != nil, places: new)
  }

  /// Returns permission for a provider being added, if `confirms` accepts each new place for stored secrets.
  func consent(
    to loaded: DescriptorLibrary.Loaded, _ client: Client, ownFiles: String, replacing agreed: Agreement?,
    kept: KeptSecrets, confirms: Consent
  ) throws(CredentialError) -> Permit {
    let now = Agreement(client, ownFiles: ownFiles, files: loaded.digest)
    try requireConsent(loaded, client, now: now, replacing: agreed, kept: kept, confirms: confirms)
    return Permit(.registration, client: client, now.widened(by: client))
  }

  /// Returns permission to delete a client only where it was registered (RFC 7592).
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
