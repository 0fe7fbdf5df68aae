import CredmgrCredentialManager
import CredmgrStore
import CredmgrText

extension Notice {
  /// Returns the sentence, and how the user can react to it.
  ///
  /// - Parameter titled: returns the title that the user knows for a provider's identifier.
  package func message(now: Moment, titled: (String) -> String = quoted) -> Message {
    Message(
      sentence(now: now, titled: titled), items: cause.map { [$0.message(titled: titled).text] } ?? [], hint: remedy,
      status: .done)
  }

  /// Whether to show the notice now. Short waits are usual. Without a terminal, only the wait for another machine,
  /// which may have died, takes this long.
  package func isDue(atTerminal: Bool) -> Bool {
    guard case .waiting(_, _, let time) = self else { return true }
    return time >= .seconds(atTerminal ? 1 : 10)
  }

  /// The error that the sentence reports.
  private var cause: CredentialError? {
    switch self {
    case .unidentified(_, _, let error), .unchecked(_, let error), .tokensLeft(_, let error): error
    case .loginsRefused(let error), .idTokenUnverified(_, let error), .notRefreshed(_, _, _, let error),
      .withheld(_, _, let error):
      error
    default: nil
    }
  }

  private func sentence(now: Moment, titled: (String) -> String) -> String {
    switch self {
    case .waiting(let provider, let account, _):
      "waiting for another process that uses " + (account.map { "\(quoted($0)) at " } ?? "") + titled(provider)
    case .unidentified(let account, _, _): "named the account \(quoted(account)), because its user is unknown"
    case .unchecked(let account, _): "cannot check the user of the account \(quoted(account))"
    case .chosen(let provider, let label, let count, _):
      "warning: used \(shortened(label)), the first of \(count) entries in the answer of \(titled(provider))"
    case .usedAgain(let provider, let label, let account):
      "warning: used \(shortened(label)) of the account \(quoted(account)), because \(titled(provider)) did not say "
        + "who logged in"
    case .usedInstead(let provider, let label, let account):
      "warning: the account \(quoted(account)) now uses \(shortened(label)), because the answer of "
        + "\(titled(provider)) does not list the earlier entry"
    case .uses(_, let label, let account):
      "the account \(quoted(account)) now uses \(shortened(label)) instead of its earlier entry"
    case .elementKept(let provider, let account):
      "warning: the account \(quoted(account)) keeps its earlier entry, because \(titled(provider)) did not list any"
    case .valuesStay(let provider, let values):
      "later logins to \(titled(provider)) also use " + values.map { "\"--set \($0)\"" }.joined(separator: ", ")
    case .unconfirmed(let account, let provider, let credential):
      "warning: \(titled(provider)) did not confirm the \(credential) of \(quoted(account))"
    case .unnameable(let account, let provider):
      "named the account \(quoted(account)), because the name from \(titled(provider)) has control characters or "
        + "more than 255 bytes"
    case .hidden(let provider, let account, let vault):
      "using this machine's account \(quoted(account)) at \(titled(provider)), "
        + "not the one in the vault \(quoted(vault))"
    case .vanished(let provider, let account, let vault):
      "the vault \(quoted(vault)) no longer has the account \(quoted(account)) at \(titled(provider))"
    case .registrationTaken(let provider, let vault):
      "\(titled(provider)) was added from the vault \(quoted(vault))"
    case .setAside(let copy, let vault):
      "another member changed your descriptor in the vault \(quoted(vault)); your text is now in \(quoted(copy))"
    case .withheld(let provider, let vault, _):
      "warning: the accounts of \(titled(provider)) in the vault \(quoted(vault)) are not used here"
    case .interrupted(let interruption): interruption.words(now: now, titled: titled)
    case .beginsAnew(let interruption): interruption.words(now: now, titled: titled) + "; starting over"
    case .importFinished(let provider, let account):
      "finished an interrupted import of \(quoted(account)) at \(titled(provider))"
    case .importedTokenReplaced(let provider):
      "warning: \(titled(provider)) replaced the refresh token, so the entry of the other tool needs a new login"
    case .sameIdentity(_, let account, let identity, let other):
      "warning: accounts \(quoted(other)) and \(quoted(account)) are now both \(quoted(identity))"
    case .renamed(let provider, let account, let before, let now):
      "\(titled(provider)) renamed the user of the account \(quoted(account)) from \(quoted(before)) to \(quoted(now))"
    case .defaultNeedsLogin(let provider, let account, _):
      "the account \(quoted(account)) of \(titled(provider)) still needs a login"
    case .tokensLeft(let provider, _):
      "warning: the tokens of a login to \(titled(provider)) that did not complete are still valid"
    case .loginsRefused: "warning: logins will fail"
    case .unreadable(let provider, let fields):
      "warning: ignored an unreadable \(listed(fields.map(\.rawValue))) in the answer of \(titled(provider))"
    case .idTokenUnverified(let provider, _):
      "cannot verify the ID token of \(titled(provider)), so kubectl does not get it"
    case .authenticationUnconfirmed(let provider):
      "warning: \(titled(provider)) did not say how or when you authenticated, so its API may still refuse the token"
    case .certificateRefused(let provider, let fault):
      "warning: the server may have refused the client certificate of \(titled(provider)): \(fault.sentence)"
    case .handOutNotNoted(let error):
      "warning: cannot log which program received the credential: \(error.message.text)"
    case .notRefreshed(let provider, let account, let left, _):
      "warning: cannot refresh the \(titled(provider)) token for \(quoted(account))"
        + (left.map { ", which is valid for another \(duration($0))" } ?? "")
    }
  }

  private var remedy: Remedy? {
    switch self {
    case .unidentified(_, let other?, _):
      guard let name = other.name else { return nil }
      return "\(credmgr: "login", other.provider, "--account", name) to replace the token of \(quoted(name)) instead"
    case .interrupted(let interruption): return interruption.remedy
    case .chosen(let provider, _, _, let variable?):
      return "\(credmgr: "login", provider, "--set", "\(variable)=NAME") to use another one"
    case .withheld(_, let vault, .peculiar), .withheld(_, let vault, .importWidens):
      return "\(credmgr: "vault", "sync", "--vault", vault) at a terminal to agree"
    case .withheld(_, _, let error): return error.message.hints.first
    case .certificateRefused(let provider, _): return .replacingCertificate(of: provider)
    case .tokensLeft: return "revoke the access in your account settings at the provider if you do not use it"
    case .uses(let provider, _, _):
      return "\(credmgr: "login", provider, "--account", "NAME") to have an account for each"
    case .defaultNeedsLogin(let provider, _, let other):
      return "\(credmgr: "use", provider, other) to use \(quoted(other)) by default"
    case .sameIdentity(let provider, let account, _, _):
      // A logout would revoke the tokens, and with them those of the other account at some providers.
      return "\(credmgr: "login", provider, "--account", account, "--replace") to sign in as another user"
    case .notRefreshed(_, _, _, let error):
      guard case .loginNeeded = error else { return nil }
      return error.message.hints.first
    default: return nil
    }
  }
}

extension LoginNote {
  fileprivate var arguments: [String] {
    scope.flatMap { ["--scope", $0] }
      + variables.sorted { $0.key < $1.key }.flatMap { ["--set", "\($0.key)=\($0.value)"] }
  }
}

extension Interruption {
  /// Returns what was interrupted, and the possible consequences.
  package func words(now: Moment, titled: (String) -> String = quoted) -> String {
    let whose = (account.map { " of \(quoted($0))" } ?? "") + " at \(titled(provider))"
    let past = startedAt > 0 && now - startedAt >= .seconds(60) ? " \(duration(now - startedAt)) ago" : ""
    let isImport = !options.importWords.isEmpty
    let interrupted = " \(isImport ? "import" : exchange.rawValue)\(whose) was interrupted\(past)"
    return switch exchange {
    case .refresh:
      "a" + interrupted
        + (vault.map { ", and the new token may wait on this machine for the vault \(quoted($0))" }
          ?? ", and the new token may be lost")
    case .login: (isImport ? "an" : "a") + interrupted
    case .logout: "a" + interrupted + ", and the token may be revoked"
    }
  }

  package var remedy: Remedy {
    let account = accountOption(account)
    return switch exchange {
    case .refresh:
      vault.map { "\(credmgr: "vault", "sync", "--vault", $0) to store it" }
        ?? "if the token is rejected, \(credmgr: ["login", provider] + account)"
    case .login where !options.importWords.isEmpty: "\(credmgr: options.importWords) to finish it"
    case .login: "\(credmgr: ["login", provider] + account + options.arguments) again"
    case .logout: "\(credmgr: ["logout", provider] + account) to finish it"
    }
  }
}
