/// A part of a YAML document with its place in the file.
package struct Node: Sendable, Equatable {
  package enum Content: Sendable, Equatable {
    /// A text; `plain` if it has no quotes, which distinguishes `null` and `true` from `"null"`.
    case scalar(String, plain: Bool)
    case sequence([Node])
    case mapping([Entry])  // Keys and values in their original order; every key is unique.
  }

  package struct Entry: Sendable, Equatable {
    package let key: String  // The key's text; the parser rejects keys that are not scalars.
    package let keyPlace: Place
    package var value: Node

    package init(key: String, keyPlace: Place, value: Node) {
      self.key = key
      self.keyPlace = keyPlace
      self.value = value
    }
  }

  package var content: Content
  package let place: Place

  package init(_ content: Content, at place: Place) {
    self.content = content
    self.place = place
  }

  /// The text of a scalar that is not null.
  package var text: String? { if case .scalar(let text, _) = content, !isNull { text } else { nil } }

  /// Whether this is `null`, `~` or nothing at all, without quotes (YAML 1.2, 10.3.2).
  package var isNull: Bool {
    guard case .scalar(let text, plain: true) = content else { return false }
    return ["", "~", "null", "Null", "NULL"].contains(text)
  }

  /// The value of `true` or `false` without quotes; YAML 1.1's `yes` and `on` are texts here.
  package var boolean: Bool? {
    guard case .scalar(let text, plain: true) = content else { return nil }
    return text == "true" ? true : text == "false" ? false : nil
  }

  package var entries: [Entry]? { if case .mapping(let entries) = content { entries } else { nil } }

  package var elements: [Node]? { if case .sequence(let elements) = content { elements } else { nil } }

  package subscript(key: String) -> Node? { entries?.first { $0.key == key }?.value }
}
