import CredmgrCredentialManager
import CredmgrJSON
import CredmgrMessages
import CredmgrText

extension Command {
  static let refresh = Command(
    name: "refresh", operands: "ID|--all", operandCount: 0...1, summary: "Refresh tokens now",
    options: [
      account, Option("--all", "refresh all accounts of all providers"),
      Option("--timeout", value: "DURATION", "time to wait for another process that refreshes the token (default: 1m)"),
      json,
    ],
    notes: [
      "After a provider has permanently rejected a refresh token, other commands fail without asking the provider. "
        + "\"credmgr refresh ID\" asks again."
    ],
    examples: [
      ("credmgr refresh github", "Refresh the token of the current account"),
      ("credmgr refresh --all", "Refresh all tokens before going offline"),
    ]
  ) { invocation, context throws(CommandError) in
    guard invocation.has("--all") != (invocation.operands.count == 1) else {
      throw .usage("name a provider or use \"--all\", but not both", hint: "usage: credmgr refresh ID|--all")
    }
    if let text = invocation.operands.first {
      let provider = try context.provider(text)
      let name = try context.account(invocation, of: provider)
      let policy = RefreshPolicy(
        always: true, asksAgain: true, lockTimeout: try context.duration("--timeout", invocation) ?? .seconds(60))
      let renewed = try manager(context.source.handOut(name, of: provider, by: .refresh, to: .caller, policy))
      context.tell(
        "refreshed \"\(renewed.name)\" at \(context.titled(provider))" + validity(renewed.credential, context))
      if context.isJSON { try context.output(refreshed(renewed, isDone: true)) }
    } else {
      try refreshAll(context)
    }
  }

  private static func refreshed(_ account: Account, isDone: Bool) -> JSONValue {
    [
      "provider": .string(account.provider), "account": .string(account.name), "refreshed": .boolean(isDone),
      "expires_at": .optional(account.credential.expiresAt?.text),
    ]
  }

  /// Refreshes every account, even after failures, and ends with the worst exit status.
  private static func refreshAll(_ context: Context) throws(CommandError) {
    let accounts = try manager(context.source.accountsIfAny()?.accounts(of: nil) ?? []).filter {
      context.source.canRefresh($0)
    }
    if accounts.isEmpty { context.tell("no tokens to refresh") }
    var worst = ExitStatus.done
    var rows: [JSONValue] = []
    var shown: Set<String> = []
    for account in accounts {
      do throws(CredentialError) {
        let renewed = try context.source.handOut(
          account.name, of: account.provider, by: .refresh, to: .caller, RefreshPolicy(always: true))
        let title = context.titled(account.provider)
        context.tell("refreshed \"\(account.name)\" at \(title)" + validity(renewed.credential, context))
        rows.append(refreshed(renewed, isDone: true))
      } catch {
        if error == .interrupted { throw CommandError(error) }
        let message = context.message(CommandError(error)) ?? error.message
        // A server that is away concerns many accounts.
        if shown.insert(message.text).inserted { StandardError.show(message) }
        rows.append(refreshed(account, isDone: false))
        worst = worst == .done ? message.status : worst
      }
    }
    if context.isJSON { try context.output(.array(rows)) }
    try context.reportDamagedRecords(nil)
    if worst != .done { throw .ended(worst) }
  }
}
