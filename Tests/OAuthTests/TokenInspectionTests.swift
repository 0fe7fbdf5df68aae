import CredmgrCryptography
import CredmgrHTTP
import CredmgrDescriptors
import Testing

@testable import CredmgrOAuth

struct TokenInspectionTests {
  private static let legs = """
    introspection: https://provider.example/introspect
    revocation: https://provider.example/revoke
    identity: https://provider.example/me
    """

  private static func client(_ more: String = "", legs: String = legs) throws -> Client {
    try Fixture.client(more, endpoints: legs)
  }

  private static var credential: Credential {
    var credential = Fixture.credential()
    credential.refreshToken = Secret("refresh-1")
    return credential
  }

  /// Sends the client's authentication (RFC 7662, 2.1).
  @Test func introspectionRequest() throws {
    let (leg, request) = try Self.client().validationRequest(Self.credential, nonce: Fixture.nonce)
    #expect(leg == .introspection)
    #expect(
      request.wire == """
        POST https://provider.example/introspect
        Authorization: Basic Y2xpZW50LTE6c2VjcmV0LTE=
        Content-Type: application/x-www-form-urlencoded
        Accept: application/json

        token=token-1&token_type_hint=access_token

        """)
  }

  @Test func withoutIntrospectionTheIdentityIsAsked() throws {
    let client = try Self.client(legs: "identity: https://provider.example/me")
    let (leg, request) = try client.validationRequest(Self.credential, nonce: Fixture.nonce)
    #expect(leg == .identity)
    #expect(
      request.wire == "GET https://provider.example/me\nAuthorization: Bearer token-1\nAccept: application/json\n")
    #expect(throws: OAuthError.noEndpoint(.identity)) {
      try Self.client(legs: "").validationRequest(Self.credential, nonce: Fixture.nonce)
    }
  }

  @Test(
    arguments: [
      // RFC 7662, 2.2
      (.json("{\"active\":true,\"scope\":\"a\"}"), "", .active), (.json("{\"active\":false}"), "", .inactive),
      (.json("{\"active\":\"true\"}"), "", .active), (.json("{}"), "", .inactive),
      (.json("{\"active\":null}"), "", .inactive), (.json("{\"error\":\"invalid_token\"}", status: 401), "", .inactive),
      (.json("{\"error\":\"invalid_token\"}"), "", .inactive), (.html("No", status: 404), "", .inactive),
      (.html("Yes"), "active: status", .active), (HTTPResponse(status: 204), "active: status", .active),
      (.html("No", status: 404), "active: status", .inactive),
      (.json("{\"state\":\"valid\"}"), "active: { path: state, equals: [valid, good] }", .active),
      (.json("{\"state\":\"good\"}"), "active: { path: state, equals: [valid, good] }", .active),
      (.json("{\"state\":\"Valid\"}"), "active: { path: state, equals: valid }", .inactive),
      (.json("{\"data\":{\"ok\":true}}"), "active: data.ok", .active),
    ] as [(HTTPResponse, String, Validity)])
  func introspectionAnswer(_ response: HTTPResponse, _ rule: String, _ validity: Validity) throws {
    let client = try Self.client(
      legs: "introspection:\n  url: https://provider.example/introspect\n  response: { \(rule) }")
    #expect(try client.validity(response, .introspection) == validity)
  }

  /// An unknown client says nothing about the token.
  @Test(arguments: ["invalid_client", "unauthorized_client", "invalid_request"])
  func refusalOfTheClient(_ code: String) throws {
    let refusal = ErrorResponse(code: code, words: nil, status: 401)
    #expect(throws: OAuthError.refused(.introspection, refusal)) {
      try Self.client().validity(.json("{\"error\":\"\(code)\"}", status: 401), .introspection)
    }
  }

  /// Providers whose status 401 does not say that a key is wrong.
  @Test(arguments: [
    ("resend", EndpointKind.identity, #"{"name":"restricted_api_key","message":"only sends"}"#),
    ("cloudflare", .introspection, #"{"success":false,"errors":[{"code":1000,"message":"Invalid API Token"}]}"#),
    ("mailgun", .identity, "Forbidden"),
    ("elevenlabs", .identity, #"{"detail":{"status":"missing_permissions","message":"misses user_read"}}"#),
  ]) func aKeyOfAnotherKind(_ provider: String, _ leg: EndpointKind, _ text: String) throws {
    let client = Client(unregistered: try ShippedDescriptors.load(provider))
    let response = HTTPResponse(status: 401, body: Array(text.utf8))
    #expect(throws: OAuthError.self) { try client.validity(response, leg) }
    // The control: the answer to an unknown key.
    if provider == "resend" {
      let unknown = HTTPResponse.json(#"{"name":"invalid_api_key","message":"API key is invalid"}"#, status: 401)
      #expect(try client.validity(unknown, leg) == .inactive)
    }
    if provider == "elevenlabs" {
      let unknown = HTTPResponse.json(#"{"detail":{"status":"invalid_api_key"}}"#, status: 401)
      #expect(try client.validity(unknown, leg) == .inactive)
    }
  }

  /// A token without the right to ask may be valid (RFC 6750, 3.1).
  @Test(arguments: ["{}", "{\"error\":\"insufficient_scope\"}", "{\"error\":\"access_denied\"}"])
  func aMissingRightSaysNothing(_ text: String) throws {
    for leg in [EndpointKind.introspection, .identity] {
      #expect(throws: OAuthError.self) { try Self.client().validity(.json(text, status: 403), leg) }
      let refusal = HTTPResponse.json("{\"error\":\"invalid_token\"}", status: 403)
      #expect(try Self.client().validity(refusal, leg) == .inactive)
    }
    let client = try Self.client(
      legs: "introspection:\n  url: https://provider.example/introspect\n  response: { active: status }")
    #expect(throws: OAuthError.self) { try client.validity(.json(text, status: 403), .introspection) }
  }

  @Test(arguments: [302, 429, 500]) func noAnswerAboutTheToken(_ status: Int) throws {
    for leg in [EndpointKind.introspection, .identity] {
      #expect(throws: OAuthError.self) { try Self.client().validity(.html("x", status: status), leg) }
    }
  }

  @Test(arguments: [(200, Validity.active), (401, .inactive), (404, .inactive)])
  func identityAnswer(_ status: Int, _ validity: Validity) throws {
    #expect(try Self.client().validity(.json("{\"login\":\"ana\"}", status: status), .identity) == validity)
  }

  /// Proxies and changed addresses also answer with status 200.
  @Test(arguments: ["<!doctype html><p>Sign in</p>", "{}", "[]", ""]) func noEvidence(_ text: String) throws {
    let response = HTTPResponse(status: 200, fields: ["Content-Type": "text/html"], body: Array(text.utf8))
    #expect(throws: OAuthError.self) { try Self.client().validity(response, .identity) }
  }

  @Test func aPageIsNoStatus() throws {
    let client = try Self.client(
      legs: "introspection:\n  url: https://provider.example/introspect\n  response: { active: status }")
    let page = HTTPResponse.html("<p>Sign in</p>")
    #expect(throws: OAuthError.noEvidence(.introspection)) { try client.validity(page, .introspection) }
  }

  @Test(arguments: [
    ("{\"status\":\"ok\",\"state\":\"valid\"}", Validity.active),
    ("{\"status\":\"ok\",\"state\":\"expired\"}", .inactive), ("{\"status\":\"error: token invalid.\"}", .inactive),
  ]) func l2p(_ text: String, _ validity: Validity) throws {
    let client = try Client(descriptor: ShippedDescriptors.load("l2p"), identifier: "c", secret: nil, variables: [:])
    #expect(try client.validity(.json(text), .introspection) == validity)
  }

  // MARK: Revocation

  /// Revokes the refresh token first, because that usually revokes the access tokens (RFC 7009, 2.1).
  @Test func revocationRequests() throws {
    let requests = try Self.client().revocationRequests(Self.credential, nonce: Fixture.nonce)
    #expect(
      requests.map(\.form) == [
        "token=refresh-1&token_type_hint=refresh_token", "token=token-1&token_type_hint=access_token",
      ])
    #expect(requests.map(\.uri.text) == Array(repeating: "https://provider.example/revoke", count: 2))
    let single = try Self.client().revocationRequests(Fixture.credential(), nonce: Fixture.nonce)
    #expect(single.map(\.form) == ["token=token-1&token_type_hint=access_token"])
    #expect(try Self.client(legs: "").revocationRequests(Self.credential, nonce: Fixture.nonce).isEmpty)
  }

  @Test(arguments: [
    HTTPResponse(status: 200), HTTPResponse(status: 204), .json("{}"), .html("Gone"), .json("{\"status\":\"ok\"}"),
    .json("{\"error\":\"invalid_token\"}"), .json("{\"error\":\"invalid_grant\"}", status: 400),
    .json("{\"error\":\"invalid_token\"}", status: 401),
  ]) func revoked(_ response: HTTPResponse) throws { try Self.client().checkRevocation(response) }

  /// GitHub deletes a token like a document. Elsewhere, status 404 means that the address is wrong.
  @Test func aDeletedTokenIsNotFound() throws {
    let legs = "revocation: { url: https://provider.example/revoke, method: DELETE }"
    let absent = HTTPResponse.json("{\"message\":\"Not Found\"}", status: 404)
    try Self.client(legs: legs).checkRevocation(absent)
    let page = HTTPResponse.html("Not found", status: 404)
    for (client, response) in try [(Self.client(legs: legs), page), (Self.client(), absent), (Self.client(), page)] {
      #expect(throws: OAuthError.self) { try client.checkRevocation(response) }
    }
  }

  @Test(arguments: [
    // RFC 7009, 2.2.1
    .json("{\"error\":\"unsupported_token_type\"}", status: 400), .json("{\"error\":\"invalid_client\"}", status: 401),
    // Some providers send errors with status 200.
    .json("{\"error\":\"invalid_request\"}"), .html("No", status: 403), .html("Later", status: 503),
    .html("There", status: 302), HTTPResponse(status: 422),
  ]) func notRevoked(_ response: HTTPResponse) {
    #expect(throws: OAuthError.self) { try Self.client().checkRevocation(response) }
  }

  // MARK: Identity

  @Test func accountName() throws {
    let client = try Self.client("account: user.login")
    #expect(try client.identity(.json("{\"user\":{\"login\":\"ana\"}}")).name == "ana")
    #expect(try client.identity(.json("{\"user\":{\"login\":17}}")).name == "17")
    #expect(try client.identity(.json("{}")).name == nil)
    #expect(try Self.client().identity(.json("{\"login\":\"ana\"}")).name == nil)
    let refusal = ErrorResponse(code: "http_401", words: nil, status: 401)
    #expect(throws: OAuthError.refused(.identity, refusal)) { try client.identity(.json("{}", status: 401)).name }
  }

  @Test func accountNameOfTheTokenAnswer() throws {
    let rules = "response: { keep: [principalID] }\naccount: principalID"
    var credential = Fixture.credential()
    credential.kept["principalID"] = "p"
    #expect(try Self.client(rules, legs: "").accountName(in: credential) == "p")
    // An identity endpoint takes precedence.
    #expect(try Self.client(rules).accountName(in: credential) == nil)
  }
}
