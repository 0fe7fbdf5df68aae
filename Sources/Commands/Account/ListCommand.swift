import CredmgrCredentialManager
import CredmgrJSON
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

extension Command {
  static let list = Command(
    name: "list", operands: "[ID]", operandCount: 0...1, summary: "List the accounts",
    options: [json],
    notes: [
      "Each line has the provider, the account, its state and the kind of its credential. \"credmgr status\" shows the "
        + "accounts in detail."
    ],
    examples: [
      ("credmgr list", "List all accounts"),
      ("credmgr list github --json", "Print the accounts of a provider as JSON"),
    ]
  ) { invocation, context throws(CommandError) in
    let provider: String? = if let text = invocation.operands.first { try context.provider(text) } else { nil }
    let overview = try AccountOverview(of: provider, context)
    var titles: [String: String] = [:]
    for provider in Set(overview.rows.map(\.account.provider)) {
      let title = context.titled(provider)
      titles[provider] = title == quoted(provider) ? provider : title
    }
    if context.isJSON {
      try context.output(
        .array(
          overview.rows.map { row in
            let title = JSONValue.Member("title", .optional(titles[row.account.provider]))
            return .object((row.json.members ?? []) + [title])
          }))
      return try overview.reportDamagedRecords(context)
    }
    overview.tellIfEmpty(context)
    if overview.rows.isEmpty { overview.tellInterrupted(context) }
    var lines = overview.rows.map { row in
      [
        titles[row.account.provider] ?? "", row.account.name + (row.isDefault ? " (default)" : ""), row.state.words,
        row.account.credential.kindWords,
      ].map(Message.visible)
    }
    let columns = Terminal.outputColumns
    if columns != nil, !lines.isEmpty { lines.insert(["PROVIDER", "ACCOUNT", "STATE", "KIND"], at: 0) }
    try context.output(Layout.grid(lines, width: columns, shortening: 1).map { $0 + "\n" }.joined())
    try overview.reportDamagedRecords(context)
  }
}
