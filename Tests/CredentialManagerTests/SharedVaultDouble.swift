import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText
import CredmgrVault
import Synchronization
import Testing

@testable import CredmgrCredentialManager

/// Shared vaults in directories: each is an embedded vault that several homes open.
final class DirectoryVaults: SharedVaults {
  struct State {
    var isReachable = true
    var calls = 0
    var holdsLeases = true
    /// The number of operations after which the vaults can no longer be reached.
    var limit = Int.max
    var clockOffset = Duration.zero
  }

  let folder: String
  let state = Mutex(State())

  init(in folder: String) { self.folder = folder }

  func isReachable(_ value: Bool) { state.withLock { $0.isReachable = value } }

  /// The number of operations on the stores so far.
  var calls: Int { state.withLock { $0.calls } }

  fileprivate func enter(_ name: String) throws(StoreError) {
    let isReachable = state.withLock { state in
      state.calls += 1
      return state.isReachable && state.calls <= state.limit
    }
    if !isReachable { throw .server(.unreachable(detail: "connection refused"), vault: name) }
  }

  func create(
    _ name: String, at server: String, password: Secret?, member: String, in place: SharedPlace
  ) throws(StoreError) { try store(membership: name, in: place) }

  func join(
    _ invitation: Secret, as name: String?, member: String?, in place: SharedPlace
  ) throws(StoreError) -> (name: String, invited: String) {
    let name = name ?? invitation.reveal()
    try store(membership: name, in: place)
    return (name, "member")
  }

  private func store(membership name: String, in place: SharedPlace) throws(StoreError) {
    try place.local.apply([.store(Secret("member"), as: RecordIdentifier(.membership, of: AccountID(name)))])
  }

  func open(_ name: String, in place: SharedPlace) throws(StoreError) -> any SharedStore {
    let path = folder + "/" + name
    let vault = try Vault.open(VaultLocation(directory: path), .readWrite, random: place.random)
    return DirectoryStore(name, vault, self)
  }
}

/// A shared vault in a directory.
final class DirectoryStore: SharedStore {
  private let name: String
  private let vault: Vault
  private let vaults: DirectoryVaults
  /// Runs before each operation, like another machine between two of this one.
  var onCall: (() -> Void)?

  init(_ name: String, _ vault: Vault, _ vaults: DirectoryVaults) {
    (self.name, self.vault, self.vaults) = (name, vault, vaults)
  }

  private func enter() throws(StoreError) {
    onCall?()
    try vaults.enter(name)
  }

  func record(_ identifier: RecordIdentifier) throws(StoreError) -> Record? {
    try enter()
    return try vault.record(identifier)
  }

  func records(_ kind: RecordKind, provider: String?) throws(StoreError) -> [Record] {
    try enter()
    return try vault.records(kind, provider: provider)
  }

  func unreadable(
    _ kind: RecordKind, provider: String?, without known: Set<RecordIdentifier>
  ) throws(StoreError) -> [RecordIdentifier] { try vault.unreadable(kind, provider: provider, without: known) }

  func isLost(_ identifier: RecordIdentifier) throws(StoreError) -> Bool { try vault.isLost(identifier) }

  func snapshot<Value, Failure: Error>(
    _ body: () throws(Failure) -> Value
  ) throws(StoreError) -> Result<Value, Failure> {
    // Another machine can change the vault before a snapshot, but not within it.
    onCall?()
    let call = onCall
    onCall = nil
    defer { onCall = call }
    return try vault.snapshot(body)
  }

  func apply(_ changes: [Change]) throws(StoreError) -> Int64 {
    try enter()
    return try vault.apply(changes)
  }

  func check(_ identifiers: [RecordIdentifier]) throws(StoreError) { try vault.check(identifiers) }

  func verify() throws(StoreError) -> [VaultFinding] { try vault.verify() }

  func hiddenName(of account: AccountID) -> String { vault.hiddenName(of: account) }

  func lock(
    _ account: AccountID, timeout: Duration, clock: any WallClock, waiting: (Duration) -> Bool
  ) throws(LockError) -> LockedAccount {
    do throws(StoreError) { try enter() } catch { throw .store(error) }
    return try vault.lock(account, timeout: timeout, clock: clock, waiting: waiting)
  }

  func isLocked(_ account: AccountID) -> Bool { vault.isLocked(account) }

  func makeRoom(for account: AccountID) throws(StoreError) -> any AnswerRoom { try vault.makeRoom(for: account) }

  func answer(for account: AccountID) -> Secret? { vault.answer(for: account) }

  func removeAnswer(for account: AccountID) { vault.removeAnswer(for: account) }

  func note(_ event: Secret) throws(StoreError) { try vault.note(event) }

  func events() throws(StoreError) -> (events: [Secret], lost: Int) { try vault.events() }

  func invite(_ member: String, asAdministrator: Bool, for time: Duration) -> Secret { Secret(name) }

  func members() -> [SharedMember] { [] }

  func remove(_ member: String) -> [AccountID] { [] }

  func leave() -> Bool { false }

  func rotate() {}

  func sharedStatus() -> SharedVaultStatus {
    SharedVaultStatus(
      server: "postgresql://db.example/credmgr", identifier: "0123", version: 1, epoch: 1, members: 1, records: 0,
      hasStandby: nil, isEncrypted: true)
  }

  var clockOffset: Duration { vaults.state.withLock { $0.clockOffset } }

  func stillHolds(_ account: AccountID) -> Bool { vaults.state.withLock { $0.holdsLeases } }
}

/// A machine beside the one of a fixture: a home of its own with the same shipped descriptors.
final class OtherMachine {
  let source: CredentialSource
  private(set) var notices: [Notice] = []

  /// Joins the vault "team" unless `joins` says otherwise.
  init(
    beside fixture: Fixture, _ vaults: DirectoryVaults, name: String = "other", http: (any HTTPExchange)? = nil,
    clock: ManualClock? = nil, joins: Bool = true
  ) throws {
    let root = fixture.root
    let home = try Home(
      environment: { $0 == "CREDMGR_HOME" ? root + "/" + name : nil }, executable: root + "/.build/debug/credmgr",
      ownHome: { _ in nil })
    source = CredentialSource(
      home: home, http: http ?? fixture.http, clock: clock ?? fixture.clock, random: KnownRandom())
    source.vaults = vaults
    source.notice = { [unowned self] in notices.append($0) }
    if joins { _ = try source.joinVault(Secret("team"), as: nil, member: nil) }
  }

  /// Another process of this machine. Without `vaults`, it is the program without a network.
  func another(_ vaults: DirectoryVaults? = nil, http: (any HTTPExchange)? = nil) -> CredentialSource {
    let other = CredentialSource(home: source.home, http: http, clock: source.clock, random: SystemRandomSource())
    other.vaults = vaults
    return other
  }
}

extension Fixture {
  /// Creates the vault "team", which the fixture's machine joins.
  func team() throws -> DirectoryVaults {
    let vaults = DirectoryVaults(in: root + "/shared")
    try File.createDirectory(root + "/shared")
    source.vaults = vaults
    try source.createVault("team", at: "postgresql://db.example/credmgr", password: nil, member: "ana")
    return vaults
  }

  /// The credential in the vault "team"; `nil` without one.
  func sharedCredential(_ account: String = "ana") throws -> Credential? {
    try source.joined("team").accounts().account(AccountID("example", account))?.credential
  }
}
