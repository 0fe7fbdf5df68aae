import CredmgrCryptography
import CredmgrHTTP
import CredmgrDescriptors
import CredmgrText

/// A client registered at a provider (RFC 6749, 2): the descriptor, its variables, and the client's credentials.
package struct Client: Sendable {
  @usableFromInline let shared: SharedDescriptor
  package let identifier: String  // For OAuth 1.0a, the consumer key.
  package let secret: Secret?  // For RSA signatures, the private key as PEM.
  package let variables: [String: String]
  let computing: any RequestComputing
  /// The key of the account that logs in, to which the provider will bind the token; `nil` for other tokens.
  package var bindingKey: Secret?

  @inlinable
  package var descriptor: Descriptor { _read { yield shared.value } }

  init(
    descriptor: Descriptor, identifier: String, secret: Secret?, values: [String: String],
    computing: any RequestComputing = RequestComputation()
  ) {
    shared = SharedDescriptor(descriptor)
    self.identifier = identifier
    self.secret = secret
    self.computing = computing
    variables = values
  }

  /// Creates a client without a registration. Its variables have their defaults or no value.
  package init(unregistered descriptor: Descriptor) {
    let defaults = descriptor.variables.compactMap { variable in variable.defaultValue.map { (variable.name, $0) } }
    let values = Dictionary(defaults) { first, _ in first }
    self.init(descriptor: descriptor, identifier: "", secret: nil, values: values)
  }

  /// Fills in defaults. Throws if a variable is unknown, invalid, or has neither a value nor a default.
  package init(
    descriptor: Descriptor, identifier: String, secret: Secret?, variables given: [String: String]
  ) throws(ProviderError) {
    self.init(
      descriptor: descriptor, identifier: identifier, secret: secret,
      values: try Self.values(of: descriptor, given: given, hasClient: !identifier.isEmpty))
  }

  static func check(_ given: [String: String], _ descriptor: Descriptor) throws(ProviderError) {
    for (name, value) in given.sorted(by: { $0.key < $1.key }) {
      guard let variable = descriptor.variable(name) else {
        throw .unknownVariable(name, known: descriptor.variables.map(\.name))
      }
      guard variable.accepts(value) else { throw .invalidVariable(variable, value: value) }
      guard !value.isEmpty else { continue }
      // Check now that the text is valid in a host: a failure during the login could lose a code.
      let hosts = descriptor.hosts + (descriptor.git?.hosts ?? []) + (descriptor.docker?.hosts ?? [])
      let entries = hosts.flatMap(\.hostPlaces).filter { $0.names.contains(name) }.map(\.place)
      let addresses = descriptor.endpoints.values.flatMap(\.url.hostPlaces).filter { $0.names.contains(name) }
      // The value matches the variable's own rules, so the error names the rule of the host.
      var part = variable
      (part.pattern, part.choices) = (nil, [])
      for place in addresses.map(\.place) where variable.format == .text {
        part.format = place == .base ? .url : .hostname
        guard part.accepts(value) else { throw .invalidVariable(part, value: value) }
      }
      part.format = .hostname
      guard entries.allSatisfy({ ($0 == .piece ? .host : $0).takes(value) }) else {
        throw .invalidVariable(part, value: value)
      }
    }
  }

  /// Without a client, no browser returns to a redirect, so the redirect needs no value.
  private static func values(
    of descriptor: Descriptor, given: [String: String], hasClient: Bool
  ) throws(ProviderError) -> [String: String] {
    try check(given, descriptor)
    var values: [String: String] = [:]
    for variable in descriptor.variables {
      let value = given[variable.name] ?? variable.defaultValue ?? ""
      let isNeeded = !variable.isOptional && !variable.isAtLogin && (hasClient || variable.format != .redirect)
      if value.isEmpty, isNeeded { throw .missingVariable(variable) }
      if !value.isEmpty { values[variable.name] = value }
    }
    return values
  }

  /// Returns a lookup for the names in templates. The sources, in their order, are: the request (`request_…`),
  /// this login or exchange, the redirect URI with the login's port, fields that the credential keeps from answers, the
  /// variables of the login and of the provider, the client, and the credential.
  package func values(
    for credential: Credential? = nil, _ exchange: [String: String] = [:], of request: HTTPRequest? = nil
  ) -> (String) -> String? {
    let values = signingValues(for: credential, exchange, of: request)
    return { name in
      values(name).flatMap { value -> String? in
        if !value.hasPrivateKey { return value }
        return name == "client_secret" ? try? sentSecret() : nil
      }
    }
  }

  /// Returns the same lookup with private keys added. They sign requests and are never sent.
  func signingValues(
    for credential: Credential?, _ exchange: [String: String], of request: HTTPRequest? = nil
  ) -> (String) -> String? {
    { name in
      request?.value(named: name) ?? exchange[name] ?? (name == "redirect_uri" ? credential?.redirectURI : nil)
        ?? kept(name, in: credential) ?? credential?.keptSecrets[name]?.reveal() ?? typed(name, in: credential)
        ?? variables[name] ?? ownValue(name, credential)
    }
  }

  /// Returns the value of a variable that the user typed; `nil` for one that each exchange reads, because the
  /// credential has only the place of its value.
  private func typed(_ name: String, in credential: Credential?) -> String? {
    credential?.variables[name].flatMap { descriptor.variable(name)?.isAtExchange == true ? nil : $0 }
  }

  /// Returns the client secret for sending; throws if it is a private key.
  func sentSecret() throws(OAuthError) -> String {
    guard let text = secret?.shared.reveal() else { throw .clientSecretMissing }
    guard !text.hasPrivateKey else { throw .privateKeyIsNotSent }
    return text
  }

  /// Ignores values from older versions or imported files that the descriptor does not allow.
  private func kept(_ name: String, in credential: Credential?) -> String? {
    credential?.kept[name].flatMap { descriptor.accepts($0, keptAs: name) ? $0 : nil }
  }

  /// Returns the fields that the descriptor keeps; throws if the descriptor does not allow a value.
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

  /// The issuer that the descriptor names, with its variables filled in.
  package var issuer: String? { descriptor.issuer.flatMap { try? $0.filled(values()) } }

  /// Whether the issuer of this client made the credential. The secrets of one issuer are not sent to another.
  package func made(_ credential: Credential) -> Bool {
    guard let made = credential.issuer, let issuer else { return true }
    return made == issuer
  }

  /// The resource that tokens are for (RFC 8707, 2), with its variables filled in.
  var resource: String? { descriptor.resource.flatMap { try? $0.filled(values()) } }

  func joined(_ scope: [String]) -> String { scope.joined(separator: descriptor.scope.separator) }

  func endpoint(_ kind: EndpointKind) throws(OAuthError) -> Endpoint {
    guard let endpoint = descriptor.endpoints[kind] else { throw .noEndpoint(kind) }
    return endpoint
  }

  /// The registered redirect URI with its variables filled in. A loopback URI without a port allows any port.
  package func redirect() throws(OAuthError) -> Redirect {
    if descriptor.redirect.template.literal == "oob" { return .outOfBand("oob") }
    do throws(URLTemplateError) {
      let values = values()
      let text = (try? descriptor.redirect.template.filled(values)) ?? ""
      if text == "oob" || text == "urn:ietf:wg:oauth:2.0:oob" { return .outOfBand(text) }
      let uri = try descriptor.redirect.anyScheme(values)
      // credmgr listens at these three hosts only; any other loopback address belongs to another program.
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
  /// Whether the text contains a private key as PEM (RFC 7468).
  var hasPrivateKey: Bool { utf8.count > 64 && firstPlace(of: "PRIVATE KEY-----") != nil }
}
