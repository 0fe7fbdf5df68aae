extension Template {
  /// The maximum number of expansions to list; beyond it, all alternatives of a placeholder are joined in one text.
  private static let expansionLimit = 64

  /// Every text that the template can become. Terms without a value appear as written, and so do the later terms.
  package func expansions(_ value: (String) -> String?) -> [String] {
    var texts = [""]
    for part in parts {
      var choices: [String]
      switch part {
      case .literal(let piece): choices = [piece]
      case .place(let terms):
        let open = Self.choices(terms, value)
        choices = open.map(\.text)
        if choices.count > 1, texts.count > 1, texts.count * choices.count > Self.expansionLimit {
          choices = [Template([.place(open.map(\.term))]).text]
        }
      }
      texts = texts.flatMap { text in choices.map { text + $0 } }
    }
    return texts
  }

  private static func choices(_ terms: [Term], _ value: (String) -> String?) -> [(term: Term, text: String)] {
    var choices: [(term: Term, text: String)] = []
    for term in terms {
      if let bytes = try? term.value(value, { _, _ in nil }), !bytes.isEmpty {
        // Later terms are never used.
        let text = String(decoding: bytes, as: UTF8.self)
        return choices + [(.literal(text), text)]
      }
      choices.append((term, Template([.place([term])]).text))
    }
    return choices
  }

  /// The scheme and authority of a URL, or an entry of `hosts`, as written: everything before the path.
  package var origin: Template {
    // A placeholder counts as one letter.
    var text = ""
    var own: [Part] = []
    for part in parts {
      guard case .literal(let piece) = part else {
        own.append(part)
        text += "x"
        continue
      }
      let whole = text + piece
      if let end = Self.endOfAuthority(whole) {
        let rest = whole[..<end].dropFirst(text.count)
        return Template(rest.isEmpty ? own : own + [.literal(String(rest))])
      }
      own.append(part)
      text = whole
    }
    return Template(own)
  }

  private static func endOfAuthority(_ text: String) -> String.Index? {
    guard let end = text.firstIndex(where: { "/?#".contains($0) }) else { return nil }
    guard text[..<end].hasSuffix(":"), text[end...].hasPrefix("//") else { return end }
    return text[end...].dropFirst(2).firstIndex { "/?#".contains($0) }
  }
}
