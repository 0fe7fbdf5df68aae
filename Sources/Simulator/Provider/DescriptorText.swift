import CredentialManager
import Descriptors
import JSON
import Text

/// A descriptor as the YAML text that it can be read from again, without a base and with every endpoint whole.
struct DescriptorText {
  private indirect enum Value: Equatable {
    case text(String)
    case plain(String)
    case list([Value])
    case mapping([Entry])
  }

  private struct Entry: Equatable {
    var key: String
    var value: Value
  }

  /// The text.
  let text: String

  /// - Parameter gitHosts: git hosts for a descriptor that has none itself.
  init(_ descriptor: Descriptor, gitHosts: [String] = []) {
    var lines = [Self.mark]
    var entries = Self.entries(descriptor)
    if descriptor.git == nil, !gitHosts.isEmpty {
      entries.append(Entry(key: "git", value: Self.mapping([("hosts", Self.texts(gitHosts))])))
    }
    for entry in entries { Self.write(entry, indentation: "", to: &lines) }
    text = lines.joined(separator: "\n") + "\n"
  }

  private static let mark = "# The provider as credmgr-simulator plays it: it is gone when the simulator ends."

  /// Whether a text was written here.
  static func isOurs(_ bytes: [UInt8]) -> Bool { bytes.starts(with: mark.utf8) }

  // MARK: The descriptor

  private static func entries(_ descriptor: Descriptor) -> [Entry] {
    var entries: [Entry] = [
      Entry(key: "provider", value: .text(descriptor.identifier)),
      Entry(key: "title", value: .text(descriptor.title)),
      Entry(key: "grant", value: .list(descriptor.grants.map { .text($0.rawValue) })),
    ]
    func add(_ key: String, _ value: Value?) {
      switch value {
      case nil, .mapping([]): return
      case let value?: entries.append(Entry(key: key, value: value))
      }
    }
    add("variables", .mapping(descriptor.variables.map { Entry(key: $0.name, value: variable($0)) }))
    add("endpoints", endpoints(descriptor.endpoints))
    add("header_style", headerStyle(descriptor.headerStyle))
    add("extra_headers", headers(descriptor.extraHeaders))
    add(
      "scope",
      mapping([
        ("default", texts(descriptor.scope.requested)), ("separator", .text(descriptor.scope.separator)),
        ("granted_separator", .text(descriptor.scope.grantedSeparator)),
      ]))
    add("redirect", .text(descriptor.redirect.template.text))
    add("state", .text(descriptor.state.rawValue))
    add("pkce", .text(descriptor.pkce.rawValue))
    if descriptor.sendsNonce { add("nonce", boolean(true)) }
    add("issuer", descriptor.issuer.map { .text($0.text) })
    add("iss", .text(descriptor.issuerResponse.rawValue))
    add(
      "client",
      mapping([
        ("authentication", descriptor.client.authentication.map { .text($0.rawValue) }),
        ("id", descriptor.client.identifier.map { .text($0) }),
        ("register", descriptor.client.register.map { .text($0) }),
      ]))
    add(
      "expiry",
      mapping([
        ("lifetime", descriptor.expiry.lifetime.map { .text("\($0)s") }),
        ("margin", .text("\(descriptor.expiry.margin)s")),
      ]))
    add("assertion", descriptor.assertion.map(assertion))
    if descriptor.grants.contains(.deviceCode) { add("device", device(descriptor.device)) }
    if descriptor.grants.contains(.oauth1) { add("oauth1", oauth1(descriptor.oauth1)) }
    add("account", descriptor.account.isEmpty ? nil : paths(descriptor.account))
    add("hosts", .list(descriptor.hosts.map { .text($0.text) }))
    add("git", descriptor.git.map(git))
    add("docker", descriptor.docker.map(docker))
    return entries
  }

  private static func variable(_ variable: Variable) -> Value {
    mapping([
      ("default", variable.defaultValue.map { .text($0) }), ("format", .text(variable.format.rawValue)),
      ("pattern", variable.pattern.map { .text($0) }),
      ("choices", variable.choices.isEmpty ? nil : texts(variable.choices)),
      ("help", variable.help.map { .text($0) }), ("optional", variable.isOptional ? boolean(true) : nil),
      ("secret", variable.isSecret ? boolean(true) : nil),
    ])
  }

  private static func headerStyle(_ style: HeaderStyle) -> Value {
    var pairs: [(String, Value?)]
    switch style.location {
    case .header(let name, let scheme):
      pairs = [("header", .text(name)), ("scheme", scheme.isEmpty ? nil : .text(scheme))]
    case .query(let name): pairs = [("query", .text(name))]
    case .none: pairs = [("scheme", .text("none"))]
    }
    pairs.append(("parameters", style.parameters.isEmpty ? nil : headers(style.parameters)))
    return mapping(pairs)
  }

  private static func device(_ rules: DeviceRules) -> Value {
    let slowDown =
      switch rules.slowDown {
      case .add(let seconds): "\(seconds)s"
      case .multiply(let hundredths): "x\(Double(hundredths) / 100)"
      }
    return mapping([
      ("verification_uri_complete", rules.verificationURIComplete.map { .text($0.text) }),
      ("interval", .text("\(rules.interval)s")), ("slow_down", .text(slowDown)),
    ])
  }

  private static func oauth1(_ rules: OAuth1Rules) -> Value {
    func rule(_ isRequired: Bool) -> Value {
      .text((isRequired ? StateRule.required : .optional).rawValue)
    }
    return mapping([
      ("signature_method", .text(rules.signatureMethod.text)), ("transport", .text(rules.transport.text)),
      ("realm", rules.realm.map { .text($0.text) }), ("version", boolean(rules.sendsVersion)),
      ("callback_confirmed", rule(rules.requiresCallbackConfirmed)),
      ("verifier", rule(rules.requiresVerifier)), ("callback", .text(rules.callback.rawValue)),
    ])
  }

  private static func git(_ rules: GitRules) -> Value {
    mapping([
      ("hosts", .list(rules.hosts.map { .text($0.text) })), ("username", .text(rules.username.text)),
      ("ignore_username", boolean(rules.ignoresUsername)), ("realms", .list(rules.realms.map { .text($0) })),
    ])
  }

  private static func docker(_ rules: DockerRules) -> Value {
    mapping([
      ("hosts", .list(rules.hosts.map { .text($0.text) })), ("username", .text(rules.username.text)),
    ])
  }

  // MARK: Endpoints

  private static func endpoints(_ endpoints: [EndpointKind: Endpoint]) -> Value {
    var entries: [Entry] = []
    for kind in EndpointKind.allCases {
      let inherited = kind.base.flatMap { endpoints[$0] }
      guard let endpoint = endpoints[kind] else {
        // Without a word, the endpoint would be what its base is.
        if inherited != nil { entries.append(Entry(key: kind.rawValue, value: null)) }
        continue
      }
      var value = self.endpoint(endpoint, kind)
      if let inherited {
        let base = without("parameters", self.endpoint(inherited, kind))
        if value == base { continue }
        value = replacing(base, by: value)
      }
      entries.append(Entry(key: kind.rawValue, value: value))
    }
    return .mapping(entries)
  }

  private static func endpoint(_ endpoint: Endpoint, _ kind: EndpointKind) -> Value {
    let standardTokens: [ResponseField] = kind == .revocation ? [.refreshToken, .accessToken] : [.accessToken]
    let parameters = rules(endpoint.parameters)
    let rename = endpoint.rename.sorted { $0.key < $1.key }.map { Entry(key: $0.key, value: .text($0.value)) }
    return mapping([
      ("url", .text(endpoint.url.template.text)), ("method", .text(endpoint.method)),
      ("send", .text(endpoint.send.rawValue)),
      ("in_query", endpoint.inQuery.isEmpty ? nil : texts(endpoint.inQuery)),
      ("verbatim", endpoint.verbatim.isEmpty ? nil : texts(endpoint.verbatim)),
      ("parameters", parameters.isEmpty ? nil : .mapping(parameters)),
      ("rename", rename.isEmpty ? nil : .mapping(rename)),
      ("authentication", endpoint.authentication.map { .text($0.rawValue) }),
      ("headers", endpoint.headers.isEmpty ? nil : headers(endpoint.headers)),
      ("response", response(endpoint.response)),
      ("tokens", endpoint.tokens == standardTokens ? nil : texts(endpoint.tokens.map(\.rawValue))),
      ("follows", endpoint.followsRefresh ? texts([EndpointKind.token, .refresh].map(\.rawValue)) : nil),
    ])
  }

  private static func rules(_ rules: [ParameterRule]) -> [Entry] {
    rules.map { Entry(key: $0.name, value: $0.value.map { .text($0.text) } ?? null) }
  }

  private static func assertion(_ rules: AssertionRules) -> Value {
    mapping([
      ("algorithm", rules.algorithm.map { .text($0.rawValue) }), ("key", .text(rules.key.text)),
      ("header", rules.header.isEmpty ? nil : .mapping(self.rules(rules.header))),
      ("claims", rules.claims.isEmpty ? nil : .mapping(self.rules(rules.claims))),
      ("lifetime", .text("\(rules.lifetime)s")),
    ])
  }

  private static func response(_ rules: ResponseRules) -> Value {
    let fields = rules.fields.sorted { $0.key.rawValue < $1.key.rawValue }.map { field, source in
      let value = mapping([("path", paths(source.paths)), ("time", source.time.map { .text($0.rawValue) })])
      return Entry(key: field.rawValue, value: value)
    }
    let keep = rules.keep.map { Entry(key: $0.name, value: paths($0.paths)) }
    let active: Value? =
      switch rules.active {
      case ResponseRules().active: nil
      case .field(let path, let values): mapping([("path", .text(path.text)), ("equals", texts(values))])
      case .status: .text("status")
      }
    return mapping([
      ("format", rules.format.map { .text($0.rawValue) }), ("within", rules.within.map { .text($0.text) }),
      ("fields", fields.isEmpty ? nil : .mapping(fields)), ("keep", keep.isEmpty ? nil : .mapping(keep)),
      ("errors", errors(rules.errors)), ("active", active),
    ])
  }

  private static func errors(_ rules: ErrorRules) -> Value? {
    let standard = ErrorRules()
    if rules == standard { return nil }
    let meanings = rules.meanings.sorted { $0.key < $1.key }.map {
      Entry(key: $0.key, value: .text($0.value))
    }
    return mapping([
      ("code", rules.code == standard.code ? nil : paths(rules.code)),
      ("description", rules.description == standard.description ? nil : paths(rules.description)),
      ("success", rules.success.isEmpty ? nil : texts(rules.success)),
      ("meanings", meanings.isEmpty ? nil : .mapping(meanings)),
    ])
  }

  /// What has to be written so that `value` comes of laying it over `base`: a key that only `base` has is taken away.
  private static func replacing(_ base: Value, by value: Value) -> Value {
    guard case .mapping(let below) = base, case .mapping(let above) = value else { return value }
    var entries = above.compactMap { entry -> Entry? in
      guard let inherited = below.first(where: { $0.key == entry.key }) else { return entry }
      if inherited.value == entry.value { return nil }
      return Entry(key: entry.key, value: replacing(inherited.value, by: entry.value))
    }
    for entry in below where !above.contains(where: { $0.key == entry.key }) {
      entries.append(Entry(key: entry.key, value: null))
    }
    return .mapping(entries)
  }

  private static func without(_ key: String, _ value: Value) -> Value {
    guard case .mapping(let entries) = value else { return value }
    return .mapping(entries.filter { $0.key != key })
  }

  // MARK: Values

  private static var null: Value { .plain("null") }

  private static func boolean(_ value: Bool) -> Value { .plain(value ? "true" : "false") }

  private static func texts(_ texts: [String]) -> Value { .list(texts.map { .text($0) }) }

  private static func paths(_ paths: [FieldPath]) -> Value { texts(paths.map(\.text)) }

  private static func headers(_ headers: [HeaderTemplate]) -> Value {
    .mapping(headers.map { Entry(key: $0.name, value: .text($0.value.text)) })
  }

  private static func mapping(_ pairs: [(String, Value?)]) -> Value {
    .mapping(pairs.compactMap { key, value in value.map { Entry(key: key, value: $0) } })
  }

  // MARK: Text

  private static func write(_ entry: Entry, indentation: String, to lines: inout [String]) {
    let start = indentation + Scalar.written(entry.key) + ":"
    switch entry.value {
    case .mapping(let entries) where entries.isEmpty: lines.append(start + " {}")
    case .mapping(let entries):
      lines.append(start)
      for entry in entries { write(entry, indentation: indentation + "  ", to: &lines) }
    case let value: lines.append(start + " " + inline(value))
    }
  }

  private static func inline(_ value: Value) -> String {
    switch value {
    case .text(let text): Scalar.written(text)
    case .plain(let text): text
    case .list(let values): "[" + values.map(inline).joined(separator: ", ") + "]"
    case .mapping(let entries):
      "{ " + entries.map { Scalar.written($0.key) + ": " + inline($0.value) }.joined(separator: ", ") + " }"
    }
  }
}
