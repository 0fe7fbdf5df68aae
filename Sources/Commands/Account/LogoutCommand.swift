import CredentialManager
import Cryptography
import Descriptors
import JSON
import OAuth
import Platform
import Text

extension Command {
  static let logout = Command(
    name: "logout", operands: "ID", operandCount: 1...1,
    summary: "Revoke the tokens at the provider, and forget them",
    options: [
      account, Option("--all", "all accounts of the provider"),
      Option("--keep-remote", "only forget them here; the provider is not asked"),
    ],
    examples: [
      Example("credmgr logout github", "the account that is used here"),
      Example("credmgr logout github --account work --keep-remote", "another one, whose token stays good elsewhere"),
    ], needsNetwork: true
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    var names: [String?] = [try context.account(invocation, of: provider)]
    if invocation.has("--all") {
      if invocation.has("--account") { throw .exclusive(["--all", "--account"]) }
      names = try manager(context.source.accountsIfAny()?.accounts(of: provider).map(\.name) ?? [])
      if names.isEmpty {
        try context.reportDamagedRecords(provider)
        throw CommandError(.loginNeeded(provider: provider, account: nil, .noCredential))
      }
    }
    let selected = try manager(context.source.accountsIfAny()?.selected(for: provider))
    for name in names {
      let result: (account: String, isRevoked: Bool)
      do throws(CredentialError) {
        result = try context.source.logout(name, of: provider, keepsRemote: invocation.has("--keep-remote"))
      } catch {
        let message = error.message
        if case .unknownAccount = error, let message = context.message(CommandError(error)) {
          // Nobody logs in to log out.
          let others = message.hints.without("credmgr", "login")
          throw .failed(
            message.with(
              hints: others.isEmpty ? ["\(credmgr: "status", provider) to see who is logged in"] : others))
        }
        if case .descriptorChanged = error {
          throw .failed(message.with(hints: message.hints + [forgetting(provider, name)]))
        }
        guard !invocation.has("--keep-remote"), [.refused, .unreachable].contains(message.status) else {
          throw CommandError(error)
        }
        throw .failed(kept(message, provider, name, isEverybody: invocation.has("--all")))
      }
      let remote = result.isRevoked ? "revoked at the provider and forgotten" : "forgotten"
      context.tell("\"\(result.account)\" at \"\(provider)\": \(remote)")
    }
    if !invocation.has("--all") { try tellDefault(provider, before: selected, context) }
    if invocation.has("--all") { try context.reportDamagedRecords(provider) }
    return .done
  }

  /// A logout that the provider did not see.
  private static func kept(_ message: Message, _ provider: String, _ name: String?, isEverybody: Bool) -> Message {
    // Another login would not help to be rid of this one.
    let hints = message.hints.without("credmgr", "login")
    let forget: Remedy =
      isEverybody
      ? "\(credmgr: "logout", provider, "--all", "--keep-remote") to forget the accounts here alone"
      : forgetting(provider, name)
    return Message(message.text + "; nothing was forgotten", hints: hints + [forget], status: message.status)
  }

  private static func forgetting(_ provider: String, _ name: String?) -> Remedy {
    let command = ["logout", provider] + accountOption(name) + ["--keep-remote"]
    return "\(credmgr: command) to forget the account here alone"
  }

  /// Who goes without a default account from now on is not to find that out in a script.
  private static func tellDefault(_ provider: String, before: String?, _ context: Context) throws(CommandError) {
    guard before != nil else { return }
    let (names, selected) = try manager { () throws(CredentialError) -> ([String], String?) in
      guard let accounts = try context.source.accountsIfAny() else { return ([], nil) }
      return (try accounts.accounts(of: provider).map(\.name), try accounts.selected(for: provider))
    }
    guard selected == nil, let first = names.first else { return }
    guard names.count > 1 else { return context.tell("\"\(first)\" is the only account of \"\(provider)\" now") }
    context.tell(
      "\"\(provider)\" has no default account any more; there are "
        + names.map { "\"\($0)\"" }.joined(separator: ", "))
    context.tell(hint: "\(credmgr: "use", provider, first) to make one the default")
  }
}
