import CredmgrPlatform
import CredmgrText

/// A remedy for a fault: a sentence that contains commands as values.
///
/// Each command is a list of arguments. Showing the sentence quotes them for a shell and adds the options of the failed
/// command.
package struct Remedy: Sendable, Equatable {
  package enum Part: Sendable, Equatable {
    case words(String)
    /// Commands that each run only if the previous one succeeded.
    case commands([[String]])
    /// A command that reads a file of the user.
    case reading([String])
    /// A shell line that is more than a command: a redirection, a substitution or an assignment.
    case shell(String)
    /// The failed command with other options; the first names the option to replace.
    case again([String])
    /// The failed command with a mistyped word corrected.
    case correction(of: String, to: String)
    /// The failed command without an option and its value, and with `instead` added.
    case without(String, instead: [String])
    /// A placeholder for a fault of a file. `Context` looks at the file and replaces it with a command.
    case mending(POSIXError, path: String)
  }

  package private(set) var parts: [Part]

  package init(parts: [Part]) { self.parts = parts }

  /// Returns the remedy for a fault of a file, determined when it is shown.
  package static func mending(_ error: POSIXError, at path: String) -> Remedy {
    Remedy(parts: [.mending(error, path: path)])
  }

  /// All commands in the sentence.
  package var commands: [[String]] {
    parts.flatMap { part in
      switch part {
      case .commands(let commands): commands
      case .reading(let command): [command]
      default: [[String]]()
      }
    }
  }

  /// Returns the sentence, completed from the failed command `line`; `nil` if the remedy does not fit that command.
  package func sentence(after line: (any FailedCommand)? = nil) -> String? {
    var sentence = ""
    for part in parts {
      switch part {
      case .words(let text): sentence += text
      case .reading(let command): sentence += quoted(shell([line?.completing(login: command) ?? command]) + " <FILE")
      case .shell(let text): sentence += quoted(text)
      case .commands(let commands): sentence += quoted(shell(commands.map { line?.completing(login: $0) ?? $0 }))
      case .again(let options):
        // An account option only makes sense for a command that has it.
        if let line, !line.has(options[0]), options[0] == "--account" { return nil }
        sentence += run(line?.with(options)) ?? "add " + quoted(shell([options]))
      case .correction(let word, let meant):
        guard let command = run(line?.replacing(word, with: meant)) else { return nil }
        sentence += command
      case .without(let option, let instead):
        let words = instead.isEmpty ? "omit that option" : "add " + quoted(shell([instead]))
        sentence += run(line?.without(option, instead: instead)) ?? words
      case .mending(_, let path):
        sentence += "run \(quoted(shell([["ls", "-ld", path]]))) to examine the file, or use another one"
      }
    }
    return Message.visible(sentence)
  }

  private func run(_ command: String?) -> String? { command.map { "run " + quoted($0) } }

  private func shell(_ commands: [[String]]) -> String {
    commands.map { $0.map(argument).joined(separator: " ") }.joined(separator: " && ")
  }
}

/// The command line that failed, which a remedy can repeat with a change.
///
/// Each method returns `nil` if the change does not fit the command, or if the line must not be repeated.
package protocol FailedCommand {
  /// Whether the command has an option.
  func has(_ option: String) -> Bool
  /// Returns the line with an option and its value added or replaced.
  func with(_ added: [String]) -> String?
  /// Returns the line without an option and its value, and with `instead` added.
  func without(_ option: String, instead: [String]) -> String?
  /// Returns the line with a mistyped word corrected.
  func replacing(_ word: String, with meant: String) -> String?
  /// Adds the options of a failed login to a login suggested at the same provider.
  func completing(login command: [String]) -> [String]
}

extension [Remedy] {
  /// Suggests the failed command with a correction; empty if `meant` is `nil`.
  package static func correcting(_ word: String, to meant: String?) -> [Remedy] {
    meant.map { [Remedy(parts: [.correction(of: word, to: $0)])] } ?? []
  }

  /// Returns the remedies without a command that starts with these arguments.
  package func without(_ command: String...) -> [Remedy] {
    filter { remedy in !remedy.commands.contains { $0.starts(with: command) } }
  }
}

extension Remedy: ExpressibleByStringInterpolation {
  package init(stringLiteral text: String) { parts = [.words(text)] }

  package init(stringInterpolation: StringInterpolation) { parts = stringInterpolation.parts }

  package static func + (left: Remedy, right: Remedy) -> Remedy { Remedy(parts: left.parts + right.parts) }

  /// Builds remedies such as `"\(run: "rm", path), which leads nowhere"`.
  package struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var parts: [Part] = []

    package init(literalCapacity: Int, interpolationCount: Int) {}

    package mutating func appendLiteral(_ text: String) { if !text.isEmpty { parts.append(.words(text)) } }

    package mutating func appendInterpolation(_ text: some CustomStringConvertible) { appendLiteral(text.description) }

    package mutating func appendInterpolation(_ remedy: Remedy) { parts += remedy.parts }

    package mutating func appendInterpolation(command words: String...) { parts.append(.commands([words])) }
    package mutating func appendInterpolation(command words: [String]) { parts.append(.commands([words])) }

    package mutating func appendInterpolation(run words: String...) { appendInterpolation(all: [words]) }
    package mutating func appendInterpolation(run words: [String]) { appendInterpolation(all: [words]) }

    package mutating func appendInterpolation(credmgr words: String...) {
      appendInterpolation(all: [["credmgr"] + words])
    }
    package mutating func appendInterpolation(credmgr words: [String]) {
      appendInterpolation(all: [["credmgr"] + words])
    }

    package mutating func appendInterpolation(all commands: [[String]]) {
      parts += [.words("run "), .commands(commands)]
    }

    /// Inserts a command whose standard input is a file.
    package mutating func appendInterpolation(reading words: String...) {
      parts += [.words("run "), .reading(["credmgr"] + words)]
    }

    package mutating func appendInterpolation(shell line: String) { parts += [.words("run "), .shell(line)] }

    package mutating func appendInterpolation(export name: String, _ value: String) {
      appendInterpolation(shell: "export \(name)=\(argument(value))")
    }

    /// Inserts the failed command with an option and its value.
    package mutating func appendInterpolation(add options: String...) { parts.append(.again(options)) }
    package mutating func appendInterpolation(add options: [String]) { parts.append(.again(options)) }
  }
}

/// Returns the option that names an account; empty for the default account.
package func accountOption(_ name: String?) -> [String] { name.map { ["--account", $0] } ?? [] }
