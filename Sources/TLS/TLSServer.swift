import CredmgrCTLS
import CredmgrCryptography
import CredmgrHTTP

/// The TLS of a server (RFC 8446, RFC 5246). It asks each client for a certificate and accepts any, or none: the
/// application decides, so that a client learns the reason of a refusal. It uses no socket.
@safe package final class TLSServer {
  private let context: OpaquePointer
  private let library: credmgr_tls

  /// `nil` if this machine has no OpenSSL, or if the key on P-256 does not belong to the certificate.
  package init?(_ certificate: Certificate, key: Secret) {
    guard let library = Certificate.library, let context = unsafe library.SSL_CTX_new(library.TLS_server_method())
    else { return nil }
    self.library = library
    unsafe self.context = unsafe context
    let lines = key.reveal().split(separator: "\n")
    let encoded = Base64.decode(lines.filter { !$0.hasPrefix("-") }.joined()) ?? []
    defer { library.ERR_clear_error() }
    unsafe library.SSL_CTX_set_verify(context, SSL_VERIFY_PEER) { _, _ in 1 }
    // Each connection presents the certificate, because no session is resumed.
    _ = unsafe library.SSL_CTX_set_options(context, SSL_NO_TICKETS)
    guard unsafe library.SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil) == 1,
      unsafe library.SSL_CTX_set_num_tickets(context, 0) == 1,
      unsafe library.SSL_CTX_use_certificate_ASN1(context, Int32(certificate.bytes.count), certificate.bytes) == 1,
      unsafe library.SSL_CTX_use_PrivateKey_ASN1(EVP_PKEY_EC, context, encoded, encoded.count) == 1
    else { return nil }
    _ = unsafe library.SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
  }

  deinit { unsafe library.SSL_CTX_free(context) }

  /// Returns a new connection; `nil` without memory.
  package func session() -> TLSSession? { unsafe TLSSession(context, library) }
}

/// One connection to a TLS server.
@safe package final class TLSSession: LoopbackEncryption {
  private let session: OpaquePointer
  // The encrypted bytes in both directions. The session owns these.
  private let input: OpaquePointer
  private let output: OpaquePointer
  private let library: credmgr_tls

  fileprivate init?(_ context: OpaquePointer, _ library: credmgr_tls) {
    guard let session = unsafe library.SSL_new(context) else { return nil }
    guard let input = unsafe library.BIO_new(library.BIO_s_mem()) else {
      unsafe library.SSL_free(session)
      return nil
    }
    guard let output = unsafe library.BIO_new(library.BIO_s_mem()) else {
      _ = unsafe library.BIO_free(input)
      unsafe library.SSL_free(session)
      return nil
    }
    unsafe library.SSL_set_bio(session, input, output)
    unsafe library.SSL_set_accept_state(session)
    unsafe (self.session, self.input, self.output, self.library) = unsafe (session, input, output, library)
  }

  deinit { unsafe library.SSL_free(session) }

  package func receive(_ bytes: [UInt8]) -> (content: [UInt8]?, reply: [UInt8]) {
    library.ERR_clear_error()
    _ = unsafe library.BIO_write(input, bytes, Int32(bytes.count))
    var content: [UInt8] = []
    var count: Int32 = 1
    while count > 0 {
      unsafe append(to: &content) { place, capacity in
        count = unsafe library.SSL_read(session, place, capacity)
        return count
      }
    }
    let isOpen = unsafe library.SSL_get_error(session, count) == SSL_ERROR_WANT_READ
    return (isOpen || !content.isEmpty ? content : nil, drain())
  }

  package func seal(_ bytes: [UInt8]) -> [UInt8] {
    library.ERR_clear_error()
    if !bytes.isEmpty { _ = unsafe library.SSL_write(session, bytes, Int32(bytes.count)) }
    _ = unsafe library.SSL_shutdown(session)
    return drain()
  }

  package var clientCertificate: [UInt8]? {
    guard let certificate = unsafe library.SSL_get1_peer_certificate(session) else { return nil }
    defer { unsafe library.X509_free(certificate) }
    return unsafe Certificate.encoded { unsafe library.i2d_X509(certificate, $0) }
  }

  private func drain() -> [UInt8] {
    var bytes: [UInt8] = []
    while unsafe append(to: &bytes, { unsafe library.BIO_read(output, $0, $1) }) > 0 {}
    return bytes
  }

  /// Appends what a function of OpenSSL reads, and returns its count, which is at most 0 if it reads nothing.
  @discardableResult private func append(
    to bytes: inout [UInt8], _ read: (UnsafeMutableRawPointer?, Int32) -> Int32
  ) -> Int32 {
    var count: Int32 = 0
    bytes += unsafe [UInt8](unsafeUninitializedCapacity: 16 * 1024) { buffer, written in
      count = unsafe read(UnsafeMutableRawPointer(buffer.baseAddress), Int32(buffer.count))
      written = max(Int(count), 0)
    }
    return count
  }
}
