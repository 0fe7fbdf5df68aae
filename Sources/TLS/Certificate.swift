import CredmgrCTLS
import CredmgrCryptography
import CredmgrText

/// A certificate (RFC 5280). Two certificates with the same bytes are equal.
package struct Certificate: Sendable, Equatable {
  package let bytes: [UInt8]  // DER
  package let subject: [UInt8]  // The subject's name, as DER.

  /// `nil` if the bytes are not a certificate, or if this machine has no OpenSSL.
  package init?(bytes: [UInt8]) {
    let subject = unsafe Self.reading(bytes) { library, certificate in
      let name = unsafe library.X509_get_subject_name(certificate)
      return unsafe Self.encoded { unsafe library.i2d_X509_NAME(name, $0) }
    }
    guard let subject else { return nil }
    (self.bytes, self.subject) = (bytes, subject)
  }

  /// Returns the certificates of a PEM text in their order; skips everything else.
  package static func all(inPEM text: String) -> [Certificate] {
    text.pieces(separatedBy: beginning).dropFirst().compactMap { piece in
      let content = piece.prefix { $0 != "-" }.filter { !$0.isWhitespace }
      return Base64.decode(content).flatMap { Certificate(bytes: $0) }
    }
  }

  package var pem: String {
    let text = Array(Base64.encode(bytes))
    let lines = stride(from: 0, to: text.count, by: 64).map { String(text[$0..<min($0 + 64, text.count)]) }
    return ([Self.beginning] + lines + ["-----END CERTIFICATE-----", ""]).joined(separator: "\n")
  }

  private static let beginning = "-----BEGIN CERTIFICATE-----"

  /// The hash to which tokens are bound, `x5t#S256` (RFC 8705, 3.1).
  package var thumbprint: String { Base64.encodeURL(HashAlgorithm.sha256.digest(bytes)) }

  package func isValid(at secondsSince1970: Int64) -> Bool {
    unsafe Self.reading(bytes) { library, certificate in
      let begin = unsafe library.ASN1_TIME_cmp_time_t(
        library.X509_get0_notBefore(certificate), time_t(secondsSince1970))
      let end = unsafe library.ASN1_TIME_cmp_time_t(library.X509_get0_notAfter(certificate), time_t(secondsSince1970))
      return (-1...0).contains(begin) && (0...1).contains(end)
    } ?? false
  }

  /// Whether the issuer may sign certificates, has the name that this certificate gives, and signed it.
  package func isIssued(by issuer: Certificate) -> Bool {
    let isIssued = unsafe Self.reading(bytes) { library, certificate in
      unsafe Self.reading(issuer.bytes) { library, issuer in
        unsafe library.X509_check_issued(issuer, certificate) == X509_V_OK
          && library.X509_verify(certificate, library.X509_get0_pubkey(issuer)) == 1
      }
    }
    return isIssued == .some(true)
  }

  static let library: credmgr_tls? = {
    var library = credmgr_tls()
    return unsafe credmgr_tls_load(&library) == 0 ? nil : library
  }()

  private static func reading<Result>(
    _ bytes: [UInt8], _ body: (credmgr_tls, OpaquePointer) -> Result?
  ) -> Result? {
    guard let library else { return nil }
    defer { library.ERR_clear_error() }
    let certificate = unsafe bytes.withUnsafeBufferPointer { buffer in
      var place = buffer.baseAddress
      return unsafe library.d2i_X509(nil, &place, buffer.count)
    }
    guard let certificate = unsafe certificate else { return nil }
    defer { unsafe library.X509_free(certificate) }
    return unsafe body(library, certificate)
  }

  /// Returns what a function of OpenSSL writes: it returns the count, and writes if it gets a place.
  static func encoded(
    _ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
  ) -> [UInt8]? {
    let count = write(nil)
    guard count > 0 else { return nil }
    return unsafe [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, written in
      var place = buffer.baseAddress
      written = max(Int(unsafe write(&place)), 0)
    }
  }
}
