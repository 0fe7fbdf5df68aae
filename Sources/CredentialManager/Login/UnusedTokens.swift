import CredmgrOAuth
import CredmgrStore

/// The tokens of an interrupted login that no account will use.
extension CredentialSource {
  /// Revokes the tokens with `permit`, or reports that they stay valid.
  func drop(_ credential: Credential, of provider: String, with permit: Permit?) {
    // The user's own key may be in use elsewhere.
    if credential.isTyped { return }
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

  /// As ``drop(_:of:with:)``, for logins whose notes were removed. With `keepsRemote`, credmgr sends nothing.
  func drop(_ credentials: [Credential], of provider: String, keepsRemote: Bool) {
    for credential in credentials {
      drop(
        credential, of: provider,
        with: keepsRemote ? nil : try? permit(.logout, provider, variables: credential.variables))
    }
  }
}

extension Login {
  /// Drops the saved tokens of an interrupted login before this login begins. Revoking them later could also revoke the
  /// new tokens, because many providers revoke all tokens of a user together. So they stay valid beside an account that
  /// works.
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
    for account in try accounts.accounts(of: provider) where try !state(of: account).needsLogin {
      return source.drop(kept, of: provider, with: nil)
    }
    source.drop(
      kept, of: provider,
      with: try? source.permitToLogIn(loaded, needsClient: false, variables: kept.variables).permit)
  }

  /// Ends an interrupted login without an account name, which this login replaces.
  func endUnnamed() throws(CredentialError) {
    let unnamed = AccountID(provider)
    guard let note = try accounts.note(unnamed), note.isInterruption, !accounts.store.isLocked(unnamed) else { return }
    do throws(CredentialError) {
      try source.withAccountLock(unnamed, timeout: .zero, waiting: { _ in }) { locked throws(CredentialError) in
        guard let note = try accounts.note(unnamed) else { return }
        source.notice(.beginsAnew(after: Interruption(unnamed, note)))
        try drop(note, in: locked, removesNote: true)
      }
    } catch .lockTimedOut {
      // Another process has just begun a login.
    }
  }
}
