import COpenSSL
import Synchronization

/// The one owner of an `EVP_PKEY`. OpenSSL erases the private numbers when it frees the key.
@safe final class PublicKeyHandle: Sendable {
  enum Half { case privateKey, publicKey }
  enum Kind { case rsa, p256 }

  private let key: Mutex<OpaquePointer>
  private let library: COpenSSLSignatures

  init(_ pem: Secret, of half: Half, type: Kind) throws(CryptographyError) {
    var library = COpenSSLSignatures()
    guard unsafe copenssl_signatures(&library) != 0 else { throw .noSignatures }
    self.library = library
    var pointer: OpaquePointer?
    pem.withBytes { bytes in
      unsafe pointer = bytes.withUnsafeBufferPointer { unsafe Self.read($0, half, type, library) }
    }
    guard let pointer = unsafe pointer else { throw type == .rsa ? .notAnRSAKey : .notAnECKey }
    unsafe key = unsafe Mutex(pointer)
  }

  deinit { unsafe key.withLock { unsafe library.EVP_PKEY_free($0) } }

  private static func read(
    _ pem: UnsafeBufferPointer<UInt8>, _ half: Half, _ type: Kind, _ library: COpenSSLSignatures
  ) -> OpaquePointer? {
    defer { library.ERR_clear_error() }
    guard let input = unsafe library.BIO_new_mem_buf(pem.baseAddress, Int32(pem.count)) else { return nil }
    defer { _ = unsafe library.BIO_free(input) }
    // PEM_read_bio_PrivateKey(3) asks on the terminal unless there is a callback; this one knows no
    // passphrase.
    let key =
      switch half {
      case .privateKey: unsafe library.PEM_read_bio_PrivateKey(input, nil, { _, _, _, _ in -1 }, nil)
      case .publicKey: unsafe library.PEM_read_bio_PUBKEY(input, nil, { _, _, _, _ in -1 }, nil)
      }
    guard let key = unsafe key else { return nil }
    guard unsafe isKind(key, type, library) else {
      unsafe library.EVP_PKEY_free(key)
      return nil
    }
    return unsafe key
  }

  private static func isKind(_ key: OpaquePointer, _ type: Kind, _ library: COpenSSLSignatures) -> Bool {
    switch type {
    case .rsa: return unsafe library.EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA
    case .p256:
      // 256 bits say less than the name of the curve: secp256k1 has as many.
      var name = [CChar](repeating: 0, count: 64)
      var count = 0
      guard unsafe library.EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1 else { return false }
      return String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self) == "prime256v1"
    }
  }

  func sign(_ message: [UInt8], _ algorithm: HashAlgorithm) -> [UInt8]? {
    unsafe key.withLock { key in
      defer { library.ERR_clear_error() }
      guard let context = library.EVP_MD_CTX_new() else { return nil }
      defer { unsafe library.EVP_MD_CTX_free(context) }
      guard unsafe library.EVP_DigestSignInit(context, nil, reference(algorithm), nil, key) == 1 else { return nil }
      var signature = unsafe [UInt8](repeating: 0, count: Int(library.EVP_PKEY_get_size(key)))
      var count = signature.count
      guard unsafe library.EVP_DigestSign(context, &signature, &count, message, message.count) == 1 else { return nil }
      return Array(signature.prefix(count))
    }
  }

  func verify(_ signature: [UInt8], _ message: [UInt8], _ algorithm: HashAlgorithm) -> Bool {
    unsafe key.withLock { key in
      defer { library.ERR_clear_error() }
      guard let context = library.EVP_MD_CTX_new() else { return false }
      defer { unsafe library.EVP_MD_CTX_free(context) }
      guard unsafe library.EVP_DigestVerifyInit(context, nil, reference(algorithm), nil, key) == 1 else { return false }
      return unsafe library.EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
  }

  private func reference(_ algorithm: HashAlgorithm) -> OpaquePointer? {
    switch algorithm {
    case .sha1: library.EVP_sha1()
    case .sha256: library.EVP_sha256()
    case .sha384: library.EVP_sha384()
    case .sha512: library.EVP_sha512()
    }
  }
}
