import CredmgrCryptography
import CredmgrPlatform
import CredmgrStore

/// The file with the wrapping key of a slot of the kind `.keyFile`.
///
/// One printable line of ASCII: `credmgr-key-1:` and base64url of 32 bytes of key and 8 bytes of checksum, which
/// distinguishes an altered file from that of another vault.
struct KeyFile {
  let key: SealingKey

  private static let prefix = "credmgr-key-1:"
  private static let checkByteCount = 8
  private static let limit = 4096

  init(random: some RandomSource) throws(VaultError) { key = try .new(random: random) }

  /// - Throws: `.file` if the file is not private, `.keyFileInvalid` if its content is wrong.
  init(path: String) throws(VaultError) {
    let bytes = try wrapping(VaultError.file, PrivateFile.read(path, limit: Self.limit))
    guard bytes.starts(with: Self.prefix.utf8), bytes.last == UInt8(ascii: "\n"),
      let content = Base64.decodeURL(
        String(decoding: bytes.dropFirst(Self.prefix.utf8.count).dropLast(), as: UTF8.self)),
      content.count == SealingKey.byteCount + Self.checkByteCount
    else { throw .keyFileInvalid(path: path) }
    key = try .new(Secret(bytes: Array(content.prefix(SealingKey.byteCount))))
    guard constantTimeEqual(check, Array(content.suffix(Self.checkByteCount))) else {
      throw .keyFileInvalid(path: path)
    }
  }

  /// The parameters of the slot that this key file opens.
  var identifier: [UInt8] { hash("identifier", Format.identifierByteCount) }

  private var check: [UInt8] { hash("check", Self.checkByteCount) }

  private func hash(_ purpose: String, _ count: Int) -> [UInt8] {
    Array(key.keyedHash(Array("credmgr key file \(purpose)".utf8)).prefix(count))
  }

  var content: [UInt8] { Array((Self.prefix + Base64.encodeURL(key.reveal().revealBytes() + check) + "\n").utf8) }
}
