import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrText
import Testing

@testable import CredmgrSimulator

/// The simulator plays CIBA in poll mode and authorization details.
struct BackchannelTests {
  static let text = """
    provider: test
    grant: [ciba, client_credentials]
    endpoints:
      backchannel_authentication: https://provider.example/bc-authorize
      token: https://provider.example/token
    authorization_details: { types: [read] }
    scope: [openid]
    hosts: [api.provider.example]
    """

  private static func play() throws -> Play {
    let library = DescriptorLibrary(directories: []) { _ in nil }
    return try Play(
      library.load(Array(Self.text.utf8), name: "test").descriptor, variables: ["login_hint": "ada"])
  }

  private static func typed() -> Credential {
    var typed = Credential(grant: .ciba, accessToken: Secret(""), obtainedAt: 0)
    typed.requestedScope = ["openid"]
    return typed
  }

  private static func pending(_ play: Play, message: String? = "BCDF-GHJK") throws -> BackchannelAuthentication {
    let request = try play.client.backchannelRequest(typed(), bindingMessage: message, nonce: play.nonce())
    return try play.client.backchannelAuthentication(
      play.send(request), typed(), bindingMessage: message, now: play.clock.now)
  }

  private static func poll(_ play: Play, _ pending: BackchannelAuthentication) throws -> DeviceAnswer {
    let answer = play.send(try play.client.backchannelTokenRequest(pending, nonce: play.nonce()))
    return try play.client.backchannelAnswer(answer, to: pending, now: play.clock.now)
  }

  @Test func theUserConfirms() throws {
    let play = try Self.play()
    let pending = try Self.pending(play)
    play.clock.advance(seconds: 5)
    #expect(try Self.poll(play, pending) == .pending)
    play.clock.advance(seconds: 1)
    guard case .slowDown = try Self.poll(play, pending) else {
      Issue.record("polling too fast")
      return
    }
    let decision = try play.post(
      "/simulator/device", [("user_code", "BCDF-GHJK"), ("account", "ada"), ("decision", "approve")])
    #expect(decision.status == 200)
    play.clock.advance(seconds: 10)
    guard case .issued(let credential, _) = try Self.poll(play, pending) else {
      Issue.record("no token")
      return
    }
    #expect(credential.idToken != nil && credential.refreshToken != nil)
    #expect(try play.resource(credential).status == 200)
  }

  @Test func theUserRefuses() throws {
    let play = try Self.play()
    let pending = try Self.pending(play)
    _ = try play.post("/simulator/device", [("user_code", "BCDF-GHJK"), ("decision", "deny")])
    play.clock.advance(seconds: 5)
    #expect(throws: OAuthError.self) { try Self.poll(play, pending) }
    #expect(try play.lastRefusal() == Refusal.denied.sentence)
  }

  @Test func badRequestsAreRefused() throws {
    let play = try Self.play()
    #expect(throws: OAuthError.self) { try Self.pending(play, message: nil) }
    #expect(throws: OAuthError.self) { try Self.pending(play, message: String(repeating: "x", count: 65)) }
    #expect(try play.lastRefusal() == Refusal.wrongBindingMessage.sentence)
    let request = try play.client.backchannelRequest(Self.typed(), bindingMessage: "M", nonce: play.nonce())
    let form = FormParameters(decoding: String(decoding: request.body, as: UTF8.self))
    func refusal(_ change: (inout FormParameters) -> Void) throws -> String? {
      var changed = (request, form)
      change(&changed.1)
      changed.0.body = Array(changed.1.encoded.utf8)
      #expect(play.send(changed.0).status == 400)
      return try play.lastRefusal()
    }
    #expect(try refusal { $0.append("id_token_hint", "x") } == Refusal.hints.sentence)
    #expect(try refusal { $0.remove("login_hint") } == Refusal.hints.sentence)
    #expect(try refusal { $0.append("authorization_details", "[{\"type\":\"pay\"}]") } == Refusal.wrongDetails.sentence)
    _ = try refusal { parameters in
      parameters.remove("scope")
      parameters.append("scope", "email")
    }
  }

  @Test func detailsAreGranted() throws {
    let play = try Self.play()
    for (text, status) in [(#"[{"type":"read","n":1}]"#, 200), (#"[{"type":"pay"}]"#, 400), ("[]", 400), ("x", 400)] {
      guard let details = AuthorizationDetails(text) else {
        let request = try play.client.clientCredentialsRequest(scope: ["openid"], nonce: play.nonce())
        var changed = request
        changed.body += Array(("&authorization_details=" + PercentEncoding.encode(text)).utf8)
        #expect(play.send(changed).status == status)
        continue
      }
      let answer = play.send(
        try play.client.clientCredentialsRequest(scope: ["openid"], details: details, nonce: play.nonce()))
      #expect(answer.status == status)
      if status == 200 { #expect(answer.text.contains(#""authorization_details":[{"type":"read","n":1}]"#)) }
    }
  }
}
