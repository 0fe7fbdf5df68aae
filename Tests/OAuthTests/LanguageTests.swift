import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrDescriptors
import Testing

@testable import CredmgrOAuth
import CredmgrText

/// Tests the descriptor features that go beyond the RFCs.
struct LanguageTests {
  private static let nonce = RequestNonce(timestamp: 1_800_000_000, text: "n1")

  private static func client(
    _ more: String = "", grant: String = "client_credentials", endpoints: String, id: String = "client-1",
    secret: String? = "secret-1"
  ) throws -> Client {
    let legs = endpoints.split(separator: "\n").map { "  \($0)\n" }.joined()
    return try Client(
      descriptor: Fixture.descriptor("grant: \(grant)\nendpoints:\n\(legs)\(more)\n"), identifier: id,
      secret: secret.map { Secret($0) }, variables: [:])
  }

  private static func token(_ keys: String, _ more: String = "", secret: String? = "secret-1") throws -> HTTPRequest {
    try client(
      more, endpoints: "client_credentials:\n  url: https://p.example/token\n  authentication: none\n" + keys,
      secret: secret
    ).clientCredentialsRequest(scope: ["a:b", "c,d"], nonce: Self.nonce)
  }

  // MARK: Variables in a host

  /// The error comes before anything is sent. After the consent, it would cost the code.
  @Test(
    arguments: [
      ("https://{x}.p.example/t", "evil.example/"), ("https://{x}.p.example/t", "a@evil.example"),
      ("https://p.example.{x}", "evil.example?"), ("\"{x}/t\"", "evil.example"), ("\"{x}/t\"", "http://evil.example"),
      ("\"https://{lowercase(x)}/t\"", "evil.example#"), ("\"{x || y}/t\"", "javascript:alert(1)"),
    ])
  func aValueThatWouldMakeAnotherHost(_ url: String, _ value: String) throws {
    let text = "grant: client_credentials\nendpoints:\n  token: \(url)\nvariables: { x: , y: { optional: true } }\n"
    let descriptor = try Fixture.descriptor(text)
    let error = #expect(throws: ProviderError.self) {
      try Client(descriptor: descriptor, identifier: "c", secret: nil, variables: ["x": value])
    }
    guard case .invalidVariable(let variable, value)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(variable.name == "x")
    let fine = url.contains("\"{x") ? "https://good.example" : "good"
    _ = try Client(descriptor: descriptor, identifier: "c", secret: nil, variables: ["x": fine])
  }

  /// The value matches its own pattern, so the error names the rule of the host.
  @Test(arguments: [
    "endpoints: { token: 'https://{x}/t' }",
    "endpoints: { token: 'https://a.example/t' }\nhosts: ['{x}.a.example']",
  ])
  func aValueThatIsNotAHost(_ text: String) throws {
    let descriptor = try Fixture.descriptor(
      "grant: client_credentials\n\(text)\nvariables: { x: { pattern: '[a-z./]+', help: the server } }\n")
    let error = #expect(throws: ProviderError.self) {
      try Client(descriptor: descriptor, identifier: "c", secret: nil, variables: ["x": "good.example/path"])
    }
    guard case .invalidVariable(let variable, "good.example/path")? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(variable.pattern == nil && variable.format == .hostname && variable.help == "the server")
  }

  // MARK: Functions

  static let functions: [(template: String, value: String)] = [
    ("{base64(client_secret, \":\")}", "c2VjcmV0LTE6"), ("{hex(\"az\")}", "617a"),
    ("{hex(sha256(\"a\", \"bc\"))}", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    // RFC 4231, 4.3
    (
      "{hex(hmac_sha256(\"Jefe\", \"what do ya want \", \"for nothing?\"))}",
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    ), ("{now()}", "1800000000"), ("{now()}000", "1800000000000"), ("{now(\"2h\")}", "1800007200"),
    // RFC 2202, 3
    ("{hex(hmac_sha1(\"Jefe\", \"what do ya want for nothing?\"))}", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
    ("{hex(sha1(\"a\", \"bc\"))}", "a9993e364706816aba3e25717850c26c9cd0d89d"),
    ("{http_date(now())}", "Fri, 15 Jan 2027 08:00:00 GMT"), ("{date(now(\"1d\"))}", "2027-01-16"),
    ("{datetime(now())}", "2027-01-15T08:00:00Z"),
    ("{random()}-{random()}", "n1-n1"),
    ("{json(\"a\\nb\")}", "a\\nb"), ("{uppercase(client_id)}", "CLIENT-1"),
  ]

  @Test(arguments: functions) func functionsOfTemplates(_ template: String, _ value: String) throws {
    #expect(try Self.token("  headers: { X: '\(template)' }").fields["X"] == value)
  }

  @Test func fieldsWithMissingValuesAreOmitted() throws {
    let request = try Self.token("  parameters: { a: '{hex(refresh_token)}', b: '{hex(scope)}' }")
    #expect(FormParameters(decoding: request.form).names == ["grant_type", "scope", "client_id", "b"])
  }

  @Test func headersSignTheRequestThatIsSent() throws {
    let request = try Self.token(
      """
        parameters: { scope: null }
        headers: { X: '{request_method} {request_host} {request_path} {request_body}{request_query || "-"}' }
      """)
    #expect(request.fields["X"] == "POST p.example /token \(request.form)-")
    // A header's value cannot contain a line break.
    #expect(throws: OAuthError.malformedHeader(name: "X")) {
      try Self.token("  send: query\n  headers: { X: '{request_query}' }")
    }
  }

  /// The numbers are OCLC's own, from its page on signatures and from its library: the key is the secret as text, host
  /// and path are fixed, and the query is sorted.
  @Test func signatureOfOCLC() throws {
    for vector in try Vectors.load("oclc-hmac") {
      func text(_ name: String) throws -> String { try #require(vector[name]?.text) }
      let more = """
        extra_headers:
          X-Sign: '{base64(hmac_sha256(client_secret, client_id, "\\n", now(), "\\n", random(), "\\n\\n", request_method, "\\nwww.oclc.org\\n443\\n/wskey\\n", request_query))}'
        hosts: ["*.worldcat.org", worldcat.org]
        """
      let client = try Self.client(
        more, endpoints: "client_credentials: https://p.example/t", id: text("key"), secret: text("secret"))
      let nonce = RequestNonce(
        timestamp: Moment(secondsSince1970: try #require(Int64(text("timestamp")))), text: try text("nonce"))
      let request = HTTPRequest(method: try text("method"), uri: try URI(parsing: text("url")))
      let presented = try client.presenting(Fixture.credential(), on: request, nonce: nonce)
      #expect(try presented.fields["X-Sign"] == text("expected_signature"))
      #expect(throws: OAuthError.signatureNeedsURL) {
        try client.headerFields(presenting: Fixture.credential(), on: nil, nonce: Fixture.nonce)
      }
    }
  }

  /// The signature over the example on Duo's page, whose date ends in `-0000`.
  @Test func signatureOfDuo() throws {
    let more = """
      variables: { integration_key: , date: }
      header_style: none
      extra_headers:
        Authorization: >-
          Basic {base64(integration_key, ":", hex(hmac_sha1(access_token, date, "\\n", request_method, "\\n",
          request_host, "\\n", request_path, "\\n", request_parameters)))}
      hosts: [api-xxxxxxxx.duosecurity.com]
      """
    let descriptor = try Fixture.descriptor("grant: api_key\nendpoints: {}\n" + more)
    let values = ["integration_key": "DIWJ8X6AEYOR5OMC6TQ1", "date": "Tue, 21 Aug 2012 17:29:18 -0000"]
    let client = try Client(descriptor: descriptor, identifier: "", secret: nil, variables: values)
    let credential = Fixture.credential("Zh5eGmUq9zpfQnyUIu5OL9iWoMMv5ZNmk3zLJ4Ep", grant: .apiKey)
    let expected = "Basic " + Base64.encode(Array("DIWJ8X6AEYOR5OMC6TQ1:2d97d6166319781b5a3a07af39d366f491234edc".utf8))
    let uri = try URI(parsing: "https://api-xxxxxxxx.duosecurity.com/accounts/v1/account/list")
    var request = HTTPRequest(method: "POST", uri: uri, body: Array("username=root&realname=First%20Last".utf8))
    request.fields.set("Content-Type", "application/x-www-form-urlencoded")
    #expect(client.signsBody(of: request, with: credential))
    let presented = try client.presenting(credential, on: request, nonce: Self.nonce)
    #expect(presented.fields["Authorization"] == expected)
    // The parameters of a GET are in its query.
    request = HTTPRequest(method: "GET", uri: uri.adding(query: [("username", "root"), ("realname", "First Last")]))
    let get = try client.presenting(credential, on: request, nonce: Self.nonce).fields["Authorization"]
    #expect(get != nil && get != expected)
  }

  /// Trakt's device flow answers by the status alone.
  @Test(
    arguments: [
      (400, DeviceAnswer.pending), (429, .slowDown(interval: nil)),
    ] as [(Int, DeviceAnswer)])
  func aDeviceWaitsByTheStatus(_ status: Int, _ answer: DeviceAnswer) throws {
    let (client, device) = try Self.polling()
    do throws(OAuthError) {
      let response = HTTPResponse(status: status, fields: [:], body: [])
      #expect(try client.deviceAnswer(response, to: device, now: 0) == answer)
    } catch .unavailable(.deviceToken, status: 429, _, _) { #expect(status == 429) }
  }

  @Test func aDeviceEndsByTheStatus() throws {
    let (client, device) = try Self.polling()
    func error(_ status: Int) -> OAuthError? {
      do throws(OAuthError) {
        _ = try client.deviceAnswer(HTTPResponse(status: status, fields: [:], body: []), to: device, now: 0)
        return nil
      } catch { return error }
    }
    #expect(error(410) == .deviceCodeExpired)
    #expect(error(418) == .refused(.deviceToken, ErrorResponse(code: "access_denied", words: nil, status: 418)))
    #expect(error(409) == .refused(.deviceToken, ErrorResponse(code: "http_409", words: nil, status: 409)))
  }

  private static func polling() throws -> (Client, DeviceAuthorization) {
    let errors = "{ meanings: { http_400: authorization_pending, http_410: expired_token, http_418: access_denied } }"
    let client = try client(
      grant: "device_code",
      endpoints: "device_authorization: https://p.example/d\n"
        + "device_token: { url: 'https://p.example/t', response: { errors: \(errors) } }")
    let codes = HTTPResponse.json(
      #"{"device_code": "d", "user_code": "u", "verification_uri": "https://p.example/x", "expires_in": 60}"#)
    return (client, try client.deviceAuthorization(codes, scope: [], now: 0))
  }

  // MARK: Placement

  @Test func verbatimInAQuery() throws {
    let request = try Self.token("  send: query\n  verbatim: [scope]")
    #expect(request.uri.text.hasSuffix("?grant_type=client_credentials&client_id=client-1&scope=a:b%20c,d"))
    let attack = try Self.token("  send: query\n  verbatim: [x]\n  parameters: { x: 'a&state=1#b=%' }")
    #expect(attack.uri.text.hasSuffix("&x=a%26state%3D1%23b%3D%25"))
  }

  @Test func verbatimInJSON() throws {
    let request = try Self.token(
      "  send: json\n  verbatim: [ttl, on, list]\n"
        + "  parameters: { scope: null, ttl: '3600', on: 'true', list: '[{{\"a\": \"{json(client_secret)}\"}}]', text: '7' }",
      secret: "q\"1")
    #expect(
      try JSONValue.parse(request.body) == [
        "grant_type": "client_credentials", "client_id": "client-1", "ttl": 3600, "on": true,
        "list": [["a": "q\"1"]], "text": "7",
      ])
    #expect(throws: OAuthError.missingValue(.clientCredentials, name: "x")) {
      try Self.token("  send: json\n  verbatim: [x]\n  parameters: { x: 'no json' }")
    }
  }

  @Test func parametersAfterARouteInTheFragment() throws {
    let client = try Fixture.client(
      "pkce: none", endpoints: "authorization: { url: 'https://p.example/#/oauth/authorize', send: fragment }")
    let uri = try client.authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1:1/cb", scope: [], random: KnownRandom(), nonce: Self.nonce
    ).uri
    #expect(uri.query == nil)
    #expect(
      uri.fragment?.hasPrefix("/oauth/authorize?response_type=code&client_id=client-1&redirect_uri=http%3A") == true)
  }

  /// WeChat requires a fragment at the very end.
  @Test func aFragmentStaysAfterTheQuery() throws {
    let client = try Fixture.client(endpoints: "authorization: { url: 'https://p.example/connect#wechat_redirect' }")
    let uri = try client.authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1:1/cb", scope: [], random: KnownRandom(), nonce: Self.nonce
    ).uri
    #expect(uri.text.hasPrefix("https://p.example/connect?response_type=code&"))
    #expect(uri.text.hasSuffix("#wechat_redirect"))
  }

  // MARK: Assertions

  private static func jwt(_ text: String?) throws -> (header: JSONValue, claims: JSONValue, text: String, mark: [UInt8])
  {
    let pieces = try #require(text).split(separator: ".").map(String.init)
    func part(_ index: Int) throws -> [UInt8] { try #require(Base64.decodeURL(pieces[index])) }
    return (try JSONValue.parse(part(0)), try JSONValue.parse(part(1)), pieces[0] + "." + pieces[1], try part(2))
  }

  @Test func clientSecretJWT() throws {
    let client = try Self.client(
      "client: { authentication: client_secret_jwt }",
      endpoints: "token: https://p.example/token?v=1", secret: "secret-1")
    let form = FormParameters(decoding: try client.clientCredentialsRequest(scope: [], nonce: Self.nonce).form)
    #expect(form.names == ["grant_type", "client_assertion_type", "client_assertion"])
    #expect(form[first: "client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
    let jwt = try Self.jwt(form[first: "client_assertion"])
    #expect(jwt.header == ["alg": "HS256", "typ": "JWT"])
    #expect(
      jwt.claims == [
        "iss": "client-1", "sub": "client-1", "aud": "https://p.example/token", "jti": "n1", "iat": 1_800_000_000,
        "exp": 1_800_000_300,
      ])
    #expect(jwt.mark == HashAlgorithm.sha256.authenticationCode(for: Array(jwt.text.utf8), key: Array("secret-1".utf8)))
  }

  /// Apple's client secret is a JWT signed by a key on P-256.
  @Test func aSignedSecret() throws {
    let more = """
      assertion:
        algorithm: ES256
        header: { kid: key-1 }
        claims: { iss: team-1, sub: "{client_id}", aud: https://p.example, jti: null, nbf: "{now()}" }
        lifetime: 1h
      """
    let request = try Self.token("  parameters: { client_secret: '{assertion}' }", more, secret: Self.ecKey)
    let jwt = try Self.jwt(FormParameters(decoding: request.form)[first: "client_secret"])
    #expect(jwt.header == ["alg": "ES256", "typ": "JWT", "kid": "key-1"])
    #expect(
      jwt.claims == [
        "iss": "team-1", "sub": "client-1", "aud": "https://p.example", "iat": 1_800_000_000, "exp": 1_800_003_600,
        "nbf": 1_800_000_000,
      ])
    let key = try ECPrivateKey(pem: Secret(Self.ecKey))
    #expect(key.isValid(signature: jwt.mark, for: Array(jwt.text.utf8)))
    #expect(!key.isValid(signature: jwt.mark, for: Array("x".utf8)))
  }

  @Test func aSecretAsTheKey() throws {
    let request = try Self.token(
      "  parameters: { assertion: '{assertion}' }", "assertion: { algorithm: HS512 }", secret: "secret-1")
    let jwt = try Self.jwt(FormParameters(decoding: request.form)[first: "assertion"])
    #expect(jwt.mark == HashAlgorithm.sha512.authenticationCode(for: Array(jwt.text.utf8), key: Array("secret-1".utf8)))
  }

  @Test(arguments: [("RS256", "secret-1"), ("ES256", "secret-1")])
  func anInvalidKey(_ algorithm: String, _ secret: String) {
    #expect(throws: OAuthError.clientKeyMalformed) {
      try Self.token(
        "  parameters: { assertion: '{assertion}' }", "assertion: { algorithm: \(algorithm) }", secret: secret)
    }
  }

  /// RFC 7518, 3.3
  @Test(arguments: ["RS256", "PS256"]) func aShortKey(_ algorithm: String) {
    #expect(throws: OAuthError.clientKeyTooShort) {
      try Self.token(
        "  parameters: { assertion: '{assertion}' }", "assertion: { algorithm: \(algorithm) }", secret: Self.shortKey)
    }
  }

  /// A key that cannot sign is found before a login sends the user to a page.
  @Test func aClientsKeyIsCheckedEarly() throws {
    func check(_ more: String, _ secret: String) throws {
      try Self.client(more, endpoints: "token: https://p.example/token", secret: secret).checkSecret()
    }
    let signs = "client: { authentication: private_key_jwt }"
    #expect(throws: OAuthError.clientKeyTooShort) { try check(signs, Self.shortKey) }
    #expect(throws: OAuthError.clientKeyMalformed) { try check(signs, Self.ecKey) }
    #expect(throws: OAuthError.clientKeyMalformed) { try check(signs, "secret") }
    #expect(throws: OAuthError.clientKeyTooShort) { try check("request_object: true", Self.shortKey) }
    try check(signs + "\nassertion: { algorithm: ES256 }", Self.ecKey)
    // Other clients have any secret.
    try check("", Self.shortKey)
    try check("client: { authentication: client_secret_jwt }", "secret")
  }

  // A key of 1024 bits only for tests, made by `openssl genrsa`.
  private static let shortKey = """
    -----BEGIN PRIVATE KEY-----
    MIICeAIBADANBgkqhkiG9w0BAQEFAASCAmIwggJeAgEAAoGBANJzBNYw4mApF8Z9
    dyl9wJvncUcGr9lBEXRB+aYZp+QPmCGrQveOaizFXVAUcT7kjHoB6hgvm5HC7Fvq
    LBWK6LySjo9F45aYbm9+uswlOxLhV+jHaTKnxN/pp/CJ3Ce70lIqCQTn+frkr3Hh
    dwLnGqeR5j6DkUYDSnqJGGIhygtTAgMBAAECgYBz1FiaJ2fBc3yhhBbdIFittpIT
    fKu20Ohxa4qjkEVm8epSxbdjF+B6adq1I7s82YAz+u/EhheC/50l7dp7tOvpNdDV
    T7FQjPg5HCouWhPnP7dFWuayN68YPf7Wm51+9JyrHcLaaA9nnwEYu2y2MF6iSXYt
    5B0weWcypqOAXptEgQJBAP5e8q1wPLcWzG0ToYtCQapmV709Fi2/33CvZXk1JG5s
    Kx1WqwSoajSbufi+UZHNbodDEfcQ9cqQ9iZrHfD9VcECQQDTzA9AtFvi/2BwQWWw
    sCBUL+g4LrquzG5n/KXudwEELHZHWsOzD0CEEeABCkUJq0FCY5amCwz443JNnIum
    lC4TAkEAz8iDd4V9MxnedyNYDEddGHJtLVne6hQX0xaTT0VHsyOMvHR1UmK4Dq0+
    ZqAgRXeH19nDrQwfmw5647sQRDDMgQJBANIK0y2WMHJEVX2+PX0mjkkvYZsmLJlh
    wDR8SIrfljBvb7V//Ai+HXtcxswBRUo7fnK6lRKCbxD9b8QsdgpzdeUCQQD5p3G6
    ZE/M7GQI5Cd0XbkXw/9/k820ByRJF9Gzf6oDmvo2oQE8CEmPTSaTq04vA/YoL0R3
    XxjwA581bFrBIhQf
    -----END PRIVATE KEY-----
    """

  // A key only for tests, made by `openssl ecparam -genkey`.
  private static let ecKey = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg+EHBrDCnG3nsUVlI
    41sYhwwXUIwQ+zRPiEeyzFGep3ShRANCAAQcehVNrFyMoMy3DZtoBhvzKL3D1jj4
    ctDDf6C2LxgBod6X6NbyAtNim94EzhrQBiqKgGxK6J/S+NtNJTm0b6bi
    -----END PRIVATE KEY-----

    """

  // MARK: Nonce

  @Test func theNonceIsSent() throws {
    let request = try Fixture.client("nonce: true").authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1:1/cb", scope: [], random: KnownRandom(), nonce: Self.nonce)
    let nonce = try #require(request.nonce)
    #expect(request.uri.queryParameters[first: "nonce"] == nonce && nonce != request.state)
  }

  // MARK: Answers

  private static func answer(_ response: HTTPResponse, _ rules: String, leg: EndpointKind = .clientCredentials) throws
    -> Credential
  {
    let client = try Self.client("response: \(rules)", endpoints: "token: https://p.example/t")
    return try client.outcome(response, leg, grant: .clientCredentials, scope: [], now: Fixture.now).issued().credential
  }

  @Test func aTokenInAHeader() throws {
    let response = HTTPResponse(status: 204, fields: ["X-Token": "t-1"])
    #expect(try Self.answer(response, "{ fields: { access_token: 'header:x-token' } }").accessToken == Secret("t-1"))
    #expect(throws: OAuthError.missingField(.clientCredentials, .accessToken)) {
      try Self.answer(HTTPResponse(status: 204), "{ fields: { access_token: 'header:x-token' } }")
    }
  }

  @Test func anExpiryInTheToken() throws {
    let token = "e30." + Base64.encodeURL(Array("{\"exp\": 1700003600}".utf8)) + ".x"
    let rules = "{ fields: { expires_at: { path: access_token, time: jwt } } }"
    #expect(try Self.answer(.json("{\"access_token\": \"\(token)\"}"), rules).expiresAt == 1_700_003_600)
    #expect(try Self.answer(.json("{\"access_token\": \"opaque\"}"), rules).expiresAt == nil)
  }

  /// Instagram, Threads and Facebook refresh with the access token; COROS returns no new one.
  @Test func refreshWithTheAccessToken() throws {
    let client = try Fixture.client(
      "response: { fields: { refresh_token: access_token } }",
      endpoints: "refresh: { method: GET, rename: { refresh_token: access_token }, authentication: access_token }")
    let first = try client.outcome(
      .json("{\"access_token\": \"t-1\"}"), .token, grant: .authorizationCode, scope: [], now: Fixture.now
    ).issued().credential
    #expect(first.refreshedWith == Secret("t-1"))
    #expect(try client.refreshRequest(first, nonce: Self.nonce).uri.queryParameters[first: "access_token"] == "t-1")
    let second = try client.outcome(.json("{\"access_token\": \"t-2\"}"), .refresh, refreshing: first, now: Fixture.now)
      .issued().credential
    #expect(try client.refreshRequest(second, nonce: Self.nonce).uri.queryParameters[first: "access_token"] == "t-2")
  }

  @Test func aRefreshThatKeepsTheToken() throws {
    let client = try Fixture.client(endpoints: "refresh: { response: { fields: { access_token: [] } } }")
    let first = Fixture.credential("t-1")
    let second = try client.outcome(
      .json("{\"result\": \"0000\", \"expires_in\": 60}"), .refresh, refreshing: first, now: Fixture.now
    ).issued().credential
    #expect(second.accessToken == Secret("t-1") && second.expiresAt == Fixture.now + .seconds(60))
  }

  @Test func tokenExchange() throws {
    #expect(throws: OAuthError.noEndpoint(.tokenExchange)) {
      try Fixture.client().tokenExchangeRequest(Fixture.credential(), nonce: Self.nonce)
    }
    let client = try Fixture.client(
      "client: { authentication: client_secret_post }",
      endpoints: """
        token_exchange:
          url: https://p.example/access_token
          method: GET
          rename: { subject_token: access_token }
          parameters: { grant_type: ig_exchange_token, subject_token_type: null, client_id: null }
        """)
    let request = try client.tokenExchangeRequest(Fixture.credential("short"), nonce: Self.nonce)
    #expect(
      request.uri.text
        == "https://p.example/access_token?grant_type=ig_exchange_token&access_token=short&client_secret=secret-1")
    var short = Fixture.credential("short")
    short.kept = ["user": "7"]
    let long = try client.outcome(
      .json("{\"access_token\": \"long\"}"), .tokenExchange, refreshing: short, now: Fixture.now
    ).issued().credential
    #expect(long.accessToken == Secret("long") && long.kept == ["user": "7"])
  }

  /// An exchange keeps every field that its answer omits, also the expiry.
  @Test func anExchangeThatSaysNothingAboutTheTime() throws {
    var short = Fixture.credential("short")
    short.expiresAt = Fixture.now + .seconds(600)
    short.refreshToken = Secret("refresh-1")
    short.refreshTokenExpiresAt = Fixture.now + .days(1)
    func end(_ members: String, _ more: String = "") throws -> Moment? {
      try Fixture.client(more, endpoints: "token_exchange: https://p.example/x").outcome(
        .json("{\"access_token\": \"long\"\(members)}"), .tokenExchange, refreshing: short, now: Fixture.now
      ).issued().credential.expiresAt
    }
    #expect(try end("") == short.expiresAt)
    #expect(try end("", "expiry: { lifetime: 1h }") == short.expiresAt)
    #expect(try end(", \"expires_in\": 60") == Fixture.now + .seconds(60))
    #expect(try end(", \"expires_in\": 0") == nil)
    // A refresh gets another token, whose life is unknown.
    let refreshed = try Fixture.client().outcome(
      .json("{\"access_token\": \"t\"}"), .refresh, refreshing: short, now: Fixture.now
    ).issued().credential
    #expect(refreshed.expiresAt == nil)
  }

  /// Xero returns a list of tenants.
  @Test func anIdentityThatIsAList() throws {
    let client = try Fixture.client(
      "account: 0.name", endpoints: "identity: { url: \"https://p.example/me\", response: { keep: { tenant: 0.id } } }")
    let identity = try client.identity(.json("[{\"id\": \"T1\", \"name\": \"Ada Ltd\"}, {\"id\": \"T2\"}]"))
    #expect(identity.name == "Ada Ltd")
    #expect(identity.kept == ["tenant": "T1"])
    #expect(try client.identity(.json("[]")).name == nil)
    #expect(throws: OAuthError.self) {
      try client.outcome(.json("[]"), .token, grant: .authorizationCode, scope: [], now: 0).issued().credential
    }
  }

  @Test func theFirstExistingNameCounts() throws {
    let client = try Fixture.client("account: [user.email, login]", endpoints: "identity: https://p.example/me")
    #expect(try client.identity(.json("{\"user\": {\"email\": \"\"}, \"login\": \"ada\"}")).name == "ada")
    #expect(try client.identity(.json("{\"user\": {\"email\": \"e\"}, \"login\": \"ada\"}")).name == "e")
  }

  @Test func anIssuerWithAVariable() throws {
    let client = try Fixture.client("variables: { tenant: { default: t1 } }\nissuer: https://{tenant}.example")
    let request = try client.authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1:1/cb", scope: [], random: KnownRandom(), nonce: Self.nonce)
    func answer(_ issuer: String) throws {
      _ = try client.authorizationResponse([("code", "c"), ("state", request.state), ("iss", issuer)], to: request)
    }
    try answer("https://t1.example")
    #expect(throws: OAuthError.issuerMismatch(expected: "https://t1.example", found: "https://t2.example")) {
      try answer("https://t2.example")
    }
  }

  // MARK: OAuth 1.0

  private static func oauth1(_ rules: String) throws -> Client {
    try Fixture.client(
      "oauth1: { callback_confirmed: optional, \(rules) }", grant: "oauth1",
      endpoints: """
        temporary_credentials: https://p.example/request
        authorization: { url: https://p.example/authorize, rename: { oauth_token: tok }, parameters: { app: "{client_id}" } }
        """)
  }

  /// OAuth 1.0 without "a" passes the callback to the page (TripIt).
  @Test func theCallbackOnThePage() throws {
    for (rules, isOnPage) in [("callback: authorization", true), ("verifier: optional", false)] {
      let client = try Self.oauth1(rules)
      let request = try client.temporaryCredentialsRequest(
        callback: "http://127.0.0.1:1/cb", scope: [], nonce: Fixture.nonce)
      #expect(request.fields["Authorization"]?.contains("oauth_callback") == !isOnPage)
      let temporary = try client.temporaryCredentials(
        .form("oauth_token=t&oauth_token_secret=s"), callback: "http://127.0.0.1:1/cb")
      let page = try client.authorizationPage(temporary, scope: [], nonce: Self.nonce).queryParameters
      #expect(page.names == (isOnPage ? ["tok", "oauth_callback", "app"] : ["tok", "app"]))
    }
  }
}
