import Descriptors
import Text

/// What a person is told when something does not work: a sentence in lower case without a full stop, and what mends it.
package struct Message: Sendable, Equatable {
  /// What is wrong.
  let text: String
  /// What to do, in a line each.
  var hints: [Remedy]
  /// The exit status of the program.
  package let status: ExitStatus
  /// The mistakes in a file, each with its place, which are shown before it.
  var findings: [Finding] = []

  /// A message.
  package init(_ text: String, hint: Remedy? = nil, status: ExitStatus) {
    self.init(text, hints: hint.map { [$0] } ?? [], status: status)
  }

  /// A message with several things to do.
  package init(_ text: String, hints: [Remedy], status: ExitStatus) {
    self.text = Self.visible(text)
    self.hints = hints
    self.status = status
  }

  /// The same with other things to do.
  func with(hints: [Remedy]) -> Message {
    var message = self
    message.hints = hints
    return message
  }

  /// The lines on standard error.
  ///
  /// - Parameters:
  ///   - program: the name in front of each sentence.
  ///   - line: the command that failed, with which hints are completed.
  ///   - columns: where sentences are broken; `nil` for nowhere, so that each is one line for other programs.
  func lines(
    program: String = "credmgr", after line: CommandLine? = nil, style: Style = .plain, columns: Int? = nil
  ) -> String {
    func shown(_ label: String, _ shown: String, _ sentence: String) -> String {
      StandardError.lines("\(program): \(label) ", shown: "\(program): \(shown) ", sentence, columns: columns)
    }
    return shown("error:", style.red("error:"), text)
      + hints.compactMap { $0.sentence(after: line) }.map { shown("hint:", style.bold("hint:"), $0) }.joined()
  }

  /// A text without anything that a terminal would act on: parts of it come from files and providers.
  static func visible(_ text: String) -> String {
    if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return text }
    var visible = ""
    for scalar in text.unicodeScalars {
      visible.unicodeScalars.append(scalar.actsOnTerminals ? "\u{FFFD}" : scalar)
    }
    return visible
  }
}
