import CredentialManager
import Text

extension Command {
  static let refresh = Command(
    name: "refresh", operands: "ID|--all", operandCount: 0...1, summary: "Refresh tokens now",
    options: [
      account, Option("--all", "all accounts of all providers that can be refreshed"),
      Option("--timeout", value: "DURATION", "how long to wait for another process that refreshes it; otherwise 1m"),
    ],
    notes: [
      "When a provider has said that it will never take a refresh token again, other commands fail without asking it; "
        + "\"credmgr refresh ID\" asks."
    ],
    examples: [
      ("credmgr refresh github", "the token of the account that is used here"),
      ("credmgr refresh --all", "before you go on a journey"),
    ], needsNetwork: true
  ) { invocation, context throws(CommandError) in
    guard invocation.has("--all") != (invocation.operands.count == 1) else {
      throw .usage("name either a provider or \"--all\"", hint: "usage: credmgr refresh ID|--all")
    }
    if let text = invocation.operands.first {
      let provider = try context.provider(text)
      let name = try context.account(invocation, of: provider)
      let policy = RefreshPolicy(
        always: true, asksAgain: true, lockTimeout: try context.duration("--timeout", invocation) ?? .seconds(60))
      let renewed = try manager(context.source.handOut(name, of: provider, by: .refresh, to: .caller, policy))
      context.tell("refreshed \"\(renewed.name)\" at \"\(provider)\"" + validity(renewed.credential, context))
    } else {
      try refreshAll(context)
    }
  }

  /// One account that cannot be refreshed does not keep the others from it; the worst exit status is the result.
  private static func refreshAll(_ context: Context) throws(CommandError) {
    let accounts = try manager(context.source.accountsIfAny()?.accounts(of: nil) ?? []).filter {
      context.source.canRefresh($0)
    }
    if accounts.isEmpty { context.tell("there is nothing to refresh") }
    var worst = ExitStatus.done
    for account in accounts {
      do throws(CredentialError) {
        let renewed = try context.source.handOut(
          account.name, of: account.provider, by: .refresh, to: .caller, RefreshPolicy(always: true))
        context.tell("refreshed \"\(account.name)\" at \"\(account.provider)\"" + validity(renewed.credential, context))
      } catch {
        if error == .interrupted { throw CommandError(error) }
        let message = context.message(CommandError(error)) ?? error.message
        StandardError.show(message)
        worst = worst == .done ? message.status : worst
      }
    }
    try context.reportDamagedRecords(nil)
    if worst != .done { throw .ended(worst) }
  }
}
