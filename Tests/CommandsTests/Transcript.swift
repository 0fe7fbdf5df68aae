/// A text file with a user's commands and the programs' output.
///
/// The script comes first, followed by files:
///
///     # A comment.
///
///     $ credmgr token notes <input
///     > --json                      (a command continues)
///     | a line of standard output
///     ! a line of standard error
///     = 3                           (the exit status, unless it is 0)
///
///     -- file NAME --               (a file in the directory of the commands)
///     -- answer METHOD PATH --      (the server's answers, in order; the last one repeats)
///
/// A `\` after `|` or `!` means that the last line of output has no line break.
struct Transcript: Equatable {
  enum Element: Equatable {
    /// A comment or an empty line.
    case note(String)
    case command(Command)
  }

  struct Command: Equatable {
    var lines: [String]
    var outcome = Outcome()
  }

  /// The results of a command.
  struct Outcome: Equatable {
    var output = ""
    var errors = ""
    var status: Int32 = 0
  }

  /// A file, or an answer of the server.
  struct Section: Equatable {
    let kind: String
    let name: String
    let text: String
  }

  struct Malformed: Error, CustomStringConvertible {
    let line: Int
    let description: String
  }

  var elements: [Element] = []
  private(set) var sections: [Section] = []

  init(parsing text: String) throws {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    guard lines.last == "" else { throw Malformed(line: lines.count, description: "the last line does not end") }
    let end = lines.firstIndex { $0.hasPrefix("-- ") } ?? lines.count - 1
    for (index, line) in lines[..<end].enumerated() { try read(line, index + 1) }
    var index = end
    while index < lines.count - 1 {
      let words = lines[index].split(separator: " ").map(String.init)
      guard words.count >= 4, words.first == "--", words.last == "--", ["file", "answer"].contains(words[1]) else {
        throw Malformed(line: index + 1, description: "neither \"-- file NAME --\" nor \"-- answer METHOD PATH --\"")
      }
      let next = lines[(index + 1)...].firstIndex { $0.hasPrefix("-- ") } ?? lines.count - 1
      let body = lines[(index + 1)..<next].map { $0 + "\n" }.joined()
      sections.append(Section(kind: words[1], name: words[2..<(words.count - 1)].joined(separator: " "), text: body))
      index = next
    }
  }

  private mutating func read(_ line: String, _ number: Int) throws {
    if line.isEmpty || line.hasPrefix("#") {
      elements.append(.note(line))
      return
    }
    let text = String(line.dropFirst(2))
    if line.hasPrefix("$ ") {
      elements.append(.command(Command(lines: [text])))
      return
    }
    guard case .command(var command)? = elements.last else {
      throw Malformed(line: number, description: "there is no command before it")
    }
    switch line.first {
    case ">": command.lines.append(text)
    case "|": command.outcome.output = Self.appended(text, to: command.outcome.output)
    case "!": command.outcome.errors = Self.appended(text, to: command.outcome.errors)
    case "=":
      guard let status = Int32(text) else { throw Malformed(line: number, description: "no exit status") }
      command.outcome.status = status
    default: throw Malformed(line: number, description: "none of \"$\", \">\", \"|\", \"!\", \"=\", \"#\"")
    }
    elements[elements.count - 1] = .command(command)
  }

  private static func appended(_ text: String, to lines: String) -> String {
    text == "\\" ? String(lines.dropLast()) : lines + text + "\n"
  }

  /// The transcript as text.
  var text: String {
    var text = ""
    for element in elements {
      switch element {
      case .note(let line): text += line + "\n"
      case .command(let command):
        for (index, line) in command.lines.enumerated() { text += (index == 0 ? "$ " : "> ") + line + "\n" }
        text += command.outcome.text
      }
    }
    for section in sections { text += "-- \(section.kind) \(section.name) --\n" + section.text }
    return text
  }
}

extension Transcript.Outcome {
  /// The results as text of a transcript.
  var text: String { Self.marked(output, "|") + Self.marked(errors, "!") + (status == 0 ? "" : "= \(status)\n") }

  private static func marked(_ text: String, _ mark: String) -> String {
    guard !text.isEmpty else { return "" }
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    if lines.last == "" { lines.removeLast() } else { lines.append("\\") }
    return lines.map { $0.isEmpty ? mark + "\n" : mark + " " + $0 + "\n" }.joined()
  }
}
