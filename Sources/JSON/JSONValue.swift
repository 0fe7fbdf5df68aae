/// A JSON value (RFC 8259).
///
/// A number keeps its text: identifiers of providers do not fit into 64 bits or a `Double` everywhere, and a login
/// must not fail, nor an identifier change, because of that.
public enum JSONValue: Sendable, Equatable {
  /// `null`
  case null
  /// `true` or `false`
  case boolean(Bool)
  /// A number, as it was written.
  case number(String)
  /// A text.
  case string(String)
  /// An ordered list.
  case array([JSONValue])
  /// Members in the order in which they were written; of members with one name, the last counts.
  case object([Member])

  /// A name and its value.
  public struct Member: Sendable, Equatable {
    /// The name.
    public let name: String
    /// The value.
    public let value: JSONValue

    /// A member of an object.
    public init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  /// A number.
  public static func integer(_ value: some BinaryInteger) -> JSONValue { .number("\(value)") }

  /// A text, or `null` for nothing.
  public static func optional(_ text: String?) -> JSONValue { text.map(JSONValue.string) ?? .null }

  /// The member with this name, where this is an object that has it.
  public subscript(name: String) -> JSONValue? {
    if case .object(let members) = self { members.last { $0.name == name }?.value } else { nil }
  }

  /// The text of a string.
  public var text: String? {
    if case .string(let text) = self { text } else { nil }
  }

  /// The value of a whole number that fits.
  public var integer: Int64? {
    if case .number(let text) = self { Int64(text) } else { nil }
  }

  /// The elements of an array.
  public var elements: [JSONValue]? {
    if case .array(let elements) = self { elements } else { nil }
  }

  /// The members of an object.
  public var members: [Member]? {
    if case .object(let members) = self { members } else { nil }
  }
}

extension JSONValue: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByStringLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral
{
  /// An object with these members, in this order.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(elements.map { Member($0.0, $0.1) })
  }

  /// An array of these elements.
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

  /// A text.
  public init(stringLiteral value: String) { self = .string(value) }

  /// `true` or `false`.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }

  /// A number.
  public init(integerLiteral value: Int64) { self = .integer(value) }
}
