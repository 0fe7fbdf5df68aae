import Descriptors
import HTTP
import OAuth
import Platform
import Text

/// How an answer of one provider could reach another one (RFC 9700, 4.4).
package enum MixUp: Sendable, Equatable {
  case issuer(String)  // The descriptor names an issuer of the other provider.
  /// The person would consent on the other provider's page, and the code would go elsewhere.
  case page(host: String, token: String)
  case redirect(String)
  case devicePage(host: String)  // The person would enter a code on the other provider's page (RFC 8628, 5.4).
  case answer(issuer: String)  // The `iss` of an answer.
}

/// The providers besides the one of a login, and what of theirs must not reach that one: those that were added and, for
/// a person's own descriptor, those that are shipped.
struct OtherProviders {
  fileprivate struct Provider {
    let identifier: String
    let isAdded: Bool
    let client: Client?  // `nil` where the descriptor cannot be read any more.
    let sealed: Agreement?
    let issuer: String?
    let servers: [URI]  // Where a person consents, and codes are exchanged.

    init(_ identifier: String, _ client: Client?, added registration: Registration? = nil) {
      (self.identifier, self.client, isAdded) = (identifier, client, registration != nil)
      sealed = registration?.agreement
      issuer = client?.issuer ?? sealed?.issuer
      let endpoints = client.map { OtherProviders.serverKinds.compactMap($0.server) }
      let all = endpoints ?? sealed?.texts(.endpoints).compactMap { try? URI(parsing: $0) } ?? []
      servers = all + [issuer.flatMap { try? URI(parsing: $0) }].compactMap { $0 }
    }

    var agreement: Agreement? { client.map(Agreement.init) ?? sealed }
    var deviceHosts: [String] { client?.deviceHosts ?? [] }

    func has(_ uri: URI) -> Bool { servers.contains(where: uri.isSameServer) }

    /// Whether a page is this one's. A name above or below may lead to its page as well.
    func owns(_ page: URI) -> Bool { servers.contains(where: page.isRelated) }
  }

  private static let serverKinds: [EndpointKind] = [
    .authorization, .token, .refresh, .deviceAuthorization, .deviceToken, .temporaryCredentials,
  ]

  private var added: [Provider] = []
  private let shipped: ShippedDescriptors
  private let desktop: SchemeHandler.Desktop?
  /// Whether the descriptor of the login is the person's own file.
  private let isOwn: Bool

  init(_ source: CredentialSource, than own: String, isOwn: Bool) throws(CredentialError) {
    (self.isOwn, desktop) = (isOwn, source.home.desktop)
    let accounts = try source.accountsIfAny()
    for identifier in try accounts?.addedProviders() ?? [] where identifier != own {
      // One whose registration is damaged cannot be logged in to, and must not stop the others.
      guard let registration = try? accounts?.registration(of: identifier) else { continue }
      let loaded = try? source.home.library.load(identifier)
      // What extends this one changes with it.
      if loaded?.bases.contains("\(source.home.userProviders)/\(own).yaml") == true { continue }
      let client = loaded.flatMap { try? source.client($0.descriptor, registration) }
      added.append(Provider(identifier, client, added: registration))
    }
    shipped = ShippedDescriptors(isOwn ? source.home : nil)
  }

  /// The added providers, and the shipped ones that may have one of these servers.
  private func providers(near uris: [URI?]) -> [Provider] {
    added + shipped.providers(near: uris)
  }

  /// The servers of a client, with its issuer.
  private func servers(of client: Client) -> [URI?] {
    Self.serverKinds.map(client.server) + [client.issuer.flatMap { try? URI(parsing: $0) }]
  }

  // MARK: What is unusual

  /// What of a descriptor needs consent when it is added, because another server or application is involved than the
  /// provider's own; `agreed` had it.
  func peculiarities(
    of client: Client, _ loaded: DescriptorLibrary.Loaded, beyond agreed: Agreement?
  ) -> [NewPlace] {
    var places: [NewPlace] = []
    func add(_ kind: NewPlace.Kind, _ name: String, _ keys: String...) {
      places.append(NewPlace(kind: kind, name: name, before: [], place: loaded.place(of: keys)))
    }
    if let redirect = try? client.descriptor.redirect.template.filled(client.values()),
      agreed?.texts(.redirect).contains(redirect) != true,
      let desktop, let scheme = SchemeHandler.scheme(of: redirect),
      let owner = SchemeHandler.owner(of: scheme, in: desktop.folders())
    {
      add(.scheme(owner: owner), redirect, "redirect")
    }
    guard isOwn else { return places }
    let shipped = shipped.providers(near: servers(of: client))
    if let issuer = client.issuer, agreed?.texts(.issuer).contains(issuer) != true,
      case let servers = [EndpointKind.authorization, .token].compactMap(client.server), let page = servers.first,
      (try? URI(parsing: issuer)).map({ servers.contains(where: $0.isRelated) }) != true,
      !shipped.contains(where: { $0.issuer == issuer && $0.has(page) })
    {
      add(.issuer, issuer, "issuer")
    }
    let start = client.server(.deviceAuthorization)
    let known =
      shipped.filter { start.map($0.has) ?? false }.flatMap(\.deviceHosts) + (agreed?.texts(.deviceHosts) ?? [])
    for host in client.deviceHosts where !known.contains(host) {
      let uri = try? URI(parsing: "https://" + host)
      let other = uri.flatMap { owner(ofDevicePage: $0, start: start) }
      add(other.map(NewPlace.Kind.othersDevicePage) ?? .devicePage, host, "device", "hosts")
    }
    return places + borrowing(client, loaded, beyond: agreed)
  }

  /// The origins that would get what a person gives on another provider's page, and that are none of that one's
  /// endpoints or, for tokens alone, of its hosts. Two shipped descriptors of one page know each other.
  private func borrowing(
    _ client: Client, _ loaded: DescriptorLibrary.Loaded, beyond agreed: Agreement?
  ) -> [NewPlace] {
    var places: [NewPlace] = []
    let own = Agreement(client)
    for page in Self.ways.compactMap({ client.server($0.page) }) {
      let owners = providers(near: [page]).filter { $0.owns(page) }.compactMap { owner in
        owner.agreement.map { (owner, $0) }
      }
      for kind in Agreement.Kind.ofOrigins {
        let kinds = kind == .endpoints ? [kind] : Agreement.Kind.ofOrigins
        let pairs = (own.places[kind] ?? [:]).sorted { $0.key < $1.key }.flatMap { key, all in all.map { (key, $0) } }
        for (written, origin) in pairs where !page.isRelated(toPattern: origin) {
          let given = client.given(written)
          // The person's own value in the other one's words is the person's own place.
          func knows(_ other: Agreement) -> Bool {
            other.includes(origin, of: own, as: kinds)
              || given != nil && kinds.contains { other.places[$0]?[written] != nil }
          }
          let name = Agreement.withoutScheme(origin)
          guard !places.contains(where: { $0.name == name }),
            given.map({ Agreement.withoutScheme(written) == "{\($0[0])}" }) != true,
            agreed.map({ $0.knowsPage(page) && knows($0) }) != true,
            !owners.contains(where: { !$0.0.isAdded && knows($0.1) }),
            let owner = owners.first(where: { !knows($0.1) })?.0
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

  /// Who is asked for consent, and where what it brings is exchanged.
  private static let ways: [(page: EndpointKind, receivers: [EndpointKind])] = [
    (.authorization, [.token, .refresh]), (.deviceAuthorization, [.deviceToken, .refresh]),
  ]

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
      // On the page's own server, whoever runs it vouches for the issuer; of a page of the other one, see below.
      let isOurs = page.map { issuer == other.issuer ? uri.isSameServer(as: $0) : uri.isRelated(to: $0) } ?? false
      if !isOurs, page.map(other.has) != true { return .issuer(issuer) }
    }
    for (page, receivers) in Self.ways {
      guard let server = client.server(page), other.owns(server), let known = other.agreement else { continue }
      // A host that gets its tokens and is none of its endpoints needs consent, see `borrowing`.
      for receiver in receivers.compactMap(client.server)
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

  /// Why an answer is not used that says that it is from another added provider (RFC 9207, 2.4). An issuer that the
  /// descriptor names itself was compared already.
  func conflict(of client: Client, answeredBy answer: FormParameters) -> CredentialError? {
    guard client.issuer == nil, let page = client.server(.authorization) else { return nil }
    for text in answer.values(of: ResponseField.issuer.rawValue) {
      guard let issuer = try? URI(parsing: text) else { continue }
      let isOurs = issuer.isSameServer(as: page)
      for other in providers(near: [issuer]) where !isSamePage(client, other) {
        // Several issuers on one server have paths, below which their pages are.
        let isOther = other.issuer == text && !(isOurs && page.isBelow(issuer))
        if isOther || !isOurs && other.has(issuer) {
          return .mixUp(provider: client.descriptor.identifier, other: other.identifier, .answer(issuer: text))
        }
      }
    }
    return nil
  }

  /// Asked of each page where a device's code is entered, before it is shown: it is the provider's own, and no other's.
  func require(pages: [String], of client: Client) throws(CredentialError) {
    let provider = client.descriptor.identifier
    let start = client.server(.deviceAuthorization)
    for page in pages.compactMap({ try? URI(parsing: $0) }) where start?.isRelated(to: page) != true {
      let hosts = shipped.providers(near: [start]).filter { start.map($0.has) ?? false }.flatMap(\.deviceHosts)
      guard
        (client.deviceHosts + hosts).contains(where: { HostPattern($0).matches(page) })
          || Self.serverKinds.compactMap(client.server).contains(where: page.isRelated)
      else { throw .foreignDevicePage(provider: provider, origin: page.origin) }
      // A person agreed to the very host.
      if client.deviceHosts.contains(where: { HostPattern($0).names(page) }) { continue }
      if let other = owner(ofDevicePage: page, start: start) {
        throw .mixUp(provider: provider, other: other, .devicePage(host: page.host ?? ""))
      }
    }
  }

  /// The other provider whose page this is. A second descriptor of a provider has its device begin there as well.
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

/// The descriptors that came with the program or the system. To decode all of them would take longer than a login
/// for all else, so only those are decoded whose text has the host that is asked about.
private final class ShippedDescriptors {
  private let library: DescriptorLibrary?
  private var files: [(identifier: String, text: FileText)] = []
  private var decoded: [String: OtherProviders.Provider?] = [:]

  init(_ home: Home?) {
    library = home?.shippedLibrary
    let names = (library?.directories ?? []).flatMap { (try? File.names(in: $0)) ?? [] }
    for name in Set(names).sorted() where name.hasSuffix(".yaml") {
      let identifier = String(name.dropLast(".yaml".count))
      if let path = library?.path(of: identifier), let bytes = try? Home.descriptor(at: path) {
        files.append((identifier, FileText(bytes)))
      }
    }
  }

  func providers(near uris: [URI?]) -> [OtherProviders.Provider] {
    // What a file extends may have the host.
    let names = Set(uris.flatMap { $0?.domains ?? [] } + ["extends:"])
    return files.compactMap { identifier, text in
      guard names.contains(where: text.mentions) else { return nil }
      if let known = decoded[identifier] { return known }
      let descriptor = try? library?.load(identifier).descriptor
      let provider = descriptor.map { OtherProviders.Provider($0.identifier, Client(unregistered: $0)) }
      decoded[identifier] = .some(provider)
      return provider
    }
  }
}

extension Client {
  fileprivate var issuer: String? { descriptor.issuer.flatMap { try? $0.filled(values()) } }

  fileprivate var deviceHosts: [String] { descriptor.device.hosts.compactMap { try? $0.filled(values()) } }

  fileprivate func server(_ kind: EndpointKind) -> URI? { try? descriptor.endpoints[kind]?.url.filled(values()) }

  /// The variables in an origin as it is written, if the person said their values, and not the descriptor.
  fileprivate func given(_ written: String) -> [String]? {
    let names = (try? Template(parsing: written))?.names ?? []
    let areGiven = names.allSatisfy { variables[$0] != nil && variables[$0] != descriptor.variable($0)?.defaultValue }
    return names.isEmpty || !areGiven ? nil : names
  }
}

extension Agreement {
  /// Whether it was agreed to with logins on this page. Earlier versions did not note pages.
  fileprivate func knowsPage(_ page: URI) -> Bool { places[.pages] == nil || texts(.pages).contains(page.origin) }
}

extension URI {
  /// What the hosts of related servers have in common: the last two labels. No shipped provider is on this machine.
  fileprivate var domains: [String] {
    if isLoopback { return [] }
    let labels = serverName.split(separator: ".")
    return serverName.isEmpty
      ? [] : [labels.last?.allSatisfy(\.isNumber) == true ? serverName : labels.suffix(2).joined(separator: ".")]
  }

  fileprivate func isSameServer(as other: URI) -> Bool {
    scheme == other.scheme && effectivePort == other.effectivePort && !serverName.isEmpty
      && serverName == other.serverName
  }

  /// Whether an origin, as an agreement writes it, belongs to this server; all hosts below one do if that one does.
  fileprivate func isRelated(toPattern origin: String) -> Bool {
    let name = Agreement.withoutScheme(origin)
    guard name.hasPrefix("*.") else { return (try? URI(parsing: origin)).map(isRelated) == true }
    let upper = try? URI(parsing: String(origin.prefix(origin.count - name.count) + name.dropFirst(2)))
    return upper.map { isRelated(to: $0) && $0.serverName.hasSuffix(serverName) } == true
  }

  /// Of the path, as the most lenient server reads it.
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
