import Cryptography
import HTTP
import Descriptors
import Text

/// A client that is registered at a provider (RFC 6749, 2): the descriptor, its variables, and who we are there.
package struct Client: Sendable {
  package let descriptor: Descriptor
  package let identifier: String  // Or the consumer key.
  package let secret: Secret?  // For RSA signatures, the private key as PEM.
  package let variables: [String: String]
  let computing: any RequestComputing

  init(
    descriptor: Descriptor, identifier: String, secret: Secret?, values: [String: String],
    computing: any RequestComputing = RequestComputation()
  ) {
    self.descriptor = descriptor
    self.identifier = identifier
    self.secret = secret
    self.computing = computing
    variables = values
  }

  /// A client that nobody registered: the variables have their defaults, or no value.
  package init(unregistered descriptor: Descriptor) {
    let defaults = descriptor.variables.compactMap { variable in variable.defaultValue.map { (variable.name, $0) } }
    let values = Dictionary(defaults) { first, _ in first }
    self.init(descriptor: descriptor, identifier: "", secret: nil, values: values)
  }

  /// A variable that is not given has its default. Throws for one that is unknown, invalid, or has neither.
  package init(
    descriptor: Descriptor, identifier: String, secret: Secret?, variables given: [String: String]
  ) throws(ProviderError) {
    self.init(
      descriptor: descriptor, identifier: identifier, secret: secret,
      values: try Self.values(of: descriptor, given: given))
  }

  static func check(_ given: [String: String], _ descriptor: Descriptor) throws(ProviderError) {
    for (name, value) in given.sorted(by: { $0.key < $1.key }) {
      guard var variable = descriptor.variable(name) else {
        throw .unknownVariable(name, known: descriptor.variables.map(\.name))
      }
      // Whatever text it may be, in a host it has to be a host's: before anything is sent, and a code is lost.
      if variable.format == .text {
        for endpoint in descriptor.endpoints.values {
          for (place, names) in endpoint.url.hostPlaces where names.contains(name) {
            variable.format = place == .base ? .url : .hostname
          }
        }
      }
      let hosts = descriptor.hosts + (descriptor.git?.hosts ?? []) + (descriptor.docker?.hosts ?? [])
      let isOfHost = hosts.flatMap(\.hostPlaces).allSatisfy { place, names in
        !names.contains(name) || value.isEmpty || (place == .piece ? .host : place).takes(value)
      }
      guard variable.accepts(value), isOfHost else { throw .invalidVariable(variable, value: value) }
    }
  }

  package static func values(
    of descriptor: Descriptor, given: [String: String]
  ) throws(ProviderError) -> [String: String] {
    try check(given, descriptor)
    var values: [String: String] = [:]
    for variable in descriptor.variables {
      let value = given[variable.name] ?? variable.defaultValue ?? ""
      if value.isEmpty, !variable.isOptional { throw .missingVariable(variable) }
      if !value.isEmpty { values[variable.name] = value }
    }
    return values
  }

  /// The values of the names in a template: of the request itself (`request_…`), of the exchange (what is known of
  /// this one login or request alone), the redirect URI with the port that the login had, fields of answers that the
  /// credential keeps, the variables of the login, those of the provider, and the client and the credential.
  package func values(
    for credential: Credential? = nil, _ exchange: [String: String] = [:], of request: HTTPRequest? = nil
  ) -> (String) -> String? {
    let values = signingValues(for: credential, exchange, of: request)
    return { name in values(name).flatMap { $0.hasPrivateKey ? nil : $0 } }
  }

  /// The same with private keys, which sign and are never sent, whatever the descriptor says.
  func signingValues(
    for credential: Credential?, _ exchange: [String: String], of request: HTTPRequest? = nil
  ) -> (String) -> String? {
    { name in
      request?.value(named: name) ?? exchange[name] ?? (name == "redirect_uri" ? credential?.redirectURI : nil)
        ?? kept(name, in: credential) ?? credential?.variables[name] ?? variables[name] ?? ownValue(name, credential)
    }
  }

  /// The client secret where it is sent.
  func sentSecret() throws(OAuthError) -> String {
    guard let text = secret?.reveal() else { throw .clientSecretMissing }
    guard !text.hasPrivateKey else { throw .privateKeyIsNotSent }
    return text
  }

  /// What an earlier version kept, or an exported file brings, may be beyond what the descriptor allows.
  private func kept(_ name: String, in credential: Credential?) -> String? {
    credential?.kept[name].flatMap { descriptor.accepts($0, keptAs: name) ? $0 : nil }
  }

  /// What the descriptor keeps of an answer; a value that it does not allow makes the answer no good.
  func kept(_ answer: Answer) throws(OAuthError) -> [String: String] {
    let kept = answer.kept
    for (name, value) in kept.sorted(by: { $0.key < $1.key }) where !descriptor.accepts(value, keptAs: name) {
      throw .valueOutOfBounds(answer.kind, name: name)
    }
    return kept
  }

  private func ownValue(_ name: String, _ credential: Credential?) -> String? {
    switch name {
    case "client_id": identifier
    case "client_secret": secret?.reveal()
    case "access_token": credential?.accessToken.reveal()
    case "refresh_token": credential?.refreshToken?.reveal()
    case "token_secret": credential?.tokenSecret?.reveal()
    case "scope": credential.map { joined($0.requestedScope) }
    default: nil
    }
  }

  /// As the descriptor names it, with its variables filled.
  var issuer: String? { descriptor.issuer.flatMap { try? $0.filled(values()) } }

  func joined(_ scope: [String]) -> String { scope.joined(separator: descriptor.scope.separator) }

  func endpoint(_ kind: EndpointKind) throws(OAuthError) -> Endpoint {
    guard let endpoint = descriptor.endpoints[kind] else { throw .noEndpoint(kind) }
    return endpoint
  }

  /// The redirect URI as it is registered, with its variables filled; a loopback one without a port takes any.
  package func redirect() throws(OAuthError) -> Redirect {
    if descriptor.redirect.template.literal == "oob" { return .outOfBand("oob") }
    do throws(URLTemplateError) {
      let values = values()
      let text = (try? descriptor.redirect.template.filled(values)) ?? ""
      if text == "oob" || text == "urn:ietf:wg:oauth:2.0:oob" { return .outOfBand(text) }
      let uri = try descriptor.redirect.anyScheme(values)
      // What listens is one of these three; another address of loopback is somebody else's.
      let isOurs = ["127.0.0.1", "localhost", "[::1]"].contains(uri.host)
      if uri.scheme == "http", isOurs { return .loopback(uri) }
      if uri.scheme == "http", !uri.isLoopback { throw URLTemplateError.insecure(uri.text) }
      return .elsewhere((try? URI(parsing: text)) == uri ? text : uri.text)
    } catch {
      throw .url(.authorization, error)
    }
  }
}

extension String {
  /// Whether a private key stands in it as PEM (RFC 7468).
  var hasPrivateKey: Bool { utf8.count > 64 && firstPlace(of: "PRIVATE KEY-----") != nil }
}
