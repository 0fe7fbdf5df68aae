import CredmgrCredentialManager
import CredmgrJSON
import CredmgrMessages
import CredmgrText

extension SharedVaultOperations {
  static func synchronize(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let name = try manager(context.source.vaultName(invocation.value("--vault")))
    if let path = invocation.value("--password-file") {
      let password = try context.secret(path, called: "password")
      try manager(context.source.setPassword(password, ofVault: name))
    }
    try synchronize(with: name, invocation, context)
  }

  static func synchronize(
    with name: String, _ invocation: Invocation, _ context: Context
  ) throws(CommandError) {
    let before = try manager(context.source.accountsIfAny()?.addedProviders() ?? [])
    let accounts = try manager(
      context.source.synchronize(with: name) { provider, places in
        let own = accountsThatFollow(provider, to: places, context)
        let tokens = own.isEmpty ? "" : " for the tokens of \(some(own)) too, which may not be in the vault"
        return Question.confirm(
          "\(quoted(provider)) requires your consent\(tokens)", list: places.peculiarities,
          isGiven: invocation.has("--yes"))
      })
    // Another member chose these places.
    for provider in try manager(context.source.accountsIfAny()?.addedProviders() ?? [])
    where !before.contains(provider) { try Command.tellAgreement(on: provider, context) }
    try manager(context.source.requireIntact(name))
    if context.isJSON {
      try context.output(["vault": .string(name), "accounts": .array(accounts.map(json))])
    }
    context.tell(
      accounts.isEmpty
        ? "the vault \(quoted(name)) has no accounts yet"
        : "the vault \(quoted(name)) has \(accounts.count == 1 ? "1 account" : "\(accounts.count) accounts")")
  }

  /// Returns the accounts whose tokens go to new places together with those of the vault: this machine's own, and those
  /// on their way to a vault. The copies of other vaults are removed.
  private static func accountsThatFollow(
    _ provider: String, to places: [NewPlace], _ context: Context
  ) -> [String] {
    guard places.contains(where: { [.secrets, .tokens].contains($0.kind) }) else { return [] }
    let accounts = (try? context.source.accountsIfAny()?.accounts(of: provider)) ?? []
    return accounts.filter { $0.credential.vault == nil || $0.credential.isMoving }.map(\.name)
  }
}
