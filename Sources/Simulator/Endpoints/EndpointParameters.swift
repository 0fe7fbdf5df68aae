import HTTP
import JSON
import Descriptors

/// The parameters of a request to an endpoint, each looked for under its name and in its place as the descriptor
/// declares them.
struct EndpointParameters {
  private let endpoint: Endpoint
  /// What the URL of the descriptor itself carries in its query.
  private let inURL: FormParameters
  /// The rest of the query.
  private let query: FormParameters
  private let body: FormParameters

  /// - Throws: `Refusal` for a body that is not in the declared form.
  init(_ request: HTTPRequest, _ endpoint: Endpoint) throws(Refusal) {
    self.endpoint = endpoint
    let fixed = Self.queryNames(endpoint.url.template)
    let pairs = request.uri.queryParameters.pairs
    inURL = FormParameters(pairs.filter { fixed.contains($0.name) })
    query = FormParameters(pairs.filter { !fixed.contains($0.name) })
    body = try Self.body(of: request, endpoint.send)
  }

  private static func queryNames(_ template: Template) -> Set<String> {
    guard let mark = template.text.firstIndex(of: "?") else { return [] }
    let query = template.text[template.text.index(after: mark)...].prefix { $0 != "#" }
    return Set(
      query.split(separator: "&").compactMap {
        PercentEncoding.decode($0.prefix { $0 != "=" }, plusAsSpace: true)
      })
  }

  private static func body(
    of request: HTTPRequest, _ placement: ParameterPlacement
  ) throws(Refusal) -> FormParameters {
    guard !request.body.isEmpty else { return [] }
    let mediaType = HTTPResponse(status: 0, fields: request.fields).mediaType
    switch placement {
    case .query, .fragment: throw .request(.unwantedBody)
    case .form:
      guard mediaType == MediaTypes.form else { throw .request(.wrongMediaType(expected: MediaTypes.form)) }
      guard let text = String(validating: request.body, as: UTF8.self) else { throw .request(.malformedBody) }
      return FormParameters(decoding: text)
    case .json:
      guard mediaType == MediaTypes.json else { throw .request(.wrongMediaType(expected: MediaTypes.json)) }
      guard let parameters = jsonParameters(request.body) else { throw .request(.malformedBody) }
      return parameters
    }
  }

  private static func jsonParameters(_ bytes: [UInt8]) -> FormParameters? {
    guard let members = (try? JSONValue.parse(bytes))?.members else { return nil }
    return FormParameters(
      members.map { .init(name: $0.name, value: $0.value.scalarText ?? $0.value.encoded) })
  }

  /// Every parameter of a request, wherever it stands and whatever it is; for finding out which endpoint is meant.
  static func everything(in request: HTTPRequest) -> FormParameters {
    var all = request.uri.queryParameters
    if let members = jsonParameters(request.body) {
      all.append(contentsOf: members)
    } else {
      all.append(contentsOf: FormParameters(decoding: String(decoding: request.body, as: UTF8.self)))
    }
    return all
  }

  /// The name on the wire of a parameter that the RFC calls `name`.
  func wireName(_ name: String) -> String { endpoint.rename[name] ?? name }

  /// Where a parameter has to stand.
  private func placement(of name: String) -> ParameterPlacement {
    let wire = wireName(name)
    let isInQuery = endpoint.inQuery.contains { wireName($0) == wire }
    return isInQuery ? .query : endpoint.send
  }

  /// The value of a parameter that the RFC calls `name`; `nil` when it is absent or empty (RFC 6749, 3.1).
  ///
  /// - Throws: `Refusal` when it stands twice, in another place, or under its standard name although it has another.
  func optional(_ name: String) throws(Refusal) -> String? {
    let wire = wireName(name)
    let placement = placement(of: name)
    let (right, wrong) = placement == .query ? (query, body) : (body, query)
    let values = right.values(of: wire) + (placement == .query ? inURL.values(of: wire) : [])
    if values.count > 1 { throw .request(.repeated(wire)) }
    if wrong.contains(wire) { throw .request(.misplaced(wire, expected: placement)) }
    if wire != name, query.contains(name) || body.contains(name), !endpoint.rename.values.contains(name) {
      throw .request(.renamed(name, to: wire))
    }
    return (values.first ?? inURL[first: wire]).flatMap { $0.isEmpty ? nil : $0 }
  }

  /// What the descriptor sends in a parameter of its own name, in the place of `name` which it drops.
  ///
  /// - Parameter value: the name in the template.
  /// - Throws: `Refusal` for a parameter that is not as the descriptor says.
  func carried(_ value: String, _ knowledge: (String) -> Knowledge) throws(Refusal) -> String? {
    for rule in endpoint.parameters {
      guard let template = rule.value, template.names.contains(value), let text = try optional(rule.name) else {
        continue
      }
      if let captured = TemplatePattern(template, knowledge).captures(in: text)?[value] { return captured }
    }
    return nil
  }

  /// As `optional`, for a parameter that has to be there unless the descriptor drops it.
  ///
  /// - Throws: `Refusal`, also when it is absent.
  func required(_ name: String) throws(Refusal) -> String? {
    let value = try optional(name)
    if value == nil, !isDropped(name) { throw .request(.missing(wireName(name))) }
    return value
  }

  /// As `required`, for a parameter without which there is no going on.
  ///
  /// - Throws: `Refusal`, also when it is absent.
  func needed(_ name: String) throws(Refusal) -> String {
    guard let value = try optional(name) else { throw .request(.missing(wireName(name))) }
    return value
  }

  /// Whether the descriptor takes a parameter out.
  func isDropped(_ name: String) -> Bool {
    endpoint.parameters.contains { rule in
      rule.value == nil && (rule.name == name || wireName(rule.name) == wireName(name))
    }
  }

  /// Whether the descriptor says itself what a parameter is.
  func isSet(_ name: String) -> Bool {
    endpoint.parameters.contains { $0.value != nil && wireName($0.name) == wireName(name) }
  }

  /// Checks what the descriptor adds, drops and sets.
  ///
  /// - Throws: `Refusal` at the first parameter that is not as the descriptor says.
  func checkRules(_ knowledge: (String) -> Knowledge) throws(Refusal) {
    for rule in endpoint.parameters {
      let wire = wireName(rule.name)
      guard let template = rule.value else {
        if query.contains(wire) || body.contains(wire) { throw .request(.unwanted(wire)) }
        continue
      }
      let pattern = TemplatePattern(template, knowledge)
      let isJSON = endpoint.send == .json && endpoint.verbatim.contains(rule.name)
      guard let value = try optional(rule.name) else {
        if pattern.isOptional || template.literal == "" { continue }
        throw .request(.missing(wire))
      }
      guard isJSON || pattern.matches(value) else { throw .request(.wrongValue(wire)) }
    }
  }
}

/// The media types that are spoken here.
enum MediaTypes {
  static let form = "application/x-www-form-urlencoded"
  static let json = "application/json"
}

extension JSONValue {
  /// A text, a number or a truth value as text.
  var scalarText: String? {
    switch self {
    case .string(let text), .number(let text): text
    case .boolean(let value): value ? "true" : "false"
    case .null, .array, .object: nil
    }
  }

  /// What a text of a descriptor looks like in JSON: `true` and `7` are not written as strings.
  init(scalar text: String) {
    switch text {
    case "true": self = .boolean(true)
    case "false": self = .boolean(false)
    default: self = Int64(text).map { $0.description == text } == true ? .number(text) : .string(text)
    }
  }
}
