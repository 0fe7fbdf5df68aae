import CredmgrCryptography
import CredmgrJSON
import CredmgrOAuth
import CredmgrStore
import CredmgrText

// ID tokens whose signature was verified (OpenID Connect Core 1.0, 3.1.3.7). The provider's keys come from its key set,
// which the vault keeps for a day.
extension CredentialSource {
  /// Verifies the signature of a credential's ID token. Throws if it is wrong. `doubt` says why the ID token stays
  /// unverified: the descriptor names no keys, or they cannot be read now.
  func verifyingIDToken(
    of credential: Credential, with permit: Permit
  ) throws(CredentialError) -> (credential: Credential, doubt: CredentialError?) {
    guard credential.idToken != nil, !credential.isIDTokenVerified else { return (credential, nil) }
    let client = permit.client
    guard client.verifiesIDTokens else {
      let hasKeys = client.descriptor.endpoints[.keySet] != nil || !client.needsKeySet
      return (credential, .oauth(hasKeys ? .noIssuer : .noEndpoint(.keySet), provider: permit.provider))
    }
    func verified(_ keys: KeySet?) throws(CredentialError) -> Credential {
      try core(permit.provider, client.verified(credential, with: keys))
    }
    guard client.needsKeySet else { return (try verified(nil), nil) }
    // Only fresh keys prove that a signature is wrong: the provider may have changed them since.
    if let known = try keptKeys(permit) {
      do throws(CredentialError) { return (try verified(known), nil) } catch .oauth(.idToken, _) {}
    }
    let keys: KeySet
    do throws(CredentialError) { keys = try fetchedKeys(permit) } catch {
      switch error {
      case .http, .oauth, .notAgreed: return (credential, error)
      default: throw error
      }
    }
    return (try verified(keys), nil)
  }

  /// Returns the account with a verified ID token, if it has an ID token. Throws if credmgr cannot verify it.
  package func withVerifiedIDToken(_ account: Account, for route: Route) throws(CredentialError) -> Account {
    guard account.credential.idToken != nil, !account.credential.isIDTokenVerified else { return account }
    let permit = try permit(route, account.provider, variables: account.credential.variables)
    let (credential, doubt) = try verifyingIDToken(of: account.credential, with: permit)
    if let doubt { throw doubt }
    var account = account
    account.credential = credential
    // Another process may have refreshed the account meanwhile. Then the next use verifies the new ID token.
    _ = try? accounts(.readWrite).store.apply([
      .store(
        credential.encoded, as: RecordIdentifier(.credential, of: account.id), if: .revision(account.revision))
    ])
    return account
  }

  /// The claims of an account's ID token without those that contain a secret, and whether its signature was verified;
  /// `nil` without an ID token. Throws if the signature is wrong.
  package func idToken(
    of account: Account
  ) throws(CredentialError) -> (claims: JSONValue, isVerified: Bool, doubt: CredentialError?)? {
    var (account, doubt): (Account, CredentialError?) = (account, nil)
    do throws(CredentialError) { account = try withVerifiedIDToken(account, for: .validate) } catch {
      switch error {
      case .http, .oauth(.noEndpoint, _), .oauth(.noIssuer, _), .oauth(.unavailable, _), .oauth(.unreadable, _),
        .oauth(.noKeys, _), .oauth(.repeated(.keySet, _), _), .oauth(.redirected, _), .oauth(.refused, _):
        doubt = error
      default: throw error
      }
    }
    guard let claims = account.credential.idTokenClaims?.members else { return nil }
    let shown = claims.filter { !secrets.reveals($0.value.encoded) }
    return (.object(shown), account.credential.isIDTokenVerified, doubt)
  }

  // MARK: Keys

  /// How long keys in the vault count. A provider that withdraws a key expects that clients notice within this time.
  private static let keysLifetime = Duration.hours(24)

  /// Returns the keys in the vault; `nil` if they are old or from another address.
  private func keptKeys(_ permit: Permit) throws(CredentialError) -> KeySet? {
    guard let payload = try? keySets()?.record(Accounts.keySet(permit.provider))?.payload,
      let value = try? JSONValue.parse(payload.revealBytes()), let fetchedAt = value["fetched_at"]?.moment,
      (.zero...Self.keysLifetime).contains(clock.now() - fetchedAt),
      value["uri"]?.text == (try core(permit.provider, permit.client.keySetRequest(nonce: nonce)).uri.text)
    else { return nil }
    return value["set"].flatMap { KeySet($0) }
  }

  /// Returns the accounts beside which keys are stored: those of this machine.
  private func keySets() throws(CredentialError) -> Accounts? {
    if let shared { return Accounts(store: shared.local) }
    return try accountsIfAny()
  }

  private func fetchedKeys(_ permit: Permit) throws(CredentialError) -> KeySet {
    let client = permit.client
    let response = try send(to: permit, for: .keys) { nonce throws(OAuthError) in try client.keySetRequest(nonce: nonce)
    }
    let keys = try core(permit.provider, client.keySet(response))
    let uri = try core(permit.provider, client.keySetRequest(nonce: nonce)).uri
    let value: JSONValue = ["uri": .string(uri.text), "fetched_at": .moment(clock.now()), "set": keys.value]
    // Without them, the next verification fetches the keys again.
    try? (shared.map { Accounts(store: $0.local) } ?? accounts(.readWrite))
      .apply([.store(Secret(value.encoded), as: Accounts.keySet(permit.provider))])
    return keys
  }
}
