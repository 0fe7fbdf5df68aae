import CredmgrCOpenSSL

/// A hash function of FIPS 180-4. Only signatures of OAuth 1.0a (RFC 5849, 3.4.2) and of descriptors use SHA-1, whose
/// use in HMAC is still sound.
package enum HashAlgorithm: Sendable, CaseIterable {
  case sha1
  case sha256
  case sha384
  case sha512

  package var byteCount: Int {
    switch self {
    case .sha1: 20
    case .sha256: 32
    case .sha384: 48
    case .sha512: 64
    }
  }

  private var blockByteCount: Int {
    switch self {
    case .sha1, .sha256: 64
    case .sha384, .sha512: 128
    }
  }

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

  /// The HMAC of the message (RFC 2104, 2).
  package func authenticationCode(for message: [UInt8], key: [UInt8]) -> [UInt8] {
    var block = key.count > blockByteCount ? digest(key) : key
    block += [UInt8](repeating: 0, count: blockByteCount - block.count)
    return digest(block.map { $0 ^ 0x5C } + digest(block.map { $0 ^ 0x36 } + message))
  }
}

/// Returns the MD5 digest (RFC 1321), which is only for servers that offer nothing better (RFC 7616, 3.2).
package func md5(_ bytes: [UInt8]) -> [UInt8] {
  unsafe [UInt8](unsafeUninitializedCapacity: 16) { buffer, count in
    unsafe copenssl_md5(bytes, bytes.count, buffer.baseAddress)
    count = 16
  }
}
