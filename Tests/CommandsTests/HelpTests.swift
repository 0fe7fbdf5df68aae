import CredmgrPlatform
import Testing

@testable import CredmgrCommands

@Suite struct HelpTests {
  @Test func everyCommandHasAnExample() {
    for command in Command.all { #expect(!command.examples.isEmpty, "\(command.name)") }
  }

  @Test func theNamesOfCommandsDiffer() { #expect(Set(Command.all.map(\.name)).count == Command.all.count) }

  @Test func everyCommandIsFoundByItsName() {
    for command in Command.all + Command.hidden { #expect(Command.named(command.name)?.name == command.name) }
    #expect(Command.named("nothing")?.name == nil)
  }

  /// credmgr parses each example, and knows its providers.
  @Test func examplesAreUnderstood() throws {
    for command in Command.all {
      for example in command.examples {
        let words = try #require(Self.words(of: example.line), "\(example.line)")
        #expect(words.first == command.name, "\(example.line)")
        let invocation = try Invocation(command, words.dropFirst())
        #expect(!invocation.asksForHelp)
        guard command.operands.hasPrefix("ID") || command.operands.hasPrefix("[ID]"),
          let first = invocation.operands.first, !first.hasPrefix("-"), !first.contains(".")
        else { continue }
        let identifier = String(first.prefix { $0 != ":" && $0 != "=" })
        let file = Path.joining(Self.root, "providers/\(identifier).yaml")
        #expect(File.exists(file), "\(example.line)")
      }
    }
  }

  @Test func helpFitsEightyColumns() {
    for text in Command.all.map(\.help) + [Help.beginning, Help.overview] {
      for line in text.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
    }
  }

  /// An example stays on one line, so that it can be copied.
  @Test func helpFitsANarrowTerminal() {
    for text in Command.all.map({ $0.help(width: 60) }) + [Help.overview(width: 60)] {
      let examples = Command.all.flatMap { $0.examples.map { "    " + $0.line } }
      for line in text.split(separator: "\n").map(String.init) where !examples.contains(line) {
        #expect(line.count <= 60, "\(line)")
      }
    }
  }

  @Test(arguments: [
    ("one two three", 0, "one two\n  three"), ("a \"b c d e\" f", 0, "a\n  \"b c d e\"\n  f"),
    ("one two", 6, "one\n  two"), ("", 0, ""), ("longerthanthat x", 0, "longerthanthat\n  x"),
  ]) func linesAreBroken(_ text: String, _ first: Int, _ expected: String) {
    #expect(Layout.wrapped(text, width: 7, first: first, indent: "  ") == expected)
  }

  @Test func rowsAreOneLineEachForOtherPrograms() {
    let text = String(repeating: "word ", count: 60)
    #expect(Layout.table([("a", text)], width: nil).split(separator: "\n").count == 1)
    #expect(Layout.table([("a", text)], width: 80).split(separator: "\n").allSatisfy { $0.count <= 80 })
  }

  static let root = Path.directory(of: Path.directory(of: Path.directory(of: #filePath) ?? "") ?? "") ?? ""

  /// Returns the words after `credmgr` in a shell line, up to the next command; `nil` without credmgr.
  private static func words(of line: String) -> [String]? {
    guard let start = line.firstRange(of: "credmgr ") else { return nil }
    var words: [String] = []
    for word in line[start.upperBound...].split(separator: " ").map(String.init) {
      if ["|", "&&"].contains(word) { break }
      if word.hasPrefix("<") || word.hasPrefix(">") { continue }
      let end = word.firstIndex { ")\"".contains($0) }
      words.append(String(end.map { word[..<$0] } ?? word[...]))
      if end != nil { break }
    }
    return words
  }
}
