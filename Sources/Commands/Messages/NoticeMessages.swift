import CredentialManager
import Text

extension Notice {
  func sentence(now: Moment) -> String {
    switch self {
    case .waiting(let provider, let account, _):
      "waiting for another process that is at work with " + (account.map { "\(quoted($0)) at " } ?? "")
        + quoted(provider)
    case .unidentified(let account, let error):
      "the account is called \(quoted(account)), and whose it is is not known: \(error.message.text)"
    case .unnameable(let account, let provider):
      "the account is called \(quoted(account)): the name that \(quoted(provider)) gives it has control characters, or "
        + "more than 255 bytes"
    case .interrupted(let interruption): interruption.words(now: now) + "; " + (interruption.remedy.sentence() ?? "")
    case .beginsAnew(let interruption): interruption.words(now: now) + "; this login begins anew"
    case .sameIdentity(let provider, let account, let identity, let other):
      "warning: \(quoted(identity)) is the account \(quoted(other)) already, and \(quoted(account)) as well now; if "
        + "somebody else was meant, "
        + (("\(all: CredentialError.another(account, of: provider))" as Remedy).sentence() ?? "")
    case .notRevoked(let provider, let error):
      "warning: the new token of \(quoted(provider)) is not kept, and could not be revoked: \(error.message.text)"
    case .loginsRefused(let error): "warning: logins will be refused: \(error.message.text)"
    case .unreadable(let provider, let fields):
      "warning: the answer of \(quoted(provider)) has \(listed(fields.map(\.rawValue))) in a form that cannot be read; "
        + "the token is kept without"
    case .handOutNotNoted(let error): "warning: it cannot be noted who was handed the credential: \(error.message.text)"
    case .notRefreshed(let provider, let account, let left, let error):
      "warning: the token of \(quoted(account)) at \(quoted(provider)) "
        + (left.map { "is valid for another \(duration($0)), and could" } ?? "could")
        + " not be refreshed: \(error.message.text)" + error.login
    }
  }
}

extension CredentialError {
  /// The login that repairs an account, where nothing else does.
  fileprivate var login: String {
    guard case .loginNeeded = self, let remedy = message.hints.first?.sentence() else { return "" }
    return "; " + remedy
  }
}

extension Interruption {
  /// What happened, and what may have come of it.
  func words(now: Moment) -> String {
    let whose = (account.map { " of \(quoted($0))" } ?? "") + " at \(quoted(provider))"
    let past = startedAt > 0 && now - startedAt >= .seconds(60) ? " \(duration(now - startedAt)) ago" : ""
    let interrupted = " \(exchange.rawValue)\(whose) was interrupted\(past)"
    return switch exchange {
    case .refresh: "a" + interrupted + ", and its answer may be lost"
    case .login: "a" + interrupted
    case .logout: "a" + interrupted + ", and the token may be revoked"
    }
  }

  var remedy: Remedy {
    let account = accountOption(account)
    return switch exchange {
    case .refresh: "if the token is refused, \(credmgr: ["login", provider] + account)"
    case .login, .logout: "\(credmgr: [exchange.rawValue, provider] + account) to finish it"
    }
  }
}
