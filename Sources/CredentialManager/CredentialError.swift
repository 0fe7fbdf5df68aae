import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrDescriptors
import CredmgrStore

package enum CredentialError: Error, Sendable, Equatable {
  package indirect enum LoginReason: Sendable, Equatable {
    case noCredential
    case expired
    case notRefreshable
    case refreshRefused(String?)  // The provider refuses the refresh token; its text.
    /// The provider refuses the refresh token after an interrupted refresh, whose answer was lost before it was saved.
    case refreshInterrupted(String?)
    case rejected
    /// The provider does not list exactly one element, such as an organization, whose token the account has.
    case elementGone
    case otherIssuer  // An issuer other than the descriptor's made the refresh token.
    case loginUnderWay  // Only the running login keeps the account from being refreshed.
    case typed(String, LoginReason)  // Why only the user can replace a credential, and the words for it.

    /// Whether an API rejected the credential, which the provider may still accept.
    package var isRejection: Bool {
      switch self {
      case .rejected: true
      case .typed(_, let reason): reason.isRejection
      default: false
      }
    }
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
  case descriptorExists(String)  // The path of the user's file, which has other contents.
  case discovery(MetadataError, issuer: String)
  /// The address of a descriptor answers with something else; `location` is where it redirects.
  case notPublished(String, status: Int, location: String?)
  case clientIdentifierMissing(provider: String, ClientNeeds)
  case loginNeeded(provider: String, account: String?, LoginReason)
  case unknownAccount(String, provider: String, known: [String])
  case ambiguousAccount(provider: String, known: [String])
  case malformedAccount(String)
  /// The login has no further token of this name.
  case tokenMissing(provider: String, String, known: [String])
  /// The user of the login is not the account's user, or the provider does not name the user.
  case identityMismatch(provider: String, account: String, expected: String, found: String?, other: String?)
  /// The default account name is taken, and the provider does not name the user who logs in.
  case nameNeeded(provider: String, account: String)
  case grantNotOffered(Grant, offered: [Grant])
  /// The user must paste the redirect or the code, but credmgr cannot prompt for it.
  case pasteNeeded(provider: String, isCode: Bool)
  /// The token would appear in a loopback address on a machine where another program may listen at that port.
  case pasteExposesToken(provider: String)
  /// Nothing ties an answer to this login, and the scheme also receives other applications' answers.
  case schemeWithoutState(provider: String, redirect: String)
  /// The login page was opened twice, possibly once by a program other than the user's browser.
  case loginPageTaken(provider: String)
  case timedOut(after: Duration)
  case lockTimedOut(provider: String, account: String?, vault: String? = nil)
  /// The vault could not store a new token. If `isKept`, a file next to the vault holds it for the next process.
  case uncommitted(provider: String, account: String?, isKept: Bool, StoreError)
  case interrupted
  case otherLoginFailed(provider: String)  // The login of another process, for which this one waited.
  case noLoginWaits
  case networkNeeded
  case destinationChange(provider: String, accounts: [String], places: [NewPlace])
  case descriptorChanged(provider: String, file: String, isOwn: Bool, places: [NewPlace])
  case notAgreed(provider: String, origin: String, Route)
  /// Another program cannot use the token, because each request needs a key as well.
  case notUsableAlone(provider: String, Route)
  /// The provider accepts only tokens that are bound to a key, and the account has no key. `isDescribed` says whether a
  /// login would make one.
  case proofNeeded(provider: String, account: String, isDescribed: Bool)
  /// The user did not agree to the unusual parts of a descriptor.
  case peculiar(provider: String, [NewPlace], isBeingAdded: Bool)
  /// The answer names a page for the device code that is on none of the provider's servers.
  case foreignDevicePage(provider: String, origin: String)
  /// kubectl does not name its cluster, but the agreement lists clusters.
  case clusterNeeded(provider: String)
  /// This provider could receive an answer meant for another added provider (RFC 9700, 4.4).
  case mixUp(provider: String, other: String, MixUp)
  /// `vault` is the shared vault from which to remove the provider.
  case accountsRemain(provider: String, accounts: [String], vault: String? = nil)
  case loginUnderWay(provider: String, account: String?)
  case extended(provider: String, by: [String], vault: String? = nil)
  /// The account cannot be logged out, because the process is logging in to it.
  case accountInLogin(provider: String, account: String, process: Int32?)
  case nothingToRemove(provider: String, vault: String? = nil)
  case malformedRegistration(provider: String)
  case malformedRules([Finding])
  case uneditableRules(String)
  case wrongPaste(provider: String, PasteFault)
  /// The text is a key of another shipped provider, or of one of several.
  case foreignKey(provider: String, owners: [String], canAgree: Bool)
  /// The provider neither accepted nor refused the credential, and the user did not agree to store it.
  indirect case unverified(provider: String, CredentialError)
  case notStored  // The user read why, and chose so.
  /// The provider's client is the only one that can use the answer to an interrupted import.
  case importWaits(provider: String, command: [String])
  case providerChanged(String)  // Another process changed the provider during the login.
  case promptNeeded(provider: String, [String])  // The fields that the user must type.
  /// The labels that the user must bring: a key file, and values of variables with these names.
  case keyFileNeeded(provider: String, [String], variables: [String])
  /// The token of another issuer cannot be read at its place; `nil` if the user did not name one.
  case subjectToken(provider: String, Variable, SubjectTokenPlace?, SubjectTokenFault)
  case detailsNotSupported(provider: String, type: String, known: [String])
  /// `refused` has the words for the credential, and `words` the provider's text.
  case tokenRefused(provider: String, refused: String = "token", words: String?)
  case notValidatable(provider: String)
  case malformedExport
  case wrongExportPassphrase
  case newPassphraseUnavailable(POSIXError)
  case exportPassphraseUnavailable(POSIXError)
  case alreadyThere([RecordIdentifier], files: [String])
  case plainExport
  case importWidens(provider: String, [NewPlace])
  indirect case shared(SharedAccountError)
}
