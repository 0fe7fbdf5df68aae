import HTTP
import Text
import YAML

/// Reads a tree into a descriptor and collects every finding on the way, not only the first.
struct DescriptorDecoder {
  var findings: [Finding] = []
  /// The names that templates of this descriptor may use.
  private(set) var definedNames: Set<String> = []
  /// Values that a variable may have, to see what would become of a URL.
  private var samples: [String: String] = [:]
  private var usedNames: Set<String> = []

  /// What the engine knows in every template.
  static let engineNames = ["client_id", "redirect_uri", "scope"]
  /// What the engine knows besides in what is sent to the provider's own endpoints.
  static let endpointNames = [
    "client_secret", "access_token", "refresh_token", "token_secret", "code", "state", "user_code",
    "verification_uri", "assertion",
  ]
  /// What the engine knows besides in headers: the request that they are for.
  static let requestNames = [
    "request_method", "request_host", "request_path", "request_query", "request_body",
  ]
  /// Parameters that protect a flow: a descriptor may rename them, never set them.
  static let ownedParameters: Set<String> = [
    "state", "code_challenge", "code_challenge_method", "code_verifier", "nonce", "oauth_signature",
    "oauth_nonce",
    "oauth_timestamp", "oauth_signature_method", "oauth_consumer_key", "oauth_token", "oauth_callback",
    "oauth_verifier",
  ]
  /// Those that protect something at an endpoint. A `state` or a `nonce` that is sent again with a code is like any other
  /// parameter, and so is the consumer key in the address of a page, which nobody signs.
  static func ownedParameters(at kind: EndpointKind) -> Set<String> {
    kind == .authorization
      ? ownedParameters.subtracting(["oauth_consumer_key"]) : ownedParameters.subtracting(["state", "nonce"])
  }
  /// Headers that belong to the HTTP client, or decide where a message ends.
  static let ownedHeaders: Set<String> = [
    "host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive",
    "proxy-authorization", "proxy-connection", "expect", "cookie",
  ]

  static let topKeys = [
    "provider", "title", "extends", "grant", "variables", "endpoints", "response_format", "response",
    "header_style", "extra_headers", "scope", "redirect", "state", "pkce", "nonce", "issuer", "iss", "client",
    "assertion",
    "expiry", "device", "oauth1", "account", "hosts", "git", "docker",
  ]

  mutating func add(_ problem: Finding.Problem, at place: Place, severity: Finding.Severity = .error) {
    let finding = Finding(problem, at: place, severity: severity)
    // A part that several endpoints take over is decoded once for each; its faults are told once.
    if !findings.contains(finding) { findings.append(finding) }
  }

  /// Reads the whole tree; `nil` when what is missing leaves nothing to work with.
  mutating func descriptor(_ root: Node) -> Descriptor? {
    guard root.entries != nil else {
      add(.wrongType(expected: "a mapping"), at: root.place)
      return nil
    }
    checkKeys(root, Self.topKeys)
    let identifier = required("provider", in: root).flatMap { text($0) } ?? ""
    if let node = root["provider"], !identifier.isEmpty, !Self.isIdentifier(identifier) {
      add(.malformedName(identifier), at: node.place)
    }
    let variables = self.variables(root["variables"])
    definedNames = Set(variables.map(\.name))
    for variable in variables { samples[variable.name] = variable.sample }
    collectKeptNames(root)
    let grants = self.grants(root)
    let endpoints = self.endpoints(root)
    if let described = root["endpoints"], described.entries != nil {
      for grant in grants { checkEndpoints(of: grant.value, at: grant.place, described) }
    }
    let descriptor = Descriptor(
      identifier: identifier,
      title: root["title"].flatMap { shownText($0) } ?? identifier,
      grants: grants.map(\.value),
      variables: variables,
      endpoints: endpoints,
      headerStyle: headerStyle(root["header_style"], signed: grants.first?.value == .oauth1),
      extraHeaders: headers(root["extra_headers"], names: Self.endpointNames + Self.requestNames),
      scope: scope(root["scope"]),
      redirect: redirect(root["redirect"]),
      state: choice(root["state"]) ?? .required,
      pkce: choice(root["pkce"]) ?? .s256,
      issuer: template(root["issuer"]),
      issuerResponse: choice(root["iss"]) ?? .optional,
      sendsNonce: boolean(root["nonce"]) ?? false,
      client: client(root["client"]),
      expiry: expiry(root["expiry"]),
      assertion: assertion(root["assertion"]),
      device: device(root["device"]),
      oauth1: oauth1(root["oauth1"]),
      account: texts(root["account"])?.map { FieldPath($0.value) } ?? [],
      hosts: hosts(root["hosts"]) ?? [],
      git: git(root["git"]),
      docker: docker(root["docker"]))
    warnOfUnused(root["variables"])
    return descriptor
  }

  /// Looks for the endpoints that a grant needs. One that is there and faulty is told by its own faults.
  private mutating func checkEndpoints(of grant: Grant, at place: Place, _ described: Node) {
    func isThere(_ kind: EndpointKind) -> Bool { described[kind.rawValue].map { !$0.isNull } ?? false }
    for kind in grant.requiredEndpoints where !isThere(kind) {
      if let base = kind.base, described[kind.rawValue] == nil, isThere(base) { continue }
      let shown = kind.base ?? kind
      add(.grantWithoutEndpoint(grant: grant.rawValue, endpoint: shown.rawValue), at: place)
    }
  }

  /// Whether a text can be the identifier of a provider, a file name and an argument at once.
  static func isIdentifier(_ text: String) -> Bool {
    guard let first = text.utf8.first, first != UInt8(ascii: "-"), first != UInt8(ascii: ".") else {
      return false
    }
    return text.utf8.count <= 64
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."): true
        default: false
        }
      }
  }

  // MARK: Pieces

  mutating func checkKeys(_ node: Node, _ known: [String]) {
    for entry in node.entries ?? [] where !known.contains(entry.key) {
      add(.unknownKey(entry.key, suggestion: nearMiss(entry.key, among: known)), at: entry.keyPlace)
    }
  }

  mutating func required(_ key: String, in node: Node) -> Node? {
    if let value = node[key], !value.isNull { return value }
    add(.missingKey(key), at: node.place)
    return nil
  }

  mutating func mapping(_ node: Node?, keys: [String]) -> Node? {
    guard let node, !node.isNull else { return nil }
    guard node.entries != nil else {
      add(.wrongType(expected: "a mapping"), at: node.place)
      return nil
    }
    checkKeys(node, keys)
    return node
  }

  mutating func text(_ node: Node) -> String? {
    // A key that is null is a key that is not there.
    if node.text == nil, !node.isNull { add(.wrongType(expected: "a text"), at: node.place) }
    return node.text
  }

  /// A text for people. It comes from a file that strangers send each other, and is shown on terminals.
  mutating func shownText(_ node: Node) -> String? {
    let text = text(node)
    if let text, text.unicodeScalars.contains(where: \.actsOnTerminals) { add(.controlCharacter, at: node.place) }
    return text
  }

  mutating func texts(_ node: Node?) -> [(value: String, place: Place)]? {
    guard let node, !node.isNull else { return nil }
    if let elements = node.elements {
      return elements.compactMap { element in
        if element.isNull { add(.wrongType(expected: "a text"), at: element.place) }
        return text(element).map { ($0, element.place) }
      }
    }
    return text(node).map { [($0, node.place)] }
  }

  mutating func boolean(_ node: Node?) -> Bool? {
    guard let node, !node.isNull else { return nil }
    if let value = node.boolean { return value }
    add(.wrongType(expected: "true or false"), at: node.place)
    return nil
  }

  mutating func choice<Choice: RawRepresentable & CaseIterable>(_ node: Node?) -> Choice?
  where Choice.RawValue == String {
    guard let node, !node.isNull, let text = text(node) else { return nil }
    if let choice = Choice(rawValue: text) { return choice }
    unknownValue(text, allowed: Choice.allCases.map(\.rawValue), at: node.place)
    return nil
  }

  mutating func unknownValue(_ text: String, allowed: [String], at place: Place) {
    add(.unknownValue(text, allowed: allowed, suggestion: nearMiss(text, among: allowed)), at: place)
  }

  mutating func duration(_ node: Node?) -> Int64? {
    guard let node, !node.isNull, let text = text(node) else { return nil }
    if let seconds = seconds(ofDuration: text) { return seconds }
    add(.invalidDuration(text), at: node.place)
    return nil
  }

  mutating func template(_ node: Node?, names: [String] = []) -> Template? {
    guard let node, !node.isNull, let text = text(node) else { return nil }
    do {
      let template = try Template(parsing: text)
      usedNames.formUnion(template.names)
      for name in template.names
      where !definedNames.contains(name) && !Self.engineNames.contains(name) && !names.contains(name) {
        let known = definedNames.sorted() + Self.engineNames + names
        add(.unknownTemplateName(name, suggestion: nearMiss(name, among: known)), at: node.place)
      }
      return template
    } catch {
      add(.template(error), at: node.place)
      return nil
    }
  }

  /// A URL template. Its places are filled with the variables' defaults, or with harmless values, to see whether a URL can
  /// come of it at all.
  mutating func url(
    _ node: Node, names: [String], owned: Set<String> = [], anyScheme: Bool = false
  ) -> URLTemplate? {
    guard let template = template(node, names: names) else { return nil }
    let url = URLTemplate(template)
    do {
      let uri = try sample(url, anyScheme)
      for name in uri.queryParameters.pairs.map(\.name) where owned.contains(name) {
        add(.ownedParameter(name), at: node.place)
      }
      return url
    } catch {
      switch error {
      case .insecure(let text): add(.insecureURL(text), at: node.place)
      case .url, .authority, .path, .base: add(.invalidURL(text(node) ?? ""), at: node.place)
      case .template(let error): add(.template(error), at: node.place)
      }
      return nil
    }
  }

  private func sample(_ url: URLTemplate, _ anyScheme: Bool) throws(URLTemplateError) -> URI {
    do {
      return try filled(url, "sample", anyScheme)
    } catch {
      // A place may also stand for a port.
      if let uri = try? filled(url, "1", anyScheme) { return uri }
      throw error
    }
  }

  private func filled(
    _ url: URLTemplate, _ sample: String, _ anyScheme: Bool
  ) throws(URLTemplateError) -> URI {
    var standard = sample
    if case .place? = url.template.parts.first { standard = "https://sample.example" }
    let fill = { (name: String) -> String? in
      defer { standard = sample }
      return samples[name] ?? standard
    }
    let calculate: Template.Calculator = { _, _ in Array(sample.utf8) }
    return anyScheme ? try url.anyScheme(fill, calculate: calculate) : try url.filled(fill, calculate: calculate)
  }

  mutating func headers(_ node: Node?, names: [String] = []) -> [HeaderTemplate] {
    guard let node, !node.isNull else { return [] }
    guard let entries = node.entries else {
      add(.wrongType(expected: "a mapping"), at: node.place)
      return []
    }
    return entries.compactMap { entry in
      guard HTTPFields.isValid(name: entry.key), !Self.ownedHeaders.contains(entry.key.lowercased()) else {
        add(.forbiddenHeader(entry.key), at: entry.keyPlace)
        return nil
      }
      guard let value = template(entry.value, names: names) else { return nil }
      for case .literal(let text) in value.parts where !HTTPFields.isValid(value: text) {
        add(.forbiddenHeader(entry.key), at: entry.value.place)
        return nil
      }
      return HeaderTemplate(name: entry.key, value: value)
    }
  }

  private mutating func warnOfUnused(_ node: Node?) {
    for entry in node?.entries?.prefix(Self.variableLimit) ?? []
    where Self.isTemplateName(entry.key) && !usedNames.contains(entry.key) {
      add(.unusedVariable(entry.key), at: entry.keyPlace, severity: .warning)
    }
  }

  /// The names under which answers keep something are names for templates, wherever they are declared.
  private mutating func collectKeptNames(_ root: Node) {
    var responses = [root["response"]]
    responses += root["endpoints"]?.entries?.map { $0.value["response"] } ?? []
    for case let keep? in responses.map({ $0?["keep"] }) {
      definedNames.formUnion(keep.entries?.map(\.key) ?? [])
      definedNames.formUnion(keep.elements?.compactMap(\.text) ?? [])
    }
  }
}
