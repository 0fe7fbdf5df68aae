import CredmgrCryptography
import CredmgrHTTP
import CredmgrDescriptors
import Testing

@testable import CredmgrOAuth
import CredmgrText

struct AuthorizationRequestTests {
  private static let redirect = "http://127.0.0.1:8080/callback"

  private static func request(
    _ client: Client, _ grant: Grant = .authorizationCode, scope: [String] = ["read", "write"]
  ) throws -> AuthorizationRequest {
    try client.authorizationRequest(
      grant, redirectURI: redirect, scope: scope, random: KnownRandom(), nonce: Fixture.nonce)
  }

  @Test func parametersOfACode() throws {
    let request = try Self.request(Fixture.client())
    let state = Base64.encodeURL((0..<32).map { 16 + $0 })
    let verifier = Base64.encodeURL((0..<32).map { 32 + $0 })
    #expect(request.state == state)
    #expect(request.codeVerifier?.text == verifier)
    #expect(
      request.uri.queryParameters == [
        ("response_type", "code"), ("client_id", "client-1"), ("redirect_uri", Self.redirect), ("scope", "read write"),
        ("state", state), ("code_challenge", Base64.encodeURL(HashAlgorithm.sha256.digest(Array(verifier.utf8)))),
        ("code_challenge_method", "S256"),
      ])
    #expect(request.uri.withoutQueryAndFragment.text == "https://provider.example/authorize")
    #expect(request.uri.text.contains("redirect_uri=http%3A%2F%2F127.0.0.1%3A8080%2Fcallback&scope=read%20write"))
  }

  @Test func parametersOfATokenInTheFragment() throws {
    let request = try Self.request(Fixture.client(), .implicit, scope: [])
    #expect(request.uri.queryParameters.names == ["response_type", "client_id", "redirect_uri", "state"])
    #expect(request.uri.queryParameters[first: "response_type"] == "token")
    #expect(request.codeVerifier == nil)
  }

  /// Matches the example of RFC 7636, appendix B.
  @Test func challengeOfTheRFC() {
    let verifier = CodeVerifier("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    #expect(verifier.challenge(.s256) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
    #expect(verifier.challenge(.plain) == verifier.text)
    #expect(verifier.challenge(.none) == nil)
    #expect(verifier.challenge(.s256Hexadecimal) == "13d31e961a1ad8ec2f16b10c4c982e0876a878ad6df144566ee1894acb70f9c3")
  }

  @Test(arguments: [("S256", "S256"), ("S256-hex", "S256"), ("plain", "plain"), ("none", nil)] as [(String, String?)])
  func methodOfTheChallenge(_ rule: String, _ wire: String?) throws {
    let request = try Self.request(Fixture.client("pkce: \(rule)"))
    #expect(request.uri.queryParameters[first: "code_challenge_method"] == wire)
    #expect((request.uri.queryParameters[first: "code_challenge"] == nil) == (wire == nil))
  }

  @Test func theDescriptorChangesTheRequest() throws {
    let client = try Fixture.client(
      "scope: { separator: \",\" }",
      endpoints: """
        authorization:
          url: https://provider.example/authorize?tenant=1
          parameters: { access_type: offline, response_type: null, where: "{redirect_uri}", not_there: "{user_code}" }
          rename: { client_id: app_key, state: nonce2 }
        """)
    let request = try Self.request(client)
    #expect(
      request.uri.queryParameters.names == [
        "tenant", "app_key", "redirect_uri", "scope", "nonce2", "code_challenge", "code_challenge_method",
        "access_type", "where",
      ])
    #expect(request.uri.queryParameters[first: "scope"] == "read,write")
    #expect(request.uri.queryParameters[first: "where"] == Self.redirect)
  }

  // MARK: The answer

  private static func answer(
    _ more: String = "", _ grant: Grant = .authorizationCode, _ pairs: (AuthorizationRequest) -> [(String, String)]
  ) throws -> AuthorizationResponse {
    let client = try Fixture.client(more)
    let request = try request(client, grant)
    return try client.authorizationResponse(
      FormParameters(pairs(request).map { .init(name: $0.0, value: $0.1) }), to: request)
  }

  @Test func codeWithTheRightState() throws {
    let response = try Self.answer { [("code", "c"), ("state", $0.state)] }
    #expect(response.answer.text(.code) == "c")
  }

  @Test(arguments: ["state: required", "state: optional"]) func wrongState(_ rule: String) {
    for state in [{ "x" + $0.dropFirst() }, { $0 + "A" }, { String($0.dropLast()) }] as [(String) -> String] {
      #expect(throws: OAuthError.stateMismatch) {
        try Self.answer(rule) { [("code", "c"), ("state", state($0.state))] }
      }
    }
  }

  @Test func missingState() throws {
    for pairs in [[("code", "c")], [("code", "c"), ("state", "")], [("error", "access_denied")]] {
      #expect(throws: OAuthError.stateMissing) { try Self.answer { _ in pairs } }
    }
    _ = try Self.answer("state: optional") { _ in [("code", "c")] }
  }

  /// Checks the state before the error, because another page's error must not end the login.
  @Test func errorInTheRedirect() {
    #expect(throws: OAuthError.stateMismatch) {
      try Self.answer { _ in [("error", "access_denied"), ("state", "other")] }
    }
    let refusal = ErrorResponse(code: "access_denied", words: "User denied\u{20}access", status: nil)
    #expect(throws: OAuthError.refused(.authorization, refusal)) {
      try Self.answer {
        [("error", "access_denied"), ("error_description", "User denied\naccess"), ("state", $0.state), ("code", "c")]
      }
    }
  }

  /// Compares `iss` (RFC 9207, 2.4).
  @Test func issuer() throws {
    let rule = "issuer: https://provider.example"
    _ = try Self.answer(rule) { [("code", "c"), ("state", $0.state), ("iss", "https://provider.example")] }
    _ = try Self.answer(rule) { [("code", "c"), ("state", $0.state)] }
    for field in ["code", "error"] {
      #expect(
        throws: OAuthError.issuerMismatch(expected: "https://provider.example", found: "https://provider.example/")
      ) { try Self.answer(rule) { [(field, "c"), ("state", $0.state), ("iss", "https://provider.example/")] } }
    }
  }

  @Test func answerWithoutARequiredField() {
    #expect(throws: OAuthError.missingField(.authorization, .code)) {
      try Self.answer { [("access_token", "t"), ("state", $0.state)] }
    }
    #expect(throws: OAuthError.missingField(.authorization, .accessToken)) {
      try Self.answer("", .implicit) { [("code", "t"), ("state", $0.state)] }
    }
  }

  @Test func tokenInTheFragment() throws {
    let client = try Fixture.client("response: { keep: [principalID] }\nscope: { default: [a] }")
    let request = try Self.request(client, .implicit)
    let pasted = try client.redirectParameters(
      pasted: """
        \n ncipapp://success#access_token=tk_1&principalID=p&token_type=bearer&expires_in=1199\
        &expires_at=2013-08-23%2018%3A45%3A29Z&state=\(request.state)&refresh_token=rt_1\
        &refresh_token_expires_in=604799 \n
        """, redirectURI: "ncipApp://success", inFragment: true)
    let credential = try client.credential(client.authorizationResponse(pasted, to: request), now: Fixture.now)
    #expect(credential.grant == .implicit)
    #expect(credential.accessToken == Secret("tk_1"))
    #expect(credential.refreshToken == Secret("rt_1"))
    #expect(credential.expiresAt == Fixture.now + .seconds(1199))
    #expect(credential.refreshTokenExpiresAt == Fixture.now + .seconds(604_799))
    #expect(credential.kept == ["principalID": "p"])
    #expect(credential.redirectURI == Self.redirect)
    #expect(credential.requestedScope == ["read", "write"])
  }

  @Test(
    arguments: [
      ("https://app.example/done?code=c&state=s", "https://app.example/done"),
      ("  https://app.example/done?code=c&state=s \n", "https://app.example/done"),
      ("https://app.example/done?own=1&code=c&state=s#", "https://app.example/done?own=1"),
      ("https://app.example/done?code=c&state=s&own=1", "https://app.example/done?own=1"),
      ("HTTPS://App.Example:443/done?code=c&state=s", "https://app.example/done"),
      ("https://app.example/done?code=c&state=s", "https://App.example:443/done"),
      ("https://app.example/?code=c&state=s", "https://app.example"),
      ("http://localhost:8080?code=c&state=s", "http://localhost:8080/"),
      ("grokgithub://?own=1&code=c&state=s", "grokgithub://?own=1"),
      ("NcipApp://success?code=c&state=s", "ncipApp://success"),
      ("http://127.0.0.1:8080/callback?code=c&state=s#_=_", "http://127.0.0.1:8080/callback"),
      ("http://127.0.0.1:8080/callback#code=c&state=s", "http://127.0.0.1:8080/callback"),
    ])
  func pasted(_ text: String, _ redirectURI: String) throws {
    let client = try Fixture.client()
    let parameters = try client.redirectParameters(pasted: text, redirectURI: redirectURI, inFragment: false)
    #expect(parameters == [("code", "c"), ("state", "s")])
  }

  @Test func pastedFragmentGoesBeforeTheQuery() throws {
    let client = try Fixture.client()
    let text = "\(Self.redirect)?code=other&state=other#access_token=t&state=s"
    let parameters = try client.redirectParameters(pasted: text, redirectURI: Self.redirect, inFragment: true)
    #expect(parameters == [("access_token", "t"), ("state", "s")])
    let refusal = "\(Self.redirect)?error=access_denied&state=s"
    #expect(
      try client.redirectParameters(pasted: refusal, redirectURI: Self.redirect, inFragment: true)
        == [("error", "access_denied"), ("state", "s")])
  }

  /// Each differs from the redirect URI in one way.
  @Test(arguments: [
    "http://app.example/done?own=1&code=c", "https://app.example.evil.example/done?own=1&code=c",
    "https://evil.example/done?own=1&code=c", "https://app.example:8443/done?own=1&code=c",
    "https://app.example:80/done?own=1&code=c", "https://app.example/Done?own=1&code=c",
    "https://app.example/done/?own=1&code=c", "https://app.example/?own=1&code=c", "https://app.example?own=1&code=c",
    "https://app.example/d%6Fne?own=1&code=c", "https://app.example//done?own=1&code=c",
    "https://app.example/done?code=c", "https://app.example/done?own=2&code=c", "https://app.example/done?Own=1&code=c",
    "https://app.example/done#own=1&code=c", "app://app.example/done?own=1&code=c",
    "https://app.example./done?own=1&code=c",
  ]) func pastedFromElsewhere(_ text: String) throws {
    let client = try Fixture.client("state: optional")
    let redirectURI = "https://app.example/done?own=1"
    for inFragment in [false, true] {
      #expect(throws: OAuthError.foreignRedirect(expected: redirectURI)) {
        try client.redirectParameters(pasted: text, redirectURI: redirectURI, inFragment: inFragment)
      }
    }
  }

  /// Pasted parameters without an address do not show where the provider redirected to.
  @Test(arguments: [
    "", " ", "hello", "a b=c", "?", "#", "c", "code=c&state=s", "?code=c&state=s", "#code=c&state=s",
    "/done?code=c&state=s", "//app.example/done?code=c", "https://app.example@evil.example/done?code=c",
    "https://app.example\\@evil.example/done?code=c", "https://app.example/done?code=c\nstate=s",
    "https://app.example/done", "https://app.example/done?", "https://app.example/done#",
  ]) func pastedNonsense(_ text: String) throws {
    let client = try Fixture.client()
    #expect(throws: OAuthError.notARedirect) {
      try client.redirectParameters(pasted: text, redirectURI: "https://app.example/done", inFragment: false)
    }
  }

  /// If the page shows a code, the whole line is the code, unless it is an answer.
  @Test(
    arguments: [
      ("abc", nil), ("4/abc==", nil), ("ab&c=d", nil), ("code=c&state=s", "c"), ("?code=c", "c"),
      ("https://provider.example/approved?code=c&state=s", "c"), ("https://provider.example/#code=c", "c"),
      ("https://provider.example/approved", nil),
    ] as [(String, String?)]) func pastedFromAPage(_ text: String, _ code: String?) throws
  { #expect(try Fixture.client().outOfBandParameters(pasted: text)?[first: "code"] == code) }

  /// If the provider does not return `state`, only an answer with the expected shape counts.
  @Test(
    arguments: [
      [("x", "1")], [("scope", "read")], [("code", "c")], [("error", "")], [("error_description", "no")],
      [("access_token", "t"), ("state", "other")], [("access_token", "t"), ("iss", "https://other.example")],
    ] as [FormParameters])
  func strayWithoutAState(_ parameters: FormParameters) throws {
    let client = try Fixture.client("state: optional\nissuer: https://provider.example")
    let request = try Self.request(client, .implicit)
    let error = parameters.contains("state") ? OAuthError.stateMismatch : .stateMissing
    #expect(throws: error) { try client.authorizationResponse(parameters, to: request) }
    _ = try client.authorizationResponse([("access_token", "t")], to: request)
    #expect(throws: OAuthError.refused(.authorization, ErrorResponse(code: "access_denied", words: nil, status: nil))) {
      try client.authorizationResponse([("error", "access_denied")], to: request)
    }
  }

  /// Without a declared issuer, the answer must come from one of the provider's servers (RFC 9207, 2.4).
  @Test(
    arguments: [
      "https://other.example", "http://provider.example", "https://provider.example:8443", "https://example", "", "x",
      "https://evilprovider.example", "https://provider.example.evil.example",
    ])
  func aForeignIssuer(_ issuer: String) throws {
    for (more, endpoints) in [
      ("", ""), ("", "introspection: https://other.example/i"), ("hosts: [other.example]", ""),
    ] {
      let client = try Fixture.client(more, endpoints: endpoints)
      let request = try Self.request(client)
      #expect(throws: OAuthError.foreignIssuer(found: issuer, host: "provider.example")) {
        try client.authorizationResponse([("code", "c"), ("state", request.state), ("iss", issuer)], to: request)
      }
      #expect(throws: OAuthError.foreignIssuer(found: issuer, host: "provider.example")) {
        try client.authorizationResponse(
          [("error", "access_denied"), ("state", request.state), ("iss", issuer)], to: request)
      }
    }
  }

  @Test(arguments: [
    "https://provider.example", "https://provider.example/", "https://provider.example/realms/a",
    "https://login.provider.example", "https://tokens.example",
  ]) func anIssuerOfTheProvider(_ issuer: String) throws {
    let client = try Fixture.client(endpoints: "token: https://tokens.example/t")
    let request = try Self.request(client)
    _ = try client.authorizationResponse([("code", "c"), ("state", request.state), ("iss", issuer)], to: request)
  }

  /// A returned `state` counts, whatever the descriptor says.
  @Test func aHiddenStateIsCompared() throws {
    let hidden = "response: { fields: { state: [] } }\nstate: optional"
    #expect(throws: OAuthError.stateMismatch) { try Self.answer(hidden) { _ in [("code", "c"), ("state", "other")] } }
    _ = try Self.answer(hidden) { [("code", "c"), ("state", $0.state)] }
  }

  /// Sends a proof key for a public client (RFC 9700, 2.1.1).
  @Test func aPublicClientSendsAProofKey() throws {
    func method(_ more: String, _ secret: String?, _ token: String = "", pkce: String = "none") throws -> String? {
      let client = try Fixture.client("pkce: \(pkce)\n" + more, endpoints: token, secret: secret)
      return try Self.request(client).uri.queryParameters[first: "code_challenge_method"]
    }
    #expect(try method("", nil) == "S256")
    #expect(try method("client: { authentication: none }", "unused") == "S256")
    #expect(try method("", "secret-1") == nil)
    // The verifier must not be in the address (RFC 7636, 7.2).
    #expect(try method("", nil, pkce: "plain") == "S256")
    #expect(try method("", "secret-1", pkce: "plain") == "plain")
    let ownForm = "token: { url: https://provider.example/t, parameters: { key: \"{client_secret}\" } }"
    #expect(try method("client: { authentication: none }", "secret-1", ownForm) == nil)
  }

  @Test func anAddressFromTheUserSetsNoRedirect() throws {
    let client = try Fixture.client(
      "variables: { page: { format: url } }", endpoints: "authorization: \"{page}\"",
      variables: ["page": "https://provider.example/a?redirect%5Furi=https://evil.example"])
    #expect(throws: OAuthError.ownedParameter(.authorization, name: "redirect_uri")) { try Self.request(client) }
  }

  /// These codes invite another try (RFC 6749, 4.1.2.1).
  @Test(arguments: ["server_error", "temporarily_unavailable"])
  func theServerCannotAnswerInARedirect(_ code: String) throws {
    let client = try Fixture.client()
    let request = try Self.request(client)
    #expect(throws: OAuthError.unavailable(.authorization, status: nil, words: "busy", retryAfter: nil)) {
      try client.authorizationResponse(
        [("error", code), ("error_description", "busy"), ("state", request.state)], to: request)
    }
  }

  @Test(
    arguments: [
      ("http://127.0.0.1/callback", "loopback"), ("http://localhost:8400/", "loopback"), ("http://[::1]/", "loopback"),
      ("https://app.example/done", "elsewhere"), ("https://localhost/done", "elsewhere"),
      ("ncipApp://success", "elsewhere"), ("oob", "page"), ("urn:ietf:wg:oauth:2.0:oob", "page"),
    ])
  func redirect(_ text: String, _ kind: String) throws {
    let client = try Fixture.client(
      "variables: { redirect_uri: { format: redirect } }\nredirect: \"{redirect_uri}\"",
      variables: ["redirect_uri": text])
    let found =
      switch try client.redirect() {
      case .loopback: "loopback"
      case .elsewhere: "elsewhere"
      case .outOfBand: "page"
      }
    #expect(found == kind)
  }

  /// Providers compare redirect URIs as text (RFC 6749, 3.1.2.3).
  @Test(arguments: ["ncipApp://success", "https://App.example/Done?own=1"])
  func redirectIsSentAsItIsWritten(_ text: String) throws {
    let client = try Fixture.client(
      "variables: { redirect_uri: { format: redirect } }\nredirect: \"{redirect_uri}\"",
      variables: ["redirect_uri": text])
    #expect(try client.redirect() == .elsewhere(text))
  }
}
