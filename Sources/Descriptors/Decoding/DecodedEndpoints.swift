import CredmgrHTTP
import CredmgrText
import CredmgrYAML

extension DescriptorDecoder {
  /// Reads each endpoint merged over its base endpoint and the descriptor's own `response`.
  mutating func endpoints(_ node: Node) -> [EndpointKind: Endpoint]? {
    guard entries(of: node) != nil else { return nil }
    checkNames(of: node)
    var endpoints: [EndpointKind: Endpoint] = [:]
    for kind in EndpointKind.allCases {
      guard let description = description(of: kind, in: node),
        let endpoint = Endpoint.keys(of: kind).read(&self, answering(description, kind)),
        endpoint.url.template.literal != ""
      else { continue }
      endpoints[kind] = endpoint
    }
    return endpoints
  }

  /// The names of endpoints in metadata and in other programs.
  private static let otherNames = [
    "authorize": "authorization", "auth": "authorization", "authorization_endpoint": "authorization",
    "access_token": "token", "token_endpoint": "token", "userinfo": "identity", "user_info": "identity",
    "userinfo_endpoint": "identity", "user": "identity", "profile": "identity", "me": "identity",
    "device": "device_authorization", "device_code": "device_authorization", "revoke": "revocation",
    "introspect": "introspection", "register": "registration", "logout": "end_session", "jwks_uri": "jwks",
    "request_token": "temporary_credentials", "par": "pushed_authorization_request",
  ]

  private mutating func checkNames(of node: Node) {
    let known = EndpointKind.allCases.map(\.rawValue)
    for entry in node.entries?.prefix(Self.entryLimit) ?? [] where !known.contains(entry.key) {
      let meant = Self.otherNames[entry.key] ?? nearMiss(entry.key, among: known)
      add(
        meant == nil
          ? .unknownEndpoint(entry.key, allowed: known) : .unknownKey(entry.key, suggestion: meant), at: entry.keyPlace)
    }
  }

  private func description(of kind: EndpointKind, in node: Node) -> Node? {
    let own = node[kind.rawValue].flatMap { $0.isNull ? nil : $0 }
    guard let base = kind.leg.base, let inherited = node[base.rawValue], inherited.entries != nil else { return own }
    // If no grant uses the endpoint `token` itself, `token` describes the exchange of the endpoint that inherits it,
    // including its parameters.
    let grants = Self.elements(of: root["grant"]).compactMap(\.text)
    let tokenIsUsed = grants.contains { Grant(rawValue: $0)?.traits.endpoints.contains(.token) == true }
    let isTheExchange = !tokenIsUsed && kind != .refresh
    let taken = isTheExchange ? inherited : DescriptorTree.without("parameters", inherited)
    guard let own else { return node[kind.rawValue] == nil ? taken : nil }
    return DescriptorTree.merged(own, over: taken)
  }

  private func answering(_ description: Node, _ kind: EndpointKind) -> Node {
    guard let general = root["response"], let entries = general.entries, description.entries != nil else {
      return description
    }
    let applying = entries.filter { entry in
      // Parameters of a redirect do not nest, and its errors are those of RFC 6749, 4.1.2.1, unlike those of a body.
      if kind == .authorization { return entry.key != "within" && entry.key != "errors" }
      // All endpoints of a provider report errors alike, but `fields` and `keep` belong to a credential.
      return entry.key == "errors" || kind.leg.issuesToken
    }
    let key = Node.Entry(key: "response", keyPlace: general.place, value: Node(.mapping(applying), at: general.place))
    // `null` means that the endpoint has no `response` of its own, but it still inherits.
    let own = description["response"]?.isNull == true ? DescriptorTree.without("response", description) : description
    return DescriptorTree.merged(own, over: Node(.mapping([key]), at: general.place))
  }

  func format(of kind: EndpointKind) -> ResponseFormat? {
    kind.format(among: root["response_format"]?.text.flatMap(ResponseFormat.init(rawValue:)))
  }

  mutating func parameters(_ node: Node, isShown: Bool, names: [String]) -> [ParameterRule]? {
    entries(of: node)?.compactMap { entry in
      if entry.value.isNull { return ParameterRule(name: entry.key, value: nil) }
      return template(entry.value, names: Self.endpointNames + names, isShown: isShown)
        .map { ParameterRule(name: entry.key, value: $0) }
    }
  }

  mutating func keep(_ node: Node) -> [KeptField]? {
    let fields: [KeptField]
    if let entries = node.entries {
      fields = entries.map { entry in
        var field = (entry.value.isNull ? nil : KeptField.keys.read(&self, entry.value)) ?? KeptField()
        field.name = entry.key
        return field
      }
    } else {
      fields = texts(node)?.map { KeptField(name: $0.value, paths: [FieldPath($0.value)]) } ?? []
    }
    // Kept fields take precedence over the engine's values, so they must not have the same names.
    for field in fields where !Self.isTemplateName(field.name) || Self.takenNames.contains(field.name) {
      add(.malformedName(field.name), at: node.place)
    }
    return fields
  }

  static func isTemplateName(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0.isLetterOrDigit || "_-.".utf8.contains($0) }
  }

  // MARK: Variables

  mutating func readVariables(_ node: Node) -> [Variable]? {
    if node.isNull { return nil }
    guard let entries = entries(of: node) else { return nil }
    return entries.map { entry in
      let isTaken = Self.takenNames.contains(entry.key) && entry.key != "redirect_uri"
      if !Self.isTemplateName(entry.key) || isTaken { add(.malformedName(entry.key), at: entry.keyPlace) }
      var variable = (entry.value.isNull ? nil : Variable.keys.read(&self, entry.value)) ?? Variable(name: "")
      variable.name = entry.key
      if let value = variable.defaultValue, let node = entry.value["default"], !variable.accepts(value) {
        add(.invalidDefault(variable: entry.key), at: node.place)
      }
      return variable
    }
  }

  // MARK: Hosts and redirects

  mutating func hosts(_ node: Node, areWhole: Bool) -> [Template]? {
    guard texts(node) != nil else { return nil }
    return Self.elements(of: node).prefix(Self.entryLimit).compactMap { node in
      guard let text = node.text, let template = template(node, isShown: true) else { return nil }
      refuseKeptVariables(template.names)
      // A placeholder at the beginning may stand for a base URL, and one after a colon for a port; their values are
      // checked when they are filled in.
      let isHost = ["sample", "1"].contains { sample in
        var host = (try? template.filled { _ in sample }) ?? ""
        if host.hasPrefix("*.") { host.removeFirst(2) }
        return URLTemplate.isAuthority(host)
      }
      // No value is an address in brackets.
      let isAddress =
        text.hasPrefix("[") && (try? URI(parsing: "https://" + text))?.origin == "https://" + text.lowercased()
      if !isHost, !isAddress { add(.invalidHost(text), at: node.place) }
      if areWhole, text.hasPrefix("*.") { add(.subdomains(text), at: node.place) }
      for (place, names) in template.hostPlaces where place == .subdomains {
        for name in names where kept.contains(where: { $0.name == name }) {
          add(.keptSubdomains(name), at: node.place)
        }
      }
      return template
    }
  }
}

extension EndpointKind {
  func format(among general: ResponseFormat?) -> ResponseFormat? {
    let isRedirect = general == .fragment || general == .query
    if self == .authorization { return isRedirect ? general : nil }
    if self == .temporaryCredentials { return .form }
    return !isRedirect && (leg.issuesToken || !leg.receivers.isEmpty) ? general ?? .json : .json
  }
}
