import CredmgrCredentialManager
import CredmgrJSON
import CredmgrMessages
import CredmgrText

extension Command {
  static let share = Command(
    name: "share", operands: "ID ACCOUNT", operandCount: 2...2, summary: "Move an account to a shared vault",
    options: [
      Option("--vault", value: "VAULT", "shared vault (default: the only one that this machine joined)"),
      Option("--replace", "replace the vault's account of this name"), json,
    ],
    notes: [
      "All members of the vault can use the account. This machine keeps a copy of the access token. Only the vault has "
        + "the refresh token, and credmgr refreshes it there, once for all machines."
    ],
    examples: [("credmgr share github bot --vault team", "Let the team use an account")]
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    let vault = try manager(context.source.vaultName(invocation.value("--vault")))
    let account = try manager(
      context.source.share(invocation.operands[1], of: provider, in: vault, replaces: invocation.has("--replace")))
    context.tell("moved \(quoted(account.name)) at \(context.titled(provider)) to the vault \(quoted(vault))")
    guard context.isJSON else { return }
    try context.output([
      "provider": .string(provider), "account": .string(account.name), "vault": .string(vault),
    ])
  }
}
