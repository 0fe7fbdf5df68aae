import CredmgrCredentialManager
import CredmgrMessages
import CredmgrText

extension Command {
  static let removeProvider = Command(
    name: "remove-provider", operands: "ID", operandCount: 1...1,
    summary: "Remove a provider and its client",
    options: [
      Option("--keep-remote", "do not delete an automatically registered client at the provider"),
      Option("--vault", value: "VAULT", "remove it from this shared vault only, not from this machine"), json,
    ],
    notes: [
      "Log out all accounts of the provider first.",
      "credmgr removes the client ID, the secret and the variables from the vault and deletes your own descriptor. "
        + "Built-in descriptors stay.",
      "If \"credmgr add-provider\" registered the client, credmgr also deletes it at the provider where possible "
        + "(RFC 7592).",
      "With \"--vault\", new members of the shared vault no longer get the provider. Machines that have it keep it.",
    ],
    examples: [("credmgr remove-provider github", "Remove a provider after \"credmgr logout github --all\"")]
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    if let vault = invocation.value("--vault") { return try withdraw(provider, from: vault, context) }
    let removal: ProviderRemoval
    do throws(CredentialError) {
      removal = try context.source.remove(provider, keepsRemote: invocation.has("--keep-remote"))
    } catch {
      let message = error.message(titled: context.titled)
      guard [.refused, .unreachable].contains(message.status) else { throw CommandError(error) }
      // RFC 7592, 2.3: 401 is also the answer for a client that was already deleted.
      let mayBeGone = if case .oauth(.refused(_, let refusal), _) = error { refusal.status == 401 } else { false }
      let keeping: Remedy = "\(credmgr: "remove-provider", provider, "--keep-remote")"
      let removal: Remedy =
        mayBeGone
        ? "if the provider has already deleted the client, \(keeping)"
        : "\(keeping) to keep the client at the provider"
      let text = message.text + "; nothing was removed"
      throw .failed(Message(text, hint: removal, status: message.status))
    }
    switch removal.client {
    case .deleted(let place)?: context.tell("deleted the client at \(place)")
    case .kept?: context.tell("the client is still registered at the provider")
    case nil: break
    }
    if context.isJSON {
      let client: String? =
        switch removal.client {
        case .deleted?: "deleted"
        case .kept?: "kept"
        case nil: nil
        }
      try context.output([
        "provider": .string(provider), "client": .optional(client), "successor": .optional(removal.successor),
      ])
    }
    context.tell("removed \(quoted(provider))" + (removal.successor.map { "; the name now refers to \"\($0)\"" } ?? ""))
  }

  private static func withdraw(_ provider: String, from vault: String, _ context: Context) throws(CommandError) {
    let vault = try manager(context.source.vaultName(vault))
    try manager(context.source.withdraw(provider, from: vault))
    if context.isJSON { try context.output(["provider": .string(provider), "client": .null, "successor": .null]) }
    context.tell("removed \(quoted(provider)) from the vault \(quoted(vault)); machines that have it keep it")
  }
}
