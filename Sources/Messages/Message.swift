import CredmgrDescriptors
import CredmgrText

/// An error message: a sentence in lowercase without a full stop, and remedies.
///
/// The files in this directory use only the error, never the disk or the environment. `Context.message` in `Commands`
/// looks up remedies that depend on files.
package struct Message: Sendable, Equatable {
  /// The sentence and its items on one line.
  package let text: String
  /// The sentence without its items.
  package let sentence: String
  /// The parts of the fault, such as places, shown as a list below the sentence.
  package let items: [String]
  /// The remedies in order of preference. A message shows only the first that fits the failed command.
  package var hints: [Remedy]
  package let status: ExitStatus
  /// The mistakes in a file with their places, shown before the message.
  package let findings: [Finding]

  package init(
    _ sentence: String, items: [String] = [], hint: Remedy? = nil, hints: [Remedy] = [], findings: [Finding] = [],
    status: ExitStatus = .usage
  ) {
    self.sentence = Self.visible(sentence)
    self.items = items.map(Self.visible)
    text = self.sentence + (items.isEmpty ? "" : ": " + self.items.joined(separator: "; "))
    self.hints = (hint.map { [$0] } ?? []) + hints
    self.findings = findings
    self.status = status
  }

  package static func usage(_ sentence: String, items: [String] = []) -> Message {
    Message(sentence, items: items, status: .usage)
  }
  package static func loginNeeded(_ text: String) -> Message { Message(text, status: .loginNeeded) }
  package static func refused(_ text: String) -> Message { Message(text, status: .refused) }
  package static func unreachable(_ text: String) -> Message { Message(text, status: .unreachable) }
  package static func vault(_ text: String) -> Message { Message(text, status: .vault) }
  package static func unexpected(_ text: String) -> Message { Message(text, status: .unexpected) }

  package func hint(_ remedy: Remedy) -> Message { with(hints: hints + [remedy]) }

  package func adding(_ end: String) -> Message {
    Message(sentence + end, items: items, hints: hints, findings: findings, status: status)
  }

  package func with(hints: [Remedy]) -> Message {
    var message = self
    message.hints = hints
    return message
  }

  /// Returns the hint to show; `nil` if no remedy fits the failed command.
  package func hint(after line: (any FailedCommand)? = nil) -> String? {
    for remedy in hints { if let sentence = remedy.sentence(after: line) { return sentence } }
    return nil
  }

  /// Removes control characters and passwords in URLs, because files, providers and the user supply parts of messages.
  package static func visible(_ text: String) -> String {
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
  /// Wrong usage, or input that is invalid.
  case usage = 2
  case loginNeeded = 3
  case refused = 4
  case unreachable = 5
  /// The vault is locked or damaged, or belongs to another user.
  case vault = 6
  /// The command that should replace this program cannot be run (env(1)).
  case notExecutable = 126
  /// The command that should replace this program does not exist (env(1)).
  case commandNotFound = 127
  case interrupted = 130
}
