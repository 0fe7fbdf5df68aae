import COpenSSL
import Synchronization

/// An RSA private key (RFC 8017) that signs with RSASSA-PKCS1-v1_5, as OAuth 1.0a's `RSA-SHA1` and JWT's
/// `RS256` do.
public struct RSAPrivateKey: Sendable {
  private let key: PublicKeyHandle

  /// Reads a key in PEM, of PKCS #1 or of PKCS #8, without a passphrase.
  ///
  /// - Throws: `.notAnRSAKey` for anything else.
  public init(pem: Secret) throws(CryptographyError) {
    key = try PublicKeyHandle(pem, of: .privateKey)
  }

  /// RSASSA-PKCS1-v1_5 (RFC 8017, section 8.2) over the digest of the message.
  ///
  /// - Throws: `.cannotSign` if the key is too short for the digest.
  public func signature(
    for message: [UInt8], _ algorithm: HashAlgorithm
  ) throws(CryptographyError) -> [UInt8] {
    guard let signature = key.sign(message, algorithm) else { throw .cannotSign }
    return signature
  }

  /// The public half.
  public var publicKey: RSAPublicKey { RSAPublicKey(key) }
}

/// An RSA public key (RFC 8017).
public struct RSAPublicKey: Sendable {
  private let key: PublicKeyHandle

  /// Reads a key in PEM (`BEGIN PUBLIC KEY`).
  ///
  /// - Throws: `.notAnRSAKey` for anything else.
  public init(pem: String) throws(CryptographyError) {
    key = try PublicKeyHandle(Secret(pem), of: .publicKey)
  }

  fileprivate init(_ key: PublicKeyHandle) { self.key = key }

  /// Whether the signature is that of the private half over the message.
  public func isValid(signature: [UInt8], for message: [UInt8], _ algorithm: HashAlgorithm) -> Bool {
    key.verify(signature, message, algorithm)
  }
}

/// The one owner of an `EVP_PKEY`. OpenSSL erases the private numbers when it frees the key.
@safe private final class PublicKeyHandle: Sendable {
  enum Half { case privateKey, publicKey }

  private let key: Mutex<OpaquePointer>

  init(_ pem: Secret, of half: Half) throws(CryptographyError) {
    OpenSSLConfiguration.ignoreWhereStatic()
    var pointer: OpaquePointer?
    pem.withBytes { bytes in
      unsafe pointer = bytes.withUnsafeBufferPointer { unsafe Self.read($0, half) }
    }
    guard let pointer = unsafe pointer else { throw .notAnRSAKey }
    unsafe key = unsafe Mutex(pointer)
  }

  deinit { unsafe key.withLock { unsafe EVP_PKEY_free($0) } }

  private static func read(_ pem: UnsafeBufferPointer<UInt8>, _ half: Half) -> OpaquePointer? {
    defer { ERR_clear_error() }
    guard let input = unsafe BIO_new_mem_buf(pem.baseAddress, Int32(pem.count)) else { return nil }
    defer { unsafe BIO_free(input) }
    // PEM_read_bio_PrivateKey(3) asks on the terminal unless there is a callback; this one knows no
    // passphrase.
    let key =
      switch half {
      case .privateKey: unsafe PEM_read_bio_PrivateKey(input, nil, { _, _, _, _ in -1 }, nil)
      case .publicKey: unsafe PEM_read_bio_PUBKEY(input, nil, { _, _, _, _ in -1 }, nil)
      }
    guard let key = unsafe key else { return nil }
    guard unsafe EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA else {
      unsafe EVP_PKEY_free(key)
      return nil
    }
    return unsafe key
  }

  func sign(_ message: [UInt8], _ algorithm: HashAlgorithm) -> [UInt8]? {
    unsafe key.withLock { key in
      defer { ERR_clear_error() }
      guard let context = unsafe EVP_MD_CTX_new() else { return nil }
      defer { unsafe EVP_MD_CTX_free(context) }
      guard unsafe EVP_DigestSignInit(context, nil, algorithm.reference, nil, key) == 1 else { return nil }
      var signature = unsafe [UInt8](repeating: 0, count: Int(EVP_PKEY_get_size(key)))
      var count = signature.count
      guard unsafe EVP_DigestSign(context, &signature, &count, message, message.count) == 1
      else { return nil }
      return Array(signature.prefix(count))
    }
  }

  func verify(_ signature: [UInt8], _ message: [UInt8], _ algorithm: HashAlgorithm) -> Bool {
    unsafe key.withLock { key in
      defer { ERR_clear_error() }
      guard let context = unsafe EVP_MD_CTX_new() else { return false }
      defer { unsafe EVP_MD_CTX_free(context) }
      guard unsafe EVP_DigestVerifyInit(context, nil, algorithm.reference, nil, key) == 1
      else { return false }
      return unsafe EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
  }
}
