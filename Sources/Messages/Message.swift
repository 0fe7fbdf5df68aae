import HTTP

/// What a person is told when something does not work: a sentence in lower case without a full stop, and the command that
/// mends it.
public struct Message: Sendable, Equatable {
  /// What is wrong.
  public let text: String
  /// What to do first, where there is something to do.
  public var hint: String? { hints.first }
  /// What to do, in a line each.
  public let hints: [String]
  /// The exit status of the program.
  public let status: ExitStatus

  /// A message.
  public init(_ text: String, hint: String? = nil, status: ExitStatus) {
    self.init(text, hints: hint.map { [$0] } ?? [], status: status)
  }

  /// A message with several things to do.
  public init(_ text: String, hints: [String], status: ExitStatus) {
    self.text = Self.visible(text)
    self.hints = hints.map(Self.visible)
    self.status = status
  }

  /// The same with something else to do.
  public func with(hint: String) -> Message { Message(text, hint: hint, status: status) }

  /// The same with other words in what there is to do.
  public func exchanging(_ words: String, for others: String) -> Message {
    Message(text, hints: hints.map { $0.exchanging(words, for: others) }, status: status)
  }

  /// The lines on standard error.
  ///
  /// - Parameters:
  ///   - program: the name in front of each sentence.
  ///   - columns: where sentences are broken; `nil` for nowhere, so that each is one line for other programs.
  public func lines(program: String = "credmgr", style: Style = .plain, columns: Int? = nil) -> String {
    func line(_ label: String, _ shown: String, _ sentence: String) -> String {
      StandardError.lines("\(program): \(label) ", shown: "\(program): \(shown) ", sentence, columns: columns)
    }
    return line("error:", style.red("error:"), text)
      + hints.map { line("hint:", style.bold("hint:"), $0) }.joined()
  }

  /// A text without anything that a terminal would act on: parts of it come from files and providers.
  public static func visible(_ text: String) -> String {
    if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return text }
    var visible = ""
    for scalar in text.unicodeScalars {
      visible.unicodeScalars.append(scalar.actsOnTerminals ? "\u{FFFD}" : scalar)
    }
    return visible
  }
}

/// The exit statuses of every command.
public enum ExitStatus: Int32, Sendable {
  /// Done.
  case done = 0
  /// Something unexpected.
  case unexpected = 1
  /// Usage, or input that does not parse or validate.
  case usage = 2
  /// A login is needed.
  case loginNeeded = 3
  /// The provider refused.
  case refused = 4
  /// The provider could not be reached.
  case unreachable = 5
  /// The vault is locked, damaged or not ours.
  case vault = 6
  /// A command that takes this program's place cannot be run (env(1)).
  case notExecutable = 126
  /// There is no command to take this program's place (env(1)).
  case commandNotFound = 127
  /// Interrupted.
  case interrupted = 130
}

func quoted(_ text: String) -> String { "\"" + text + "\"" }

func listed(_ names: some Sequence<String>) -> String { names.map(quoted).joined(separator: ", ") }

/// What a person reads who has to wait, which is never less than that.
public func patience(_ seconds: Int64) -> String { seconds < 600 ? "\(seconds) s" : duration(seconds + 59) }

/// The first few of names of which there may be thousands, and how many more there are.
public func some(_ names: [String]) -> String {
  let shown = names.count > 6 ? 5 : names.count
  return listed(names.prefix(shown)) + (names.count > shown ? " and \(names.count - shown) more" : "")
}

/// What a person reads for a count of seconds.
public func duration(_ seconds: Int64) -> String {
  switch seconds {
  case ..<60: "\(seconds) s"
  case ..<3600: "\(seconds / 60) min"
  case ..<86_400: seconds / 60 % 60 == 0 ? "\(seconds / 3600) h" : "\(seconds / 3600) h \(seconds / 60 % 60) min"
  default: seconds / 3600 % 24 == 0 ? "\(seconds / 86_400) d" : "\(seconds / 86_400) d \(seconds / 3600 % 24) h"
  }
}
