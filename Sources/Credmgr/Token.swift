import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrMessages
import CredmgrOAuth
import CredmgrText

/// An access token and what the provider said about it. Descriptions do not show the token.
public struct Token: Sendable, Equatable {
  /// The name of the token's account.
  public let account: String
  /// The expiry; `nil` if the provider does not say.
  public let expiresAt: Timestamp?
  /// The granted scopes, or the requested ones if the provider does not say.
  public let scope: [String]
  let secret: Secret

  /// Returns the token itself.
  public func reveal() -> String { secret.reveal() }
}

/// A moment in UTC.
public struct Timestamp: Sendable, Hashable, Comparable {
  /// The seconds since 1970, without leap seconds.
  public let secondsSince1970: Int64

  /// The earlier one is less.
  public static func < (one: Timestamp, other: Timestamp) -> Bool { one.secondsSince1970 < other.secondsSince1970 }
}

/// Why a program gets no credential.
public enum CredentialsError: Error, Sendable, Equatable, CustomStringConvertible {
  /// A user has to log in: `credmgr login PROVIDER`.
  case loginRequired(provider: String, account: String?)
  /// The provider or another process did not answer. A later call may succeed: after the time that the provider
  /// named, or `nil` if it named none.
  case unavailable(retryAfter: Duration?)
  /// Another error, with the message that `credmgr` prints for it. The message is for a log and shows no secret.
  case failed(String)

  /// Returns the error in words, for a log.
  public var description: String {
    switch self {
    case .loginRequired(let provider, let account):
      "login required: run "
        + quoted((["credmgr", "login", provider] + accountOption(account)).map(argument).joined(separator: " "))
    case .unavailable(let retryAfter):
      "no token is available now: try again " + (retryAfter.map { "in \(patience($0))" } ?? "later")
    case .failed(let message): message
    }
  }

  /// - Parameter titled: returns the title that the user knows for a provider's identifier.
  init(_ error: CredentialError, titled: (String) -> String = quoted) {
    self =
      switch error {
      case .loginNeeded(let provider, let account, _): .loginRequired(provider: provider, account: account)
      case .oauth(.unavailable(_, _, _, let retryAfter), _): .unavailable(retryAfter: retryAfter)
      case .http(.invalidURI, _), .http(.invalidMethod, _), .http(.invalidField, _):
        .failed(error.message(titled: titled).text)
      case .http, .lockTimedOut, .timedOut, .vault(.server(.unreachable, _)), .vault(.server(.silent, _)):
        .unavailable(retryAfter: nil)
      default: .failed(error.message(titled: titled).text)
      }
  }
}
