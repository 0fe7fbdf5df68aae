import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import Testing

@testable import CredmgrOAuth
import CredmgrText

/// Tests proofs of possession (RFC 9449).
struct DPoPTests {
  static let key = ECPrivateKey.pem(random: KnownRandom())

  private static func client(_ more: String = "", endpoints: String = "", secret: String? = "secret-1") throws -> Client
  {
    var client = try Fixture.client("token_binding: dpop\n" + more, endpoints: endpoints, secret: secret)
    client.bindingKey = key
    return client
  }

  private static func credential(_ token: String = "token-1") -> Credential {
    var credential = Fixture.credential(token)
    credential.proofKey = key
    return credential
  }

  /// Returns the header and the claims of a request's proof, whose signature is valid.
  static func proof(_ request: HTTPRequest) throws -> (header: JSONValue, claims: JSONValue) {
    let values = request.fields.values("DPoP")
    #expect(values.count == 1)
    let pieces = try #require(values.first).split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    try #require(pieces.count == 3)
    let signature = try #require(Base64.decodeURL(pieces[2]))
    let isValid = try ECPrivateKey(pem: key).isValid(
      signature: signature, for: Array((pieces[0] + "." + pieces[1]).utf8))
    #expect(isValid)
    return (
      try JSONValue.parse(#require(Base64.decodeURL(pieces[0]))),
      try JSONValue.parse(#require(Base64.decodeURL(pieces[1])))
    )
  }

  // MARK: Vectors

  /// The key of RFC 9449, 4.1, and its thumbprint in section 6.1.
  @Test func thumbprintOfTheRFC() throws {
    let x = try #require(Base64.decodeURL("l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs"))
    let y = try #require(Base64.decodeURL("9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA"))
    #expect(DPoPProof.thumbprint(of: (x, y)) == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")
  }

  /// The token and the proof of RFC 9449, 7.1.
  @Test func accessTokenHashOfTheRFC() throws {
    let client = try Self.client("hosts: [resource.example.org]")
    let token = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"
    let request = try client.presenting(
      Self.credential(token),
      on: HTTPRequest(method: "GET", uri: URI(parsing: "https://resource.example.org/protectedresource")),
      nonce: RequestNonce(timestamp: 1_562_262_618, text: "e1j3V_bKic8-LAEB"))
    #expect(request.fields["Authorization"] == "DPoP " + token)
    let claims = try Self.proof(request).claims
    #expect(
      claims == [
        "jti": "e1j3V_bKic8-LAEB", "htm": "GET", "htu": "https://resource.example.org/protectedresource",
        "iat": 1_562_262_618, "ath": "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo",
      ])
  }

  // MARK: Requests

  @Test func aTokenRequestHasAProofWithoutToken() throws {
    let client = try Self.client()
    let request = try client.refreshRequest(
      {
        var credential = Self.credential()
        credential.refreshToken = Secret("refresh-1")
        return credential
      }(), nonce: Fixture.nonce)
    let (header, claims) = try Self.proof(request)
    #expect(header["typ"]?.text == "dpop+jwt" && header["alg"]?.text == "ES256")
    #expect(header["jwk"]?.members?.map(\.name) == ["crv", "kty", "x", "y"])
    #expect(
      claims == [
        "jti": .string(Fixture.nonce.text(for: "proof")), "htm": "POST", "htu": "https://provider.example/token",
        "iat": .integer(Fixture.nonce.timestamp.secondsSince1970),
      ])
    // Its own authentication stays.
    #expect(request.fields["Authorization"]?.hasPrefix("Basic ") == true)
  }

  /// `htu` is the address without query and fragment (RFC 9449, 4.2).
  @Test func theAddressHasNoQuery() throws {
    let client = try Self.client("hosts: [api.example]\nextra_query: { v: \"2\" }")
    let uri = try URI(parsing: "https://api.example/a%20b/?x=1")
    let request = try client.presenting(
      Self.credential(), on: HTTPRequest(method: "PUT", uri: uri), nonce: Fixture.nonce)
    #expect(request.uri.queryParameters.names == ["x", "v"])
    let claims = try Self.proof(request).claims
    #expect(claims["htu"]?.text == "https://api.example/a%20b/" && claims["htm"]?.text == "PUT")
  }

  @Test func theCodeIsBoundToTheKey() throws {
    let client = try Self.client()
    let request = try client.authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1:1/", scope: [], random: KnownRandom(), nonce: Fixture.nonce)
    let point = try #require(ECPrivateKey(pem: Self.key).publicKey)
    #expect(request.uri.queryParameters[first: "dpop_jkt"] == DPoPProof.thumbprint(of: point))
    let dropping = try Self.client(
      endpoints: "authorization: { url: https://provider.example/a, parameters: { dpop_jkt: null } }")
    let without = try dropping.authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1:1/", scope: [], random: KnownRandom(), nonce: Fixture.nonce)
    #expect(!without.uri.queryParameters.contains("dpop_jkt"))
  }

  /// An account from before the descriptor bound tokens stays as it was.
  @Test func anAccountWithoutAKeyIsABearerAccount() throws {
    let client = try Fixture.client("token_binding: dpop\nhosts: [api.example]")
    let fields = try client.headerFields(presenting: Fixture.credential(), on: nil, nonce: Fixture.nonce)
    #expect(fields["Authorization"] == "Bearer token-1" && fields["DPoP"] == nil)
    var credential = Fixture.credential()
    credential.refreshToken = Secret("refresh-1")
    #expect(try client.refreshRequest(credential, nonce: Fixture.nonce).fields["DPoP"] == nil)
    // And an account with a key needs it, whatever the descriptor says now.
    let other = try Fixture.client("hosts: [api.example]")
    #expect(throws: OAuthError.signatureNeedsURL) {
      try other.headerFields(presenting: Self.credential(), on: nil, nonce: Fixture.nonce)
    }
  }

  @Test func onlyGrantsWithATokenEndpointAreBound() throws {
    let descriptor = try Fixture.descriptor(
      """
      grant: [authorization_code, implicit, device_code, client_credentials, api_key]
      token_binding: dpop
      endpoints:
        authorization: https://p.example/a
        token: https://p.example/t
        device_authorization: https://p.example/d
      """)
    #expect(descriptor.grants.map { descriptor.binding(of: $0) == .bound(.dpop) } == [true, false, true, true, false])
    let client = Client(unregistered: descriptor)
    #expect(client.newBindingKey(of: .implicit, random: KnownRandom()) == nil)
    let keys = [KnownRandom(), KnownRandom()].map { client.newBindingKey(of: .deviceCode, random: $0) }
    #expect(keys[0] != nil && keys[0] == keys[1])
  }

  /// A client's own token is requested again, with the same key.
  @Test func clientCredentialsKeepTheKey() throws {
    var credential = Fixture.credential(grant: .clientCredentials)
    credential.proofKey = Self.key
    let client = try Fixture.client("token_binding: dpop", grant: "client_credentials")
    let request = try client.refreshRequest(credential, nonce: Fixture.nonce)
    #expect(try Self.proof(request).claims["htu"]?.text == "https://provider.example/token")
  }

  // MARK: Answers

  @Test(arguments: ["DPoP", "dpop"]) func aBoundToken(_ type: String) throws {
    let client = try Self.client()
    let answer = HTTPResponse.json(#"{"access_token": "t", "token_type": "\#(type)", "refresh_token": "r"}"#)
    let credential = try client.outcome(answer, .token, grant: .authorizationCode, scope: [], now: Fixture.now)
      .issued().credential
    #expect(credential.proofKey == Self.key)
    #expect(try Credential(decoding: credential.encoded) == credential)
    #expect(credential.secrets.contains(Self.key))
    // The key stays with the account when it is refreshed, without the key of a login.
    let later = try Fixture.client("token_binding: dpop")
    let next = HTTPResponse.json(#"{"access_token": "t2", "token_type": "\#(type)"}"#)
    let refreshed = try later.outcome(next, .refresh, refreshing: credential, now: Fixture.now).issued().credential
    #expect(refreshed.proofKey == Self.key && refreshed.accessToken == Secret("t2"))
  }

  /// RFC 9449, 5 allows a server to ignore the proof, but the descriptor promises bound tokens.
  @Test func aTokenThatIsNotBoundIsRefused() throws {
    let client = try Self.client()
    func outcome(_ answer: String) -> TokenOutcome {
      client.outcome(.json(answer), .token, grant: .authorizationCode, scope: [], now: Fixture.now)
    }
    #expect(outcome(#"{"access_token": "t", "token_type": "Bearer"}"#) == .failed(.tokenNotBound(.token, "Bearer")))
    #expect(outcome(#"{"access_token": "t"}"#) == .failed(.missingField(.token, .tokenType)))
    // And a bound token without a key is of no use.
    let bearer = try Fixture.client().outcome(
      .json(#"{"access_token": "t", "token_type": "DPoP"}"#), .token, grant: .authorizationCode, scope: [],
      now: Fixture.now)
    #expect(bearer == .failed(.tokenType(.token, "DPoP")))
  }

  /// A refresh that is answered with a bearer token keeps the new refresh token.
  @Test func aRefreshThatLosesTheBindingKeepsTheRefreshToken() throws {
    var credential = Self.credential()
    credential.refreshToken = Secret("r1")
    let outcome = try Self.client().outcome(
      .json(#"{"access_token": "t2", "token_type": "Bearer", "refresh_token": "r2"}"#), .refresh,
      refreshing: credential, now: Fixture.now)
    guard case .rotated(let kept, .tokenNotBound(.refresh, "Bearer")) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(kept.refreshToken == Secret("r2") && kept.accessToken == Secret("token-1") && kept.proofKey == Self.key)
  }

  // MARK: Nonces

  private static func answer(
    _ status: Int, nonce: [String] = ["n-1"], body: String = "", challenge: String? = nil
  ) -> HTTPResponse {
    var response = HTTPResponse.json(body, status: status)
    for nonce in nonce { response.fields.append("DPoP-Nonce", nonce) }
    if let challenge { response.fields.set("WWW-Authenticate", challenge) }
    return response
  }

  /// The answers of RFC 9449, 8 and 9.
  @Test func aDemandedNonceIsInTheNextProof() throws {
    let client = try Self.client("hosts: [api.example]")
    let binding = client.binding(of: Self.credential())
    let answers = [
      Self.answer(400, body: #"{"error": "use_dpop_nonce", "error_description": "x"}"#),
      Self.answer(401, challenge: #"DPoP error="use_dpop_nonce", error_description="x""#),
    ]
    for answer in answers {
      let next = try #require(binding.nonce(demandedBy: answer, after: Fixture.nonce))
      #expect(next.demanded == "n-1" && next.text != Fixture.nonce.text && next.timestamp == Fixture.nonce.timestamp)
      let uri = try URI(parsing: "https://api.example/")
      let request = try client.presenting(Self.credential(), on: HTTPRequest(method: "GET", uri: uri), nonce: next)
      #expect(try Self.proof(request).claims["nonce"]?.text == "n-1")
      // The same nonce again would never satisfy.
      #expect(binding.nonce(demandedBy: answer, after: next) == nil)
    }
  }

  @Test(arguments: [
    (200, ["n-1"], #"{"error": "use_dpop_nonce"}"#), (500, ["n-1"], #"{"error": "use_dpop_nonce"}"#),
    (400, [], #"{"error": "use_dpop_nonce"}"#), (400, ["n-1"], #"{"error": "invalid_grant"}"#),
    (400, ["a", "b"], #"{"error": "use_dpop_nonce"}"#), (400, [""], #"{"error": "use_dpop_nonce"}"#),
    (400, ["a b"], #"{"error": "use_dpop_nonce"}"#), (400, ["\""], #"{"error": "use_dpop_nonce"}"#),
    (400, [String(repeating: "n", count: 1025)], #"{"error": "use_dpop_nonce"}"#), (400, ["n-1"], "[]"),
  ])
  func noOtherAnswerDemandsANonce(_ status: Int, _ nonces: [String], _ body: String) throws {
    let binding = try Self.client().binding(of: Self.credential())
    let answer = Self.answer(status, nonce: nonces, body: body)
    #expect(binding.nonce(demandedBy: answer, after: Fixture.nonce) == nil)
  }

  @Test(
    arguments: [
      (#"DPoP error="use_dpop_nonce""#, "use_dpop_nonce", true),
      (#"DPoP error="invalid_token", algs="ES256""#, nil, true),
      (#"DPoP algs="ES256", error="invalid_dpop_proof""#, "invalid_dpop_proof", true),
      (#"Bearer error="invalid_token""#, nil, false), (#"Bearer, DPoP algs="ES256""#, nil, false),
    ] as [(String, String?, Bool)])
  func challengesOfAnAPI(_ challenge: String, _ fault: String?, _ demandsProof: Bool) {
    let answer = Self.answer(401, nonce: [], challenge: challenge)
    #expect(answer.proofFault == fault)
    #expect(answer.demandsProof == demandsProof)
  }

  // MARK: Around it

  @Test func aDryRunShowsPlaceholders() throws {
    let descriptor = try Self.client("scope: [read]").descriptor
    let shown = try Client(showing: descriptor, identifier: "client-1", hasSecret: true, variables: [:])
    let planned = try LoginRequests(.authorizationCode, shown, scope: ["read"], hasToken: false)
    #expect(planned.requests[0].query.first { $0.name == "dpop_jkt" }?.value == "<dpop_jkt>")
    #expect(
      planned.requests.map { $0.fields.first { $0.name == "DPoP" }?.value } == [nil, "<dpop_proof>", "<dpop_proof>"])
  }
}
