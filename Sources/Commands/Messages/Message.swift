import HTTP
import Text

/// What a person is told when something does not work: a sentence in lower case without a full stop, and the command that
/// mends it.
package struct Message: Sendable, Equatable {
  /// What is wrong.
  let text: String
  /// What to do first, where there is something to do.
  var hint: String? { hints.first }
  /// What to do, in a line each.
  let hints: [String]
  /// The exit status of the program.
  package let status: ExitStatus
  /// The word that was mistyped, where one is known that may have been meant.
  let mistyped: Mistyped?

  /// A word, and the one that was probably meant.
  package struct Mistyped: Sendable, Equatable {
    let word: String
    let meant: String

    /// - Returns: `nil` where no near miss is known.
    init?(_ word: String, meant: String?) {
      guard let meant else { return nil }
      self.word = word
      self.meant = meant
    }
  }

  /// A message.
  package init(_ text: String, hint: String? = nil, status: ExitStatus, mistyped: Mistyped? = nil) {
    self.init(text, hints: hint.map { [$0] } ?? [], status: status, mistyped: mistyped)
  }

  /// A message with several things to do.
  package init(_ text: String, hints: [String], status: ExitStatus, mistyped: Mistyped? = nil) {
    self.text = Self.visible(text)
    self.hints = hints.map(Self.visible)
    self.status = status
    self.mistyped = mistyped
  }

  /// The same with something else to do.
  func with(hint: String) -> Message { Message(text, hint: hint, status: status) }

  /// The same with other words in what there is to do.
  func exchanging(_ words: String, for others: String) -> Message {
    Message(text, hints: hints.map { $0.exchanging(words, for: others) }, status: status, mistyped: mistyped)
  }

  /// The same without a login as what there is to do.
  func without(login provider: String) -> Message {
    let others = hints.filter { !$0.hasPrefix("run \"credmgr login ") }
    return Message(
      text, hints: others.isEmpty ? ["run \"credmgr status \(provider)\" to see who is logged in"] : others,
      status: status, mistyped: mistyped)
  }

  /// Whether nothing is in a command line that is nobody's business but the person's.
  static func isShown(_ arguments: [String]) -> Bool { !Mistyped.hasLongValue(arguments) }

  /// The same with the command as it was probably meant in front of what there is to do.
  ///
  /// - Parameter arguments: those of the program, with its name first.
  func correcting(_ arguments: [String]) -> Message {
    guard let mistyped, let command = mistyped.corrected(arguments) else { return self }
    return Message(text, hints: ["run \(quoted(command))"] + hints, status: status)
  }

  /// The same with the whole command in the place of each `add "--option"`, where it can be shown.
  ///
  /// - Parameters:
  ///   - arguments: those of the program, with its name first.
  ///   - options: those that the command has.
  func completing(_ arguments: [String], options: [String]) -> Message {
    // Several that are all missing would be commands that do not help one by one.
    guard hints.count(where: { $0.hasPrefix(Self.addition + "--set ") }) < 2 else { return self }
    let completed = hints.compactMap { hint -> String? in
      guard hint.hasPrefix(Self.addition) else { return hint }
      let rest = hint.dropFirst(Self.addition.count)
      guard let end = rest.firstIndex(of: "\"") else { return hint }
      let added = String(rest[..<end])
      let option = String(added.prefix { $0 != " " })
      // What names the account of one command names nobody in another.
      guard options.contains(option) else { return option == "--account" ? nil : hint }
      guard let command = Self.shown(arguments, adding: added, option) else { return hint }
      return "run " + quoted(command) + rest[rest.index(after: end)...]
    }
    return Message(text, hints: completed, status: status, mistyped: mistyped)
  }

  /// The greatest length of a command that is shown again. A longer one is no help to anybody who reads it.
  static let longestCommand = 160

  private static let addition = "add \""

  /// The command line with an option that replaces what there is of it; `nil` where it cannot be shown.
  private static func shown(_ arguments: [String], adding added: String, _ option: String) -> String? {
    // A name with a quote in it would end elsewhere.
    guard arguments.count > 1, added.exchanging("\\'", for: "").count(where: { $0 == "'" }) % 2 == 0,
      isShown(arguments)
    else { return nil }
    let own = arguments.firstIndex(of: "--") ?? arguments.count
    var words: [String] = []
    var isValue = false
    for word in arguments[..<own] {
      if !isValue, word != option, !word.hasPrefix(option + "=") { words.append(word) }
      isValue = word == option && added != option
    }
    let before = words.map(Text.argument) + [added]
    let command = (before + arguments[own...].map(Text.argument)).joined(separator: " ")
    return command.count <= longestCommand ? command : nil
  }

  /// The lines on standard error.
  ///
  /// - Parameters:
  ///   - program: the name in front of each sentence.
  ///   - columns: where sentences are broken; `nil` for nowhere, so that each is one line for other programs.
  func lines(program: String = "credmgr", style: Style = .plain, columns: Int? = nil) -> String {
    func line(_ label: String, _ shown: String, _ sentence: String) -> String {
      StandardError.lines("\(program): \(label) ", shown: "\(program): \(shown) ", sentence, columns: columns)
    }
    return line("error:", style.red("error:"), text)
      + hints.map { line("hint:", style.bold("hint:"), $0) }.joined()
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

extension Message.Mistyped {
  /// Whose values may be of any length, and are nobody's business but the person's.
  private static let longOptions = ["--data", "-d", "--header", "-H", "--set"]

  /// The command line with the other word; `nil` where the word is not found in it, or it is too long to be shown.
  func corrected(_ arguments: [String]) -> String? {
    // Behind it stands another program's command.
    let own = arguments.firstIndex(of: "--") ?? arguments.count
    guard !Self.hasLongValue(arguments) else { return nil }
    for index in arguments.indices.dropFirst() where index < own {
      guard let argument = replaced(in: arguments[index]) else { continue }
      var words = arguments
      words[index] = argument
      let command = words.map(Text.argument).joined(separator: " ")
      return command.count <= Message.longestCommand ? command : nil
    }
    return nil
  }

  /// Whether an option is among them whose value is not repeated.
  static func hasLongValue(_ arguments: [String]) -> Bool {
    arguments.contains { argument in longOptions.contains { argument.hasPrefix($0) } }
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
package enum ExitStatus: Int32, Sendable {
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
