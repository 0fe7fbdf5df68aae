import HTTP
import YAML

extension DescriptorDecoder {
  static let endpointKeys = [
    "url", "method", "send", "in_query", "verbatim", "parameters", "rename", "authentication", "headers", "response",
    "tokens", "follows",
  ]

  mutating func endpoints(_ root: Node) -> [EndpointKind: Endpoint] {
    let names = EndpointKind.allCases.map(\.rawValue)
    guard let node = mapping(required("endpoints", in: root), keys: names) else { return [:] }
    var endpoints: [EndpointKind: Endpoint] = [:]
    let grants = (root["grant"]?.elements ?? [root["grant"]].compactMap { $0 }).compactMap(\.text)
    let tokenIsUsed = [Grant.authorizationCode, .oauth1].contains { grants.contains($0.rawValue) }
    for kind in EndpointKind.allCases {
      guard let description = description(of: kind, in: node, tokenIsUsed: tokenIsUsed) else { continue }
      endpoints[kind] = endpoint(kind, description, root)
    }
    return endpoints
  }

  /// What stands below `endpoints` for an endpoint, over what it takes over from its base.
  ///
  /// - Parameter tokenIsUsed: whether a grant of the descriptor has the endpoint `token` itself. Where none has, the endpoint that takes it
  ///   over is the exchange that it describes, and its parameters belong to that.
  private func description(of kind: EndpointKind, in node: Node, tokenIsUsed: Bool) -> Node? {
    let own = node[kind.rawValue].flatMap { $0.isNull ? nil : $0 }
    guard let base = kind.base, let inherited = node[base.rawValue], inherited.entries != nil else {
      return own
    }
    let isTheExchange = !tokenIsUsed && kind != .refresh
    let taken = isTheExchange ? inherited : DescriptorTree.without("parameters", inherited)
    guard let own else { return node[kind.rawValue] == nil ? taken : nil }
    return DescriptorTree.merged(own, over: taken)
  }

  private mutating func endpoint(_ kind: EndpointKind, _ node: Node, _ root: Node) -> Endpoint? {
    guard let node = mapping(node, keys: Self.endpointKeys) else { return nil }
    let owned = Self.ownedParameters(at: kind)
    let url = required("url", in: node).flatMap { self.url($0, names: Self.endpointNames, owned: owned) }
    let method = node["method"].flatMap { text($0) } ?? Self.defaultMethod(kind)
    if let place = node["method"]?.place, !["GET", "POST", "PUT", "PATCH", "DELETE"].contains(method) {
      unknownValue(method, allowed: ["GET", "POST", "PUT", "PATCH", "DELETE"], at: place)
    }
    let send: ParameterPlacement =
      choice(node["send"])
      ?? (["GET", "DELETE"].contains(method) ? .query : kind == .registration ? .json : .form)
    // A faulty URL does not keep the other keys from being looked at.
    let endpoint = Endpoint(
      url: url ?? URLTemplate(Template(literal: "")), method: method, send: send,
      inQuery: texts(node["in_query"])?.map(\.value) ?? [],
      verbatim: texts(node["verbatim"])?.map(\.value) ?? [],
      parameters: parameters(node["parameters"], owned: owned),
      rename: rename(node["rename"], owned: owned),
      authentication: choice(node["authentication"]),
      headers: headers(node["headers"], names: Self.endpointNames + Self.requestNames),
      response: response(kind, node["response"], root),
      tokens: tokens(node["tokens"], kind), followsRefresh: followsRefresh(node["follows"]))
    return url == nil ? nil : endpoint
  }

  private static func defaultMethod(_ kind: EndpointKind) -> String {
    kind == .authorization || kind == .identity ? "GET" : "POST"
  }

  mutating func parameters(_ node: Node?, owned: Set<String>) -> [ParameterRule] {
    guard let node, !node.isNull else { return [] }
    guard let entries = node.entries else {
      add(.wrongType(expected: "a mapping"), at: node.place)
      return []
    }
    return entries.compactMap { entry in
      if owned.contains(entry.key) {
        add(.ownedParameter(entry.key), at: entry.keyPlace)
        return nil
      }
      if entry.value.isNull { return ParameterRule(name: entry.key, value: nil) }
      return template(entry.value, names: Self.endpointNames).map { ParameterRule(name: entry.key, value: $0) }
    }
  }

  private mutating func rename(_ node: Node?, owned: Set<String>) -> [String: String] {
    guard let node, !node.isNull else { return [:] }
    guard let entries = node.entries else {
      add(.wrongType(expected: "a mapping"), at: node.place)
      return [:]
    }
    var names: [String: String] = [:]
    for entry in entries {
      names[entry.key] = text(entry.value)
      // To call another parameter by the name of one that the engine owns would set that one.
      if let name = names[entry.key], owned.contains(name), name != entry.key {
        add(.ownedParameter(name), at: entry.value.place)
      }
    }
    return names
  }

  private mutating func tokens(_ node: Node?, _ kind: EndpointKind) -> [ResponseField] {
    let allowed: [ResponseField] = [.accessToken, .refreshToken]
    guard let texts = texts(node) else {
      return kind == .revocation ? [.refreshToken, .accessToken] : [.accessToken]
    }
    return texts.compactMap { text in
      if let field = allowed.first(where: { $0.rawValue == text.value }) { return field }
      unknownValue(text.value, allowed: allowed.map(\.rawValue), at: text.place)
      return nil
    }
  }

  private mutating func followsRefresh(_ node: Node?) -> Bool {
    let allowed = [EndpointKind.token, .refresh].map(\.rawValue)
    let texts = texts(node) ?? []
    for text in texts where !allowed.contains(text.value) {
      unknownValue(text.value, allowed: allowed, at: text.place)
    }
    return texts.contains { $0.value == EndpointKind.refresh.rawValue }
  }

  // MARK: Answers

  static let responseKeys = ["format", "within", "fields", "keep", "errors", "active"]
  static let fieldKeys = ["path", "time"]
  static let errorKeys = ["code", "description", "success", "meanings"]
  static let activeKeys = ["path", "equals"]

  /// The endpoints whose answer is a credential, and to which the descriptor's own `response` applies.
  private static let credentialEndpoints: Set<EndpointKind> = [
    .authorization, .token, .refresh, .clientCredentials, .deviceToken, .tokenExchange,
  ]

  private mutating func response(_ kind: EndpointKind, _ own: Node?, _ root: Node) -> ResponseRules {
    var node = own.flatMap { $0.isNull ? nil : $0 }
    if let general = root["response"], !general.isNull {
      let applies = Node(
        .mapping(general.entries?.filter { Self.isGeneral($0.key, at: kind) } ?? []), at: general.place)
      if general.entries == nil { _ = mapping(general, keys: Self.responseKeys) }
      node = node.map { DescriptorTree.merged($0, over: applies) } ?? applies
    }
    let rules = response(mapping(node, keys: Self.responseKeys), format: format(kind, root))
    return rules
  }

  /// Whether what the descriptor's own `response` says under a key holds for an endpoint.
  private static func isGeneral(_ key: String, at kind: EndpointKind) -> Bool {
    // Parameters of a redirect do not nest, and its errors are those of RFC 6749, 4.1.2.1, whatever a body has.
    if kind == .authorization { return key != "within" && key != "errors" }
    // Errors look the same at every endpoint of a provider; fields and what is kept are a credential's.
    return key == "errors" || credentialEndpoints.contains(kind)
  }

  private mutating func format(_ kind: EndpointKind, _ root: Node) -> ResponseFormat? {
    let general: ResponseFormat? = choice(root["response_format"])
    let isRedirect = general == .fragment || general == .query
    switch kind {
    case .authorization: return isRedirect ? general : nil
    case .token, .refresh, .clientCredentials, .deviceToken, .deviceAuthorization, .tokenExchange:
      return general.flatMap { isRedirect ? nil : $0 } ?? .json
    case .temporaryCredentials: return .form
    case .introspection, .revocation, .identity, .registration: return .json
    }
  }

  private mutating func response(_ node: Node?, format: ResponseFormat?) -> ResponseRules {
    var rules = ResponseRules()
    rules.format = choice(node?["format"]) ?? format
    guard let node else { return rules }
    rules.within = node["within"].flatMap { text($0) }.map { FieldPath($0) }
    let fieldNames = ResponseField.allCases.map(\.rawValue)
    for entry in mapping(node["fields"], keys: fieldNames)?.entries ?? [] {
      guard let field = ResponseField(rawValue: entry.key) else { continue }
      rules.fields[field] = source(entry.value)
    }
    rules.keep = keep(node["keep"])
    rules.errors = errors(node["errors"])
    if let active = node["active"] { rules.active = self.active(active) ?? rules.active }
    return rules
  }

  private mutating func source(_ node: Node) -> FieldSource {
    guard node.entries != nil else {
      return FieldSource(paths: texts(node)?.map { FieldPath($0.value) } ?? [], time: nil)
    }
    let node = mapping(node, keys: Self.fieldKeys) ?? node
    let paths = required("path", in: node).flatMap { texts($0) } ?? []
    return FieldSource(paths: paths.map { FieldPath($0.value) }, time: choice(node["time"]))
  }

  private mutating func keep(_ node: Node?) -> [KeptField] {
    guard let node, !node.isNull else { return [] }
    let fields: [KeptField]
    if let entries = node.entries {
      fields = entries.map { entry in
        KeptField(name: entry.key, paths: texts(entry.value)?.map { FieldPath($0.value) } ?? [])
      }
    } else {
      fields = texts(node)?.map { KeptField(name: $0.value, paths: [FieldPath($0.value)]) } ?? []
    }
    // What is kept goes before what the engine knows; under these names it would take the place of that.
    let taken = Self.engineNames + Self.endpointNames + Self.requestNames
    for field in fields where !Self.isTemplateName(field.name) || taken.contains(field.name) {
      add(.malformedName(field.name), at: node.place)
    }
    return fields
  }

  static func isTemplateName(_ text: String) -> Bool {
    !text.isEmpty && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_-.".contains($0)) }
  }

  private mutating func errors(_ node: Node?) -> ErrorRules {
    var rules = ErrorRules()
    guard let node = mapping(node, keys: Self.errorKeys) else { return rules }
    if let code = texts(node["code"]) { rules.code = code.map { FieldPath($0.value) } }
    if let words = texts(node["description"]) { rules.description = words.map { FieldPath($0.value) } }
    rules.success = texts(node["success"])?.map(\.value) ?? []
    for entry in node["meanings"].flatMap({ mapping($0, keys: $0.entries?.map(\.key) ?? []) })?.entries ?? [] {
      rules.meanings[entry.key] = text(entry.value)
    }
    return rules
  }

  private mutating func active(_ node: Node) -> ActiveRule? {
    if node.entries == nil {
      guard let text = text(node) else { return nil }
      if text == "status" { return .status }
      return .field(FieldPath(text), values: ["true"])
    }
    guard let node = mapping(node, keys: Self.activeKeys),
      let path = required("path", in: node).flatMap({ text($0) })
    else { return nil }
    return .field(FieldPath(path), values: texts(node["equals"])?.map(\.value) ?? ["true"])
  }
}
