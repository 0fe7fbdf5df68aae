import CredmgrCryptography
import CredmgrStore

/// The secret that slots wrap, and the keys derived from it.
struct VaultKeys: Sendable {
  /// 64 bytes: the vault key followed by the lock key. `rotate` does not change the lock key, because processes with
  /// the old and the new vault key must use the same locks.
  let secret: Secret
  private let vault: SealingKey
  private let locks: SealingKey
  private let names: SealingKey
  let records: SealingKey

  static let byteCount = 64

  init(_ secret: Secret) throws(VaultError) {
    self.secret = secret
    vault = try .new(secret[0..<32])
    locks = try .new(secret[32..<64])
    records = try vault.subkey(1)
    names = try vault.subkey(2)
  }

  init(random: some RandomSource) throws(VaultError) { try self.init(Secret(bytes: random.bytes(Self.byteCount))) }

  /// Creates a new vault key with the same lock key.
  init(after old: VaultKeys, random: some RandomSource) throws(VaultError) {
    try self.init(Secret(random.bytes(SealingKey.byteCount), old.secret[SealingKey.byteCount..<Self.byteCount]))
  }

  /// The key of the header and the index, which reading a record does not need.
  func index() throws(VaultError) -> SealingKey { try vault.subkey(3) }

  /// An identifier that reveals nothing about the vault key.
  var identifier: [UInt8] { hash(0) { _ in } }

  func lookup(_ identifier: RecordIdentifier) -> Int64 {
    number(1) {
      $0.append(identifier.kind.rawValue)
      $0.append(name: identifier.provider)
      $0.append(name: identifier.account)
    }
  }

  func grouping(_ kind: RecordKind, provider: String) -> Int64 {
    number(2) {
      $0.append(kind.rawValue)
      $0.append(name: provider)
    }
  }

  /// The digest of the slots in the order of their numbers.
  func digest(_ slots: [KeySlot]) -> [UInt8] {
    hash(3) {
      for slot in slots {
        $0.append(slot.number)
        $0.append(slot.kind)
        $0.append(slot.created.secondsSince1970)
        $0.append(blob: slot.parameters)
        $0.append(blob: slot.wrapped)
      }
    }
  }

  /// See ``Vault/hiddenName(of:)``.
  func hiddenName(of account: AccountID) -> String {
    var fields = BinaryWriter()
    fields.append(name: account.provider)
    fields.append(name: account.name ?? "")
    return Hexadecimal.encode(Array(locks.keyedHash(fields.bytes).prefix(Format.identifierByteCount)))
  }

  private func number(_ purpose: UInt8, _ fill: (inout BinaryWriter) -> Void) -> Int64 {
    hash(purpose, fill).prefix(8).reduce(0) { $0 << 8 | Int64($1) }
  }

  private func hash(_ purpose: UInt8, _ fill: (inout BinaryWriter) -> Void) -> [UInt8] {
    var fields = BinaryWriter()
    fields.append(purpose)
    fill(&fields)
    return Array(names.keyedHash(fields.bytes).prefix(Format.identifierByteCount))
  }
}

extension SealingKey {
  static func new(_ bytes: Secret) throws(VaultError) -> SealingKey {
    try converting(SealingKey(bytes))
  }

  static func new(random: some RandomSource) throws(VaultError) -> SealingKey {
    try new(Secret(bytes: random.bytes(byteCount)))
  }

  fileprivate func subkey(_ number: UInt64) throws(VaultError) -> SealingKey {
    try converting(subkey(context: "credmgr", id: number))
  }

  /// A new nonce and the sealed plaintext, whose last 16 bytes are the tag.
  func sealed(
    _ plaintext: Secret, _ associatedData: BinaryWriter, random: some RandomSource
  ) throws(VaultError) -> [UInt8] {
    let nonce = random.bytes(Self.nonceByteCount)
    return try converting(nonce + seal(plaintext, associatedData: associatedData.bytes, nonce: nonce))
  }

  /// The plaintext, or `nil` if the bytes were altered.
  func opened(_ sealed: [UInt8], _ associatedData: BinaryWriter) -> Secret? {
    try? open(
      Array(sealed.dropFirst(Self.nonceByteCount)), associatedData: associatedData.bytes,
      nonce: Array(sealed.prefix(Self.nonceByteCount)))
  }
}
