import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth
import Testing

@testable import CredmgrCredentialManager
import CredmgrText

/// Tests the life of an account whose token is bound to a key (RFC 9449).
struct BoundTokenTests {
  static let endpoints = Fixture.endpoints + "\ntoken_binding: dpop"

  private static func token(_ token: String, refresh: String, type: String = "DPoP") -> HTTPResponse {
    .json(
      #"{"access_token": "\#(token)", "token_type": "\#(type)", "refresh_token": "\#(refresh)", "expires_in": 3600}"#)
  }

  private static func demand(_ nonce: String, status: Int = 400) -> HTTPResponse {
    var response = HTTPResponse.json(#"{"error": "use_dpop_nonce"}"#)
    response.status = status
    response.fields.set("DPoP-Nonce", nonce)
    if status == 401 { response.fields.set("WWW-Authenticate", #"DPoP error="use_dpop_nonce""#) }
    return response
  }

  private static func claims(_ request: HTTPRequest) throws -> JSONValue {
    let proof = try #require(request.fields["DPoP"])
    let pieces = proof.split(separator: ".").map(String.init)
    return try JSONValue.parse(#require(Base64.decodeURL(pieces[1])))
  }

  private static func jwk(_ request: HTTPRequest) throws -> JSONValue? {
    let piece = try #require(request.fields["DPoP"]).split(separator: ".").map(String.init)[0]
    return try JSONValue.parse(#require(Base64.decodeURL(piece)))["jwk"]
  }

  private static func loggedIn() throws -> Fixture {
    let fixture = try Fixture.added(endpoints)
    fixture.consent(token("t-1", refresh: "r-1"), .identity("ana"))
    _ = try fixture.login()
    return fixture
  }

  @Test func aLoginMakesAKeyThatStaysWithTheAccount() throws {
    let fixture = try Self.loggedIn()
    let key = try #require(try fixture.stored()?.proofKey)
    #expect(try fixture.page.contains("dpop_jkt"))
    let requests = fixture.http.requests
    #expect(try Self.claims(requests[0])["htu"]?.text == "https://provider.example/token")
    #expect(try Self.claims(requests[0])["ath"] == nil)
    #expect(requests[1].fields["Authorization"] == "DPoP t-1")
    #expect(try Self.claims(requests[1])["ath"] != nil && Self.jwk(requests[0]) == Self.jwk(requests[1]))
    fixture.clock.advance(.seconds(3600))
    fixture.http.then(Self.token("t-2", refresh: "r-2"))
    let account = try fixture.source.handOut(nil, of: "example", by: .token, to: .caller)
    #expect(account.credential.proofKey == key && account.credential.accessToken == Secret("t-2"))
    #expect(try Self.jwk(fixture.http.requests[2]) == Self.jwk(requests[0]))
    // A new login has a new key.
    fixture.consent(Self.token("t-3", refresh: "r-3"), .identity("ana"))
    _ = try fixture.login { $0.account = "ana" }
    let next = try #require(try fixture.stored()?.proofKey)
    #expect(next != key)
    #expect(try Self.jwk(fixture.http.requests[3]) != Self.jwk(requests[0]))
  }

  @Test func aProofIsForOneRequest() throws {
    let fixture = try Self.loggedIn()
    let uri = try URI(parsing: "https://api.provider.example/x?y=z")
    let fields = try [0, 1].map { _ in
      try fixture.source.headerFields(nil, of: "example", for: HTTPRequest(method: "PATCH", uri: uri))
    }
    #expect(fields[0]["Authorization"] == "DPoP t-1")
    let claims = try fields.map { try Self.claims(HTTPRequest(method: "PATCH", uri: uri, fields: $0)) }
    #expect(claims[0]["htm"]?.text == "PATCH" && claims[0]["htu"]?.text == "https://api.provider.example/x")
    #expect(claims[0]["jti"] != claims[1]["jti"])
    #expect(throws: CredentialError.oauth(.signatureNeedsURL, provider: "example")) {
      try fixture.source.headerFields(nil, of: "example", for: nil)
    }
    // No proof for a server that the user did not agree to.
    #expect(throws: CredentialError.self) {
      let other = HTTPRequest(method: "GET", uri: try URI(parsing: "https://evil.example/"))
      return try fixture.source.headerFields(nil, of: "example", for: other)
    }
  }

  /// The nonce of one server is not sent to another one.
  @Test func noncesOfBothServers() throws {
    let fixture = try Fixture.added(Self.endpoints)
    fixture.consent(
      Self.demand("as-1"), Self.token("t-1", refresh: "r-1"), Self.demand("rs-1", status: 401), .identity("ana"))
    _ = try fixture.login()
    let nonces = try fixture.http.requests.map { try Self.claims($0)["nonce"]?.text }
    #expect(nonces == [nil, "as-1", nil, "rs-1"])
    let identifiers = try fixture.http.requests.map { try Self.claims($0)["jti"]?.text }
    #expect(Set(identifiers).count == 4)
    // The next request to the same server has its last nonce (RFC 9449, 8.2).
    fixture.clock.advance(.seconds(3600))
    fixture.http.then(Self.token("t-2", refresh: "r-2"))
    _ = try fixture.source.handOut(nil, of: "example", by: .token, to: .caller)
    #expect(try Self.claims(fixture.http.requests[4])["nonce"]?.text == "as-1")
  }

  private static func answer(_ response: HTTPResponse, nonce: String) -> HTTPResponse {
    var response = response
    response.fields.set("DPoP-Nonce", nonce)
    return response
  }

  /// The account has the nonces of its login or refresh, so the first request of the next command is not refused.
  @Test func noncesOfEarlierCommands() throws {
    let fixture = try Fixture.added(Self.endpoints)
    fixture.consent(
      Self.demand("as-1"), Self.answer(Self.token("t-1", refresh: "r-1"), nonce: "as-2"),
      Self.answer(.identity("ana"), nonce: "rs-1"))
    _ = try fixture.login()
    fixture.clock.advance(.seconds(3600))
    func command() -> CredentialSource {
      CredentialSource(home: fixture.home, http: fixture.http, clock: fixture.clock, random: fixture.source.random)
    }
    fixture.http.then(Self.answer(Self.token("t-2", refresh: "r-2"), nonce: "as-3"))
    _ = try command().handOut(nil, of: "example", by: .token, to: .caller)
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: "https://api.provider.example/x"))
    let record = try fixture.stored()
    fixture.http.then(.json("{}"), Self.answer(.json("{}"), nonce: "rs-2"))
    let second = command()
    for _ in 0..<2 {
      _ = try second.send(request, account: nil, of: "example", limits: .unlimited) { _ in true }
    }
    let fields = try command().headerFields(nil, of: "example", for: request)
    #expect(try Self.claims(HTTPRequest(method: "GET", uri: request.uri, fields: fields))["nonce"]?.text == "rs-1")
    // A request stores nothing, so the next command gets a new nonce from a refusal.
    #expect(try fixture.stored() == record)
    fixture.clock.advance(.seconds(3600))
    fixture.http.then(Self.demand("as-4"), Self.token("t-3", refresh: "r-3"))
    _ = try command().handOut(nil, of: "example", by: .token, to: .caller)
    let nonces = try fixture.http.requests.dropFirst(3).map { try Self.claims($0)["nonce"]?.text }
    #expect(nonces == ["as-2", "rs-1", "rs-1", "as-3", "as-4"])
    #expect(
      try fixture.stored()?.serverNonces
        == ["https://provider.example": "as-4", "https://api.provider.example": "rs-1"])
  }

  /// A bearer token needs no nonce.
  @Test func onlyBoundTokensKeepNonces() throws {
    let fixture = try Fixture.added(Fixture.endpoints)
    fixture.consent(Self.answer(Self.token("t-1", refresh: "r-1", type: "Bearer"), nonce: "n"), .identity("ana"))
    _ = try fixture.login()
    #expect(try fixture.stored()?.serverNonces.isEmpty == true)
  }

  @Test func aNonceThatNeverSatisfiesEndsTheLogin() throws {
    let fixture = try Fixture.added(Self.endpoints)
    fixture.consent(Self.demand("n-1"), Self.demand("n-2"))
    let refusal = ErrorResponse(code: "use_dpop_nonce", words: nil, status: 400)
    #expect(throws: CredentialError.oauth(.refused(.token, refusal), provider: "example")) { try fixture.login() }
    #expect(fixture.http.requests.count == 2)
  }

  /// Neither a nonce that never satisfies nor a refused proof costs the account anything.
  @Test func aRefreshWithEndlessNoncesLosesNothing() throws {
    let fixture = try Self.loggedIn()
    let before = try fixture.stored()
    fixture.clock.advance(.seconds(3600))
    fixture.http.then(Self.demand("n-1"), Self.demand("n-2"))
    let refusal = ErrorResponse(code: "use_dpop_nonce", words: nil, status: 400)
    #expect(throws: CredentialError.oauth(.refused(.refresh, refusal), provider: "example")) {
      try fixture.source.handOut(nil, of: "example", by: .token, to: .caller)
    }
    #expect(try fixture.stored() == before)
    fixture.http.then(Self.token("t-2", refresh: "r-2"))
    #expect(
      try fixture.source.handOut(nil, of: "example", by: .token, to: .caller).credential.accessToken == Secret("t-2"))
  }

  private static func send(_ fixture: Fixture) throws -> Int {
    let request = HTTPRequest(method: "POST", uri: try URI(parsing: "https://api.provider.example/x"))
    return try fixture.source.send(request, account: nil, of: "example", limits: .unlimited) { _ in true }.status
  }

  @Test(arguments: ["use_dpop_nonce", "invalid_dpop_proof"])
  func aRefusedProofDoesNotRejectTheToken(_ error: String) throws {
    let fixture = try Self.loggedIn()
    var refusal = HTTPResponse.json("{}")
    refusal.status = 401
    refusal.fields.set("WWW-Authenticate", "DPoP error=\"\(error)\"")
    fixture.http.then(refusal)
    #expect(try Self.send(fixture) == 401)
    #expect(try fixture.stored()?.isRejected == false)
    // A refused token is refreshed, and repeated with a new proof.
    refusal.fields.set("WWW-Authenticate", "DPoP error=\"invalid_token\"")
    fixture.http.then(refusal, Self.token("t-2", refresh: "r-2"), .json("{}"))
    #expect(try Self.send(fixture) == 200)
    #expect(fixture.http.requests.last?.fields["Authorization"] == "DPoP t-2")
  }

  /// An API that begins to demand proofs does not make an account lose its token.
  @Test func anAccountFromBeforeTheBinding() throws {
    let fixture = try Fixture.added(Self.endpoints, credential: Fixture.credential("old"))
    var refusal = HTTPResponse.json("{}")
    refusal.status = 401
    refusal.fields.set("WWW-Authenticate", "DPoP algs=\"ES256\"")
    fixture.http.then(refusal)
    #expect(try Self.send(fixture) == 401)
    #expect(fixture.http.requests[0].fields["Authorization"] == "Bearer old")
    #expect(fixture.http.requests[0].fields["DPoP"] == nil)
    #expect(try fixture.stored()?.isRejected == false)
    let account = try fixture.source.handOut(nil, of: "example", by: .token, to: .caller)
    #expect(try fixture.source.isUsableAlone(account))
  }

  /// The same at the token endpoint, where only a login helps.
  @Test(arguments: ["invalid_dpop_proof", "use_dpop_nonce"], [true, false])
  func aRefreshThatDemandsAProof(_ code: String, _ isDescribed: Bool) throws {
    let fixture = try Fixture.added(
      isDescribed ? Self.endpoints : Fixture.endpoints, credential: Fixture.credential("old"))
    let before = try fixture.stored()
    fixture.clock.advance(.seconds(3600))
    var refusal = HTTPResponse.json("{\"error\": \"\(code)\"}")
    refusal.status = 400
    refusal.fields.set("DPoP-Nonce", "n")
    fixture.http.then(refusal)
    #expect(throws: CredentialError.proofNeeded(provider: "example", account: "ana", isDescribed: isDescribed)) {
      try fixture.source.handOut(nil, of: "example", by: .token, to: .caller)
    }
    #expect(try fixture.stored() == before)
  }

  @Test func theNonceOfACaller() throws {
    let fixture = try Self.loggedIn()
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: "https://api.provider.example/x"))
    let fields = try fixture.source.headerFields(nil, of: "example", for: request, nonce: "n-1")
    #expect(try Self.claims(HTTPRequest(method: "GET", uri: request.uri, fields: fields))["nonce"]?.text == "n-1")
  }

  @Test func otherProgramsGetNoBoundToken() throws {
    let fixture = try Fixture.added(Self.endpoints + "\ngit: { hosts: [git.provider.example] }")
    fixture.consent(Self.token("t-1", refresh: "r-1"), .identity("ana"))
    let account = try fixture.login()
    let source = fixture.source
    #expect(account.credential.isUsableAlone == false)
    #expect(try !source.isUsableAlone(account))
    #expect(throws: CredentialError.notUsableAlone(provider: "example", .exec)) {
      try source.handOut(nil, of: "example", by: .exec, to: .caller)
    }
    #expect(throws: CredentialError.notUsableAlone(provider: "example", .kubectl)) {
      try source.handOut(
        nil, of: "example", by: .kubectl, to: .server(URI(parsing: "https://api.provider.example/")))
    }
    _ = try source.handOut(nil, of: "example", by: .token, to: .caller)
  }

  @Test func aBearerAnswerEndsTheLogin() throws {
    let fixture = try Fixture.added(Self.endpoints)
    let done = HTTPResponse(status: 200)
    fixture.consent(Self.token("t-1", refresh: "r-1", type: "Bearer"), done, done)
    #expect(throws: CredentialError.oauth(.tokenNotBound(.token, "Bearer"), provider: "example")) {
      try fixture.login()
    }
    #expect(fixture.http.requests.suffix(2).map { $0.parameters[first: "token"] } == ["r-1", "t-1"])
    #expect(try fixture.another().accounts().accounts(of: "example").isEmpty)
  }
}
