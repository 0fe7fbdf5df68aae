import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

/// How one provider could receive an answer meant for another (RFC 9700, 4.4).
package enum MixUp: Sendable, Equatable {
  case issuer(String)  // The descriptor names another provider's issuer.
  /// The user would consent on another provider's page, and the code would go elsewhere.
  case page(host: String, token: String)
  case redirect(String)
  case devicePage(host: String)  // The user would enter a code on another provider's page (RFC 8628, 5.4).
  case answer(issuer: String)  // The `iss` of an answer.
}

/// The other providers whose answers must not reach this login's provider: the added ones and, unless the descriptor
/// came with the program, the shipped ones.
struct OtherProviders {
  struct Provider {
    let identifier: String
    let isAdded: Bool
    let client: Client?  // `nil` if the descriptor cannot be read.
    let agreement: Agreement?
    let issuer: String?
    let servers: [URI]  // The servers for consent and for tokens.
    private let tenants: [OriginPattern]  // Servers of a product with a host for each customer.
    private let names: OriginPattern.Bounds

    init(_ identifier: String, _ client: Client?, added registration: Registration? = nil) {
      (self.identifier, self.client, isAdded) = (identifier, client, registration != nil)
      let sealed = registration?.agreement
      agreement = client.map(Agreement.init) ?? sealed
      issuer = client?.issuer ?? sealed?.issuer
      let endpoints = client.map { OtherProviders.serverKinds.compactMap($0.server) }
      let all = endpoints ?? sealed?.texts(.endpoints).compactMap { try? URI(parsing: $0) } ?? []
      servers = all + [issuer.flatMap { try? URI(parsing: $0) }].compactMap { $0 }
      let templates = client?.descriptor.endpoints.values.map(\.url.template.origin) ?? []
      let open = registration == nil ? templates.filter { $0.hasCommonHost } : []
      tenants = open.map { OriginPattern($0.text) }
      names = open.flatMap(\.names).reduce(into: [:]) { $0[$1] = "" }
    }

    /// Whether users make keys or register clients of this provider on the page's server. Keys are also made elsewhere
    /// at the page's domain if that is the domain of the provider's servers.
    func issues(at page: URI) -> Bool {
      guard !page.domains.isEmpty else { return false }
      let keys = client?.keyPage.map { $0.isSameServer(as: page) && hasServers || isOnServers($0, page.domains) }
      // Users may have several descriptors with one page for clients.
      let clients = client?.registerPage.map { own in
        own.serverName == page.serverName && (hasServers || isOnServers(own, page.domains))
      }
      return keys == true || !isAdded && clients == true
    }

    /// Whether the descriptor fixes the end of a server's host. A page for a program that runs on any host may be
    /// documentation at a forge.
    private var hasServers: Bool {
      guard let client else { return false }
      return [Agreement.Kind.endpoints, .presented].compactMap { agreement?.places[$0]?.keys }.joined().contains {
        let template = try? Template(parsing: $0)
        return template?.hasCommonHost == true
          || template?.names.allSatisfy { client.descriptor.variable($0)?.choices.isEmpty == false } == true
      }
    }

    private func isOnServers(_ own: URI, _ domains: [String]) -> Bool {
      let places = [Agreement.Kind.endpoints, .presented].compactMap { agreement?.places[$0] }
      return own.domains == domains
        && places.flatMap(\.values).joined().contains { (try? URI(parsing: $0))?.domains == domains }
    }

    /// Whether the page only documents a program that runs on any host, and whose origin is written so. The page of a
    /// service is on its server or above it.
    func documents(_ origin: String, at page: URI) -> Bool {
      let names = OriginPattern(origin).names
      guard !has(page), !names.isEmpty, let client, let agreement else { return false }
      let places = Agreement.Kind.ofOrigins.compactMap { agreement.places[$0] }
      let isOwn = places.flatMap(\.values).joined().contains { text in
        let own = try? URI(parsing: "https://" + Agreement.withoutScheme(text))
        return own.map { $0.serverName == page.serverName || $0.serverName.hasSuffix("." + page.serverName) } == true
      }
      return !isOwn && places.contains { $0[origin] != nil }
        && names.allSatisfy { name in
          client.descriptor.variable(name).map { $0.choices.isEmpty && $0.pattern == nil } == true
        }
    }

    /// Whether git or docker asks for this provider's tokens at the host.
    func serves(_ host: URI) -> Bool { agreement?.claims(host) == true }

    var deviceHosts: [String] { client?.deviceHosts ?? [] }
    var pages: [URI] { [client?.keyPage, client?.registerPage].compactMap(\.self) }

    func has(_ uri: URI) -> Bool { servers.contains(where: uri.isSameServer) }

    /// Whether a page belongs to this provider, including parent domains and subdomains.
    func owns(_ page: URI) -> Bool {
      servers.contains(where: page.isRelated) || issues(at: page) || tenants.contains { $0.matches(page, names) }
    }
  }

  private static let serverKinds = EndpointKind.allCases.filter(\.leg.takesPartInConsent)

  private var added: [Provider] = []
  private let shipped: ShippedDescriptors
  private let desktop: SchemeHandler.Desktop?
  /// Whether a file of the user or the administrator is part of the login's descriptor.
  private let isOwn: Bool
  /// Whether the user set the values of the registered variables. The values of an import may come from a stranger.
  private let areVariablesGiven: Bool

  init(
    _ source: CredentialSource, than own: String, isOwn: Bool, areVariablesGiven: Bool = true
  ) throws(CredentialError) {
    (self.isOwn, self.areVariablesGiven, desktop) = (isOwn, areVariablesGiven, source.home.desktop)
    let accounts = try source.accountsIfAny()
    for identifier in try accounts?.addedProviders() ?? [] where identifier != own {
      // A provider with a damaged registration cannot be logged in to, and must not block the others.
      guard let registration = try? accounts?.registration(of: identifier) else { continue }
      let loaded = try? source.home.library.load(identifier)
      // A descriptor that extends this one changes with it.
      if loaded?.bases.contains("\(source.home.userProviders)/\(own).yaml") == true { continue }
      let client = loaded.flatMap { try? source.client($0.descriptor, registration) }
      added.append(Provider(identifier, client, added: registration))
    }
    shipped = ShippedDescriptors(isOwn ? source.home : nil, than: own)
  }

  /// Returns the added providers and the shipped ones that may use one of these servers.
  private func providers(near uris: [URI?]) -> [Provider] {
    added + shipped.providers(near: uris)
  }

  /// Returns the client's servers and its issuer.
  private func servers(of client: Client) -> [URI?] {
    Self.serverKinds.map(client.server) + [client.issuer.flatMap { try? URI(parsing: $0) }]
  }

  // MARK: Unusual places

  /// Returns the parts of a descriptor that require consent because they involve another provider's server or
  /// application. Leaves out those in `agreed`.
  func peculiarities(
    of client: Client, _ loaded: DescriptorLibrary.Loaded, beyond agreed: Agreement?
  ) -> [NewPlace] {
    var places: [NewPlace] = []
    func add(_ kind: NewPlace.Kind, _ name: String, at keys: String...) {
      places.append(NewPlace(kind: kind, name: name, before: [], place: loaded.place(of: keys)))
    }
    if let redirect = try? client.descriptor.redirect.template.filled(client.values()),
      agreed?.texts(.redirect).contains(redirect) != true,
      let desktop, let scheme = SchemeHandler.scheme(of: redirect),
      let owner = SchemeHandler.owner(of: scheme, in: desktop.folders())
    {
      add(.scheme(owner: owner), redirect, at: "redirect")
    }
    guard isOwn else { return places }
    let shipped = shipped.providers(near: servers(of: client))
    if let issuer = client.issuer, agreed?.texts(.issuer).contains(issuer) != true,
      case let servers = [EndpointKind.authorization, .token].compactMap(client.server), let page = servers.first,
      (try? URI(parsing: issuer)).map({ servers.contains(where: $0.isRelated) }) != true,
      !shipped.contains(where: { $0.issuer == issuer && $0.has(page) })
    {
      add(.issuer, issuer, at: "issuer")
    }
    // The core compares an audience that is a server.
    for text in client.descriptor.grants.contains(where: \.traits.signsJWT) ? Agreement(client).texts(.audience) : []
    where agreed?.texts(.audience).contains(text) != true && !text.contains(where: { ".:/".contains($0) }) {
      add(.audience, text == "*" ? "any server" : text, at: "assertion", "claims", "aud")
    }
    let start = client.server(.deviceAuthorization)
    let known =
      shipped.filter { start.map($0.has) ?? false }.flatMap(\.deviceHosts) + (agreed?.texts(.deviceHosts) ?? [])
    for host in client.deviceHosts where !known.contains(host) {
      let uri = try? URI(parsing: "https://" + host)
      let other = uri.flatMap { owner(ofDevicePage: $0, start: start) }
      add(other.map(NewPlace.Kind.othersDevicePage) ?? .devicePage, host, at: "device", "hosts")
    }
    return places + borrowing(client, loaded, beyond: agreed)
  }

  /// Returns the origins that would receive what a user enters on another provider's page. Leaves out that provider's
  /// endpoints and, for tokens alone, its hosts. Two shipped descriptors may share a page.
  private func borrowing(
    _ client: Client, _ loaded: DescriptorLibrary.Loaded, beyond agreed: Agreement?
  ) -> [NewPlace] {
    var places: [NewPlace] = []
    let own = Agreement(client)
    let pages = Self.pages.compactMap(client.server)
    // At a host that git or docker asks about, the user types what belongs to its own provider.
    let asked = (own.claims ?? []).compactMap { try? URI(parsing: "https://" + $0.host) }
    let register = client.registerPage.map { [$0] } ?? []
    let typed = register + [client.keyPage].compactMap(\.self) + asked
    for (index, page) in (pages + typed).enumerated() {
      let isRegister = index == pages.count && !register.isEmpty
      let near = providers(near: [page])
      let owners = near.filter {
        isRegister ? $0.has(page) || $0.issues(at: page) : $0.owns(page) || $0.serves(page)
      }
      .compactMap { owner in owner.agreement.map { (owner, $0) } }
      // A page that documents a shipped program may be on the server of another provider.
      let programs = near.filter { !$0.isAdded && $0.pages.contains { $0.text == page.text } }
      // Only endpoints get the secret of a registered client.
      for kind in isRegister ? [.endpoints] : Agreement.Kind.ofOrigins {
        let kinds = kind == .endpoints ? [kind] : Agreement.Kind.ofOrigins
        let pairs = (own.places[kind] ?? [:]).sorted { $0.key < $1.key }.flatMap { key, all in all.map { (key, $0) } }
        for (written, origin) in pairs where !page.isRelated(toPattern: origin) {
          // A server on this machine may play a shipped provider, as the simulator and the tests of programs do.
          if index >= pages.count, (try? URI(parsing: origin))?.isLoopback == true { continue }
          let given = areVariablesGiven ? client.given(written) : nil
          // If the user set the values of a template, it is enough that the other descriptor contains the same
          // template.
          func knows(_ other: Agreement) -> Bool {
            other.includes(origin, of: own, as: kinds)
              || given != nil && kinds.contains { other.places[$0]?[written] != nil }
          }
          let name = Agreement.withoutScheme(origin)
          guard !places.contains(where: { $0.name == name }),
            given.map({ Agreement.withoutScheme(written) == "{\($0[0])}" }) != true,
            agreed.map({ ($0.knowsPage(page) || $0.claims(page)) && knows($0) }) != true,
            !owners.contains(where: { !$0.0.isAdded && knows($0.1) }),
            !programs.contains(where: { $0.documents(written, at: page) }),
            let owner = owners.first(where: { !knows($0.1) && !$0.0.documents(written, at: page) })?.0
          else { continue }
          let place = loaded.place(ofHost: name) { $0.origin.text == written ? [name] : [] }
          places.append(
            NewPlace(
              kind: .borrower(owner: owner.identifier, page: page.host ?? ""), name: name, before: [], place: place))
        }
      }
    }
    return places
  }

  /// The pages for consent.
  private static let pages = EndpointKind.allCases.filter { !$0.leg.receivers.isEmpty }

  func conflict(of client: Client) -> CredentialError? {
    let own = Agreement(client)
    for other in providers(near: servers(of: client)) {
      if let mixUp = mixUp(client, own, with: other) {
        return .mixUp(provider: client.descriptor.identifier, other: other.identifier, mixUp)
      }
    }
    return nil
  }

  private func mixUp(_ client: Client, _ own: Agreement, with other: Provider) -> MixUp? {
    let (page, isSamePage) = (client.server(.authorization), isSamePage(client, other))
    if let issuer = client.issuer, let uri = try? URI(parsing: issuer), !isSamePage,
      issuer == other.issuer || other.has(uri)
    {
      // The operator of the page's own server vouches for its issuer. The loop below checks the other provider's pages.
      let isOurs = page.map { issuer == other.issuer ? uri.isSameServer(as: $0) : uri.isRelated(to: $0) } ?? false
      if !isOurs, page.map(other.has) != true { return .issuer(issuer) }
    }
    for page in Self.pages {
      guard let server = client.server(page), other.owns(server), let known = other.agreement else { continue }
      // A host that gets the provider's tokens but is not an endpoint requires consent (see `borrowing`).
      for receiver in page.leg.receivers.compactMap(client.server)
      where !server.isRelated(to: receiver)
        && !known.includes(receiver.origin, of: own, as: Agreement.Kind.ofOrigins)
      { return .page(host: server.host ?? "", token: HostPattern.authority(receiver) ?? "") }
    }
    if other.isAdded, !isSamePage, case .loopback(let redirect)? = try? client.redirect(),
      let theirs = try? URI(parsing: Descriptor.standardRedirect(of: other.identifier)),
      redirect.pieces.starts(with: theirs.pieces)
    {
      return .redirect(redirect.text)
    }
    return nil
  }

  /// Returns the error if an answer names another added provider as its issuer (RFC 9207, 2.4). An issuer in the
  /// descriptor was compared earlier.
  func conflict(of client: Client, answeredBy answer: FormParameters) -> CredentialError? {
    guard client.issuer == nil, let page = client.server(.authorization) else { return nil }
    for text in answer.values(of: ResponseField.issuer.rawValue) {
      guard let issuer = try? URI(parsing: text) else { continue }
      let isOurs = issuer.isSameServer(as: page)
      for other in providers(near: [issuer]) where !isSamePage(client, other) {
        // Several issuers on one server have separate paths, and their pages are below those paths.
        let isOther = other.issuer == text && !(isOurs && page.isBelow(issuer))
        if isOther || !isOurs && other.has(issuer) {
          return .mixUp(provider: client.descriptor.identifier, other: other.identifier, .answer(issuer: text))
        }
      }
    }
    return nil
  }

  /// Throws unless the page for a device code belongs to this provider, and to no other. Call this before showing the
  /// page.
  func require(pages: [String], of client: Client) throws(CredentialError) {
    let provider = client.descriptor.identifier
    let start = client.server(.deviceAuthorization)
    for page in pages.compactMap({ try? URI(parsing: $0) }) where start?.isRelated(to: page) != true {
      let hosts = shipped.providers(near: [start]).filter { start.map($0.has) ?? false }.flatMap(\.deviceHosts)
      guard
        (client.deviceHosts + hosts).contains(where: { HostPattern($0).matches(page) })
          || Self.serverKinds.compactMap(client.server).contains(where: page.isRelated)
      else { throw .foreignDevicePage(provider: provider, origin: page.origin) }
      // The user agreed to exactly this host.
      if client.deviceHosts.contains(where: { HostPattern($0).names(page) }) { continue }
      if let other = owner(ofDevicePage: page, start: start) {
        throw .mixUp(provider: provider, other: other, .devicePage(host: page.host ?? ""))
      }
    }
  }

  /// Returns the other provider that owns the page. A second descriptor of the same provider starts at the same server.
  private func owner(ofDevicePage page: URI, start: URI?) -> String? {
    providers(near: [page]).first { other in
      start.map(other.has) != true
        && (other.owns(page) || other.deviceHosts.contains { HostPattern($0).matches(page) })
    }?.identifier
  }

  private func isSamePage(_ client: Client, _ other: Provider) -> Bool {
    guard let page = client.server(.authorization), let theirs = other.client?.server(.authorization) else {
      return false
    }
    return page.isSameServer(as: theirs) && page.path == theirs.path
  }
}

extension Template {
  /// Whether a variable comes first in the host, followed by at least two fixed labels.
  fileprivate var hasCommonHost: Bool {
    guard case .literal(let end)? = parts.last, !names.isEmpty else { return false }
    return end.prefix { $0 != ":" }.split(separator: ".").count > 1
  }
}

extension Agreement {
  /// Whether git or docker asks for tokens at the host.
  fileprivate func claims(_ host: URI) -> Bool {
    guard let authority = HostPattern.authority(host) else { return false }
    return claims?.contains { HostClaim.names(of: authority, for: $0.helper).contains($0.host) } == true
  }

  /// Whether the user agreed to logins on this page. Earlier versions did not record pages.
  fileprivate func knowsPage(_ page: URI) -> Bool { places[.pages] == nil || texts(.pages).contains(page.origin) }
}

extension URI {
  /// The last two labels, which related servers share. No shipped provider runs on this machine.
  var domains: [String] {
    if isLoopback { return [] }
    let labels = serverName.split(separator: ".")
    return serverName.isEmpty
      ? [] : [labels.last?.allSatisfy(\.isNumber) == true ? serverName : labels.suffix(2).joined(separator: ".")]
  }

  fileprivate func isSameServer(as other: URI) -> Bool {
    scheme == other.scheme && effectivePort == other.effectivePort && !serverName.isEmpty
      && serverName == other.serverName
  }

  /// Whether an origin in an agreement belongs to this server. A wildcard belongs if its parent host does.
  func isRelated(toPattern origin: String) -> Bool {
    let name = Agreement.withoutScheme(origin)
    guard name.hasPrefix("*.") else { return (try? URI(parsing: origin)).map(isRelated) == true }
    let upper = try? URI(parsing: String(origin.prefix(origin.count - name.count) + name.dropFirst(2)))
    return upper.map { isRelated(to: $0) && $0.serverName.hasSuffix(serverName) } == true
  }

  /// The parts of the path, split as leniently as any server would.
  fileprivate var pieces: [String] {
    var text = path
    while let decoded = PercentEncoding.decode(text, plusAsSpace: false), decoded != text { text = decoded }
    return text.lowercased().split { "/\\".contains($0) }.reduce(into: []) { pieces, piece in
      let name = String(piece.prefix { $0 != ";" })
      if name == ".." { _ = pieces.popLast() } else if !["", "."].contains(name) { pieces.append(name) }
    }
  }

  fileprivate func isBelow(_ issuer: URI) -> Bool {
    let folder = issuer.path.hasSuffix("/") ? issuer.path : issuer.path + "/"
    return (path + "/").hasPrefix(folder)
  }
}
