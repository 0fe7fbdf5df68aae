import CredentialManager
import Descriptors
import Text

extension Notice {
  /// What a person is told.
  ///
  /// - Parameter now: seconds since 1970.
  func sentence(now: Int64) -> String {
    switch self {
    case .waiting(let provider, let account, _):
      return "waiting for another process that is at work with "
        + (account.map { "\(quoted($0)) at " } ?? "") + quoted(provider)
    case .unidentified(let account, let error):
      return "the account is called \(quoted(account)), and whose it is is not known: \(error.message.text)"
    case .unnameable(let account, let provider):
      return "the account is called \(quoted(account)): the name that \(quoted(provider)) gives it "
        + "has control characters, or more than 255 bytes"
    case .interrupted(let interruption): return interruption.sentence(now: now)
    case .unreadable(let provider, let fields):
      return
        "warning: the answer of \(quoted(provider)) has \(listed(fields.map(\.rawValue))) in a form that cannot be "
        + "read; "
        + "the token is kept without"
    case .handOutNotNoted(let error):
      return "warning: it cannot be noted who was handed the credential: \(error.message.text)"
    case .notRefreshed(let provider, let account, let secondsLeft, let error):
      return
        "warning: the token of \(quoted(account)) at \(quoted(provider)) is valid for another "
        + "\(duration(secondsLeft)), "
        + "and could not be refreshed: \(error.message.text)"
    }
  }
}

extension Interruption {
  /// What happened, and what may have come of it.
  ///
  /// - Parameter now: seconds since 1970.
  func words(now: Int64) -> String {
    let whose = (account.map { " of \(quoted($0))" } ?? "") + " at \(quoted(provider))"
    let past = startedAt > 0 && now - startedAt >= 60 ? " \(duration(now - startedAt)) ago" : ""
    return switch exchange {
    case .refresh: "a refresh\(whose) was interrupted\(past), and its answer may be lost"
    case .login: "a login\(whose) was interrupted\(past)"
    case .logout: "a logout\(whose) was interrupted\(past), and the token may be revoked"
    }
  }

  /// What ends it.
  var remedy: Remedy {
    let account = accountOption(account)
    return switch exchange {
    case .refresh: "if the token is refused, \(credmgr: ["login", provider] + account)"
    case .login: "\(credmgr: ["login", provider] + account) to finish it"
    case .logout: "\(credmgr: ["logout", provider] + account) to finish it"
    }
  }

  fileprivate func sentence(now: Int64) -> String { words(now: now) + "; " + (remedy.sentence() ?? "") }
}
