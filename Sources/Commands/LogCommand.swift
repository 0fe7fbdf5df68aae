import CredentialManager
import JSON
import Messages
import OAuth

extension Command {
  static let log = Command(
    name: "log", operands: "[ID]", operandCount: 0...1,
    summary: "Show what changed when, and who was handed what",
    options: [Option("--limit", value: "N", "the last N lines; otherwise all that are kept"), json],
    notes: ["The log holds about a thousand changes and a thousand hand-outs, and never a secret."]
  ) { invocation, context throws(CommandError) in
    let provider: String? = if let text = invocation.operands.first { try context.provider(text) } else { nil }
    var limit = Int.max
    if let text = invocation.value("--limit") {
      guard let number = Int(text), number > 0 else { throw .usage("\"\(text)\" is no number of lines") }
      limit = number
    }
    let (all, lost, fault) = try manager { () throws(CredentialError) in try context.source.log() }
    let events = all.filter { provider == nil || $0.provider == provider }.suffix(limit)
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
      try context.output(events.map(line).joined())
      let lines = lost == 1 ? "one line of the log is" : "\(lost) lines of the log are"
      if lost > 0 { context.tell("\(lines) missing or cannot be read; \"credmgr vault verify\" may say more") }
    }
    if let fault { throw CommandError(CredentialError.vault(fault)) }
    return .done
  }

  private static func line(_ event: LogEvent) -> String {
    let fields = [Moment.format(event.time), event.action.rawValue, event.provider, event.account, event.detail]
    return Message.visible(fields.compactMap { $0 }.joined(separator: "  ")) + "\n"
  }
}
