/// Names and values in their order, including duplicates (`application/x-www-form-urlencoded`).
package struct FormParameters: Sendable, Equatable, Redacted, ExpressibleByArrayLiteral {
  package struct Pair: Sendable, Hashable, Redacted {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
      self.name = name
      self.value = value
    }

    package var description: String { name }
  }

  package var pairs: [Pair]

  package init(_ pairs: [Pair] = []) { self.pairs = pairs }

  package init(arrayLiteral elements: (String, String)...) { pairs = elements.map { Pair(name: $0.0, value: $0.1) } }

  /// Reads a query or a form body like the URL Standard (section 5.1): `name` means `name=`, a plus is a space, empty
  /// pieces are skipped, a `%` without an escape stands for itself, and invalid UTF-8 becomes U+FFFD.
  package init(decoding text: String) {
    pairs = text.utf8.split(separator: UInt8(ascii: "&")).map { piece in
      let parts = piece.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      return Pair(name: Self.decoded(Array(parts[0])), value: parts.count > 1 ? Self.decoded(Array(parts[1])) : "")
    }
  }

  private static func decoded(_ bytes: [UInt8]) -> String {
    let bytes = PercentEncoding.bytes(decoding: bytes, plusAsSpace: true, strict: false) ?? bytes
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The encoded text, with `%20` for a space because every server understands it.
  package var encoded: String {
    pairs.map { "\(PercentEncoding.encode($0.name))=\(PercentEncoding.encode($0.value))" }.joined(separator: "&")
  }

  /// The encoded text, sorted by name and value, as signatures need it (RFC 5849, 3.4.1.3.2).
  package var normalized: String {
    pairs
      .map { (name: PercentEncoding.encode($0.name), value: PercentEncoding.encode($0.value)) }
      .sorted { ($0.name, $0.value) < ($1.name, $1.value) }
      .map { $0.name + "=" + $0.value }
      .joined(separator: "&")
  }

  package var description: String { "FormParameters(\(names.joined(separator: ", ")))" }

  package var isEmpty: Bool { pairs.isEmpty }

  package var names: [String] { pairs.map(\.name) }

  package subscript(first name: String) -> String? { pairs.first { $0.name == name }?.value }

  package func values(of name: String) -> [String] { pairs.filter { $0.name == name }.map(\.value) }

  package func contains(_ name: String) -> Bool { pairs.contains { $0.name == name } }

  package mutating func append(_ name: String, _ value: String) { pairs.append(Pair(name: name, value: value)) }

  package mutating func append(contentsOf other: FormParameters) { pairs.append(contentsOf: other.pairs) }

  package mutating func remove(_ name: String) { pairs.removeAll { $0.name == name } }

  /// Returns the parameters without those in `own`; `nil` if one of them is missing.
  package func removing(_ own: FormParameters) -> FormParameters? {
    var rest = self
    for pair in own.pairs {
      guard let index = rest.pairs.firstIndex(of: pair) else { return nil }
      rest.pairs.remove(at: index)
    }
    return rest
  }
}
