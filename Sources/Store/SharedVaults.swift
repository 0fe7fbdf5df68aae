import CredmgrCryptography
import CredmgrPlatform
import CredmgrText

/// Vaults in a database that several machines share. Only programs with a network have them.
package protocol SharedVaults: Sendable {
  /// Creates a vault in the database, with this machine as its first administrator, and stores the membership in the
  /// local store under `name`. `password` is the database's, if it asks for one.
  func create(
    _ name: String, at server: String, password: Secret?, member: String, in place: SharedPlace
  ) throws(StoreError)

  /// Joins the vault of an invitation. `name` replaces the vault's name, and `member` the name in the invitation.
  /// Returns the vault's name on this machine, and the name in the invitation.
  func join(
    _ invitation: Secret, as name: String?, member: String?, in place: SharedPlace
  ) throws(StoreError) -> (name: String, invited: String)

  /// Opens a vault that this machine joined, without a connection: the first use connects.
  func open(_ name: String, in place: SharedPlace) throws(StoreError) -> any SharedStore
}

/// A machine's own part of a shared vault: its memberships, and a private directory for locks and answers.
package struct SharedPlace {
  package let local: any AccountStore
  package let folder: String
  package let random: any RandomSource
  package let clock: any WallClock

  package init(local: any AccountStore, folder: String, random: any RandomSource, clock: any WallClock) {
    self.local = local
    self.folder = folder
    self.random = random
    self.clock = clock
  }

  /// The names of the vaults that this machine joined.
  package func names() throws(StoreError) -> [String] {
    try local.records(.membership, provider: nil).map(\.identifier.provider)
  }

  /// Forgets a vault and its keys.
  package func forget(_ name: String) throws(StoreError) {
    let seen = try local.records(.seen, provider: name).map { Change.remove($0.identifier) }
    try local.apply([.remove(RecordIdentifier(.membership, of: AccountID(name)))] + seen)
  }
}

package protocol SharedStore: AccountStore {
  /// Returns an invitation: a secret for one use.
  func invite(_ member: String, asAdministrator: Bool, for time: Duration) throws(StoreError) -> Secret
  /// The members and the open invitations.
  func members() throws(StoreError) -> [SharedMember]
  /// The members and invitations that this machine knows, without a connection.
  var knownMembers: [SharedMember] { get }
  /// Removes a member or an open invitation and changes the key. Returns the accounts that the member could read.
  func remove(_ member: String) throws(StoreError) -> [AccountID]
  /// Returns the last removal of a member or an invitation of this name; `nil` if the list has no such entry.
  func removal(of member: String) throws(StoreError) -> SharedRemoval?
  /// Removes this machine from the members and changes the key; returns `false` if only another member may do that.
  func leave() throws(StoreError) -> Bool
  /// Changes the key and seals everything again.
  func rotate() throws(StoreError)
  /// Replaces the database's password that this machine and its invitations use.
  func setPassword(_ password: Secret) throws(StoreError)
  func sharedStatus() throws(StoreError) -> SharedVaultStatus
  /// Removes this machine's files of the vault: locks, leases and answers, which only a member can read.
  func removeFiles()
  /// Whether the lock of an account surely still belongs to this process for as long as one exchange may take. Ask
  /// immediately before a request that uses up a refresh token.
  func stillHolds(_ account: AccountID) -> Bool
  /// How far the server's clock was ahead of this machine's at the last answer. The members' clocks may disagree, so
  /// the moments in shared records are the server's.
  var clockOffset: Duration { get }
  /// This machine's name in the vault, for the log; `nil` if it is unknown.
  var memberName: String? { get }
  /// Whether the server did not answer in time within this time, and no process here has heard from it since.
  func wasSilent(within time: Duration) -> Bool
  /// Whether answers of providers wait on this machine for other accounts than these. Needs no connection.
  func hasAnswers(besides accounts: [AccountID]) -> Bool
}

extension SharedStore {
  package var clockOffset: Duration { .zero }
  package var memberName: String? { nil }
  package func wasSilent(within time: Duration) -> Bool { false }
  package func hasAnswers(besides accounts: [AccountID]) -> Bool { false }
  package func removal(of member: String) throws(StoreError) -> SharedRemoval? { nil }
  package var knownMembers: [SharedMember] { [] }
  package func removeFiles() {}
  package func setPassword(_ password: Secret) throws(StoreError) {}
}

package struct SharedMember: Sendable, Equatable {
  package let name: String
  package let isAdministrator: Bool
  /// When the member joined, or until when the invitation is open.
  package let since: Moment
  package let isInvited: Bool
  /// The beginning of the hash of the member's public keys; empty for an invitation.
  package let fingerprint: String
  /// Whether the member is this machine.
  package let isSelf: Bool

  package init(
    name: String, isAdministrator: Bool, since: Moment, isInvited: Bool, fingerprint: String, isSelf: Bool
  ) {
    self.name = name
    self.isAdministrator = isAdministrator
    self.since = since
    self.isInvited = isInvited
    self.fingerprint = fingerprint
    self.isSelf = isSelf
  }
}

package struct SharedRemoval: Sendable, Equatable {
  package let at: Moment
  /// Whether a member was removed; an invitation that was not used has shown nothing.
  package let wasMember: Bool
  /// Whether this machine removed it.
  package let isOwn: Bool

  package init(at: Moment, wasMember: Bool, isOwn: Bool) {
    (self.at, self.wasMember, self.isOwn) = (at, wasMember, isOwn)
  }
}

package struct SharedVaultStatus: Sendable, Equatable {
  /// The address without a password.
  package let server: String
  /// The identifier that the members compare: it names the first entry of the list of members.
  package let identifier: String
  package let version: Int64
  /// The number of the current key.
  package let epoch: Int64
  package let members: Int
  package let records: Int
  /// Whether commits wait for a standby; `nil` if the server does not say.
  package let hasStandby: Bool?
  /// Whether commits wait for a standby, and none is connected.
  package var lacksStandby = false
  /// Whether the connection is encrypted; a connection on this machine need not be.
  package let isEncrypted: Bool

  package init(
    server: String, identifier: String, version: Int64, epoch: Int64, members: Int, records: Int, hasStandby: Bool?,
    isEncrypted: Bool
  ) {
    self.server = server
    self.identifier = identifier
    self.version = version
    self.epoch = epoch
    self.members = members
    self.records = records
    self.hasStandby = hasStandby
    self.isEncrypted = isEncrypted
  }
}

/// A failure of a shared vault. `detail` is the server's or the library's text, which anyone may have written.
package enum ServerFault: Error, Equatable, Sendable {
  /// The library that speaks to PostgreSQL is not installed.
  case libraryMissing
  /// The address cannot be understood.
  case badAddress
  case passwordInAddress
  case passwordNeeded
  case wrongPassword
  case unreachable(detail: String)
  /// The server did not answer in time.
  case silent
  /// The server's certificate is not trusted, or the connection cannot be encrypted.
  case certificate(detail: String)
  case noRights(detail: String)
  /// The server accepts no changes: a standby, or one that was set to read only.
  case readOnly
  case full
  /// The database does not have the vault that this machine joined.
  case noVault
  /// The server does not have the database.
  case noDatabase(detail: String)
  case newerVersion(found: Int64, supported: Int64)
  /// The tables are not those that credmgr made.
  case schemaEdited(detail: String)
  case failed(detail: String)

  /// This machine has no vault of this name.
  case notJoined
  /// This machine already has a vault of this name.
  case nameTaken
  case memberExists(String)
  case noMember(String)
  /// Only administrators may do this.
  case notAdministrator
  /// A machine removes itself with `leave`, so that it also forgets the vault.
  case ownMembership
  /// This machine was removed from the vault.
  case removed
  /// The server does not have the entry with which this machine joined.
  case joinUnfinished
  case invitation(InvitationFault)

  /// The server shows an older state than this machine has seen; `nil` for the list of members.
  case setBack(RecordIdentifier?)
  /// The record was altered.
  case damaged(RecordIdentifier)
  /// The server shows another history than this machine has seen; `nil` for the list of members.
  case forked(RecordIdentifier?)
  /// The list of members or the list of records was altered.
  case altered
  /// Another machine took over the exchange because this one took too long.
  case overtaken(AccountID)
}

package enum InvitationFault: Sendable, Equatable {
  case malformed
  case used
  case late
  /// The key was changed, or the invitation was withdrawn or replaced.
  case void
  case otherVault
}
