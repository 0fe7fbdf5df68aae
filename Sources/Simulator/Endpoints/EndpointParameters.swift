import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON

/// The parameters of a request to an endpoint, each read under the name and in the place that the descriptor declares.
struct EndpointParameters {
  let request: HTTPRequest
  let kind: EndpointKind
  let endpoint: Endpoint
  private let inURL: FormParameters  // From the query of the descriptor's URL.
  private let query: FormParameters  // The rest of the query.
  private var body: FormParameters = []

  init(_ request: HTTPRequest, _ kind: EndpointKind, of endpoint: Endpoint) throws(Refusal) {
    self.request = request
    self.kind = kind
    self.endpoint = endpoint
    let template = endpoint.url.template.text
    let mark = template.firstIndex(of: "?") ?? template.endIndex
    let fixed = FormParameters(decoding: String(template[mark...].dropFirst().prefix { $0 != "#" })).names
    let pairs = request.uri.queryParameters.pairs
    inURL = FormParameters(pairs.filter { fixed.contains($0.name) })
    query = FormParameters(pairs.filter { !fixed.contains($0.name) })
    if request.body.isEmpty { return }
    guard endpoint.send == .form || endpoint.send == .json else { throw .unwantedBody }
    let expected = endpoint.send == .form ? MediaType.form : MediaType.json
    guard request.fields.mediaType == expected else { throw .wrongMediaType(expected: expected) }
    guard let parameters = Self.read(request.body, expected) else { throw .malformedBody }
    body = parameters
  }

  private static func read(_ bytes: [UInt8], _ mediaType: String) -> FormParameters? {
    if mediaType == MediaType.form {
      return String(validating: bytes, as: UTF8.self).map { FormParameters(decoding: $0) }
    }
    return (try? JSONValue.parse(bytes))?.members.map { members in
      FormParameters(members.map { .init(name: $0.name, value: $0.value.scalarText ?? $0.value.encoded) })
    }
  }

  /// Returns the members of a JSON body or the parameters of a form.
  static func body(of request: HTTPRequest) -> FormParameters {
    request.fields.mediaType.flatMap { read(request.body, $0) } ?? []
  }

  /// Returns all parameters of a request, from any place, to choose the endpoint.
  static func everything(in request: HTTPRequest) -> FormParameters {
    var all = request.uri.queryParameters
    all.append(contentsOf: read(request.body, MediaType.json) ?? read(request.body, MediaType.form) ?? [])
    all.append(contentsOf: OAuth1Parameters.header(of: request) ?? [])
    return all
  }

  /// The names of all parameters, except those of the descriptor's URL.
  var names: [String] { query.names + body.names }

  /// Returns the descriptor's name for a parameter that the RFC calls `name`.
  func wireName(_ name: String) -> String { endpoint.rename[name] ?? name }

  /// Returns the value of a parameter that the RFC calls `name`; `nil` if absent or empty (RFC 6749, 3.1). Throws if it
  /// is repeated, in another place, or under its standard name although the descriptor renames it.
  func optional(_ name: String) throws(Refusal) -> String? {
    let wire = wireName(name)
    let isInQuery = endpoint.send == .query || endpoint.inQuery.contains { wireName($0) == wire }
    let (right, wrong) = isInQuery ? (query, body) : (body, query)
    let values = right.values(of: wire) + (isInQuery ? inURL.values(of: wire) : [])
    if values.count > 1 { throw .repeated(wire) }
    if wrong.contains(wire) { throw .misplaced(wire, expected: isInQuery ? .query : endpoint.send) }
    if wire != name, query.contains(name) || body.contains(name), !endpoint.rename.values.contains(name) {
      throw .renamed(name, to: wire)
    }
    return (values.first ?? inURL[first: wire]).flatMap { $0.isEmpty ? nil : $0 }
  }

  /// As `optional`. If the descriptor drops the parameter, looks for its `values` (names in templates) in other
  /// parameters.
  func optional(
    _ name: String, carrying values: [String], _ knowledge: (String) -> Knowledge
  ) throws(Refusal) -> String? {
    if let text = try optional(name) { return text }
    guard isDropped(name) else { return nil }
    for rule in endpoint.parameters {
      guard let template = rule.value, let value = values.first(where: template.names.contains),
        let text = try optional(rule.name)
      else { continue }
      if let captured = TemplatePattern(template, knowledge).captures(in: text)?[value] { return captured }
    }
    return nil
  }

  /// As `optional`, but throws if the parameter is missing, unless the descriptor drops it.
  func required(_ name: String) throws(Refusal) -> String? { isDropped(name) ? try optional(name) : try needed(name) }

  /// As `required`, but also throws if the descriptor drops the parameter.
  func needed(_ name: String) throws(Refusal) -> String {
    guard let value = try optional(name) else { throw .missing(wireName(name)) }
    return value
  }

  func isDropped(_ name: String) -> Bool {
    endpoint.parameters.contains { $0.value == nil && wireName($0.name) == wireName(name) }
  }

  func isSet(_ name: String) -> Bool {
    endpoint.parameters.contains { $0.value != nil && wireName($0.name) == wireName(name) }
  }

  func checkRules(_ knowledge: (String) -> Knowledge) throws(Refusal) {
    for rule in endpoint.parameters {
      let wire = wireName(rule.name)
      guard let template = rule.value else {
        if query.contains(wire) || body.contains(wire) { throw .unwanted(wire) }
        continue
      }
      let value = try optional(rule.name)
      let isJSON = endpoint.send == .json && endpoint.verbatim.contains(rule.name)
      if value == nil ? template.literal == "" : isJSON { continue }
      try TemplatePattern(template, knowledge).check(value, wire)
    }
  }

  func checkRulesAndHeaders(_ knowledge: (String) -> Knowledge) throws(Refusal) {
    try checkRules(knowledge)
    try request.check(endpoint.headers, knowledge)
  }
}

extension HTTPRequest {
  func check(_ headers: [HeaderTemplate], _ knowledge: (String) -> Knowledge) throws(Refusal) {
    for header in headers {
      let values = fields.values(header.name)
      if values.count > 1 { throw .wrongValue(header.name, kind: Refusal.header) }
      try TemplatePattern(header.value, knowledge).check(values.first, header.name, kind: Refusal.header)
    }
  }
}
