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

  /// Returns a JWT with other claims or another header, signed with the key of the client.
  private static func resigned(
    _ jwt: String, header: [String: JSONValue?] = [:], claims: [String: JSONValue?] = [:],
    key: Secret = Simulation.practiceKey(.es256)
  ) throws -> String {
    let (oldHeader, oldClaims, _) = try #require(Simulation.parts(ofJWT: jwt))
    func changed(_ value: JSONValue, _ changes: [String: JSONValue?]) -> JSONValue {
      let own = (value.members ?? []).filter { changes[$0.name] == nil }
      return .object(own + changes.compactMap { name, value in value.map { .init(name, $0) } })
    }
    let text = Simulation.jwt(changed(oldHeader, header), changed(oldClaims, claims))
    return text + "." + Base64.encodeURL(try ECPrivateKey(pem: key).signature(for: Array(text.utf8)))
  }

  private typealias Change = (claims: [String: JSONValue?], reason: String?)

  /// The changes of a JWT that both kinds refuse, and those that both accept.
  private static func changes(at now: Int64) -> [Change] {
    [
      (["exp": nil], "it has no \"exp\""), (["exp": .integer(now - 1)], "it expired 1 s ago"),
      (["exp": .integer(Int64.min)], "it expired"),
      (["exp": .integer(now + 3620), "nbf": .integer(now)], "its \"exp\" is too far ahead"),
      (["exp": "1"], "its \"exp\" is not a number"), (["iat": .integer(now + 11)], "its \"iat\" is 11 s ahead"),
      (["nbf": .integer(now + 11)], "its \"nbf\" is 11 s ahead"), (["nbf": "1"], "its \"nbf\" is not a number"),
      (["nbf": .integer(now + 9), "exp": .integer(now + 8)], "its \"exp\" is before its \"nbf\""),
      (["iss": "other"], "its \"iss\" is not the client"), (["iss": nil], "its \"iss\" is not the client"),
      (["aud": "https://evil.example"], "its \"aud\" is not"), (["aud": nil], "its \"aud\" is not"),
      (["nbf": .integer(now + 10), "iat": .integer(now + 10), "exp": .integer(now + 60)], nil),
    ]
  }

  /// RFC 7523, 3, and FAPI 2.0 Security Profile, 5.3.2.1.
  @Test(arguments: [false, true]) func theClaimsOfAssertions(_ isStrict: Bool) throws {
    let play = try Self.play(
      isStrict ? "profile: fapi2" : "client: { authentication: private_key_jwt }\nassertion: { algorithm: ES256 }",
      legs: "\n  pushed_authorization_request: https://signed.example/par", secret: Simulation.practiceKey(.es256))
    let now = play.clock.now.secondsSince1970
    let token = try #require(play.client.descriptor.endpoints[.token]?.url.template.text)
    let issuer = try #require(play.client.issuer)
    let lenient: String? = isStrict ? "its \"aud\" is not the issuer" : nil
    /// Sends a pushed request, whose assertion is changed.
    func send(_ claims: [String: JSONValue?], header: [String: JSONValue?] = [:], by other: Secret? = nil) throws {
      var request = try play.client.pushedRequest(
        play.authorization(.authorizationCode, scope: ["openid"]), nonce: play.nonce())
      let text = String(decoding: request.body, as: UTF8.self)
      let assertion = try #require(FormParameters(decoding: text)[first: "client_assertion"])
      let changed = try Self.resigned(
        assertion, header: header, claims: claims, key: other ?? Simulation.practiceKey(.es256))
      request.body = Array(text.replacing(assertion, with: changed).utf8)
      let response = play.send(request)
      guard response.status != 201 else { return }
      #expect(try response.json()["error"]?.text == "invalid_client")
      throw Refusal(try play.lastRefusal() ?? "", code: "")
    }
    let more: [Change] = [
      (["sub": "other"], "its \"sub\" is not the client"), (["sub": nil], "its \"sub\" is not the client"),
      (["jti": nil], "it has no \"jti\""), (["jti": "once"], nil), (["jti": "once"], "its \"jti\" was already"),
      (["aud": .string(issuer)], nil), (["aud": .string(token)], lenient), (["aud": [.string(issuer)]], lenient),
      (["aud": .string(token + "/x")], "its \"aud\" is not"), (["exp": .integer(now + 3500)], nil),
    ]
    for (claims, reason) in Self.changes(at: now) + more {
      var found: String?
      do { try send(claims) } catch let error as Refusal { found = error.sentence }
      #expect((found == nil) == (reason == nil), "\(claims) \(found ?? "")")
      #expect(
        found?.hasPrefix("the client assertion is invalid: " + (reason ?? "")) ?? true, "\(claims) \(found ?? "")")
    }
    for type: JSONValue? in ["dpop+jwt", 7] {
      #expect(throws: Refusal.self) { try send([:], header: ["typ": type]) }
    }
    for type: JSONValue? in [nil, "jwt", "client-authentication+jwt"] { try send([:], header: ["typ": type]) }
    #expect(throws: Refusal("the client assertion is invalid: its \"alg\" is not ES256", code: "")) {
      try send([:], header: ["alg": "none"])
    }
    #expect(
      throws: Refusal("the client assertion is invalid: its signature does not match the key of the client", code: "")
    ) { try send([:], by: ECPrivateKey.pem(random: TestRandom())) }
  }

  /// A descriptor says what its assertions contain.
  @Test func theClaimsOfTheDescriptor() throws {
    let play = try Self.play(
      """
      client: { authentication: private_key_jwt }
      assertion: { algorithm: ES256, audience: endpoint, claims: { team: blue } }
      """, secret: Simulation.practiceKey(.es256))
    _ = try play.refresh(play.login(scope: ["openid"]))
    #expect(try play.log("refusals") == 0)
    var request = try play.tokenRequest(scope: ["openid"])
    let form = FormParameters(decoding: String(decoding: request.body, as: UTF8.self))
    let assertion = try #require(form[first: "client_assertion"])
    let changed = try Self.resigned(assertion, claims: ["team": "red"])
    request.body = Array(String(decoding: request.body, as: UTF8.self).replacing(assertion, with: changed).utf8)
    #expect(play.send(request).status == 401)
    #expect(try play.lastRefusal() == "the client assertion is invalid: its \"team\" is not that of the descriptor")
  }

  /// The log says which rule a signed request breaks.
  @Test func theReasonsOfSignedRequests() throws {
    let play = try Self.play(Self.signing, secret: Simulation.practiceKey(.es256))
    let request = try play.authorization(.authorizationCode, scope: ["openid"])
    let object = try #require(request.uri.queryParameters[first: "request"])
    let now = play.clock.now.secondsSince1970
    func reason(_ claims: [String: JSONValue?], header: [String: JSONValue?] = [:]) throws -> String? {
      let changed = try Self.resigned(object, header: header, claims: claims)
      let page = try play.get(request.uri.text.replacing(object, with: changed))
      return page.status == 200 ? nil : try play.lastRefusal()
    }
    let more: [Change] = [
      (["nbf": nil], "it has no \"nbf\""), (["nbf": .integer(now - 3601)], "it is valid for more than an hour"),
      (["nbf": .integer(Int64.min)], "it is valid for more than an hour"),
      (["request_uri": "urn:x"], "it contains \"request_uri\""),
    ]
    for (claims, expected) in Self.changes(at: now) + more {
      let found = try reason(claims)
      #expect((found == nil) == (expected == nil), "\(claims)")
      #expect(
        found?.hasPrefix("the request object is invalid: " + (expected ?? "")) ?? true, "\(claims) \(found ?? "")")
    }
    #expect(
      try reason([:], header: ["typ": "JWT"])
        == "the request object is invalid: its \"typ\" is not oauth-authz-req+jwt")
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
