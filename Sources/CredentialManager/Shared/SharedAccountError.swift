/// A failure of an account on its way to a shared vault, or of the choice of a vault.
package enum SharedAccountError: Error, Sendable, Equatable {
  package enum OtherProvider: Sendable, Equatable {
    /// This machine has a provider of its own.
    case isOwn
    /// The members changed the provider since this machine got it.
    case isOutdated
    /// This machine would share an account of its own provider.
    case isGiven
    /// A file of the user takes the place of the vault's descriptor.
    case hasFile(path: String)
  }

  /// The user must name one of the joined vaults.
  case vaultNeeded(known: [String])
  /// The account is in that shared vault already.
  case alreadyShared(provider: String, account: String, vault: String)
  /// The vault has another account of this name.
  case nameTaken(provider: String, account: String, vault: String)
  /// A login of this machine was interrupted on its way to the vault, and another member has logged in since.
  case loggedInSince(provider: String, account: String, vault: String)
  /// The account of a login is on this machine only, because the vault did not take it. `replaces` says whether the
  /// vault's account of this name is to be replaced.
  case notInVault(provider: String, account: String, vault: String, replaces: Bool, CredentialError)
  /// This machine and the vault have different providers of this name, and the places would get the tokens of the other
  /// one.
  case otherProvider(provider: String, vault: String, [NewPlace], OtherProvider)
  /// The members changed a descriptor that several providers of the vault extend, but not this provider. The places
  /// would get its tokens.
  case notAgreed(provider: String, vault: String, [NewPlace])
  /// Another member changed the provider or shared an account of it after the user was asked. `isChangedHere` says
  /// whether this machine's own provider is changed already.
  case providerChanged(provider: String, vault: String, isChangedHere: Bool)
  /// The variable names a place on this machine, which other members must not choose.
  case notShareable(provider: String, variable: String)
  /// A request for the account was interrupted or refused, so its tokens may no longer be valid.
  case unfinishedExchange(provider: String, account: String)
  /// The answer to a refresh waits here for the vault, which does not take it because of the error.
  case answerWaits(provider: String, account: String, vault: String, CredentialError)
  /// The account is on its way to the vault.
  case unfinishedShare(provider: String, account: String, vault: String)
}
