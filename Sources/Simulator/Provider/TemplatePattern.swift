import CredmgrDescriptors

/// The simulator's knowledge of a name when it compares a text with a template.
enum Knowledge: Equatable {
  case known(String)  // The name has this value.
  case open(isOptional: Bool)  // Any value, or none if it is optional.
}

/// A template to compare texts with: known values must match, and all others match anything.
struct TemplatePattern {
  private enum Piece {
    case text(String)
    case open(name: String)
  }

  private var pieces: [Piece] = []
  /// Whether the client may omit the result because a value may be missing.
  private var isOptional = false

  /// Creates a pattern; `encode` is applied to each value.
  init(_ template: Template, encode: (String) -> String = { $0 }, _ knowledge: (String) -> Knowledge) {
    for part in template.parts {
      switch part {
      case .literal(let text): pieces.append(.text(text))
      case .place(let terms): append(terms, encode: encode, knowledge)
      }
    }
  }

  private mutating func append(
    _ terms: [Template.Term], encode: (String) -> String, _ knowledge: (String) -> Knowledge
  ) {
    var openName: String?
    for term in terms {
      switch Self.evaluate(term, knowledge) {
      case .known(let text) where text.isEmpty: continue
      case .known(let text):
        pieces.append(openName.map(Piece.open) ?? .text(encode(text)))
        return
      case .open(let isOptional):
        openName = openName ?? Self.name(term)
        if !isOptional {
          pieces.append(.open(name: openName ?? ""))
          return
        }
      }
    }
    pieces.append(.open(name: openName ?? ""))
    isOptional = true
  }

  private static func name(_ term: Template.Term) -> String {
    switch term {
    case .name(let name): name
    case .literal(let text): text
    case .call(let function, let terms): terms.first.map(name) ?? function.rawValue
    }
  }

  private static func evaluate(_ term: Template.Term, _ knowledge: (String) -> Knowledge) -> Knowledge {
    switch term {
    case .name(let name): return knowledge(name)
    case .literal(let text): return .known(text)
    case .call(let function, let terms):
      let arguments = terms.map { evaluate($0, knowledge) }
      if let argument = arguments.first, case .known(let text) = argument {
        if function == .lowercase { return .known(text.lowercased()) }
        if function == .uppercase { return .known(text.uppercased()) }
      }
      // A hash or a clock may return anything. Its result is optional if an argument is.
      return .open(isOptional: arguments.contains(.open(isOptional: true)))
    }
  }

  /// Throws if the template cannot produce the value, or if a required value is missing.
  func check(_ value: String?, _ name: String, kind: String = "") throws(Refusal) {
    guard let value else {
      if isOptional { return }
      throw .missing(name, kind: kind)
    }
    guard captures(in: value) != nil else { throw .wrongValue(name, kind: kind) }
  }

  /// Returns the values of the open places in `text`; `nil` if it does not match. A value consists of bytes that
  /// satisfy `isValue`. The template may end before a rest that satisfies `isEnd`.
  func captures(
    in text: String, isValue: (UInt8) -> Bool = { _ in true }, isEnd: (ArraySlice<UInt8>) -> Bool = { $0.isEmpty }
  ) -> [String: String]? { Self.match(pieces[...], Array(text.utf8)[...], isValue: isValue, isEnd: isEnd) }

  private static func match(
    _ pieces: ArraySlice<Piece>, _ text: ArraySlice<UInt8>, isValue: (UInt8) -> Bool,
    isEnd: (ArraySlice<UInt8>) -> Bool
  ) -> [String: String]? {
    let rest = pieces.dropFirst()
    switch pieces.first {
    case nil: return isEnd(text) ? [:] : nil
    case .text(let literal):
      guard text.starts(with: literal.utf8) else { return nil }
      return match(rest, text.dropFirst(literal.utf8.count), isValue: isValue, isEnd: isEnd)
    case .open(let name):
      var length = text.prefix(while: isValue).count
      while length > 0 {
        if let captures = match(rest, text.dropFirst(length), isValue: isValue, isEnd: isEnd) {
          let value = String(decoding: text.prefix(length), as: UTF8.self)
          return captures.merging([name: value]) { _, first in first }
        }
        length -= 1
      }
      return nil
    }
  }
}
