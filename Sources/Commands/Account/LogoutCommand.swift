import CredentialManager

extension Command {
  static let logout = Command(
    name: "logout", operands: "ID", operandCount: 1...1, summary: "Revoke the tokens at the provider, and forget them",
    options: [
      account, Option("--all", "all accounts of the provider"),
      Option("--keep-remote", "only forget them here; the provider is not asked"),
    ],
    examples: [
      ("credmgr logout github", "the account that is used here"),
      ("credmgr logout github --account work --keep-remote", "another one, whose token stays good elsewhere"),
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
    var refusal: Message?
    for name in names {
      let result: (account: String, revocation: CredentialSource.Revocation)
      do throws(CredentialError) {
        result = try context.source.logout(name, of: provider, keepsRemote: invocation.has("--keep-remote"))
      } catch {
        let message = error.message
        if case .unknownAccount = error, let message = context.message(CommandError(error)) {
          // Nobody logs in to log out.
          let others = message.hints.without("credmgr", "login")
          let status: Remedy = "\(credmgr: "status", provider) to see who is logged in"
          throw .failed(message.with(hints: others.isEmpty ? [status] : others))
        }
        if case .descriptorChanged = error {
          throw .failed(message.with(hints: message.hints + [forgetting(provider, accountOption(name))]))
        }
        guard !invocation.has("--keep-remote"), [.refused, .unreachable].contains(message.status) else {
          throw CommandError(error)
        }
        throw .failed(kept(message, at: provider, name, isEverybody: invocation.has("--all")))
      }
      let remote = result.revocation == .done ? "revoked at the provider and forgotten" : "forgotten"
      context.tell("\"\(result.account)\" at \"\(provider)\": \(remote)")
      if case .refused(let error) = result.revocation { refusal = refusal ?? error.message }
    }
    if invocation.has("--all") {
      try context.reportDamagedRecords(provider)
    } else if selected != nil {
      try tellDefault(provider, context)
    }
    guard let refusal else { return }
    let text = "credmgr forgot the tokens, but the provider did not revoke them: \(refusal.text)"
    throw .failed(text, hint: "revoke the access of credmgr in your settings at the provider", status: .refused)
  }

  private static func kept(_ message: Message, at provider: String, _ name: String?, isEverybody: Bool) -> Message {
    // Another login would not help to be rid of this one.
    let hints = message.hints.without("credmgr", "login")
    let forget = forgetting(provider, isEverybody ? ["--all"] : accountOption(name))
    return Message(message.text + "; nothing was forgotten", hints: hints + [forget], status: message.status)
  }

  private static func forgetting(_ provider: String, _ whose: [String]) -> Remedy {
    let command = ["logout", provider] + whose + ["--keep-remote"]
    return "\(credmgr: command) to forget the account\(whose == ["--all"] ? "s" : "") here alone"
  }

  /// Who goes without a default account from now on is not to find that out in a script.
  private static func tellDefault(_ provider: String, _ context: Context) throws(CommandError) {
    let accounts = try manager(context.source.accountsIfAny())
    let names = try manager(accounts?.accounts(of: provider).map(\.name) ?? [])
    guard try manager(accounts?.selected(for: provider)) == nil, let first = names.first else { return }
    guard names.count > 1 else { return context.tell("\"\(first)\" is the only account of \"\(provider)\" now") }
    let known = names.map { "\"\($0)\"" }.joined(separator: ", ")
    context.tell("\"\(provider)\" has no default account any more; there are \(known)")
    context.tell(hint: "\(credmgr: "use", provider, first) to make one the default")
  }
}
