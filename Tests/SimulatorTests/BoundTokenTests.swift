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

  /// The proofs of RFC 9449, 4.1 and 7.1, and the thumbprint of their key (6.1).
  @Test func proofsOfTheRFC() throws {
    let header =
      "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJo"
      + "RjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19."
    let proofs = [
      (
        "POST", "https://server.example.com/token", nil, 1_562_262_616,
        "eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwi"
          + "aWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg"
      ),
      (
        "GET", "https://resource.example.org/protectedresource", "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU",
        1_562_262_618,
        "eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0"
          + "ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9"
          + ".2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA"
      ),
    ]
    for (method, address, token, time, proof) in proofs {
      let play = try Self.play()
      play.clock.advance(seconds: Double(time) - 1_800_000_000)
      let request = HTTPRequest(
        method: method, uri: try URI(parsing: address), fields: ["DPoP": header + proof])
      let thumbprint = try play.simulation.value.provenKey(request, token: token)
      #expect(thumbprint == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")
      #expect(throws: Refusal.self) { try play.simulation.value.provenKey(request, token: "another") }
    }
  }

  /// The simulator knows no extension, so it must refuse each (RFC 7515, 4.1.11).
  @Test(arguments: [#""crit":["x"],"x":1"#, #""crit":["b64"],"b64":false"#, #""crit":[]"#, nil])
  func anExtension(_ members: String?) throws {
    let play = try Self.play()
    let credential = try play.login()
    let uri = try URI(parsing: Play.origin + "/simulator/resource")
    var request = try play.client.presenting(credential, on: HTTPRequest(method: "GET", uri: uri), nonce: play.nonce())
    let parts = try #require(request.fields["DPoP"]).split(separator: ".").map(String.init)
    let header = String(decoding: try #require(Base64.decodeURL(parts[0])), as: UTF8.self)
    let text =
      Base64.encodeURL(Array((header.dropLast() + (members.map { "," + $0 } ?? "") + "}").utf8)) + "." + parts[1]
    let key = try ECPrivateKey(pem: #require(credential.proofKey))
    request.fields.set("DPoP", text + "." + Base64.encodeURL(try key.signature(for: Array(text.utf8))))
    #expect(play.send(request).status == (members == nil ? 200 : 401))
    if members != nil { #expect(try play.lastRefusal()?.hasSuffix("its \"crit\" demands an extension") == true) }
  }

  /// The metadata leads to the provider's own endpoints, whose tokens are bound.
  @Test func theMetadataDemandsProofs() throws {
    let play = try Self.play()
    let issuer = try Issuer(Play.origin)
    let location = try #require(MetadataLocation.all(for: issuer).first)
    let metadata = try AuthorizationServerMetadata(play.send(location.request), of: issuer, at: location)
    #expect(metadata.proofAlgorithms == ["ES256"])
    #expect(try metadata.endpoints[.token] == play.client.descriptor.endpoints[.token]?.url.filled { _ in nil })
    let address = try Issuer(Play.origin + "/simulator/resource")
    let refusal = play.send(HTTPRequest(method: "GET", uri: address.uri))
    let place = try #require(try ProtectedResourceMetadata.location(in: refusal.challenges, of: address))
    let resource = try ProtectedResourceMetadata(
      play.send(ProtectedResourceMetadata.request(at: place)), of: address, at: place)
    #expect(resource.requiresProofs && resource.proofAlgorithms == ["ES256"])
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
