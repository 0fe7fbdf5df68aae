import Descriptors
import HTTP
import JSON
import OAuth
import Text
import YAML

/// Where the credentials of a provider may go: computed from its descriptor, agreed to when the provider is added, and
/// sealed with the registration.
///
/// Whether something may go to a host is decided in this file: ``covers(_:)`` answers, and what a descriptor names now
/// is compared with what was agreed to before anything is sent by it.
///
/// A host has its port where that is not the ordinary one. What only an account brings stands as it is written:
/// `{instance_url}`.
package struct Agreement: Sendable, Equatable {
  enum Subject {
    case clientSecret
    case token
  }

  /// The client that was agreed to (RFC 6749, 2.2); `nil` in a registration of an earlier version.
  package var clientIdentifier: String?
  /// The hosts that get the client's secret: of the endpoints, and those that a credential is presented to.
  package var secretHosts: [String]
  /// The hosts that get tokens: as `secretHosts`, those of the helpers, and a redirect that leaves this machine.
  package var tokenHosts: [String]
  /// The redirect, its places filled where they can be; `nil` in a registration of an earlier version.
  package var redirect: String?
  /// The page where a person enters a device's code (RFC 8628, 3.3), where the descriptor says it.
  package var devicePage: String?
  package var issuer: String?
  /// The hosts at which helpers hand out tokens; `nil` in a registration of an earlier version.
  package var claims: [HostClaim]?

  package init(_ client: Client) {
    let descriptor = client.descriptor
    let values = client.values()
    func text(_ template: Template) -> String { (try? template.filled(values)) ?? template.text }
    func claims(_ helper: HostClaim.Helper, _ hosts: [Template], username: Template, any: Bool = false) -> [HostClaim] {
      let username = (try? username.filled { $0 == "account" ? "{account}" : values($0) }) ?? "oauth2"
      return hosts.compactMap { try? $0.filled(values).lowercased() }.map {
        HostClaim(helper: helper, host: $0, provider: descriptor.identifier, username: username, ignoresUsername: any)
      }
    }
    clientIdentifier = client.identifier
    redirect = text(descriptor.redirect.template)
    devicePage = descriptor.device.verificationURIComplete.map(text)
    issuer = descriptor.issuer.map(text)
    self.claims =
      (descriptor.git.map { claims(.git, $0.hosts, username: $0.username, any: $0.ignoresUsername) } ?? [])
      + (descriptor.docker.map { claims(.docker, $0.hosts, username: $0.username) } ?? [])
    let own = descriptor.hosts + descriptor.endpoints.values.map(\.url.template)
    let helperTemplates = (descriptor.git?.hosts ?? []) + (descriptor.docker?.hosts ?? [])
    secretHosts = Self.hosts(of: own, client)
    tokenHosts = Self.hosts(of: own + Self.foreignRedirects(descriptor) + helperTemplates, client)
  }

  package func covers(_ host: String) -> Bool { tokenHosts.contains(host) }

  func newHosts(in later: Agreement, for subject: Subject) -> [String] {
    (subject == .token ? later.tokenHosts : later.secretHosts).filter { !covers($0) }
  }

  /// The redirect where it is a page elsewhere, which gets a code, or a token itself (RFC 6749, 4.2). One that a
  /// variable gives is the person's own choice.
  private static func foreignRedirects(_ descriptor: Descriptor) -> [Template] {
    guard let text = descriptor.redirect.template.literal, let uri = try? URI(parsing: text),
      ["http", "https"].contains(uri.scheme), !uri.isLoopback
    else { return [] }
    return [descriptor.redirect.template]
  }

  fileprivate static func hosts(of templates: [Template], _ client: Client) -> [String] {
    let values = client.values()
    var hosts: Set<String> = []
    for template in templates {
      // With alternatives in it, a place may become one or the other.
      for text in [try? template.filled(values), try? template.filled { values($0) ?? "{\($0)}" }] {
        hosts.insert(host(of: text ?? template.text))
      }
    }
    return hosts.sorted()
  }

  private static func host(of text: String) -> String {
    if let uri = try? URI(parsing: text), let authority = HostPattern.authority(uri) { return authority }
    let rest = text.firstPlace(of: "://").map { text[$0.upperBound...] } ?? text[...]
    return rest.prefix { !"/?#".contains($0) }.lowercased()
  }
}

// MARK: At rest

extension Agreement {
  var value: JSONValue {
    func list(_ texts: [String]) -> JSONValue { .array(texts.map(JSONValue.string)) }
    return [
      "client_id": .optional(clientIdentifier), "secret_hosts": list(secretHosts), "token_hosts": list(tokenHosts),
      "redirect": .optional(redirect), "device_page": .optional(devicePage), "issuer": .optional(issuer),
      "claims": claims.map { .array($0.map(\.value)) } ?? .null,
    ]
  }

  init?(_ value: JSONValue) {
    func list(_ value: JSONValue?) -> [String]? { value?.elements?.compactMap(\.text) }
    guard let secretHosts = list(value["secret_hosts"]), let tokenHosts = list(value["token_hosts"]) else { return nil }
    self.secretHosts = secretHosts
    self.tokenHosts = tokenHosts
    clientIdentifier = value["client_id"]?.text
    redirect = value["redirect"]?.text
    devicePage = value["device_page"]?.text
    issuer = value["issuer"]?.text
    claims = value["claims"]?.elements?.compactMap { HostClaim($0) }
  }

  /// What earlier versions kept: the hosts of all kinds in one list.
  init(destinations: [String]) {
    secretHosts = destinations
    tokenHosts = destinations
  }
}

// MARK: Asking it

/// A host to which tokens or the client's secret would go, and to which nobody agreed.
package struct NewHost: Sendable, Equatable {
  package let name: String
  /// Where the descriptor names it; `nil` where no descriptor was read for it.
  package let place: Place?
}

extension DescriptorLibrary.Loaded {
  fileprivate func places(of hosts: [String], _ client: Client) -> [NewHost] {
    hosts.map { host in NewHost(name: host, place: place(ofHost: host) { Agreement.hosts(of: [$0], client) }) }
  }
}

/// What a provider keeps when it is added anew, and what would go to the hosts of its new descriptor.
struct KeptSecrets {
  var accounts: [Account]
  var clientSecret: Bool
  var variable: Bool
}

extension CredentialSource {
  /// Asked before the accounts' tokens and the client's secret can go to hosts to which nobody agreed.
  package typealias Consent = (_ accounts: [String], _ hosts: [NewHost]) -> Bool

  /// The person's own file that a descriptor is made of; `nil` where all came with the program or the system.
  func ownFile(of loaded: DescriptorLibrary.Loaded) -> String? {
    ([loaded.path] + loaded.bases).first { $0.hasPrefix(home.userProviders + "/") }
  }

  /// Refuses a person's own descriptor that was edited in place, or put before a shipped one or one that a shipped one
  /// extends, and names a new host. What came with the program is trusted as the program is.
  func requireAgreed(
    _ loaded: DescriptorLibrary.Loaded, _ client: Client, _ agreed: Agreement?
  ) throws(CredentialError) {
    guard let own = ownFile(of: loaded), let agreed else { return }
    let hosts = agreed.newHosts(in: Agreement(client), for: .token)
    guard hosts.isEmpty else {
      throw .descriptorChanged(
        provider: loaded.descriptor.identifier, file: own, hosts: loaded.places(of: hosts, client))
    }
  }

  /// A descriptor is a file that strangers send each other: one that takes the place of another must not carry existing
  /// secrets to new hosts unasked. Where nobody noted what was `agreed`, the descriptor in force tells.
  func requireConsent(
    _ loaded: DescriptorLibrary.Loaded, _ client: Client, replacing agreed: Agreement?, kept: KeptSecrets,
    confirms: Consent
  ) throws(CredentialError) {
    guard !kept.accounts.isEmpty || kept.clientSecret || kept.variable else { return }
    // A descriptor that cannot be read any more tells nothing: then every host is new.
    let agreed =
      agreed ?? (try? self.client(client.descriptor.identifier)).map { Agreement($0) } ?? Agreement(destinations: [])
    // A variable goes wherever a token does.
    let subject: Agreement.Subject = kept.accounts.isEmpty && !kept.variable ? .clientSecret : .token
    let hosts = loaded.places(of: agreed.newHosts(in: Agreement(client), for: subject), client)
    guard !hosts.isEmpty else { return }
    let names = kept.accounts.map(\.name)
    if !confirms(names, hosts) {
      throw .destinationChange(provider: client.descriptor.identifier, accounts: names, hosts: hosts)
    }
  }

  /// The hosts that `add` would ask about if this descriptor replaced the one that was added before. Throws where
  /// nobody can tell: the vault is locked, a variable has no value.
  package func newHosts(
    of provider: String, _ bytes: [UInt8], named file: String
  ) throws(CredentialError) -> [NewHost] {
    guard let existing = try accountsIfAny(), let previous = try existing.registration(of: provider) else { return [] }
    let addition = try addition(bytes, named: file, as: nil)
    var registration = previous
    registration.variables = previous.variables.filter { addition.descriptor.variable($0.key) != nil }
    var found: [NewHost] = []
    try requireConsent(
      addition.loaded, try client(addition.descriptor, registration), replacing: previous.agreement,
      kept: KeptSecrets(
        accounts: existing.accounts(of: addition.identifier), clientSecret: previous.clientSecret != nil,
        variable: keepsSecretVariable(addition, previous, given: [:]))
    ) { _, hosts in
      found = hosts
      return true
    }
    return found
  }
}
