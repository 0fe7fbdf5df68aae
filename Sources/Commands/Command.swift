import CredmgrText

package struct Command: Sendable {
  package struct Option: Sendable {
    package let name: String
    package let short: String?
    /// The placeholder for the value in the help; `nil` for an option without a value.
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

  package struct Operation: Sendable {
    package let name: String
    package var operand: String?
    package let help: String
    var options: Set<String> = []
    let run: @Sendable (Invocation, Context) throws(CommandError) -> Void
  }

  package let name: String
  package let operands: String
  let operandCount: ClosedRange<Int>
  package let summary: String
  package let options: [Option]
  package var notes: [String] = []
  package var operations: [Operation] = []
  package var examples: [(line: String, help: String)] = []
  /// Whether the command skips what requires a passphrase, instead of prompting.
  var asksNobody = false
  var needsHome = true
  /// With this option, the command opens the vault only without a prompt, another program or a passphrase.
  var quickOption: String?
  /// Whether arguments that look like options are passed on unchanged.
  var passesOptions = false
  /// Why the command has no `--json`; `nil` if it has the option.
  var withoutJSON: String?
  let run: @Sendable (Invocation, Context) throws(CommandError) -> Void
}

package struct Invocation {
  let command: Command
  package private(set) var operands: [String] = []
  private var values: [String: [String]] = [:]
  private(set) var asksForHelp = false

  init(_ command: Command, _ arguments: some Collection<String>) throws(CommandError) {
    self.command = command
    if command.passesOptions {
      operands = Array(arguments)
      asksForHelp = ["--help", "-h"].contains(operands.first)
      // Arguments after "--" belong to another program.
      if operands.prefix(while: { $0 != "--" }).contains("--trace") { values["--trace"] = [""] }
      return
    }
    var rest = Array(arguments)[...]
    var takesOptions = true
    while let argument = rest.popFirst() {
      guard takesOptions, argument.hasPrefix("-"), argument != "-" else {
        if takesOptions { try command.check(operand: argument) }
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
      // A newcomer tries this before any provider is known.
      let isFirst = command.name == "login" && operands.isEmpty
      throw .usage(
        "\(problem) for \"credmgr \(command.name)\"",
        hint: isFirst ? "\(credmgr: "setup") to choose a provider" : "usage: \(command.usage)")
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
      throw .unknownOption(argument, command)
    }
    guard option.value != nil else {
      if attached != nil { throw .usage("the option \"\(option.name)\" takes no value") }
      values[option.name, default: []].append("")
      return
    }
    guard let value = attached ?? rest.popFirst() else {
      throw .usage("the option \"\(option.name)\" requires a value", hint: "usage: \(command.usage)")
    }
    if !option.repeats, values[option.name] != nil { throw .usage("the option \"\(option.name)\" was given twice") }
    values[option.name, default: []].append(value)
  }

  package func has(_ option: String) -> Bool { values[option] != nil }

  var hasOptions: Bool { !values.isEmpty }

  package func value(_ option: String) -> String? { values[option]?.last }

  package func all(_ option: String) -> [String] { values[option] ?? [] }
}

extension Command {
  package static let common = [
    Option("--trace", "print all HTTP requests and answers on standard error, without secrets")
  ]

  package var page: String { "credmgr-" + name }

  package var usage: String {
    ["credmgr", name, operands, options.isEmpty ? "" : "[OPTION]…"].filter { !$0.isEmpty }.joined(separator: " ")
  }
}

extension Command.Option {
  /// The option as the help shows it: `-X, --method METHOD`.
  package var form: String { [short, name].compactMap { $0 }.joined(separator: ", ") + (value.map { " " + $0 } ?? "") }

  package var explanation: String { help + (repeats ? "; repeatable" : "") }
}
