import Cryptography
import HTTP
import JSON
import OAuth
import Descriptors
import Testing

@testable import Simulator

struct ImplicitTests {
  private func login(_ play: Play, scope: [String]) throws -> Credential {
    let request = try play.authorization(.implicit, scope: scope)
    let target = try play.decide(request.uri)
    #expect(target.query == nil)
    let parameters = FormParameters(decoding: try #require(target.fragment))
    // The descriptor says that an answer without `state` is taken, so that this one comes without.
    #expect(!parameters.contains("state"))
    return try play.client.credential(
      play.client.authorizationResponse(parameters, to: request), now: play.clock.seconds)
  }

  @Test("the token comes in the fragment, with what is kept, and is presented with it")
  func fragment() throws {
    let play = try Play(Descriptors.oclc)
    let credential = try login(play, scope: ["WMS_NCIP"])
    #expect(credential.kept == ["principalID": "ada", "principalIDNS": "sample-principalIDNS"])
    #expect(credential.refreshToken == nil)
    #expect(play.client.accountName(in: credential) == "ada")
    #expect(try play.resource(credential).status == 200)
    var other = credential
    other.kept["principalIDNS"] = "other"
    #expect(try play.resource(other).status == 401)
    #expect(try play.lastRefusal() == Reason.wrongValue("principalIDNS").sentence)
    other.kept["principalIDNS"] = nil
    #expect(try play.resource(other).status == 401)
    #expect(try play.lastRefusal() == "\"principalIDNS\" is missing")
  }

  @Test("the moment of expiry is in the declared form")
  func expiresAt() throws {
    let play = try Play(Descriptors.oclc)
    let request = try play.authorization(.implicit, scope: ["WMS_NCIP"])
    let parameters = FormParameters(decoding: try play.decide(request.uri).fragment ?? "")
    #expect(parameters[first: "expires_at"] == "2027-01-15 09:00:00Z")
  }

  @Test("a scope asks for a refresh token, which is exchanged by the identifier alone")
  func refresh() throws {
    let play = try Play(Descriptors.oclc)
    let credential = try login(play, scope: ["WMS_NCIP", "refresh_token"])
    let refreshed = try play.refresh(credential)
    #expect(try play.resource(refreshed).status == 200)
  }

  @Test("a variable that was given must have its value, and another may have any")
  func variables() throws {
    #expect(throws: Never.self) {
      _ = try login(Play(Descriptors.oclc, variables: ["institution": "128807"]), scope: [])
    }
    var settings = SimulationSettings()
    settings.variables = ["institution": "1"]
    let play = try Play(Descriptors.oclc, settings, variables: ["institution": "128807"])
    let request = try play.authorization(.implicit, scope: [])
    _ = play.send(HTTPRequest(method: "GET", uri: request.uri))
    #expect(try play.lastRefusal() == Reason.wrongValue("authenticatingInstitutionId").sentence)
  }
}

struct DeviceTests {
  private func begin(_ play: Play) throws -> DeviceAuthorization {
    let response = play.send(try play.client.deviceAuthorizationRequest(scope: ["l2p.rwth"], nonce: play.nonce()))
    return try play.client.deviceAuthorization(response, scope: ["l2p.rwth"], now: play.clock.seconds)
  }

  private func poll(_ play: Play, _ authorization: DeviceAuthorization) throws -> DeviceAnswer {
    play.clock.advance(seconds: 5)
    return try play.client.deviceAnswer(
      play.send(play.client.deviceTokenRequest(authorization, nonce: play.nonce())), to: authorization,
      now: play.clock.seconds)
  }

  @Test(
    "pending, slow down, approved, and the code works once", arguments: [Descriptors.l2p, Descriptors.gitHub])
  func wholeWay(_ sample: Sample) throws {
    let play = try Play(sample)
    let authorization = try begin(play)
    guard case .pending = try poll(play, authorization) else {
      _ = Issue.record("not pending")
      return
    }
    play.clock.advance(seconds: -4)
    guard case .slowDown = try poll(play, authorization) else {
      _ = Issue.record("not too soon")
      return
    }
    let complete = try #require(authorization.verificationURIComplete)
    let page = try play.get(complete)
    #expect(page.text.hidden("user_code") == authorization.userCode)
    let form: FormParameters = [
      ("user_code", authorization.userCode.lowercased()), ("account", "grace"), ("decision", "approve"),
    ]
    #expect(try play.post("/simulator/device", form).status == 200)
    play.clock.advance(seconds: 10)
    guard case .credential(let credential) = try poll(play, authorization) else {
      _ = Issue.record("not approved")
      return
    }
    #expect(try play.resource(credential).json()["account"]?.text == "grace")
    #expect(try play.resource(play.refresh(credential)).status == 200)
    play.clock.advance(seconds: 10)
    #expect(throws: OAuthError.self) { try poll(play, authorization) }
    #expect(try play.log("polls") == 4)
    #expect(try play.log("slow_downs") == 1)
  }

  @Test("the words are the provider's own, with status 200")
  func words() throws {
    let play = try Play(Descriptors.l2p)
    let authorization = try begin(play)
    let answer = play.send(try play.client.deviceTokenRequest(authorization, nonce: play.nonce()))
    #expect(answer.status == 200)
    #expect(try answer.json()["status"]?.text == "authorization pending")
    #expect(try play.post("/simulator/approve-device").status == 200)
    play.clock.advance(seconds: 10)
    let good = play.send(try play.client.deviceTokenRequest(authorization, nonce: play.nonce()))
    #expect(try good.json()["status"]?.text == "ok")
    #expect(try play.post("/simulator/approve-device").status == 404)
  }

  @Test("slow down makes the interval longer, as declared")
  func interval() throws {
    let play = try Play(Descriptors.l2p)
    let authorization = try begin(play)
    _ = try poll(play, authorization)
    play.clock.advance(seconds: -1)
    guard case .slowDown = try poll(play, authorization) else {
      _ = Issue.record("not too soon")
      return
    }
    // Six seconds from now on.
    play.clock.advance(seconds: 0.5)
    guard case .slowDown = try poll(play, authorization) else {
      _ = Issue.record("not too soon")
      return
    }
    play.clock.advance(seconds: 2.3)
    guard case .pending = try poll(play, authorization) else {
      _ = Issue.record("not pending")
      return
    }
  }

  @Test("a no, and a code that is too old")
  func ends() throws {
    let play = try Play(Descriptors.gitHub)
    let denied = try begin(play)
    _ = try play.post("/simulator/device", [("user_code", denied.userCode), ("decision", "deny")])
    #expect { try poll(play, denied) } throws: { error in
      if case .refused(_, let response)? = error as? OAuthError {
        response.code == "access_denied"
      } else {
        false
      }
    }
    let late = try begin(play)
    play.clock.advance(seconds: 900)
    #expect(throws: OAuthError.deviceCodeExpired) { try poll(play, late) }
  }

  @Test("a token in a header is none here, and a token in the query is none elsewhere")
  func presentation() throws {
    let play = try Play(Descriptors.l2p)
    let authorization = try begin(play)
    _ = try play.post("/simulator/approve-device?user_code=" + authorization.userCode)
    guard case .credential(let credential) = try poll(play, authorization) else {
      _ = Issue.record("not approved")
      return
    }
    let uri = try URI(parsing: Play.origin + "/simulator/resource")
    let token = credential.accessToken.reveal()
    let inHeader = HTTPRequest(method: "GET", uri: uri, fields: ["Authorization": "Bearer " + token])
    #expect(play.send(inHeader).status == 401)
    let inBoth = HTTPRequest(
      method: "GET", uri: uri.adding(query: [("accessToken", token)]),
      fields: ["Authorization": "Bearer " + token])
    #expect(play.send(inBoth).status == 401)
    let inQuery = HTTPRequest(method: "GET", uri: uri.adding(query: [("accessToken", token)]))
    #expect(play.send(inQuery).status == 200)
  }
}

struct OAuth1Tests {
  /// Made for these tests.
  private static let key = Secret(
    """
    -----BEGIN PRIVATE KEY-----
    MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDQlvk051X45B42
    yeWFPEAr+z5idrSTzI3L3EmHyGomsXAWW8+k0JRM/4TrO7Ks57ePp2QVhHRa246B
    vXSXm0EsBEbDdsl1WDPQF8WcIrj8UNUN/qrb4X916mmgB+7bHVmeP25VnmpAtDKR
    /a/Md7sqz2jZEDanjKgViSGTZhKRCERzr1SQ1tmzNVhPwriMdCSNCJljAs148hTn
    hkUxkzjxdkgrJYOX54G48FcME+SJdU5FkQLD4/nk+ux2ZciAfMgoxJdbiTpFgnue
    e/mFM47cW5lqnY3Ldz4ayp9D3Rfyn9+OyIOpTipRC8HEC7PduystWW7rp/4TWJda
    JNUEIePjAgMBAAECggEACE7uWWXnGr7Oi66HCEONTf/35o9SQ5psm3SIYtj5jjwx
    efKDCgGOc3KwcxFk3VY6QLj3vfoRcf0EzbSKJe/Dky+oa4JNWL5mpSDaEibTHEAf
    L5Hq14J0qgtOob0vJzMhreTA54NXBoGNWIG0tH3Tl36J1chVJPjvr2WC6agX9tOj
    1+pWMJQINPNoetCPSmPaPslxrjHUed81Rum5b+QK/2JCin7aKzaaxhNAxHyGFUyT
    En8174NstCuPopCH/UtGIFEvBzCwOq0zent07oBuj56FRr6XdJJk83Q6qauYnNbD
    gqurqz2NGqDSCaA4Gm5LYcAajaIte/otJzwFMac2gQKBgQDy18wUN6J4DJIpHuHQ
    qK2XJS83YLx2JsJcKOrzApbUxITE1XNCCoV3YEV5LIf9mWRQtuwCVMrI74ucYkZr
    3rqXPpPGtlvkl1uNx/HXhvJQam4v/pDczYiie3hs0c8YM49PdDDXwa05GluTLRBp
    ef/lAv88k0bgEUBADwM2oAgKcQKBgQDb5BaXEdPh/G1NVc67qloQj0Ok42lOP9vb
    myoTVtpfSgFoWbfC4S0LiPRB7e8hrdMhlLJ0H7mce3038PVLbZRZ/LIET4gWCWmP
    zRKLt0ahr6To3dKnbIeaf+bRwlQSOBqmPpr4+fIwMhshP3B9hJrFzthm0YVzPBte
    S2iUL0K1kwKBgDImOnDaZGTiQ7TWOc/7ZY3XEf8frQvBSVX65To2CKv7wWdcpSa4
    QYO7j91MQvEuIjdA71Az7oS8Y1pyORTBtErTk3Tv5943G6MV7W2S4quUrxieO5A9
    qb/UO7RNR7U5wJip6ARGbN1kAhFMtxzxItVKXydFSteu+FPCRemb9s0hAoGAI/U3
    kHq02GasBRJ8HQotcjnLSQJ7LPWaYV4NUl5IlX6HnmXVfAPQlutNbh6XlT1UolAr
    onuxoZo8DtLTegMwWErPXY8X5OqjHYXee4R8A2Kyp/XmRcSkpCo4N6L8loIgMYFZ
    XE+bQDBhaV1zasMtgB1kG+Q1W3O/0fqo3lqgIQsCgYEA2YZg0BZ+oyxtwVTxzteT
    gva5dgQlHIEvwmo8Pv0emDDjalP70IaQCFdJo4YgBtEoobjQCdd4YM3dWkCc8Ch3
    80XkhGGBviqLslwT5wGLPwCEfn/cVfoqH30lE2ZxEPGmTE+Ipd8zh5Z9YsmKmQKY
    fHhzJiBdN0nAuyaeCm1h9BM=
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
    return try Play(
      Descriptors.oauth1, settings, secret: way.method.isRSA ? Self.key : Secret("s3 cret"))
  }

  private func login(_ play: Play) throws -> Credential {
    let callback = try play.redirectURI
    let temporary = try play.client.temporaryCredentials(
      play.send(
        play.client.temporaryCredentialsRequest(callback: callback, scope: [], nonce: play.nonce())),
      callback: callback)
    let target = try play.decide(try play.client.authorizationPage(temporary, scope: [], nonce: play.nonce()))
    let authorization = try play.client.resourceOwnerAuthorization(target.queryParameters, to: temporary)
    let response = play.send(
      try play.client.tokenRequest(temporary, authorization, nonce: play.nonce()))
    return try play.client.oauth1Credential(
      response, .token, after: authorization, scope: [], now: play.clock.seconds)
  }

  @Test("a login, the resource, and a session that is renewed", arguments: ways)
  func wholeWay(_ way: Way) throws {
    let play = try play(way)
    let credential = try login(play)
    #expect(credential.kept["screen_name"] == "ada")
    #expect(credential.expiresAt == play.clock.seconds + 3600)
    #expect(try play.resource(credential).status == 200)
    #expect(try play.resource(credential, "POST").status == 200)
    play.clock.advance(seconds: 3600)
    #expect(try play.resource(credential).status == 401)
    let response = play.send(try play.client.refreshRequest(credential, nonce: play.nonce()))
    let refreshed = try play.client.oauth1Credential(
      response, .refresh, after: nil, scope: [], previous: credential, now: play.clock.seconds)
    #expect(refreshed.accessToken != credential.accessToken)
    #expect(try play.resource(refreshed).status == 200)
    #expect(try play.log("refreshes") == 1)
  }

  @Test("another secret, a nonce again, an old timestamp, another place: refused")
  func refusals() throws {
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
    #expect(try reason(good) == Reason.nonceUsed.sentence)
    var wrong = credential
    wrong.tokenSecret = Secret("other")
    let badlySigned = try play.client.presenting(wrong, on: get, nonce: play.nonce())
    #expect(try reason(badlySigned) == Reason.wrongSignature.sentence)
    var altered = try play.client.presenting(credential, on: get, nonce: play.nonce())
    altered.uri = altered.uri.adding(query: [("more", "x")])
    #expect(try reason(altered) == Reason.wrongSignature.sentence)
    let old = RequestNonce(timestamp: play.clock.seconds - 3600, text: "old")
    let tooOld = try play.client.presenting(credential, on: get, nonce: old)
    #expect(try reason(tooOld) == Reason.timestampOutOfRange.sentence)
    let inQuery = try self.play(Way(method: .hmacSHA256, transport: .query))
    let misplaced = try inQuery.client.presenting(credential, on: get, nonce: play.nonce())
    #expect(try reason(misplaced) == Reason.protocolParametersMisplaced(expected: .header).sentence)
    let bearer = HTTPRequest(
      method: "GET", uri: uri, fields: ["Authorization": "Bearer " + credential.accessToken.reveal()])
    #expect(try reason(bearer) == Reason.protocolParametersMisplaced(expected: .header).sentence)
  }

  @Test("temporary credentials are exchanged once, with the verifier, after the consent")
  func verifier() throws {
    let play = try play(Way(method: .hmacSHA1, transport: .header))
    let callback = try play.redirectURI
    let temporary = try play.client.temporaryCredentials(
      play.send(
        play.client.temporaryCredentialsRequest(callback: callback, scope: [], nonce: play.nonce())),
      callback: callback)
    let guess = try play.client.resourceOwnerAuthorization(
      [("oauth_token", temporary.token.reveal()), ("oauth_verifier", "guess")], to: temporary)
    func reason(_ authorization: ResourceOwnerAuthorization) throws -> String? {
      let request = try play.client.tokenRequest(temporary, authorization, nonce: play.nonce())
      #expect(play.send(request).status == 401)
      return try play.lastRefusal()
    }
    #expect(try reason(guess) == Reason.notAuthorized.sentence)
    let target = try play.decide(try play.client.authorizationPage(temporary, scope: [], nonce: play.nonce()))
    #expect(try reason(guess) == Reason.wrongVerifier.sentence)
    let right = try play.client.resourceOwnerAuthorization(target.queryParameters, to: temporary)
    #expect(
      play.send(try play.client.tokenRequest(temporary, right, nonce: play.nonce())).status == 200)
    #expect(try reason(right) == Reason.temporaryCredentialsUnknown.sentence)
  }

  @Test("RSA needs a key, and a method that is none is told")
  func starts() throws {
    var settings = SimulationSettings()
    settings.variables["signature_method"] = "RSA-SHA1"
    #expect(throws: SimulatorError.keyNeeded(.rsaSHA1)) { try Play(Descriptors.oauth1, settings) }
    settings.variables["signature_method"] = "ROT13"
    #expect(throws: SimulatorError.unknownSignature("ROT13")) { try Play(Descriptors.oauth1, settings) }
  }

  @Test("a no comes back as one")
  func denial() throws {
    let play = try play(Way(method: .hmacSHA1, transport: .header))
    let callback = try play.redirectURI
    let temporary = try play.client.temporaryCredentials(
      play.send(
        play.client.temporaryCredentialsRequest(callback: callback, scope: [], nonce: play.nonce())),
      callback: callback)
    let target = try play.decide(try play.client.authorizationPage(temporary, scope: [], nonce: play.nonce()), "deny")
    #expect { try play.client.resourceOwnerAuthorization(target.queryParameters, to: temporary) } throws: {
      error in
      if case .refused? = error as? OAuthError { true } else { false }
    }
  }
}
