import CredmgrCredentialManager
import CredmgrMessages
import CredmgrText

extension Command {
  /// `status --short`, which needs only the vault.
  static var shortStatus: Command {
    statusCommand { invocation, context throws(CommandError) in
      guard invocation.has("--short"), !["--why", "--for", "--json"].contains(where: invocation.has) else {
        throw .handOver(input: nil)
      }
      let provider: String? = if let text = invocation.operands.first { try context.provider(text) } else { nil }
      try short(of: provider, context)
    }
  }

  /// Prints the accounts that programs in this directory use, on one line. A prompt shows no errors.
  static func short(of provider: String?, _ context: Context) throws(CommandError) {
    guard let words = try? accountsHere(of: provider, context), !words.isEmpty else { return }
    try context.output(Message.visible(words.joined(separator: " ")) + "\n")
  }

  private static func accountsHere(of provider: String?, _ context: Context) throws(CommandError) -> [String] {
    guard let vault = try manager(context.source.accountsIfAny()) else { return [] }
    let accounts = try manager(vault.accounts(of: provider))
    let states = try manager(vault.states(of: accounts, at: context.clock.now()))
    var words: [String] = []
    var provider: String?
    // The accounts are sorted by provider.
    for account in accounts where account.provider != provider {
      provider = account.provider
      let own = zip(accounts, states).filter { $0.0.provider == account.provider }
      var name = try context.account(nil as String?, of: account.provider)
      if name == nil { name = own.count == 1 ? account.name : try manager(vault.selected(for: account.provider)) }
      let row = own.first { $0.0.name == name }
      let mark = row.map { $0.1.needsLogin ? "!" : "" } ?? "?"
      words.append(account.provider + (row.map { ":" + $0.0.name } ?? ":") + mark)
    }
    return words
  }
}
