import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText

/// Gets a valid token for a provider and an account. Not thread-safe.
package final class CredentialSource {
  package let home: Home
  var http: (any HTTPExchange)?
  /// Refreshes an account at its provider. The program that only answers from the vault has no network and never sets
  /// this, so the linker leaves the code for refreshes out of it (decision 77).
  var renewal: ((CredentialSource) -> (Account, RefreshPolicy) throws(CredentialError) -> Account)?
  let ownClock: any WallClock
  /// This machine's clock, or that of a shared vault's server.
  var clock: any WallClock {
    guard let shared, shared.clockOffset != .zero else { return ownClock }
    return ServerClock(own: ownClock, offset: shared.clockOffset)
  }
  let random: any RandomSource
  let keys: KeySources
  package let secrets: KnownSecrets  // The secrets sent to providers, which messages must not show.
  package var notice: (Notice) -> Void = { _ in }
  var openVault = OpenVault()
  /// The facts that the heads of a provider's answers told.
  struct Conversation {
    /// The last nonce of each server, by origin, for the next proof (RFC 9449, 8.2).
    var nonces: [String: String] = [:]
    var clockDifference = Duration.zero  // How far the clock of the server was ahead of ours at the last answer.
    var signsRequests = false  // Whether the client signs requests, whose times the server compares with its clock.
  }
  /// By provider. Without a type of its own, the dictionary inside would be expensive at each start.
  var conversations: [String: Conversation] = [:]
  package var vaults: (any SharedVaults)?  // `nil` without a network.
  /// The shared vault that this source uses; `nil` for the user's own vault.
  var shared: JoinedVault?
  var joinedSources: [String: CredentialSource] = [:]  // By the names of the vaults.
  package var withheld: [String] = []  // The providers of those vaults about which a warning was shown.
  var exchangeCount = 0  // How many refreshes this source has begun for copies of its accounts.
  var ownRegistrations: [String: Int64] = [:]  // The revisions of those that this source stored, by provider.
  var ownToken: Secret?  // The last token that this source got from a provider and stored.

  /// Creates a source without a network. A step that requires one throws `.networkNeeded` before it changes anything.
  package init(
    home: Home, clock: any WallClock, random: any RandomSource, secrets: KnownSecrets = KnownSecrets(),
    keys: KeySources = KeySources(environment: { _ in nil })
  ) {
    self.home = home
    ownClock = clock
    self.random = random
    self.keys = keys
    self.secrets = secrets
  }

  /// Creates a source that talks to providers; without `http`, one that does not.
  package convenience init(
    home: Home, http: (any HTTPExchange)?, clock: any WallClock, random: any RandomSource,
    secrets: KnownSecrets = KnownSecrets(), keys: KeySources = KeySources(environment: { _ in nil })
  ) {
    self.init(home: home, clock: clock, random: random, secrets: secrets, keys: keys)
    self.http = http
    if http != nil { renewal = CredentialSource.renew }
  }

  package func accountsIfAny() throws(CredentialError) -> Accounts? {
    do { return try accounts() } catch .vault(.absent) {
      let place = File.existing(home.vault)
      guard File.isDirectory(place) else { throw .vault(.file(.notDirectory(path: place))) }
      return nil
    }
  }

  func accounts(neededFor account: String?, of provider: String) throws(CredentialError) -> Accounts {
    guard let accounts = try accountsIfAny() else {
      throw .loginNeeded(provider: provider, account: account, .noCredential)
    }
    return accounts
  }

  // MARK: Clients

  func descriptor(_ provider: String) throws(CredentialError) -> DescriptorLibrary.Loaded {
    do {
      return try home.library.load(provider)
    } catch .unknown(let identifier, _) {
      throw .provider(unknown(identifier))
    } catch {
      throw .provider(error)
    }
  }

  /// Creates the client as registered. Sending requests for it requires a ``Permit``.
  func client(
    _ descriptor: Descriptor, _ registration: Registration, variables: [String: String] = [:]
  ) throws(CredentialError) -> Client {
    let descriptor = registration.applied(to: descriptor)
    secrets.learn(registration.clientSecret)
    secrets.learn(registration.clientSecret?.shared)
    secrets.learn(registration.registered?.accessToken)
    for variable in descriptor.variables where variable.isSecret {
      secrets.learn((variables[variable.name] ?? registration.variables[variable.name]).map { Secret($0) })
    }
    return try wrapping(
      CredentialError.provider,
      Client(
        descriptor: descriptor, identifier: registration.clientIdentifier, secret: registration.clientSecret,
        variables: registration.variables.merging(variables) { _, new in new }))
  }

  package func knownProviders() -> [String] {
    let names = home.library.directories.flatMap { (try? File.names(in: $0)) ?? [] }
    return Set(names.filter { $0.hasSuffix(".yaml") }.map { String($0.dropLast(".yaml".count)) }).sorted()
  }

  /// Returns the error for a word that is not a provider. It suggests the only provider with this alias, or without
  /// one, the provider with the most similar identifier.
  package func unknown(_ word: String) -> ProviderError {
    let known = knownProviders()
    let alias = word.lowercased()
    let named = known.filter { identifier in
      // Most descriptors do not contain the word, so decode only those that do.
      guard let path = home.library.path(of: identifier), let bytes = try? Home.descriptor(at: path),
        bytes.firstPlace(of: "aliases:".utf8) != nil, bytes.firstPlace(of: alias.utf8) != nil
      else { return false }
      return (try? home.library.load(identifier).descriptor.aliases.contains(alias)) ?? false
    }
    return .unknown(
      identifier: word, suggestion: named.isEmpty ? nearMiss(word, among: known) : named.count == 1 ? named[0] : nil)
  }

  /// Returns the descriptors with one of these realms (RFC 9110, 11.5), for hints only: any server can claim one.
  package func providers(ofRealms realms: [String]) -> [(descriptor: Descriptor, realm: String)] {
    let wanted = realms.map { $0.lowercased() }
    return knownProviders().compactMap { identifier in
      // Most descriptors have no realms, so decode only those that mention them.
      guard let path = home.library.path(of: identifier), let bytes = try? Home.descriptor(at: path),
        bytes.firstPlace(of: "realms:".utf8) != nil, let descriptor = try? home.library.load(identifier).descriptor,
        let realm = descriptor.git?.realms.first(where: { wanted.contains($0.lowercased()) })
      else { return nil }
      return (descriptor, realm)
    }
  }

  // MARK: The network

  package var hasNetwork: Bool { http != nil }

  func network() throws(CredentialError) -> any HTTPExchange {
    guard let http else { throw .networkNeeded }
    return http
  }

  /// Runs a step of the OAuth core and masks secrets in its errors. Most signatures need `credmgr-online`.
  func core<Result>(
    _ provider: String, _ step: @autoclosure () throws(OAuthError) -> Result
  ) throws(CredentialError) -> Result {
    do { return try step() } catch .noSignatures { throw .networkNeeded } catch {
      throw failure(error, of: provider)
    }
  }

  /// Returns an error without secrets. The error names the clock if it may explain the refusal of a signed request.
  func failure(_ error: OAuthError, of provider: String) -> CredentialError {
    let conversation = conversations[provider]
    let difference = conversation?.signsRequests == true ? conversation?.clockDifference : nil
    return .oauth(error.masked(by: secrets).explained(byClockDifference: difference ?? .zero), provider: provider)
  }

  /// Learns a credential's secrets, and removes them from the parts that credmgr shows.
  func learn(_ credential: Credential) -> Credential {
    secrets.learn(credential)
    var credential = credential
    credential.kept = credential.kept.filter { !secrets.reveals($0.value) }
    credential.grantedScope = credential.grantedScope?.filter { !secrets.reveals($0) }
    return credential
  }

  // MARK: Locks

  /// Runs `body` under the account's lock. While waiting, it returns the result of `isDone` as soon as there is one.
  func withAccountLock<Result>(
    _ id: AccountID, timeout: Duration = .seconds(60), waiting: ((Duration) -> Void)? = nil,
    isDone: () throws(CredentialError) -> Result? = { () throws(CredentialError) in nil },
    body: (borrowing LockedAccount) throws(CredentialError) -> Result
  ) throws(CredentialError) -> Result {
    let store = try accounts().store
    let waiting = waiting ?? { self.notice(.waiting(provider: id.provider, account: id.name, for: $0)) }
    var result: Result?
    var failure: CredentialError?
    let locked: LockedAccount
    do throws(LockError) {
      locked = try store.lock(id, timeout: timeout, clock: clock) { waited in
        waiting(waited)
        do throws(CredentialError) { result = try isDone() } catch { failure = error }
        return result == nil && failure == nil
      }
    } catch {
      if let failure { throw failure }
      switch error {
      case .gaveUp:
        if let result { return result }
        throw .interrupted
      case .timedOut: throw .lockTimedOut(provider: id.provider, account: id.name, vault: shared?.name)
      case .interrupted: throw .interrupted
      case .store(let error): throw .vault(error)
      }
    }
    return try body(locked)
  }
}

package enum Notice: Sendable, Equatable {
  case waiting(provider: String, account: String?, for: Duration)
  case interrupted(Interruption)
  case beginsAnew(after: Interruption)  // A login starts again instead of continuing an interrupted one.
  case importFinished(provider: String, account: String)  // The account of an interrupted import.
  case importedTokenReplaced(provider: String)  // The new refresh token of an import that failed is not stored.
  case sameIdentity(provider: String, account: String, identity: String, other: String)  // `other` has this identity.
  /// The provider renamed the user of an account, which stays the same account.
  case renamed(provider: String, account: String, before: String, now: String)
  /// The login made the account `other`, but the default account still needs a login.
  case defaultNeedsLogin(provider: String, account: String, other: String)
  /// The tokens of a login that failed or was interrupted are not stored, but still valid; the error says why.
  case tokensLeft(provider: String, CredentialError?)
  case loginsRefused(CredentialError)  // The provider was added, but its logins will be refused.
  case unreadable(provider: String, fields: [ResponseField])
  /// The login got an ID token whose signature could not be verified now.
  case idTokenUnverified(provider: String, CredentialError)
  /// The answer to a login does not say whether the user authenticated as the login demanded.
  case authenticationUnconfirmed(provider: String)
  /// A connection failed, probably because of the client's certificate.
  case certificateRefused(provider: String, CertificateFault)
  /// Something other than the log file is at its path, so uses of credentials cannot be noted.
  case handOutNotNoted(POSIXError)
  /// The token could not be refreshed, but is valid for the time `left`; `nil` if the expiry is unknown.
  case notRefreshed(provider: String, account: String, left: Duration?, CredentialError)
  /// The provider did not name the user, so the account has a name but no identity. `beside` is an account that the
  /// login may have been meant for.
  case unidentified(account: String, beside: AccountID?, CredentialError?)
  /// The provider did not name the user who logged in to an existing account.
  case unchecked(account: String, CredentialError?)
  /// The first of several entries was used, because credmgr could not prompt. `variable` chooses another one.
  case chosen(provider: String, String, of: Int, variable: String?)
  /// An element of a list was used again, although the provider does not say whose login it was.
  case usedAgain(provider: String, String, account: String)
  /// The account now uses another element, because the answer no longer lists the earlier one.
  case usedInstead(provider: String, String, account: String)
  case uses(provider: String, String, account: String)  // The user chose another element than before.
  /// The account keeps its element of a list, because no answer listed elements.
  case elementKept(provider: String, account: String)
  /// Logins to this provider now use these values of variables, which the first login gave.
  case valuesStay(provider: String, [String])
  /// A credential that the user brought was stored, although the provider did not confirm that it is valid.
  case unconfirmed(account: String, provider: String, credential: String)
  /// The provider's user name is not valid as an account name, so the account has another name and no identity.
  case unnameable(account: String, provider: String)
  /// The account of this name is used here, and not the vault's.
  case hidden(provider: String, account: String, vault: String)
  case vanished(provider: String, account: String, vault: String)  // The shared vault no longer has the account.
  case registrationTaken(provider: String, vault: String)  // This machine now uses the vault's registration.
  /// The vault's text replaces a descriptor that this machine had given to it; its own text is in the copy.
  case setAside(copy: String, vault: String)
  /// The vault's accounts of this provider are not used here.
  case withheld(provider: String, vault: String, CredentialError)
}
