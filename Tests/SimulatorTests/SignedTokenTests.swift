import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth
import Testing

@testable import CredmgrSimulator
import CredmgrText

/// Tests everything that one side signs and the other verifies: ID tokens, login requests and their answers.
struct SignedTokenTests {
  private static func play(_ more: String, page: String = "", legs: String = "", secret: Secret = Secret("s3cret"))
    throws -> Play
  {
    try Play(descriptor(more, page: page, legs: legs), secret: secret)
  }

  private static func descriptor(_ more: String, page: String = "", legs: String = "") throws -> Descriptor {
    let text = """
      provider: signed
      grant: authorization_code
      endpoints:
        authorization: { url: "https://signed.example/authorize"\(page) }\(legs)
        token: https://signed.example/token
        identity: https://signed.example/me
        end_session: https://signed.example/logout
        jwks: https://signed.example/keys
      scope: [openid]
      issuer: https://signed.example
      \(more)
      """
    let library = DescriptorLibrary(directories: []) { _ in nil }
    return try library.load(Array(text.utf8), name: "signed.yaml").descriptor
  }

  private static func keys(_ play: Play) throws -> KeySet {
    try play.client.keySet(play.send(play.client.keySetRequest(nonce: play.nonce())))
  }

  @Test(arguments: ["RS256", "RS384", "PS256", "PS512", "ES256", "EdDSA", "HS256"])
  func idTokens(_ algorithm: String) throws {
    let play = try Self.play("id_token_signed_response_alg: \(algorithm)")
    let keys = try Self.keys(play)
    for credential in [try play.login(scope: ["openid"]), try play.refresh(play.login(scope: ["openid"]))] {
      let verified = try play.client.verified(credential, with: play.client.needsKeySet ? keys : nil)
      #expect(verified.isIDTokenVerified)
      #expect(verified.idTokenSubject == "ada")
      #expect(verified.idTokenClaims?["at_hash"] != nil)
    }
    #expect(try play.log("refusals") == 0)
  }

  /// A descriptor without keys gets those of the simulator.
  @Test func everyProviderWithIDTokensHasKeys() throws {
    let library = DescriptorLibrary(directories: []) { _ in nil }
    let text = """
      provider: plain
      grant: authorization_code
      endpoints: { authorization: "https://plain.example/a", token: "https://plain.example/t" }
      scope: [openid]
      """
    let play = try Play(library.load(Array(text.utf8), name: "plain.yaml").descriptor)
    #expect(try play.client.verified(play.login(scope: ["openid"]), with: Self.keys(play)).isIDTokenVerified)
  }

  @Test func noCredentialBelongsToARequestForKeys() throws {
    let play = try Self.play("")
    var request = try play.client.keySetRequest(nonce: play.nonce())
    #expect(play.send(request).status == 200)
    request.fields.set("Authorization", "Bearer x")
    #expect(play.send(request).status == 400)
  }

  @Test func theEndOfASession() throws {
    let play = try Self.play("")
    let credential = try play.login(scope: ["openid"])
    let request = try #require(try play.client.endSessionRequest(credential, nonce: play.nonce()))
    #expect(request.uri.queryParameters.names == ["id_token_hint", "client_id"])
    #expect(play.send(request).text.contains("The session of ada has ended."))
    let forged = request.uri.text.replacing("id_token_hint=e", with: "id_token_hint=f")
    #expect(try play.get(forged).status == 400)
    var without = credential
    without.idToken = nil
    #expect(try play.client.endSessionRequest(without, nonce: play.nonce()) == nil)
  }

  /// The simulator's own client has the key or the certificate that its descriptor needs.
  @Test(
    arguments: ["RS256", "PS512", "ES256", "EdDSA"].map { algorithm in
      "client: { authentication: private_key_jwt }\nassertion: { algorithm: \(algorithm) }"
    } + [
      "client: { authentication: private_key_jwt }", "client: { authentication: tls_client_auth }",
      "client: { authentication: self_signed_tls_client_auth }", "profile: fapi2",
      "client: { authentication: none }\nrequest_object: true",
      "client: { authentication: private_key_jwt }\nassertion: { algorithm: EdDSA }\ntoken_binding: mutual_tls",
      "profile: fapi2\ntoken_binding: mutual_tls", "token_binding: mutual_tls",
      "profile: fapi2\ntoken_binding: mutual_tls\nclient: { authentication: tls_client_auth }",
      "token_binding: mutual_tls\nid_token_signed_response_alg: HS256",
    ])
  func theClientHasWhatItNeeds(_ more: String) throws {
    let legs = "\n  pushed_authorization_request: https://signed.example/par"
    let isPushed = more.hasPrefix("profile")
    let descriptor = try Self.descriptor(more, legs: isPushed ? legs : "")
    let authority = descriptor.usesCertificates ? try Play.authority.get() : nil
    let secret = try #require(try Simulation.practiceSecret(ofClientOf: descriptor, authority))
    let play = try Self.play(more, legs: isPushed ? legs : "", secret: secret)
    try play.client.checkSecret()
    #expect(play.client.certificateFault(at: play.clock.now) == nil)
    #expect(play.client.usesCertificate == secret.reveal().contains("BEGIN CERTIFICATE"))
    let keys = play.client.needsKeySet ? try Self.keys(play) : nil
    #expect(try play.client.verified(play.login(scope: ["openid"]), with: keys).isIDTokenVerified)
    #expect(try play.log("refusals") == 0)
  }

  @Test(arguments: ["", "client: { authentication: client_secret_jwt }", "client: { authentication: none }"])
  func anyTextIsASecretOfOtherClients(_ more: String) throws {
    #expect(try Simulation.practiceSecret(ofClientOf: Self.play(more).client.descriptor, nil) == nil)
  }

  // MARK: Signed requests and answers

  private static let signing = """
    client: { authentication: private_key_jwt }
    assertion: { algorithm: ES256 }
    request_object: true
    """

  @Test(arguments: [false, true]) func signedRequestsAndAnswers(_ isPushed: Bool) throws {
    let play = try Self.play(
      Self.signing, page: ", parameters: { response_mode: jwt }",
      legs: isPushed ? "\n  pushed_authorization_request: https://signed.example/par" : "",
      secret: Simulation.practiceKey(.es256))
    var request = try play.authorization(.authorizationCode, scope: ["openid"])
    #expect(request.uri.queryParameters.names == ["client_id", "request"])
    request.keys = try Self.keys(play)
    let answer = try play.decide(play.page(of: request)).queryParameters
    #expect(answer.names == ["response"])
    let response = try play.client.authorizationResponse(answer, to: request, now: play.clock.now)
    let token = play.send(try play.client.tokenRequest(response, nonce: play.nonce()))
    #expect(try play.client.outcome(token, after: response, now: play.clock.now).issued().credential.idToken != nil)
    #expect(try play.log("refusals") == 0)

    // JARM, 2.4: an answer of another login, late, unsigned, or with a wrong signature.
    let random = TestRandom()
    _ = random.bytes(1)
    let other = try play.client.authorizationRequest(
      .authorizationCode, redirectURI: play.redirectURI, scope: ["openid"], random: random, nonce: play.nonce())
    #expect(throws: OAuthError.stateMismatch) {
      try play.client.authorizationResponse(answer, to: other, now: play.clock.now)
    }
    #expect(throws: OAuthError.signedAnswer(.expired)) {
      try play.client.authorizationResponse(answer, to: request, now: play.clock.now + .seconds(361))
    }
    let text = try #require(answer[first: "response"])
    let pieces = text.split(separator: ".").map(String.init)
    func fault(_ text: String) throws -> OAuthError? {
      #expect(throws: OAuthError.self) {
        try play.client.authorizationResponse([("response", text)], to: request, now: play.clock.now)
      }
    }
    let none = Base64.encodeURL(Array("{\"alg\":\"none\"}".utf8))
    #expect(try fault([none, pieces[1], pieces[2]].joined(separator: ".")) == .signedAnswer(.unsigned))
    #expect(
      try fault([pieces[0], pieces[1], String(pieces[2].dropLast(4)) + "AAAA"].joined(separator: "."))
        == .signedAnswer(.signature))
    /// Returns the answer with other claims. credmgr compares them before it verifies the signature.
    func changed(_ name: String, _ value: JSONValue?) throws -> String {
      let claims = try JSONValue.parse(#require(Base64.decodeURL(pieces[1])))
      let members = try #require(claims.members)
      let other = JSONValue.object(
        members.compactMap { $0.name == name ? value.map { .init(name, $0) } : $0 })
      return [pieces[0], Base64.encodeURL(Array(other.encoded.utf8)), pieces[2]].joined(separator: ".")
    }
    let issuer = try #require(play.client.issuer)
    #expect(
      try fault(changed("iss", "https://other.example"))
        == .signedAnswer(.issuer(expected: issuer, found: "https://other.example")))
    #expect(try fault(changed("aud", "other")) == .signedAnswer(.audience))
    #expect(try fault(changed("aud", ["id", "other"])) == .signedAnswer(.audience))
    for name in ["iss", "exp"] { #expect(try fault(changed(name, nil)) == .signedAnswer(.missing(claim: name))) }
    #expect(try fault(changed("aud", nil)) == .signedAnswer(.audience))
    #expect(try fault(changed("code", "another")) == .signedAnswer(.signature))
    #expect(try fault("a.b.c.d.e") == .signedAnswer(.encrypted))
    #expect(try fault("x") == .stateMissing)
    func plain(_ state: String) throws -> OAuthError? {
      #expect(throws: OAuthError.self) {
        try play.client.authorizationResponse([("code", "c"), ("state", state)], to: request, now: play.clock.now)
      }
    }
    // Nobody but the provider knows the state, so waiting for another answer is useless.
    #expect(try plain(request.state) == .signedAnswer(.unsigned))
    #expect(try plain("other") == .stateMissing)
    request.keys = nil
    #expect(try fault(text) == .signedAnswer(.keyUnknown))
  }

  /// No answer could be compared with its issuer, so no browser opens.
  @Test func anAnswerOfAnUnknownIssuer() throws {
    let text = """
      provider: signed
      grant: authorization_code
      endpoints:
        authorization: { url: "https://signed.example/authorize", parameters: { response_mode: jwt } }
        token: https://signed.example/token
        jwks: https://signed.example/keys
      """
    let library = DescriptorLibrary(directories: []) { _ in nil }
    let client = try Client(
      descriptor: library.load(Array(text.utf8), name: "signed.yaml").descriptor, identifier: "id", secret: nil,
      variables: [:])
    let login = LoginContext(
      .authorizationCode, client, scope: [], redirectURI: "http://127.0.0.1/", random: TestRandom(),
      nonce: RequestNonce(timestamp: 1, text: "n"))
    #expect(throws: OAuthError.noIssuer) { try login.begin() }
  }

  /// FAPI 2.0 Message Signing: the request is pushed and signed, the answer is signed, and the token is bound.
  @Test func aLoginWithMessageSigning() throws {
    let play = try Self.play(
      "profile: fapi2_message_signing", legs: "\n  pushed_authorization_request: https://signed.example/par",
      secret: Simulation.practiceKey(.es256))
    var request = try play.authorization(.authorizationCode, scope: ["openid"])
    let page = try play.page(of: request)
    #expect(page.queryParameters.names == ["client_id", "request_uri"])
    request.keys = try Self.keys(play)
    let answer = try play.decide(page).queryParameters
    #expect(answer.names == ["response"])
    let response = try play.client.authorizationResponse(answer, to: request, now: play.clock.now)
    let token = play.send(try play.client.tokenRequest(response, nonce: play.nonce()))
    #expect(try play.client.outcome(token, after: response, now: play.clock.now).issued().credential.proofKey != nil)
    #expect(try play.log("refusals") == 0)
  }

  /// FAPI 2.0 Security Profile, 5.3.2.1: the client's clock may be ahead by 10 s.
  @Test(arguments: [(10, 200), (11, 400)])
  func aClientWithAFastClock(_ seconds: Double, _ status: Int) throws {
    let play = try Self.play(Self.signing, secret: Simulation.practiceKey(.es256))
    play.clock.advance(seconds: seconds)
    let request = try play.authorization(.authorizationCode, scope: ["openid"])
    play.clock.advance(seconds: -seconds)
    #expect(try play.get(request.uri.text).status == status)
  }

  @Test func aSignedRequestThatIsChanged() throws {
    let play = try Self.play(Self.signing, secret: Simulation.practiceKey(.es256))
    let request = try play.authorization(.authorizationCode, scope: ["openid"])
    let object = try #require(request.uri.queryParameters[first: "request"])
    let (header, claims, _) = try #require(Simulation.parts(ofJWT: object))
    #expect(header["typ"]?.text == "oauth-authz-req+jwt")
    #expect(claims["aud"]?.text == Play.origin + "/signed.example")
    #expect(claims["iss"]?.text == play.client.identifier)
    #expect(claims["scope"]?.text == "openid")
    #expect(claims["code_challenge_method"]?.text == "S256")
    for url in [
      request.uri.text + "&scope=admin", request.uri.text.replacing("&request=", with: "&requested="),
      String(request.uri.text.dropLast(4)) + "AAAA",
    ] {
      #expect(try play.get(url).status == 400, "\(url)")
    }
    play.clock.advance(seconds: 301)
    #expect(try play.get(request.uri.text).status == 400)
    // A provider without signed requests ignores none.
    let plain = try Self.play("")
    #expect(try plain.get(plain.authorization(.authorizationCode, scope: []).uri.text + "&request=x").status == 400)
  }
}
