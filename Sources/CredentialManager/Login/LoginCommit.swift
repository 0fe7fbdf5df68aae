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
    let owned: (name: String, credential: Credential, changes: [Change])
    do throws(CredentialError) {
      let areMet: Bool
      do { areMet = try options.demands.areMet(by: credential, since: start, clockAheadBy: difference) } catch {
        throw .oauth(error, provider: provider)
      }
      owned = try identified(credential, with: element, user)
      if !areMet { source.notice(.authenticationUnconfirmed(provider: provider)) }
    } catch {
      // The next login continues after an interruption here, except with what the user can type again; and only this
      // answer may have an imported refresh token.
      let isKept =
        error == .interrupted && !credential.isTyped
        || error == .providerChanged(provider) && credential.importedFrom != nil
      if !isKept { discard(credential, error) }
      _ = try? pending.finish(isKept ? .unfinished : .ended(noting: nil))
      share(error)
      throw error
    }
    FaultPoint.reach("login.identified")
    let named = AccountID(provider, owned.name)
    let unused = try named == id ? nil : accounts.note(named).flatMap { accounts.unfinishedLogin($0, named) }
    do throws(CommitError) {
      let revision = try pending.finish(.committed(owned.changes, after: decision(on: owned.changes, credential))) ?? 0
      FaultPoint.reach("login.committed")
      if let unused {
        accounts.store.removeAnswer(for: named)
        source.drop(unused, of: provider, with: nil)
      }
      return Account(provider: provider, name: owned.name, credential: owned.credential, revision: revision)
    } catch {
      if case .conflict(let place, let actual) = error.reason {
        if !error.isKept { discard(credential, nil) }
        throw conflict(at: place, actual)
      }
      throw .uncommitted(provider: provider, account: id.name, isKept: error.isKept, error.reason)
    }
  }

  /// Returns what follows if another process has changed the registration between the last look and the commit.
  private func decision(
    on changes: [Change], _ credential: Credential
  ) -> (RecordIdentifier) -> ConflictDecision {
    { found in
      guard found == Accounts.registration(provider) else { return .discard }
      do throws(CredentialError) {
        return .retry([try following(credential)] + changes.dropFirst())
      } catch {
        return credential.importedFrom == nil ? .discard : .keep
      }
    }
  }

  /// The error if another process has stored the account, or removed or changed the provider meanwhile.
  private func conflict(at place: RecordIdentifier, _ actual: Int64?) -> CredentialError {
    if place.kind == .credential { return .alreadyThere([place], files: []) }
    return actual == nil ? .notAdded(provider: provider, ClientNeeds(client.descriptor)) : .providerChanged(provider)
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
    let owned = try own.identified(credential, with: nil, user)
    var changes = owned.changes
    while true {
      do throws(StoreError) {
        let revision = try accounts.store.apply(changes)
        return Account(provider: provider, name: owned.name, credential: owned.credential, revision: revision)
      } catch .conflict(let found, let actual) {
        guard case .retry(let others) = decision(on: changes, credential)(found) else {
          throw conflict(at: found, actual)
        }
        changes = others
      } catch {
        throw .vault(error)
      }
    }
  }
}
