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

extension Command.Option {
  static let vault = Command.Option("--vault", value: "VAULT", "shared vault (default: your own vault)")
}

extension Context {
  /// Returns the context with the shared vault of `--vault`, or the only joined one, instead of the user's own vault.
  func inVault(_ invocation: Invocation) throws(CommandError) -> Context {
    replacing(source: try manager(source.joined(invocation.value("--vault"))))
  }

  /// Returns the context with the shared vault of `--vault`; this context without that option.
  func inVaultIfNamed(_ invocation: Invocation) throws(CommandError) -> Context {
    invocation.has("--vault") ? try inVault(invocation) : self
  }
}
