import CredmgrText
/// A text with placeholders: `{host}`, `{a || b}` (the first value that is not empty), `{lowercase(a)}`. Two braces
/// stand for one.
package struct Template: Sendable, Equatable {
  /// Computes the functions that need cryptography, a clock or random bytes.
  package typealias Calculator = (Function, [[UInt8]]) -> [UInt8]?

  package enum Term: Sendable, Equatable {
    case name(String)
    case literal(String)
    indirect case call(Function, [Term])
  }

  package enum Part: Sendable, Equatable {
    case literal(String)
    case place([Term])  // The first term with a value counts.
  }

  package let parts: [Part]

  package init(_ parts: [Part]) { self.parts = parts }

  /// The maximum size in bytes of a template, of a function's arguments or result, and of the resulting text. No
  /// provider needs a longer header or parameter.
  package static let longest = 65_536

  package init(literal text: String) { parts = text.isEmpty ? [] : [.literal(text)] }

  package init(parsing text: String) throws(TemplateError) {
    guard text.utf8.count <= Self.longest else { throw .tooLong(Self.longest) }
    var parser = TemplateParser(text)
    parts = try parser.parts()
  }

  package var names: [String] {
    parts.flatMap { part -> [String] in if case .place(let terms) = part { terms.flatMap(\.names) } else { [] } }
  }

  /// The literal texts, including those inside placeholders.
  var literals: [String] {
    parts.flatMap { part in
      switch part {
      case .literal(let text): [text]
      case .place(let terms): terms.flatMap(\.literals)
      }
    }
  }

  /// Returns the largest possible size of the result and of any function call, in bytes. `names` returns the largest
  /// size of a name's value.
  func longestValue(_ names: (String) -> Int) -> Int {
    parts.reduce(0) { length, part in
      switch part {
      case .literal(let text): length + text.utf8.count
      case .place(let terms): length + (terms.map { $0.longestValue(names) }.max() ?? 0)
      }
    }
  }

  package var literal: String? {
    var text = ""
    for part in parts {
      guard case .literal(let piece) = part else { return nil }
      text += piece
    }
    return text
  }

  /// The filled text. `nil` and empty `values` count as missing; `encode` converts each value before insertion.
  package func filled(
    _ values: (String) -> String?, encode: (String) -> String = { $0 }, calculate: Calculator = { _, _ in nil }
  ) throws(TemplateError) -> String {
    var text = ""
    for part in parts {
      switch part {
      case .literal(let piece): text += piece
      case .place(let terms): text += encode(try Self.value(of: terms, values, calculate))
      }
      guard text.utf8.count <= Self.longest else { throw .tooLong(Self.longest) }
    }
    return text
  }

  static func value(
    of terms: [Term], _ values: (String) -> String?, _ calculate: Calculator = { _, _ in nil }
  ) throws(TemplateError) -> String {
    for term in terms {
      if let value = try term.value(values, calculate), !value.isEmpty { return String(decoding: value, as: UTF8.self) }
    }
    throw .missing(terms.lazy.flatMap(\.names).first ?? "")
  }
}

extension Template.Term {
  package var names: [String] {
    switch self {
    case .name(let name): [name]
    case .literal: []
    case .call(_, let terms): terms.flatMap(\.names)
    }
  }

  fileprivate var literals: [String] {
    switch self {
    case .name: []
    case .literal(let text): [text]
    case .call(_, let terms): terms.flatMap(\.literals)
    }
  }

  package func value(
    _ values: (String) -> String?, _ calculate: Template.Calculator
  ) throws(TemplateError) -> [UInt8]? {
    switch self {
    case .name(let name): return values(name).map { Array($0.utf8) }
    case .literal(let text): return Array(text.utf8)
    case .call(let function, let terms):
      var arguments: [[UInt8]] = []
      var bytes = 0
      for term in terms {
        guard let value = try term.value(values, calculate) else { return nil }
        arguments.append(value)
        // The request body may be long, because it is the caller's own.
        if term != .name("request_body"), term != .name("request_parameters") { bytes += value.count }
        guard bytes <= Template.longest else { throw .tooLong(Template.longest) }
      }
      let value: [UInt8]? =
        switch function {
        case .lowercase: Array(String(decoding: arguments.joined(), as: UTF8.self).lowercased().utf8)
        case .uppercase: Array(String(decoding: arguments.joined(), as: UTF8.self).uppercased().utf8)
        default: calculate(function, arguments)
        }
      guard value?.count ?? 0 <= Template.longest else { throw .tooLong(Template.longest) }
      return value
    }
  }

  /// The maximum size in bytes of all values that lead to the term's value, given the size of each name.
  func longestValue(_ names: (String) -> Int) -> Int {
    guard case .call(_, let terms) = self else { return length(names) }
    return max(length(names), terms.map { $0.longestValue(names) }.max() ?? 0)
  }

  private func length(_ names: (String) -> Int) -> Int {
    switch self {
    case .name(let name): return names(name)
    case .literal(let text): return text.utf8.count
    case .call(let function, let terms):
      let bytes = terms.reduce(0) { min($0 + $1.length(names), Template.longest * 2) }
      return switch function {
      case .hex: bytes * 2
      case .base64: (bytes + 2) / 3 * 4
      case .sha1, .sha256, .hmacSHA1, .hmacSHA256, .httpDate, .random: 32
      case .now, .date, .datetime: 10
      case .lowercase, .uppercase, .json: bytes
      }
    }
  }
}

package enum TemplateError: Error, Sendable, Equatable {
  case unbalancedBrace(offset: Int)  // In Unicode scalars.
  case malformedPlace(String)
  case unknownFunction(String)
  case tooDeep(Int)
  case tooLong(Int)  // In bytes.
  case missing(String)
}

extension Template {
  package var text: String {
    parts.map { part in
      switch part {
      case .literal(let text): text.map { $0 == "{" || $0 == "}" ? "\($0)\($0)" : "\($0)" }.joined()
      case .place(let terms): "{" + terms.map(\.text).joined(separator: " || ") + "}"
      }
    }.joined()
  }
}

extension Template.Term {
  fileprivate var text: String {
    switch self {
    case .name(let name): name
    case .literal(let text): "\"\(text.exchanging("\n", for: "\\n"))\""
    case .call(let function, let terms): function.rawValue + "(" + terms.map(\.text).joined(separator: ", ") + ")"
    }
  }
}

extension Template {
  package enum Function: String, Sendable, CaseIterable {
    case lowercase
    case uppercase
    case base64  // RFC 4648, 4, of the concatenated arguments.
    case hex  // RFC 4648, 8, lower case, of the concatenated arguments.
    case sha1  // Of the concatenated arguments.
    case sha256
    case hmacSHA1 = "hmac_sha1"  // RFC 2104; the first argument is the key.
    case hmacSHA256 = "hmac_sha256"
    case now  // Seconds since 1970; an argument such as `"7d"` adds that time.
    case date  // Seconds since 1970 as `2026-11-21` (UTC).
    case datetime  // Seconds since 1970 as `2026-11-21T02:16:06Z` (RFC 3339).
    case httpDate = "http_date"  // Seconds since 1970 as in HTTP (RFC 9110, 5.6.7).
    case random  // 32 hexadecimal digits, the same throughout one request.
    case json  // A text escaped for a JSON string (RFC 8259, 7).

    /// Whether the result is bytes instead of a text.
    var isDigest: Bool { [.sha1, .sha256, .hmacSHA1, .hmacSHA256].contains(self) }

    var argumentCounts: ClosedRange<Int> {
      switch self {
      case .lowercase, .uppercase, .date, .datetime, .httpDate, .json: 1...1
      case .base64, .hex, .sha1, .sha256: 1...32
      case .hmacSHA1, .hmacSHA256: 2...32
      case .now: 0...1
      case .random: 0...0
      }
    }
  }
}

extension Template.Term {
  var isDigest: Bool {
    if case .call(let function, _) = self { function.isDigest } else { false }
  }
}
