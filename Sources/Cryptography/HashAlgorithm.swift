import COpenSSL

/// A digest of FIPS 180-4.
///
/// SHA-1 is here for OAuth 1.0a (RFC 5849, section 3.4.2), where its use in HMAC is still sound, and for
/// nothing else.
public enum HashAlgorithm: Sendable, CaseIterable {
  /// 20 bytes.
  case sha1
  /// 32 bytes.
  case sha256
  /// 48 bytes.
  case sha384
  /// 64 bytes.
  case sha512

  /// The number of bytes of a digest.
  public var byteCount: Int {
    switch self {
    case .sha1: 20
    case .sha256: 32
    case .sha384: 48
    case .sha512: 64
    }
  }

  /// The digest of the bytes.
  public func digest(_ bytes: [UInt8]) -> [UInt8] {
    unsafe output { unsafe EVP_Digest(bytes, bytes.count, $0, nil, reference, nil) == 1 }
  }

  /// HMAC (RFC 2104) over the message. The key can have any length, also none.
  public func authenticationCode(for message: [UInt8], key: [UInt8]) -> [UInt8] {
    // HMAC(3): a null key with length 0 is an empty key for the function of one call; an empty Swift array
    // may come as a null pointer, and here that means the same.
    unsafe output { unsafe HMAC(reference, key, Int32(key.count), message, message.count, $0, nil) != nil }
  }

  var reference: OpaquePointer? {
    switch self {
    case .sha1: unsafe EVP_sha1()
    case .sha256: unsafe EVP_sha256()
    case .sha384: unsafe EVP_sha384()
    case .sha512: unsafe EVP_sha512()
    }
  }

  /// The calls fail only where OpenSSL cannot allocate or was built without the digest. There is no answer
  /// then that a caller could use, and a wrong one would be worse than the end of the process.
  private func output(_ call: (UnsafeMutablePointer<UInt8>?) -> Bool) -> [UInt8] {
    OpenSSLConfiguration.ignoreWhereStatic()
    return unsafe [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
      precondition(unsafe call(buffer.baseAddress), "the digest is not available")
      count = byteCount
    }
  }
}
