import Descriptors
import Text

/// What a person is told when something does not work: a sentence in lower case without a full stop, and what mends it.
///
/// The files beside this one make it of an error alone: they do not look at the disk or the environment. What mends a
/// fault of a file depends on both, so such a remedy is looked up by `Context.message`.
package struct Message: Sendable, Equatable {
  let text: String
  var hints: [Remedy]
  package let status: ExitStatus
  /// The mistakes in a file, each with its place, which are shown before it.
  let findings: [Finding]

  package init(
    _ text: String, hint: Remedy? = nil, hints: [Remedy] = [], findings: [Finding] = [], status: ExitStatus = .usage
  ) {
    self.text = Self.visible(text)
    self.hints = (hint.map { [$0] } ?? []) + hints
    self.findings = findings
    self.status = status
  }

  static func usage(_ text: String) -> Message { Message(text, status: .usage) }
  static func loginNeeded(_ text: String) -> Message { Message(text, status: .loginNeeded) }
  static func refused(_ text: String) -> Message { Message(text, status: .refused) }
  static func unreachable(_ text: String) -> Message { Message(text, status: .unreachable) }
  static func vault(_ text: String) -> Message { Message(text, status: .vault) }
  static func unexpected(_ text: String) -> Message { Message(text, status: .unexpected) }

  func hint(_ remedy: Remedy) -> Message { with(hints: hints + [remedy]) }

  func with(hints: [Remedy]) -> Message {
    var message = self
    message.hints = hints
    return message
  }

  /// - Parameter columns: where sentences are broken; `nil` for nowhere, so that each is one line for other programs.
  func lines(
    program: String = "credmgr", after line: CommandLine? = nil, style: Style = .plain, columns: Int? = nil
  ) -> String {
    func shown(_ sentence: String, as label: String, _ emphasis: (String) -> String) -> String {
      StandardError.lines("\(program): \(label) ", shown: "\(program): \(emphasis(label)) ", sentence, columns: columns)
    }
    return shown(text, as: "error:", style.red)
      + hints.compactMap { $0.sentence(after: line) }.map { shown($0, as: "hint:", style.bold) }.joined()
  }

  /// A text without anything that a terminal would act on, and without passwords in URLs: parts of it come from files,
  /// providers and the command line.
  static func visible(_ text: String) -> String {
    let text = withoutPasswords(text)
    if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return text }
    var visible = ""
    for scalar in text.unicodeScalars { visible.unicodeScalars.append(scalar.actsOnTerminals ? "\u{FFFD}" : scalar) }
    return visible
  }
}

/// The exit statuses of every command.
package enum ExitStatus: Int32, Sendable {
  case done = 0
  case unexpected = 1
  /// Usage, or input that does not parse or validate.
  case usage = 2
  case loginNeeded = 3
  case refused = 4
  case unreachable = 5
  /// The vault is locked, damaged or not ours.
  case vault = 6
  /// A command that takes this program's place cannot be run (env(1)).
  case notExecutable = 126
  /// There is no command to take this program's place (env(1)).
  case commandNotFound = 127
  case interrupted = 130
}
