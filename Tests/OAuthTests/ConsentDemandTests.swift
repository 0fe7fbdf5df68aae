import CredmgrCryptography
import CredmgrHTTP
import Testing

@testable import CredmgrDescriptors
@testable import CredmgrOAuth

/// Demands beyond scopes: a resource (RFC 8707) and a way of authentication (RFC 9470).
struct ConsentDemandTests {
  private static let resource = "resource: https://mcp.example/mcp"

  private static func page(_ client: Client, _ demands: ConsentDemands = ConsentDemands()) throws -> FormParameters {
    try client.authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1:8080/callback", scope: [], demanding: demands,
      random: KnownRandom(), nonce: Fixture.nonce
    ).uri.queryParameters
  }

  @Test func theResourceIsInEachRequest() throws {
    let client = try Fixture.client(
      Self.resource, grant: "[authorization_code, device_code, client_credentials]",
      endpoints: "device_authorization: https://provider.example/device\nrevocation: https://provider.example/revoke")
    #expect(try Self.page(client)[first: "resource"] == "https://mcp.example/mcp")
    var credential = Fixture.credential()
    credential.refreshToken = Secret("r1")
    let requests = [
      try client.refreshRequest(credential, nonce: Fixture.nonce),
      try client.clientCredentialsRequest(scope: [], nonce: Fixture.nonce),
      try client.deviceAuthorizationRequest(scope: [], nonce: Fixture.nonce),
    ]
    for request in requests {
      #expect(FormParameters(decoding: request.form).values(of: "resource") == ["https://mcp.example/mcp"])
    }
    for request in try client.revocationRequests(credential, nonce: Fixture.nonce) {
      #expect(!FormParameters(decoding: request.form).contains("resource"))
    }
  }

  /// A descriptor may drop it for an endpoint that refuses unknown parameters.
  @Test func theResourceOfOneEndpoint() throws {
    let client = try Fixture.client(
      Self.resource,
      endpoints: "authorization:\n    url: https://provider.example/authorize\n    parameters: { resource: null }")
    #expect(try !Self.page(client).contains("resource"))
  }

  @Test func aStrongerAuthentication() throws {
    let demands = ConsentDemands(authenticationContexts: ["gold", "silver"], maxAge: .seconds(60))
    let sent = try Self.page(Fixture.client(), demands)
    #expect(sent[first: "acr_values"] == "gold silver")
    #expect(sent[first: "max_age"] == "60")
    #expect(try !Self.page(Fixture.client()).names.contains { ["acr_values", "max_age"].contains($0) })
  }
}
