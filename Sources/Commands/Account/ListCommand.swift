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
      "Each line has the provider, the account, its state and the kind of its credential, and its vault if an "
        + "account is shared. Logins that git or docker stored follow, with their address. \"credmgr status\" shows "
        + "the accounts in detail."
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
          } + overview.logins.map { .object(($0.json.members ?? []) + [.init("title", .null)]) }))
      return try overview.reportDamagedRecords(context)
    }
    overview.tellIfEmpty(context)
    if overview.rows.isEmpty { overview.tellInterrupted(context) }
    // Most users share no account, so the last column appears only if it says something.
    let hasVaults = overview.rows.contains { $0.account.credential.vault != nil }
    let mark = " (default)"
    var lines = overview.rows.map { row in
      let credential = row.account.credential
      return
        ([
          titles[row.account.provider] ?? "",
          // Many accounts without a user name are called "default".
          row.account.name + (row.isDefault && row.account.name != "default" ? mark : ""), row.words,
          credential.kindWords,
        ] + (hasVaults ? [credential.vault ?? "-"] : [])).map(Message.visible)
    }
    lines += overview.logins.map { login in
      ([login.address, login.user, login.stateWords, login.kindWords] + (hasVaults ? ["-"] : [])).map(Message.visible)
    }
    let columns = Terminal.outputColumns
    if columns != nil, !lines.isEmpty {
      lines.insert(["PROVIDER", "ACCOUNT", "STATE", "KIND"] + (hasVaults ? ["VAULT"] : []), at: 0)
    }
    let shown = Layout.grid(lines, width: columns, shortening: [3, 0, 1, 2], keeping: mark)
    try context.output(shown.map { $0 + "\n" }.joined())
    if columns != nil, let login = overview.logins.first {
      context.tell(note: "\(login.deletion) to delete a login of git or docker")
    }
    try overview.reportDamagedRecords(context)
  }
}
