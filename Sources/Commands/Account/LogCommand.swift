import CredentialManager
import JSON
import OAuth
import Text

extension Command {
  static let log = Command(
    name: "log", operands: "[ID]", operandCount: 0...1,
    summary: "Show what changed when, and who was handed what",
    options: [Option("--limit", value: "N", "the last N lines; otherwise all that are kept"), json],
    notes: ["The log holds the last thousands of events, and never a secret."],
    examples: [Example("credmgr log github --limit 20", "what happened last with one provider")]
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
      if !invocation.has("--json") { context.tell("nothing has happened yet") }
    }
    if invocation.has("--json") {
      try context.output(
        .array(
          events.map { event in
            [
              "time": .string(Moment.format(event.time)), "event": .string(event.action.rawValue),
              "provider": .optional(event.provider), "account": .optional(event.account),
              "detail": .optional(event.detail),
            ]
          }))
    } else {
      try context.output(lines(events).joined())
      let missing = lost == 1 ? "one line of the log is" : "\(lost) lines of the log are"
      if lost > 0 { context.tell("\(missing) missing or cannot be read; \"credmgr vault verify\" may say more") }
    }
    return .done
  }

  /// Columns as wide as their longest text, unless that is too long for the others to be found behind it.
  private static func lines(_ events: some Collection<LogEvent>) -> [String] {
    func width(_ texts: some Sequence<Int>) -> Int { min(texts.max() ?? 0, 24) }
    let widths = [
      width(events.lazy.map(\.action.rawValue.count)), width(events.lazy.map { $0.provider?.count ?? 0 }),
      width(events.lazy.map { $0.account?.count ?? 0 }),
    ]
    return events.map { event in
      var line = Moment.format(event.time)
      var column = line.count
      let fields = [event.action.rawValue, event.provider, event.account, event.detail]
      for (field, width) in zip(fields, widths + [0]) {
        if field == nil, width == 0 { continue }
        column += 2
        guard let field else {
          column += width
          continue
        }
        line += String(repeating: " ", count: max(column - line.count, 2)) + field
        column = max(column + width, line.count)
      }
      return Message.visible(line) + "\n"
    }
  }
}
