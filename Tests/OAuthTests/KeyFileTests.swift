import CredmgrCryptography
@testable import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText
import Testing

@testable import CredmgrOAuth

/// Files with private keys.
struct KeyFileTests {
  /// A key only for this test.
  private static let block = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHvc5atP3XwFZxeZT
    Gn03dRd6n1lQiIeX6vjmpfOdQPihRANCAAT4uhS0hpkyq+01EEKMhCbVeBQJa/B7
    6LqXTmudjPtCF7X6Hxl/+dV9sgQ/dLsJrwZe5CaB4bKyM6BWcYvBajN/
    -----END PRIVATE KEY-----
    """

  private static func values(_ text: String, json: Bool = false) throws -> [String: String] {
    var variable = Variable(name: "key")
    variable.isSecret = true
    return try KeyFile.values(in: text, [KeyFile.Member(variable: variable, path: json ? FieldPath("a.key") : nil)])
  }

  private static func pem(_ label: String, _ body: String = "MIGH") -> String {
    "-----BEGIN \(label)-----\n\(body)\n-----END \(label)-----\n"
  }

  @Test(arguments: ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"]) func aPEMFile(_ label: String) throws {
    let key = Self.pem(label)
    #expect(try Self.values(key) == ["key": key])
    #expect(try Self.values("\u{FEFF}\n" + key.replacing("\n", with: "\r\n")) == ["key": key])
    // Other blocks, and text around them (RFC 7468, 2).
    #expect(try Self.values(Self.pem("EC PARAMETERS") + key) == ["key": key])
    #expect(try Self.values("Bag Attributes\n" + key + Self.pem("CERTIFICATE")) == ["key": key])
    let json = #"{"a":{"key":"\#(key.replacing("\n", with: "\\n"))"}}"#
    #expect(try Self.values(json, json: true) == ["key": key])
  }

  private static let faults: [(String, PasteFault)] = [
    ("", .empty("key file")), (" \n", .empty("key file")), ("hello", .keyFile(.notPEM)), ("{}", .keyFile(.notPEM)),
    ("0\u{82}\u{0}", .keyFile(.notPEM)), ("-----BEGIN PRIVATE KEY-----\nMIGH", .keyFile(.notPEM)),
    (pem("CERTIFICATE"), .keyFile(.noPrivateKey)), (pem("PUBLIC KEY"), .keyFile(.noPrivateKey)),
    (pem("ENCRYPTED PRIVATE KEY"), .keyFile(.encrypted)),
    (pem("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0\n\nMIGH"), .keyFile(.encrypted)),
    (pem("OPENSSH PRIVATE KEY"), .keyFile(.openSSH)),
    (pem("PRIVATE KEY").replacing("\n", with: "\\n"), .keyFile(.escaped)),
    (#"{"key":"\#(pem("PRIVATE KEY").replacing("\n", with: "\\n"))"}"#, .keyFile(.notPEM)),
    (String(repeating: "x", count: 1 << 20), .tooLong("key file", bytes: 65536)),
  ]

  @Test(arguments: faults.indices) func aWrongPEMFile(_ index: Int) {
    #expect(throws: Self.faults[index].1) { try Self.values(Self.faults[index].0) }
  }

  private static let jsonFaults: [(String, PasteFault)] = [
    ("not JSON", .keyFile(.notJSON)), ("[]", .keyFile(.notJSON)), (pem("PRIVATE KEY"), .keyFile(.notJSON)),
    (#"{"a":{"key":"x","key":"y"}}"#, .keyFile(.repeated("a.key"))),
    (#"{"a":{"key":"x"},"a":{}}"#, .keyFile(.repeated("a.key"))),
    ("{}", .keyFile(.missing("a.key"))), (#"{"a":{"key":1}}"#, .keyFile(.missing("a.key"))),
    (#"{"a":{"key":""}}"#, .keyFile(.missing("a.key"))), (#"{"a":{"key":"\u0007"}}"#, .keyFile(.other("a.key"))),
    (#"{"a":{"key":"-----BEGIN CERTIFICATE-----\nM\n-----END CERTIFICATE-----\n"}}"#, .keyFile(.noPrivateKey)),
  ]

  @Test(arguments: jsonFaults.indices) func aWrongJSONFile(_ index: Int) {
    #expect(throws: Self.jsonFaults[index].1) { try Self.values(Self.jsonFaults[index].0, json: true) }
  }

  // MARK: Claims

  private static func request(_ claims: String, _ more: String = "") throws -> String? {
    let client = try PromptTests.client(
      """
      grant: jwt_bearer
      variables: { private_key: { at_login: true, secret: true } }
      key: { file: private_key }
      endpoints: { token: { url: https://provider.example/token, headers: { X-Proof: "{private_key}" } } }
      assertion: { algorithm: ES256, key: "{private_key}", claims: \(claims) }
      \(more)
      """)
    var credential = Credential(grant: .jwtBearer, accessToken: Secret(""), obtainedAt: Fixture.now)
    credential.variables["private_key"] = block
    let request = try client.refreshRequest(credential, nonce: Fixture.nonce)
    // A private key is never sent, whatever the descriptor says.
    #expect(request.fields["X-Proof"] == nil && request.fields["Authorization"] == nil)
    let text = try #require(FormParameters(decoding: request.form)[first: "assertion"])
    return JWTClaims.parse(text).map { $0.encoded }
  }

  /// The output of `openssl pkey -pubout -outform DER | openssl dgst -sha256 -binary | base64`.
  @Test func theFingerprintOfAKey() throws {
    let claims = try #require(try Self.request(#"{ iss: "a.SHA256:{key_fingerprint}", jti: null }"#))
    #expect(claims.contains("a.SHA256:\(Self.fingerprint)"))
  }

  @Test func aMomentInThePast() throws {
    let claims = try #require(try Self.request(#"{ iat: '{now("-60s")}', jti: null, aud: null }"#))
    let now = Fixture.nonce.timestamp.secondsSince1970
    #expect(claims == #"{"iat":\#(now - 60),"exp":\#(now + 300)}"#)
  }

  /// An assertion is for the server that exchanges it.
  @Test(arguments: ["https://honest.example/token", "honest.example", "urn:honest"])
  func aForeignAudience(_ audience: String) {
    #expect(throws: OAuthError.foreignAudience(audience)) { try Self.request("{ aud: \"\(audience)\" }") }
  }

  private static let fingerprint = "pufYpZVpY+cuAPg6emnN5vD2kF3wfQE6KvAdj0B1pYI="
}
