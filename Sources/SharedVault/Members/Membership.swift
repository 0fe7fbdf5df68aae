import CredmgrCryptography
import CredmgrStore

/// A machine's knowledge of a vault that it joined: the payload of its record in the local store.
struct Membership: Sendable {
  let server: String
  var password: Secret?
  /// The secret 32 bytes of each of the member's keys.
  let signingSeed: Secret
  let boxSecret: Secret
  let signing: SigningKey
  let box: BoxKey
  var roster = Roster()
  /// The secret of each epoch.
  var secrets: [Int64: Secret] = [:]

  private static let version: Int64 = 1

  init(server: String, password: Secret?, signingSeed: Secret, boxSecret: Secret) throws(CryptographyError) {
    self.server = server
    self.password = password
    self.signingSeed = signingSeed
    self.boxSecret = boxSecret
    signing = try SigningKey(seed: signingSeed)
    box = try BoxKey(secret: boxSecret)
  }

  init(server: String, password: Secret?, random: any RandomSource) throws(CryptographyError) {
    try self.init(
      server: server, password: password, signingSeed: Secret(bytes: random.bytes(32)),
      boxSecret: Secret(bytes: random.bytes(32)))
  }

  var member: Roster.Member? { roster.member(signing: signing.publicKey) }

  /// The keys of the current epoch.
  func keys() throws(CryptographyError) -> EpochKeys { try keys(roster.epoch) }

  func keys(_ epoch: Int64) throws(CryptographyError) -> EpochKeys {
    guard let secret = secrets[epoch] else { throw .notAuthentic }
    return try EpochKeys(epoch, secret)
  }

  /// The name of an account's lock and answer on this machine, which does not change with the key of the vault.
  func hiddenName(of account: AccountID) -> String {
    var fields = FieldWriter()
    fields.append(roster.vault)
    fields.append(account.provider)
    fields.append(account.name ?? "")
    guard let key = try? SealingKey(boxSecret).subkey(context: "crmgrsv1", id: 4) else { return "" }
    return Hexadecimal.encode(Array(key.keyedHash(fields.bytes).prefix(16)))
  }

  var encoded: Secret {
    var fields = FieldWriter()
    fields.append(Self.version)
    fields.append(server)
    fields.append(password)
    fields.append(signingSeed.revealBytes())
    fields.append(boxSecret.revealBytes())
    roster.append(to: &fields)
    fields.append(Int64(secrets.count))
    for (epoch, secret) in secrets {
      fields.append(epoch)
      fields.append(secret.revealBytes())
    }
    return Secret(bytes: fields.bytes)
  }

  init?(_ payload: Secret) {
    var fields = FieldReader(payload.revealBytes())
    guard fields.number() == Self.version, let server = fields.text(), let password = fields.secret(),
      let signingSeed = fields.list(), let boxSecret = fields.list(), let roster = Roster(&fields),
      let secrets = fields.items({ fields -> (Int64, Secret)? in
        guard let epoch = fields.number(), let secret = fields.list() else { return nil }
        return (epoch, Secret(bytes: secret))
      }),
      let made = try? Membership(
        server: server, password: password, signingSeed: Secret(bytes: signingSeed),
        boxSecret: Secret(bytes: boxSecret))
    else { return nil }
    self = made
    self.roster = roster
    self.secrets = Dictionary(secrets) { first, _ in first }
  }
}

/// A member's copy of the vault's key: a row of the table `wrap`.
struct KeyCopy {
  let member: [UInt8]
  let sealed: [UInt8]

  /// The hash of all copies, which an administrator signs.
  static func hash(_ copies: [KeyCopy]) -> [UInt8] {
    var fields = FieldWriter()
    for copy in copies.sorted(by: { $0.member.lexicographicallyPrecedes($1.member) }) {
      fields.append(copy.member)
      fields.append(copy.sealed)
    }
    return blake2b(fields.bytes)
  }
}

/// An invitation: one line of text that is a secret.
struct InvitationText {
  var secret: Secret
  var vault: [UInt8]
  var server: String
  var password: Secret?
  /// The vault's name at the inviter, and the member's.
  var name: String
  var member: String

  static let prefix = "credmgr-invitation-1:"
  private static let checkByteCount = 8

  var text: Secret {
    var fields = FieldWriter()
    fields.append(secret.revealBytes())
    fields.append(vault)
    fields.append(server)
    fields.append(password)
    fields.append(name)
    fields.append(member)
    let check = blake2b(fields.bytes).prefix(Self.checkByteCount)
    return Secret(Self.prefix + Base64.encodeURL(fields.bytes + check))
  }

  init(secret: Secret, vault: [UInt8], server: String, password: Secret?, name: String, member: String) {
    self.secret = secret
    self.vault = vault
    self.server = server
    self.password = password
    self.name = name
    self.member = member
  }

  /// Reads an invitation; white space around it is fine.
  init?(_ text: Secret) {
    let words = text.reveal().split(whereSeparator: \.isWhitespace)
    guard words.count == 1, words[0].hasPrefix(Self.prefix),
      let bytes = Base64.decodeURL(String(words[0].dropFirst(Self.prefix.count))), bytes.count > Self.checkByteCount,
      constantTimeEqual(
        Array(blake2b(Array(bytes.dropLast(Self.checkByteCount))).prefix(Self.checkByteCount)),
        Array(bytes.suffix(Self.checkByteCount)))
    else { return nil }
    var fields = FieldReader(Array(bytes.dropLast(Self.checkByteCount)))
    guard let secret = fields.list(), secret.count == 32, let vault = fields.list(), let server = fields.text(),
      let password = fields.secret(), let name = fields.text(), let member = fields.text(), fields.isAtEnd
    else { return nil }
    self.init(
      secret: Secret(bytes: secret), vault: vault, server: server, password: password, name: name, member: member)
  }

  /// Returns the identifier under which the database finds the invitation, the key that seals it, and the key that
  /// signs the new member's entry.
  func keys() throws(CryptographyError) -> (identifier: [UInt8], sealing: SealingKey, signing: SigningKey) {
    let key = try SealingKey(secret)
    let signing = try SigningKey(seed: key.subkey(context: "crmgrsv1", id: 6).reveal())
    return (Self.identifier(signing.publicKey), try key.subkey(context: "crmgrsv1", id: 5), signing)
  }

  /// Members compare the row with the list of members, which has the key.
  static func identifier(_ key: [UInt8]) -> [UInt8] {
    Array(blake2b(Array("credmgr invitation".utf8) + key).prefix(16))
  }
}
