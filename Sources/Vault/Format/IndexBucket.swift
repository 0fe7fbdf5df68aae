import CredmgrCryptography
import CredmgrStore

/// One of the 256 parts of the index: its records, and the valid sealing of each. The first byte of a record's lookup
/// hash is the number of its bucket, so a change of one record reads and writes one bucket.
struct IndexBucket {
  struct Entry: Equatable {
    var revision: Int64
    var tag: [UInt8]
  }

  let number: UInt8
  var entries: [RecordIdentifier: Entry] = [:]

  static func number(_ lookup: Int64) -> UInt8 { UInt8(truncatingIfNeeded: lookup >> 56) }

  init(number: UInt8) { self.number = number }

  /// Opens a bucket, or returns `nil` if the bytes were altered.
  init?(number: UInt8, opening sealed: [UInt8], key: SealingKey) {
    self.number = number
    guard let plaintext = key.opened(sealed, associatedData) else { return nil }
    var fields = BinaryReader(plaintext.revealBytes())
    while !fields.isAtEnd {
      guard let kind = fields.byte().flatMap(RecordKind.init), let revision = fields.number64(),
        let tag = fields.raw(Format.tagByteCount), let provider = fields.name(), let account = fields.name()
      else { return nil }
      let identifier = RecordIdentifier(kind: kind, provider: provider, account: account)
      entries[identifier] = Entry(revision: revision, tag: tag)
    }
  }

  func sealed(key: SealingKey, random: some RandomSource) throws(VaultError) -> [UInt8] {
    var fields = BinaryWriter()
    for (identifier, entry) in entries {
      fields.append(identifier.kind.rawValue)
      fields.append(entry.revision)
      fields.append(raw: entry.tag)
      fields.append(name: identifier.provider)
      fields.append(name: identifier.account)
    }
    return try key.sealed(Secret(bytes: fields.bytes), associatedData, random: random)
  }

  private var associatedData: BinaryWriter {
    var fields = Format.associatedData(.bucket)
    fields.append(number)
    return fields
  }
}
