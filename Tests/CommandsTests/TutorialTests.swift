import CredmgrPlatform
import Testing

/// Compares `docs/write-a-descriptor.md` with the transcript `tutorial.txt`: its commands, their output, and its files.
struct TutorialTests {
  private static let folder = Path.directory(of: #filePath) ?? ""

  private struct Block {
    let language: String
    var lines: [String] = []
  }

  /// Returns the code blocks of the tutorial.
  private static func blocks() throws -> [Block] {
    let path = Path.joining(folder, "../../docs/write-a-descriptor.md")
    let text = String(decoding: try File.read(path, limit: 1 << 20), as: UTF8.self)
    var blocks: [Block] = []
    var isCode = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
      if line.hasPrefix("```") {
        isCode.toggle()
        if isCode { blocks.append(Block(language: String(line.dropFirst(3)))) }
      } else if isCode {
        blocks[blocks.count - 1].lines.append(line)
      }
    }
    return blocks
  }

  private static func transcript() throws -> Transcript {
    let path = Path.joining(TranscriptTests.folder, "tutorial.txt")
    return try Transcript(parsing: String(decoding: try File.read(path, limit: 1 << 20), as: UTF8.self))
  }

  /// Returns the first line of `wanted` that does not follow in `found`; `nil` if all do, in the same order.
  private static func firstMissing(_ wanted: [String], in found: [String]) -> String? {
    var rest = found[...]
    for line in wanted {
      guard let index = rest.firstIndex(of: line) else { return line }
      rest = rest[(index + 1)...]
    }
    return nil
  }

  @Test func theTutorialMatchesItsTranscript() throws {
    var commands: [String] = []
    var said: [String] = []
    for line in try Self.blocks().filter({ $0.language == "console" }).flatMap(\.lines) {
      if line.hasPrefix("$ ") {
        commands.append(String(line.dropFirst(2)))
      } else if commands.last?.hasSuffix("\\") == true {
        commands.append(line)
      } else {
        said.append(line)
      }
    }
    try #require(commands.count > 10 && said.count > 20)
    var played: [String] = []
    var answered: [String] = []
    for case .command(let command) in try Self.transcript().elements {
      played += command.lines
      answered += (command.outcome.output + command.outcome.errors).split(separator: "\n").map(String.init)
    }
    #expect(Self.firstMissing(commands, in: played) == nil)
    #expect(Self.firstMissing(said, in: answered) == nil)
  }

  @Test func files() throws {
    let files = try Self.transcript().sections.filter { $0.kind == "file" }.map(\.text)
    let shown = try Self.blocks().filter { $0.language == "yaml" }.map { $0.lines.map { $0 + "\n" }.joined() }
    try #require(shown.count == 2)
    for text in shown { #expect(files.contains(text)) }
  }
}
