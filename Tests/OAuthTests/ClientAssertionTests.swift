import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import Testing

@testable import CredmgrOAuth

/// Tests the audience and the destination of assertions (RFC 7523, 3).
struct ClientAssertionTests {
  private static let keyed = "client: { authentication: client_secret_jwt }"

  private static func client(_ more: String = keyed, legs: String = "") throws -> Client {
    try Fixture.client(more, endpoints: legs)
  }

  private static var credential: Credential {
    var credential = Fixture.credential()
    credential.refreshToken = Secret("refresh-1")
    return credential
  }

  private static func audience(_ request: HTTPRequest, _ parameter: String = "client_assertion") throws -> String? {
    let text = try #require(FormParameters(decoding: request.form)[first: parameter])
    return JWTClaims.parse(text)?["aud"]?.text
  }

  private static func claims(_ audience: String) -> String { keyed + "\nassertion: { claims: { aud: \(audience) } }" }

  /// The audience is an issuer related to the token endpoint, or else that endpoint.
  @Test(arguments: [
    (keyed, "https://provider.example/token"),
    (keyed + "\nissuer: https://id.provider.example/x", "https://id.provider.example/x"),
    (keyed + "\nissuer: https://honest-as.example", "https://provider.example/token"),
    (claims("https://provider.example/own"), "https://provider.example/own"),
    (claims("provider.example"), "provider.example"),
    (
      keyed + "\nissuer: https://provider.example\nassertion: { claims: { aud: https://own.provider.example } }",
      "https://own.provider.example"
    ),
  ]) func theAudienceOfAnAssertion(_ more: String, _ audience: String) throws {
    let request = try Self.client(more).refreshRequest(Self.credential, nonce: Fixture.nonce)
    #expect(try Self.audience(request) == audience)
  }

  /// A server that receives an assertion could use it at the server that it is meant for.
  @Test(arguments: [
    "https://honest-as.example", "https://provider.example.honest-as.example", "honest-as.example", "urn:honest:as",
    "https://provider.example:8443/token", "http://provider.example/token", "''",
  ]) func anAssertionIsForNoOtherServer(_ audience: String) throws {
    #expect(throws: OAuthError.foreignAudience(audience == "''" ? "" : audience)) {
      try Self.client(Self.claims(audience)).refreshRequest(Self.credential, nonce: Fixture.nonce)
    }
    #expect(throws: OAuthError.foreignAudience("")) {
      try Self.client(Self.claims("null")).refreshRequest(Self.credential, nonce: Fixture.nonce)
    }
  }

  /// A descriptor with a single grant may have no endpoint `token`.
  @Test func theOnlyEndpointThatGivesTokens() throws {
    let descriptor = try Fixture.descriptor(
      "grant: client_credentials\nendpoints: { client_credentials: https://provider.example/cc }\n" + Self.keyed)
    let client = try Client(descriptor: descriptor, identifier: "c", secret: Secret("s"), variables: [:])
    #expect(
      try Self.audience(client.clientCredentialsRequest(scope: [], nonce: Fixture.nonce))
        == "https://provider.example/cc")
  }

  private static let requests: [(leg: String, make: @Sendable (Client) throws -> HTTPRequest)] = [
    ("refresh", { try $0.refreshRequest(credential, nonce: Fixture.nonce) }),
    ("introspection", { try $0.validationRequest(credential, nonce: Fixture.nonce).request }),
    ("revocation", { try $0.revocationRequests(credential, nonce: Fixture.nonce)[0] }),
    ("token_exchange", { try $0.tokenExchangeRequest(credential, nonce: Fixture.nonce) }),
  ]

  @Test(arguments: ["https://evil.example", "https://provider.example:8443", "http://127.0.0.1:7003"])
  func anAssertionGoesToNoOtherOrigin(_ origin: String) throws {
    for (leg, make) in Self.requests {
      let kind = try #require(EndpointKind(rawValue: leg))
      let refusal = OAuthError.foreignAssertion(kind, origin: origin)
      #expect(throws: refusal, "\(leg)") { try make(Self.client(legs: "\(leg): \(origin)/x")) }
      // The endpoint's own parameters count as well.
      let own = "\(leg): { url: '\(origin)/x', parameters: { proof: '{assertion}' } }"
      #expect(throws: refusal, "\(leg)") { try make(Self.client("", legs: own)) }
      #expect(throws: refusal, "\(leg)") {
        try make(Self.client("", legs: "\(leg): { url: '\(origin)/x', headers: { X-Proof: '{assertion}' } }"))
      }
      // Without an assertion, the endpoint may be elsewhere.
      #expect(throws: Never.self, "\(leg)") { try make(Self.client("", legs: "\(leg): \(origin)/x")) }
    }
  }

  @Test func anAssertionGoesToTheTokenEndpoint() throws {
    for (leg, make) in Self.requests {
      let request = try make(Self.client(legs: "\(leg): https://PROVIDER.example:443/x"))
      #expect(try Self.audience(request) == "https://provider.example/token", "\(leg)")
    }
  }

  /// The descriptor may name another server of the provider as the audience.
  @Test func anAssertionMayGoToItsAudience() throws {
    let more = Self.claims("https://api.provider.example/oauth")
    let request = try Self.client(more, legs: "introspection: https://api.provider.example/i")
      .validationRequest(Self.credential, nonce: Fixture.nonce).request
    #expect(try Self.audience(request) == "https://api.provider.example/oauth")
    #expect(throws: OAuthError.foreignAssertion(.introspection, origin: "https://evil.example")) {
      try Self.client(more, legs: "introspection: https://evil.example/i")
        .validationRequest(Self.credential, nonce: Fixture.nonce)
    }
  }

  /// The identity endpoint gets the token but no assertion.
  @Test func theIdentityEndpointGetsNoAssertion() throws {
    let request = try Self.client(legs: "identity: https://api.example/me")
      .identityRequest(Self.credential, nonce: Fixture.nonce)
    #expect(request.fields["Authorization"] == "Bearer token-1" && request.body.isEmpty)
  }
}
