import CredmgrHTTP
import Testing

@testable import CredmgrOAuth
import CredmgrText

/// Tests pushed authorization requests (RFC 9126).
struct PushedRequestTests {
  private static let endpoint = "pushed_authorization_request: https://provider.example/par"

  private static func request(_ client: Client) throws -> AuthorizationRequest {
    try client.authorizationRequest(
      .authorizationCode, redirectURI: "https://client.example.org/cb", scope: ["a"], random: KnownRandom(),
      nonce: Fixture.nonce)
  }

  /// RFC 9126, 2.1: the parameters of the page in a form, and the client's authentication.
  @Test(arguments: [
    ("client_secret_basic", ["Authorization"], ["client_id"]),
    ("client_secret_post", [], ["client_id", "client_secret"]), ("none", [], ["client_id"]),
    ("client_secret_jwt", [], ["client_id", "client_assertion_type", "client_assertion"]),
  ])
  func theClientAuthenticates(_ method: String, _ headers: [String], _ own: [String]) throws {
    let client = try Fixture.client("client: { authentication: \(method) }", endpoints: Self.endpoint)
    let request = try Self.request(client)
    let push = try client.pushedRequest(request, nonce: Fixture.nonce)
    let names = FormParameters(decoding: push.form).names
    #expect(push.fields.map(\.name).filter { $0 == "Authorization" } == headers)
    #expect(names == request.uri.queryParameters.names + own.dropFirst())
    #expect(names.filter { $0 == "client_id" }.count == 1)
    #expect(push.uri.query == nil)
  }

  /// The example of RFC 9126, 2.2 and 4.
  @Test func referenceOfTheRFC() throws {
    let client = try Fixture.client(
      endpoints: Self.endpoint + "\nauthorization: https://server.example.com/authorize", id: "CLIENT1234")
    let page = try client.page(
      of: Self.request(client),
      pushed: .json(
        #"{"request_uri": "urn:example:bwc4JK-ESC0w8acc191e-Y1LTC2", "expires_in": 90}"#, status: 201))
    #expect(page.validFor == .seconds(90))
    #expect(
      page.uri.text == "https://server.example.com/authorize?client_id=CLIENT1234"
        + "&request_uri=urn%3Aexample%3Abwc4JK-ESC0w8acc191e-Y1LTC2")
  }

  @Test(arguments: [
    #"{"expires_in": 90}"#, #"{"request_uri": "", "expires_in": 90}"#,
    #"{"request_uri": ["a"]}"#, #"{"request_uri": "\#(String(repeating: "a", count: 4097))"}"#,
  ])
  func answersWithoutAReference(_ body: String) throws {
    let client = try Fixture.client(endpoints: Self.endpoint)
    let error = #expect(throws: OAuthError.self) {
      try client.page(of: Self.request(client), pushed: .json(body, status: 201))
    }
    switch error {
    case .missingField(.pushedAuthorizationRequest, .requestURI)?, nil: break
    case let other?: #expect(other == .malformedField(.pushedAuthorizationRequest, .requestURI))
    }
  }

  @Test(arguments: [("invalid_request", 400), ("invalid_client", 401), ("too_large", 413)])
  func refusals(_ code: String, _ status: Int) throws {
    let client = try Fixture.client(endpoints: Self.endpoint)
    let refusal = ErrorResponse(code: code, words: nil, status: status)
    #expect(throws: OAuthError.refused(.pushedAuthorizationRequest, refusal)) {
      try client.page(of: Self.request(client), pushed: .json(#"{"error": "\#(code)"}"#, status: status))
    }
  }

  /// The reference must not come from the descriptor, and the push answers a consent.
  @Test(arguments: [
    "request_uri: urn:x", "request: x", "redirect_uri: https://evil.example", "state: x", "client_id: x",
  ])
  func theDescriptorCannotSet(_ parameter: String) {
    #expect(throws: (any Error).self) {
      try Fixture.client(
        endpoints: "pushed_authorization_request: { url: https://provider.example/par, parameters: { \(parameter) } }")
    }
  }

  @Test func aDryRunShowsThePush() throws {
    let client = try Fixture.client("scope: [read]", endpoints: Self.endpoint)
    let shown = try Client(
      showing: client.descriptor, identifier: client.identifier, hasSecret: true, variables: client.variables)
    let planned = try LoginRequests(.authorizationCode, shown, scope: ["read"], hasToken: false)
    #expect(planned.requests.map(\.kind).prefix(3) == [.pushedAuthorizationRequest, .authorization, .token])
    #expect(planned.requests[1].query.map(\.name) == ["client_id", "request_uri"])
    #expect(planned.requests[1].query.map(\.value) == ["client-1", "<request_uri>"])
    guard case .form(let pairs) = planned.requests[0].body else { throw OAuthError.malformedPath }
    #expect(pairs.map(\.value).contains("<code_challenge>"))
  }
}
