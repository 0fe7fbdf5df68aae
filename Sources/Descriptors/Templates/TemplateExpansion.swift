extension Template {
  /// Expansions that are listed one by one; a template with more of them stands as it is written.
  private static let expansionLimit = 64

  /// Every text that the template can become. A term without a value stands as it is written, and the terms behind it
  /// are possible as well. A term with an `isUnset` name yields nothing.
  package func expansions(_ value: (String) -> String?, isUnset: (String) -> Bool = { _ in false }) -> [String] {
    var texts = [""]
    for part in parts {
      let choices: [String]
      switch part {
      case .literal(let piece): choices = [piece]
      case .place(let terms): choices = Self.choices(terms, value, isUnset)
      }
      texts = texts.flatMap { text in choices.map { text + $0 } }
      if texts.count > Self.expansionLimit { return [text] }
    }
    return texts
  }

  private static func choices(_ terms: [Term], _ value: (String) -> String?, _ isUnset: (String) -> Bool) -> [String] {
    var choices: [String] = []
    for term in terms where !term.names.contains(where: isUnset) {
      if let bytes = try? term.value(value, { _, _ in nil }), !bytes.isEmpty {
        // What stands behind it is never taken.
        return choices + [String(decoding: bytes, as: UTF8.self)]
      }
      choices.append(Template(term).text)
    }
    return choices
  }

  private init(_ term: Term) { parts = [.place([term])] }
}
