/// A JSON value (RFC 8259).
///
/// A number keeps its text: identifiers of providers do not fit into 64 bits or a `Double` everywhere, and a login
/// must not fail, nor an identifier change, because of that.
package enum JSONValue: Sendable, Equatable {
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
  package struct Member: Sendable, Equatable {
    /// The name.
    package let name: String
    /// The value.
    package let value: JSONValue

    /// A member of an object.
    package init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  /// A number.
  package static func integer(_ value: some BinaryInteger) -> JSONValue { .number("\(value)") }

  /// A text, or `null` for nothing.
  package static func optional(_ text: String?) -> JSONValue { text.map(JSONValue.string) ?? .null }

  /// The member with this name, where this is an object that has it.
  package subscript(name: String) -> JSONValue? {
    if case .object(let members) = self { members.last { $0.name == name }?.value } else { nil }
  }

  /// The text of a string.
  package var text: String? {
    if case .string(let text) = self { text } else { nil }
  }

  /// The value of a whole number that fits.
  package var integer: Int64? {
    if case .number(let text) = self { Int64(text) } else { nil }
  }

  /// The elements of an array.
  package var elements: [JSONValue]? {
    if case .array(let elements) = self { elements } else { nil }
  }

  /// The members of an object.
  package var members: [Member]? {
    if case .object(let members) = self { members } else { nil }
  }
}

extension JSONValue: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByStringLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral
{
  /// An object with these members, in this order.
  package init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(elements.map { Member($0.0, $0.1) })
  }

  /// An array of these elements.
  package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

  /// A text.
  package init(stringLiteral value: String) { self = .string(value) }

  /// `true` or `false`.
  package init(booleanLiteral value: Bool) { self = .boolean(value) }

  /// A number.
  package init(integerLiteral value: Int64) { self = .integer(value) }
}
