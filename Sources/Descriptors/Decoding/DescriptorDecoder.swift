import HTTP
import Text
import YAML

/// Reads a tree into a descriptor and collects every finding on the way, not only the first.
struct DescriptorDecoder {
  private(set) var findings: [Finding] = []
  let root: Node
  private(set) var variables: [Variable] = []
  private(set) var definedNames: Set<String> = []
  private(set) var kept: [KeptName] = []
  /// Values that a variable may have, to see what would become of a URL.
  private(set) var samples: [String: String] = [:]
  private var usedNames: Set<String> = []

  static let engineNames = ["client_id", "redirect_uri", "scope"]  // What the engine knows in every template.
  /// What the engine knows besides in what is sent to the provider's own endpoints.
  static let endpointNames = [
    "client_secret", "access_token", "refresh_token", "token_secret", "code", "state", "user_code",
    "verification_uri", "assertion",
  ]
  /// What the engine knows besides in headers: the request that they are for.
  static let requestNames = ["request_method", "request_host", "request_path", "request_query", "request_body"]
  /// What neither a variable nor a kept field may be called: it would take the place of what the engine knows.
  static let takenNames = engineNames + endpointNames + requestNames
  static let ownedHeaders: Set<String> = [
    "host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive",
    "proxy-authorization", "proxy-connection", "expect", "cookie",
  ]

  mutating func add(_ problem: Finding.Problem, at place: Place, severity: Finding.Severity = .error) {
    let finding = Finding(problem, at: place, severity: severity)
    // A part that several endpoints take over is decoded once for each; its faults are told once.
    if !findings.contains(finding) { findings.append(finding) }
  }

  init(_ root: Node) {
    self.root = root
    variables = root["variables"].flatMap { readVariables($0) } ?? []
    for variable in variables { samples[variable.name] = variable.sample }
    kept = KeptName.all(in: root)
    definedNames = Set(variables.map(\.name)).union(kept.map(\.name))
  }

  mutating func descriptor() -> Descriptor? {
    let descriptor = Descriptor.keys.read(&self, root)
    for entry in root["variables"]?.entries?.prefix(Self.entryLimit) ?? []
    where Self.isTemplateName(entry.key) && !usedNames.contains(entry.key) {
      add(.unusedVariable(entry.key), at: entry.keyPlace, severity: .warning)
    }
    if let descriptor { checkBounds(descriptor) }
    // A mistake may be why something has no effect.
    if let descriptor, !findings.contains(where: { $0.severity == .error }) { checkEffects(descriptor) }
    return descriptor
  }

  /// Looks for the endpoints that the grants need. One that is there and faulty is told by its own faults.
  mutating func checkEndpoints() {
    guard let endpoints = root["endpoints"], endpoints.entries != nil else { return }
    func isThere(_ kind: EndpointKind) -> Bool { endpoints[kind.rawValue].map { !$0.isNull } ?? false }
    for node in Self.elements(of: root["grant"]) {
      for kind in node.text.flatMap(Grant.init(rawValue:))?.traits.requiredEndpoints ?? [] where !isThere(kind) {
        if let base = kind.base, endpoints[kind.rawValue] == nil, isThere(base) { continue }
        add(.grantWithoutEndpoint(grant: node.text ?? "", endpoint: (kind.base ?? kind).rawValue), at: node.place)
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

  /// Templates are compared with names and computed for a request, so that a file may not have any number of them.
  static let entryLimit = 256

  private mutating func limited<Entry>(_ entries: [Entry], at place: Place) -> [Entry] {
    if entries.count > Self.entryLimit { add(.tooManyEntries(Self.entryLimit), at: place) }
    return Array(entries.prefix(Self.entryLimit))
  }

  mutating func entries(of node: Node) -> [Node.Entry]? {
    if node.entries == nil { add(.wrongType(expected: "a mapping"), at: node.place) }
    return node.entries.map { limited($0, at: node.place) }
  }

  mutating func text(_ node: Node) -> String? {
    // A key that is null is a key that is not there.
    if node.text == nil, !node.isNull { add(.wrongType(expected: "a text"), at: node.place) }
    return node.text
  }

  mutating func texts(_ node: Node) -> [(value: String, place: Place)]? {
    if let elements = node.elements {
      return limited(elements, at: node.place).compactMap { element in
        if element.isNull { add(.wrongType(expected: "a text"), at: element.place) }
        return text(element).map { ($0, element.place) }
      }
    }
    return text(node).map { [($0, node.place)] }
  }

  /// `isShown`: what comes of it is seen by others than the provider's own endpoints.
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

  /// Its places are filled with the variables' defaults, or with harmless values, to see whether a URL can come of it.
  mutating func url(_ node: Node, names: [String], anyScheme: Bool = false, isShown: Bool = false) -> URLTemplate? {
    guard let template = template(node, names: names, isShown: isShown) else { return nil }
    let url = URLTemplate(template)
    refuseKeptVariables(template.names)
    // A host is looked up where others see it, and told when a provider is added.
    if !isShown { refuseSecrets(url.hostPlaces.flatMap(\.names), at: node.place) }
    do {
      // A place may also stand for a port.
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
    // A place at the very beginning stands for a whole base URL; any of its names is good enough for that.
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
