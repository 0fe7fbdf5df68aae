/// A part of a YAML document that knows where it stands.
public struct Node: Sendable, Equatable {
  /// What a node holds.
  public enum Content: Sendable, Equatable {
    /// A text; `plain` when it was written without quotes, so that `null` and `true` can be told from `"null"`.
    case scalar(String, plain: Bool)
    /// An ordered list.
    case sequence([Node])
    /// Keys and values in the order in which they were written, no key twice.
    case mapping([Entry])
  }

  /// A key and its value.
  public struct Entry: Sendable, Equatable {
    /// The key's text; keys that are not scalars are refused by the parser.
    public let key: String
    /// Where the key stands.
    public let keyPlace: Place
    /// The value.
    public var value: Node

    /// A key at a place, with its value.
    public init(key: String, keyPlace: Place, value: Node) {
      self.key = key
      self.keyPlace = keyPlace
      self.value = value
    }
  }

  /// What the node holds.
  public var content: Content
  /// Where it begins.
  public let place: Place

  /// A node at a place.
  public init(_ content: Content, at place: Place) {
    self.content = content
    self.place = place
  }

  /// The text of a scalar that is not null.
  public var text: String? {
    if case .scalar(let text, _) = content, !isNull { text } else { nil }
  }

  /// Whether this is `null`, `~` or nothing at all, written without quotes (YAML 1.2, 10.3.2).
  public var isNull: Bool {
    guard case .scalar(let text, plain: true) = content else { return false }
    return ["", "~", "null", "Null", "NULL"].contains(text)
  }

  /// The value of `true` or `false`, written without quotes. YAML 1.1's `yes` and `on` are texts here.
  public var boolean: Bool? {
    guard case .scalar(let text, plain: true) = content else { return nil }
    return text == "true" ? true : text == "false" ? false : nil
  }

  /// The entries of a mapping.
  public var entries: [Entry]? {
    if case .mapping(let entries) = content { entries } else { nil }
  }

  /// The elements of a sequence.
  public var elements: [Node]? {
    if case .sequence(let elements) = content { elements } else { nil }
  }

  /// The value of a key, where this is a mapping that has it.
  public subscript(key: String) -> Node? {
    entries?.first { $0.key == key }?.value
  }
}
