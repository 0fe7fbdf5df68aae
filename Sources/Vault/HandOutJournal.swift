import Cryptography
import Platform

/// What was given to whom since the last change of the vault.
///
/// To hand a token out must not wait for the vault's one writer, nor for the disk. So a hand-out is a sealed line that is
/// appended to a file beside the vault, and the next change of the vault takes the lines in.
struct HandOutJournal {
  /// The largest file; there are two of them at most.
  static let limit = 128 << 10
  /// The longest event.
  static let eventLimit = 2048

  let path: String

  init(_ location: VaultLocation) { path = location.directory + "/handouts.log" }

  struct Entry {
    /// No other has it.
    let nonce: [UInt8]
    let event: Secret
  }

  /// A line begins with a line feed, too: what a killed process has begun spoils no other line.
  func append(_ event: Secret, _ keys: VaultKeys, random: some RandomSource) throws(VaultError) {
    let sealed = try converting { () throws(CryptographyError) in
      try keys.records.sealed(event, Format.associatedData(.handOut), random: random)
    }
    let line = "\n" + Base64.encodeURL(sealed) + "\n"
    try converting { () throws(POSIXError) in
      try JournalFile.append(path, Array(line.utf8), limit: Self.limit)
    }
  }

  /// The lines of a file that cannot be read: what a killed process has begun, or somebody else wrote.
  static func unreadableCount(_ bytes: [UInt8], _ keys: VaultKeys) -> Int {
    bytes.split(separator: UInt8(ascii: "\n")).count - entries(bytes, keys).count
  }

  /// The entries of a file. What nobody wrote, or somebody with another vault key, is left out.
  static func entries(_ bytes: [UInt8], _ keys: VaultKeys) -> [Entry] {
    bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
      guard let sealed = Base64.decodeURL(String(decoding: line, as: UTF8.self)),
        let event = keys.records.opened(sealed, Format.associatedData(.handOut))
      else { return nil }
      return Entry(nonce: Array(sealed.prefix(SealingKey.nonceByteCount)), event: event)
    }
  }
}
