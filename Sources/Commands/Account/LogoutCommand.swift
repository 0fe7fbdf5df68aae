import CredmgrCredentialManager
import CredmgrHTTP
import CredmgrJSON
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

/// The accounts that were logged out, and the first refusal to revoke a token.
private struct LogoutOutcome {
  var rows: [JSONValue] = []
  var refusal: Message?
}

extension Command {
  static let logout = Command(
    name: "logout", operands: "ID|--all", operandCount: 0...1,
    summary: "Revoke and delete the credential of an account",
    options: [
      account, Option("--all", "log out all accounts of the provider, or of all providers"),
      Option("--keep-remote", "delete the credential here without revoking it at the provider"),
      Option("--no-browser", "do not open the page that ends the session at the provider"),
      Option("--vault", value: "VAULT", "log out of the account of a shared vault, for all of its members"), json,
    ],
    notes: [
      "ID can also be an address from \"credmgr list\", such as https://git.example.org or docker:ghcr.io. Then "
        + "credmgr deletes the login that git or docker stored for it.",
      "If the provider has a page that ends your session, credmgr opens it in your browser. It does so at a terminal, "
        + "for one account.",
      "With ID and \"--all\", credmgr also gives up an interrupted import of the provider.",
      "Without \"--vault\", an account of a shared vault stays in that vault. Only the copy on this machine is "
        + "deleted.",
    ],
    examples: [
      ("credmgr logout github", "Log out the current account"),
      ("credmgr logout github --account work --keep-remote", "Delete an account here but keep its token valid"),
      ("credmgr logout --all", "Log out all accounts of all providers"),
    ]
  ) { invocation, context throws(CommandError) in
    if invocation.has("--all"), invocation.has("--account") { throw .exclusive(["--all", "--account"]) }
    let own = context
    let context = try own.inVaultIfNamed(invocation)
    defer { forgetCopies(invocation, own) }
    var outcome = LogoutOutcome()
    if let word = invocation.operands.first, !invocation.has("--vault"),
      let logins = try StoredLogin.delete(word, user: invocation.value("--account"), context)
    {
      guard context.isJSON else { return }
      return try context.output(
        .array(
          logins.map {
            ["provider": .string($0.origin), "account": .string($0.user), "revoked": .boolean(false)]
          }))
    }
    if let text = invocation.operands.first {
      try logOut(of: context.provider(text), invocation, context, noting: &outcome)
    } else {
      guard invocation.has("--all") else {
        throw .usage("name a provider or use \"--all\"", hint: "usage: \(invocation.command.usage)")
      }
      let providers = Set(try manager(context.source.accountsIfAny()?.accounts(of: nil) ?? []).map(\.provider))
      if providers.isEmpty { context.tell("no accounts to log out") }
      for provider in providers.sorted() { try logOut(of: provider, invocation, context, noting: &outcome) }
    }
    if context.isJSON { try context.output(invocation.has("--all") ? .array(outcome.rows) : outcome.rows[0]) }
    if invocation.has("--all") { try context.reportDamagedRecords(invocation.operands.first) }
    guard let refusal = outcome.refusal else { return }
    let text = "deleted the credential here, but not at the provider: \(refusal.text)"
    throw .failed(text, hint: "revoke the access in your account settings at the provider", status: .refused)
  }

  /// Removes this machine's copies of accounts that the shared vault no longer has. If this fails, the next use does.
  private static func forgetCopies(_ invocation: Invocation, _ context: Context) {
    guard let vault = invocation.value("--vault") else { return }
    _ = try? context.source.synchronize(with: vault, of: invocation.operands.first)
  }

  private static func logOut(
    of provider: String, _ invocation: Invocation, _ context: Context, noting outcome: inout LogoutOutcome
  ) throws(CommandError) {
    var names: [String?] = [try context.account(invocation, of: provider)]
    if invocation.has("--all") {
      names = try manager(context.source.accountsIfAny()?.accounts(of: provider).map(\.name) ?? [])
      if names.isEmpty {
        if try givesUpImport(at: provider, invocation, context) { return }
        try context.reportDamagedRecords(provider)
        throw nobody(.loginNeeded(provider: provider, account: nil, .noCredential), at: provider, context)
      }
    }
    let selected = try manager(context.source.accountsIfAny()?.selected(for: provider))
    for name in names {
      let page = endSessionPage(of: name, at: provider, invocation, context)
      let result: (account: String, revocation: CredentialSource.Revocation)
      let account = try? context.source.accountsIfAny()?.resolve(name, provider: provider)
      do throws(CredentialError) {
        result = try context.source.logout(name, of: provider, keepsRemote: invocation.has("--keep-remote"))
      } catch {
        let message = error.message(titled: context.titled)
        if case .unknownAccount = error, let message = context.message(CommandError(error)) {
          // Do not suggest logging in to a user who wants to log out.
          let others = message.hints.without("credmgr", "login")
          let status: Remedy = "\(credmgr: "status", provider) to see the accounts"
          throw .failed(message.with(hints: others.isEmpty ? [status] : others))
        }
        if case .loginNeeded(_, _, .noCredential) = error { throw nobody(error, at: provider, context) }
        if case .descriptorChanged = error {
          throw .failed(message.with(hints: [forgetting(provider, accountOption(name))]))
        }
        guard !invocation.has("--keep-remote"), [.refused, .unreachable].contains(message.status) else {
          throw CommandError(error)
        }
        throw .failed(kept(message, at: provider, name, isEverybody: invocation.has("--all")))
      }
      let isRevoked = result.revocation == .done
      let isImpossible = result.revocation == .notAsked && !invocation.has("--keep-remote")
      let keyPage = (try? context.home.library.load(provider))?.descriptor.key?.page
      let whatStays =
        account?.credential.grant.traits.typed.map {
          "; only you can revoke the \(account?.credential.isGiven == true ? "token" : $0), "
            + "at \(keyPage ?? "the provider")"
        }
        ?? "; the provider cannot revoke the token and accepts it until it expires"
      let words = account?.credential.typedWords ?? "token"
      let remote =
        isImpossible
        ? whatStays
        : isRevoked ? " and revoked the \(words)" : "; the \(words) was not revoked"
      if let vault = account?.credential.vault {
        let place =
          account?.credential.isMoving == true
          ? "may not be in the vault \(quoted(vault)), and its tokens stay valid at the provider"
          : "stays in the vault \(quoted(vault))"
        context.tell(
          "removed \"\(result.account)\" at \(context.titled(provider)) from this machine; it \(place)")
      } else {
        context.tell("logged out \"\(result.account)\" at \(context.titled(provider))\(remote)")
      }
      if let page { endSession(at: page, of: provider, context) }
      outcome.rows.append([
        "provider": .string(provider), "account": .string(result.account), "revoked": .boolean(isRevoked),
      ])
      if case .refused(let error) = result.revocation {
        outcome.refusal = outcome.refusal ?? error.message(titled: context.titled)
      }
    }
    if invocation.has("--all") { _ = try givesUpImport(at: provider, invocation, context) }
    if !invocation.has("--all"), selected != nil { try tellDefault(provider, context) }
  }

  /// Drops the answer to an interrupted import of the provider that the user named.
  private static func givesUpImport(
    at provider: String, _ invocation: Invocation, _ context: Context
  ) throws(CommandError) -> Bool {
    let keepsRemote = invocation.has("--keep-remote")
    guard !invocation.operands.isEmpty,
      try manager(context.source.dropUnfinished(of: provider, keepsRemote: keepsRemote, onlyOfImports: true))
    else { return false }
    context.tell("gave up an interrupted import at \(context.titled(provider))")
    return true
  }

  /// Returns the page that ends the user's session; `nil` if the provider has none, or if no browser would show it.
  private static func endSessionPage(
    of name: String?, at provider: String, _ invocation: Invocation, _ context: Context
  ) -> URI? {
    guard !["--all", "--keep-remote", "--no-browser"].contains(where: invocation.has), !context.isJSON,
      Terminal.isTerminal(2), SessionKind(environment: context.environment) == .desktop
    else { return nil }
    return try? context.source.endSessionPage(of: name, at: provider)
  }

  /// Opens the page. The account is already logged out, so the command succeeds without a browser.
  private static func endSession(at page: URI, of provider: String, _ context: Context) {
    let isShown = try? context.source.show(page) { address in
      (try? Browser.open(address, patience: .milliseconds(300)))?.isOpen == true
    }
    context.tell(
      isShown == true
        ? "ending your session at \(context.titled(provider)) in the browser"
        : "your session at \(context.titled(provider)) in the browser did not end, because no browser opened")
  }

  /// Returns the error for a missing account. A login or another provider would not help to log out.
  private static func nobody(_ error: CredentialError, at provider: String, _ context: Context) -> CommandError {
    if context.unknown(provider) != nil { return CommandError(error) }
    let status: Remedy = "\(credmgr: "status") to see the accounts"
    return .failed(error.message(titled: context.titled).with(hints: [status]))
  }

  private static func kept(_ message: Message, at provider: String, _ name: String?, isEverybody: Bool) -> Message {
    let forget = forgetting(provider, isEverybody ? ["--all"] : accountOption(name))
    return Message(message.text + "; nothing was deleted", hint: forget, status: message.status)
  }

  private static func forgetting(_ provider: String, _ whose: [String]) -> Remedy {
    let command = ["logout", provider] + whose + ["--keep-remote"]
    return "\(credmgr: command) to delete the account\(whose == ["--all"] ? "s" : "") here only"
  }

  /// Reports that no default account is left, so that the user does not learn it from a failing script.
  private static func tellDefault(_ provider: String, _ context: Context) throws(CommandError) {
    let accounts = try manager(context.source.accountsIfAny())
    let names = try manager(accounts?.accounts(of: provider).map(\.name) ?? [])
    guard try manager(accounts?.selected(for: provider)) == nil, let first = names.first else { return }
    guard names.count > 1 else {
      return context.tell("\"\(first)\" is now the only account of \(context.titled(provider))")
    }
    context.tell("\(context.titled(provider)) no longer has a default account; its accounts are \(listed(names))")
    context.tell(hint: "\(credmgr: "use", provider, first) to set the default account")
  }
}
