import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText

/// The end of a login: what it got becomes an account.
extension Login {
  func commit(
    _ credential: Credential, in pending: consuming PendingExchange, since start: Moment,
    clockAheadBy difference: Duration = .zero, with element: ExchangedElement? = nil, _ user: (any User)?
  ) throws(CredentialError) -> Account {
    var owned: IdentifiedAccount
    do throws(CredentialError) {
      let areMet: Bool
      do { areMet = try options.demands.areMet(by: credential, since: start, clockAheadBy: difference) } catch {
        throw .oauth(error, provider: provider)
      }
      owned = try identified(credential, with: element, user)
      if !areMet { source.notice(.authenticationUnconfirmed(provider: provider)) }
    } catch {
      let isKept = keeps(credential, after: error)
      if !isKept { discard(credential, error) }
      _ = try? pending.finish(isKept ? .unfinished : .ended(noting: nil))
      share(error)
      throw error
    }
    FaultPoint.reach("login.identified")
    var failure: CredentialError?
    let named = AccountID(provider, owned.name)
    let unused = try named == id ? nil : accounts.note(named).flatMap { accounts.unfinishedLogin($0, named) }
    do throws(CommitError) {
      let outcome = ExchangeOutcome.committed(owned.changes) { found in
        do throws(CredentialError) {
          owned = try again(owned, after: found, for: credential, with: element, user)
          return .retry(owned.changes)
        } catch {
          failure = error
          return keeps(credential, after: error) ? .keep : .discard
        }
      }
      let revision = try pending.finish(outcome) ?? 0
      FaultPoint.reach("login.committed")
      if let unused {
        accounts.store.removeAnswer(for: named)
        source.drop(unused, of: provider, with: nil)
      }
      return Account(provider: provider, name: owned.name, credential: owned.credential, revision: revision)
    } catch {
      if let failure {
        if !error.isKept { discard(credential, failure) }
        throw failure
      }
      throw .uncommitted(provider: provider, account: id.name, isKept: error.isKept, error.reason)
    }
  }

  /// Whether the next login continues after an error here: after an interruption, except with what the user can type
  /// again; and only this answer may have an imported refresh token.
  private func keeps(_ credential: Credential, after error: CredentialError) -> Bool {
    error == .interrupted && !credential.isTyped
      || error == .providerChanged(provider) && credential.importedFrom != nil
  }

  /// Looks again after another process has changed a record that the account needs.
  private func again(
    _ owned: IdentifiedAccount, after found: RecordIdentifier, for credential: Credential,
    with element: ExchangedElement?, _ user: (any User)?
  ) throws(CredentialError) -> IdentifiedAccount {
    guard found == Accounts.registration(provider) else {
      return try identified(credential, with: element, as: owned.identity, user)
    }
    owned.changes[0] = try following(owned.credential)
    return owned
  }

  /// The precondition for a credential that replaces only the account that this login found. `nil` means that it found
  /// none.
  func condition(_ existing: Account?, at place: RecordIdentifier) throws(CredentialError) -> Precondition {
    if let existing { return .revision(existing.revision) }
    return try inStore(accounts.store.isLost(place)) ? .any : .absent
  }

  /// Whether this process or another one has finished an import since the login began, whose refresh token is in no
  /// other place than this account.
  func isImported(_ name: String) throws(CredentialError) -> Bool {
    if name == finished { return true }
    guard let there = try accounts.readableAccount(AccountID(provider, name)) else { return false }
    return there.credential.importedFrom != nil && there.isNew(since: earlierAccounts)
  }

  private func discard(_ credential: Credential, _ error: CredentialError?) {
    guard case .identityMismatch(_, _, _, let found, let other)? = error else {
      return source.drop(credential, of: provider, with: permit)
    }
    source.drop(credential, of: provider, with: other == nil ? permit : nil, ofAnotherUser: found != nil)
  }

  // MARK: With a token

  func keep(_ token: Secret, secret: Secret?, _ user: (any User)?) throws(CredentialError) -> Account {
    let now = source.clock.now()
    var credential = Credential(
      grant: grant, accessToken: token, obtainedAt: now, margin: client.descriptor.expiry.margin)
    // A provider that takes only keys issues no other credential.
    credential.isGiven = client.descriptor.grants.first?.traits.isKey != true
    credential.tokenSecret = secret
    credential.expiresAt = client.descriptor.key?.lifetime.map { now + $0 }
    var own = self
    own.finished = try endUnnamed()
    var owned = try own.identified(credential, with: nil, user)
    while true {
      do throws(StoreError) {
        let revision = try accounts.store.apply(owned.changes)
        return Account(provider: provider, name: owned.name, credential: owned.credential, revision: revision)
      } catch .conflict(let found, _) {
        owned = try own.again(owned, after: found, for: credential, with: nil, user)
      } catch {
        throw .vault(error)
      }
    }
  }
}

/// The account that a login stores, and the changes that do so. The first one is that of the registration.
final class IdentifiedAccount {
  let name: String
  let credential: Credential
  var changes: [Change]
  let identity: Login.Identity

  init(name: String, credential: Credential, changes: [Change], identity: Login.Identity) {
    (self.name, self.credential, self.changes, self.identity) = (name, credential, changes, identity)
  }
}
