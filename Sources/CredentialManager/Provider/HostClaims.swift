import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText
import CredmgrStore

package struct HostClaim: Sendable, Equatable {
  package enum Helper: String, Sendable, CaseIterable { case git, docker }

  package let helper: Helper
  package let host: String  // In lowercase, with its port unless that is the default.
  package let provider: String
  /// The user name sent with the token: `{account}` is the account's name, and `{NAME}` a variable of its login.
  package let username: String
  package let ignoresUsername: Bool  // Whether user names in URLs do not identify the account.

  /// Returns the user name sent with the token of an account, whose owner may have another name.
  package func username(of account: Account, owner: String? = nil) -> String {
    account.credential.variables.reduce(username) { text, variable in
      text.exchanging("{\(variable.key)}", for: variable.value)
    }.exchanging("{account}", for: owner ?? account.name)
  }

  /// Whether each account has its own user name that is sent with its token.
  package var namesAccount: Bool { username.firstPlace(of: "{") != nil }

  /// Whether a user name is an account's name, its identity, or the user name sent with its token. Ignores case, as
  /// providers do.
  package func isName(_ name: String, of account: Account) -> Bool {
    account.matches(username: name)
      || namesAccount
        && username(of: account, owner: account.credential.identity).lowercased() == name.lowercased()
  }

  /// Returns all names of a host's server. Docker Hub has three, and tools for containers ask for any of them.
  package static func names(of host: String, for helper: Helper) -> [String] {
    helper == .docker && dockerHub.contains(host) ? dockerHub : [host]
  }

  private static let dockerHub = ["index.docker.io", "docker.io", "registry-1.docker.io"]

  fileprivate var identifier: RecordIdentifier { Self.identifier(of: host, helper) }

  fileprivate static func identifier(of host: String, _ helper: Helper) -> RecordIdentifier {
    RecordIdentifier(kind: .host, provider: host, account: helper.rawValue)
  }
}

extension HostClaim {
  var value: JSONValue {
    [
      "helper": .string(helper.rawValue), "host": .string(host), "provider": .string(provider),
      "username": .string(username), "ignores_username": .boolean(ignoresUsername),
    ]
  }

  init?(_ value: JSONValue) {
    guard let helper = value["helper"]?.text.flatMap({ Helper(rawValue: $0) }), let host = value["host"]?.text,
      let provider = value["provider"]?.text, let username = value["username"]?.text
    else { return nil }
    self.init(
      helper: helper, host: host, provider: provider, username: username,
      ignoresUsername: value["ignores_username"] == .boolean(true))
  }

  /// Reads a host's record; `nil` if an earlier version wrote it, with only the first claim.
  fileprivate static func all(_ record: Record) -> [HostClaim]? {
    (try? JSONValue.parse(record.payload.revealBytes()))?.elements?.compactMap { HostClaim($0) }
  }

  fileprivate static func provider(_ record: Record) -> String? {
    let value = try? JSONValue.parse(record.payload.revealBytes())
    return (value?.elements?.first ?? value)?["provider"]?.text
  }
}

extension Agreement {
  /// Returns the hosts for which helpers return tokens.
  static func claims(_ descriptor: Descriptor, with values: @escaping (String) -> String?) -> [HostClaim] {
    func claims(_ helper: HostClaim.Helper, _ hosts: [Template], username: Template, any: Bool = false) -> [HostClaim] {
      let ofLogin = descriptor.variables.filter { $0.isAtLogin && !$0.isSecret }.map(\.name)
      let filled = try? username.filled { name in
        name == "account" ? "{account}" : values(name) ?? (ofLogin.contains(name) ? "{\(name)}" : nil)
      }
      let username = filled ?? "oauth2"
      // git and docker omit the default port.
      let authorities = hosts.compactMap { try? HostPattern.authority(URI(parsing: "https://" + $0.host(values))) }
      return authorities.map {
        HostClaim(helper: helper, host: $0, provider: descriptor.identifier, username: username, ignoresUsername: any)
      }
    }
    return (descriptor.git.map { claims(.git, $0.hosts, username: $0.username, any: $0.ignoresUsername) } ?? [])
      + (descriptor.docker.map { claims(.docker, $0.hosts, username: $0.username) } ?? [])
  }
}

/// The hosts are part of each registration's agreement. One record for each host names its providers, so a lookup reads
/// one record. A final record without a host marks that all registrations have their hosts recorded.
extension CredentialSource {
  private static let allClaimed = RecordIdentifier(kind: .host, provider: "", account: "")

  /// Returns a host's claims, one for each provider, sorted by the providers' identifiers. Asks the joined vaults about
  /// a host that this machine does not know.
  package func claims(of host: String, for helper: HostClaim.Helper) throws(CredentialError) -> [HostClaim] {
    let known = try knownClaims(of: host, for: helper)
    guard known.isEmpty, !host.isEmpty, try learnProviders() else { return known }
    return try knownClaims(of: host, for: helper)
  }

  private func knownClaims(of host: String, for helper: HostClaim.Helper) throws(CredentialError) -> [HostClaim] {
    let host = host.lowercased()
    guard !host.isEmpty, let accounts = try accountsIfAny() else { return [] }
    let names = HostClaim.names(of: host, for: helper)
    var found: [HostClaim] = []
    for name in names {
      guard let claims = try recordedClaims(accounts, of: name, for: helper) else {
        // An earlier version's vault, until it is opened for writing.
        found = try self.claims(accounts).claims.filter { names.contains($0.host) && $0.helper == helper }
        break
      }
      found += claims
    }
    if names.count == 1 { return found }
    // A provider may claim several names.
    return Dictionary(grouping: found, by: \.provider).values.compactMap(\.first).sorted { $0.provider < $1.provider }
  }

  /// Records the hosts in a vault of an earlier version, which has just been opened for writing.
  func recordClaims(_ accounts: Accounts) {
    guard let isRecorded = try? accounts.record(Self.allClaimed) != nil, !isRecorded,
      let added = try? accounts.addedProviders(), !added.isEmpty, let changes = try? claims(accounts).changes
    else { return }
    _ = try? accounts.store.apply(changes)
  }

  /// Returns the claims in a host's record; `nil` if an earlier version's vault has no such records.
  private func recordedClaims(
    _ accounts: Accounts, of host: String, for helper: HostClaim.Helper
  ) throws(CredentialError) -> [HostClaim]? {
    let identifier = HostClaim.identifier(of: host, helper)
    if let record = try accounts.record(identifier) { return HostClaim.all(record) }
    try accounts.throwIfDamaged(identifier)
    return try accounts.record(Self.allClaimed) == nil ? nil : []
  }

  /// Returns a provider's git hosts if a remote is at none of them, because git would never request its token there.
  package func hostsElsewhere(
    _ remote: RemoteAddress?, of provider: String
  ) throws(CredentialError) -> [String]? {
    let hosts = try Set(hostClaims().filter { $0.helper == .git && $0.provider == provider }.map(\.host)).sorted()
    // SSH may use another port and another name, such as `ssh.github.com`.
    func name(_ host: String) -> URI? { (try? URI(parsing: "https://" + host))?.replacing(port: nil) }
    guard let remote, let uri = name(remote.host), !hosts.isEmpty,
      !hosts.contains(where: { remote.isHTTP ? $0 == remote.host : name($0)?.isRelated(to: uri) ?? true })
    else { return nil }
    return hosts
  }

  package func hostClaims() throws(CredentialError) -> [HostClaim] {
    try accountsIfAny().map { accounts throws(CredentialError) in try claims(accounts).claims } ?? []
  }

  /// Returns the claims that a descriptor makes with its defaults, without the vault.
  package func describedClaims(of provider: String) -> [HostClaim] {
    (try? home.library.load(provider)).flatMap { Agreement(Client(unregistered: $0.descriptor)).claims } ?? []
  }

  /// Stores or removes registrations with their host claims, together with `changes` without preconditions. Throws
  /// `.alreadyAdded` if a provider's registration does not have the revision in `before`; `nil` means none.
  func store(
    _ registrations: [String: Registration?], with changes: [Change], after before: [String: Int64?] = [:]
  ) throws(CredentialError) {
    let accounts = try accounts(.readWrite)
    while true {
      let own = registrations.map { provider, registration -> Change in
        let identifier = Accounts.registration(provider)
        let condition: Precondition = before[provider].map { $0.map { .revision($0) } ?? .absent } ?? .any
        return registration.map { .store($0.encoded, as: identifier, if: condition) }
          ?? .remove(identifier, if: condition)
      }
      let claims = try claims(accounts, replacing: registrations).changes
      do throws(StoreError) {
        let revision = try accounts.store.apply(own + claims + changes)
        for provider in registrations.keys { ownRegistrations[provider] = revision }
        return
      } catch .conflict {
        // Another process changed the claims meanwhile.
        for (provider, revision) in before where try accounts.revision(ofRegistration: provider) != revision {
          throw .alreadyAdded(provider: provider)
        }
      } catch {
        throw .vault(error)
      }
    }
  }

  /// Returns all registrations' claims, with the `new` registrations applied, and the changes that update the records.
  /// Registrations of an earlier version, which have no hosts, get those of their current descriptors if readable.
  func claims(
    _ accounts: Accounts, replacing new: [String: Registration?] = [:]
  ) throws(CredentialError) -> (claims: [HostClaim], changes: [Change]) {
    // Helpers look up hosts in the user's own vault only.
    if shared != nil { return ([], []) }
    let store = accounts.store
    var registrations = new
    for provider in try accounts.addedProviders() where new[provider] == nil {
      registrations[provider] = try accounts.registration(of: provider)
    }
    var claims: [HostClaim] = []
    var changes: [Change] = []
    var isComplete = true
    for (provider, registration) in registrations.sorted(by: { $0.key < $1.key }) {
      guard let registration else { continue }
      if let own = registration.agreement?.claims {
        // A hand-written export may contain other providers' claims.
        claims += own.filter { $0.provider == provider }
      } else if let complete = completed(registration, provider) {
        claims += complete.agreement?.claims ?? []
        changes.append(.store(complete.encoded, as: Accounts.registration(provider)))
      } else {
        isComplete = false
      }
    }
    var wanted = Dictionary(grouping: claims, by: \.identifier).mapValues { claims in
      Secret(JSONValue.array(claims.map(\.value)).encoded)
    }
    return try inStore { () throws(StoreError) in
      var hasMark = false
      for record in try store.records(.host, provider: nil) {
        if record.identifier == Self.allClaimed {
          hasMark = true
        } else if let payload = wanted[record.identifier] {
          if payload == record.payload { wanted[record.identifier] = nil }
        } else if HostClaim.provider(record).map({ registrations.keys.contains($0) }) ?? true {
          // Claims of a damaged registration stay.
          changes.append(.remove(record.identifier))
        }
      }
      changes += wanted.map { .store($0.value, as: $0.key) }
      guard !changes.isEmpty || hasMark != isComplete else { return (claims, []) }
      let mark: Precondition
      if let record = try store.record(Self.allClaimed) {
        mark = .revision(record.revision)
      } else {
        mark = try store.isLost(Self.allClaimed) ? .any : .absent
      }
      // This record's revision covers all claims, so two processes cannot change them at the same time.
      changes.append(isComplete ? .store(Secret("1"), as: Self.allClaimed, if: mark) : .remove(Self.allClaimed))
      return (claims, changes)
    }
  }

  /// Adds the hosts that the descriptor claims now, except those that the user has not agreed to.
  private func completed(_ registration: Registration, _ provider: String) -> Registration? {
    guard let loaded = try? home.library.load(provider), let client = try? client(loaded.descriptor, registration)
    else { return nil }
    var complete = registration
    let now = Agreement(client)
    complete.agreement = registration.agreement ?? now
    if let sealed = registration.agreement {
      complete.agreement?.claims = now.claims?.filter { claim in
        OriginPattern.texts(of: claim.host).allSatisfy {
          sealed.includes($0, of: now, as: [.helpers, .presented, .endpoints])
        }
      }
    }
    return complete
  }
}
