import Descriptors
import HTTP
import OAuth
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
  private struct Provider {
    let identifier: String
    var isAdded = true
    var page: URI?
    var issuer: String?
    var servers: [URI] = []  // Where a person consents, and codes are exchanged.
    var hosts: [HostPattern] = []  // Hosts besides these that get its tokens.
    var deviceHosts: [String] = []  // The same of the page for a device's code.

    init(_ identifier: String, issuer: String?) { (self.identifier, self.issuer) = (identifier, issuer) }

    mutating func read(_ descriptor: Descriptor, _ values: (String) -> String?) {
      func server(_ kind: EndpointKind) -> URI? { try? descriptor.endpoints[kind]?.url.filled(values) }
      page = server(.authorization)
      issuer = descriptor.issuer.flatMap { try? $0.filled(values) } ?? issuer
      servers = OtherProviders.serverKinds.compactMap(server)
      hosts = descriptor.hosts.compactMap { try? HostPattern($0.filled(values)) }
      deviceHosts = descriptor.device.hosts.compactMap { try? $0.filled(values) }
    }

    func has(_ uri: URI) -> Bool { servers.contains(where: uri.isSameServer) }
  }

  private static let serverKinds: [EndpointKind] = [
    .authorization, .token, .refresh, .deviceAuthorization, .deviceToken, .temporaryCredentials,
  ]

  private var providers: [Provider] = []
  private let desktop: SchemeHandler.Desktop?
  /// Whether the descriptor of the login is the person's own file.
  private let isOwn: Bool

  init(_ source: CredentialSource, than own: String, isOwn: Bool) throws(CredentialError) {
    (self.isOwn, desktop) = (isOwn, source.home.desktop)
    let accounts = try source.accountsIfAny()
    for identifier in try accounts?.addedProviders() ?? [] where identifier != own {
      // One whose registration is damaged cannot be logged in to, and must not stop the others.
      guard let registration = try? accounts?.registration(of: identifier) else { continue }
      var provider = Provider(identifier, issuer: registration.agreement?.issuer)
      let loaded = try? source.home.library.load(identifier)
      if let loaded, let client = try? source.client(loaded.descriptor, registration) {
        provider.read(client.descriptor, client.values())
      }
      providers.append(provider)
    }
    for descriptor in isOwn ? source.home.shippedDescriptors() : [] {
      var provider = Provider(descriptor.identifier, issuer: nil)
      provider.isAdded = false
      provider.read(descriptor) { descriptor.variable($0)?.defaultValue }
      providers.append(provider)
    }
    for index in providers.indices {
      if let issuer = providers[index].issuer.flatMap({ try? URI(parsing: $0) }) {
        providers[index].servers.append(issuer)
      }
    }
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
    let shipped = providers.filter { !$0.isAdded }
    if let issuer = client.issuer, agreed?.texts(.issuer).contains(issuer) != true,
      let page = client.server(.authorization) ?? client.server(.token),
      (try? URI(parsing: issuer))?.isRelated(to: page) != true,
      !shipped.contains(where: { $0.issuer == issuer && $0.has(page) })
    {
      add(.issuer, issuer, "issuer")
    }
    let start = client.server(.deviceAuthorization)
    let known =
      shipped.filter { start.map($0.has) ?? false }.flatMap(\.deviceHosts) + (agreed?.texts(.deviceHosts) ?? [])
    for host in client.deviceHosts where !known.contains(host) { add(.devicePage, host, "device", "hosts") }
    return places
  }

  func conflict(of client: Client) -> CredentialError? {
    for other in providers {
      if let mixUp = mixUp(client, other) {
        return .mixUp(provider: client.descriptor.identifier, other: other.identifier, mixUp)
      }
    }
    return nil
  }

  private func mixUp(_ client: Client, _ other: Provider) -> MixUp? {
    let (page, isSamePage) = (client.server(.authorization), isSamePage(client, other))
    if let issuer = client.issuer, let uri = try? URI(parsing: issuer), !isSamePage,
      issuer == other.issuer || other.has(uri)
    {
      // On the page's own server, whoever runs it vouches for the issuer; of a page of the other one, see below.
      let isOurs = page.map { issuer == other.issuer ? uri.isSameServer(as: $0) : uri.isRelated(to: $0) } ?? false
      if !isOurs, page.map(other.has) != true { return .issuer(issuer) }
    }
    // Who is asked for consent, and where what it brings goes. A name above or below may lead to the page as well.
    let ways: [(EndpointKind, [EndpointKind])] = [
      (.authorization, [.token, .refresh]), (.deviceAuthorization, [.deviceToken, .refresh]),
    ]
    for (asked, receivers) in ways {
      guard let server = client.server(asked), other.servers.contains(where: server.isRelated) else { continue }
      for receiver in receivers.compactMap(client.server) {
        let isKnown =
          other.has(receiver) || other.hosts.contains { $0.matches(receiver) } || server.isRelated(to: receiver)
        if !isKnown { return .page(host: server.host ?? "", token: HostPattern.authority(receiver) ?? "") }
      }
    }
    if other.isAdded, !isSamePage, case .loopback(let redirect)? = try? client.redirect(),
      redirect.pieces == (try? URI(parsing: Descriptor.standardRedirect(of: other.identifier)))?.pieces
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
      for other in providers where !isSamePage(client, other) {
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
      let hosts = providers.filter { !$0.isAdded && (start.map($0.has) ?? false) }.flatMap(\.deviceHosts)
      guard
        (client.deviceHosts + hosts).contains(where: { HostPattern($0).matches(page) })
          || Self.serverKinds.compactMap(client.server).contains(where: page.isRelated)
      else { throw .foreignDevicePage(provider: provider, origin: page.origin) }
      // A second descriptor of a provider has its device begin there as well.
      for other in providers where start.map(other.has) != true {
        let isTheirs =
          other.servers.contains(where: page.isRelated)
          || other.deviceHosts.contains { HostPattern($0).matches(page) }
        if isTheirs { throw .mixUp(provider: provider, other: other.identifier, .devicePage(host: page.host ?? "")) }
      }
    }
  }

  private func isSamePage(_ client: Client, _ other: Provider) -> Bool {
    guard let page = client.server(.authorization), let theirs = other.page else { return false }
    return page.isSameServer(as: theirs) && page.path == theirs.path
  }
}

extension Client {
  fileprivate var issuer: String? { descriptor.issuer.flatMap { try? $0.filled(values()) } }

  fileprivate var deviceHosts: [String] { descriptor.device.hosts.compactMap { try? $0.filled(values()) } }

  fileprivate func server(_ kind: EndpointKind) -> URI? { try? descriptor.endpoints[kind]?.url.filled(values()) }
}

extension URI {
  fileprivate func isSameServer(as other: URI) -> Bool {
    scheme == other.scheme && effectivePort == other.effectivePort && !serverName.isEmpty
      && serverName == other.serverName
  }

  /// Of the path, as a lenient server reads it.
  fileprivate var pieces: [String] {
    path.split(separator: "/").map { PercentEncoding.decode($0, plusAsSpace: false) ?? String($0) }
  }

  fileprivate func isBelow(_ issuer: URI) -> Bool {
    let folder = issuer.path.hasSuffix("/") ? issuer.path : issuer.path + "/"
    return (path + "/").hasPrefix(folder)
  }
}
