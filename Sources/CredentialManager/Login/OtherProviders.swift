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
  case answer(issuer: String)  // The `iss` of an answer.
}

/// The providers that were added besides the one of a login, and what of theirs must not reach that one.
struct OtherProviders {
  private struct Provider {
    let identifier: String
    var page: URI?
    var issuer: String?
    var servers: [URI] = []  // Where a person consents, and codes are exchanged.
    var hosts: [HostPattern] = []  // Hosts besides these that get its tokens.
  }

  private static let serverKinds: [EndpointKind] = [
    .authorization, .token, .refresh, .deviceAuthorization, .deviceToken, .temporaryCredentials,
  ]

  private var providers: [Provider] = []

  init(_ source: CredentialSource, than own: String) throws(CredentialError) {
    guard let accounts = try source.accountsIfAny() else { return }
    for identifier in try accounts.addedProviders() where identifier != own {
      // One whose registration is damaged cannot be logged in to, and must not stop the others.
      guard let registration = try? accounts.registration(of: identifier) else { continue }
      var provider = Provider(identifier: identifier, issuer: registration.agreement?.issuer)
      let loaded = try? source.home.library.load(identifier)
      if let loaded, let client = try? source.client(loaded.descriptor, registration) {
        provider.page = client.server(.authorization)
        provider.issuer = client.issuer ?? provider.issuer
        provider.servers = Self.serverKinds.compactMap(client.server)
        provider.hosts = client.descriptor.hosts.compactMap { try? HostPattern($0.filled(client.values())) }
      }
      if let issuer = provider.issuer.flatMap({ try? URI(parsing: $0) }) { provider.servers.append(issuer) }
      providers.append(provider)
    }
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
      issuer == other.issuer || other.servers.contains(where: uri.isSameServer)
    {
      // On the page's own server, whoever runs it vouches for the issuer.
      let isOurs = page.map { issuer == other.issuer ? uri.isSameServer(as: $0) : uri.isRelated(to: $0) } ?? false
      if !isOurs { return .issuer(issuer) }
    }
    // Who is asked for consent, and where what it brings goes.
    let ways: [(EndpointKind, [EndpointKind])] = [
      (.authorization, [.token, .refresh]), (.deviceAuthorization, [.deviceToken, .refresh]),
    ]
    for (asked, receivers) in ways {
      guard let server = client.server(asked), other.servers.contains(where: server.isSameServer) else { continue }
      for receiver in receivers.compactMap(client.server) {
        let isKnown =
          other.servers.contains(where: receiver.isSameServer) || other.hosts.contains { $0.matches(receiver) }
          || server.isRelated(to: receiver)
        if !isKnown { return .page(host: server.host ?? "", token: HostPattern.authority(receiver) ?? "") }
      }
    }
    if !isSamePage, case .loopback(let redirect)? = try? client.redirect(),
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
        if isOther || !isOurs && other.servers.contains(where: issuer.isSameServer) {
          return .mixUp(provider: client.descriptor.identifier, other: other.identifier, .answer(issuer: text))
        }
      }
    }
    return nil
  }

  private func isSamePage(_ client: Client, _ other: Provider) -> Bool {
    guard let page = client.server(.authorization), let theirs = other.page else { return false }
    return page.isSameServer(as: theirs) && page.path == theirs.path
  }
}

extension Client {
  fileprivate var issuer: String? { descriptor.issuer.flatMap { try? $0.filled(values()) } }

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
