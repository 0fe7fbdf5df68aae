import CredmgrPlatform
import Testing

/// Runs the commands in each file in `Transcripts` with the built programs, and compares the output exactly.
///
/// `CREDMGR_RECORD=1` writes the output into the files and fails.
struct TranscriptTests {
  static let folder = Path.joining(Path.directory(of: #filePath) ?? "", "Transcripts")

  static let names: [String] = ((try? File.names(in: folder)) ?? []).filter { $0.hasSuffix(".txt") }

  @Test func transcriptsExist() { #expect(!Self.names.isEmpty) }

  @Test(arguments: names) func matchesTheRecording(_ name: String) throws {
    let path = Path.joining(Self.folder, name)
    let text = String(decoding: try File.read(path, limit: 1 << 20), as: UTF8.self)
    var transcript = try Transcript(parsing: text)
    try #require(transcript.text == text, "\(name) is not written as it would be recorded")
    let stage = try Stage(transcript)
    let records = Environment.value("CREDMGR_RECORD") != nil
    var commands = 0
    for (index, element) in transcript.elements.enumerated() {
      guard case .command(var command) = element else { continue }
      commands += 1
      let outcome = try stage.run(command)
      if !records, outcome != command.outcome {
        Issue.record("$ \(command.lines.joined(separator: "\n> "))\n\(outcome.text)instead of\n\(command.outcome.text)")
      }
      command.outcome = outcome
      transcript.elements[index] = .command(command)
    }
    try #require(commands > 0, "\(name) has no commands")
    if records {
      try File.replace(path, Array(transcript.text.utf8))
      Issue.record("\(name) was recorded")
    }
  }
}
