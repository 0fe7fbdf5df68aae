import CredmgrHTTP
import CredmgrText
import CredmgrYAML

/// Reads a tree into a descriptor and collects all findings, not only the first.
struct DescriptorDecoder {
  private(set) var findings: [Finding] = []
  let root: Node
  private(set) var variables: [Variable] = []
  private(set) var definedNames: Set<String> = []
  private(set) var kept: [KeptName] = []
  /// Sample values of variables, for checking the resulting URLs.
  private(set) var samples: [String: String] = [:]
  var usedNames: Set<String> = []

  static let engineNames = ["client_id", "redirect_uri", "scope"]  // The engine's values for every template.
  /// The engine's additional values for templates sent to the provider's own endpoints.
  static let endpointNames = [
    "client_secret", "access_token", "refresh_token", "token_secret", "code", "state", "user_code",
    "verification_uri", "assertion",
  ]
  static let choosingNames = ["identity"]  // The additional value for `choose`: the identity of the account.
  /// The engine's additional values for headers: parts of the request.
  static let requestNames = [
    "request_method", "request_host", "request_path", "request_query", "request_parameters", "request_body",
  ]
  /// Names that variables and kept fields must not have, because they would replace the engine's values.
  static let assertionNames = ["key_fingerprint"]  // The additional value for `assertion`: the hash of the public key.
  static let takenNames = engineNames + endpointNames + requestNames + assertionNames
  static let ownedHeaders: Set<String> = [
    "host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive",
    "proxy-authorization", "proxy-connection", "expect", "cookie",
  ]

  mutating func add(_ problem: Finding.Problem, at place: Place, severity: Finding.Severity = .error) {
    let finding = Finding(problem, at: place, severity: severity)
    // A part inherited by several endpoints is decoded for each of them, but its faults are reported once.
    if !findings.contains(finding) { findings.append(finding) }
  }

  init(_ root: Node) {
    self.root = root
    variables = root["variables"].flatMap { readVariables($0) } ?? []
    for grant in Self.elements(of: root["grant"]).compactMap({ $0.text.flatMap(Grant.init(rawValue:)) }) {
      let own = grant.traits.variables
      variables += own.filter { variable in !variables.contains { $0.name == variable.name } }
    }
    for variable in variables { samples[variable.name] = variable.sample }
    kept = KeptName.all(in: root)
    definedNames = Set(variables.map(\.name)).union(kept.map(\.name))
  }

  mutating func descriptor() -> Descriptor? {
    var descriptor = Descriptor.keys.read(&self, root)
    // The user name of a pair is its user name for git and docker as well, which also show it.
    if let read = descriptor, let username = read.grants.first.flatMap({ read.headerStyle(of: $0).username }),
      !read.variables.contains(where: { $0.isSecret && username.names.contains($0.name) })
    {
      if root["git"]?["username"] == nil { descriptor?.git?.username = username }
      if root["docker"]?["username"] == nil { descriptor?.docker?.username = username }
    }
    for entry in root["variables"]?.entries?.prefix(Self.entryLimit) ?? []
    where Self.isTemplateName(entry.key) && !usedNames.contains(entry.key) && !isOfLogin(entry.key) {
      warn(.unusedVariable(entry.key), at: entry.keyPlace)
    }
    if let descriptor { checkBounds(descriptor) }
    // An error may be the reason why a key has no effect.
    if let descriptor, !findings.contains(where: { $0.severity == .error }) { checkEffects(descriptor) }
    return descriptor
  }

  /// Whether the login reads a variable, even if no template does.
  private func isOfLogin(_ name: String) -> Bool { variables.contains { $0.name == name && $0.isAtLogin } }

  /// Checks that the endpoints of the grants exist. Faulty endpoints report their own faults.
  mutating func checkEndpoints() {
    guard let endpoints = root["endpoints"], endpoints.entries != nil else { return }
    func isThere(_ kind: EndpointKind) -> Bool { endpoints[kind.rawValue].map { !$0.isNull } ?? false }
    for node in Self.elements(of: root["grant"]) {
      for kind in node.text.flatMap(Grant.init(rawValue:))?.traits.requiredEndpoints ?? [] where !isThere(kind) {
        if let base = kind.leg.base, endpoints[kind.rawValue] == nil, isThere(base) { continue }
        add(.grantWithoutEndpoint(grant: node.text ?? "", endpoint: (kind.leg.base ?? kind).rawValue), at: node.place)
      }
    }
  }

  static func elements(of node: Node?) -> [Node] { node.map { $0.elements ?? [$0] } ?? [] }

  // MARK: Pieces

  mutating func checkKeys(_ node: Node, _ known: [String]) {
    for entry in node.entries?.prefix(Self.entryLimit) ?? [] where !known.contains(entry.key) {
      add(.unknownKey(entry.key, suggestion: nearMiss(entry.key, among: known)), at: entry.keyPlace)
    }
  }

  /// The maximum number of entries, because each template costs time when names are compared and requests computed.
  static let entryLimit = 256

  private mutating func limited<Entry>(_ entries: [Entry], at place: Place) -> [Entry] {
    if entries.count > Self.entryLimit { add(.tooManyEntries(Self.entryLimit), at: place) }
    return Array(entries.prefix(Self.entryLimit))
  }

  mutating func entries(of node: Node) -> [Node.Entry]? {
    if node.entries == nil { add(.wrongType(expected: "a mapping such as { key: value }"), at: node.place) }
    return node.entries.map { limited($0, at: node.place) }
  }

  mutating func text(_ node: Node) -> String? {
    // A key with the value null counts as missing.
    if node.text == nil, !node.isNull { add(.wrongType(expected: "a string"), at: node.place) }
    return node.text
  }

  mutating func texts(_ node: Node) -> [(value: String, place: Place)]? {
    if let elements = node.elements {
      return limited(elements, at: node.place).compactMap { element in
        if element.isNull { add(.wrongType(expected: "a string"), at: element.place) }
        return text(element).map { ($0, element.place) }
      }
    }
    return text(node).map { [($0, node.place)] }
  }

  /// Reads a template; `isShown` means that its value is visible outside the provider's own endpoints.
  mutating func template(_ node: Node, names: [String] = [], isShown: Bool = false) -> Template? {
    guard let text = text(node) else { return nil }
    do {
      let template = try Template(parsing: text)
      usedNames.formUnion(template.names)
      if isShown { refuseSecrets(template.names, at: node.place) }
      for name in template.names
      where !definedNames.contains(name) && !Self.engineNames.contains(name) && !names.contains(name) {
        if isShown, Self.secretNames.contains(name) { continue }
        let known = definedNames.sorted() + Self.engineNames + names
        add(.unknownTemplateName(name, suggestion: nearMiss(name, among: known)), at: node.place)
      }
      let lengths = { (name: String) in samples[name]?.utf8.count ?? 0 }
      if template.longestValue(lengths) > Template.longest {
        add(.template(.tooLong(Template.longest)), at: node.place)
      }
      return template
    } catch {
      add(.template(error), at: node.place)
      return nil
    }
  }

  /// Reads a URL and checks that filling it with the variables' defaults or harmless values results in a URL.
  mutating func url(_ node: Node, names: [String], anyScheme: Bool = false, isShown: Bool = false) -> URLTemplate? {
    guard let template = template(node, names: names, isShown: isShown) else { return nil }
    let url = URLTemplate(template)
    refuseKeptVariables(template.names)
    // Looking up a host reveals it to others, and adding a provider shows it.
    if !isShown { refuseSecrets(url.hostPlaces.flatMap(\.names), at: node.place) }
    do {
      // A placeholder may also stand for a port.
      let atPort = try? filled(url, with: "1", anyScheme: anyScheme)
      if atPort == nil { _ = try filled(url, anyScheme: anyScheme) }
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

  func filled(
    _ url: URLTemplate, with sample: String = "sample", anyScheme: Bool = false
  ) throws(URLTemplateError) -> URI {
    // A placeholder at the beginning stands for a base URL, which any of its names may supply.
    var first: [String] = []
    if case .place(let terms)? = url.template.parts.first { first = terms.flatMap(\.names) }
    let fill = { (name: String) -> String? in
      samples[name] ?? (first.contains(name) ? "https://sample.example" : sample)
    }
    let calculate: Template.Calculator = { _, _ in Array(sample.utf8) }
    return anyScheme ? try url.anyScheme(fill, calculate: calculate) : try url.filled(fill, calculate: calculate)
  }

  static func isHeader(_ name: String) -> Bool {
    HTTPFields.isValid(name: name) && !ownedHeaders.contains(name.lowercased())
  }

  mutating func headers(_ node: Node, names: [String], isShown: Bool) -> [HeaderTemplate]? {
    entries(of: node)?.compactMap { entry in
      guard Self.isHeader(entry.key) else {
        add(.forbiddenHeader(entry.key), at: entry.keyPlace)
        return nil
      }
      guard !entry.value.isNull, let value = template(entry.value, names: names, isShown: isShown) else {
        return nil
      }
      for case .literal(let text) in value.parts where !HTTPFields.isValid(value: text) {
        add(.forbiddenHeader(entry.key), at: entry.value.place)
        return nil
      }
      return HeaderTemplate(name: entry.key, value: value)
    }
  }
}
