import CredmgrText
struct TemplateParser {
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
      case "}": throw .unbalancedBrace(offset: position)
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
    for piece in text.pieces(separatedBy: "||") { terms.append(try Self.term(Self.trimmed(piece))) }
    return terms
  }

  private static func trimmed(_ piece: some StringProtocol) -> String {
    var piece = piece[...]
    while piece.first == " " { piece.removeFirst() }
    while piece.last == " " { piece.removeLast() }
    return String(piece)
  }

  private static func term(_ text: String) throws(TemplateError) -> Template.Term {
    let term = try argument(text)
    // A digest is not a text and needs a function that encodes it.
    if term.isDigest { throw .malformedPlace(text) }
    return term
  }

  /// The maximum nesting: each level is parsed again and may double the size. No provider needs more than four levels.
  private static let depthLimit = 8

  private static func argument(_ text: String, depth: Int = 0) throws(TemplateError) -> Template.Term {
    guard depth <= depthLimit else { throw .tooDeep(depthLimit) }
    if text.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") {
      return .literal(String(text.dropFirst().dropLast()).exchanging("\\n", for: "\n"))
    }
    if text.hasSuffix(")"), let open = text.firstIndex(of: "("), text.first != "\"" {
      let name = String(text[..<open])
      guard let function = Template.Function(rawValue: name) else { throw .unknownFunction(name) }
      let inner = String(text[text.index(after: open)...].dropLast())
      var terms: [Template.Term] = []
      if !inner.isEmpty || !function.argumentCounts.contains(0) {
        for piece in arguments(inner) { terms.append(try argument(piece, depth: depth + 1)) }
      }
      let takesDigests = [.hex, .base64].contains(function) || function.isDigest
      guard function.argumentCounts.contains(terms.count), takesDigests || !terms.contains(where: \.isDigest) else {
        throw .malformedPlace(text)
      }
      return .call(function, terms)
    }
    guard DescriptorDecoder.isTemplateName(text) else { throw .malformedPlace(text) }
    return .name(text)
  }

  private static func arguments(_ text: String) -> [String] {
    var pieces = [""]
    var depth = 0
    var isQuoted = false
    for character in text {
      switch character {
      case "\"": isQuoted.toggle()
      case "(" where !isQuoted: depth += 1
      case ")" where !isQuoted: depth -= 1
      case "," where !isQuoted && depth == 0:
        pieces.append("")
        continue
      default: break
      }
      pieces[pieces.count - 1].append(character)
    }
    return pieces.map { trimmed($0) }
  }
}
