/// One header field (RFC 9110, section 5). Its description shows the name, but never the value.
package struct HTTPField: Sendable, Hashable, Redacted {
  package var name: String
  package var value: String

  package init(name: String, value: String) {
    self.name = name
    self.value = value
  }

  package var description: String { name }
}

/// Header fields in their order; looking up a name ignores case (RFC 9110, section 5.1).
package struct HTTPFields: Sendable, Equatable, Redacted, Sequence, ExpressibleByDictionaryLiteral {
  private var fields: [HTTPField]

  package init(_ fields: [HTTPField] = []) { self.fields = fields }

  package init(dictionaryLiteral elements: (String, String)...) {
    fields = elements.map { HTTPField(name: $0.0, value: $0.1) }
  }

  package subscript(_ name: String) -> String? { fields.first { Self.isSame($0.name, name) }?.value }

  package func values(_ name: String) -> [String] { fields.filter { Self.isSame($0.name, name) }.map(\.value) }

  package mutating func append(_ name: String, _ value: String) { fields.append(HTTPField(name: name, value: value)) }

  /// Replaces the first field of that name, or appends the field, and removes all others of that name.
  package mutating func set(_ name: String, _ value: String) {
    let place = fields.firstIndex { Self.isSame($0.name, name) } ?? fields.endIndex
    removeAll(named: name)
    fields.insert(HTTPField(name: name, value: value), at: place)
  }

  package mutating func removeAll(named name: String) { fields.removeAll { Self.isSame($0.name, name) } }

  /// Whether the name is a token (RFC 9110, sections 5.1 and 5.6.2).
  package static func isValid(name: String) -> Bool { !name.isEmpty && name.utf8.allSatisfy(Octet.isTokenCharacter) }

  /// Whether the value has no control characters except the tab (RFC 9110, section 5.5).
  package static func isValid(value: String) -> Bool {
    value.utf8.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }
  }

  package var description: String { "HTTPFields(\(fields.map(\.name).joined(separator: ", ")))" }

  private static func isSame(_ one: String, _ other: String) -> Bool {
    one.utf8.count == other.utf8.count && Octet.lowerCase(one) == Octet.lowerCase(other)
  }

  package func makeIterator() -> IndexingIterator<[HTTPField]> { fields.makeIterator() }
}
