import COpenSSL

/// A digest of FIPS 180-4.
///
/// SHA-1 is here for OAuth 1.0a (RFC 5849, section 3.4.2), where its use in HMAC is still sound, and for
/// nothing else.
package enum HashAlgorithm: Sendable, CaseIterable {
  /// 20 bytes.
  case sha1
  /// 32 bytes.
  case sha256
  /// 48 bytes.
  case sha384
  /// 64 bytes.
  case sha512

  /// The number of bytes of a digest.
  package var byteCount: Int {
    switch self {
    case .sha1: 20
    case .sha256: 32
    case .sha384: 48
    case .sha512: 64
    }
  }

  /// The bytes that the digest takes at once.
  private var blockByteCount: Int {
    switch self {
    case .sha1, .sha256: 64
    case .sha384, .sha512: 128
    }
  }

  /// The digest of the bytes.
  package func digest(_ bytes: [UInt8]) -> [UInt8] {
    unsafe [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
      switch self {
      case .sha1: unsafe copenssl_sha1(bytes, bytes.count, buffer.baseAddress)
      case .sha256: unsafe copenssl_sha256(bytes, bytes.count, buffer.baseAddress)
      case .sha384: unsafe copenssl_sha384(bytes, bytes.count, buffer.baseAddress)
      case .sha512: unsafe copenssl_sha512(bytes, bytes.count, buffer.baseAddress)
      }
      count = byteCount
    }
  }

  /// HMAC (RFC 2104, section 2) over the message. The key can have any length, also none.
  package func authenticationCode(for message: [UInt8], key: [UInt8]) -> [UInt8] {
    var block = key.count > blockByteCount ? digest(key) : key
    block += [UInt8](repeating: 0, count: blockByteCount - block.count)
    return digest(block.map { $0 ^ 0x5C } + digest(block.map { $0 ^ 0x36 } + message))
  }
}
