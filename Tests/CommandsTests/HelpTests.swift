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
    for text in Command.all.map(\.help) + [Help.beginning(), Help.overview] {
      for line in text.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
    }
  }

  /// An example, quoted text, and a word that is longer than a line stay whole, so that they can be copied.
  @Test(arguments: [24, 40, 60]) func helpFitsANarrowTerminal(_ width: Int) {
    let operations = Command.vault.operations.map { Command.vault.help(on: $0.name, width: width) }
    var whole: Set<String> = []
    for command in Command.all {
      for example in command.examples { whole.insert("    " + example.line) }
      for option in command.options + Command.common { whole.insert("  " + option.form) }
      for operation in command.operations { whole.insert("  " + operation.name + " " + (operation.operand ?? "")) }
    }
    let texts =
      Command.all.map { $0.help(width: width) } + operations
      + [Help.overview(width: width), Help.beginning(width: width)]
    for text in texts {
      for line in text.split(separator: "\n").map(String.init)
      where !whole.contains(line) && line.split(separator: " ").count > 1 && !Self.isQuoted(line) {
        #expect(line.count <= width, "\(line)")
      }
    }
  }

  /// Quoted text stays on one line.
  private static func isQuoted(_ line: String) -> Bool {
    let text = line.drop { $0 == " " }
    return text.hasPrefix("\"") && !text.dropFirst().prefix { $0 != "\"" }.isEmpty
      && text.dropFirst().drop { $0 != "\"" }.count <= 2
  }

  @Test func theHelpOfAnOperationIsAboutThatOperation() {
    for operation in Command.vault.operations {
      let text = Command.vault.help(on: operation.name)
      #expect(text.hasPrefix("usage: credmgr vault \(operation.name)"))
      for other in Command.vault.operations where other.name != operation.name {
        #expect(!text.contains("credmgr vault \(other.name)") && !text.contains("\(other.name): "), "\(text)")
      }
      for option in Command.vault.options {
        #expect(text.contains("  " + option.name) == operation.options.contains(option.name), "\(option.name)")
      }
    }
  }

  /// The examples come before the options.
  @Test func examplesComeFirst() throws {
    for command in Command.all {
      let example = try #require(command.help.firstRange(of: "examples:"))
      if let option = command.help.firstRange(of: "\n  --") { #expect(example.lowerBound < option.lowerBound) }
    }
  }

  /// The words of other programs lead to commands that exist.
  @Test func similarWordsMeanCommands() throws {
    for word in ["ls", "whoami", "auth", "signout", "get", "show", "run", "curl", "switch", "rm", "unlock", "docker"] {
      let meant = try #require(SimilarWords.command(for: word), "\(word)")
      #expect(Command.named(meant[0]) != nil && Command.named(word) == nil)
    }
    #expect(SimilarWords.command(for: ["auth", "login", "github"])?.meant == ["login"])
    #expect(SimilarWords.command(for: ["accounts", "ls"])?.count == 2)
    #expect(SimilarWords.command(for: ["provider", "list"])?.meant == ["providers"])
    #expect(SimilarWords.command(for: ["auth", "github"])?.count == 1)
    for word in ["check", "open", "close", "info", "rekey", "copy", "dump", "load", "passphrase"] {
      let meant = try #require(SimilarWords.vaultOperation(for: word), "\(word)")
      #expect(Command.vault.operation(meant) != nil && Command.vault.operation(word) == nil)
    }
  }

  @Test func similarOptionsMeanOptions() {
    #expect(SimilarWords.option(for: "--as", of: .login) == "--account")
    #expect(SimilarWords.option(for: "--dir", of: .use) == "--in")
    #expect(SimilarWords.option(for: "--dir", of: .login) == nil)
    #expect(SetupChoice.address("mcp.linear.app/mcp") == "https://mcp.linear.app/mcp")
    for word in ["gmail", "./mcp.yaml", "examples/a.yaml", "acme.yaml"] { #expect(SetupChoice.address(word) == nil) }
  }

  @Test func narrowTablesKeepTheAccount() {
    let rows = [
      ["PROVIDER", "ACCOUNT", "STATE", "KIND"],
      ["GitHub Enterprise Server", "ada.lovelace@example.org (default)", "ready to use", "personal access token"],
    ]
    #expect(Layout.grid(rows, width: 60, shortening: [3, 0, 1, 2], keeping: " (default)")[1].count <= 60)
    let narrow = Layout.grid(rows, width: 50, shortening: [3, 0, 1, 2], keeping: " (default)")
    #expect(narrow[1] == "GitHub …  ada.l… (default)  ready to use  persona…")
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
