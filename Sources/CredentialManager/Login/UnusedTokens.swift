import CredmgrOAuth
import CredmgrStore

/// The tokens of a login that failed or was interrupted, which no account will use.
extension CredentialSource {
  /// Revokes the tokens with `permit`, or reports that they stay valid. Many providers revoke all tokens of a user
  /// together, so it keeps the tokens beside an account that works, unless they are `ofAnotherUser`. `isGivenUp` says
  /// that the user does not want them.
  func drop(
    _ credential: Credential, of provider: String, with permit: Permit?, ofAnotherUser isOther: Bool = false,
    isGivenUp: Bool = false
  ) {
    // The user's own key and the token of another tool may be in use elsewhere.
    if credential.isTyped { return }
    if let token = credential.importedFrom {
      guard let new = credential.refreshToken, new != token else { return }
      notice(.importedTokenReplaced(provider: provider))
      if !isGivenUp { return }
    }
    let permit = isOther || !works(provider) ? permit : nil
    var failure: CredentialError?
    do throws(CredentialError) {
      let result = try permit.map { permit throws(CredentialError) in try revoke(credential, with: permit) }
      if result == .done { return }
      if case .refused(let error)? = result { failure = error }
    } catch {
      failure = error
    }
    let isOver = credential.expiresAt.map { $0 <= clock.now() } ?? false
    if credential.refreshToken != nil || !isOver { notice(.tokensLeft(provider: provider, failure)) }
  }

  /// Whether an account of the provider may work.
  private func works(_ provider: String) -> Bool {
    do throws(CredentialError) {
      guard let accounts = try accountsIfAny() else { return false }
      for account in try accounts.accounts(of: provider) {
        let note = try accounts.note(account.id)
        // A login that is failing still holds its account, which a refresh renews afterwards.
        if !accounts.state(of: account, note, isLocked: true, at: clock.now()).needsLogin { return true }
      }
      return false
    } catch {
      return true
    }
  }

  /// Does the same for logins whose notes were removed. With `keepsRemote`, credmgr sends nothing.
  func drop(_ credentials: [Credential], of provider: String, keepsRemote: Bool, areGivenUp: Bool = false) {
    let digest = (try? accountsIfAny()?.registration(of: provider))?.digest()
    for credential in credentials {
      // Only the server that issued the tokens may get them.
      let isForeign = credential.registrationDigest.map { $0 != digest } ?? false
      drop(
        credential, of: provider,
        with: keepsRemote || isForeign ? nil : try? permit(.logout, provider, variables: credential.variables),
        isGivenUp: areGivenUp)
    }
  }
}

extension Login {
  /// Whether the answer to an interrupted login is of the provider's present servers and client.
  func isCurrent(_ kept: Credential) -> Bool {
    kept.registrationDigest.map { $0 == earlierRegistration?.digest() } ?? true
  }

  /// Drops the saved tokens of an interrupted login before this login begins. Revoking them later could also revoke the
  /// new tokens.
  func drop(_ note: ExchangeNote?, in locked: borrowing LockedAccount, removesNote: Bool) throws(CredentialError) {
    guard var note, note.exchange == .login else { return }
    let kept = accounts.unfinishedLogin(note, locked.id)
    note.answer = nil
    if removesNote || kept != nil {
      do throws(CommitError) {
        try locked.resume().finish(removesNote ? .committed([]) : .ended(noting: note.encoded))
      } catch {
        throw .vault(error.reason)
      }
    }
    guard let kept else { return }
    let permit = try? source.permitToLogIn(loaded, needsClient: false, variables: kept.variables).permit
    source.drop(kept, of: provider, with: isCurrent(kept) ? permit : nil)
  }

  /// Ends an interrupted login without an account name, which this login replaces. Returns the account of an import
  /// that it finishes.
  func endUnnamed() throws(CredentialError) -> String? {
    let unnamed = AccountID(provider)
    guard let note = try accounts.note(unnamed), note.isInterruption, !accounts.store.isLocked(unnamed) else {
      return nil
    }
    do throws(CredentialError) {
      return try source.withAccountLock(unnamed, timeout: .zero, waiting: { _ in }) { locked throws(CredentialError) in
        guard let note = try accounts.note(unnamed) else { return nil }
        if let account = try finishImport(note, in: locked) { return account }
        source.notice(.beginsAnew(after: Interruption(unnamed, note)))
        try drop(note, in: locked, removesNote: true)
        return nil
      }
    } catch .lockTimedOut {
      return nil  // Another process has just begun a login.
    }
  }
}
