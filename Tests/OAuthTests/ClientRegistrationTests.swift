import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrDescriptors
import Testing

@testable import CredmgrOAuth

/// Tests client registration (RFC 7591).
struct ClientRegistrationTests {
  private static func client(
    _ more: String = "", leg: String = "https://provider.example/register", grant: String = "authorization_code"
  ) throws -> Client { try Fixture.client(more, grant: grant, endpoints: "registration: \(leg)", id: "", secret: nil) }

  private static func json(_ request: HTTPRequest) throws -> JSONValue { try JSONValue.parse(request.body) }

  @Test func theRequestIsThatOfTheRFC() throws {
    let request = try Self.client("scope: [read, write]").registrationRequest(
      redirectURI: "http://127.0.0.1/callback", initialAccessToken: nil, nonce: Fixture.nonce)
    #expect(request.method == "POST")
    #expect(request.uri.text == "https://provider.example/register")
    #expect(request.fields["Content-Type"] == "application/json")
    #expect(request.fields["Accept"] == "application/json")
    #expect(request.fields["Authorization"] == nil)
    #expect(
      try Self.json(request) == [
        "client_name": "credmgr", "application_type": "native", "redirect_uris": ["http://127.0.0.1/callback"],
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
        "token_endpoint_auth_method": "client_secret_basic", "scope": "read write",
      ])
  }

  @Test func grantsHaveTheNamesOfTheirRFCs() throws {
    let client = try Fixture.client(
      "client: { authentication: none }", grant: "[device_code, client_credentials]",
      endpoints: "device_authorization: https://a.example/d\nregistration: https://a.example/r\nrefresh: null",
      secret: nil)
    let body = try Self.json(
      client.registrationRequest(redirectURI: nil, initialAccessToken: nil, nonce: Fixture.nonce))
    #expect(body["grant_types"] == ["urn:ietf:params:oauth:grant-type:device_code", "client_credentials"])
    #expect(body["response_types"] == [])
    #expect(body["token_endpoint_auth_method"] == "none")
    #expect(body["redirect_uris"] == nil)
  }

  @Test func anInitialAccessTokenIsABearerToken() throws {
    let token = Secret("initial-1")
    let request = try Self.client().registrationRequest(
      redirectURI: nil, initialAccessToken: token, nonce: Fixture.nonce)
    #expect(request.fields["Authorization"] == "Bearer initial-1")
    #expect(throws: OAuthError.malformedHeader(name: "Authorization")) {
      try Self.client().registrationRequest(
        redirectURI: nil, initialAccessToken: Secret("a\r\nX: y"), nonce: Fixture.nonce)
    }
  }

  @Test func aProviderOfItsOwnKind() throws {
    let leg = """
      { url: "https://provider.example/api/v1/apps", send: form, rename: { scope: scopes },
        parameters: { scope: read write, website: "https://a.example", application_type: null, grant_types: null, \
      response_types: null, token_endpoint_auth_method: null } }
      """.split(separator: "\n").joined(separator: " ")
    let request = try Self.client(leg: leg).registrationRequest(
      redirectURI: "http://127.0.0.1:8417/callback", initialAccessToken: nil, nonce: Fixture.nonce)
    #expect(
      String(decoding: request.body, as: UTF8.self)
        == "client_name=credmgr&redirect_uris=http%3A%2F%2F127.0.0.1%3A8417%2Fcallback&scopes=read%20write"
        + "&website=https%3A%2F%2Fa.example")
  }

  /// RFC 7591, 2: servers refuse a text instead of a list.
  @Test func aTextInsteadOfAListBecomesAList() throws {
    let leg =
      "{ url: \"https://a.example/r\", parameters: { redirect_uris: \"{redirect_uri}\", grant_types: a b, "
      + "contacts: ops@a.example, response_types: '[\"code\"]', request_uris: \"[x]\", client_uri: https://a.x }}"
    let body = try Self.json(
      Self.client(leg: leg).registrationRequest(
        redirectURI: "http://127.0.0.1/c", initialAccessToken: nil, nonce: Fixture.nonce))
    #expect(body["redirect_uris"] == ["http://127.0.0.1/c"])
    #expect(body["grant_types"] == ["a", "b"] && body["contacts"] == ["ops@a.example"])
    #expect(body["response_types"] == ["code"] && body["request_uris"] == ["[x]"])
    #expect(body["client_uri"] == "https://a.x")
  }

  // MARK: The answer

  private static func answer(_ text: String, status: Int = 201, _ client: Client? = nil) throws -> ClientRegistration {
    try (client ?? Self.client()).clientRegistration(.json(text, status: status))
  }

  @Test func theRegistrationIsStored() throws {
    let registration = try Self.answer(
      """
      {"client_id": "c1", "client_secret": "s1", "client_secret_expires_at": 1800000000, "client_id_issued_at": 1,
       "token_endpoint_auth_method": "client_secret_post", "registration_access_token": "r1",
       "registration_client_uri": "https://provider.example/register/c1", "redirect_uris": []}
      """)
    #expect(
      registration
        == ClientRegistration(
          identifier: "c1", secret: Secret("s1"), secretExpiresAt: 1_800_000_000, authentication: .clientSecretPost,
          accessToken: Secret("r1"), uri: "https://provider.example/register/c1"))
  }

  @Test func fewFieldsAreEnough() throws {
    #expect(
      try Self.answer(
        #"{"client_id": 17, "client_secret_expires_at": 0, "registration_client_uri": "nonsense"}"#, status: 200)
        == ClientRegistration(identifier: "17"))
    let own = try Self.client(
      leg: "{ url: \"https://a.example/r\", response: { within: app, fields: { client_id: key } } }")
    #expect(try Self.answer(#"{"app": {"key": "k"}}"#, own).identifier == "k")
  }

  static let refused: [(String, Int, OAuthError)] = [
    (
      #"{"error": "invalid_redirect_uri", "error_description": "no\nloopback"}"#, 400,
      .refused(.registration, ErrorResponse(code: "invalid_redirect_uri", words: "no loopback", status: 400))
    ), ("{}", 201, .missingField(.registration, .clientID)),
    (#"{"client_id": "a\u000ab"}"#, 201, .malformedField(.registration, .clientID)),
    (#"{"client_id": "a", "client_secret": "a\r\nX: y"}"#, 201, .malformedField(.registration, .clientSecret)),
    (
      #"{"client_id": "a", "token_endpoint_auth_method": "tls_client_auth"}"#, 201,
      .unknownAuthentication("tls_client_auth")
    ),
    (#"{"client_id": "a", "token_endpoint_auth_method": "access_token"}"#, 201, .unknownAuthentication("access_token")),
    // This method requires a secret, but the answer has none.
    (
      #"{"client_id": "a", "token_endpoint_auth_method": "client_secret_basic"}"#, 201,
      .unknownAuthentication("client_secret_basic")
    ), ("<html>", 200, .unreadable(.registration, expected: .json, mediaType: "application/json")),
    ("{}", 307, .redirected(.registration, status: 307)),
    ("{}", 503, .unavailable(.registration, status: 503, words: nil, retryAfter: nil)),
  ]

  @Test(arguments: refused) func invalidValuesAreRefused(_ text: String, _ status: Int, _ error: OAuthError) {
    #expect(throws: error) { try Self.answer(text, status: status) }
  }

  // MARK: RFC 9207

  @Test func anIssuerThatAlwaysNamesItselfIsMissed() throws {
    let client = try Fixture.client("issuer: https://provider.example\niss: required")
    let request = try client.authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1/c", scope: [], random: KnownRandom(), nonce: Fixture.nonce)
    let answer: FormParameters = [("code", "c"), ("state", request.state)]
    #expect(throws: OAuthError.issuerMissing(expected: "https://provider.example")) {
      try client.authorizationResponse(answer, to: request)
    }
    var named = answer
    named.append("iss", "https://provider.example")
    #expect(throws: Never.self) { try client.authorizationResponse(named, to: request) }
  }
}

extension ClientRegistration {
  fileprivate init(identifier: String) {
    self.init(
      identifier: identifier, secret: nil, secretExpiresAt: nil, authentication: nil, accessToken: nil, uri: nil)
  }
}
