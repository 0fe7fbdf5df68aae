import Messages

/// One command: how it is called, what it says of itself, and what it does.
struct Command: Sendable {
  /// An option of a command.
  struct Option: Sendable {
    let name: String
    let short: String?
    /// What stands for the value in the help; `nil` for an option without one.
    let value: String?
    let repeats: Bool
    let help: String

    init(_ name: String, short: String? = nil, value: String? = nil, repeats: Bool = false, _ help: String) {
      self.name = name
      self.short = short
      self.value = value
      self.repeats = repeats
      self.help = help
    }
  }

  let name: String
  /// The operands, as the help shows them.
  let operands: String
  let operandCount: ClosedRange<Int>
  let summary: String
  let options: [Option]
  /// Lines below the options: what is worth knowing.
  var notes: [String] = []
  /// What can stand first, and the operand that follows it, for a command that is several.
  var operations: [(name: String, operand: String?)] = []
  /// Whether nothing of it can be done without a network.
  var needsNetwork = false
  /// An option with which it needs none.
  var offlineOption: String?
  /// Whether what looks like an option is handed on as it is.
  var passesOptions = false
  let run: @Sendable (Invocation, Context) throws(CommandError) -> ExitStatus
}

/// A command with what was given to it.
struct Invocation {
  let command: Command
  private(set) var operands: [String] = []
  private var values: [String: [String]] = [:]
  private(set) var asksForHelp = false

  /// Reads the arguments behind a command's name.
  ///
  /// - Throws: `CommandError.failed` for an option that the command does not have, or operands too few or too many.
  init(_ command: Command, _ arguments: some Collection<String>) throws(CommandError) {
    self.command = command
    if command.passesOptions {
      operands = Array(arguments)
      return
    }
    var rest = Array(arguments)[...]
    var takesOptions = true
    while let argument = rest.popFirst() {
      guard takesOptions, argument.hasPrefix("-"), argument != "-" else {
        operands.append(argument)
        continue
      }
      if argument == "--" {
        takesOptions = false
      } else if argument == "--help" || argument == "-h" {
        asksForHelp = true
      } else {
        try read(argument, &rest)
      }
    }
    if asksForHelp { return }
    guard command.operandCount.contains(operands.count) else {
      let problem = operands.count < command.operandCount.lowerBound ? "too few arguments" : "too many arguments"
      throw .usage("\(problem) for \"credmgr \(command.name)\"", hint: "usage: \(command.usage)")
    }
  }

  private mutating func read(_ argument: String, _ rest: inout ArraySlice<String>) throws(CommandError) {
    var name = argument
    var attached: String?
    if argument.hasPrefix("--"), let sign = argument.firstIndex(of: "=") {
      name = String(argument[..<sign])
      attached = String(argument[argument.index(after: sign)...])
    }
    let options = command.options + Command.common
    guard let option = options.first(where: { $0.name == name || $0.short == name }) else {
      throw .unknownOption(name, of: command, among: options.map(\.name))
    }
    guard option.value != nil else {
      if attached != nil { throw .usage("the option \"\(option.name)\" takes no value") }
      values[option.name, default: []].append("")
      return
    }
    guard let value = attached ?? rest.popFirst() else {
      throw .usage("the option \"\(option.name)\" needs a value", hint: "usage: \(command.usage)")
    }
    if !option.repeats, values[option.name] != nil {
      throw .usage("the option \"\(option.name)\" was given twice")
    }
    values[option.name, default: []].append(value)
  }

  /// Whether an option was given.
  func has(_ option: String) -> Bool { values[option] != nil }

  /// The value of an option.
  func value(_ option: String) -> String? { values[option]?.last }

  /// All values of an option.
  func all(_ option: String) -> [String] { values[option] ?? [] }
}

extension Command {
  /// Options that every command has.
  static let common = [
    Option("--trace", "print every HTTP exchange on standard error, without secrets")
  ]

  /// One line that says how it is called.
  var usage: String {
    ["credmgr", name, operands, options.isEmpty ? "" : "[OPTION]…"].filter { !$0.isEmpty }.joined(separator: " ")
  }

  /// What `credmgr help NAME` prints.
  var help: String {
    var text = "usage: \(usage)\n\n\(summary)\n"
    let shown = (passesOptions ? [] : options + Self.common).map { option in
      (
        left: [option.short, option.name].compactMap { $0 }.joined(separator: ", ")
          + (option.value.map { " " + $0 } ?? ""), right: option.help + (option.repeats ? "; may be repeated" : "")
      )
    }
    if !shown.isEmpty { text += "\n" + table(shown) }
    if !notes.isEmpty { text += "\n" + notes.map { $0 + "\n" }.joined() }
    return text
  }
}

/// Two columns.
func table(_ rows: [(left: String, right: String)]) -> String {
  let width = min(rows.map(\.left.count).max() ?? 0, 36)
  return rows.map { row in
    let gap =
      row.left.count > width
      ? "\n" + String(repeating: " ", count: width + 4)
      : String(repeating: " ", count: width - row.left.count + 2)
    return "  " + row.left + gap + row.right + "\n"
  }.joined()
}
