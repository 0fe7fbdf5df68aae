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
  /// The word that was mistyped, where one is known that may have been meant.
  public let mistyped: Mistyped?

  /// A word, and the one that was probably meant.
  public struct Mistyped: Sendable, Equatable {
    let word: String
    let meant: String

    /// - Returns: `nil` where no near miss is known.
    public init?(_ word: String, meant: String?) {
      guard let meant else { return nil }
      self.word = word
      self.meant = meant
    }
  }

  /// A message.
  public init(_ text: String, hint: String? = nil, status: ExitStatus, mistyped: Mistyped? = nil) {
    self.init(text, hints: hint.map { [$0] } ?? [], status: status, mistyped: mistyped)
  }

  /// A message with several things to do.
  public init(_ text: String, hints: [String], status: ExitStatus, mistyped: Mistyped? = nil) {
    self.text = Self.visible(text)
    self.hints = hints.map(Self.visible)
    self.status = status
    self.mistyped = mistyped
  }

  /// The same with something else to do.
  public func with(hint: String) -> Message { Message(text, hint: hint, status: status) }

  /// The same with other words in what there is to do.
  public func exchanging(_ words: String, for others: String) -> Message {
    Message(text, hints: hints.map { $0.exchanging(words, for: others) }, status: status)
  }

  /// The same with the command as it was probably meant in front of what there is to do.
  ///
  /// - Parameter arguments: those of the program, with its name first.
  public func correcting(_ arguments: [String]) -> Message {
    guard let mistyped, let command = mistyped.corrected(arguments) else { return self }
    return Message(text, hints: ["run \(quoted(command))"] + hints, status: status)
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

extension Message.Mistyped {
  /// Whose values may be of any length, and are nobody's business but the person's.
  private static let longOptions = ["--data", "-d", "--header", "-H", "--set"]

  /// The command line with the other word; `nil` where the word is not found in it, or it is too long to be shown.
  func corrected(_ arguments: [String]) -> String? {
    // Behind it stands another program's command.
    let own = arguments.firstIndex(of: "--") ?? arguments.count
    guard !arguments.contains(where: { argument in Self.longOptions.contains { argument.hasPrefix($0) } }) else {
      return nil
    }
    for index in arguments.indices.dropFirst() where index < own {
      guard let argument = replaced(in: arguments[index]) else { continue }
      var words = arguments
      words[index] = argument
      let command = words.map(Messages.argument).joined(separator: " ")
      return command.count <= 160 ? command : nil
    }
    return nil
  }

  /// An argument is the word, `--word=VALUE`, `--option=word`, or one of the parts of `ID:ACCOUNT=VARIABLE`.
  private func replaced(in argument: String) -> String? {
    if argument == word { return meant }
    for mark in ["=", ":"] where argument.hasPrefix(word + mark) { return meant + argument.dropFirst(word.count) }
    if argument.hasPrefix("--"), argument.hasSuffix("=" + word) { return argument.dropLast(word.count) + meant }
    if let place = argument.firstPlace(of: ":" + word) {
      let rest = argument[place.upperBound...]
      if rest.isEmpty || rest.hasPrefix("=") { return argument[..<place.lowerBound] + ":" + meant + rest }
    }
    return nil
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
