import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth
import Testing

@testable import CredmgrSimulator
import CredmgrText

/// Tests proofs of possession (RFC 9449) against the simulator's own verification.
struct BoundTokenTests {
  private static func play(_ faults: [Fault] = []) throws -> Play {
    var settings = SimulationSettings()
    settings.faults = faults
    return try Play(Descriptors.bound, settings)
  }

  @Test func loginRequestAndRefresh() throws {
    let play = try Self.play()
    let credential = try play.login()
    #expect(credential.tokenType == "DPoP")
    #expect(try play.resource(credential, "PUT").status == 200)
    let identity = play.send(try play.client.identityRequest(credential, nonce: play.nonce()))
    #expect(try play.client.identity(identity).name == "ada")
    let refreshed = try play.refresh(credential)
    #expect(try play.resource(refreshed).status == 200)
    #expect(try play.log("refusals") == 0)
  }

  @Test func aStolenTokenIsOfNoUse() throws {
    let play = try Self.play()
    let credential = try play.login()
    let uri = try URI(parsing: Play.origin + "/simulator/resource")
    var request = try play.client.presenting(
      credential, on: HTTPRequest(method: "GET", uri: uri), nonce: play.nonce())
    #expect(play.send(request).status == 200)
    #expect(play.send(request).status == 401)
    #expect(try play.lastRefusal() == "the DPoP proof is invalid: its \"jti\" was already used")
    request.fields.set("DPoP", "")
    #expect(play.send(request).status == 401)
    request.fields = ["Authorization": "Bearer " + credential.accessToken.reveal()]
    #expect(play.send(request).status == 401)
    var other = credential
    other.proofKey = ECPrivateKey.pem(random: SystemRandomSource())
    #expect(try play.resource(other).status == 401)
    #expect(try play.lastRefusal() == "the DPoP proof is made with another key")
    // The refresh token of a public client is bound as well.
    let answer = play.send(try play.client.refreshRequest(other, nonce: play.nonce()))
    #expect(try answer.json()["error"]?.text == "invalid_grant")
  }

  @Test(arguments: [
    ("POST", "/simulator/resource", 0, "\"htm\" is another method"),
    ("GET", "/simulator/resource/x", 0, "\"htu\" is another URL, or has a query"),
    ("GET", "/simulator/resource", 61, "\"iat\" is missing or differs too much from the current time"),
    ("GET", "/simulator/resource", -61, "\"iat\" is missing or differs too much from the current time"),
  ])
  func aProofForAnotherRequest(_ method: String, _ path: String, _ seconds: Double, _ reason: String) throws {
    let play = try Self.play()
    let credential = try play.login()
    let made = HTTPRequest(method: "GET", uri: try URI(parsing: Play.origin + "/simulator/resource"))
    let nonce = RequestNonce(timestamp: play.clock.now - .seconds(seconds), text: "n")
    var request = try play.client.presenting(credential, on: made, nonce: nonce)
    (request.method, request.uri) = (method, try URI(parsing: Play.origin + path))
    #expect(play.send(request).status == 401)
    #expect(try play.lastRefusal() == "the DPoP proof is invalid: " + reason)
  }

  /// The code works only with the key of the authorization request.
  @Test func aStolenCodeIsOfNoUse() throws {
    let play = try Self.play()
    let request = try play.authorization(.authorizationCode, scope: [])
    let response = try play.client.authorizationResponse(
      play.decide(play.page(of: request)).queryParameters, to: request)
    var thief = play.client
    thief.bindingKey = ECPrivateKey.pem(random: SystemRandomSource())
    #expect(play.send(try thief.tokenRequest(response, nonce: play.nonce())).status == 400)
    #expect(try play.lastRefusal() == "the DPoP proof is made with another key")
  }

  @Test func deviceLogin() throws {
    let play = try Self.play()
    let device = try play.deviceAuthorization()
    let decision: FormParameters = [("user_code", device.userCode), ("account", "ada"), ("decision", "approve")]
    #expect(try play.post("/simulator/device", decision).status == 200)
    let credential = try #require(play.poll(device, after: 5).credential)
    #expect(try play.resource(credential).status == 200)
  }

  @Test func nonces() throws {
    let play = try Self.play([.proofNonce])
    let request = try play.authorization(.authorizationCode, scope: [])
    let response = try play.client.authorizationResponse(
      play.decide(play.page(of: request)).queryParameters, to: request)
    let nonce = play.nonce()
    let answer = play.send(try play.client.tokenRequest(response, nonce: nonce))
    #expect(try answer.json()["error"]?.text == "use_dpop_nonce")
    let binding = play.client.binding(of: .authorizationCode)
    let next = try #require(binding.nonce(demandedBy: answer, after: nonce))
    let second = play.send(try play.client.tokenRequest(response, nonce: next))
    #expect(second.status == 200)
    #expect(second.fields["DPoP-Nonce"] != nil && second.fields["DPoP-Nonce"] != next.demanded)
    let credential = try play.client.outcome(second, after: response, now: play.clock.now).issued().credential
    let page = HTTPRequest(method: "GET", uri: try URI(parsing: Play.origin + "/simulator/resource"))
    let refused = play.send(try play.client.presenting(credential, on: page, nonce: play.nonce()))
    #expect(refused.status == 401 && refused.proofFault == "use_dpop_nonce")
    #expect(play.client.binding(of: credential).nonce(demandedBy: refused, after: play.nonce()) != nil)
  }
}
