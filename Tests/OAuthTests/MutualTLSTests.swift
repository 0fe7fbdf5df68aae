import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText
import Testing

@testable import CredmgrOAuth

/// Tests clients with a certificate and tokens that are bound to it (RFC 8705).
struct MutualTLSTests {
  /// A certificate of the years 2000 to 2200 with its private key.
  static let bundle = certificate + "\n" + key

  private static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBDzCBt6ADAgECAgEBMAoGCCqGSM49BAMCMBExDzANBgNVBAMMBmNsaWVudDAg
    Fw0wMDAxMDEwMDAwMDBaGA8yMjAwMDEwMTAwMDAwMFowETEPMA0GA1UEAwwGY2xp
    ZW50MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEwQxs8rRLM9lNfqn8mZUhtbuD
    sTtXESXGgsK6RAOT05qzTCDFxO68+/mY6+abX/qfUYVngcAVuC3PnopIgKDi5TAK
    BggqhkjOPQQDAgNHADBEAiB8HtMIFrqdc79J1vgryDMkMaIppYUT/h8ruoDgdLBt
    CwIgYWXzXu99euE2W8cMmnXf8ds/Rt5UZElcY5qljxfUg6w=
    -----END CERTIFICATE-----
    """

  /// For the same key, but only until 2010.
  private static let oldCertificate = """
    -----BEGIN CERTIFICATE-----
    MIIBDTCBtaADAgECAgEBMAoGCCqGSM49BAMCMBExDzANBgNVBAMMBmNsaWVudDAe
    Fw0wMDAxMDEwMDAwMDBaFw0xMDAxMDEwMDAwMDBaMBExDzANBgNVBAMMBmNsaWVu
    dDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABMEMbPK0SzPZTX6p/JmVIbW7g7E7
    VxElxoLCukQDk9Oas0wgxcTuvPv5mOvmm1/6n1GFZ4HAFbgtz56KSICg4uUwCgYI
    KoZIzj0EAwIDRwAwRAIgBlx1mo4F9CC4YQZAb3J4LME6KkQjyBDSCrEnYmY1j4EC
    IAN0Q2EwDRzi1wmedqVTQv7dlz3UnHKuROo8uqiiq+jr
    -----END CERTIFICATE-----
    """

  private static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgzSS2IqWFXOus35N1
    DRH43ab7xOY8Jw4C5PKmoZNT/bWhRANCAATBDGzytEsz2U1+qfyZlSG1u4OxO1cR
    JcaCwrpEA5PTmrNMIMXE7rz7+Zjr5ptf+p9RhWeBwBW4Lc+eikiAoOLl
    -----END PRIVATE KEY-----
    """

  private static let otherKey = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgh2nqu+gtPvXBLQ7M
    h1I1fWd/kU9K0MeTiw7DuKNcI9WhRANCAAQnvskqgV4CTugze47fnAiTJZhW/1DW
    wCM7EUNMFdBofcopFLKmO2upyx8leVsfp+UrKHcm/2VbSiaG9zsyo6uG
    -----END PRIVATE KEY-----
    """

  /// The same key with a passphrase, in the forms of RFC 5958 and RFC 1421.
  private static let encryptedKeys = [
    """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgItBkUUIeC2AICCAAw
    DAYIKoZIhvcNAgkFADAdBglghkgBZQMEAQIEELWK9ib+g9rr1Q9HzFfk+cEEgZCO
    i1IplwxwU24HhVA5+/7oIkr046Pr09bjbxzjCz/2RhD+4uyAUhcOidaJIpULw0sZ
    CbwAcBL/5t5UEVbuXsmRHfByGRBBu98Rs8iAhBIJlcfcLIIVzcktUKdwgupUyCr3
    dC+1nMvfaRZWeq2k/e587Bavk4AtRvhk3Ddfb8JeBeYAZLUmEehiBhzZm2v9bG8=
    -----END ENCRYPTED PRIVATE KEY-----
    """,
    """
    -----BEGIN EC PRIVATE KEY-----
    Proc-Type: 4,ENCRYPTED
    DEK-Info: AES-128-CBC,9362E66393CE74C3B0F2B9BFCA066B99

    VMR1yW2DlTkkEUZdEyVSoBqIc0zLDndU1nm/2UqPCs+0EtF8FYu5LOUImtNy7kIY
    gw2wnuijllExMRwPsZ3pOxTIh0u97OiMSTuFt2snMoO2+gkbzs4jS+Dnq1/DJGe7
    05B21CPhJXr7dto/LVyDE/2G23oPv4z5XfGLtHLTaUw=
    -----END EC PRIVATE KEY-----
    """,
  ]

  /// The example of RFC 8705, appendix A, whose private key is not public.
  @Test func theCertificateOfTheRFC() throws {
    let lines = [
      "MIIBBjCBrAIBAjAKBggqhkjOPQQDAjAPMQ0wCwYDVQQDDARtdGxzMB4XDTE4MTAx",
      "ODEyMzcwOVoXDTIyMDUwMjEyMzcwOVowDzENMAsGA1UEAwwEbXRsczBZMBMGByqG",
      "SM49AgEGCCqGSM49AwEHA0IABNcnyxwqV6hY8QnhxxzFQ03C7HKW9OylMbnQZjjJ",
      "/Au08/coZwxS7LfA4vOLS9WuneIXhbGGWvsDSb0tH6IxLm8wCgYIKoZIzj0EAwID",
      "SQAwRgIhAP0RC1E+vwJD/D1AGHGzuri+hlV/PpQEKTWUVeORWz83AiEA5x2eXZOV",
      "bUlJSGQgjwD5vaUaKlLR50Q2DmFfQj1L+SY=",
    ]
    let bytes = try #require(Base64.decode(lines.joined()))
    // 3.1: what a server compares with the certificate of a connection (`x5t#S256`).
    let hash = HashAlgorithm.sha256.digest(bytes)
    #expect(Base64.encodeURL(hash) == "A4DtL2JmUMhAsvJj5tKyn64SqzmuXbMrJa0n761y5v0")
    // 2.2.2: the key of the certificate, as a server registers it.
    let members: JSONValue = [
      "kty": "EC", "crv": "P-256", "x": "1yfLHCpXqFjxCeHHHMVDTcLscpb07KUxudBmOMn8C7Q",
      "y": "8_coZwxS7LfA4vOLS9WuneIXhbGGWvsDSb0tH6IxLm8", "x5c": [.string(lines.joined())],
    ]
    let keys = try #require(KeySet(["keys": [members]]))
    guard case .p256(let x, let y) = try keys.key(named: nil, for: .es256) else { throw JWTFault.keyUnusable }
    #expect(bytes.firstRange(of: x + y) != nil)
    let pem = (["-----BEGIN CERTIFICATE-----"] + lines + ["-----END CERTIFICATE-----"]).joined(separator: "\n")
    for (secret, fault) in [(pem, CertificateFault.noKey), (pem + "\n" + Self.key, .otherKey)] {
      let client = try Self.client("client: { authentication: self_signed_tls_client_auth }", secret: secret)
      #expect(throws: OAuthError.clientCertificate(fault)) { try client.checkSecret() }
    }
  }

  private static func client(_ more: String, secret: String? = bundle) throws -> Client {
    try Fixture.client(more + "\nhosts: [api.example]", grant: "client_credentials", secret: secret)
  }

  @Test(arguments: ["tls_client_auth", "self_signed_tls_client_auth"])
  func theCertificateAuthenticates(_ method: String) throws {
    let client = try Self.client("client: { authentication: \(method) }")
    let request = try client.clientCredentialsRequest(scope: [], nonce: Fixture.nonce)
    #expect(request.clientCertificate == Array(Self.bundle.utf8))
    #expect(FormParameters(decoding: request.form).names == ["grant_type", "client_id"])
    #expect(request.fields["Authorization"] == nil)
    #expect(!"\(request)".contains("PRIVATE"))
    // Authentication alone does not bind the token.
    let credential = try client.outcome(
      .json(#"{"access_token": "t", "token_type": "Bearer"}"#), .clientCredentials, grant: .clientCredentials,
      scope: [], now: Fixture.now
    ).issued().credential
    #expect(!credential.isBound)
    let uri = try URI(parsing: "https://api.example/")
    let asked = try client.presenting(credential, on: HTTPRequest(method: "GET", uri: uri), nonce: Fixture.nonce)
    #expect(asked.clientCertificate == nil)
  }

  @Test(arguments: [nil, "", "secret", ECPrivateKey.pem(random: KnownRandom()).reveal()])
  func aCertificateIsNeeded(_ secret: String?) throws {
    for more in ["client: { authentication: tls_client_auth }", "token_binding: mutual_tls"] {
      let client = try Self.client(more, secret: secret)
      #expect(throws: (any Error).self) { try client.clientCredentialsRequest(scope: [], nonce: Fixture.nonce) }
    }
  }

  @Test func requestsCarryTheCertificate() throws {
    let client = try Self.client("token_binding: mutual_tls\nclient: { authentication: tls_client_auth }")
    let credential = try client.outcome(
      .json(#"{"access_token": "t", "token_type": "Bearer"}"#), .clientCredentials, grant: .clientCredentials,
      scope: [], now: Fixture.now
    ).issued().credential
    #expect(credential.isCertificateBound && credential.isBound)
    #expect(try Credential(decoding: credential.encoded) == credential)
    #expect(try client.refreshRequest(credential, nonce: Fixture.nonce).clientCertificate != nil)
    let uri = try URI(parsing: "https://api.example/")
    let request = try client.presenting(credential, on: HTTPRequest(method: "GET", uri: uri), nonce: Fixture.nonce)
    #expect(request.fields["Authorization"] == "Bearer t")
    #expect(request.clientCertificate == Array(Self.bundle.utf8))
    #expect(throws: OAuthError.foreignHost("evil.example")) {
      let other = HTTPRequest(method: "GET", uri: try URI(parsing: "https://evil.example/"))
      return try client.presenting(credential, on: other, nonce: Fixture.nonce)
    }
    // The certificate binds the token also if the client authenticates in another way.
    let other = try Self.client("token_binding: mutual_tls\nclient: { authentication: none }")
    #expect(try other.clientCredentialsRequest(scope: [], nonce: Fixture.nonce).clientCertificate != nil)
    // An account from before the binding sends no certificate to the API.
    let old = try client.presenting(
      Fixture.credential(), on: HTTPRequest(method: "GET", uri: uri), nonce: Fixture.nonce)
    #expect(old.clientCertificate == nil)
  }

  /// The certificate binds the token, and a secret authenticates the client (3).
  @Test(arguments: ["", "client_secret_post", "client_secret_jwt"])
  func aSecretBesideTheCertificate(_ method: String) throws {
    let method = method.isEmpty ? "" : "client: { authentication: \(method) }"
    let bound = method + "\ntoken_binding: mutual_tls"
    let client = try Self.client(bound, secret: "pass word\n" + Self.bundle)
    try client.checkSecret()
    let request = try client.clientCredentialsRequest(scope: [], nonce: Fixture.nonce)
    #expect(request.clientCertificate == Array(Self.bundle.utf8))
    let plain = try Self.client(method, secret: "pass word")
    #expect(try request.wire == plain.clientCredentialsRequest(scope: [], nonce: Fixture.nonce).wire)
    #expect(client.values()("client_secret") == "pass word")
    #expect(throws: OAuthError.clientSecretBesideCertificateMissing) { try Self.client(bound).checkSecret() }
    #expect(throws: OAuthError.clientCertificateMissing) { try Self.client(bound, secret: "pass word").checkSecret() }
  }

  @Test(arguments: [
    ("s3cret\n", "s3cret"), ("s3cret\r\n", "s3cret"), ("", nil), ("\n", nil), ("Bag Attributes\n  id: 1\n", nil),
  ]) func theFirstLineIsTheSecret(_ beginning: String, _ line: String?) {
    let secret = Secret(beginning + Self.bundle)
    #expect(secret.isBesideKey == (line != nil))
    #expect(secret.shared == line.map { Secret($0) } ?? secret)
    #expect(secret.pem == (line == nil ? secret : Secret(Self.bundle)))
  }

  @Test func onlyACertificateWithItsKeyIsUsed() throws {
    let openSSH = Self.key.replacing(" PRIVATE", with: " OPENSSH PRIVATE")
    let broken = Self.certificate.replacing("MIIB", with: "AAAA")
    let faults: [(String, OAuthError)] =
      Self.encryptedKeys.map { (Self.certificate + "\n" + $0, .clientKeyEncrypted) } + [
        (Self.otherKey + "\n" + Self.certificate, .clientCertificate(.otherKey)),
        (Self.certificate + "\n" + Self.certificate, .clientCertificate(.noKey)),
        ("secret\n" + Self.certificate, .clientCertificate(.noKey)),
        (openSSH + "\n" + Self.certificate, .clientKeyOpenSSH),
        (Self.key + "\n" + broken, .clientCertificate(.unreadable)),
        (Self.key, .clientCertificateMissing), ("secret", .clientCertificateMissing),
      ]
    for (secret, fault) in faults {
      let client = try Self.client("client: { authentication: self_signed_tls_client_auth }", secret: secret)
      #expect(throws: fault) { try client.checkSecret() }
      #expect(throws: fault) { try client.clientCredentialsRequest(scope: [], nonce: Fixture.nonce) }
    }
    #expect(throws: Never.self) { try Self.client("", secret: "secret").checkSecret() }
  }

  @Test func theDatesOfTheCertificateAreKnown() throws {
    let more = "client: { authentication: self_signed_tls_client_auth }"
    let (end, begin) = (Moment("2010-01-01T00:00:00Z"), Moment("2000-01-01T00:00:00Z"))
    let old = try Self.client(more, secret: Self.key + "\n" + Self.oldCertificate)
    #expect(try old.certificateFault(at: Fixture.now) == .expired(#require(end)))
    #expect(old.certificateFault(at: 1_000_000_000) == nil)
    #expect(try old.certificateFault(at: 900_000_000) == .notYetValid(#require(begin)))
    // Some servers accept a certificate that has expired.
    #expect(try old.clientCredentialsRequest(scope: [], nonce: Fixture.nonce).clientCertificate != nil)
    #expect(try Self.client(more).certificateFault(at: Fixture.now) == nil)
  }
}
