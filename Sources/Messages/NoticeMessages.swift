import CredmgrCredentialManager
import CredmgrStore
import CredmgrText

extension Notice {
  /// - Parameter titled: returns the title that the user knows for a provider's identifier.
  package func sentence(now: Moment, titled: (String) -> String = quoted) -> String {
    switch self {
    case .waiting(let provider, let account, _):
      "waiting for another process that uses " + (account.map { "\(quoted($0)) at " } ?? "") + titled(provider)
    case .unidentified(let account, let other, let error):
      "named the account \(quoted(account)), because its user is unknown: \(error.message(titled: titled).text)"
        + Self.replacing(other)
    case .unchecked(let account, let error):
      "cannot check the user of the account \(quoted(account)): \(error.message(titled: titled).text)"
    case .unconfirmed(let account, let provider):
      "warning: \(titled(provider)) did not confirm that the token of \(quoted(account)) is valid"
    case .unnameable(let account, let provider):
      "named the account \(quoted(account)), because the name from \(titled(provider)) has control characters or "
        + "more than 255 bytes"
    case .interrupted(let interruption):
      interruption.words(now: now, titled: titled) + "; " + (interruption.remedy.sentence() ?? "")
    case .beginsAnew(let interruption): interruption.words(now: now, titled: titled) + "; starting over"
    case .sameIdentity(let provider, let account, let identity, let other):
      "warning: accounts \(quoted(other)) and \(quoted(account)) are now both \(quoted(identity)); "
        + (("\(credmgr: "logout", provider, "--account", account)" as Remedy).sentence() ?? "")
        + " if you meant another user"
    case .notRevoked(let provider, let error):
      "warning: the new token of \(titled(provider)) was not stored and could not be revoked: "
        + error.message(titled: titled).text
    case .loginsRefused(let error): "warning: logins will fail: \(error.message(titled: titled).text)"
    case .unreadable(let provider, let fields):
      "warning: ignored an unreadable \(listed(fields.map(\.rawValue))) in the answer of \(titled(provider))"
    case .handOutNotNoted(let error):
      "warning: cannot log which program received the credential: \(error.message.text)"
    case .notRefreshed(let provider, let account, let left, let error):
      "warning: cannot refresh the \(titled(provider)) token for \(quoted(account))"
        + (left.map { ", which is valid for another \(duration($0))" } ?? "")
        + ": \(error.message(titled: titled).text)" + error.login
    }
  }
}

extension Notice {
  private static func replacing(_ other: AccountID?) -> String {
    guard let other, let name = other.name else { return "" }
    let remedy: Remedy = "\(credmgr: "login", other.provider, "--account", name)"
    return "; to replace the token of \(quoted(name)) instead, \(remedy.sentence() ?? "")"
  }
}

extension CredentialError {
  /// The login that repairs an account; empty if something else does.
  fileprivate var login: String {
    guard case .loginNeeded = self, let remedy = message.hints.first?.sentence() else { return "" }
    return "; " + remedy
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
    let interrupted = " \(exchange.rawValue)\(whose) was interrupted\(past)"
    return switch exchange {
    case .refresh: "a" + interrupted + ", and the new token may be lost"
    case .login: "a" + interrupted
    case .logout: "a" + interrupted + ", and the token may be revoked"
    }
  }

  package var remedy: Remedy {
    let account = accountOption(account)
    return switch exchange {
    case .refresh: "if the token is rejected, \(credmgr: ["login", provider] + account)"
    case .login: "\(credmgr: ["login", provider] + account + options.arguments) again"
    case .logout: "\(credmgr: ["logout", provider] + account) to finish it"
    }
  }
}
