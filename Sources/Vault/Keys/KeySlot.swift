import Cryptography
import SQLite
import Store
import Text

/// One wrapping of the vault's keys, as it stands in the table `slot`.
struct KeySlot: Sendable, Equatable {
  var number: Int64
  /// A slot of a kind that is not known yet is kept and not used.
  var kind: Int64
  var created: Moment  // 1970 if nobody said.
  /// What is needed to find the wrapping key again; its form is the kind's own.
  var parameters: [UInt8]
  var wrapped: [UInt8] = []

  mutating func wrap(_ keys: VaultKeys, with key: SealingKey, random: some RandomSource) throws(VaultError) {
    wrapped = try key.sealed(keys.secret, associatedData, random: random)
  }

  /// `nil` if the wrapping key is another one, or if the slot was altered.
  func unwrap(with key: SealingKey) throws(VaultError) -> VaultKeys? {
    guard let secret = key.opened(wrapped, associatedData), secret.count == VaultKeys.byteCount else { return nil }
    return try VaultKeys(secret)
  }

  /// The digest of all slots in the header binds the number: copying a vault may number anew.
  private var associatedData: BinaryWriter {
    var fields = Format.associatedData(.slot)
    fields.append(kind)
    fields.append(created.secondsSince1970)
    fields.append(blob: parameters)
    return fields
  }

  var item: String? { kind == SlotKind.secretService.rawValue ? Hexadecimal.encode(parameters) : nil }
}

extension KeySlot {
  init(_ statement: borrowing Statement) throws(SQLiteError) {
    self.init(
      number: try statement.integer(0), kind: try statement.integer(1),
      created: Moment(secondsSince1970: try statement.integer(2)),
      parameters: try statement.bytes(3), wrapped: try statement.bytes(4))
  }
}

extension [KeySlot] {
  func of(_ kind: SlotKind) -> [KeySlot] { filter { $0.kind == kind.rawValue } }

  /// The one that is opened by this key file.
  func slot(of file: KeyFile) -> KeySlot? { of(.keyFile).first { $0.parameters == file.identifier } }

  /// `nil` if there is no passphrase.
  func passphrase(path: String) throws(VaultError) -> (slot: KeySlot, parameters: PassphraseParameters)? {
    guard let slot = of(.passphrase).first else { return nil }
    guard let parameters = PassphraseParameters(decoding: slot.parameters) else { throw .damaged(path: path, .slots) }
    return (slot, parameters)
  }
}
