import Descriptors
import OAuth
import Platform

/// What a person may want to know while something goes on.
package enum Notice: Sendable, Equatable {
  /// Another process is at work with this account; seconds waited so far.
  case waiting(provider: String, account: String?, seconds: Double)
  /// An earlier process ended in the middle of an exchange.
  case interrupted(Interruption)
  /// Fields of a token answer cannot be read; the tokens were kept without them.
  case unreadable(provider: String, fields: [ResponseField])
  /// It cannot be noted who was handed a credential: something else is in the place of the file for it.
  case handOutNotNoted(POSIXError)
  /// The token is about to expire and could not be refreshed, and is handed out as long as it lives.
  case notRefreshed(provider: String, account: String, secondsLeft: Int64, CredentialError)
  /// The provider did not say for whom a login was, so that the account has a name and no identity.
  case unidentified(account: String, CredentialError)
  /// The provider named somebody in a way that no account can be named, so that the account has another name and no
  /// identity.
  case unnameable(account: String, provider: String)
}
