import Cryptography
import Store

/// A slot in the making: a new wrapping key, and what is needed to find it again.
package struct SlotDraft: Sendable {
  /// How the slot will be opened.
  package let kind: SlotKind
  /// The Secret Service's part: what to keep there, and under which name, before the slot is made.
  package let item: SecretServiceItem?
  let parameters: [UInt8]
  let key: SealingKey
  let keyFile: KeyFile?

  /// A new key file.
  ///
  /// - Throws: `.outOfMemory`.
  package static func keyFile(random: some RandomSource) throws(VaultError) -> SlotDraft {
    let file = try converting { () throws(CryptographyError) in try KeyFile(random: random) }
    return SlotDraft(kind: .keyFile, item: nil, parameters: file.identifier, key: file.key, keyFile: file)
  }

  /// A passphrase, with a new salt.
  ///
  /// Takes about a second with the standard costs.
  ///
  /// - Throws: `.wrongPassphrase` for an empty one, `.outOfMemory`.
  package static func passphrase(
    _ passphrase: Secret, costs: PassphraseCosts = .moderate, random: some RandomSource
  ) throws(VaultError) -> SlotDraft {
    guard !passphrase.isEmpty else { throw .wrongPassphrase }
    let salt = random.bytes(PassphraseCosts.saltByteCount)
    let key = try converting { () throws(CryptographyError) in
      try SealingKey(passphrase: passphrase, costs: costs, salt: salt)
    }
    let parameters = PassphraseParameters(salt: salt, costs: costs, key: key)
    return SlotDraft(kind: .passphrase, item: nil, parameters: parameters.encoded, key: key, keyFile: nil)
  }

  /// A key for the Secret Service to keep.
  ///
  /// - Throws: `.outOfMemory`.
  package static func secretService(random: some RandomSource) throws(VaultError) -> SlotDraft {
    let name = random.bytes(Format.identifierByteCount)
    let key = try converting { () throws(CryptographyError) in try SealingKey(random: random) }
    let item = SecretServiceItem(name: Hexadecimal.encode(name), key: key.reveal())
    return SlotDraft(kind: .secretService, item: item, parameters: name, key: key, keyFile: nil)
  }
}

/// What the Secret Service keeps for a vault.
package struct SecretServiceItem: Sendable, Equatable {
  /// 32 hexadecimal digits, which say nothing about the vault.
  package let name: String
  /// The wrapping key.
  package let key: Secret
}

/// The parameters of a slot of the kind `.passphrase`.
struct PassphraseParameters {
  let salt: [UInt8]
  let costs: PassphraseCosts
  /// Tells a wrong passphrase from a damaged slot.
  private let check: [UInt8]

  private static let checkByteCount = 8

  init(salt: [UInt8], costs: PassphraseCosts, key: SealingKey) {
    self.salt = salt
    self.costs = costs
    check = Self.check(key)
  }

  /// `nil` if the bytes are not what was written.
  init?(decoding bytes: [UInt8]) {
    var fields = BinaryReader(bytes)
    guard let salt = fields.raw(PassphraseCosts.saltByteCount), let operations = fields.number64(),
      let memory = fields.number64(), let check = fields.raw(Self.checkByteCount),
      let sum = fields.raw(Self.checkByteCount), fields.isAtEnd,
      sum == Self.sum(Array(bytes.dropLast(Self.checkByteCount)))
    else { return nil }
    self.salt = salt
    self.check = check
    costs = PassphraseCosts(operations: UInt64(bitPattern: operations), memory: UInt64(bitPattern: memory))
  }

  var encoded: [UInt8] {
    var fields = BinaryWriter()
    fields.append(raw: salt)
    fields.append(Int64(bitPattern: costs.operations))
    fields.append(Int64(bitPattern: costs.memory))
    fields.append(raw: check)
    return fields.bytes + Self.sum(fields.bytes)
  }

  /// The wrapping key; `nil` for another passphrase.
  func key(_ passphrase: Secret) throws(VaultError) -> SealingKey? {
    guard !passphrase.isEmpty else { return nil }
    let key = try converting { () throws(CryptographyError) in
      try SealingKey(passphrase: passphrase, costs: costs, salt: salt)
    }
    return constantTimeEqual(Self.check(key), check) ? key : nil
  }

  /// An altered salt would make the right passphrase a wrong one.
  private static func sum(_ bytes: [UInt8]) -> [UInt8] {
    Array(HashAlgorithm.sha256.digest(bytes).prefix(checkByteCount))
  }

  private static func check(_ key: SealingKey) -> [UInt8] {
    Array(key.keyedHash(Array("credmgr passphrase check".utf8)).prefix(checkByteCount))
  }
}
