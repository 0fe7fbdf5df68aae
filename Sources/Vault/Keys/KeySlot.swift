import CredmgrCryptography
import CredmgrSQLite
import CredmgrStore
import CredmgrText

/// One wrapping of the vault's keys from the table `slot`.
struct KeySlot: Sendable, Equatable {
  var number: Int64
  /// The kind; slots of unknown kinds stay in the vault unused.
  var kind: Int64
  var created: Moment  // 1970 if unknown.
  /// The data for finding the wrapping key again, in a form of the kind's own.
  var parameters: [UInt8]
  var wrapped: [UInt8] = []

  mutating func wrap(_ keys: VaultKeys, with key: SealingKey, random: some RandomSource) throws(VaultError) {
    wrapped = try key.sealed(keys.secret, associatedData, random: random)
  }

  /// The vault's keys, or `nil` if the wrapping key is wrong or the slot was altered.
  func unwrap(with key: SealingKey) throws(VaultError) -> VaultKeys? {
    guard let secret = key.opened(wrapped, associatedData), secret.count == VaultKeys.byteCount else { return nil }
    return try VaultKeys(secret)
  }

  /// The associated data without the number: only the header's digest binds it, because a copy may renumber slots.
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

  /// The slot that this key file opens, or `nil`.
  func slot(of file: KeyFile) -> KeySlot? { of(.keyFile).first { $0.parameters == file.identifier } }

  /// The slot of the passphrase, or `nil` if the vault has no passphrase.
  func passphrase(path: String) throws(VaultError) -> (slot: KeySlot, parameters: PassphraseParameters)? {
    guard let slot = of(.passphrase).first else { return nil }
    guard let parameters = PassphraseParameters(decoding: slot.parameters) else { throw .damaged(path: path, .slots) }
    return (slot, parameters)
  }
}
