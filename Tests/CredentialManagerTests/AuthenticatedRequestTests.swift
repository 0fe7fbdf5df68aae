import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrDescriptors
import Testing
import CredmgrStore

@testable import CredmgrCredentialManager
import CredmgrText

struct AuthenticatedRequestTests {
  private static func fixture(refresh: String? = "refresh-1", _ text: String = Fixture.endpoints) throws -> Fixture {
    let fixture = try Fixture.added(text, credential: Fixture.credential("old", refresh: refresh))
    return fixture
  }

  private static func send(
    _ fixture: Fixture, _ url: String = "https://api.provider.example/resource", _ method: String = "POST"
  ) throws -> (status: Int, body: String, heads: [Int]) {
    var heads: [Int] = []
    var body: [UInt8] = []
    let request = HTTPRequest(
      method: method, uri: try URI(parsing: url), fields: ["Content-Type": "text/xml"], body: Array("<a/>".utf8))
    let head = try fixture.source.send(request, account: nil, of: "example", limits: .unlimited) { part in
      switch part {
      case .head(let response): heads.append(response.status)
      case .body(let bytes): body += bytes
      }
      return true
    }
    return (head.status, String(decoding: body, as: UTF8.self), heads)
  }

  @Test func carriesTheCredential() throws {
    let fixture = try Self.fixture()
    fixture.http.then(.json("{}"))
    let answer = try Self.send(fixture)
    #expect(answer.status == 200)
    #expect(answer.body == "{}")
    let request = fixture.http.requests[0]
    #expect(request.fields["Authorization"] == "Bearer old")
    #expect(request.fields["Content-Type"] == "text/xml")
    #expect(request.body == Array("<a/>".utf8))
  }

  @Test(arguments: [
    "https://evil.example/", "https://api.provider.example.evil.example/", "http://api.provider.example/",
    "https://api.provider.example:8443/", "https://provider.example/",
  ]) func aForeignHostGetsNothing(_ url: String) throws {
    let fixture = try Self.fixture()
    #expect(throws: CredentialError.self) { try Self.send(fixture, url) }
    #expect(fixture.http.requests.isEmpty)
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: url))
    #expect(throws: CredentialError.self) { try fixture.source.headerFields(nil, of: "example", for: request) }
  }

  @Test func refreshesAndRepeatsOnce() throws {
    let fixture = try Self.fixture()
    fixture.http.then(.json("\"expired\"", status: 401), .token("new", refresh: "refresh-2"), .json("\"done\""))
    let answer = try Self.send(fixture)
    #expect(answer.status == 200)
    #expect(answer.body == "\"done\"")
    // The caller does not receive the first answer.
    #expect(answer.heads == [200])
    #expect(fixture.http.requests.map { $0.fields["Authorization"] ?? "" }[2] == "Bearer new")
    #expect(fixture.http.requests[2].body == Array("<a/>".utf8))
    #expect(try fixture.stored()?.refreshToken == Secret("refresh-2"))
  }

  private static func redirect(_ status: Int, _ location: String) -> HTTPResponse {
    HTTPResponse(status: status, fields: ["Location": location], body: Array("moved".utf8))
  }

  private static func get(_ fixture: Fixture, _ method: String = "GET") throws -> (status: Int, body: String) {
    let answer = try send(fixture, "https://api.provider.example/a/b?c=d", method)
    return (answer.status, answer.body)
  }

  /// Follows relative and absolute targets within the origin (RFC 3986, 5.2).
  @Test(
    arguments: [
      ("https://api.provider.example:443/x?y#z", "https://api.provider.example:443/x?y"),
      ("/x", "https://api.provider.example/x"), ("x", "https://api.provider.example/a/x"),
      ("?x=y", "https://api.provider.example/a/b?x=y"), ("//api.provider.example/x", "https://api.provider.example/x"),
    ])
  func followsWithinTheOrigin(_ location: String, _ expected: String) throws {
    let fixture = try Self.fixture()
    fixture.http.then(Self.redirect(301, location), .json("\"done\""))
    #expect(try Self.get(fixture) == (200, "\"done\""))
    #expect(fixture.http.requests[1].uri.text == expected)
    #expect(fixture.http.requests[1].fields["Authorization"] == "Bearer old")
  }

  /// Does not follow to other hosts, even if the descriptor names them, to this machine, or to local network services.
  @Test(arguments: [
    "https://provider.example/", "http://api.provider.example/", "https://api.provider.example:8443/",
    "https://evil.example/", "//evil.example/", "http://127.0.0.1:8500/v1/agent", "http://localhost/",
    "http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/", "file:///etc/passwd",
    "https://api.provider.example@evil.example/", "https:\\\\evil.example/", "../x", "/a/../x", "", "#x", "\u{0}",
  ]) func followsNothingElse(_ location: String) throws {
    let fixture = try Self.fixture()
    fixture.http.then(Self.redirect(302, location))
    #expect(try Self.get(fixture) == (302, "moved"))
    #expect(fixture.http.requests.count == 1)
  }

  @Test(arguments: ["POST", "PUT", "DELETE", "PATCH"])
  func followsOnlySafeRequests(_ method: String) throws {
    let fixture = try Self.fixture()
    fixture.http.then(Self.redirect(307, "/x"))
    #expect(try Self.get(fixture, method).status == 307)
  }

  @Test func returnsTheAnswerOnce() throws {
    let fixture = try Self.fixture()
    for _ in 0..<3 { fixture.http.then(Self.redirect(301, "/x")) }
    fixture.http.then(.json("\"done\""))
    _ = try Self.get(fixture)
    #expect(try fixture.another().log().events.map(\.action).count { $0 == .handOut } == 1)
  }

  @Test func followsNoRedirectLoop() throws {
    let fixture = try Self.fixture()
    for _ in 0..<6 { fixture.http.then(Self.redirect(302, "/a/b")) }
    #expect(try Self.get(fixture).status == 302)
  }

  @Test func doesNotRepeatForever() throws {
    let fixture = try Self.fixture()
    fixture.http.then(.json("1", status: 401), .token("new"), .json("2", status: 401))
    let answer = try Self.send(fixture)
    #expect(answer.status == 401)
    #expect(answer.body == "2")
    #expect(answer.heads == [401])
    #expect(try fixture.stored()?.isRejected == true)
  }

  @Test func withoutARefreshTokenTheAnswerIsTheCallers() throws {
    let fixture = try Self.fixture(refresh: nil)
    fixture.http.then(.json("1", status: 401))
    let answer = try Self.send(fixture)
    #expect(answer.status == 401)
    #expect(answer.heads == [401])
    #expect(throws: CredentialError.loginNeeded(provider: "example", account: "ana", .rejected)) { try fixture.fresh() }
  }

  /// A demand for more rights says nothing against the token, so the account stays as it is.
  @Test(
    arguments: ["insufficient_scope", "insufficient_user_authentication"], ["refresh-1", nil] as [String?])
  func aDemandForMoreRightsKeepsTheToken(_ error: String, _ refresh: String?) throws {
    let fixture = try Self.fixture(refresh: refresh)
    fixture.http.then(HTTPResponse(status: 401, fields: ["WWW-Authenticate": "Bearer error=\"\(error)\""]))
    #expect(try Self.send(fixture).status == 401)
    #expect(fixture.http.isDone)
    #expect(try fixture.fresh().credential.accessToken == Secret("old"))
    #expect(fixture.http.requests.count == 1)
  }

  // MARK: Validation

  @Test func validate() throws {
    let fixture = try Self.fixture()
    var credential = Fixture.credential("old")
    credential.expiresAt = Fixture.now - .seconds(1000)
    try fixture.store(credential)
    // Checking an expired token does not refresh it.
    fixture.http.then(.json("{}", status: 401))
    let (account, validity) = try fixture.source.validate(nil, of: "example")
    #expect(account.name == "ana")
    #expect(validity == .inactive)
    #expect(fixture.http.requests[0].fields["Authorization"] == "Bearer old")
    fixture.http.then(.identity("ana"))
    #expect(try fixture.source.validate(nil, of: "example").validity == .active)
  }

  /// One address of an API rejected the token, but the provider knows it.
  @Test func aValidationEndsARejection() throws {
    let fixture = try Self.fixture(refresh: nil)
    fixture.http.then(.json("1", status: 401), .identity("ana"))
    #expect(try Self.send(fixture).status == 401)
    #expect(throws: CredentialError.loginNeeded(provider: "example", account: "ana", .rejected)) { try fixture.fresh() }
    #expect(try fixture.source.validate(nil, of: "example").validity == .active)
    #expect(try fixture.fresh().credential.accessToken == Secret("old"))
  }

  @Test func notValidatable() throws {
    let fixture = try Self.fixture(
      """
      grant: client_credentials
      endpoints: { client_credentials: https://provider.example/token }
      """)
    #expect(throws: CredentialError.notValidatable(provider: "example")) {
      try fixture.source.validate(nil, of: "example")
    }
  }

  /// The server refused the token, and the provider refused to refresh it, so neither is offered again.
  @Test func aTokenThatTheServerRefusesIsRejected() throws {
    let fixture = try Self.fixture()
    fixture.http.then(.json("\"no\"", status: 401), .json("{\"error\":\"invalid_grant\"}", status: 400))
    let refused = CredentialError.loginNeeded(provider: "example", account: "ana", .refreshRefused(nil))
    #expect(throws: refused) { try Self.send(fixture) }
    #expect(throws: refused) { try fixture.fresh() }
    let accounts = try fixture.source.accounts()
    let states = try accounts.states(of: accounts.accounts(of: nil), at: Fixture.now)
    #expect(states == [.expired(.refreshRefused(nil))])
  }

  // MARK: Logout

  /// A login may wait for its user for minutes.
  @Test func aLogoutDoesNotWaitForALogin() throws {
    let fixture = try Self.fixture()
    var note = ExchangeNote(.login, startedAt: 1)
    note.process = 4711
    try fixture.leave(note, nil)
    let lock = try fixture.lock("ana")
    let error = CredentialError.accountInLogin(provider: "example", account: "ana", process: 4711)
    #expect(throws: error) { try fixture.source.logout(nil, of: "example", keepsRemote: false) }
    _ = consume lock
    #expect(fixture.clock.passed() < .seconds(1))
  }

  @Test func revokesAndDeletes() throws {
    let fixture = try Self.fixture()
    try fixture.source.accounts(.readWrite).select("ana", provider: "example")
    fixture.http.then(HTTPResponse(status: 200), .json("{\"error\":\"invalid_token\"}", status: 400))
    let (account, revocation) = try fixture.source.logout(nil, of: "example", keepsRemote: false)
    #expect(account == "ana")
    #expect(revocation == .done)
    #expect(fixture.http.requests.map { $0.parameters[first: "token"] } == ["refresh-1", "old"])
    #expect(try fixture.stored() == nil)
    #expect(try fixture.another().accounts().selected(for: "example") == nil)
    #expect(throws: CredentialError.loginNeeded(provider: "example", account: nil, .noCredential)) {
      try fixture.source.logout(nil, of: "example", keepsRemote: false)
    }
  }

  /// The tokens of an interrupted login may be of the same user as those of another account.
  @Test(arguments: [true, false]) func aLogoutBesideAnotherAccount(_ hasOther: Bool) throws {
    let fixture = try Self.fixture()
    if hasOther { try fixture.store(Fixture.credential("other"), "bob") }
    try fixture.leave(ExchangeNote(.login, startedAt: 1), KeptAnswer(Fixture.credential("kept"), after: nil))
    for _ in 0..<(hasOther ? 2 : 4) { fixture.http.then(HTTPResponse(status: 200)) }
    _ = try fixture.source.logout("ana", of: "example", keepsRemote: false)
    #expect(fixture.notices.contains(.tokensLeft(provider: "example", nil)) == hasOther)
  }

  @Test func theOtherAccountsStay() throws {
    let fixture = try Self.fixture()
    try fixture.store(Fixture.credential("other"), "bob")
    try fixture.source.accounts(.readWrite).select("bob", provider: "example")
    _ = try fixture.source.logout("ana", of: "example", keepsRemote: true)
    #expect(try fixture.stored("bob") != nil)
    #expect(try fixture.source.accounts().selected(for: "example") == "bob")
  }

  @Test func anUnreachableProviderKeepsTheAccount() throws {
    let fixture = try Self.fixture()
    let before = try fixture.stored()
    fixture.http.then(.unreachable(host: "provider.example", reason: .connectionRefused))
    #expect(throws: CredentialError.self) { try fixture.source.logout(nil, of: "example", keepsRemote: false) }
    #expect(try fixture.stored() == before)
    fixture.http.then(HTTPResponse(status: 503))
    #expect(throws: CredentialError.self) { try fixture.source.logout(nil, of: "example", keepsRemote: false) }
    #expect(try fixture.stored() == before)
  }

  /// Logging out again would fail again. credmgr still tries to revoke each token.
  @Test func aRefusedRevocationForgetsTheAccount() throws {
    let fixture = try Self.fixture()
    fixture.http.then(.json("{\"error\":\"invalid_client\"}", status: 401), HTTPResponse(status: 200))
    let refusal = ErrorResponse(code: "invalid_client", words: nil, status: 401)
    let (_, revocation) = try fixture.source.logout(nil, of: "example", keepsRemote: false)
    #expect(revocation == .refused(.oauth(.refused(.revocation, refusal), provider: "example")))
    #expect(fixture.http.requests.map { $0.parameters[first: "token"] } == ["refresh-1", "old"])
    #expect(try fixture.stored() == nil)
    #expect(try fixture.another().interruptedExchanges().isEmpty)
  }

  @Test func withoutANetwork() throws {
    let fixture = try Self.fixture()
    #expect(throws: CredentialError.networkNeeded) {
      try fixture.another().logout(nil, of: "example", keepsRemote: false)
    }
    #expect(try fixture.stored() != nil)
    #expect(try fixture.another().logout(nil, of: "example", keepsRemote: true).revocation == .notAsked)
    #expect(try fixture.stored() == nil)
  }

  @Test func aProviderThatCannotRevoke() throws {
    let fixture = try Self.fixture(
      """
      grant: authorization_code
      endpoints: { authorization: https://provider.example/authorize, token: https://provider.example/token }
      """)
    #expect(try fixture.source.logout(nil, of: "example", keepsRemote: false).revocation == .notAsked)
    #expect(try fixture.stored() == nil)
  }

  /// A token that may be revoked is never returned silently, whenever the process died.
  @Test func aLogoutThatIsInterrupted() throws {
    let fixture = try Self.fixture()
    fixture.http.then { _ in
      #expect((try? fixture.note("ana")) == ExchangeNote(.logout, startedAt: Fixture.now))
      return HTTPResponse(status: 503)
    }
    #expect(throws: CredentialError.self) { try fixture.source.logout(nil, of: "example", keepsRemote: false) }
    #expect(try fixture.another().interruptedExchanges().isEmpty, "the provider said that it did not")
    fixture.http.then(.unreachable(host: "provider.example", reason: .broken))
    #expect(throws: CredentialError.self) { try fixture.source.logout(nil, of: "example", keepsRemote: false) }
    #expect(try fixture.another().interruptedExchanges().map(\.exchange) == [.logout])
  }

  /// Only the newest token is valid at the provider.
  @Test func aLogoutRevokesAnUncommittedToken() throws {
    let fixture = try Self.fixture()
    try fixture.leave(
      ExchangeNote(.refresh, startedAt: 1),
      KeptAnswer(Fixture.credential("new", refresh: "refresh-2"), after: Secret("old")))
    for _ in 0..<2 { fixture.http.then(HTTPResponse(status: 200)) }
    _ = try fixture.source.logout(nil, of: "example", keepsRemote: false)
    #expect(fixture.http.requests.compactMap { $0.parameters[first: "token"] } == ["refresh-2", "new"])
    #expect(try fixture.answerFiles.isEmpty)
  }
}
