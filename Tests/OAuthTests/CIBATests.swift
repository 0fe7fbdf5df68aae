import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText
import Testing

@testable import CredmgrOAuth

/// Client-initiated backchannel authentication in poll mode (OpenID Connect CIBA Core 1.0).
struct CIBATests {
  private static func client(_ leg: String = "https://provider.example/bc-authorize") throws -> Client {
    try Fixture.client(
      "scope: [openid, email]", grant: "ciba", endpoints: "backchannel_authentication: \(leg)",
      variables: ["login_hint": "janedoe@example.com"])
  }

  private static func typed() -> Credential {
    var typed = Fixture.credential("", grant: .ciba)
    typed.requestedScope = ["openid", "email"]
    return typed
  }

  private static let acknowledgement = HTTPResponse.json(
    #"{"auth_req_id": "1c266114-a1be-4252-8ad1-04986c5b9ac1", "expires_in": 120, "interval": 2}"#)

  private static func pending(_ client: Client) throws -> BackchannelAuthentication {
    try client.backchannelAuthentication(acknowledgement, typed(), bindingMessage: "W4SCT", now: Fixture.now)
  }

  /// The values of the examples in 7.1, 7.3 and 10.1.
  @Test func examplesOfTheSpecification() throws {
    let client = try Self.client()
    let request = try client.backchannelRequest(Self.typed(), bindingMessage: "W4SCT", nonce: Fixture.nonce)
    #expect(request.uri.text == "https://provider.example/bc-authorize" && request.method == "POST")
    #expect(request.form == "scope=openid%20email&login_hint=janedoe%40example.com&binding_message=W4SCT")
    #expect(request.fields["Authorization"]?.hasPrefix("Basic ") == true)
    let pending = try Self.pending(client)
    #expect(pending.polling.next(now: Fixture.now) == .wait(.seconds(2)))
    #expect(pending.polling.timeLeft(now: Fixture.now) == .seconds(120))
    let poll = try client.backchannelTokenRequest(pending, nonce: Fixture.nonce)
    #expect(poll.uri.text == "https://provider.example/token")
    #expect(
      poll.form == "grant_type=urn%3Aopenid%3Aparams%3Agrant-type%3Aciba"
        + "&auth_req_id=1c266114-a1be-4252-8ad1-04986c5b9ac1")
  }

  /// 7.1, `acr_values`; RFC 8707, 2.2
  @Test func resourceAndAuthentication() throws {
    let client = try Fixture.client(
      "resource: https://api.example", grant: "ciba",
      endpoints: "backchannel_authentication: https://provider.example/bc-authorize")
    let request = try client.backchannelRequest(
      Self.typed(), demanding: ConsentDemands(authenticationContexts: ["gold", "silver"]), bindingMessage: nil,
      nonce: Fixture.nonce)
    #expect(request.form.hasSuffix("&resource=https%3A%2F%2Fapi.example&acr_values=gold%20silver"))
  }

  /// 7.3: without an interval, the client polls every 5 seconds.
  @Test func theStandardInterval() throws {
    let client = try Self.client()
    let pending = try client.backchannelAuthentication(
      .json(#"{"auth_req_id": "r", "expires_in": 60}"#), Self.typed(), bindingMessage: nil, now: Fixture.now)
    #expect(pending.polling.next(now: Fixture.now) == .wait(.seconds(5)))
  }

  @Test(arguments: [
    (#"{"expires_in": 120}"#, OAuthError.missingField(.backchannelAuthentication, .authReqID)),
    (#"{"auth_req_id": "r", "expires_in": "x"}"#, .malformedField(.backchannelAuthentication, .expiresIn)),
    (
      #"{"error": "unknown_user_id"}"#,
      .refused(.backchannelAuthentication, ErrorResponse(code: "unknown_user_id", words: nil, status: 200))
    ),
  ]) func faultyAcknowledgements(_ body: String, _ error: OAuthError) throws {
    let client = try Self.client()
    #expect(throws: error) {
      try client.backchannelAuthentication(.json(body), Self.typed(), bindingMessage: nil, now: Fixture.now)
    }
  }

  @Test func answersToAPoll() throws {
    let client = try Self.client()
    let pending = try Self.pending(client)
    func answer(_ body: String, _ status: Int = 400) throws -> DeviceAnswer {
      try client.backchannelAnswer(.json(body, status: status), to: pending, now: Fixture.now)
    }
    #expect(try answer(#"{"error": "authorization_pending"}"#) == .pending)
    #expect(try answer(#"{"error": "slow_down"}"#) == .slowDown(interval: nil))
    #expect(throws: OAuthError.deviceCodeExpired) { try answer(#"{"error": "expired_token"}"#) }
    #expect(
      throws: OAuthError.refused(
        .backchannelToken, ErrorResponse(code: "access_denied", words: nil, status: 400))
    ) { try answer(#"{"error": "access_denied"}"#) }
    guard case .issued(let credential, _) = try answer(#"{"access_token": "G5kXH2wHvUra0sHlDy1iTkDJgsgUO1bN"}"#, 200)
    else {
      Issue.record("no token")
      return
    }
    #expect(credential.grant == .ciba && credential.requestedScope == ["openid", "email"])
  }

  /// 7.1: the message is short and plain, and new for each login; a descriptor may drop it.
  @Test func bindingMessages() throws {
    let message = try #require(try Self.client().bindingMessage(random: KnownRandom()))
    #expect(message.utf8.count == 9 && message.utf8.allSatisfy { (0x41...0x5A).contains($0) || $0 == 0x2D })
    let without = try Self.client("{ url: https://provider.example/bc, parameters: { binding_message: null } }")
    #expect(without.bindingMessage(random: KnownRandom()) == nil)
    let request = try without.backchannelRequest(Self.typed(), bindingMessage: nil, nonce: Fixture.nonce)
    #expect(!request.form.contains("binding_message"))
    let own = try Self.client("{ url: https://provider.example/bc, parameters: { binding_message: Hello } }")
    #expect(own.bindingMessage(random: KnownRandom()) == "Hello")
  }
}
