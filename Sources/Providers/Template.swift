/// A text with places that are filled in: `{host}`, `{a || b}` (the first that is there and not empty), `{lowercase(a)}`.
/// Two braces stand for one.
public struct Template: Sendable, Equatable {
  /// A function that a template may apply to a value.
  public enum Function: String, Sendable, CaseIterable {
    /// All letters in lower case.
    case lowercase
    /// All letters in upper case.
    case uppercase
  }

  /// One way to fill a place.
  public enum Term: Sendable, Equatable {
    /// The value with this name.
    case name(String)
    /// This text.
    case literal(String)
    /// A function of another term.
    indirect case call(Function, Term)
  }

  /// A stretch of a template.
  public enum Part: Sendable, Equatable {
    /// Text that stays as it is.
    case literal(String)
    /// A place to fill: the first term that yields something.
    case place([Term])
  }

  /// The stretches, in order.
  public let parts: [Part]

  /// A template that is only text.
  public init(literal text: String) { parts = text.isEmpty ? [] : [.literal(text)] }

  /// Reads a template.
  ///
  /// - Throws: `TemplateError` where a brace is not closed, a place is empty or a function is not known.
  public init(parsing text: String) throws(TemplateError) {
    var parser = TemplateParser(text)
    parts = try parser.parts()
  }

  /// The names that the template uses, in order.
  public var names: [String] {
    parts.flatMap { part -> [String] in
      if case .place(let terms) = part { terms.compactMap(\.name) } else { [] }
    }
  }

  /// The template as text, when it has no places.
  public var literal: String? {
    var text = ""
    for part in parts {
      guard case .literal(let piece) = part else { return nil }
      text += piece
    }
    return text
  }

  /// The text with every place filled.
  ///
  /// - Parameters:
  ///   - values: what a name stands for; `nil` and the empty text count as absent.
  ///   - encode: what is done to a value before it stands in the text, such as percent-encoding.
  /// - Throws: `TemplateError.missing` when no term of a place yields anything.
  public func filled(
    _ values: (String) -> String?, encode: (String) -> String = { $0 }
  ) throws(TemplateError) -> String {
    var text = ""
    for part in parts {
      switch part {
      case .literal(let piece): text += piece
      case .place(let terms): text += encode(try Self.value(of: terms, values))
      }
    }
    return text
  }

  static func value(of terms: [Term], _ values: (String) -> String?) throws(TemplateError) -> String {
    for term in terms {
      if let value = term.value(values), !value.isEmpty { return value }
    }
    throw .missing(terms.lazy.compactMap(\.name).first ?? "")
  }
}

extension Template.Term {
  var name: String? {
    switch self {
    case .name(let name): name
    case .literal: nil
    case .call(_, let term): term.name
    }
  }

  func value(_ values: (String) -> String?) -> String? {
    switch self {
    case .name(let name): return values(name)
    case .literal(let text): return text
    case .call(let function, let term):
      guard let value = term.value(values) else { return nil }
      switch function {
      case .lowercase: return value.lowercased()
      case .uppercase: return value.uppercased()
      }
    }
  }
}

/// What is wrong with a template, or with filling it.
public enum TemplateError: Error, Sendable, Equatable {
  /// A `{` without its `}`, or a `}` without its `{`; the offset in Unicode scalars.
  case unbalancedBrace(offset: Int)
  /// What stands between the braces is neither a name, a quoted text nor a function of one.
  case malformedPlace(String)
  /// A function that is not known.
  case unknownFunction(String)
  /// Nothing is there for this name.
  case missing(String)
}

private struct TemplateParser {
  private let scalars: [Unicode.Scalar]
  private var position = 0

  init(_ text: String) { scalars = Array(text.unicodeScalars) }

  mutating func parts() throws(TemplateError) -> [Template.Part] {
    var parts: [Template.Part] = []
    var literal = ""
    while position < scalars.count {
      let scalar = scalars[position]
      let doubled = position + 1 < scalars.count && scalars[position + 1] == scalar
      switch scalar {
      case "{" where doubled, "}" where doubled:
        literal.unicodeScalars.append(scalar)
        position += 2
      case "{":
        if !literal.isEmpty { parts.append(.literal(literal)) }
        literal = ""
        parts.append(.place(try place()))
      case "}":
        throw .unbalancedBrace(offset: position)
      default:
        literal.unicodeScalars.append(scalar)
        position += 1
      }
    }
    if !literal.isEmpty { parts.append(.literal(literal)) }
    return parts
  }

  private mutating func place() throws(TemplateError) -> [Template.Term] {
    let open = position
    guard let close = scalars[open...].firstIndex(of: "}") else { throw .unbalancedBrace(offset: open) }
    position = close + 1
    var text = ""
    text.unicodeScalars.append(contentsOf: scalars[(open + 1)..<close])
    var terms: [Template.Term] = []
    for piece in Self.split(text) { terms.append(try Self.term(piece)) }
    return terms
  }

  /// The pieces between `||`.
  private static func split(_ text: String) -> [String] {
    var pieces: [String] = [""]
    var bars = 0
    for scalar in text.unicodeScalars {
      if scalar == "|" {
        bars += 1
        if bars == 2 {
          pieces.append("")
          bars = 0
        }
      } else {
        if bars == 1 { pieces[pieces.count - 1] += "|" }
        bars = 0
        pieces[pieces.count - 1].unicodeScalars.append(scalar)
      }
    }
    if bars == 1 { pieces[pieces.count - 1] += "|" }
    return pieces.map { piece in
      String(piece.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
  }

  private static func term(_ text: String) throws(TemplateError) -> Template.Term {
    if text.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") {
      return .literal(String(text.dropFirst().dropLast()))
    }
    if text.hasSuffix(")"), let open = text.firstIndex(of: "(") {
      let name = String(text[..<open])
      guard let function = Template.Function(rawValue: name) else { throw .unknownFunction(name) }
      return .call(function, try term(String(text[text.index(after: open)...].dropLast())))
    }
    guard !text.isEmpty, text.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "_-.".contains($0)) })
    else { throw .malformedPlace(text) }
    return .name(text)
  }
}

extension Template {
  /// The template as it is written.
  public var text: String {
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
    case .literal(let text): "\"\(text)\""
    case .call(let function, let term): "\(function.rawValue)(\(term.text))"
    }
  }
}
