import Text

/// One command: how it is called, what it says of itself, and what it does.
package struct Command: Sendable {
  /// An option of a command.
  package struct Option: Sendable {
    package let name: String
    package let short: String?
    /// What stands for the value in the help; `nil` for an option without one.
    package let value: String?
    package let repeats: Bool
    package let help: String

    init(_ name: String, short: String? = nil, value: String? = nil, repeats: Bool = false, _ help: String) {
      self.name = name
      self.short = short
      self.value = value
      self.repeats = repeats
      self.help = help
    }
  }

  /// What can stand first behind a command that is several.
  package struct Operation: Sendable {
    package let name: String
    /// The operand that follows; `nil` where there is none.
    package let operand: String?
    package let help: String
  }

  /// A line for a shell that shows what a command is for.
  package struct Example: Sendable {
    package let line: String
    package let help: String

    init(_ line: String, _ help: String) {
      self.line = line
      self.help = help
    }
  }

  package let name: String
  /// The operands, as the help shows them.
  package let operands: String
  let operandCount: ClosedRange<Int>
  package let summary: String
  package let options: [Option]
  /// What is worth knowing, a paragraph each.
  package var notes: [String] = []
  /// What it is several commands by.
  package var operations: [Operation] = []
  package var examples: [Example] = []
  /// Whether it goes without what only a passphrase opens, instead of asking for one.
  var asksNobody = false
  /// Whether nothing of it can be done without folders to keep things in.
  var needsHome = true
  /// Whether nothing of it can be done without a network.
  var needsNetwork = false
  /// An option with which it needs none.
  var offlineOption: String?
  /// Whether what looks like an option is handed on as it is.
  var passesOptions = false
  let run: @Sendable (Invocation, Context) throws(CommandError) -> ExitStatus
}

/// A command with what was given to it.
package struct Invocation {
  let command: Command
  package private(set) var operands: [String] = []
  private var values: [String: [String]] = [:]
  private(set) var asksForHelp = false

  /// Reads the arguments behind a command's name.
  ///
  /// - Throws: `CommandError.failed` for an option that the command does not have, or operands too few or too many.
  init(_ command: Command, _ arguments: some Collection<String>) throws(CommandError) {
    self.command = command
    if command.passesOptions {
      operands = Array(arguments)
      // Behind "--" is what another program gets.
      if operands.prefix(while: { $0 != "--" }).contains("--trace") { values["--trace"] = [""] }
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
    if !option.repeats, values[option.name] != nil { throw .usage("the option \"\(option.name)\" was given twice") }
    values[option.name, default: []].append(value)
  }

  /// Whether an option was given.
  package func has(_ option: String) -> Bool { values[option] != nil }

  /// The value of an option.
  package func value(_ option: String) -> String? { values[option]?.last }

  /// All values of an option.
  package func all(_ option: String) -> [String] { values[option] ?? [] }
}

extension Command {
  /// Options that every command has.
  package static let common = [Option("--trace", "print every HTTP exchange on standard error, without secrets")]

  /// The name by which the manual has it.
  package var page: String { "credmgr-" + name }

  /// One line that says how it is called.
  package var usage: String {
    ["credmgr", name, operands, options.isEmpty ? "" : "[OPTION]…"].filter { !$0.isEmpty }.joined(separator: " ")
  }

  /// What `credmgr help NAME` prints.
  var help: String {
    let indent = String(repeating: " ", count: "usage: credmgr ".count)
    var text = Layout.wrapped("usage: " + usage, indent: indent) + "\n\n" + Layout.wrapped(summary) + "\n"
    if !operations.isEmpty {
      let rows = operations.map { ([$0.name, $0.operand].compactMap { $0 }.joined(separator: " "), $0.help) }
      text += "\n" + Layout.table(rows.map { ($0.0, $0.1) }, width: Layout.width)
    }
    let shown = (passesOptions ? options : options + Self.common).map { option in (option.form, option.explanation) }
    if !shown.isEmpty { text += "\n" + Layout.table(shown.map { ($0.0, $0.1) }, width: Layout.width) }
    for note in notes { text += "\n" + Layout.wrapped(note) + "\n" }
    if !examples.isEmpty {
      text += "\nexamples:\n"
      for example in examples {
        text += "  " + example.line + "\n      " + Layout.wrapped(example.help, first: 6, indent: "      ") + "\n"
      }
    }
    if let group = Command.groups.first(where: { $0.commands.contains { $0.name == name } }) {
      text += "\nmanual: \"man \(page)\"" + (group.page == page ? "" : ", in \(group.page)(1)") + "\n"
    }
    return text
  }
}

extension Command.Option {
  /// How it is written: `-X, --method METHOD`.
  package var form: String {
    [short, name].compactMap { $0 }.joined(separator: ", ") + (value.map { " " + $0 } ?? "")
  }

  /// What it does, and whether it may be given more than once.
  package var explanation: String { help + (repeats ? "; may be repeated" : "") }
}
