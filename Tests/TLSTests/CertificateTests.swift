import CredmgrCryptography
import CredmgrTLS
import Testing

struct CertificateTests {
  private static func authority(_ name: String = "authority") throws -> CertificateAuthority {
    try CertificateAuthority(name: name, random: SystemRandomSource())
  }

  private static func key() -> Secret { ECPrivateKey.pem(random: SystemRandomSource()) }

  @Test func anAuthorityVouchesForItsOwnCertificatesOnly() throws {
    let (first, second) = (try Self.authority(), try Self.authority())
    let certificate = try first.certificate(of: "client", key: Self.key(), .client)
    #expect(certificate.isIssued(by: first.certificate))
    // It has the same name, and another key.
    #expect(!certificate.isIssued(by: second.certificate))
    #expect(!certificate.isIssued(by: certificate))
    // A client cannot sign certificates.
    let key = Self.key()
    let own = try CertificateAuthority.selfSigned("authority", key: key)
    #expect(!certificate.isIssued(by: own))
    #expect(first.certificate.isIssued(by: first.certificate))
  }

  @Test func timesAndNames() throws {
    let authority = try Self.authority()
    let certificate = try authority.certificate(of: "client", key: Self.key(), .client)
    let other = try authority.certificate(of: "client", key: Self.key(), .client)
    #expect(certificate.subject == other.subject && certificate.thumbprint != other.thumbprint)
    #expect(certificate.subject != authority.certificate.subject)
    // 2025 to 2124
    let times: [Int64] = [1_735_689_599, 1_735_689_600, 4_891_276_800, 4_891_276_801]
    #expect(times.map(certificate.isValid) == [false, true, true, false])
  }

  @Test func textsContainCertificatesInTheirOrder() throws {
    let authority = try Self.authority()
    let certificate = try authority.certificate(of: "client", key: Self.key(), .loopbackServer)
    let text = Self.key().reveal() + certificate.pem + "\n" + authority.certificate.pem
    #expect(Certificate.all(inPEM: text) == [certificate, authority.certificate])
    #expect(Certificate.all(inPEM: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").isEmpty)
    #expect(Certificate(bytes: []) == nil && Certificate(bytes: [0x30, 0x82]) == nil)
  }

  /// A client reads each certificate together with its key.
  @Test func keysOfEachKind() throws {
    let edwards = """
      -----BEGIN PRIVATE KEY-----
      MC4CAQAwBQYDK2VwBCIEID2BUoX35XWCBv/nBaQZYEb98kvqcrDIhg+h0f9RrNCp
      -----END PRIVATE KEY-----

      """
    for key in [Secret(edwards), Self.key()] {
      let certificate = try CertificateAuthority.selfSigned("client", key: key)
      let pair = try ClientCertificate(pem: Secret(key.reveal() + certificate.pem))
      #expect(certificate.isValid(at: pair.beginsAt) && certificate.isValid(at: pair.endsAt))
    }
  }

  /// Random bytes never end the program, and the reply of TLS is an alert.
  @Test func brokenConnections() throws {
    let (authority, key) = (try Self.authority(), Self.key())
    let certificate = try authority.certificate(of: "127.0.0.1", key: key, .loopbackServer)
    #expect(TLSServer(certificate, key: Self.key()) == nil)
    let server = try #require(TLSServer(certificate, key: key))
    for bytes in [Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8), [22, 3, 1, 0, 4, 1, 0, 0, 0]] {
      let session = try #require(server.session())
      #expect(session.receive([]).content == [])
      #expect(session.receive(bytes).content == nil)
      #expect(session.clientCertificate == nil)
    }
  }
}
