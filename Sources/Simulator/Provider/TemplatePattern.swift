import Descriptors

/// What is known of a name in a template when a text is compared with it.
enum Knowledge: Equatable {
  case known(String)  // It stands for this.
  case open(isOptional: Bool)  // It may stand for anything, or for nothing at all where it is optional.
}

/// A template as something to compare a text with: what is known must be there, and the rest is taken as it comes.
struct TemplatePattern {
  private enum Piece {
    case text(String)
    case open(name: String)
  }

  private var pieces: [Piece] = []
  /// Whether the engine may leave out what the template makes, because a value of it may be missing.
  private var isOptional = false

  /// `encode` is done to a value before it stands in the text.
  init(_ template: Template, encode: (String) -> String = { $0 }, _ knowledge: (String) -> Knowledge) {
    for part in template.parts {
      switch part {
      case .literal(let text): pieces.append(.text(text))
      case .place(let terms): append(terms, encode, knowledge)
      }
    }
  }

  private mutating func append(
    _ terms: [Template.Term], _ encode: (String) -> String, _ knowledge: (String) -> Knowledge
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
      // What a hash or a clock makes is taken as it comes, unless what goes into it may be missing.
      return .open(isOptional: arguments.contains(.open(isOptional: true)))
    }
  }

  /// Refuses a value that the template does not make, and the lack of one that the engine cannot leave out.
  func check(_ value: String?, _ name: String, kind: String = "") throws(Refusal) {
    guard let value else {
      if isOptional { return }
      throw .missing(name, kind: kind)
    }
    guard captures(in: value) != nil else { throw .wrongValue(name, kind: kind) }
  }

  /// What the open places stand for in `text`; `nil` when the text is not what the template makes. A value consists of
  /// bytes that are `isValue`, and the template may end before bytes that are `isEnd`.
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
