/// A JSON value (RFC 8259). Numbers stay texts because some providers' identifiers fit neither 64 bits nor a `Double`.
package enum JSONValue: Sendable, Equatable {
  case null
  case boolean(Bool)
  case number(String)
  case string(String)
  case array([JSONValue])
  case object([Member])  // Members in their original order; of several members with one name the last counts.

  package struct Member: Sendable, Equatable {
    package let name: String
    package let value: JSONValue

    package init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  package static func integer(_ value: some BinaryInteger) -> JSONValue { .number("\(value)") }

  /// A string, or `null` for `nil`.
  package static func optional(_ text: String?) -> JSONValue { text.map(JSONValue.string) ?? .null }

  /// The member with this name, or `nil` if it is missing or this is not an object.
  package subscript(name: String) -> JSONValue? {
    if case .object(let members) = self { members.last { $0.name == name }?.value } else { nil }
  }

  /// Whether this is an object with several members of this name.
  package func repeats(_ name: String) -> Bool { (members?.count { $0.name == name } ?? 0) > 1 }

  /// The names of members that occur several times in this object.
  /// Whether an object in the value, at any depth, has a member several times.
  package var hasRepeatedNames: Bool {
    !repeatedNames.isEmpty || (elements ?? members?.map(\.value) ?? []).contains(where: \.hasRepeatedNames)
  }

  package var repeatedNames: Set<String> {
    var (seen, repeated): (Set<String>, Set<String>) = ([], [])
    for member in members ?? [] where !seen.insert(member.name).inserted { repeated.insert(member.name) }
    return repeated
  }

  package var text: String? { if case .string(let text) = self { text } else { nil } }

  /// The value of a whole number, or `nil` if this is not one or it needs more than 64 bits.
  package var integer: Int64? { if case .number(let text) = self { Int64(text) } else { nil } }

  package var elements: [JSONValue]? { if case .array(let elements) = self { elements } else { nil } }

  package var members: [Member]? { if case .object(let members) = self { members } else { nil } }
}

extension JSONValue: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByStringLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral
{
  package init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(elements.map { Member($0.0, $0.1) })
  }

  package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

  package init(stringLiteral value: String) { self = .string(value) }

  package init(booleanLiteral value: Bool) { self = .boolean(value) }

  package init(integerLiteral value: Int64) { self = .integer(value) }
}
