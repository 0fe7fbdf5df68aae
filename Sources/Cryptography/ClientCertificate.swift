import CredmgrCOpenSSL

/// The certificate of a TLS client and its private key (RFC 8446, 4.4.2), together as PEM.
package struct ClientCertificate: Sendable, Equatable {
  /// The first and the last second of its validity, counted from 1970.
  package let beginsAt: Int64
  package let endsAt: Int64

  /// Reads the first certificate and the first private key, which has no passphrase. Throws unless they belong
  /// together.
  package init(pem: Secret) throws(CryptographyError) {
    var library = COpenSSLSignatures()
    guard unsafe copenssl_signatures(&library) != 0 else { throw .noSignatures }
    defer { library.ERR_clear_error() }
    var certificate: OpaquePointer?
    var key: OpaquePointer?
    defer {
      unsafe library.X509_free(certificate)
      unsafe library.EVP_PKEY_free(key)
    }
    // Without a callback, OpenSSL prompts for a passphrase at the terminal.
    pem.withBytes { bytes in
      unsafe bytes.withUnsafeBufferPointer { buffer in
        unsafe certificate = Self.read(buffer, from: library) {
          unsafe library.PEM_read_bio_X509($0, nil, { _, _, _, _ in -1 }, nil)
        }
        unsafe key = Self.read(buffer, from: library) {
          unsafe library.PEM_read_bio_PrivateKey($0, nil, { _, _, _, _ in -1 }, nil)
        }
      }
    }
    guard let certificate = unsafe certificate else { throw .notACertificate }
    guard let key = unsafe key else { throw .notAPrivateKey }
    guard unsafe library.X509_check_private_key(certificate, key) == 1 else { throw .otherCertificate }
    guard let begin = unsafe Self.seconds(library.X509_get0_notBefore(certificate), library),
      let end = unsafe Self.seconds(library.X509_get0_notAfter(certificate), library)
    else { throw .notACertificate }
    (beginsAt, endsAt) = (begin, end)
  }

  private static func read(
    _ pem: UnsafeBufferPointer<UInt8>, from library: COpenSSLSignatures, _ parse: (OpaquePointer) -> OpaquePointer?
  ) -> OpaquePointer? {
    guard let input = unsafe library.BIO_new_mem_buf(pem.baseAddress, Int32(pem.count)) else { return nil }
    defer { _ = unsafe library.BIO_free(input) }
    return unsafe parse(input)
  }

  private static func seconds(_ time: UnsafePointer<ASN1_TIME>?, _ library: COpenSSLSignatures) -> Int64? {
    guard let start = library.ASN1_TIME_set(nil, 0) else { return nil }
    defer { unsafe library.ASN1_TIME_free(start) }
    var (days, seconds): (Int32, Int32) = (0, 0)
    guard unsafe library.ASN1_TIME_diff(&days, &seconds, start, time) == 1 else { return nil }
    return Int64(days) * 86_400 + Int64(seconds)
  }
}

/// A client secret with a private key beside it, such as that of a certificate (RFC 8705, 3): the first line is the
/// secret, and the others are PEM.
extension Secret {
  package var isBesideKey: Bool { placeOfKey != nil }

  /// The part that the provider knows too; the whole unless a private key is beside it.
  package var shared: Secret {
    guard let placeOfKey else { return self }
    let line = self[0..<placeOfKey - 1].revealBytes()
    return Secret(bytes: Array(line.last == UInt8(ascii: "\r") ? line.dropLast() : line[...]))
  }

  /// The PEM; the whole without a secret before it.
  package var pem: Secret { placeOfKey.map { self[$0..<count] } ?? self }

  private var placeOfKey: Int? {
    let (bytes, mark) = (revealBytes(), "-----BEGIN ".utf8)
    guard !bytes.starts(with: mark), let end = bytes.firstIndex(of: UInt8(ascii: "\n")), end > 0,
      bytes[(end + 1)...].starts(with: mark)
    else { return nil }
    return end + 1
  }
}
