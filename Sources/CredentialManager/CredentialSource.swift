import Cryptography
import Descriptors
import HTTP
import OAuth
import Platform
import Text
import Store

/// Gets credentials: the one way from a provider's name to a token that is good.
///
/// HTTP, the clock and randomness are given to it, so that a test decides what they are. Not thread-safe.
package final class CredentialSource {
  /// Where everything lies.
  package let home: Home
  let http: (any HTTPExchange)?
  let clock: any WallClock
  let random: any RandomSource
  let keys: KeySources
  /// What was sent to providers, and is not to be shown to people.
  package let secrets: KnownSecrets
  /// Told what a person may want to know on the way.
  package var notice: (Notice) -> Void = { _ in }
  var openVault = OpenVault()
  /// The keys for the program that takes this one's place, where somebody would be asked for them again.
  package var keysToLeave: OpenedKeys? { openVault.keysToLeave }

  /// - Parameters:
  ///   - http: `nil` for a program without a network; what needs one throws `CredentialError.networkNeeded` before
  ///     anything is changed.
  ///   - secrets: grows with every exchange.
  ///   - keys: whom to ask for the vault's key.
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

  /// As `accounts`, or `nil` when there is no vault yet.
  ///
  /// - Throws: `CredentialError.vault`.
  package func accountsIfAny() throws(CredentialError) -> Accounts? {
    do {
      return try accounts()
    } catch .vault(.absent) {
      return nil
    }
  }

  // MARK: Clients

  /// The client of a provider that was added.
  ///
  /// - Parameter variables: values for this time alone, which go before the registered ones.
  /// - Throws: `CredentialError.notAdded`, `.provider`, `.vault`.
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

  func client(
    _ loaded: DescriptorLibrary.Loaded, variables: [String: String] = [:]
  ) throws(CredentialError) -> Client {
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

  /// The identifiers of all descriptors along the path.
  package func knownProviders() -> [String] {
    var identifiers: Set<String> = []
    for folder in home.library.directories {
      for name in (try? File.names(in: folder)) ?? [] where name.hasSuffix(".yaml") {
        identifiers.insert(String(name.dropLast(".yaml".count)))
      }
    }
    return identifiers.sorted()
  }

  /// The descriptors whose hosts say one of these realms (RFC 9110, 11.5) when they ask for credentials.
  ///
  /// Anybody can say it, so that it is worth a hint to a person and no more.
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

  /// Whether a provider can be asked anything; otherwise whoever needs it has to hand over to a program that has it.
  package var hasNetwork: Bool { http != nil }

  func network() throws(CredentialError) -> any HTTPExchange {
    guard let http else { throw .networkNeeded }
    return http
  }

  /// Runs a step of the protocol core, whose errors it gives the provider's name, and takes the secrets out of that the
  /// provider repeated.
  ///
  /// - Throws: `CredentialError.oauth`; `.networkNeeded` for a signature that the program without a network cannot
  ///   make.
  func core<Result>(_ provider: String, _ step: () throws(OAuthError) -> Result) throws(CredentialError) -> Result {
    do { return try step() } catch .noSignatures { throw .networkNeeded } catch {
      throw .oauth(error.masked(by: secrets), provider: provider)
    }
  }

  // MARK: Locks

  /// Runs `body` while no other process does so for this account.
  ///
  /// - Parameters:
  ///   - waiting: called with the seconds waited so far.
  ///   - isDone: looked at while waiting; when it returns something, that is the result and `body` is not run.
  /// - Throws: `CredentialError.lockTimedOut`, `.interrupted`, `.vault`, and what the closures throw.
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
