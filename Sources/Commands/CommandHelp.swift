import CredmgrMessages
import CredmgrText

extension Command {
  var help: String { help(width: Layout.helpWidth) }

  /// Returns the help of one operation, or of the command if the word names none.
  func help(on word: String?, width: Int = Layout.helpWidth) -> String {
    word.flatMap(operation).map { alone($0) }?.help(width: width, of: self) ?? help(width: width)
  }

  /// Formats the help. `page` is the command whose manual page describes this one.
  func help(width: Int, of page: Command? = nil) -> String {
    let indent = String(repeating: " ", count: min("usage: credmgr ".count, width / 3))
    let longest = min(Layout.longestQuotation, width - 4)
    var text = Layout.wrapped("usage: " + usage, width: width, indent: indent) + "\n\n"
    text += Layout.wrapped(summary, width: width) + "\n"
    if !examples.isEmpty {
      text += "\nexamples:\n"
      for example in examples {
        let caption = example.help + ":"
        text += "  " + Layout.wrapped(caption, width: width, first: 2, indent: "  ", longestQuotation: longest) + "\n"
        text += "    " + example.line + "\n"
      }
    }
    if !operations.isEmpty {
      let rows = operations.map { (left: $0.name + ($0.operand.map { " " + $0 } ?? ""), right: $0.help) }
      text += "\n" + Layout.table(rows, width: width)
    }
    let shown = (passesOptions ? options : options + Self.common).map { (left: $0.form, right: $0.explanation) }
    if !shown.isEmpty { text += "\n" + Layout.table(shown, width: width) }
    for note in notes { text += "\n" + Layout.wrapped(note, width: width, longestQuotation: longest) + "\n" }
    let described = page ?? self
    if Command.all.contains(where: { $0.name == described.name }) {
      text += "\n" + Layout.wrapped("manual: \"man \(described.page)\"", width: width, longestQuotation: longest) + "\n"
    }
    return text
  }

  // MARK: Operations

  func operation(_ name: String) -> Operation? { operations.first { $0.name == name } }

  func unknownOperation(_ name: String) -> CommandError {
    let known = operations.map(\.name)
    let near = nearMiss(name, among: known) ?? SimilarWords.vaultOperation(for: name)
    return .usage(
      "unknown operation \"\(self.name) \(SecretOption.shown(name, among: known))\"\(didYouMean(near))",
      hints: .correcting(name, to: near) + ["\(credmgr: "help", self.name)"])
  }

  /// Returns a command that describes only this operation.
  private func alone(_ operation: Operation) -> Command {
    let line = name + " " + operation.name
    let help = operation.help.prefix(1).uppercased() + operation.help.dropFirst()
    var alone = Command(
      name: line, operands: operation.operand ?? "", operandCount: operandCount, summary: help,
      options: options.filter { operation.options.contains($0.name) }.map { $0.described(for: operation, of: self) },
      run: run)
    alone.examples = examples.filter { ($0.line + " ").hasPrefix("credmgr " + line + " ") }
    if operation.name == "protect" || operation.options.contains("--passphrase-file") { alone.notes = notes }
    return alone
  }
}

extension Command.Option {
  /// Returns the option with only the words that concern an operation: `export: write it; import: read it`.
  fileprivate func described(for operation: Command.Operation, of command: Command) -> Command.Option {
    let names = Set(command.operations.map(\.name))
    var words: [String] = []
    for part in help.pieces(separatedBy: "; ") {
      let sides = part.pieces(separatedBy: ": ")
      let owners = sides[0].pieces(separatedBy: ", ").map { String($0) }
      guard sides.count > 1, names.isSuperset(of: owners) else {
        words.append(String(part))
        continue
      }
      if owners.contains(operation.name) { words.append(sides.dropFirst().joined(separator: ": ")) }
    }
    return Command.Option(name, short: short, value: value, repeats: repeats, words.joined(separator: "; "))
  }
}
