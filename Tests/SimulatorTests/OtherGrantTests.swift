import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrMessages
import CredmgrOAuth
import CredmgrDescriptors
import Testing

@testable import CredmgrCommands
@testable import CredmgrSimulator
import CredmgrText

struct ImplicitTests {
  private func login(_ play: Play, scope: [String]) throws -> Credential {
    let request = try play.authorization(.implicit, scope: scope)
    let target = try play.decide(request.uri)
    #expect(target.query == nil)
    let parameters = FormParameters(decoding: try #require(target.fragment))
    #expect(parameters[first: "state"] == request.state)
    return try play.client.credential(
      play.client.authorizationResponse(parameters, to: request), now: play.clock.now)
  }

  @Test("the fragment contains the token and the kept fields, and requests present both") func fragment() throws {
    let play = try Play(Descriptors.oclc)
    let credential = try login(play, scope: ["WMS_NCIP"])
    #expect(credential.kept == ["principalID": "ada", "principalIDNS": "sample-principalIDNS"])
    #expect(credential.refreshToken == nil)
    #expect(play.client.accountName(in: credential) == "ada")
    #expect(try play.resource(credential).status == 200)
    var other = credential
    other.kept["principalIDNS"] = "other"
    #expect(try play.resource(other).status == 401)
    #expect(try play.lastRefusal() == Refusal.wrongValue("principalIDNS").sentence)
    other.kept["principalIDNS"] = nil
    #expect(try play.resource(other).status == 401)
    #expect(try play.lastRefusal() == "\"principalIDNS\" is missing")
  }

  @Test("the moment of expiry is in the declared form") func expiresAt() throws {
    let play = try Play(Descriptors.oclc)
    let request = try play.authorization(.implicit, scope: ["WMS_NCIP"])
    let parameters = FormParameters(decoding: try play.decide(request.uri).fragment ?? "")
    #expect(parameters[first: "expires_at"] == "2027-01-15 09:00:00Z")
  }

  @Test("a scope requests a refresh token, and a refresh sends only the client identifier") func refresh() throws {
    let play = try Play(Descriptors.oclc)
    let credential = try login(play, scope: ["WMS_NCIP", "refresh_token"])
    let refreshed = try play.refresh(credential)
    #expect(try play.resource(refreshed).status == 200)
  }

  @Test("a variable that was set must have its value, and others may have any value") func variables() throws {
    #expect(throws: Never.self) {
      _ = try login(Play(Descriptors.oclc, variables: ["institution": "128807"]), scope: [])
    }
    var settings = SimulationSettings()
    settings.variables = ["institution": "1"]
    let play = try Play(Descriptors.oclc, settings, variables: ["institution": "128807"])
    let request = try play.authorization(.implicit, scope: [])
    _ = play.send(HTTPRequest(method: "GET", uri: request.uri))
    #expect(try play.lastRefusal() == Refusal.wrongValue("authenticatingInstitutionId").sentence)
  }
}

struct DeviceTests {
  @Test("polling waits, slows down and ends; the code works once", arguments: [Descriptors.l2p, Descriptors.gitHub])
  func wholeWay(_ sample: Sample) throws {
    let play = try Play(sample)
    let authorization = try play.deviceAuthorization()
    #expect(try play.poll(authorization, after: 5).isPending)
    #expect(try play.poll(authorization, after: 1).isSlowDown)
    let complete = try #require(authorization.verificationURIComplete)
    let page = try play.get(complete)
    #expect(page.text.hidden("user_code") == authorization.userCode)
    let form: FormParameters = [
      ("user_code", authorization.userCode.lowercased()), ("account", "grace"), ("decision", "approve"),
    ]
    #expect(try play.post("/simulator/device", form).status == 200)
    let credential = try #require(play.poll(authorization, after: 15).credential)
    #expect(try play.resource(credential).json()["account"]?.text == "grace")
    #expect(try play.resource(play.refresh(credential)).status == 200)
    #expect(throws: OAuthError.self) { try play.poll(authorization, after: 15) }
    #expect(try play.log("polls") == 4)
    #expect(try play.log("slow_downs") == 1)
  }

  @Test("errors use the provider's own words, with status 200") func words() throws {
    let play = try Play(Descriptors.l2p)
    let authorization = try play.deviceAuthorization()
    let answer = play.send(try play.client.deviceTokenRequest(authorization, nonce: play.nonce()))
    #expect(answer.status == 200)
    #expect(try answer.json()["status"]?.text == "authorization pending")
    #expect(try play.post("/simulator/approve-device").status == 200)
    play.clock.advance(seconds: 10)
    let good = play.send(try play.client.deviceTokenRequest(authorization, nonce: play.nonce()))
    #expect(try good.json()["status"]?.text == "ok")
    #expect(try play.post("/simulator/approve-device").status == 404)
  }

  @Test("slow down makes the interval longer, as declared") func interval() throws {
    let play = try Play(Descriptors.l2p)
    let authorization = try play.deviceAuthorization()
    _ = try play.poll(authorization, after: 5)
    #expect(try play.poll(authorization, after: 4).isSlowDown)
    // Six seconds from now on.
    #expect(try play.poll(authorization, after: 5.5).isSlowDown)
    #expect(try play.poll(authorization, after: 7.3).isPending)
  }

  @Test("a denial, and an expired code") func ends() throws {
    let play = try Play(Descriptors.gitHub)
    let denied = try play.deviceAuthorization()
    _ = try play.post("/simulator/device", [("user_code", denied.userCode), ("decision", "deny")])
    #expect { try play.poll(denied, after: 5) } throws: { error in
      if case .refused(_, let response)? = error as? OAuthError {
        response.code == "access_denied"
      } else {
        false
      }
    }
    let late = try play.deviceAuthorization()
    #expect(throws: OAuthError.deviceCodeExpired) { try play.poll(late, after: 905) }
  }

  @Test("one provider ignores a token in a header, and others ignore a token in the query") func presentation() throws {
    let play = try Play(Descriptors.l2p)
    let authorization = try play.deviceAuthorization()
    _ = try play.post("/simulator/approve-device?user_code=" + authorization.userCode)
    let credential = try #require(play.poll(authorization, after: 5).credential)
    let uri = try URI(parsing: Play.origin + "/simulator/resource")
    let token = credential.accessToken.reveal()
    let inHeader = HTTPRequest(method: "GET", uri: uri, fields: ["Authorization": "Bearer " + token])
    #expect(play.send(inHeader).status == 401)
    let inBoth = HTTPRequest(
      method: "GET", uri: uri.adding(query: [("accessToken", token)]), fields: ["Authorization": "Bearer " + token])
    #expect(play.send(inBoth).status == 401)
    let inQuery = HTTPRequest(method: "GET", uri: uri.adding(query: [("accessToken", token)]))
    #expect(play.send(inQuery).status == 200)
  }
}

struct OAuth1Tests {
  /// A key only for these tests.
  private static let key = Secret(
    """
    -----BEGIN PRIVATE KEY-----
    MIICdQIBADANBgkqhkiG9w0BAQEFAASCAl8wggJbAgEAAoGBAOJJvTNp/nJiKOtE
    sd7HtR9c5Ya0N+RqjkS6A0euUhUcDn+AKp7IhTl4eui177/HO/EqcKUsf8yO7r4j
    ew9bMI9RfdnWuKDa8sNhBD3xpqYG6OLQj/hwYVnxi3kAqhF4JVw2IgpVqo66MwqW
    p96Lt6gHtIUmL2sN5ruwDALvSkfzAgMBAAECgYBbYtJBCEZVJWVHFlgLE3YHM3oS
    e4ey/IF2KfUXJsRJeCo2vaj4tRxwiEKC5q7rMWf4zl3tptn536N1MFkLa5VhGWyb
    1j+bUw/1XrzkSgWNcOpAgcMB2v6odDOdw69U0GsVAVO/PKmgBjFgP494lrUVnhcy
    ViemOwhnoDrXlHNYYQJBAPIygR6Pom7vUJWknYLK6JoZF9RbnbMoWjlXTDPOLCQv
    kkZoWcF587uZbBuFdmWl+1W8vXS1SchiCgPT5XUSVBECQQDvLyEsCoejWzix866k
    hcHerayYI2l9VNJ2sRq1uzU3BW9IU78kPhn8S06O8jyaC2daFggAdlMxqhTMm4yr
    M0/DAkAx4vs7i0Re60ZC/HxBI4BTtVV2NUS/UVF8PCIDDbWD4pSTkgzi0DbG7mwZ
    Ix1nBJBHca/oaSsAbkk3zp6VxaexAkBytBJfcYlMsOGGjYsyQScRKA6+QzVCspvf
    6d0aS/YgNc4BTJA8zD9f+6ln6glgApoE3M3nktcg2STyXqJeM9RLAkAdUtjtpT3W
    OJSzUwHbnZ7wI3QRMGQD+uDcDe3maC8p5hV8XOLIaS+PQ7DDJrcMQl+dAlJ77H18
    N4FEY9rYRJzZ
    -----END PRIVATE KEY-----
    """)

  struct Way: CustomTestStringConvertible {
    let method: SignatureMethod
    let transport: SignatureTransport
    var testDescription: String { method.rawValue + " in the " + transport.rawValue }
  }

  static let ways = SignatureMethod.allCases.flatMap { method in
    SignatureTransport.allCases.map { Way(method: method, transport: $0) }
  }

  private func play(_ way: Way, _ settings: SimulationSettings = SimulationSettings()) throws -> Play {
    var settings = settings
    settings.variables["signature_method"] = way.method.rawValue
    settings.variables["transport"] = way.transport.rawValue
    return try Play(Descriptors.oauth1, settings, secret: way.method.isRSA ? Self.key : Secret("s3 cret"))
  }

  private func login(_ play: Play) throws -> Credential {
    let temporary = try play.temporaryCredentials()
    let target = try play.decide(play.page(temporary))
    return try play.credential(temporary, play.client.resourceOwnerAuthorization(target.queryParameters, to: temporary))
  }

  @Test("a login, a request, and the renewal of a session", arguments: ways) func wholeWay(_ way: Way) throws {
    let play = try play(way)
    let credential = try login(play)
    #expect(credential.kept["screen_name"] == "ada")
    #expect(credential.expiresAt == play.clock.now + .seconds(3600))
    #expect(try play.resource(credential).status == 200)
    #expect(try play.resource(credential, "POST").status == 200)
    play.clock.advance(seconds: 3600)
    #expect(try play.resource(credential).status == 401)
    let refreshed = try play.renewed(credential)
    #expect(refreshed.accessToken != credential.accessToken)
    #expect(try play.resource(refreshed).status == 200)
    #expect(try play.log("refreshes") == 1)
  }

  @Test("a wrong secret, a reused nonce, an old timestamp and a wrong place are refused") func refusals() throws {
    let play = try play(Way(method: .hmacSHA256, transport: .header))
    let credential = try login(play)
    let uri = try URI(parsing: Play.origin + "/simulator/resource?a=b%20c&a=")
    let get = HTTPRequest(method: "GET", uri: uri)
    func reason(_ request: HTTPRequest) throws -> String? {
      #expect(play.send(request).status == 401)
      return try play.lastRefusal()
    }
    let good = try play.client.presenting(credential, on: get, nonce: play.nonce())
    #expect(play.send(good).status == 200)
    #expect(try reason(good) == Refusal.nonceUsed.sentence)
    var wrong = credential
    wrong.tokenSecret = Secret("other")
    let badlySigned = try play.client.presenting(wrong, on: get, nonce: play.nonce())
    #expect(try reason(badlySigned) == Refusal.wrongSignature.sentence)
    var altered = try play.client.presenting(credential, on: get, nonce: play.nonce())
    altered.uri = altered.uri.adding(query: [("more", "x")])
    #expect(try reason(altered) == Refusal.wrongSignature.sentence)
    let old = RequestNonce(timestamp: play.clock.now - .seconds(3600), text: "old")
    let tooOld = try play.client.presenting(credential, on: get, nonce: old)
    #expect(try reason(tooOld) == Refusal.timestampOutOfRange.sentence)
    let inQuery = try self.play(Way(method: .hmacSHA256, transport: .query))
    let misplaced = try inQuery.client.presenting(credential, on: get, nonce: play.nonce())
    #expect(try reason(misplaced) == Refusal.protocolParametersMisplaced(expected: .header).sentence)
    let bearer = HTTPRequest(
      method: "GET", uri: uri, fields: ["Authorization": "Bearer " + credential.accessToken.reveal()])
    #expect(try reason(bearer) == Refusal.protocolParametersMisplaced(expected: .header).sentence)
  }

  @Test("temporary credentials are exchanged once, with the verifier, after the consent") func verifier() throws {
    let play = try play(Way(method: .hmacSHA1, transport: .header))
    let temporary = try play.temporaryCredentials()
    let guess = try play.client.resourceOwnerAuthorization(
      [("oauth_token", temporary.token.reveal()), ("oauth_verifier", "guess")], to: temporary)
    func reason(_ authorization: ResourceOwnerAuthorization) throws -> String? {
      let request = try play.client.tokenRequest(temporary, authorization, nonce: play.nonce())
      #expect(play.send(request).status == 401)
      return try play.lastRefusal()
    }
    #expect(try reason(guess) == Refusal.notAuthorized.sentence)
    let target = try play.decide(play.page(temporary))
    #expect(try reason(guess) == Refusal.wrongVerifier.sentence)
    let right = try play.client.resourceOwnerAuthorization(target.queryParameters, to: temporary)
    #expect(play.send(try play.client.tokenRequest(temporary, right, nonce: play.nonce())).status == 200)
    #expect(try reason(right) == Refusal.temporaryCredentialsUnknown.sentence)
  }

  @Test(
    "RSA requires a key, and an unknown method is refused", arguments: [("RSA-SHA1", "requires"), ("ROT13", "is not")])
  func starts(_ method: String, _ words: String) throws {
    let settings = SimulationSettings(variables: ["signature_method": method])
    let error = #expect(throws: CommandError.self) { try Play(Descriptors.oauth1, settings) }
    #expect(error?.message?.text.contains(words) == true)
  }

  @Test("a denial reaches the client") func denial() throws {
    let play = try play(Way(method: .hmacSHA1, transport: .header))
    let temporary = try play.temporaryCredentials()
    let target = try play.decide(play.page(temporary), "deny")
    #expect { try play.client.resourceOwnerAuthorization(target.queryParameters, to: temporary) } throws: { error in
      if case .refused? = error as? OAuthError { true } else { false }
    }
  }
}
