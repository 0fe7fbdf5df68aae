import CredmgrMessages
import CredmgrText

/// The user's command line, which hints can repeat with a change.
package struct CommandLine: Sendable, FailedCommand {
  /// Includes the name of the program.
  let words: [String]
  /// `nil` if the command and its options cannot be parsed.
  let invocation: Invocation?
  private let command: Command?
  private let named: @Sendable (String) -> Command?

  init(_ words: [String], _ invocation: Invocation, named: @escaping @Sendable (String) -> Command?) {
    (self.words, self.invocation, command, self.named) = (words, invocation, invocation.command, named)
  }

  init(_ words: [String], named: @escaping @Sendable (String) -> Command? = Command.named) {
    (self.words, self.named) = (words, named)
    command = words.count > 1 ? named(words[1]) : nil
    invocation = command.flatMap { try? Invocation($0, words.dropFirst(2)) }
  }

  package func has(_ option: String) -> Bool {
    guard let command else { return false }
    // git, docker and kubectl run these commands and write to their standard input.
    let common = command.name.hasSuffix("-credential") ? [] : Command.common
    return (command.options + common).contains { $0.name == option }
  }

  /// Returns the line with an option and its value added or replaced; `nil` if the command does not have the option, or
  /// the line must not be repeated.
  package func with(_ added: [String]) -> String? {
    guard has(added[0]) else { return nil }
    return shown(own(without: added[0]) { _ in added.count > 1 } + added + words[own.endIndex...])
  }

  /// Returns the line without an option and its value, and with `instead` added; `nil` if that is not valid.
  package func without(_ option: String, instead: [String]) -> String? {
    let kept = own(without: option) { !$0.hasPrefix("-") }
    if kept.count == own.count { return nil }
    let others = kept + (own.contains(instead.first ?? "--") ? [] : instead) + words[own.endIndex...]
    return CommandLine(others, named: named).invocation == nil ? nil : shown(others)
  }

  /// The words before the command that this one runs.
  private var own: ArraySlice<String> { words.prefix { $0 != "--" } }

  private func own(without option: String, isValue: (String) -> Bool) -> [String] {
    var kept: [String] = []
    var rest = own
    while let word = rest.popFirst() {
      if word == option {
        if let value = rest.first, isValue(value) { rest = rest.dropFirst() }
      } else if !word.hasPrefix(option + "=") {
        kept.append(word)
      }
    }
    return kept
  }

  /// Returns the line with a mistyped word corrected; `nil` if the word is absent or the line must not be repeated.
  /// Does not change the arguments of the program that `exec` runs.
  package func replacing(_ word: String, with meant: String) -> String? {
    if Self.longOptions.contains(meant) { return nil }
    for index in own.indices.dropFirst() {
      guard let argument = Self.replacing(word, with: meant, in: words[index]) else { continue }
      return shown(words[..<index] + [argument] + words[(index + 1)...])
    }
    return nil
  }

  /// Corrects a word alone, in `--word=VALUE` or `--option=word`, or as a part of `ID:ACCOUNT=VARIABLE`.
  private static func replacing(_ word: String, with meant: String, in argument: String) -> String? {
    if argument == word { return meant }
    for mark in ["=", ":"] where argument.hasPrefix(word + mark) { return meant + argument.dropFirst(word.count) }
    if argument.hasPrefix("--"), argument.hasSuffix("=" + word) { return argument.dropLast(word.count) + meant }
    guard let place = argument.firstPlace(of: ":" + word) else { return nil }
    let rest = argument[place.upperBound...]
    return rest.isEmpty || rest.hasPrefix("=") ? argument[..<place.lowerBound] + ":" + meant + rest : nil
  }

  /// Adds the options of a failed login to a login suggested at the same provider.
  package func completing(login command: [String]) -> [String] {
    guard let invocation, invocation.command.name == "login", command.starts(with: ["credmgr", "login"]),
      command.dropFirst(2).first == invocation.operands.first
    else { return command }
    let given = command.dropFirst(3)
    var kept: [String] = []
    for option in ["--account", "--grant", "--scope", "--set", "--expires", "--timeout"] where !given.contains(option) {
      for value in invocation.all(option) { kept += [option, value] }
    }
    let flags = given.contains("--with-token") ? ["--yes", "--json"] : ["--no-browser", "--paste", "--yes", "--json"]
    kept += flags.filter { invocation.has($0) && !given.contains($0) }
    return command.prefix(3) + kept + given
  }

  /// Returns the line with other words, quoted for a shell, and with the program's name as in every other hint; `nil`
  /// if it is not valid, may contain a secret or is too long to read. An unknown option may contain its value.
  func shown(_ others: [String]) -> String? {
    guard !words.contains(where: { word in Self.longOptions.contains { word.hasPrefix($0) } }),
      CommandLine(others, named: named).invocation != nil || isForHelp(others), !others.contains(where: mayHaveSecret)
    else { return nil }
    let line = (["credmgr"] + others.dropFirst()).map(argument).joined(separator: " ")
    return line.count <= 160 ? line : nil
  }

  private func isForHelp(_ words: [String]) -> Bool {
    ["help", "--help", "--version"].contains(words[1]) && words.dropFirst(2).allSatisfy { named($0) != nil }
  }

  /// Whether a word may contain or follow a secret, judging by option names of credmgr or the program it runs.
  private func mayHaveSecret(_ word: String) -> Bool {
    if SecretOption.isIn(word) { return true }
    let name = String(word.prefix { $0 != "=" })
    let isKnown = (command?.options ?? []).contains { $0.name == name || $0.short == name }
    return !isKnown && SecretOption.isMeant(by: name)
  }

  /// Options whose values may be long or private.
  private static let longOptions = ["--data", "-d", "--header", "-H", "--set"]
}
