import HTTP
import OAuth
import Platform
import Descriptors
import Store

/// Why there is no credential, or why it could not be used.
package enum CredentialError: Error, Sendable, Equatable {
  /// Why a person has to log in.
  package enum LoginReason: Sendable, Equatable {
    /// Nobody is logged in.
    case noCredential
    /// The token has expired, and there is nothing to refresh it with.
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

  /// Neither `CREDMGR_HOME` nor `HOME` says where to keep anything.
  case noHome
  /// `CREDMGR_HOME` is not an absolute path.
  case relativeHome(String)
  /// The descriptor.
  case provider(ProviderError)
  /// The protocol, with this provider.
  case oauth(OAuthError, provider: String)
  /// The network, with this provider.
  case http(HTTPError, provider: String)
  /// The vault.
  case vault(StoreError)
  /// The system.
  case system(POSIXError)
  /// The provider is known, but was not added.
  case notAdded(provider: String, ClientNeeds)
  /// The provider was added before.
  case alreadyAdded(provider: String)
  /// An issuer's metadata is not taken.
  case discovery(MetadataError, issuer: String)
  /// The client identifier is missing.
  case clientIdentifierMissing(provider: String, ClientNeeds)
  /// A person has to log in.
  case loginNeeded(provider: String, account: String?, LoginReason)
  /// There is no such account; those that there are.
  case unknownAccount(String, provider: String, known: [String])
  /// There are several accounts, and none is the default.
  case ambiguousAccount(provider: String, known: [String])
  /// A name that cannot be an account's: empty, over 255 bytes, or with control characters.
  case malformedAccount(String)
  /// The login was for somebody else than the account is, or the provider does not say for whom it was.
  case identityMismatch(account: String, expected: String, found: String?)
  /// Somebody is logged in under the name that a login without one gets, and the provider does not say who logs in.
  case nameNeeded(provider: String, account: String)
  /// The provider does not offer this grant; what it offers.
  case grantNotOffered(Grant, offered: [Grant])
  /// The person has to paste the redirect, or the code that a page shows, and there is nobody to ask.
  case pasteNeeded(provider: String, isCode: Bool)
  /// Nobody answered in time.
  case timedOut(seconds: Int64)
  /// Another process did not finish in time with this account.
  case lockTimedOut(provider: String, account: String?)
  /// The provider gave a new token, and the vault could not take it. Where it is kept beside the vault, the next one to
  /// use the account takes it from there.
  case uncommitted(provider: String, account: String?, isKept: Bool, StoreError)
  /// The person stopped it.
  case interrupted
  /// A browser came to an app's scheme, and no login waits for that.
  case noLoginWaits
  /// This needs the network, which the program that was asked does not have.
  case networkNeeded
  /// The descriptor would send tokens of existing accounts to other places; which.
  case destinationChange(provider: String, accounts: [String], hosts: [NewHost])
  /// A descriptor was changed after it was added, and would send tokens or the secret to other hosts; which.
  case descriptorChanged(provider: String, file: String, hosts: [NewHost])
  /// A provider cannot be removed while somebody is logged in there.
  case accountsRemain(provider: String, accounts: [String])
  /// A provider cannot be removed while somebody is about to be logged in there; `nil` for whoever it will be.
  case loginUnderWay(provider: String, account: String?)
  /// A provider cannot be removed whose descriptor those of others extend.
  case extended(provider: String, by: [String])
  /// The provider was not added, and there is no descriptor of the person's own.
  case nothingToRemove(provider: String)
  /// A kept registration cannot be read.
  case malformedRegistration(provider: String)
  /// The file with the rules for accounts has errors.
  case malformedRules([Finding])
  /// The file with the rules for accounts is written in a way that is not edited but by hand.
  case uneditableRules(String)
  /// What is given is not a token: empty, or with spaces or control characters in it.
  case malformedToken
  /// The provider does not take the token that the person brought; its words.
  case tokenRefused(provider: String, words: String?)
  /// The provider has no way to say whether a token is good.
  case notValidatable(provider: String)
  /// What is to be imported was not exported by this program.
  case malformedExport
  /// The passphrase is not the one of the exported file.
  case wrongExportPassphrase
  /// Nobody answered for the new passphrase of the vault.
  case newPassphraseUnavailable(POSIXError)
  /// Nobody answered for the passphrase of the exported file.
  case exportPassphraseUnavailable(POSIXError)
  /// The import would replace these.
  case alreadyThere([RecordIdentifier])
}
