import HTTP
import OAuth
import Platform
import Descriptors
import Store

package enum CredentialError: Error, Sendable, Equatable {
  package enum LoginReason: Sendable, Equatable {
    case noCredential
    case expired
    case notRefreshable
    case refreshRefused(String?)  // The provider does not take the refresh token any more; its words.
    /// As `refreshRefused`, after a process was stopped between the provider's answer, which is lost, and its commit.
    case refreshInterrupted(String?)
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
  case malformedAccount(String)
  /// The login was for somebody else than the account is, or the provider does not say for whom it was.
  case identityMismatch(provider: String, account: String, expected: String, found: String?, other: String?)
  /// Somebody is logged in under the name that a login without one gets, and the provider does not say who logs in.
  case nameNeeded(provider: String, account: String)
  case grantNotOffered(Grant, offered: [Grant])
  /// The person has to paste the redirect, or the code that a page shows, and there is nobody to ask.
  case pasteNeeded(provider: String, isCode: Bool)
  /// The token would stand in an address of loopback, on a machine where another program may listen at that port.
  case pasteExposesToken(provider: String)
  /// Nothing ties an answer to its login, and other applications' answers arrive at the scheme.
  case schemeWithoutState(provider: String, redirect: String)
  /// The login page was opened twice, and it is not known that both times it was the person's browser.
  case loginPageTaken(provider: String)
  case timedOut(after: Duration)
  case lockTimedOut(provider: String, account: String?)
  /// The vault could not take a new token. If `isKept`, it is beside the vault, where the next process takes it from.
  case uncommitted(provider: String, account: String?, isKept: Bool, StoreError)
  case interrupted
  case noLoginWaits
  case networkNeeded
  case destinationChange(provider: String, accounts: [String], places: [NewPlace])
  case descriptorChanged(provider: String, file: String, isOwn: Bool, places: [NewPlace])
  case notAgreed(provider: String, origin: String, Route)
  /// Nobody agreed to what is unusual in a descriptor.
  case peculiar(provider: String, [NewPlace], isBeingAdded: Bool)
  /// The answer has a page for a device's code that is on none of the provider's servers.
  case foreignDevicePage(provider: String, origin: String)
  /// kubectl does not say which cluster it is for, and the agreement names clusters.
  case clusterNeeded(provider: String)
  /// An answer of another added provider could reach this one (RFC 9700, 4.4).
  case mixUp(provider: String, other: String, MixUp)
  case accountsRemain(provider: String, accounts: [String])
  case loginUnderWay(provider: String, account: String?)
  case extended(provider: String, by: [String])
  case nothingToRemove(provider: String)
  case malformedRegistration(provider: String)
  case malformedRules([Finding])
  case uneditableRules(String)
  case malformedToken
  case tokenRefused(provider: String, words: String?)
  case notValidatable(provider: String)
  case malformedExport
  case wrongExportPassphrase
  case newPassphraseUnavailable(POSIXError)
  case exportPassphraseUnavailable(POSIXError)
  case alreadyThere([RecordIdentifier], files: [String])
  case plainExport
  case importWidens(provider: String, [NewPlace])
}
