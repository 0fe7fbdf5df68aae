import CredmgrCryptography

/// The sealed content of the table `header`, which binds the parts of a vault together.
struct VaultHeader: Equatable {
  /// The number of changes so far, which is the revision of the records stored last.
  var generation: Int64 = 0
  /// The version of SQLite that wrote last; earlier versions compare it with the file's first 100 bytes.
  var libraryVersion: Int64 = 0
  /// The digest of all slots: changing slots requires the vault key.
  var slots: [UInt8]
  /// The tag of each bucket with records.
  var buckets: [UInt8: [UInt8]] = [:]

  init(slots: [UInt8]) { self.slots = slots }

  /// Opens a header, or returns `nil` if the bytes were altered.
  init?(opening sealed: [UInt8], key: SealingKey) {
    guard let plaintext = key.opened(sealed, Format.associatedData(.header)) else { return nil }
    var fields = BinaryReader(plaintext.revealBytes())
    guard let generation = fields.number64(), let libraryVersion = fields.number64(),
      fields.byte() != nil, let slots = fields.raw(Format.identifierByteCount)
    else { return nil }
    self.generation = generation
    self.libraryVersion = libraryVersion
    self.slots = slots
    while !fields.isAtEnd {
      guard let number = fields.byte(), let tag = fields.raw(Format.tagByteCount) else { return nil }
      buckets[number] = tag
    }
  }

  func sealed(key: SealingKey, random: some RandomSource) throws(VaultError) -> [UInt8] {
    var fields = BinaryWriter()
    fields.append(generation)
    fields.append(libraryVersion)
    // Earlier versions stored a digest of the file; 0 means no digest.
    fields.append(0 as UInt8)
    fields.append(raw: slots)
    for (number, tag) in buckets {
      fields.append(number)
      fields.append(raw: tag)
    }
    return try key.sealed(Secret(bytes: fields.bytes), Format.associatedData(.header), random: random)
  }
}
