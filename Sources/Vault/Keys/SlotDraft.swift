import CredmgrCryptography
import CredmgrPlatform
import CredmgrStore
import CredmgrText

/// A slot before its creation: a new wrapping key and the data for finding it again.
package struct SlotDraft: Sendable {
  package let kind: SlotKind
  /// The item that the Secret Service must store before the slot is created.
  package private(set) var item: SecretServiceItem?
  let parameters: [UInt8]
  let key: SealingKey
  private(set) var keyFile: KeyFile?

  package static func keyFile(random: some RandomSource) throws(VaultError) -> SlotDraft {
    let file = try KeyFile(random: random)
    return SlotDraft(kind: .keyFile, parameters: file.identifier, key: file.key, keyFile: file)
  }

  /// Creates a slot in about a second (with standard costs). Throws `.wrongPassphrase` for an empty passphrase.
  package static func passphrase(
    _ passphrase: Secret, costs: PassphraseCosts = .standard, random: some RandomSource
  ) throws(VaultError) -> SlotDraft {
    guard !passphrase.isEmpty else { throw .wrongPassphrase }
    let salt = random.bytes(PassphraseCosts.saltByteCount)
    let key = try converting(SealingKey(passphrase: passphrase, costs: costs, salt: salt))
    let parameters = PassphraseParameters(salt: salt, costs: costs, check: PassphraseParameters.check(key))
    return SlotDraft(kind: .passphrase, parameters: parameters.encoded, key: key)
  }

  package static func secretService(random: some RandomSource) throws(VaultError) -> SlotDraft {
    let (name, key) = (random.bytes(Format.identifierByteCount), try SealingKey.new(random: random))
    let item = SecretServiceItem(name: Hexadecimal.encode(name), key: key.reveal())
    return SlotDraft(kind: .secretService, item: item, parameters: name, key: key)
  }

  func slot(_ number: Int64, _ keys: VaultKeys, now: Moment, random: some RandomSource) throws(VaultError) -> KeySlot {
    var slot = KeySlot(number: number, kind: kind.rawValue, created: now, parameters: parameters)
    try slot.wrap(keys, with: key, random: random)
    return slot
  }
}

package struct SecretServiceItem: Sendable, Equatable {
  /// 32 hexadecimal digits that reveal nothing about the vault.
  package let name: String
  package let key: Secret
}

/// The parameters of a slot of the kind `.passphrase`.
struct PassphraseParameters {
  let salt: [UInt8]
  let costs: PassphraseCosts
  /// A checksum that distinguishes a wrong passphrase from a damaged slot.
  let check: [UInt8]

  private static let checkByteCount = 8

  var encoded: [UInt8] {
    var fields = BinaryWriter()
    fields.append(raw: salt)
    fields.append(Int64(bitPattern: costs.operations))
    fields.append(Int64(bitPattern: costs.memory))
    fields.append(raw: check)
    return fields.bytes + Self.sum(fields.bytes)
  }

  /// The wrapping key, or `nil` if the passphrase is wrong.
  func key(_ passphrase: Secret) throws(VaultError) -> SealingKey? {
    guard !passphrase.isEmpty else { return nil }
    let key = try converting(SealingKey(passphrase: passphrase, costs: costs, salt: salt))
    return constantTimeEqual(Self.check(key), check) ? key : nil
  }

  /// A checksum, because an altered salt would make the correct passphrase fail.
  private static func sum(_ bytes: [UInt8]) -> [UInt8] {
    Array(HashAlgorithm.sha256.digest(bytes).prefix(checkByteCount))
  }

  static func check(_ key: SealingKey) -> [UInt8] {
    Array(key.keyedHash(Array("credmgr passphrase check".utf8)).prefix(checkByteCount))
  }
}

extension PassphraseParameters {
  /// Decodes the parameters, or returns `nil` if the bytes were altered.
  init?(decoding bytes: [UInt8]) {
    var fields = BinaryReader(bytes)
    guard let salt = fields.raw(PassphraseCosts.saltByteCount), let operations = fields.number64(),
      let memory = fields.number64(), let check = fields.raw(Self.checkByteCount),
      let sum = fields.raw(Self.checkByteCount), fields.isAtEnd,
      sum == Self.sum(Array(bytes.dropLast(Self.checkByteCount)))
    else { return nil }
    let costs = PassphraseCosts(operations: UInt64(bitPattern: operations), memory: UInt64(bitPattern: memory))
    self.init(salt: salt, costs: costs, check: check)
  }
}

extension PassphraseCosts {
  /// The costs of a new passphrase, which builds for tests can reduce.
  package static var standard: PassphraseCosts {
    FaultPoint.cheapensPassphrases ? PassphraseCosts(operations: 1, memory: 8192) : .moderate
  }
}
