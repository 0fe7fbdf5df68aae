import Descriptors
import OAuth
import Platform

package enum Notice: Sendable, Equatable {
  case waiting(provider: String, account: String?, seconds: Double)
  case interrupted(Interruption)
  /// Fields of a token answer cannot be read; the tokens were kept without them.
  case unreadable(provider: String, fields: [ResponseField])
  /// It cannot be noted who was handed a credential: something else is in the place of the file for it.
  case handOutNotNoted(POSIXError)
  /// The token is about to expire and could not be refreshed, and is handed out as long as it lives.
  case notRefreshed(provider: String, account: String, secondsLeft: Int64, CredentialError)
  /// The provider did not say for whom a login was, so that the account has a name and no identity.
  case unidentified(account: String, CredentialError)
  /// The provider's name for somebody cannot be an account's, so that the account has another name and no identity.
  case unnameable(account: String, provider: String)
}
