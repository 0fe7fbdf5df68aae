import HTTP
import OAuth
import Platform
import Descriptors
import Store

package enum CredentialError: Error, Sendable, Equatable {
  package enum LoginReason: Sendable, Equatable {
    case noCredential
    case expired
    /// The token is good, and there is nothing to refresh it with.
    case notRefreshable
    /// The provider does not take the refresh token any more; its words.
    case refreshRefused(String?)
    /// As `refreshRefused`; an earlier process was stopped between the provider's answer and its commit, so that the
    /// answer is lost.
    case refreshInterrupted(String?)
    /// The provider refused the token, and there is nothing to refresh it with.
    case rejected
  }

  case noHome
  case relativeHome(String)
  case provider(ProviderError)
  case oauth(OAuthError, provider: String)
  case http(HTTPError, provider: String)
  case vault(StoreError)
  case system(POSIXError)
  case notAdded(provider: String, ClientNeeds)
  case alreadyAdded(provider: String)
  case discovery(MetadataError, issuer: String)
  case clientIdentifierMissing(provider: String, ClientNeeds)
  case loginNeeded(provider: String, account: String?, LoginReason)
  case unknownAccount(String, provider: String, known: [String])
  case ambiguousAccount(provider: String, known: [String])
  /// A name that cannot be an account's: empty, over 255 bytes, or with control characters.
  case malformedAccount(String)
  /// The login was for somebody else than the account is, or the provider does not say for whom it was.
  case identityMismatch(account: String, expected: String, found: String?)
  /// Somebody is logged in under the name that a login without one gets, and the provider does not say who logs in.
  case nameNeeded(provider: String, account: String)
  case grantNotOffered(Grant, offered: [Grant])
  /// The person has to paste the redirect, or the code that a page shows, and there is nobody to ask.
  case pasteNeeded(provider: String, isCode: Bool)
  case timedOut(seconds: Int64)
  case lockTimedOut(provider: String, account: String?)
  /// The provider gave a new token, and the vault could not take it. Where it is kept beside the vault, the next one to
  /// use the account takes it from there.
  case uncommitted(provider: String, account: String?, isKept: Bool, StoreError)
  case interrupted
  /// A browser came to an app's scheme, and no login waits for that.
  case noLoginWaits
  /// This needs the network, which the program that was asked does not have.
  case networkNeeded
  case destinationChange(provider: String, accounts: [String], hosts: [NewHost])
  /// A descriptor was changed after it was added, and would send tokens or the secret to other hosts; which.
  case descriptorChanged(provider: String, file: String, hosts: [NewHost])
  case accountsRemain(provider: String, accounts: [String])
  /// A provider cannot be removed while somebody is about to be logged in there; `nil` for whoever it will be.
  case loginUnderWay(provider: String, account: String?)
  case extended(provider: String, by: [String])
  /// The provider was not added, and there is no descriptor of the person's own.
  case nothingToRemove(provider: String)
  case malformedRegistration(provider: String)
  case malformedRules([Finding])
  /// The file with the rules for accounts is written in a way that is not edited but by hand.
  case uneditableRules(String)
  /// What is given is not a token: empty, or with spaces or control characters in it.
  case malformedToken
  case tokenRefused(provider: String, words: String?)
  case notValidatable(provider: String)
  case malformedExport
  case wrongExportPassphrase
  case newPassphraseUnavailable(POSIXError)
  case exportPassphraseUnavailable(POSIXError)
  case alreadyThere([RecordIdentifier])
}
