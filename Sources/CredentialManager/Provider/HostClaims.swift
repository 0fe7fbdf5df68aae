import Cryptography
import Descriptors
import HTTP
import JSON
import OAuth
import Platform
import Text
import Store

package struct HostClaim: Sendable, Equatable {
  package enum Helper: String, Sendable, CaseIterable { case git, docker }

  package let helper: Helper
  package let host: String  // The host, in lower case, with a port where it is not the ordinary one.
  package let provider: String
  package let username: String  // The user name that goes with the token; `{account}` in it is the account's name.
  package let ignoresUsername: Bool  // Whether a user name in an address says nothing about the account.

  package func username(for account: String) -> String { username.exchanging("{account}", for: account) }

  /// Whether the user name that goes with the token is another one for each account.
  package var namesAccount: Bool { username(for: "") != username }

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

  /// The claims in a host's record; `nil` for a record of an earlier version, which has only the first one.
  fileprivate static func all(_ record: Record) -> [HostClaim]? {
    (try? JSONValue.parse(record.payload.revealBytes()))?.elements?.compactMap { HostClaim($0) }
  }

  fileprivate static func provider(_ record: Record) -> String? {
    let value = try? JSONValue.parse(record.payload.revealBytes())
    return (value?.elements?.first ?? value)?["provider"]?.text
  }
}

/// The hosts are part of each registration's agreement. A record for each host says which providers have it, so that a
/// question reads one record; a last one, without a host, says that all registrations have theirs.
extension CredentialSource {
  private static let allClaimed = RecordIdentifier(kind: .host, provider: "", account: "")

  /// The claims of a host, one for each provider that has it, in the order of the providers' identifiers.
  package func claims(of host: String, for helper: HostClaim.Helper) throws(CredentialError) -> [HostClaim] {
    let host = host.lowercased()
    guard !host.isEmpty, let accounts = try accountsIfAny() else { return [] }
    let identifier = HostClaim.identifier(of: host, helper)
    if let record = try accounts.record(identifier) {
      if let claims = HostClaim.all(record) { return claims }
    } else {
      try accounts.throwIfDamaged(identifier)
      if try accounts.record(Self.allClaimed) != nil { return [] }
    }
    let (claims, changes) = try claims(accounts)
    // Of an earlier version's vault. Where that cannot be written, it is found out anew at the next question.
    if let accounts = try? self.accounts(.readWrite) { _ = try? accounts.store.apply(changes) }
    return claims.filter { $0.host == host && $0.helper == helper }
  }

  /// The git hosts of a provider, if a remote is at none of them: git would never ask for the provider's token there.
  package func hostsElsewhere(
    _ remote: RemoteAddress?, of provider: String
  ) throws(CredentialError) -> [String]? {
    let hosts = try Set(hostClaims().filter { $0.helper == .git && $0.provider == provider }.map(\.host)).sorted()
    // Another port may be that of SSH, and another name, such as `ssh.github.com`, too.
    func name(_ host: String) -> URI? { (try? URI(parsing: "https://" + host))?.replacing(port: nil) }
    guard let remote = remote.flatMap({ name($0.host) }), !hosts.isEmpty,
      !hosts.contains(where: { name($0)?.isRelated(to: remote) ?? true })
    else { return nil }
    return hosts
  }

  package func hostClaims() throws(CredentialError) -> [HostClaim] {
    try accountsIfAny().map { accounts throws(CredentialError) in try claims(accounts).claims } ?? []
  }

  /// Stores or removes registrations with their claims of hosts, together with `changes` without preconditions.
  func store(_ registrations: [String: Registration?], with changes: [Change]) throws(CredentialError) {
    let accounts = try accounts(.readWrite)
    while true {
      let own = registrations.map { provider, registration -> Change in
        let identifier = Accounts.registration(provider)
        return registration.map { .store($0.encoded, as: identifier) } ?? .remove(identifier)
      }
      let claims = try claims(accounts, replacing: registrations).changes
      do throws(StoreError) {
        try accounts.store.apply(own + claims + changes)
        return
      } catch .conflict {
        // Another process changed what is claimed meanwhile.
        continue
      } catch {
        throw .vault(error)
      }
    }
  }

  /// The claims of all registrations, of the `new` ones as they are about to be, and what brings the records up to
  /// date. Those of an earlier version, which say nothing of hosts, get what their descriptors say now, if it can be
  /// read.
  func claims(
    _ accounts: Accounts, replacing new: [String: Registration?] = [:]
  ) throws(CredentialError) -> (claims: [HostClaim], changes: [Change]) {
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
        // An export that somebody wrote may have those of others.
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
          // Those of a registration that is damaged stay.
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
      // Its revision is that of all claims: two processes do not change them at once.
      changes.append(isComplete ? .store(Secret("1"), as: Self.allClaimed, if: mark) : .remove(Self.allClaimed))
      return (claims, changes)
    }
  }

  /// With the hosts that the descriptor claims now, without those to which nobody agreed.
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
