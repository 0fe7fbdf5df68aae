import CredmgrCOpenSSL
import Synchronization

/// A key that signs with RSASSA-PKCS1-v1_5 (RFC 8017, 8.2), as in OAuth 1.0a's `RSA-SHA1` and JWT's `RS256`, or with
/// RSASSA-PSS (8.1), as in `PS256`.
package struct RSAPrivateKey: Sendable {
  private let key: KeyHandle

  /// Reads a PEM key in the form of PKCS #1 or PKCS #8 without a passphrase.
  package init(pem: Secret) throws(CryptographyError) { key = try KeyHandle(pem, .rsa) }

  package func signature(for message: [UInt8], _ algorithm: HashAlgorithm) throws(CryptographyError) -> [UInt8] {
    guard let signature = key.sign(message, .rsa(algorithm)) else { throw .cannotSign }
    return signature
  }

  /// Signs with RSASSA-PSS, a salt as long as the hash, and MGF1 with the same hash (RFC 7518, 3.5).
  package func pssSignature(for message: [UInt8], _ algorithm: HashAlgorithm) throws(CryptographyError) -> [UInt8] {
    guard let signature = key.sign(message, .pss(algorithm)) else { throw .cannotSign }
    return signature
  }

  /// The public key as a SubjectPublicKeyInfo (RFC 5280, 4.1).
  package var publicBytes: [UInt8] { key.publicBytes() }

  package func isValid(signature: [UInt8], for message: [UInt8], _ algorithm: HashAlgorithm) -> Bool {
    key.isValid(signature, for: message, .rsa(algorithm))
  }

  package func isValid(pssSignature: [UInt8], for message: [UInt8], _ algorithm: HashAlgorithm) -> Bool {
    key.isValid(pssSignature, for: message, .pss(algorithm))
  }
}

/// A private key on the curve Ed25519 (RFC 8032) that signs like JWT's `EdDSA` (RFC 8037, 3.1).
package struct EdPrivateKey: Sendable {
  private let key: KeyHandle

  /// Reads a PEM key in the form of PKCS #8 (RFC 8410, 7) without a passphrase.
  package init(pem: Secret) throws(CryptographyError) { key = try KeyHandle(pem, .ed25519) }

  /// The public key as a SubjectPublicKeyInfo (RFC 8410, 4).
  package var publicBytes: [UInt8] { key.publicBytes() }

  package func signature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    guard let signature = key.sign(message, .eddsa) else { throw .cannotSign }
    return signature
  }

  package func isValid(signature: [UInt8], for message: [UInt8]) -> Bool {
    key.isValid(signature, for: message, .eddsa)
  }
}

/// The only owner of an `EVP_PKEY`. OpenSSL erases the private numbers when it frees the key.
@safe final class KeyHandle: Sendable {
  enum Kind { case rsa, p256, ed25519 }

  private let key: Mutex<OpaquePointer>
  private let library: COpenSSLSignatures

  init(_ pem: Secret, _ kind: Kind) throws(CryptographyError) {
    var library = COpenSSLSignatures()
    guard unsafe copenssl_signatures(&library) != 0 else { throw .noSignatures }
    self.library = library
    var pointer: OpaquePointer?
    pem.withBytes { bytes in
      unsafe pointer = bytes.withUnsafeBufferPointer { unsafe Self.read($0, kind, from: library) }
    }
    guard let pointer = unsafe pointer else { throw kind.mismatch }
    unsafe key = unsafe Mutex(pointer)
  }

  /// Reads a public key in the form of a SubjectPublicKeyInfo (RFC 5280, 4.1). OpenSSL checks that a point is on its
  /// curve.
  init(publicBytes: [UInt8]) throws(CryptographyError) {
    var library = COpenSSLSignatures()
    guard unsafe copenssl_signatures(&library) != 0 else { throw .noSignatures }
    self.library = library
    defer { library.ERR_clear_error() }
    let pointer = unsafe publicBytes.withUnsafeBufferPointer { buffer in
      var place = buffer.baseAddress
      return unsafe library.d2i_PUBKEY(nil, &place, buffer.count)
    }
    guard let pointer = unsafe pointer else { throw .notAPublicKey }
    unsafe key = unsafe Mutex(pointer)
  }

  deinit { unsafe key.withLock { unsafe library.EVP_PKEY_free($0) } }

  private static func read(
    _ pem: UnsafeBufferPointer<UInt8>, _ kind: Kind, from library: COpenSSLSignatures
  ) -> OpaquePointer? {
    defer { library.ERR_clear_error() }
    guard let input = unsafe library.BIO_new_mem_buf(pem.baseAddress, Int32(pem.count)) else { return nil }
    defer { _ = unsafe library.BIO_free(input) }
    // Without a callback, PEM_read_bio_PrivateKey(3) prompts at the terminal.
    let key = unsafe library.PEM_read_bio_PrivateKey(input, nil, { _, _, _, _ in -1 }, nil)
    guard let key = unsafe key else { return nil }
    guard unsafe isKind(key, kind, library: library) else {
      unsafe library.EVP_PKEY_free(key)
      return nil
    }
    return unsafe key
  }

  private static func isKind(_ key: OpaquePointer, _ kind: Kind, library: COpenSSLSignatures) -> Bool {
    switch kind {
    case .rsa: return unsafe library.EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA
    case .ed25519: return unsafe library.EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519
    case .p256:
      // The size alone does not identify the curve: secp256k1 has 256 bits as well.
      var name = [CChar](repeating: 0, count: 64)
      var count = 0
      guard unsafe library.EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1 else { return false }
      return String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self) == "prime256v1"
    }
  }

  func sign(_ message: [UInt8], _ scheme: SignatureScheme) -> [UInt8]? {
    unsafe key.withLock { key in
      defer { library.ERR_clear_error() }
      guard let context = library.EVP_MD_CTX_new() else { return nil }
      defer { unsafe library.EVP_MD_CTX_free(context) }
      var parameters: OpaquePointer?
      guard unsafe library.EVP_DigestSignInit(context, &parameters, digest(of: scheme), nil, key) == 1,
        unsafe setPadding(of: scheme, in: parameters)
      else { return nil }
      var signature = unsafe [UInt8](repeating: 0, count: Int(library.EVP_PKEY_get_size(key)))
      var count = signature.count
      guard unsafe library.EVP_DigestSign(context, &signature, &count, message, message.count) == 1 else { return nil }
      return Array(signature.prefix(count))
    }
  }

  /// The uncompressed form of the public key (SEC 1, 2.3.3): the byte 4 and both coordinates.
  func publicPoint() -> [UInt8]? {
    unsafe key.withLock { key in
      var point = [UInt8](repeating: 0, count: 65)
      var count = 0
      let found = unsafe library.EVP_PKEY_get_octet_string_param(
        key, OSSL_PKEY_PARAM_PUB_KEY, &point, point.count, &count)
      return found == 1 && count == point.count && point[0] == 4 ? point : nil
    }
  }

  func publicBytes() -> [UInt8] {
    unsafe key.withLock { key in
      defer { library.ERR_clear_error() }
      let count = unsafe library.i2d_PUBKEY(key, nil)
      guard count > 0 else { return [] }
      return unsafe [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, written in
        var place = buffer.baseAddress
        written = max(Int(unsafe library.i2d_PUBKEY(key, &place)), 0)
      }
    }
  }

  func isValid(_ signature: [UInt8], for message: [UInt8], _ scheme: SignatureScheme) -> Bool {
    unsafe key.withLock { key in
      defer { library.ERR_clear_error() }
      guard let context = library.EVP_MD_CTX_new() else { return false }
      defer { unsafe library.EVP_MD_CTX_free(context) }
      var parameters: OpaquePointer?
      guard unsafe library.EVP_DigestVerifyInit(context, &parameters, digest(of: scheme), nil, key) == 1,
        unsafe setPadding(of: scheme, in: parameters)
      else { return false }
      return unsafe library.EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
  }

  /// Chooses RSASSA-PSS with a salt as long as the hash. MGF1 has the hash of the signature by default.
  private func setPadding(of scheme: SignatureScheme, in parameters: OpaquePointer?) -> Bool {
    guard case .pss = scheme else { return true }
    return unsafe library.EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING) > 0
      && library.EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST) > 0
  }

  /// Returns OpenSSL's reference to the hash; `nil` if the scheme has its own.
  private func digest(of scheme: SignatureScheme) -> OpaquePointer? {
    switch scheme {
    case .eddsa: nil
    case .ecdsa: library.EVP_sha256()
    case .rsa(let algorithm), .pss(let algorithm):
      switch algorithm {
      case .sha1: library.EVP_sha1()
      case .sha256: library.EVP_sha256()
      case .sha384: library.EVP_sha384()
      case .sha512: library.EVP_sha512()
      }
    }
  }
}

extension KeyHandle.Kind {
  fileprivate var mismatch: CryptographyError {
    switch self {
    case .rsa: .notAnRSAKey
    case .p256: .notAnECKey
    case .ed25519: .notAnEdKey
    }
  }
}
