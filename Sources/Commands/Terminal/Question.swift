import CredmgrCredentialManager
import CredmgrMessages
import CredmgrPlatform

/// Questions that the user answers at the terminal.
enum Question {
  /// Whether the user can answer.
  static var canAsk: Bool { Terminal.isTerminal(0) && Terminal.isTerminal(2) }

  /// Returns a typed line without blanks at its ends. Throws at Control-C, and at the end of the input.
  static func answer(_ question: String) throws(CommandError) -> String {
    Signals.installInterruptFlag()
    Terminal.writeError(StandardError.prompt(question))
    let line: String?
    do throws(POSIXError) { line = try Terminal.readLine(0) } catch {
      if error != .interrupted { throw CommandError(error) }
      line = nil
    }
    guard let line, !Signals.isInterrupted else {
      Terminal.writeError("\n")
      throw CommandError(CredentialError.interrupted)
    }
    let start = line.drop { $0 == " " || $0 == "\t" }
    return String(start.prefix(start.count - start.reversed().prefix { $0 == " " || $0 == "\t" }.count))
  }

  /// Repeats a question until `accepts` returns no objection.
  static func answer(
    _ question: String, unless objection: (String) -> String?
  ) throws(CommandError) -> String {
    while true {
      let text = try answer(question)
      guard let words = objection(text) else { return text }
      StandardError.tell(words)
    }
  }

  /// Lists texts with numbers, and returns the index of the text that the user chooses.
  static func choice(among labels: [String]) throws(CommandError) -> Int {
    for (index, label) in labels.enumerated() {
      Terminal.writeError("  \(index + 1)  " + Message.visible(label) + "\n")
    }
    let text = try answer("Which one? (Enter for 1)") { text in
      text.isEmpty || Int(text).map { labels.indices.contains($0 - 1) } == true
        ? nil : "type a number from 1 to \(labels.count)"
    }
    return (Int(text) ?? 1) - 1
  }

  /// Returns a text that the user types without echo; empty if the user presses Enter.
  static func secret(_ question: String) throws(CommandError) -> [UInt8] {
    do throws(POSIXError) {
      return try Terminal.readPassword(prompt: StandardError.prompt(question), limit: 1 << 14)
    } catch {
      if error == .interrupted || error == .endOfInput { throw CommandError(CredentialError.interrupted) }
      throw CommandError(error)
    }
  }

  /// Asks the user to agree. `reading` returns the answer; by default, it waits without limit. With `isUsual`, Enter
  /// agrees.
  static func confirm(
    _ question: String, on terminal: Int32 = 0, isUsual: Bool = false,
    reading: (Int32) -> String? = { try? Terminal.readLine($0) }
  ) throws(CommandError) -> Bool {
    Signals.installInterruptFlag()
    Terminal.discardInput(terminal)
    Terminal.writeError(StandardError.prompt(question + (isUsual ? " [Y/n]" : " [y/N]")))
    let answer = reading(terminal)
    if Signals.isInterrupted {
      Terminal.writeError("\n")
      throw CommandError(CredentialError.interrupted)
    }
    if isUsual, answer?.isEmpty == true { return true }
    return ["y", "yes"].contains((answer ?? "").lowercased())
  }

  /// Shows the changes line by line and asks the user at a terminal. Without a terminal, returns false.
  /// With `isGiven`, the user agreed beforehand, and only sees the changes.
  static func confirm(_ sentence: String, list lines: [String], isGiven: Bool = false) -> Bool {
    guard isGiven || canAsk else { return false }
    StandardError.tell(sentence, list: lines)
    return isGiven || (try? confirm("Do you agree?")) ?? false
  }
}
