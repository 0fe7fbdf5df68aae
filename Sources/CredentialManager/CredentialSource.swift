import Cryptography
import Descriptors
import HTTP
import OAuth
import Platform
import Text
import Store

/// Gets credentials: from a provider's name to a token that is good. Not thread-safe.
package final class CredentialSource {
  package let home: Home
  let http: (any HTTPExchange)?
  let clock: any WallClock
  let random: any RandomSource
  let keys: KeySources
  /// What was sent to providers, and is not to be shown to people.
  package let secrets: KnownSecrets
  package var notice: (Notice) -> Void = { _ in }
  var openVault = OpenVault()
  package var keysToLeave: OpenedKeys? { openVault.keysToLeave }

  /// Without `http`, a step that needs a network throws `.networkNeeded` before anything is changed.
  package init(
    home: Home, http: (any HTTPExchange)?, clock: any WallClock, random: any RandomSource,
    secrets: KnownSecrets = KnownSecrets(), keys: KeySources = .keyFile
  ) {
    self.home = home
    self.http = http
    self.clock = clock
    self.random = random
    self.keys = keys
    self.secrets = secrets
  }

  /// `nil` when there is no vault yet.
  package func accountsIfAny() throws(CredentialError) -> Accounts? {
    do {
      return try accounts()
    } catch .vault(.absent) {
      return nil
    }
  }

  // MARK: Clients

  /// `variables` are for this time alone, and go before the registered ones.
  package func client(_ provider: String, variables: [String: String] = [:]) throws(CredentialError) -> Client {
    try client(descriptor(provider), variables: variables)
  }

  /// The descriptor of a provider, whether it was added or not.
  func descriptor(_ provider: String) throws(CredentialError) -> DescriptorLibrary.Loaded {
    do {
      return try home.library.load(provider)
    } catch .unknown(let identifier, _) {
      throw .provider(.unknown(identifier: identifier, suggestion: nearMiss(identifier, among: knownProviders())))
    } catch {
      throw .provider(error)
    }
  }

  func client(_ loaded: DescriptorLibrary.Loaded, variables: [String: String] = [:]) throws(CredentialError) -> Client {
    let provider = loaded.descriptor.identifier
    guard let registration = try accountsIfAny()?.registration(of: provider) else {
      throw .notAdded(provider: provider, ClientNeeds(loaded.descriptor))
    }
    let client = try client(loaded.descriptor, registration)
    try requireAgreed(loaded, client, registration.agreement)
    return variables.isEmpty ? client : try self.client(loaded.descriptor, registration, variables: variables)
  }

  func client(
    _ descriptor: Descriptor, _ registration: Registration, variables: [String: String] = [:]
  ) throws(CredentialError) -> Client {
    var descriptor = descriptor
    // What the provider says of this one client goes before what the descriptor says of all.
    if let method = registration.registered?.authentication { descriptor.client.authentication = method }
    do {
      secrets.learn(registration.clientSecret)
      secrets.learn(registration.registered?.accessToken)
      for variable in descriptor.variables where variable.isSecret {
        secrets.learn((variables[variable.name] ?? registration.variables[variable.name]).map { Secret($0) })
      }
      return try Client(
        descriptor: descriptor, identifier: registration.clientIdentifier, secret: registration.clientSecret,
        variables: registration.variables.merging(variables) { _, new in new })
    } catch {
      throw .provider(error)
    }
  }

  package func knownProviders() -> [String] {
    var identifiers: Set<String> = []
    for folder in home.library.directories {
      for name in (try? File.names(in: folder)) ?? [] where name.hasSuffix(".yaml") {
        identifiers.insert(String(name.dropLast(".yaml".count)))
      }
    }
    return identifiers.sorted()
  }

  /// The descriptors whose hosts say one of these realms (RFC 9110, 11.5). Anybody can say it: it is worth a hint, no
  /// more.
  package func providers(ofRealms realms: [String]) -> [Descriptor] {
    let wanted = realms.map { $0.lowercased() }
    var found: [Descriptor] = []
    for identifier in knownProviders() {
      // Most have none, and need not be decoded for that.
      guard let path = home.library.path(of: identifier), let bytes = try? Home.descriptor(at: path),
        bytes.firstPlace(of: "realms:".utf8) != nil,
        let descriptor = try? home.library.load(identifier).descriptor, let git = descriptor.git,
        git.realms.contains(where: { wanted.contains($0.lowercased()) })
      else { continue }
      found.append(descriptor)
    }
    return found
  }

  // MARK: The network

  package var hasNetwork: Bool { http != nil }

  func network() throws(CredentialError) -> any HTTPExchange {
    guard let http else { throw .networkNeeded }
    return http
  }

  /// Runs a step of the protocol core, and masks secrets that the provider repeated in an error. `.networkNeeded` for a
  /// signature that the program without a network cannot make.
  func core<Result>(_ provider: String, _ step: () throws(OAuthError) -> Result) throws(CredentialError) -> Result {
    do { return try step() } catch .noSignatures { throw .networkNeeded } catch {
      throw .oauth(error.masked(by: secrets), provider: provider)
    }
  }

  // MARK: Locks

  /// Runs `body` while no other process does so for this account. `isDone` is asked while waiting: its value is the
  /// result, and `body` is not run then.
  func withAccountLock<Result>(
    _ id: AccountID, timeout: Duration = .seconds(60), waiting: ((Double) -> Void)? = nil,
    isDone: () throws(CredentialError) -> Result? = { () throws(CredentialError) in nil },
    body: (borrowing LockedAccount) throws(CredentialError) -> Result
  ) throws(CredentialError) -> Result {
    let store = try accounts().store
    let waiting = waiting ?? { self.notice(.waiting(provider: id.provider, account: id.name, seconds: $0)) }
    var result: Result?
    var failure: CredentialError?
    let locked: LockedAccount
    do throws(LockError) {
      locked = try store.lock(id, timeout: timeout, clock: clock) { waited in
        waiting(waited / .seconds(1))
        do throws(CredentialError) { result = try isDone() } catch { failure = error }
        return result == nil && failure == nil
      }
    } catch {
      if let failure { throw failure }
      switch error {
      case .gaveUp:
        if let result { return result }
        throw .interrupted
      case .timedOut: throw .lockTimedOut(provider: id.provider, account: id.name)
      case .interrupted: throw .interrupted
      case .store(let error): throw .vault(error)
      }
    }
    return try body(locked)
  }
}
