import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import Testing

@testable import CredmgrOAuth

/// Tests clients with a certificate and tokens that are bound to it (RFC 8705).
struct MutualTLSTests {
  /// Only the marks matter, because TLS reads the content.
  static let bundle = """
    -----BEGIN CERTIFICATE-----
    MIIBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
    -----END CERTIFICATE-----
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgAAAAAAAAAAAAAAAA
    -----END PRIVATE KEY-----
    """

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
}
