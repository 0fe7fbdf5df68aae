import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

/// Builds an answer with values at the paths that the descriptor names.
struct AnswerContent {
  let rules: ResponseRules
  var status = 200
  private var root = JSONValue.object([])
  /// The answer as a form, which is also the query or fragment of a redirect.
  private(set) var parameters = FormParameters()
  private var headers = HTTPFields()

  init(_ rules: ResponseRules) { self.rules = rules }

  mutating func set(_ field: ResponseField, _ value: JSONValue) {
    guard let path = rules.source(of: field).paths.first else { return }
    set(path, value, within: rules.within)
  }

  /// Sets a duration, or a time since 1970, in the descriptor's unit.
  mutating func set(_ field: ResponseField, time: Duration) {
    set(field, .integer(time.wholeSeconds * (rules.source(of: field).time == .milliseconds ? 1000 : 1)))
  }

  mutating func set(kept: [String: String], _ fields: [KeptField]) {
    for field in fields {
      guard let path = field.paths.first, let value = kept[field.name] else { continue }
      set(path, .string((field.after ?? "") + value + (field.before ?? "")), within: rules.within)
    }
  }

  /// Sets the value that means success, if the descriptor has one.
  mutating func setSuccess() {
    if let path = rules.errors.outcome, let value = rules.errors.success.first { set(path, JSONValue(scalar: value)) }
  }

  mutating func setError(_ refusal: Refusal) {
    let errors = rules.errors
    let word = errors.meanings.filter { $0.value == refusal.code }.keys.min() ?? refusal.code
    // The status alone is the code.
    if word.hasPrefix("http_"), let number = Int(word.dropFirst("http_".count)) {
      status = number
      return
    }
    if let path = errors.outcome { set(path, .string(word)) }
    if let path = errors.description.first, path != errors.outcome { set(path, .string(refusal.sentence)) }
  }

  /// Sets a value at a path from the root of the answer, or from the object `within` it.
  mutating func set(_ path: FieldPath, _ value: JSONValue, within: FieldPath? = nil) {
    if let name = path.header {
      headers.set(name, value.scalarText ?? "")
      return
    }
    if let inner = path.inElement, let element = rules.element {
      set(value, at: inner, in: element)
      return
    }
    parameters.remove(path.text)
    parameters.append(path.text, value.scalarText ?? "")
    root.set(value, at: ((within?.components ?? []) + path.components)[...])
  }

  /// Sets a value in the element that fulfils the conditions. Another element before it does not.
  private mutating func set(_ value: JSONValue, at path: FieldPath, in rules: ElementRules) {
    let list = rules.isAnswer ? [] : rules.list.components
    let conditions = rules.conditions.compactMap { rule in
      rule.value?.literal.map { (path: FieldPath(rule.name).components, text: $0) }
    }
    let place = conditions.isEmpty ? "0" : "1"
    for (path, text) in conditions {
      root.set(.string("not-" + text), at: (list + ["0"] + path)[...])
      root.set(JSONValue(scalar: text), at: (list + [place] + path)[...])
    }
    root.set(value, at: (list + [place] + path.components)[...])
  }

  var response: HTTPResponse {
    var response = HTTPResponse.json(status, root)
    switch rules.format {
    case .form:
      response.fields.set("Content-Type", MediaType.form)
      response.body = Array(parameters.encoded.utf8)
    case .xml:
      response.fields.set("Content-Type", "application/xml")
      response.body = Array(root.asXML.utf8)
    case .text:
      response.fields.set("Content-Type", "text/plain")
      response.body = Array((root[ResponseFormat.text.rawValue]?.text ?? "").utf8)
    case .json, .fragment, .query, nil: break
    }
    for field in headers { response.fields.set(field.name, field.value) }
    return response
  }
}

extension ErrorRules {
  /// The path of the outcome. If success has a value, prefers a field whose name is not "error" (L2P's `status`).
  fileprivate var outcome: FieldPath? {
    let named = success.isEmpty ? nil : code.first { $0.components.last != "error" }
    return named ?? code.first
  }
}

extension HTTPResponse {
  /// Returns a JSON answer that caches must not store, because it may contain tokens (RFC 6749, 5.1).
  static func json(_ status: Int, _ value: JSONValue) -> HTTPResponse {
    let fields: HTTPFields = ["Cache-Control": "no-store", "Content-Type": MediaType.json]
    return HTTPResponse(status: status, fields: fields, body: Array(value.encoded.utf8))
  }
}

extension Refusal { var json: JSONValue { ["error": .string(code), "error_description": .string(sentence)] } }

extension JSONValue {
  var scalarText: String? {
    switch self {
    case .string(let text), .number(let text): text
    case .boolean(let value): value ? "true" : "false"
    case .null, .array, .object: nil
    }
  }

  /// Converts a descriptor's text to JSON: `true` and `7` do not become strings.
  init(scalar text: String) {
    switch text {
    case "true", "false": self = .boolean(text == "true")
    default: self = Int64(text).map { $0.description == text } == true ? .number(text) : .string(text)
    }
  }

  /// An XML document with the first object as its root, which alone can have elements. Escapes what XML must escape.
  fileprivate var asXML: String {
    let root = members?.first { $0.value.members != nil }
    let document = root.map { $0.value.elements(named: $0.name) } ?? "<answer/>"
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + document
  }

  private func elements(named name: String) -> String {
    if let elements { return elements.map { $0.elements(named: name) }.joined() }
    let text = (scalarText ?? "").exchanging("&", for: "&amp;").exchanging("<", for: "&lt;")
    return "<\(name)>\(members?.map { $0.value.elements(named: $0.name) }.joined() ?? text)</\(name)>"
  }

  /// Sets the value at a path and creates missing parents. A number is an array index.
  fileprivate mutating func set(_ value: JSONValue, at path: ArraySlice<String>) {
    guard let first = path.first else {
      self = value
      return
    }
    let rest = path.dropFirst()
    if let index = Int(first), (0..<64).contains(index), members?.isEmpty ?? true {
      var elements = elements ?? []
      while elements.count <= index { elements.append(.null) }
      elements[index].set(value, at: rest)
      self = .array(elements)
      return
    }
    var members = members ?? []
    var inner = self[first] ?? .object([])
    inner.set(value, at: rest)
    if let place = members.firstIndex(where: { $0.name == first }) {
      members[place] = Member(first, inner)
    } else {
      members.append(Member(first, inner))
    }
    self = .object(members)
  }
}
