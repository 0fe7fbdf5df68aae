import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import Testing

@testable import CredmgrOAuth

/// Tests the requests of a descriptor with `profile: fapi2`.
struct ProfileTests {
  private static func client(secret: String?) throws -> Client {
    var client = try Fixture.client(
      "profile: fapi2\nissuer: https://provider.example",
      endpoints: "pushed_authorization_request: https://provider.example/par", secret: secret)
    client.bindingKey = DPoPTests.key
    return client
  }

  private static func request(_ client: Client) throws -> AuthorizationRequest {
    try client.authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1:1/", scope: [], random: KnownRandom(), nonce: Fixture.nonce)
  }

  private static func claims(_ jwt: String?) throws -> (header: JSONValue, claims: JSONValue) {
    let pieces = try #require(jwt).split(separator: ".").map(String.init)
    return try (
      JSONValue.parse(#require(Base64.decodeURL(pieces[0]))), JSONValue.parse(#require(Base64.decodeURL(pieces[1])))
    )
  }

  @Test func theAudienceIsTheIssuer() throws {
    let client = try Self.client(secret: DPoPTests.key.reveal())
    let push = try client.pushedRequest(Self.request(client), nonce: Fixture.nonce)
    let form = FormParameters(decoding: push.form)
    #expect(form[first: "client_id"] == "client-1" && form[first: "code_challenge_method"] == "S256")
    #expect(form[first: "dpop_jkt"] != nil)
    let (header, claims) = try Self.claims(form[first: "client_assertion"])
    #expect(header["alg"]?.text == "ES256")
    #expect(claims["aud"] == "https://provider.example")
  }

  /// The server of the endpoint could use the assertion at the issuer, so the agreement names the issuer.
  @Test func theIssuerIsAnotherServer() throws {
    var client = try Fixture.client(
      "profile: fapi2\nissuer: https://other.example", grant: "client_credentials", secret: DPoPTests.key.reveal())
    client.bindingKey = DPoPTests.key
    let request = try client.clientCredentialsRequest(scope: [], nonce: Fixture.nonce)
    let claims = try Self.claims(FormParameters(decoding: request.form)[first: "client_assertion"]).claims
    #expect(claims["aud"] == "https://other.example")
  }

  /// RFC 8705, 5: an alias may exist for the token endpoint alone, and pushed requests go to the issuer's own server.
  @Test(arguments: ["profile: fapi2", "client: { authentication: private_key_jwt }\nassertion: { algorithm: ES256 }"])
  func theIssuersOwnServerGetsAnAssertion(_ more: String) throws {
    func client(_ push: String) throws -> Client {
      var client = try Fixture.client(
        more + "\nissuer: https://login.bank.example",
        endpoints: """
          pushed_authorization_request: \(push)
          authorization: https://login.bank.example/authorize
          token: https://mtls.bank.example/token
          """, secret: DPoPTests.key.reveal())
      client.bindingKey = DPoPTests.key
      return client
    }
    let own = try client("https://login.bank.example/par")
    try own.checkAssertions()
    let push = try own.pushedRequest(Self.request(own), nonce: Fixture.nonce)
    let claims = try Self.claims(FormParameters(decoding: push.form)[first: "client_assertion"]).claims
    #expect(claims["aud"] == "https://login.bank.example")
    // A third server could use the assertion at the issuer.
    let other = try client("https://push.example/par")
    let refusal = OAuthError.foreignAssertion(.pushedAuthorizationRequest, origin: "https://push.example")
    #expect(throws: refusal) { try other.checkAssertions() }
    #expect(throws: refusal) { try other.pushedRequest(Self.request(other), nonce: Fixture.nonce) }
  }

  @Test func aClientWithoutASecretIsNotPublic() throws {
    for secret in [nil, ""] {
      let client = try Self.client(secret: secret)
      #expect(throws: OAuthError.self) { try client.pushedRequest(Self.request(client), nonce: Fixture.nonce) }
    }
  }

  @Test func theResponseMustNameItsIssuer() throws {
    let client = try Self.client(secret: DPoPTests.key.reveal())
    let request = try Self.request(client)
    let answer: FormParameters = [("code", "c"), ("state", request.state)]
    #expect(throws: OAuthError.issuerMissing(expected: "https://provider.example")) {
      try client.authorizationResponse(answer, to: request)
    }
    var other = answer
    other.append("iss", "https://evil.example")
    #expect(throws: OAuthError.self) { try client.authorizationResponse(other, to: request) }
    var own = answer
    own.append("iss", "https://provider.example")
    let token = try client.tokenRequest(client.authorizationResponse(own, to: request), nonce: Fixture.nonce)
    #expect(token.fields["DPoP"] != nil)
    #expect(FormParameters(decoding: token.form)[first: "client_assertion"] != nil)
  }
}
