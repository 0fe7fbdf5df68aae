import CredentialManager
import JSON
import Text

extension Command {
  static let log = Command(
    name: "log", operands: "[ID]", operandCount: 0...1, summary: "Show what changed when, and who was handed what",
    options: [Option("--limit", value: "N", "the last N lines; otherwise all that are kept"), json],
    notes: ["The log holds the last thousands of events, and never a secret."],
    examples: [("credmgr log github --limit 20", "what happened last with one provider")]
  ) { invocation, context throws(CommandError) in
    let provider: String? = if let text = invocation.operands.first { try context.provider(text) } else { nil }
    var limit = Int.max
    if let text = invocation.value("--limit") {
      guard let number = Int(text), number > 0 else { throw .usage("\"\(text)\" is no number of lines") }
      limit = number
    }
    let (all, lost) = try manager(context.source.log())
    let events = all.filter { provider == nil || $0.provider == provider }.suffix(limit)
    if events.isEmpty {
      // What happened with a provider that is gone is still told.
      if let provider, let unknown = context.unknown(provider) { throw CommandError(unknown) }
      if !context.isJSON { context.tell("nothing has happened yet") }
    }
    try context.output(lines(events).joined(), orJSON: .array(events.map(json)))
    if context.isJSON || lost == 0 { return }
    let missing = lost == 1 ? "one line of the log is" : "\(lost) lines of the log are"
    context.tell("\(missing) missing or cannot be read; \"credmgr vault verify\" may say more")
  }

  private static func json(_ event: LogEvent) -> JSONValue {
    [
      "time": .string(event.time.text), "event": .string(event.action.rawValue),
      "provider": .optional(event.provider), "account": .optional(event.account), "detail": .optional(event.detail),
    ]
  }

  /// Columns as wide as their longest text, up to 24.
  private static func lines(_ events: some Collection<LogEvent>) -> [String] {
    func fields(_ event: LogEvent) -> [String?] {
      [event.action.rawValue, event.provider, event.account, event.detail]
    }
    // After the last one stands nothing.
    let widths = (0..<3).map { index in min(events.lazy.map { fields($0)[index]?.count ?? 0 }.max() ?? 0, 24) } + [0]
    return events.map { event in
      var line = event.time.text
      for (field, width) in zip(fields(event), widths) where field != nil || width > 0 {
        line += "  " + (field ?? "") + String(repeating: " ", count: max(width - (field?.count ?? 0), 0))
      }
      while line.last == " " { line.removeLast() }
      return Message.visible(line) + "\n"
    }
  }
}
