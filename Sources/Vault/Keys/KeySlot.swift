import Cryptography

/// One wrapping of the vault's keys, as it stands in the table `slot`.
struct KeySlot: Sendable, Equatable {
  var number: Int64
  /// A number without a meaning here belongs to a kind that is not known yet: such a slot is kept and not
  /// used.
  var kind: Int64
  /// Seconds since 1970; 0 if nobody said.
  var created: Int64
  /// What is needed to find the wrapping key again; its form is the kind's own.
  var parameters: [UInt8]
  var wrapped: [UInt8] = []

  mutating func wrap(
    _ keys: VaultKeys, with key: SealingKey, random: some RandomSource
  ) throws(CryptographyError) {
    wrapped = try key.sealed(keys.secret, associatedData, random: random)
  }

  /// `nil` if the wrapping key is another one, or if the slot was altered.
  func unwrap(with key: SealingKey) throws(CryptographyError) -> VaultKeys? {
    guard let secret = key.opened(wrapped, associatedData), secret.count == VaultKeys.byteCount
    else { return nil }
    return try VaultKeys(secret)
  }

  /// The number is not bound, the digest of all slots in the header does that: copying a vault may number
  /// anew.
  private var associatedData: BinaryWriter {
    var fields = Format.associatedData(.slot)
    fields.append(kind)
    fields.append(created)
    fields.append(blob: parameters)
    return fields
  }
}
