import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText
import Testing

@testable import CredmgrCredentialManager

/// Logins with a private key, and with values that the provider exchanges for a token.
struct ServiceAccountTests {
  /// A key only for this test.
  static let privateKey = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHvc5atP3XwFZxeZT
    Gn03dRd6n1lQiIeX6vjmpfOdQPihRANCAAT4uhS0hpkyq+01EEKMhCbVeBQJa/B7
    6LqXTmudjPtCF7X6Hxl/+dV9sgQ/dLsJrwZe5CaB4bKyM6BWcYvBajN/
    -----END PRIVATE KEY-----
    """

  static let text = """
    grant: jwt_bearer
    variables:
      type: { at_login: true, choices: [service_account] }
      email: { at_login: true }
      private_key: { at_login: true, secret: true }
    key: { file: { type: type, email: client_email, private_key: private_key } }
    endpoints: { token: https://provider.example/token }
    assertion: { algorithm: ES256, key: "{private_key}", claims: { iss: "{email}", scope: "{scope}" } }
    scope: [read]
    account: email
    hosts: [api.provider.example]
    """

  /// Without the leg `token`, the JWT itself is the token.
  static let own = """
    grant: jwt_bearer
    variables: { issuer: { at_login: true }, private_key: { at_login: true, secret: true } }
    key: { file: private_key }
    endpoints: { identity: https://api.provider.example/me }
    assertion: { algorithm: ES256, key: "{private_key}", claims: { iss: "{issuer}", aud: provider-v1 }, lifetime: 15m }
    hosts: [api.provider.example]
    """

  static let session = """
    grant: session
    variables: { user: { at_login: true }, password: { at_login: true, secret: true } }
    endpoints:
      token:
        url: https://provider.example/login
        send: json
        parameters: { user: "{user}", password: "{password}" }
    account: user
    hosts: [api.provider.example]
    """

  static func keyFile(_ more: String = "", key: String = privateKey) -> String {
    let key = JSONValue.string(key + "\n").encoded
    return #"{"type":"service_account","client_email":"robot@example.org","private_key":\#(key)\#(more)}"#
  }

  static func token(_ text: String, for seconds: Int? = 3600) -> HTTPResponse {
    .json(#"{"access_token":"\#(text)"\#(seconds.map { ",\"expires_in\":\($0)" } ?? "")}"#)
  }

  /// Returns the claims of an assertion that the key signed; `nil` for any other text.
  static func claims(_ text: String) throws -> JSONValue? {
    let parts = text.split(separator: ".").map(String.init)
    guard parts.count == 3, let signature = Base64.decodeURL(parts[2]), let claims = Base64.decodeURL(parts[1]),
      try ECPrivateKey(pem: Secret(privateKey)).isValid(
        signature: signature, for: Array((parts[0] + "." + parts[1]).utf8))
    else { return nil }
    return try JSONValue.parse(claims)
  }

  static func form(_ request: HTTPRequest) -> FormParameters {
    FormParameters(decoding: String(decoding: request.body, as: UTF8.self))
  }

  // MARK: An exchange

  @Test func aKeyFileGetsATokenAndAnother() throws {
    let fixture = try KeyLoginTests.shipped(Self.text, typed: [Self.keyFile()])
    fixture.http.then(Self.token("token-1"), Self.token("token-2"))
    let account = try fixture.login()
    #expect(account.name == "robot@example.org" && account.credential.accessToken == Secret("token-1"))
    #expect(fixture.user.prompts.map { $0.map(\.label) } == [["key file"]])
    let form = Self.form(fixture.http.requests[0])
    #expect(form.names == ["grant_type", "assertion", "scope"])
    let claims = try #require(try Self.claims(form[first: "assertion"] ?? ""))
    #expect(claims["iss"]?.text == "robot@example.org" && claims["aud"]?.text == "https://provider.example/token")
    #expect(claims["scope"]?.text == "read" && claims["sub"] == nil)
    // A refresh repeats the exchange.
    fixture.clock.advance(.seconds(3600))
    let later = try fixture.source.handOut(nil, of: "example", by: .token, to: .caller)
    #expect(later.credential.accessToken == Secret("token-2"))
    let second = try #require(try Self.claims(Self.form(fixture.http.requests[1])[first: "assertion"] ?? ""))
    #expect(second["iat"] != claims["iat"] && second["iss"] == claims["iss"])
    for request in fixture.http.requests { #expect(!String(describing: request).contains("PRIVATE KEY")) }
    try fixture.expectNothingLeft()
  }

  /// Attack and control: the file names another token endpoint, which gets nothing.
  @Test func theFileChoosesNoHost() throws {
    let fixture = try KeyLoginTests.shipped(
      Self.text, typed: [Self.keyFile(#","token_uri":"https://evil.example/token","host":"evil.example""#)])
    fixture.http.then(Self.token("token-1"))
    _ = try fixture.login()
    #expect(fixture.http.requests.map(\.uri.text) == ["https://provider.example/token"])
  }

  /// Attack and control: after the login, the descriptor names another token endpoint.
  @Test func aChangedDescriptorGetsNoAssertion() throws {
    let fixture = try KeyLoginTests.shipped(Self.text, typed: [Self.keyFile()])
    fixture.http.then(Self.token("token-1"))
    _ = try fixture.login()
    fixture.clock.advance(.seconds(3600))
    try fixture.ship(Self.text.replacing("https://provider.example/token", with: "https://evil.example/token"))
    let source = fixture.another(http: fixture.http)
    let error = #expect(throws: CredentialError.self) {
      try source.handOut(nil, of: "example", by: .token, to: .caller)
    }
    guard case .descriptorChanged? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(fixture.http.requests.count == 1)
    try fixture.ship(Self.text)
    fixture.http.then(Self.token("token-2"))
    let agreed = try fixture.another(http: fixture.http).handOut(nil, of: "example", by: .token, to: .caller)
    #expect(agreed.credential.accessToken == Secret("token-2"))
  }

  /// The provider no longer knows the key.
  @Test func aDeletedKeyNeedsALogin() throws {
    let fixture = try KeyLoginTests.shipped(Self.text, typed: [Self.keyFile()])
    fixture.http.then(Self.token("token-1"), .json(#"{"error":"invalid_grant"}"#, status: 400))
    _ = try fixture.login()
    fixture.clock.advance(.seconds(3600))
    let error = #expect(throws: CredentialError.self) {
      try fixture.source.handOut(nil, of: "example", by: .token, to: .caller)
    }
    guard case .loginNeeded("example", "robot@example.org", .refreshRefused)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    // Another key of the same account replaces it.
    fixture.http.then(Self.token("token-3"))
    #expect(try fixture.login { $0.account = "robot@example.org" }.credential.accessToken == Secret("token-3"))
  }

  @Test func aRefusedKeyIsNotStored() throws {
    let fixture = try KeyLoginTests.shipped(Self.text, typed: [Self.keyFile()])
    fixture.http.then(.json(#"{"error":"invalid_grant"}"#, status: 400))
    #expect(throws: CredentialError.self) { try fixture.login() }
    #expect(try fixture.registration() == nil)
    try fixture.expectNothingLeft()
  }

  @Test func withoutATerminal() throws {
    let fixture = try KeyLoginTests.shipped(Self.own, typed: nil)
    let missing = CredentialError.keyFileNeeded(
      provider: "example", ["key file", "issuer"], variables: ["issuer"])
    #expect(throws: missing) { try fixture.login() }
  }

  @Test(arguments: [
    ("", PasteFault.empty("key file")), ("{", .keyFile(.notJSON)), (privateKey, .keyFile(.notJSON)),
    (#"{"type":"authorized_user","client_email":"a","private_key":"b"}"#, .keyFile(.other("type"))),
    (#"{"type":"service_account","private_key":"b"}"#, .keyFile(.missing("client_email"))),
    (String(repeating: " ", count: 1 << 20), .tooLong("key file", bytes: 65536)),
  ]) func aWrongKeyFileIsNotSent(_ text: String, _ fault: PasteFault) throws {
    let fixture = try KeyLoginTests.shipped(Self.text, typed: [text])
    #expect(throws: CredentialError.wrongPaste(provider: "example", fault)) { try fixture.login() }
    #expect(fixture.http.requests.isEmpty)
    #expect(try fixture.registration() == nil)
  }

  /// A key of another kind than the descriptor's algorithm.
  @Test func aKeyOfAnotherKind() throws {
    let rsa = Self.text.replacing("algorithm: ES256", with: "algorithm: RS256")
    let fixture = try KeyLoginTests.shipped(rsa, typed: [Self.keyFile()])
    let fault = CredentialError.wrongPaste(provider: "example", .keyFile(.otherKey(.rsa)))
    #expect(throws: fault) { try fixture.login() }
    #expect(fixture.http.requests.isEmpty)
  }

  // MARK: The JWT itself

  @Test func theJWTIsTheToken() throws {
    let fixture = try KeyLoginTests.shipped(Self.own, typed: [Self.privateKey, "team-1"])
    fixture.http.then(.json(#"{"data":[]}"#))
    let account = try fixture.login()
    let first = account.credential.accessToken.reveal()
    #expect(fixture.http.requests.map { $0.fields["Authorization"] } == ["Bearer \(first)"])
    let claims = try #require(try Self.claims(first))
    #expect(claims["iss"]?.text == "team-1" && claims["aud"]?.text == "provider-v1")
    #expect(account.credential.expiresAt == Fixture.now + .minutes(15))
    #expect(account.isRefreshable(at: Fixture.now))
    // The next one needs no request.
    fixture.clock.advance(.minutes(15))
    let second = try fixture.source.handOut(nil, of: "example", by: .token, to: .caller).credential
    #expect(second.accessToken.reveal() != first && second.expiresAt == Fixture.now + .minutes(30))
    #expect(try Self.claims(second.accessToken.reveal()) != nil)
    try fixture.expectNothingLeft()
  }

  @Test func anUnknownKeyIsNotStored() throws {
    let fixture = try KeyLoginTests.shipped(Self.own, typed: [Self.privateKey, "team-1"])
    fixture.http.then(HTTPResponse(status: 401))
    #expect(throws: CredentialError.tokenRefused(provider: "example", words: nil)) { try fixture.login() }
    #expect(try fixture.registration() == nil)
    fixture.http.then(HTTPResponse(status: 503))
    #expect(throws: CredentialError.self) { try fixture.login() }
    #expect(fixture.user.questions.count == 1)
    #expect(try fixture.registration() == nil)
  }

  /// Attack and control: a token for another server, or for any server, in a file of a stranger.
  @Test(arguments: ["https://honest.example/token", "honest.example"]) func aForeignAudience(_ audience: String) throws
  {
    let fixture = try KeyLoginTests.shipped(
      Self.own.replacing("provider-v1", with: audience), typed: [Self.privateKey, "team-1"])
    #expect(throws: CredentialError.oauth(.foreignAudience(audience), provider: "example")) { try fixture.login() }
    #expect(fixture.http.requests.isEmpty)
  }

  @Test(arguments: ["provider-v1", "null", "https://api.provider.example"])
  func anAudienceThatIsNoServerNeedsConsent(_ audience: String) throws {
    let fixture = try Fixture()
    let text = Self.own.replacing("provider-v1", with: audience)
    let isServer = audience.contains("/")
    var asked: [NewPlace] = []
    fixture.user.typed = [Self.privateKey, "team-1"]
    try fixture.add(fixture.file(text), id: nil) { _, _, places in
      asked = places
      return true
    }
    #expect(asked.map(\.kind) == (isServer ? [] : [.audience]))
    fixture.http.then(.json(#"{"data":[]}"#))
    _ = try fixture.login()
  }

  // MARK: A session

  @Test func aSessionIsRenewedWithTheSameValues() throws {
    let fixture = try KeyLoginTests.shipped(Self.session, typed: ["ada", "p w-0123456789"])
    fixture.http.then(Self.token("token-1"), Self.token("token-2"))
    let account = try fixture.login()
    #expect(account.name == "ada" && account.credential.refreshToken == nil)
    fixture.clock.advance(.seconds(3600))
    let source = fixture.another(http: fixture.http)
    #expect(try source.handOut(nil, of: "example", by: .token, to: .caller).credential.accessToken == Secret("token-2"))
    for request in fixture.http.requests {
      #expect(String(decoding: request.body, as: UTF8.self) == #"{"user":"ada","password":"p w-0123456789"}"#)
      #expect(request.fields["Authorization"] == nil)
    }
    try fixture.expectNothingLeft()
  }

  /// A provider that repeats the password in its error.
  @Test func aWrongPassword() throws {
    let fixture = try KeyLoginTests.shipped(Self.session, typed: ["ada", "p w-0123456789"])
    let words = #"{"error":"invalid_grant","error_description":"no such password: p w-0123456789"}"#
    fixture.http.then(.json(words, status: 401))
    let error = #expect(throws: CredentialError.self) { try fixture.login() }
    guard case .oauth(.refused(.token, let refusal), _)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(refusal.words == "no such password: …")
    try fixture.expectNothingLeft()
  }
}
