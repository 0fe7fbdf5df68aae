import Text

/// What a person typed, so that it can be suggested once more with another word in it.
package struct CommandLine: Sendable {
  /// With the name of the program.
  let words: [String]
  /// `nil` where the command and its options could not be read.
  let invocation: Invocation?
  private let command: Command?

  init(_ words: [String], _ invocation: Invocation) {
    (self.words, self.invocation, command) = (words, invocation, invocation.command)
  }

  init(_ words: [String]) {
    self.words = words
    command = words.count > 1 ? Command.named(words[1]) : nil
    invocation = command.flatMap { try? Invocation($0, words.dropFirst(2)) }
  }

  func has(_ option: String) -> Bool {
    guard let command else { return false }
    // What git, docker and kubectl run is given to it on standard input.
    let common = command.name.hasSuffix("-credential") ? [] : Command.common
    return (command.options + common).contains { $0.name == option }
  }

  /// The line with an option and its value in the place of what it has of that option; `nil` for an option that the
  /// command does not have, and for a line that is not repeated.
  func with(_ added: [String]) -> String? {
    guard has(added[0]) else { return nil }
    return shown(own(without: added[0]) { _ in added.count > 1 } + added + words[own.endIndex...])
  }

  /// The line without an option and its value, and with others in their place; `nil` where that is no command line.
  func without(_ option: String, instead: [String]) -> String? {
    let kept = own(without: option) { !$0.hasPrefix("-") }
    if kept.count == own.count { return nil }
    let others = kept + (own.contains(instead.first ?? "--") ? [] : instead) + words[own.endIndex...]
    return CommandLine(others).invocation == nil ? nil : shown(others)
  }

  /// What stands before the command that this one runs.
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

  /// The line with another word in the place of a mistyped one; `nil` where there is no such word, and for a line that
  /// is not repeated. What `exec` hands on is another program's.
  func replacing(_ word: String, with meant: String) -> String? {
    for index in own.indices.dropFirst() {
      guard let argument = Self.replacing(word, with: meant, in: words[index]) else { continue }
      return shown(words[..<index] + [argument] + words[(index + 1)...])
    }
    return nil
  }

  /// An argument is the word, `--word=VALUE`, `--option=word`, or one of the parts of `ID:ACCOUNT=VARIABLE`.
  private static func replacing(_ word: String, with meant: String, in argument: String) -> String? {
    if argument == word { return meant }
    for mark in ["=", ":"] where argument.hasPrefix(word + mark) { return meant + argument.dropFirst(word.count) }
    if argument.hasPrefix("--"), argument.hasSuffix("=" + word) { return argument.dropLast(word.count) + meant }
    guard let place = argument.firstPlace(of: ":" + word) else { return nil }
    let rest = argument[place.upperBound...]
    return rest.isEmpty || rest.hasPrefix("=") ? argument[..<place.lowerBound] + ":" + meant + rest : nil
  }

  /// A login that is suggested where one at the same provider failed asks for what that one asked for.
  func completing(login command: [String]) -> [String] {
    guard let invocation, invocation.command.name == "login", command.starts(with: ["credmgr", "login"]),
      command.dropFirst(2).first == invocation.operands.first
    else { return command }
    let given = command.dropFirst(3)
    var kept: [String] = []
    for option in ["--account", "--grant", "--scope", "--set", "--timeout"] where !given.contains(option) {
      for value in invocation.all(option) { kept += [option, value] }
    }
    kept += ["--no-browser", "--paste"].filter { invocation.has($0) && !given.contains($0) }
    return command.prefix(3) + kept + given
  }

  /// The line with other words, as a shell takes it; `nil` where what was typed may have a secret in it, and for a line
  /// that is too long to be read.
  func shown(_ others: [String]) -> String? {
    guard !words.contains(where: { word in Self.longOptions.contains { word.hasPrefix($0) } }),
      !others.contains(where: mayHaveSecret)
    else { return nil }
    let line = others.map(argument).joined(separator: " ")
    return line.count <= 160 ? line : nil
  }

  /// Whether a word may have a secret in it or before it, as the command or one that it runs is called.
  private func mayHaveSecret(_ word: String) -> Bool {
    if SecretOption.isIn(word) { return true }
    let name = String(word.prefix { $0 != "=" })
    let isKnown = (command?.options ?? []).contains { $0.name == name || $0.short == name }
    return !isKnown && SecretOption.isMeant(by: name)
  }

  /// Options whose values may be of any length, and are nobody's business but the person's.
  private static let longOptions = ["--data", "-d", "--header", "-H", "--set"]
}
