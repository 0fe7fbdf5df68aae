import HTTP
import JSON
import Descriptors

/// An answer in the making: values at the paths that the descriptor names.
struct AnswerContent {
  private let rules: ResponseRules
  private var root = JSONValue.object([])
  private var pairs = FormParameters()
  private var headers = HTTPFields()

  init(_ rules: ResponseRules) { self.rules = rules }

  /// Puts a field where the descriptor says that it stands.
  mutating func set(_ field: ResponseField, _ value: JSONValue) {
    guard let path = rules.source(of: field).paths.first else { return }
    set(path, value, within: rules.within)
  }

  /// A duration in seconds, in the form that the descriptor names.
  mutating func set(_ field: ResponseField, seconds: Int64) {
    let factor: Int64 = rules.source(of: field).time == .milliseconds ? 1000 : 1
    set(field, .integer(seconds * factor))
  }

  /// What is kept besides.
  mutating func set(kept: [String: String], _ fields: [KeptField]) {
    for field in fields {
      guard let path = field.paths.first, let value = kept[field.name] else { continue }
      set(path, .string(value), within: rules.within)
    }
  }

  /// The value that means that all is well, where the descriptor knows one.
  mutating func setSuccess() {
    guard let path = rules.errors.outcome, let value = rules.errors.success.first else { return }
    set(path, JSONValue(scalar: value))
  }

  /// An error, in the provider's own word for it.
  mutating func setError(_ refusal: Refusal) {
    if let path = rules.errors.outcome { set(path, .string(rules.errors.word(for: refusal.code))) }
    if let path = rules.errors.description.first, path != rules.errors.outcome {
      set(path, .string(refusal.reason.sentence))
    }
  }

  /// Puts a value at a path from the root of the answer, or from the object `within` it.
  mutating func set(_ path: FieldPath, _ value: JSONValue, within: FieldPath? = nil) {
    if let name = path.header {
      headers.set(name, value.scalarText ?? "")
      return
    }
    pairs.remove(path.text)
    pairs.append(path.text, value.scalarText ?? "")
    root.set(value, at: ((within?.components ?? []) + path.components)[...])
  }

  /// The answer as a form, as the query or fragment of a redirect has it, too.
  var parameters: FormParameters { pairs }

  /// The answer in the format that the descriptor names.
  func response(_ status: Int) -> HTTPResponse {
    var response = HTTPResponse(status: status, fields: headers)
    // RFC 6749, 5.1: what has tokens in it is not kept by anybody on the way.
    response.fields.set("Cache-Control", "no-store")
    if rules.format == .form {
      response.fields.set("Content-Type", MediaTypes.form)
      response.body = Array(pairs.encoded.utf8)
    } else {
      response.fields.set("Content-Type", MediaTypes.json)
      response.body = Array(root.encoded.utf8)
    }
    return response
  }
}

extension ErrorRules {
  /// The provider's word for a code of the RFCs.
  func word(for code: String) -> String {
    meanings.filter { $0.value == code }.keys.min() ?? code
  }

  /// Where the outcome is written: where success has a value, rather a field that is not called an error (L2P's
  /// `status`).
  var outcome: FieldPath? {
    let named = success.isEmpty ? nil : code.first { $0.components.last != "error" }
    return named ?? code.first
  }

  /// Whether errors come with status 200, because a field says that all is well or not.
  var comeWithSuccess: Bool { !success.isEmpty }
}

extension JSONValue {
  /// Sets what stands at a path, and makes what is missing on the way: a number is an index of an array.
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
    let place = members.firstIndex { $0.name == first }
    var inner = place.map { members[$0].value } ?? .object([])
    inner.set(value, at: rest)
    if let place {
      members[place] = Member(first, inner)
    } else {
      members.append(Member(first, inner))
    }
    self = .object(members)
  }
}
