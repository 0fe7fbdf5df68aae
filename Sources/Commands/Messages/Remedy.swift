import Platform
import Text

/// What a person can do about a fault: a sentence whose commands are values.
///
/// A command is a list of arguments, which is quoted for a shell where the sentence is shown, and completed with what
/// the person typed in the command that failed.
package struct Remedy: Sendable, Equatable {
  enum Part: Sendable, Equatable {
    case words(String)
    /// Commands of which each runs if the one before it succeeded.
    case commands([[String]])
    /// A line for a shell that is more than a list of arguments: a redirection, a substitution, an assignment.
    case shell(String)
    /// The command that failed, with other options; the first one names the option that is replaced.
    case again([String])
    /// The command that failed, with another word in the place of the mistyped one.
    case correction(of: String, to: String)
    /// The command that failed without an option and its value, and with others in their place.
    case without(String, instead: [String])
    /// What mends a fault of a file: `Context` looks at the file, and puts a command in the place of this.
    case mending(POSIXError, path: String)
  }

  private(set) var parts: [Part]

  /// What mends a fault of a file, by what is found there when it is told.
  static func mending(_ error: POSIXError, at path: String) -> Remedy { Remedy(parts: [.mending(error, path: path)]) }

  /// The command lines in it that are lists of arguments.
  var commands: [[String]] {
    parts.flatMap { part in if case .commands(let commands) = part { commands } else { [[String]]() } }
  }

  /// - Parameter line: the command that failed, which completes the remedy.
  /// - Returns: `nil` for what does not fit the command that failed.
  func sentence(after line: CommandLine? = nil) -> String? {
    var sentence = ""
    for part in parts {
      switch part {
      case .words(let text): sentence += text
      case .shell(let text): sentence += quoted(text)
      case .commands(let commands): sentence += quoted(shell(commands.map { line?.completing(login: $0) ?? $0 }))
      case .again(let options):
        // What names the account of one command names nobody in another.
        if let line, !line.has(options[0]), options[0] == "--account" { return nil }
        sentence += run(line?.with(options)) ?? "add " + quoted(shell([options]))
      case .correction(let word, let meant):
        guard let command = run(line?.replacing(word, with: meant)) else { return nil }
        sentence += command
      case .without(let option, let instead):
        let words = instead.isEmpty ? "leave " + quoted(option) + " out" : "add " + quoted(shell([instead]))
        sentence += run(line?.without(option, instead: instead)) ?? words
      case .mending(_, let path):
        sentence += "name another file; \(quoted(shell([["ls", "-ld", path]]))) shows what this one is"
      }
    }
    return Message.visible(sentence)
  }

  private func run(_ command: String?) -> String? { command.map { "run " + quoted($0) } }

  private func shell(_ commands: [[String]]) -> String {
    commands.map { $0.map(argument).joined(separator: " ") }.joined(separator: " && ")
  }
}

extension [Remedy] {
  /// The command that failed, as it was probably meant; nothing where no near miss is known.
  static func correcting(_ word: String, to meant: String?) -> [Remedy] {
    meant.map { [Remedy(parts: [.correction(of: word, to: $0)])] } ?? []
  }

  /// The remedies that do not run a command that begins with these arguments.
  func without(_ command: String...) -> [Remedy] {
    filter { remedy in !remedy.commands.contains { $0.starts(with: command) } }
  }
}

extension Remedy: ExpressibleByStringInterpolation {
  package init(stringLiteral text: String) { parts = [.words(text)] }

  package init(stringInterpolation: StringInterpolation) { parts = stringInterpolation.parts }

  static func + (left: Remedy, right: Remedy) -> Remedy { Remedy(parts: left.parts + right.parts) }

  /// `"\(run: "rm", path), which leads nowhere"`.
  package struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var parts: [Part] = []

    package init(literalCapacity: Int, interpolationCount: Int) {}

    package mutating func appendLiteral(_ text: String) { if !text.isEmpty { parts.append(.words(text)) } }

    package mutating func appendInterpolation(_ text: some CustomStringConvertible) { appendLiteral(text.description) }

    mutating func appendInterpolation(_ remedy: Remedy) { parts += remedy.parts }

    mutating func appendInterpolation(command words: String...) { parts.append(.commands([words])) }
    mutating func appendInterpolation(command words: [String]) { parts.append(.commands([words])) }

    mutating func appendInterpolation(run words: String...) { appendInterpolation(all: [words]) }
    mutating func appendInterpolation(run words: [String]) { appendInterpolation(all: [words]) }

    package mutating func appendInterpolation(credmgr words: String...) {
      appendInterpolation(all: [["credmgr"] + words])
    }
    mutating func appendInterpolation(credmgr words: [String]) { appendInterpolation(all: [["credmgr"] + words]) }

    mutating func appendInterpolation(all commands: [[String]]) { parts += [.words("run "), .commands(commands)] }

    mutating func appendInterpolation(shell line: String) { parts += [.words("run "), .shell(line)] }

    mutating func appendInterpolation(export name: String, _ value: String) {
      appendInterpolation(shell: "export \(name)=\(argument(value))")
    }

    /// The command that failed, with an option and its value.
    package mutating func appendInterpolation(add options: String...) { parts.append(.again(options)) }
    mutating func appendInterpolation(add options: [String]) { parts.append(.again(options)) }
  }
}
