import Commands
import Text

/// credmgr-descriptor(5), out of the Markdown of `docs/descriptors.md`: headings, paragraphs, lists, tables and code.
struct DescriptorPage {
  private(set) var page: ManualPage
  private var lines: ArraySlice<Substring>

  init(_ markdown: String, date: String) {
    page = ManualPage("credmgr-descriptor", 5, "how a provider behaves, in YAML", date: date)
    lines = markdown.split(separator: "\n", omittingEmptySubsequences: false)[...]
    page.section("description")
    while let line = lines.first { read(String(line)) }
    page.seeAlso([("credmgr", 1), ("credmgr-providers", 1)])
  }

  private mutating func read(_ line: String) {
    if line.hasPrefix("# ") || line.isEmpty {
      lines.removeFirst()
    } else if line.hasPrefix("## ") {
      page.section(Self.plain(String(line.dropFirst(3))))
      lines.removeFirst()
    } else if line.hasPrefix("###") {
      page.subsection(Self.plain(String(line.drop { $0 == "#" }.dropFirst())))
      lines.removeFirst()
    } else if line.hasPrefix("```") {
      lines.removeFirst()
      let code = take { !$0.hasPrefix("```") }
      lines = lines.dropFirst()
      page.literal(code)
    } else if line.hasPrefix("|") {
      table(take { $0.hasPrefix("|") })
    } else if line.hasPrefix("> ") {
      page.quotation(
        written: Self.inline(take { $0.hasPrefix("> ") }.map { $0.dropFirst(2) }.joined(separator: " ")))
    } else if Self.item(line) != nil {
      list(isNumbered: line.first?.isNumber == true)
    } else {
      page.paragraph(
        written: Self.inline(
          take { !$0.isEmpty && !["#", "|", "```", "> "].contains(where: $0.hasPrefix) && Self.item($0) == nil }
            .joined(separator: " ")))
    }
  }

  private mutating func take(_ belongs: (String) -> Bool) -> [String] {
    let taken = lines.prefix { belongs(String($0)) }.map(String.init)
    lines = lines.dropFirst(taken.count)
    return taken
  }

  // MARK: Lists and tables

  /// The text of an item of a list; `nil` for another line.
  private static func item(_ line: String) -> String? {
    if line.hasPrefix("- ") { return String(line.dropFirst(2)) }
    let number = line.prefix { $0.isNumber }
    let rest = line.dropFirst(number.count)
    return !number.isEmpty && rest.hasPrefix(". ") ? String(rest.dropFirst(2)) : nil
  }

  private mutating func list(isNumbered: Bool) {
    var items: [String] = []
    for line in take({ !$0.isEmpty && (Self.item($0) != nil || $0.hasPrefix(" ")) }) {
      if let item = Self.item(line) {
        items.append(item)
      } else {
        items[items.count - 1] += " " + line.drop { $0 == " " }
      }
    }
    page.list(
      written: items.map { ("", [Self.inline($0)]) }, kind: isNumbered ? "-enum -compact" : "-bullet -compact")
  }

  /// A table becomes a list by its first column: what it is, and in brackets the columns that are of one word.
  private mutating func table(_ rows: [String]) {
    let cells = rows.map(Self.cells)
    guard let head = cells.first else { return }
    page.list(
      written: cells.dropFirst(2).map { row in
        let others = zip(head, row).dropFirst().filter { !["", "–"].contains($0.1) }
        let meanings = others.filter { ["what it is", "what it does", "meaning"].contains($0.0) || head.count == 2 }
        let facts = others.filter { other in !meanings.contains { $0.0 == other.0 } }
        let bracket = facts.map { "\($0.0): \($0.1)" }.joined(separator: "; ")
        let text = meanings.map(\.1).joined(separator: " ")
        return (
          Self.term(row.first ?? ""),
          [Self.inline(bracket.isEmpty ? text : text.isEmpty ? bracket : "\(text) (\(bracket))")]
        )
      })
  }

  private static func cells(_ row: String) -> [String] {
    let mark = "\u{0}"
    return row.replacing("\\|", with: mark).split(separator: "|", omittingEmptySubsequences: false)
      .dropFirst().dropLast().map { cell in
        let text = cell.drop { $0 == " " }
        let end = text.lastIndex { $0 != " " }
        return String(end.map { text[...$0] } ?? "").replacing(mark, with: "|")
      }
  }

  // MARK: Words

  /// What stands before an item: argument of a macro.
  private static func term(_ text: String) -> String {
    let words = text.contains("`") ? "Sy " : ""
    return words + ManualPage.arguments(plain(text))
  }

  /// A text without marks.
  private static func plain(_ text: String) -> String {
    withoutLinks(text).replacing("`", with: "").replacing("*", with: "")
  }

  /// The words of links alone; those that lead to the network with their address.
  private static func withoutLinks(_ text: String) -> String {
    text.replacing(/\[([^\]]+)\]\(([^)]*)\)/) { match in
      match.output.2.hasPrefix("http") ? "\(match.output.1) <\(match.output.2)>" : String(match.output.1)
    }
  }

  /// Code and what is bold in bold.
  private static func inline(_ text: String) -> String {
    var result = ""
    for (index, piece) in withoutLinks(text).replacing("**", with: "`")
      .split(separator: "`", omittingEmptySubsequences: false).enumerated()
    {
      let escaped = ManualPage.escaped(String(piece))
      result +=
        index % 2 == 1
        ? "\\fB" + escaped + "\\fR"
        : escaped.replacing(/\*([^*\s][^*]*)\*/) { "\\fI" + $0.output.1 + "\\fR" }
    }
    return result
  }
}
