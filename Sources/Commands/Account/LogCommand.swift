import CredmgrCredentialManager
import CredmgrJSON
import CredmgrMessages
import CredmgrText

extension Command {
  static let log = Command(
    name: "log", operands: "[ID]", operandCount: 0...1, summary: "Show changes and the programs that received tokens",
    options: [Option("--limit", value: "N", "number of last lines to print (default: all)"), .vault, json],
    notes: ["The log contains the last few thousand events and no secrets."],
    examples: [("credmgr log github --limit 20", "Show the last 20 events of a provider")]
  ) { invocation, context throws(CommandError) in
    let provider: String? = if let text = invocation.operands.first { try context.provider(text) } else { nil }
    var limit = Int.max
    if let text = invocation.value("--limit") {
      guard let number = Int(text), number > 0 else { throw .usage("invalid number of lines \"\(text)\"") }
      limit = number
    }
    let context = try context.inVaultIfNamed(invocation)
    let (all, lost) = try manager(context.source.log())
    let events = all.filter { provider == nil || $0.provider == provider }.suffix(limit)
    if events.isEmpty {
      // The log still contains events of removed providers.
      if let provider, let unknown = context.unknown(provider) { throw CommandError(unknown) }
      if !context.isJSON { context.tell("the log is empty") }
    }
    try context.output(lines(events).joined(), orJSON: .array(events.map(json)))
    if context.isJSON || lost == 0 { return }
    let missing = lost == 1 ? "1 log entry is" : "\(lost) log entries are"
    context.tell(note: "\(missing) missing or unreadable; \(credmgr: "vault", "verify")")
  }

  private static func json(_ event: LogEvent) -> JSONValue {
    [
      "time": .string(event.time.text), "event": .string(event.action.rawValue),
      "provider": .optional(event.provider), "account": .optional(event.account), "detail": .optional(event.detail),
      "member": .optional(event.member),
    ]
  }

  /// Columns are as wide as their longest text, at most 24.
  private static func lines(_ events: some Collection<LogEvent>) -> [String] {
    func fields(_ event: LogEvent) -> [String?] {
      [event.member, event.action.rawValue, event.provider, event.account, event.detail]
    }
    // The last column has no padding.
    let widths = (0..<4).map { index in min(events.lazy.map { fields($0)[index]?.count ?? 0 }.max() ?? 0, 24) } + [0]
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
