import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import Testing

@testable import CredmgrOAuth

/// Tests that a repeated parameter or member is an error (RFC 6749, 3.1).
struct RepeatedNameTests {
  private static func error(_ read: () throws -> Any) -> OAuthError? {
    do {
      _ = try read()
      return nil
    } catch {
      return error as? OAuthError
    }
  }

  // MARK: Redirects

  private static func redirect(
    _ text: String, _ more: String = "", grant: Grant = .authorizationCode
  ) throws -> AuthorizationResponse {
    let client = try Fixture.client(more, grant: grant.rawValue)
    let request = try client.authorizationRequest(
      grant, redirectURI: "http://127.0.0.1:1/cb", scope: [], random: KnownRandom(), nonce: Fixture.nonce)
    let parameters = FormParameters(decoding: text.replacing("STATE", with: request.state))
    return try client.authorizationResponse(parameters, to: request)
  }

  @Test(
    arguments: [
      ("code=1&code=2&state=STATE", "code"), ("code=1&code=1&state=STATE", "code"),
      ("code=1&c%6Fde=2&state=STATE", "code"), ("code=1&state=bad&state=STATE", "state"),
      ("code=1&state=STATE&state=bad", "state"), ("code=1&state=STATE&iss=a&iss=b", "iss"),
      ("error=a&error=b&state=STATE", "error"), ("code=1&realm=1&realm=2&state=STATE", "realm"),
    ])
  func aRedirectThatKnowsTheState(_ text: String, _ name: String) {
    let more = "response: { keep: [realm] }"
    #expect(Self.error { try Self.redirect(text, more) } == .repeated(.authorization, name: name))
  }

  /// Any page can send a browser to the waiting port, so this does not end the login.
  @Test(arguments: ["code=1&code=2&state=x", "code=1&state=x&state=y", "code=1&code=2"])
  func aRedirectThatDoesNotKnowTheState(_ text: String) throws {
    for more in ["", "state: optional"] {
      let error = try #require(Self.error { try Self.redirect(text, more) })
      #expect(error.isStray)
    }
  }

  @Test func theTokenOfAnImplicitGrant() throws {
    #expect(
      Self.error { try Self.redirect("access_token=a&access_token=b&state=STATE", grant: .implicit) }
        == .repeated(.authorization, name: "access_token"))
    #expect(throws: Never.self) { try Self.redirect("access_token=a&token_type=bearer&state=STATE", grant: .implicit) }
  }

  @Test func unreadFieldsMayRepeat() throws {
    #expect(throws: Never.self) { try Self.redirect("code=1&state=STATE&ui=a&ui=b") }
  }

  @Test func theVerifierOfOAuth1() throws {
    let client = try Fixture.client(grant: "oauth1", endpoints: "temporary_credentials: https://provider.example/r")
    let temporary = TemporaryCredentials(token: Secret("tt"), secret: Secret("s"), callback: "http://127.0.0.1:1/")
    func read(_ text: String) throws -> ResourceOwnerAuthorization {
      try client.resourceOwnerAuthorization(FormParameters(decoding: text), to: temporary)
    }
    #expect(throws: Never.self) { try read("oauth_token=tt&oauth_verifier=v") }
    for name in ["oauth_token", "oauth_verifier"] {
      #expect(
        Self.error { try read("oauth_token=tt&oauth_verifier=v&\(name)=x") } == .repeated(.authorization, name: name))
    }
    #expect(Self.error { try read("oauth_token=x&oauth_verifier=v&oauth_verifier=w") } == .tokenMismatch)
  }

  // MARK: Answers

  private static func answer(_ response: HTTPResponse, _ more: String = "") throws -> Credential {
    try Fixture.client(more).outcome(response, .token, grant: .authorizationCode, scope: [], now: Fixture.now).issued()
      .credential
  }

  @Test(arguments: [
    (#"{"access_token":"a","access_token":"b"}"#, "", "access_token"),
    (#"{"access_token":"a","\u0061ccess_token":"b"}"#, "", "access_token"),
    (#"{"access_token":"a","refresh_token":"b","refresh_token":"c"}"#, "", "refresh_token"),
    (#"{"access_token":"a","token_type":"mac","token_type":"bearer"}"#, "", "token_type"),
    (#"{"access_token":"a","error":"x","error":null}"#, "", "error"),
    (#"{"data":{"t":"a"},"data":{"t":"b"}}"#, "response: { fields: { access_token: data.t } }", "data.t"),
    (#"{"body":{"access_token":"a"},"body":{"access_token":"b"}}"#, "response: { within: body }", "body"),
    (#"{"access_token":"a","dc":"us1","dc":"us2"}"#, "response: { keep: [dc] }", "dc"),
  ]) func aRepeatedMember(_ json: String, _ more: String, _ name: String) {
    #expect(Self.error { try Self.answer(.json(json), more) } == .repeated(.token, name: name))
  }

  @Test func aFieldOfAForm() throws {
    let more = "response_format: form"
    #expect(
      Self.error { try Self.answer(.form("access_token=a&access_token=b"), more) }
        == .repeated(.token, name: "access_token"))
    #expect(try Self.answer(.form("access_token=a&x=1&x=2"), more).accessToken == Secret("a"))
  }

  @Test func unreadMembersMayRepeat() throws {
    let json = #"{"access_token":"a","x":1,"x":2,"user":{"access_token":"b","access_token":"c"}}"#
    #expect(try Self.answer(.json(json)).accessToken == Secret("a"))
  }

  /// The access token is ambiguous, but the new refresh token may be the only valid one.
  @Test func aRefreshLosesNothing() throws {
    var previous = Fixture.credential()
    previous.refreshToken = Secret("refresh-1")
    func outcome(_ json: String) throws -> TokenOutcome {
      try Fixture.client().outcome(.json(json), .refresh, refreshing: previous, now: Fixture.now)
    }
    var rotated = previous
    rotated.refreshToken = Secret("refresh-2")
    #expect(
      try outcome(#"{"access_token":"a","access_token":"b","refresh_token":"refresh-2"}"#)
        == .rotated(rotated, .repeated(.refresh, name: "access_token")))
    let ambiguous = try outcome(#"{"access_token":"a","refresh_token":"b","refresh_token":"c"}"#)
    #expect(ambiguous == .failed(.repeated(.refresh, name: "refresh_token")))
  }

  @Test func otherEndpoints() throws {
    let client = try Fixture.client(
      endpoints: """
        introspection: https://provider.example/i
        device_authorization: https://provider.example/d
        """)
    #expect(
      Self.error { try client.validity(.json(#"{"active":false,"active":true}"#), .introspection) }
        == .repeated(.introspection, name: "active"))
    let device =
      #"{"device_code":"d","user_code":"u","verification_uri":"https://a.example","verification_uri":"https://b.example"}"#
    #expect(
      Self.error { try client.deviceAuthorization(.json(device), scope: [], now: Fixture.now) }
        == .repeated(.deviceAuthorization, name: "verification_uri"))
  }
}
