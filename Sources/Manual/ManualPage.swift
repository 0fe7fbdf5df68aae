import Commands

/// A page in mdoc(7), the language of manuals that says what a word is and not how it looks.
struct ManualPage {
  let name: String
  let section: Int
  private(set) var text: String
  /// Whether the next text begins a paragraph: `Pp` may stand neither behind a heading nor before a list.
  private var isFresh = true

  var fileName: String { "\(name).\(section)" }

  /// - Parameter others: other names by which the page is found.
  init(_ name: String, _ section: Int, _ summary: String, also others: [String] = [], date: String) {
    self.name = name
    self.section = section
    text = """
      .\\" Written by credmgr-manual, from what credmgr's own help is made of.
      .Dd \(date)
      .Dt \(name.uppercased()) \(section)
      .Os
      .Sh NAME
      \(([name] + others).map { ".Nm " + $0 }.joined(separator: " ,\n"))
      .Nd \(Self.escaped(summary))

      """
  }

  // MARK: Characters

  /// A text in which roff(7) sees no escape, and no character beyond ASCII.
  static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": result += "\\e"
      // A plain hyphen may become another character, and could not be copied to a shell.
      case "-": result += "\\-"
      case "'": result += "\\(aq"
      case "`": result += "\\(ga"
      case "^": result += "\\(ha"
      case "~": result += "\\(ti"
      case "…": result += "..."
      case _ where scalar.isASCII: result.unicodeScalars.append(scalar)
      default:
        let digits = String(scalar.value, radix: 16, uppercase: true)
        result += "\\[u" + String(repeating: "0", count: max(4 - digits.count, 0)) + digits + "]"
      }
    }
    return result
  }

  /// Arguments of a macro, of which none is a macro itself.
  static func arguments(_ text: String) -> String {
    text.split(separator: " ").map { word in
      let isLikeMacro =
        (2...3).contains(word.count) && word.allSatisfy { $0.isLetter } && word.first?.isUppercase == true
      let mark = isLikeMacro || word.allSatisfy { ".,:;()[]?!|".contains($0) } ? "\\&" : ""
      return mark + escaped(String(word)).replacing("\"", with: "\\(dq")
    }.joined(separator: " ")
  }

  // MARK: Pieces

  /// Words as they are in mdoc, in lines that no macro begins.
  private mutating func write(_ text: String) {
    for sentence in Self.sentences(text) {
      for line in Layout.wrapped(sentence, width: 78).split(separator: "\n") {
        self.text += (line.hasPrefix(".") || line.hasPrefix("'") ? "\\&" : "") + line + "\n"
      }
    }
  }

  /// mdoc(7) wants each sentence on a line of its own: that is how it knows where one ends.
  private static func sentences(_ text: String) -> [String] {
    var sentences: [String] = []
    var words: [Substring] = []
    for word in text.split(separator: " ") {
      words.append(word)
      let end = word.replacing("\\fR", with: "").last { !")\"]".contains($0) }
      if let end, ".?!".contains(end) {
        sentences.append(words.joined(separator: " "))
        words = []
      }
    }
    return sentences + (words.isEmpty ? [] : [words.joined(separator: " ")])
  }

  /// A line that is a macro.
  mutating func macro(_ line: String) {
    text += "." + line + "\n"
    isFresh = true
  }

  mutating func section(_ title: String) { macro("Sh " + Self.arguments(title.uppercased())) }

  mutating func subsection(_ title: String) { macro("Ss " + Self.arguments(title)) }

  /// A paragraph.
  mutating func paragraph(_ words: String) { paragraph(written: Self.escaped(words)) }

  /// A paragraph in mdoc.
  mutating func paragraph(written words: String) {
    if !isFresh { text += ".Pp\n" }
    write(words)
    isFresh = false
  }

  /// Somebody else's words, in mdoc.
  mutating func quotation(written words: String) {
    text += ".Bd -ragged -offset indent\n"
    write(words)
    text += ".Ed\n"
    isFresh = false
  }

  /// Lines that stay as they are.
  mutating func literal(_ lines: [String]) {
    text += ".Bd -literal -offset 2n\n"
    for line in lines {
      let line = Self.escaped(line)
      text += (line.hasPrefix(".") ? "\\&" : "") + line + "\n"
    }
    text += ".Ed\n"
    isFresh = false
  }

  /// A command as it is typed, on as many lines as a terminal of 80 columns needs.
  mutating func command(_ line: String) {
    literal(Layout.shell(line, width: Layout.width - Self.literalIndent))
  }

  /// The columns before what stays as it is: those of every text, and `-offset 2n`.
  private static let literalIndent = 7

  /// A list of words and what they mean; both in mdoc, the words as arguments of `It`.
  mutating func list(written rows: [(term: String, meaning: [String])], kind: String = "-tag -width Ds") {
    text += ".Bl \(kind)\n"
    for row in rows {
      text += (".It " + row.term).trimmingEnd() + "\n"
      for (index, meaning) in row.meaning.enumerated() {
        if index > 0 { text += ".Pp\n" }
        write(meaning)
      }
    }
    text += ".El\n"
    isFresh = false
  }

  /// References to other pages.
  mutating func seeAlso(_ pages: [(name: String, section: Int)]) {
    section("see also")
    let others = pages.filter { $0.name != name }.sorted { ($0.section, $0.name) < ($1.section, $1.name) }
    for (index, page) in others.enumerated() {
      text += ".Xr \(page.name) \(page.section)" + (index < others.count - 1 ? " ,\n" : "\n")
    }
  }
}

extension String {
  fileprivate func trimmingEnd() -> String {
    var text = self
    while text.last == " " { text.removeLast() }
    return text
  }
}
