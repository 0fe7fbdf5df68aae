import HTTP
import Text
import YAML

extension DescriptorDecoder {
  static let variableKeys = ["default", "format", "pattern", "choices", "help", "optional", "secret"]
  static let headerStyleKeys = ["scheme", "header", "query", "parameters"]
  static let scopeKeys = ["default", "separator", "granted_separator"]
  static let clientKeys = ["authentication", "id", "register"]
  static let expiryKeys = ["lifetime", "margin"]
  static let deviceKeys = ["verification_uri_complete", "interval", "slow_down"]
  static let oauth1Keys = [
    "signature_method", "transport", "realm", "version", "callback", "callback_confirmed", "verifier",
  ]
  static let assertionKeys = ["algorithm", "key", "header", "claims", "lifetime"]
  static let gitKeys = ["hosts", "username", "ignore_username", "realms"]
  static let dockerKeys = ["hosts", "username"]

  mutating func variables(_ node: Node?) -> [Variable] {
    guard let node, !node.isNull else { return [] }
    guard let entries = node.entries else {
      add(.wrongType(expected: "a mapping"), at: node.place)
      return []
    }
    if entries.count > Self.variableLimit { add(.tooManyVariables(Self.variableLimit), at: node.place) }
    return entries.prefix(Self.variableLimit).compactMap { variable($0) }
  }

  /// Each template is compared with each name, so that a file may not have any number of them.
  static let variableLimit = 256

  private mutating func variable(_ entry: Node.Entry) -> Variable? {
    if !Self.isTemplateName(entry.key)
      || (Self.engineNames + Self.endpointNames + Self.requestNames).contains(entry.key),
      entry.key != "redirect_uri"
    {
      add(.malformedName(entry.key), at: entry.keyPlace)
    }
    var variable = Variable(name: entry.key, format: .text, choices: [], isOptional: false)
    guard !entry.value.isNull, let node = mapping(entry.value, keys: Self.variableKeys) else {
      return variable
    }
    variable.format = choice(node["format"]) ?? .text
    variable.choices = texts(node["choices"])?.map(\.value) ?? []
    variable.help = node["help"].flatMap { shownText($0) }
    variable.isOptional = boolean(node["optional"]) ?? false
    variable.isSecret = boolean(node["secret"]) ?? false
    if let pattern = node["pattern"], let text = text(pattern) {
      if Pattern(text) == nil {
        add(.invalidPattern(text), at: pattern.place)
      } else {
        variable.pattern = text
      }
    }
    if let value = node["default"], let text = text(value) {
      variable.defaultValue = text
      if !variable.accepts(text) { add(.invalidDefault(variable: entry.key), at: value.place) }
    }
    return variable
  }

  mutating func grants(_ root: Node) -> [(value: Grant, place: Place)] {
    guard let node = required("grant", in: root), let texts = texts(node) else { return [] }
    return texts.compactMap { text in
      if let grant = Grant(rawValue: text.value) { return (grant, text.place) }
      unknownValue(text.value, allowed: Grant.allCases.map(\.rawValue), at: text.place)
      return nil
    }
  }

  /// - Parameter signed: whether requests are signed, so that no token stands in a header by itself.
  mutating func headerStyle(_ node: Node?, signed: Bool) -> HeaderStyle {
    let standard = HeaderStyle(
      location: signed ? .none : .header(name: "Authorization", scheme: "Bearer"), parameters: [])
    guard let node = mapping(node, keys: Self.headerStyleKeys) else { return standard }
    var style = standard
    let scheme = node["scheme"].flatMap { text($0) }
    if let query = node["query"].flatMap({ text($0) }) {
      style.location = .query(name: query)
    } else if scheme == "none", node["header"] == nil {
      style.location = .none
    } else {
      let name = node["header"].flatMap { text($0) } ?? "Authorization"
      if let place = node["header"]?.place,
        !HTTPFields.isValid(name: name) || Self.ownedHeaders.contains(name.lowercased())
      {
        add(.forbiddenHeader(name), at: place)
      }
      // A header of the provider's own carries the bare token, unless a scheme is asked for.
      let standardScheme = node["header"] == nil ? "Bearer" : ""
      style.location = .header(name: name, scheme: scheme ?? standardScheme)
      if let scheme, let place = node["scheme"]?.place, !HTTPFields.isValid(value: scheme) {
        add(.forbiddenHeader(scheme), at: place)
      }
    }
    style.parameters = headers(node["parameters"])
    return style
  }

  mutating func scope(_ node: Node?) -> ScopeRules {
    var rules = ScopeRules(requested: [], separator: " ", grantedSeparator: " ")
    guard let node = mapping(node, keys: Self.scopeKeys) else { return rules }
    rules.requested = texts(node["default"])?.map(\.value) ?? []
    if let separator = node["separator"].flatMap({ text($0) }) { rules.separator = separator }
    rules.grantedSeparator = node["granted_separator"].flatMap { text($0) } ?? rules.separator
    return rules
  }

  mutating func redirect(_ node: Node?) -> URLTemplate {
    let standard = URLTemplate(Template(literal: "http://127.0.0.1/callback"))
    guard let node, !node.isNull else { return standard }
    if node.text == "oob" { return URLTemplate(Template(literal: "oob")) }
    let url = url(node, names: [], anyScheme: true) ?? standard
    if let text = url.template.literal, let uri = try? URI(parsing: text), uri.scheme == "http", !uri.isLoopback {
      add(.insecureURL(text), at: node.place)
    }
    // Elsewhere this name stands for the redirect; here it can only be a variable.
    if url.template.names.contains("redirect_uri"), !definedNames.contains("redirect_uri") {
      add(.unknownTemplateName("redirect_uri", suggestion: nil), at: node.place)
    }
    return url
  }

  mutating func client(_ node: Node?) -> ClientRules {
    var rules = ClientRules(authentication: nil, identifier: nil, register: nil, hasSecret: true)
    guard let node = mapping(node, keys: Self.clientKeys) else { return rules }
    rules.authentication = choice(node["authentication"])
    rules.identifier = node["id"].flatMap { text($0) }
    rules.register = node["register"].flatMap { text($0) }
    rules.hasSecret = rules.authentication != ClientAuthentication.none
    return rules
  }

  mutating func assertion(_ node: Node?) -> AssertionRules? {
    guard let node = mapping(node, keys: Self.assertionKeys) else { return nil }
    var rules = AssertionRules()
    rules.algorithm = choice(node["algorithm"])
    if let key = template(node["key"], names: Self.endpointNames) { rules.key = key }
    rules.header = parameters(node["header"], owned: [])
    rules.claims = parameters(node["claims"], owned: [])
    rules.lifetime = duration(node["lifetime"]) ?? rules.lifetime
    return rules
  }

  mutating func expiry(_ node: Node?) -> ExpiryRules {
    var rules = ExpiryRules(lifetime: nil, margin: 60)
    guard let node = mapping(node, keys: Self.expiryKeys) else { return rules }
    rules.lifetime = duration(node["lifetime"])
    rules.margin = duration(node["margin"]) ?? rules.margin
    return rules
  }

  mutating func device(_ node: Node?) -> DeviceRules {
    var rules = DeviceRules(verificationURIComplete: nil, interval: 5, slowDown: .add(5))
    guard let node = mapping(node, keys: Self.deviceKeys) else { return rules }
    rules.verificationURIComplete = template(node["verification_uri_complete"], names: Self.endpointNames)
    rules.interval = duration(node["interval"]) ?? rules.interval
    if let slowDown = node["slow_down"], let text = text(slowDown) {
      if let seconds = seconds(ofDuration: text) {
        rules.slowDown = .add(seconds)
      } else if text.hasPrefix("x"), let factor = Double(text.dropFirst()), factor > 1, factor <= 10 {
        rules.slowDown = .multiply(Int64((factor * 100).rounded()))
      } else {
        add(.invalidDuration(text), at: slowDown.place)
      }
    }
    return rules
  }

  mutating func oauth1(_ node: Node?) -> OAuth1Rules {
    var rules = OAuth1Rules(
      signatureMethod: Template(literal: SignatureMethod.hmacSHA1.rawValue),
      transport: Template(literal: SignatureTransport.header.rawValue),
      realm: nil, sendsVersion: true, requiresCallbackConfirmed: true, requiresVerifier: true,
      callback: .temporaryCredentials)
    guard let node = mapping(node, keys: Self.oauth1Keys) else { return rules }
    if let method = named(SignatureMethod.self, node["signature_method"]) { rules.signatureMethod = method }
    if let transport = named(SignatureTransport.self, node["transport"]) { rules.transport = transport }
    rules.realm = template(node["realm"])
    rules.sendsVersion = boolean(node["version"]) ?? true
    rules.requiresCallbackConfirmed = isRequired(node["callback_confirmed"])
    rules.requiresVerifier = isRequired(node["verifier"])
    if let callback = node["callback"], let text = text(callback) {
      let allowed: [EndpointKind] = [.temporaryCredentials, .authorization]
      if let kind = allowed.first(where: { $0.rawValue == text }) {
        rules.callback = kind
      } else {
        unknownValue(text, allowed: allowed.map(\.rawValue), at: callback.place)
      }
    }
    return rules
  }

  private mutating func isRequired(_ node: Node?) -> Bool {
    guard let rule: StateRule = choice(node) else { return true }
    return rule == .required
  }

  /// One of the values, or a template that will be one.
  private mutating func named<Choice: RawRepresentable & CaseIterable>(_: Choice.Type, _ node: Node?)
    -> Template?
  where Choice.RawValue == String {
    guard let node, let template = template(node) else { return nil }
    if let literal = template.literal, Choice(rawValue: literal) == nil {
      unknownValue(literal, allowed: Choice.allCases.map(\.rawValue), at: node.place)
    }
    return template
  }

  mutating func git(_ node: Node?) -> GitRules? {
    guard let node = mapping(node, keys: Self.gitKeys) else { return nil }
    _ = required("hosts", in: node)
    let username = template(node["username"], names: ["account"]) ?? Template(literal: "oauth2")
    return GitRules(
      hosts: wholeHosts(node["hosts"]) ?? [], username: username,
      ignoresUsername: boolean(node["ignore_username"]) ?? false,
      realms: texts(node["realms"])?.map(\.value) ?? [])
  }

  mutating func docker(_ node: Node?) -> DockerRules? {
    guard let node = mapping(node, keys: Self.dockerKeys) else { return nil }
    _ = required("hosts", in: node)
    let username = template(node["username"], names: ["account"]) ?? Template(literal: "oauth2")
    return DockerRules(hosts: wholeHosts(node["hosts"]) ?? [], username: username)
  }

  /// Hosts that are looked up by their whole names.
  private mutating func wholeHosts(_ node: Node?) -> [Template]? {
    hosts(node)?.filter { host in
      guard host.text.hasPrefix("*.") else { return true }
      let place = node?.elements?.first { $0.text == host.text }?.place ?? node?.place
      if let place { add(.subdomains(host.text), at: place) }
      return false
    }
  }

  mutating func hosts(_ node: Node?) -> [Template]? {
    guard let texts = texts(node) else { return nil }
    let nodes = node?.elements ?? [node].compactMap { $0 }
    return zip(texts, nodes).compactMap { text, node in
      guard let template = template(node) else { return nil }
      // A place at the beginning may stand for a whole base URL, one behind a colon for a port; what they yield is looked
      // at when they are filled.
      let isHost = ["sample", "1"].contains { sample in
        var host = (try? template.filled { _ in sample }) ?? ""
        if host.hasPrefix("*.") { host.removeFirst(2) }
        return URLTemplate.isAuthority(host)
      }
      if !isHost { add(.invalidHost(text.value), at: text.place) }
      return template
    }
  }
}
