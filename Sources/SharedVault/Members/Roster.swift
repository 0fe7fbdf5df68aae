import CredmgrCryptography
import CredmgrStore
import CredmgrText

/// The members of a vault, as its chain of signed entries states them. Each machine keeps the result and verifies only
/// new entries.
struct Roster: Sendable, Equatable {
  /// The end of the chain: the number of its entries and the hash of the last one.
  struct Head: Sendable, Equatable {
    var sequence: Int64 = 0
    var hash: [UInt8] = []
  }

  struct Member: Sendable, Equatable {
    var name: String
    var isAdministrator: Bool
    /// The keys for signatures and for sealed boxes.
    var signing: [UInt8]
    var box: [UInt8]
    var joined: Int64

    /// The identifier under which the database finds the member's copy of the key.
    var identifier: [UInt8] { Array(blake2b(signing + box).prefix(16)) }

    var fingerprint: String { Hexadecimal.encode(Array(blake2b(signing + box).suffix(8))) }
  }

  struct Invitation: Sendable, Equatable {
    /// The public key that signs the entry of the new member.
    var key: [UInt8]
    var name: String
    var isAdministrator: Bool
    var expires: Int64
  }

  private(set) var vault: [UInt8] = []
  private(set) var head = Head()
  private(set) var epoch: Int64 = 0
  /// The commitment to the key of the current epoch.
  private(set) var commitment: [UInt8] = []
  /// The hash of all copies of the key of the current epoch; empty in the first epoch.
  private(set) var copies: [UInt8] = []
  private(set) var members: [Member] = []
  private(set) var invitations: [Invitation] = []
  /// The beginnings of the hashes of all entries, which members compare through the records.
  private(set) var history: [UInt8] = []

  func member(signing key: [UInt8]) -> Member? { members.first { $0.signing == key } }

  func isTaken(_ name: String) -> Bool {
    members.contains { $0.name == name } || invitations.contains { $0.name == name }
  }

  /// Whether a writer's view of the chain is a part of this one.
  func contains(_ other: Head) -> Bool {
    guard other.sequence >= 1, other.sequence <= head.sequence else { return false }
    let start = Int(other.sequence - 1) * Cell.markByteCount
    guard start + Cell.markByteCount <= history.count else { return false }
    return Array(history[start..<start + Cell.markByteCount]) == Array(other.hash.prefix(Cell.markByteCount))
  }

  // MARK: Entries

  enum Change: Sendable, Equatable {
    case create(Member, commitment: [UInt8])
    case invite(Invitation)
    case join(Member)
    /// Changes the key, and removes the member or the invitation of this name if it is not empty. The entry contains
    /// the key before, so that a member can read all earlier entries, and a hash of the members' copies of the new one.
    case rekey(removing: String, before: Secret, commitment: [UInt8], copies: [UInt8])
  }

  /// The plaintext of the next entry.
  func entry(_ change: Change, at time: Int64, signedBy key: SigningKey) -> [UInt8] {
    var fields = FieldWriter()
    fields.append(head.sequence + 1)
    fields.append(head.hash)
    fields.append(time)
    switch change {
    case .create(let member, let commitment):
      fields.append(1)
      fields.append(member)
      fields.append(commitment)
    case .invite(let invitation):
      fields.append(2)
      fields.append(invitation)
    case .join(let member):
      fields.append(3)
      fields.append(member)
    case .rekey(let name, let before, let commitment, let copies):
      fields.append(4)
      fields.append(name)
      fields.append(before.revealBytes())
      fields.append(commitment)
      fields.append(copies)
    }
    fields.append(key.publicKey)
    return fields.bytes + key.signature(for: signed(fields.bytes))
  }

  private func signed(_ bytes: [UInt8]) -> [UInt8] {
    var fields = FieldWriter()
    fields.append("credmgr roster 1")
    fields.append(vault)
    return fields.bytes + bytes
  }

  /// The key of the epoch before, if the entry changed it.
  static func keyBefore(_ entry: [UInt8]) -> Secret? {
    guard case .rekey(_, let before, _, _) = Entry(entry)?.change else { return nil }
    return before
  }

  struct Entry {
    let sequence: Int64
    let before: [UInt8]
    let time: Int64
    let change: Change
    let signer: [UInt8]
  }

  /// Follows the chain by one entry, or returns `false` if it lacks the signature of a member who may write it.
  mutating func follow(_ entry: [UInt8]) -> Bool {
    guard let parsed = Entry(entry), parsed.sequence == head.sequence + 1, parsed.before == head.hash,
      SigningKey.isValid(
        Array(entry.suffix(SigningKey.signatureByteCount)),
        for: signed(Array(entry.dropLast(SigningKey.signatureByteCount))), by: parsed.signer)
    else { return false }
    let (sequence, signer, hash) = (parsed.sequence, parsed.signer, blake2b(entry))
    let isByAdministrator = member(signing: signer)?.isAdministrator ?? false
    switch parsed.change {
    case .create(let member, let commitment):
      guard sequence == 1, member.signing == signer, member.isAdministrator else { return false }
      vault = hash
      epoch = 1
      self.commitment = commitment
      members = [member]
    case .invite(let invitation):
      guard isByAdministrator, !members.contains(where: { $0.name == invitation.name }) else { return false }
      // The earlier one may have expired.
      invitations.removeAll { $0.name == invitation.name }
      invitations.append(invitation)
    case .join(var member):
      guard let index = invitations.firstIndex(where: { $0.key == signer }) else { return false }
      let invitation = invitations.remove(at: index)
      guard !isTaken(member.name), self.member(signing: member.signing) == nil else { return false }
      member.isAdministrator = invitation.isAdministrator
      member.joined = parsed.time
      members.append(member)
    case .rekey(let name, _, let commitment, let copies):
      guard isByAdministrator, name.isEmpty || isTaken(name) else { return false }
      members.removeAll { $0.name == name }
      guard members.contains(where: \.isAdministrator) else { return false }
      invitations = []
      epoch += 1
      self.commitment = commitment
      self.copies = copies
    }
    head = Head(sequence: sequence, hash: hash)
    history += hash.prefix(Cell.markByteCount)
    return true
  }

  // MARK: Storage

  func append(to fields: inout FieldWriter) {
    fields.append(vault)
    fields.append(head.sequence)
    fields.append(head.hash)
    fields.append(epoch)
    fields.append(commitment)
    fields.append(copies)
    fields.append(Int64(members.count))
    for member in members { fields.append(member) }
    fields.append(Int64(invitations.count))
    for invitation in invitations { fields.append(invitation) }
    fields.append(history)
  }

  init() {}

  init?(_ fields: inout FieldReader) {
    guard let vault = fields.list(), let sequence = fields.number(), let hash = fields.list(),
      let epoch = fields.number(), let commitment = fields.list(), let copies = fields.list(),
      let members = fields.items({ Member(&$0) }), let invitations = fields.items({ Invitation(&$0) }),
      let history = fields.list()
    else { return nil }
    self.vault = vault
    head = Head(sequence: sequence, hash: hash)
    self.epoch = epoch
    self.commitment = commitment
    self.copies = copies
    self.members = members
    self.invitations = invitations
    self.history = history
  }
}

extension Roster.Entry {
  init?(_ entry: [UInt8]) {
    guard entry.count > SigningKey.signatureByteCount else { return nil }
    var fields = FieldReader(Array(entry.dropLast(SigningKey.signatureByteCount)))
    guard let sequence = fields.number(), let before = fields.list(), let time = fields.number(),
      let kind = fields.number()
    else { return nil }
    let change: Roster.Change
    switch kind {
    case 1:
      guard let member = Roster.Member(&fields), let commitment = fields.list() else { return nil }
      change = .create(member, commitment: commitment)
    case 2:
      guard let invitation = Roster.Invitation(&fields) else { return nil }
      change = .invite(invitation)
    case 3:
      guard let member = Roster.Member(&fields) else { return nil }
      change = .join(member)
    case 4:
      guard let name = fields.text(), let before = fields.list(), let commitment = fields.list(),
        let copies = fields.list()
      else { return nil }
      change = .rekey(removing: name, before: Secret(bytes: before), commitment: commitment, copies: copies)
    default: return nil
    }
    guard let signer = fields.list(), fields.isAtEnd else { return nil }
    self.init(sequence: sequence, before: before, time: time, change: change, signer: signer)
  }
}

extension FieldWriter {
  fileprivate mutating func append(_ member: Roster.Member) {
    append(member.name)
    append(Int64(member.isAdministrator ? 1 : 0))
    append(member.signing)
    append(member.box)
    append(member.joined)
  }

  fileprivate mutating func append(_ invitation: Roster.Invitation) {
    append(invitation.key)
    append(invitation.name)
    append(Int64(invitation.isAdministrator ? 1 : 0))
    append(invitation.expires)
  }
}

extension Roster.Member {
  fileprivate init?(_ fields: inout FieldReader) {
    guard let name = fields.text(), let role = fields.number(), let signing = fields.list(), let box = fields.list(),
      let joined = fields.number(), signing.count == 32, box.count == 32
    else { return nil }
    self.init(name: name, isAdministrator: role == 1, signing: signing, box: box, joined: joined)
  }
}

extension Roster.Invitation {
  fileprivate init?(_ fields: inout FieldReader) {
    guard let key = fields.list(), let name = fields.text(), let role = fields.number(), let expires = fields.number()
    else { return nil }
    self.init(key: key, name: name, isAdministrator: role == 1, expires: expires)
  }
}
