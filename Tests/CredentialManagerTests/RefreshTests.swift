import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrDescriptors
import Synchronization
import Testing
import CredmgrStore

@testable import CredmgrCredentialManager
import CredmgrText

struct RefreshTests {
  /// Returns an account with an expired token, unless `left` says otherwise.
  private static func fixture(left: Int64 = 0, refresh: String? = "refresh-1") throws -> Fixture {
    var credential = Fixture.credential("old", refresh: refresh, identity: "ana")
    credential.expiresAt = Fixture.now + .seconds(left)
    credential.obtainedAt = Fixture.now - .seconds(3600)
    return try Fixture.added(credential: credential)
  }

  private static func needed(_ reason: CredentialError.LoginReason, _ account: String? = "ana") -> CredentialError {
    .loginNeeded(provider: "example", account: account, reason)
  }

  private static let unavailable = CredentialError.oauth(
    .unavailable(.refresh, status: 503, words: nil, retryAfter: nil), provider: "example")

  // MARK: A valid token

  /// Requires no network, lock or descriptor.
  @Test func aValidTokenIsReturnedUnchanged() throws {
    let fixture = try Self.fixture(left: 61)
    try File.remove(fixture.root + "/providers/example.yaml")
    let lock = try fixture.lock("ana")
    let account = try fixture.another().freshAccount(nil, of: "example")
    #expect(account.credential.accessToken == Secret("old"))
    _ = consume lock
  }

  @Test(
    arguments: [
      (61, RefreshPolicy(), false), (60, RefreshPolicy(), true), (100, RefreshPolicy(validity: .seconds(100)), true),
      (101, RefreshPolicy(validity: .seconds(100)), false), (10, RefreshPolicy(validity: .zero), false),
      (1000, RefreshPolicy(always: true), true),
    ] as [(Int64, RefreshPolicy, Bool)])
  func margin(_ left: Int64, _ wish: RefreshPolicy, _ isRefreshed: Bool) throws {
    let fixture = try Self.fixture(left: left)
    if isRefreshed { fixture.http.then(.token("new")) }
    let account = try fixture.source.freshAccount("ana", of: "example", wish)
    #expect(account.credential.accessToken == Secret(isRefreshed ? "new" : "old"))
  }

  // MARK: The exchange

  /// A refresh token is sent only to the issuer that made it.
  @Test func aSessionBelongsToItsIssuer() throws {
    var credential = Fixture.credential("old", refresh: "refresh-1", identity: "ana")
    credential.expiresAt = Fixture.now
    credential.issuer = "https://earlier.example"
    let text = Fixture.endpoints + "\nissuer: https://provider.example"
    let fixture = try Fixture.added(text, credential: credential)
    #expect(throws: Self.needed(.otherIssuer)) { try fixture.fresh() }
    #expect(fixture.http.requests.isEmpty)
    // An account of an earlier version does not know its issuer.
    credential.issuer = nil
    let other = try Fixture.added(text, credential: credential)
    other.http.then(.token("new"))
    #expect(try other.fresh().credential.accessToken == Secret("new"))
  }

  @Test func aRotatedTokenIsStored() throws {
    let fixture = try Self.fixture()
    let before = try fixture.source.accounts().resolve(nil, provider: "example").revision
    fixture.http.then(.token("new", refresh: "refresh-2"))
    let account = try fixture.fresh()
    #expect(account.credential.accessToken == Secret("new"))
    #expect(account.credential.expiresAt == Fixture.now + .seconds(3600))
    #expect(account.credential.identity == "ana")
    #expect(account.revision > before)
    let stored = try #require(try fixture.stored())
    #expect(stored == account.credential)
    #expect(stored.refreshToken == Secret("refresh-2"))
    #expect(fixture.http.requests[0].parameters == [("grant_type", "refresh_token"), ("refresh_token", "refresh-1")])
    #expect(try fixture.another().interruptedExchanges().isEmpty)
    // The next call requires nothing.
    #expect(try fixture.another().freshAccount(nil, of: "example").credential.accessToken == Secret("new"))
  }

  @Test func aVaultThatCannotBeWritten() throws {
    let fixture = try Self.fixture()
    try fixture.damageVault()
    #expect(throws: CredentialError.vault(.damaged(path: fixture.home.vaultLocation.file, .header))) {
      try fixture.fresh()
    }
    #expect(fixture.http.requests.isEmpty)
  }

  // MARK: The fields of the identity

  private static func asking(_ follows: String, grant: Grant = .authorizationCode) throws -> Fixture {
    let fixture = try Fixture.added(
      """
      grant: [\(grant.rawValue)]
      endpoints:
        authorization: https://provider.example/authorize
        token: https://provider.example/token
        identity: { url: https://provider.example/me, follows: \(follows), response: { keep: [site] } }
      account: login
      """)
    var credential = Fixture.credential("old", refresh: "refresh-1", identity: "ana")
    credential.grant = grant
    credential.kept = ["site": "one", "other": "x"]
    credential.expiresAt = Fixture.now
    credential.obtainedAt = Fixture.now - .seconds(3600)
    try fixture.store(credential)
    return fixture
  }

  @Test func eachRefreshAsksAgain() throws {
    let fixture = try Self.asking("[token, refresh]")
    fixture.http.then(.token("new", refresh: "refresh-2"), .json(#"{"login": "ana", "site": "two"}"#))
    let account = try fixture.fresh()
    #expect(account.credential.kept == ["site": "two", "other": "x"] && account.credential.identity == "ana")
    #expect(fixture.http.requests[1].fields["Authorization"] == "Bearer new")
    #expect(try fixture.stored() == account.credential)
  }

  /// Without an answer, the new token and the earlier fields count.
  @Test(arguments: [HTTPResponse.json("{}", status: 503), .json("no JSON"), .json(#"{"login": "ana"}"#)])
  func aRefreshWithoutAnAnswer(_ answer: HTTPResponse) throws {
    let fixture = try Self.asking("[token, refresh]")
    fixture.http.then(.token("new", refresh: "refresh-2"), answer)
    let account = try fixture.fresh()
    #expect(account.credential.accessToken == Secret("new") && account.credential.kept["site"] == "one")
    #expect(fixture.notices.isEmpty == (answer.status == 200 && answer.body.first == UInt8(ascii: "{")))
  }

  @Test func aChosenEntryThatIsGoneStays() throws {
    let fixture = try Fixture.added(
      """
      grant: authorization_code
      endpoints:
        authorization: https://provider.example/authorize
        token: https://provider.example/token
        token_exchange:
          url: https://provider.example/sites
          authentication: access_token
          follows: [token, refresh]
          response: { fields: { access_token: [] }, keep: { site: element.id }, element: { label: name } }
      """)
    var credential = Fixture.credential("old", refresh: "refresh-1", identity: "ana")
    credential.kept = ["site": "two"]
    credential.expiresAt = Fixture.now
    credential.obtainedAt = Fixture.now - .seconds(3600)
    try fixture.store(credential)
    fixture.http.then(.token("new", refresh: "refresh-2"), .json(#"[{"id": "one"}, {"id": "three"}]"#))
    let account = try fixture.fresh()
    #expect(account.credential.kept == ["site": "two"] && account.credential.accessToken == Secret("new"))
  }

  /// An account with a token of an entry that the provider no longer lists needs a login.
  @Test func aTokenOfAnEntryThatIsGone() throws {
    let fixture = try Fixture.added(
      """
      grant: authorization_code
      endpoints:
        authorization: https://provider.example/authorize
        token: https://provider.example/token
        token_exchange:
          url: https://provider.example/sites
          authentication: access_token
          follows: [token, refresh]
          response: { fields: { access_token: element.tok }, keep: { site: element.id }, element: { label: id } }
      """)
    var credential = Fixture.credential("old", refresh: "refresh-1", identity: "ana")
    credential.kept = ["site": "two"]
    credential.expiresAt = Fixture.now
    credential.obtainedAt = Fixture.now - .seconds(3600)
    try fixture.store(credential)
    func answer(_ sites: String...) -> HTTPResponse {
      .json("[" + sites.map { #"{"id": "\#($0)", "tok": "token-\#($0)"}"# }.joined(separator: ", ") + "]")
    }
    fixture.http.then(.token("user-1", refresh: "refresh-2"), answer("one", "three"))
    let gone = CredentialError.loginNeeded(provider: "example", account: "ana", .elementGone)
    #expect(throws: gone) { try fixture.fresh() }
    #expect(gone.message.hints == ["\(credmgr: "login", "example", "--account", "ana")"])
    // The new refresh token is not lost.
    fixture.http.then(.token("user-2", refresh: "refresh-3"), answer("one", "two"))
    #expect(try fixture.fresh().credential.accessToken == Secret("token-two"))
    #expect(fixture.http.requests.map { $0.parameters[first: "refresh_token"] }.contains("refresh-2"))
  }

  @Test func othersAreNotAskedAgain() throws {
    let fixture = try Self.asking("token")
    fixture.http.then(.token("new", refresh: "refresh-2"))
    #expect(try fixture.fresh().credential.kept["site"] == "one")
    // Also after a login without a user.
    let machine = try Self.asking("[token, refresh]", grant: .clientCredentials)
    machine.http.then(.token("new"))
    #expect(try machine.fresh().credential.kept["site"] == "one")
  }

  @Test func aLoginWithoutAUserMayAsk() throws {
    let fixture = try Self.asking("[client_credentials, refresh]", grant: .clientCredentials)
    fixture.http.then(.token("new"), .json(#"{"login": "robot", "site": "two"}"#))
    let account = try fixture.login { $0.account = "robot" }
    #expect(account.credential.identity == "robot" && account.credential.kept == ["site": "two"])
    fixture.http.then(.token("newer"), .json(#"{"login": "robot", "site": "three"}"#))
    let policy = RefreshPolicy(always: true)
    #expect(try fixture.source.freshAccount("robot", of: "example", policy).credential.kept == ["site": "three"])
  }

  // MARK: A replaced token

  private static func exchanging(_ follows: String, grant: Grant = .authorizationCode) throws -> Fixture {
    let fixture = try Fixture.added(Fixture.exchanging(follows))
    var credential = Fixture.credential("old")
    credential.grant = grant
    credential.expiresAt = Fixture.now
    credential.obtainedAt = Fixture.now - .seconds(3600)
    if grant == .clientCredentials { credential.refreshToken = nil }
    try fixture.store(credential)
    return fixture
  }

  private static let exchanged = HTTPResponse.json("{\"session\": \"long\", \"expires_in\": 7200}")

  @Test(
    arguments: [
      ("token", .authorizationCode, "short"), ("[token, refresh]", .authorizationCode, "long"),
      // A new token is requested, as by a login.
      ("token", .clientCredentials, "long"),
    ] as [(String, Grant, String)])
  func anExchangeFollowsARefresh(_ follows: String, _ grant: Grant, _ token: String) throws {
    let fixture = try Self.exchanging(follows, grant: grant)
    fixture.http.then(.token("short", refresh: grant == .clientCredentials ? nil : "refresh-2"))
    if token == "long" { fixture.http.then(Self.exchanged) }
    let account = try fixture.fresh()
    #expect(account.credential.accessToken == Secret(token))
    #expect(account.credential.refreshToken == (grant == .clientCredentials ? nil : Secret("refresh-2")))
    #expect(try fixture.stored() == account.credential)
    #expect(fixture.http.isDone)
    if token == "long" { #expect(fixture.http.requests[1].parameters == [("subject_token", "short")]) }
  }

  /// The refresh token in the first answer may be the only valid one.
  @Test func aSecondStepThatFailsLosesNoRefreshToken() throws {
    let fixture = try Self.exchanging("[token, refresh]")
    // An earlier process's loss no longer matters.
    try fixture.leave(ExchangeNote(.refresh, startedAt: 1), nil)
    fixture.http.then(.token("short", refresh: "refresh-2"), .json("{}", status: 503))
    #expect(
      throws: CredentialError.oauth(
        .unavailable(.tokenExchange, status: 503, words: nil, retryAfter: nil), provider: "example")
    ) { try fixture.fresh() }
    #expect(try fixture.stored()?.refreshToken == Secret("refresh-2"))
    #expect(try fixture.stored()?.isRejected == true, "no command gives out the token in between")
    #expect(try fixture.another().interruptedExchanges().isEmpty)
    fixture.http.then(.token("short-2", refresh: "refresh-3"), Self.exchanged)
    #expect(try fixture.fresh().credential.accessToken == Secret("long"))
    #expect(fixture.http.requests[2].parameters[first: "refresh_token"] == "refresh-2")
    #expect(try fixture.stored()?.refreshToken == Secret("refresh-3"))
  }

  /// The answer is saved beside the vault, which becomes writable again after the wait.
  @Test func aSecondStepThatCannotBeCommittedIsKept() throws {
    let fixture = try Self.exchanging("[token, refresh]")
    let file = fixture.home.vaultLocation.file
    let whole = try File.read(file, limit: 1 << 20)
    fixture.http.then(.token("short", refresh: "refresh-2"))
    fixture.http.then { _ in
      do { try fixture.damageVault() } catch { Issue.record(error) }
      return Self.exchanged
    }
    let mend = { @Sendable in
      do { try Fixture.overwrite(file, with: whole) } catch { Issue.record(error) }
    }
    let waits = Mutex(0)
    fixture.clock.onSleep {
      // A commit waits four times.
      let count = waits.withLock { waits in
        waits += 1
        return waits
      }
      if count == 5 { mend() }
    }
    #expect(
      throws: CredentialError.uncommitted(
        provider: "example", account: "ana", isKept: true, .damaged(path: file, .header))
    ) { try fixture.fresh() }
    mend()
    #expect(try fixture.answerFiles.count == 1)
    let account = try fixture.another(http: fixture.http).freshAccount(nil, of: "example")
    #expect(account.credential.accessToken == Secret("long"))
    #expect(try fixture.answerFiles.isEmpty)
  }

  @Test func anExpiredSession() throws {
    var credential = Credential(grant: .oauth1, accessToken: Secret("old"), obtainedAt: Fixture.now)
    (credential.tokenSecret, credential.sessionHandle) = (Secret("s"), Secret("h"))
    credential.expiresAt = Fixture.now
    let fixture = try Fixture.added(
      """
      grant: oauth1
      endpoints:
        temporary_credentials: https://provider.example/initiate
        authorization: https://provider.example/authorize
        token: https://provider.example/token
      response_format: form
      response: { errors: { code: oauth_problem } }
      """, credential: credential)
    fixture.http.then(
      HTTPResponse(status: 401, fields: ["Content-Type": "text/plain"], body: Array("oauth_problem=token_revoked".utf8))
    )
    #expect(throws: Self.needed(.refreshRefused(nil))) { try fixture.fresh() }
    #expect(fixture.http.requests[0].fields["Authorization"]?.contains("oauth_session_handle=\"h\"") == true)
    #expect(try fixture.stored()?.sessionHandle == Secret("h"))
  }

  // MARK: Refusals

  /// After a permanent refusal, credmgr does not ask again, because the provider might see an attack.
  @Test(
    arguments: [
      .json("{\"error\":\"invalid_grant\",\"error_description\":\"revoked\"}", status: 400),
      .json("{\"error\":\"invalid_grant\",\"error_description\":\"revoked\"}"),
      .json("{\"error\":\"invalid_token\",\"error_description\":\"revoked\"}", status: 401),
    ] as [HTTPResponse])
  func aRefusalIsRemembered(_ refusal: HTTPResponse) throws {
    let fixture = try Self.fixture()
    let before = try fixture.stored()
    fixture.http.then(refusal)
    for _ in 0..<3 { #expect(throws: Self.needed(.refreshRefused("revoked"))) { try fixture.fresh() } }
    // Another process does not ask either, with a network or without.
    for wish in [RefreshPolicy(), RefreshPolicy(always: true), RefreshPolicy(validity: .seconds(10))] {
      #expect(throws: Self.needed(.refreshRefused("revoked"))) {
        try fixture.another().freshAccount(nil, of: "example", wish)
      }
    }
    #expect(fixture.http.requests.count == 1)
    // The record stays, because another process may have been faster, or the provider may be wrong.
    #expect(try fixture.stored() == before)
    try fixture.expectNothingLeft()
    let accounts = try fixture.another().accounts()
    let account = try accounts.resolve(nil, provider: "example")
    #expect(try accounts.states(of: [account], at: Fixture.now) == [.expired(.refreshRefused("revoked"))])
    // An explicit retry asks the provider, and the result counts.
    fixture.http.then(.json("{\"error\":\"invalid_grant\",\"error_description\":\"still\"}", status: 400))
    #expect(throws: Self.needed(.refreshRefused("still"))) {
      try fixture.fresh(RefreshPolicy(always: true, asksAgain: true))
    }
    fixture.http.then(HTTPResponse(status: 503))
    #expect(throws: Self.unavailable) { try fixture.fresh(RefreshPolicy(always: true, asksAgain: true)) }
    #expect(throws: Self.needed(.refreshRefused("still"))) { try fixture.fresh() }
    fixture.http.then(.token("new"))
    _ = try fixture.fresh(RefreshPolicy(always: true, asksAgain: true))
    #expect(try fixture.another().freshAccount(nil, of: "example").credential.accessToken == Secret("new"))
  }

  /// The refusal does not apply to another refresh token, however it came into the vault.
  @Test func aRefusalIsOfOneRefreshToken() throws {
    let fixture = try Self.fixture()
    fixture.http.then(.json("{\"error\":\"invalid_grant\"}", status: 400))
    #expect(throws: Self.needed(.refreshRefused(nil))) { try fixture.fresh() }
    try fixture.change { $0.refreshToken = Secret("refresh-of-a-backup") }
    fixture.http.then(.token("new"))
    #expect(try fixture.fresh().credential.accessToken == Secret("new"))
  }

  /// A status alone may come from a proxy, so the next call asks again.
  @Test(arguments: [400, 401, 403]) func aRefusalWithoutAnErrorCodeIsNotPermanent(_ status: Int) throws {
    let fixture = try Self.fixture()
    fixture.http.then(HTTPResponse(status: status))
    #expect(throws: Self.needed(.refreshRefused(nil))) { try fixture.fresh() }
    let accounts = try fixture.another().accounts()
    let account = try accounts.resolve(nil, provider: "example")
    #expect(try accounts.states(of: [account], at: Fixture.now) == [.doubtful(.refreshRefused(nil))])
    fixture.http.then(.token("new"))
    #expect(try fixture.fresh().credential.accessToken == Secret("new"))
  }

  /// An interruption is still reported after the provider was unavailable.
  @Test func anInterruptionIsNotForgotten() throws {
    let fixture = try Self.fixture()
    try fixture.leave(ExchangeNote(.refresh, startedAt: 1), nil)
    fixture.http.then(HTTPResponse(status: 503))
    #expect(throws: Self.unavailable) { try fixture.fresh() }
    #expect(try fixture.another().interruptedExchanges().map(\.startedAt) == [1])
  }

  // MARK: A token before its expiry

  /// A provider that is down for a minute does not affect a token that is valid for another minute.
  @Test(
    arguments: [
      .success(HTTPResponse(status: 503)), .success(HTTPResponse(status: 429)), .success(.json("<html>")),
      .failure(.unreachable(host: "provider.example", reason: .connectionRefused)),
      .failure(.unreachable(host: "provider.example", reason: .timedOut)),
      .success(.json("{\"error\":\"invalid_client\"}", status: 401)),
      .success(.json("{\"error\":\"invalid_grant\"}", status: 400)),
    ] as [Result<HTTPResponse, HTTPError>])
  func aTokenIsReturnedUntilItExpires(_ answer: Result<HTTPResponse, HTTPError>) throws {
    let fixture = try Self.fixture(left: 30)
    switch answer {
    case .success(let response): fixture.http.then(response)
    case .failure(let error): fixture.http.then(error)
    }
    #expect(try fixture.fresh().credential.accessToken == Secret("old"))
    guard case .notRefreshed("example", "ana", .seconds(30), _)? = fixture.notices.first else {
      Issue.record("\(fixture.notices)")
      return
    }
    #expect(fixture.notices.count == 1)
  }

  /// A caller that needs more gets the reason instead.
  @Test(
    arguments: [(30, RefreshPolicy(validity: .seconds(40))), (30, RefreshPolicy(always: true)), (0, RefreshPolicy())]
      as [(Int64, RefreshPolicy)])
  func aCallerThatNeedsMoreGetsTheReason(_ left: Int64, _ wish: RefreshPolicy) throws {
    let fixture = try Self.fixture(left: left)
    fixture.http.then(HTTPResponse(status: 503))
    #expect(throws: Self.unavailable) { try fixture.fresh(wish) }
  }

  /// The token expired or was rejected during the wait for the provider.
  @Test(arguments: [true, false]) func diesMeanwhile(_ isRejected: Bool) throws {
    let fixture = try Self.fixture(left: 30)
    fixture.http.then { _ in
      if isRejected {
        try? fixture.another().reject(Secret("old"), account: nil, of: "example")
      } else {
        fixture.clock.advance(.seconds(31))
      }
      return HTTPResponse(status: 503)
    }
    #expect(throws: Self.unavailable) { try fixture.fresh() }
  }

  /// Another process holds the account's lock for too long.
  @Test func aValidTokenIsReturnedIfTheLockStaysHeld() throws {
    let fixture = try Self.fixture(left: 30)
    let lock = try fixture.lock("ana")
    let account = try fixture.fresh(RefreshPolicy(lockTimeout: .seconds(5)))
    #expect(account.credential.accessToken == Secret("old"))
    _ = consume lock
  }

  // MARK: Odd answers

  /// A rotated refresh token is stored even if another field is odd.
  @Test(
    arguments: [
      ("\"id_token\": {}", [.idToken]), ("\"id_token\": \"\\u0000\"", [.idToken]), ("\"id_token\": null", []),
      ("\"oauth_session_handle\": [1]", [.oauthSessionHandle]), ("\"scope\": {\"a\": 1}", [.scope]),
      ("\"scope\": [\"a\", {}]", [.scope]), ("\"scope\": 7", []),
      ("\"expires_in\": \"soon\"", [.expiresIn]), ("\"expires_in\": {}", [.expiresIn]),
      ("\"expires_in\": -1", [.expiresIn]), ("\"expires_in\": 1e300", []), ("\"expires_in\": 0", []),
      ("\"expires_at\": true", [.expiresAt]), ("\"refresh_token_expires_in\": \"?\"", [.refreshTokenExpiresIn]),
      ("\"refresh_token_expires_at\": {}", [.refreshTokenExpiresAt]), ("\"refresh_token\": {}", [.refreshToken]),
      ("\"refresh_token\": 17", [.refreshToken]), ("\"refresh_token\": [\"a\"]", [.refreshToken]),
      ("\"refresh_token\": \"\\u00e9\"", [.refreshToken]),
    ] as [(String, [ResponseField])])
  func anOddFieldCostsNoToken(_ member: String, _ fields: [ResponseField]) throws {
    let fixture = try Self.fixture()
    let isRefreshToken = fields == [.refreshToken]
    let more = isRefreshToken ? "" : "\"refresh_token\": \"refresh-2\", "
    fixture.http.then(.json("{\"access_token\": \"new\", \(more)\(member)}"))
    #expect(try fixture.fresh().credential.accessToken == Secret("new"))
    #expect(try fixture.stored()?.refreshToken == Secret(isRefreshToken ? "refresh-1" : "refresh-2"))
    #expect(fixture.notices == (fields.isEmpty ? [] : [.unreadable(provider: "example", fields: fields)]))
  }

  /// The access token is useless, but its refresh token is the only valid one now.
  @Test(arguments: ["{}", "17", "\"\"", "\"a\\nb\"", "null"]) func anUnreadableAccessToken(_ value: String) throws {
    let fixture = try Self.fixture()
    fixture.http.then(.json("{\"access_token\": \(value), \"refresh_token\": \"refresh-2\"}"))
    do throws(CredentialError) {
      _ = try fixture.fresh()
      Issue.record("there is a token")
    } catch {
      #expect(
        error == .oauth(.malformedField(.refresh, .accessToken), provider: "example")
          || error == .oauth(.missingField(.refresh, .accessToken), provider: "example"))
    }
    #expect(try fixture.stored()?.accessToken == Secret("old"))
    try fixture.expectNothingLeft()
    fixture.http.then { request in
      #expect(request.parameters[first: "refresh_token"] == "refresh-2")
      return .token("new")
    }
    #expect(try fixture.fresh().credential.accessToken == Secret("new"))
  }

  /// A server that refuses the times in a signed request may not say so, but its answer has its own time.
  @Test(arguments: [
    ("client_secret_jwt", 3700, true), ("client_secret_jwt", -400, true), ("client_secret_jwt", 290, false),
    ("client_secret_basic", 3700, false),
  ])
  func aClockMayBeTheReason(_ method: String, _ seconds: Int, _ isNamed: Bool) throws {
    var credential = Fixture.credential(refresh: "refresh-1")
    credential.expiresAt = Fixture.now
    let fixture = try Fixture.added(
      Fixture.endpoints + "\nclient: { authentication: \(method) }\n", credential: credential)
    var answer = HTTPResponse.json("{\"error\":\"invalid_client\"}", status: 401)
    answer.fields.set("Date", (Fixture.now + .seconds(seconds)).httpDate)
    var refusal = ErrorResponse(code: "invalid_client", words: nil, status: 401)
    refusal.clockDifference = isNamed ? .seconds(seconds) : nil
    fixture.http.then(answer)
    #expect(throws: CredentialError.oauth(.refused(.refresh, refusal), provider: "example")) { try fixture.fresh() }
  }

  private static func refused(_ code: String, _ status: Int) -> OAuthError {
    .refused(.refresh, ErrorResponse(code: code, words: nil, status: status))
  }

  /// These answers say nothing about the refresh token.
  @Test(
    arguments: [
      (HTTPResponse(status: 404), refused("http_404", 404)), (HTTPResponse(status: 408), refused("http_408", 408)),
      (HTTPResponse(status: 429), .unavailable(.refresh, status: 429, words: nil, retryAfter: nil)),
      (HTTPResponse(status: 503), .unavailable(.refresh, status: 503, words: nil, retryAfter: nil)),
      (HTTPResponse(status: 302), .redirected(.refresh, status: 302)),
      (.json("<html>"), .unreadable(.refresh, expected: .json, mediaType: "application/json")),
      (.json("{\"error\":\"invalid_client\"}", status: 401), refused("invalid_client", 401)),
    ] as [(HTTPResponse, OAuthError)])
  func faultOfTheProvider(_ response: HTTPResponse, _ error: OAuthError) throws {
    let fixture = try Self.fixture()
    let before = try fixture.stored()
    fixture.http.then(response)
    #expect(throws: CredentialError.oauth(error, provider: "example")) { try fixture.fresh() }
    let unreachable = HTTPError.unreachable(host: "provider.example", reason: .nameNotResolved)
    fixture.http.then(unreachable)
    #expect(throws: CredentialError.http(unreachable, provider: "example")) { try fixture.fresh() }
    #expect(try fixture.stored() == before)
    try fixture.expectNothingLeft()
  }

  @Test func nothingToRefreshWith() throws {
    let fixture = try Self.fixture(refresh: nil)
    #expect(throws: Self.needed(.expired)) { try fixture.fresh() }
    // Also without a network: only a login helps.
    #expect(throws: Self.needed(.expired)) { try fixture.another().freshAccount(nil, of: "example") }
    try fixture.change { $0.isRejected = true }
    #expect(throws: Self.needed(.rejected)) { try fixture.fresh() }
    // The result is the same as for an expired refresh token.
    try fixture.change { credential in
      (credential.isRejected, credential.refreshToken) = (false, Secret("refresh-1"))
      credential.refreshTokenExpiresAt = Fixture.now
    }
    #expect(throws: Self.needed(.expired)) { try fixture.fresh() }
  }

  /// A valid token is not reported as expired just because it cannot be refreshed.
  @Test(arguments: [RefreshPolicy(always: true), RefreshPolicy(validity: .seconds(2000))])
  func aValidTokenThatCannotBeRefreshed(_ wish: RefreshPolicy) throws {
    let fixture = try Self.fixture(left: 1000, refresh: nil)
    #expect(throws: Self.needed(.notRefreshable)) { try fixture.fresh(wish) }
    #expect(try fixture.fresh().credential.accessToken == Secret("old"))
  }

  /// A process died before it committed the answer, so the refresh token is used up, and the error says so.
  @Test func anUnfinishedExchange() throws {
    let fixture = try Self.fixture()
    try fixture.leave(ExchangeNote(.refresh, startedAt: 1), nil)
    let interruption = Interruption(provider: "example", account: "ana", exchange: .refresh, startedAt: 1)
    #expect(try fixture.source.interruptedExchanges() == [interruption])
    for wish in [RefreshPolicy(), RefreshPolicy(asksAgain: true), RefreshPolicy()] {
      if wish.asksAgain || fixture.http.requests.isEmpty {
        fixture.http.then(.json("{\"error\":\"invalid_grant\",\"error_description\":\"used\"}", status: 400))
      }
      #expect(throws: Self.needed(.refreshInterrupted("used"))) { try fixture.fresh(wish) }
    }
    #expect(fixture.http.requests.count == 2)
    // This stays the reason until the next login.
    #expect(try fixture.another().interruptedExchanges().map(\.account) == ["ana"])
  }

  /// An interrupted login or logout loses no answer to a refresh, but an earlier interrupted command may have lost one.
  @Test(arguments: [.login, .logout] as [Interruption.Exchange], [true, false])
  func anEarlierInterruptionIsReported(_ exchange: Interruption.Exchange, _ isLost: Bool) throws {
    let fixture = try Self.fixture()
    let earlier = isLost ? ExchangeNote(.refresh, startedAt: 1) : nil
    try fixture.leave(ExchangeNote(exchange, startedAt: 2, after: earlier), nil)
    fixture.http.then(.json("{\"error\":\"invalid_grant\",\"error_description\":\"used\"}", status: 400))
    #expect(throws: Self.needed(isLost ? .refreshInterrupted("used") : .refreshRefused("used"))) {
      try fixture.fresh()
    }
  }

  /// The token is valid but may be the last, so the caller gets a notice.
  @Test func anInterruptedExchangeIsReported() throws {
    let fixture = try Self.fixture(left: 1000)
    try fixture.leave(ExchangeNote(.refresh, startedAt: 1), nil)
    #expect(try fixture.fresh().credential.accessToken == Secret("old"))
    #expect(fixture.notices == [Fixture.interrupted(.refresh)])
    // A successful refresh clears the notice.
    fixture.http.then(.token("new"))
    _ = try fixture.fresh(RefreshPolicy(always: true))
    #expect(try fixture.source.interruptedExchanges().isEmpty)
  }

  /// Another process was refused with this refresh token, so it is not sent again: the provider would see a reuse.
  @Test func aWaitingProcessSharesARefusal() throws {
    let fixture = try Self.fixture()
    let lock = Mutex(try fixture.lock("ana"))
    let refusal = ExchangeNote.Refusal(at: Fixture.now, words: "used", isAfterInterruption: true)
    let note = ExchangeNote(.refresh, startedAt: Fixture.now, refusal: refusal).encoded
    fixture.whileWaiting([.store(note, as: RecordIdentifier(.pending, of: AccountID("example", "ana")))]) {
      lock.withLock { $0 = nil }
    }
    #expect(throws: Self.needed(.refreshInterrupted("used"))) { try fixture.fresh() }
    #expect(fixture.http.requests.isEmpty)
    // A later call asks the provider.
    fixture.http.then(.token("new"))
    #expect(try fixture.fresh().credential.accessToken == Secret("new"))
  }

  /// A process died between the answer and its commit, and the answer is saved beside the vault.
  @Test(arguments: [0, 1000]) func anUncommittedAnswer(_ left: Int64) throws {
    let fixture = try Self.fixture(left: left)
    try fixture.leave(
      ExchangeNote(.refresh, startedAt: 1),
      KeptAnswer(Fixture.credential("new", refresh: "refresh-2"), after: Secret("old")))
    #expect(try fixture.source.interruptedExchanges().isEmpty, "nothing is lost")
    #expect(try fixture.fresh().credential.accessToken == Secret("new"))
    #expect(fixture.http.requests.isEmpty)
    #expect(try fixture.stored()?.refreshToken == Secret("refresh-2"))
    #expect(try fixture.answerFiles.isEmpty)
    #expect(try fixture.note("ana") == nil)
  }

  /// The saved answer belongs to another token than the current one.
  @Test(arguments: [Secret("older"), nil]) func anEarlierAnswer(_ previous: Secret?) throws {
    let fixture = try Self.fixture()
    try fixture.leave(nil, KeptAnswer(Fixture.credential("stale", refresh: "stale"), after: previous))
    fixture.http.then(.token("new"))
    #expect(try fixture.fresh().credential.accessToken == Secret("new"))
    #expect(try fixture.stored()?.refreshToken == Secret("refresh-1"))
    #expect(try fixture.answerFiles.isEmpty)
  }

  @Test func aSavedTokenThatHasExpired() throws {
    let fixture = try Self.fixture()
    var kept = Fixture.credential("expired", refresh: "refresh-2")
    kept.expiresAt = Fixture.now
    try fixture.leave(ExchangeNote(.refresh, startedAt: 1), KeptAnswer(kept, after: Secret("old")))
    fixture.http.then { request in
      #expect(request.parameters[first: "refresh_token"] == "refresh-2")
      return .token("new", refresh: "refresh-3")
    }
    #expect(try fixture.fresh().credential.accessToken == Secret("new"))
    #expect(try fixture.stored()?.refreshToken == Secret("refresh-3"))
    #expect(try fixture.answerFiles.isEmpty)
  }

  /// A file with arbitrary content is not an answer.
  @Test(arguments: ["", "\0", String(repeating: "\0", count: 999), "\0\0\0\0\0\0\0\u{4}\u{1}\u{2}\u{3}\u{4}"])
  func aFileThatIsNoAnswer(_ text: String) throws {
    let fixture = try Self.fixture()
    try fixture.leave(nil, KeptAnswer(Fixture.credential("stale"), after: Secret("old")))
    let file = fixture.home.vault + "/" + (try #require(try fixture.answerFiles.first))
    try PrivateFile.replace(file, Array(text.utf8))
    fixture.http.then(.token("new"))
    #expect(try fixture.fresh().credential.accessToken == Secret("new"))
  }

  /// Errors do not show secrets that the provider repeats.
  @Test func aRefusalThatRepeatsTheToken() throws {
    let fixture = try Self.fixture()
    fixture.http.then(
      .json("{\"error\":\"invalid_grant\",\"error_description\":\"no refresh-1 or secret-1\"}", status: 400))
    #expect(throws: Self.needed(.refreshRefused("no … or …"))) { try fixture.fresh() }
  }

  @Test func notLoggedIn() throws {
    let fixture = try Fixture()
    #expect(throws: Self.needed(.noCredential, nil)) { try fixture.fresh() }
    #expect(!File.exists(fixture.home.vault))
    try fixture.add()
    #expect(throws: Self.needed(.noCredential, "bob")) { try fixture.source.freshAccount("bob", of: "example") }
  }

  @Test func withoutANetworkNothingIsTouched() throws {
    let fixture = try Self.fixture()
    #expect(throws: CredentialError.networkNeeded) { try fixture.another().freshAccount(nil, of: "example") }
    #expect(try fixture.another().interruptedExchanges().isEmpty)
    #expect(try File.names(in: fixture.home.vault) == ["vault.db", "vault.key", "vault.log"])
  }

  // MARK: Two processes

  /// A login during the refresh wins, and its token is returned.
  @Test func aLostRaceOverwritesNothing() throws {
    let fixture = try Self.fixture()
    fixture.http.then { _ in
      try? fixture.store(Fixture.credential("theirs", refresh: "theirs"))
      return .token("ours", refresh: "ours")
    }
    #expect(try fixture.fresh().credential.accessToken == Secret("theirs"))
    #expect(try fixture.stored()?.refreshToken == Secret("theirs"))
    #expect(try fixture.another().interruptedExchanges().isEmpty)
  }

  /// `git credential erase` rejected the old token during the refresh, and the new one must not be lost.
  @Test func aRejectionMeanwhileCostsNoToken() throws {
    let fixture = try Self.fixture()
    fixture.http.then { _ in
      try? fixture.another().reject(Secret("old"), account: nil, of: "example")
      #expect((try? fixture.stored())?.isRejected == true)
      return .token("new", refresh: "refresh-2")
    }
    #expect(try fixture.fresh().credential.accessToken == Secret("new"))
    let stored = try #require(try fixture.stored())
    #expect(stored.refreshToken == Secret("refresh-2"))
    #expect(!stored.isRejected)
    #expect(try fixture.another().interruptedExchanges().isEmpty)
  }

  /// Removal by an attacker without a key is different: the answer repairs it.
  @Test(arguments: ["DELETE FROM record WHERE kind=1", "UPDATE record SET sealed=zeroblob(99) WHERE kind=1"])
  func aRecordThatIsDamagedMeanwhile(_ change: String) throws {
    let fixture = try Self.fixture()
    fixture.http.then { _ in
      do {
        try fixture.execute(change)
      } catch { Issue.record(error) }
      return .token("new", refresh: "refresh-2")
    }
    #expect(try fixture.fresh().credential.accessToken == Secret("new"))
    #expect(try fixture.stored()?.refreshToken == Secret("refresh-2"))
    #expect(try fixture.another().accounts().verify() == [])
  }

  @Test func aWaitingProcessUsesTheFirstOnesToken() throws {
    let fixture = try Self.fixture()
    let lock = try fixture.lock("ana")
    fixture.whileWaiting([Fixture.storing("theirs")])
    let account = try fixture.fresh()
    _ = consume lock
    #expect(account.credential.accessToken == Secret("theirs"))
    #expect(fixture.notices.contains { if case .waiting("example", "ana", _) = $0 { true } else { false } })
    #expect(fixture.http.requests.isEmpty)
  }

  /// Another process refreshed before this one had the lock, so its token is used, even for a forced refresh.
  @Test func aLateCallerDoesNotRefreshAgain() throws {
    let fixture = try Self.fixture(left: 1000)
    let account = try fixture.source.accounts().resolve(nil, provider: "example")
    try fixture.store(Fixture.credential("theirs"))
    let renewed = try fixture.source.refreshed(account, RefreshPolicy(always: true))
    #expect(renewed.credential.accessToken == Secret("theirs"))
    #expect(fixture.http.requests.isEmpty)
  }

  @Test func waitingEnds() throws {
    let fixture = try Self.fixture()
    let lock = try fixture.lock("ana")
    #expect(throws: CredentialError.lockTimedOut(provider: "example", account: "ana")) {
      try fixture.fresh(RefreshPolicy(lockTimeout: .seconds(5)))
    }
    _ = consume lock
    #expect((.seconds(5) ..< .seconds(6)).contains(fixture.clock.passed()))
    // The lock is free again.
    fixture.http.then(.token("new"))
    _ = try fixture.fresh()
  }

  // MARK: Rejected tokens

  @Test func onlyTheSameTokenIsRejected() throws {
    let fixture = try Self.fixture(left: 1000)
    try fixture.store(Fixture.credential("other"), "bob")
    try fixture.source.reject(Secret("older"), account: "ana", of: "example")
    try fixture.source.reject(Secret("old"), account: "bob", of: "example")
    #expect(try fixture.stored()?.isRejected == false)
    #expect(try fixture.stored("bob")?.isRejected == false)
    try fixture.source.reject(Secret("old"), account: nil, of: "example")
    #expect(try fixture.stored()?.isRejected == true)
    #expect(try fixture.stored("bob")?.isRejected == false)
    // The token is refreshed before its next use.
    fixture.http.then(.token("new"))
    #expect(try fixture.source.freshAccount("ana", of: "example").credential.accessToken == Secret("new"))
    #expect(try fixture.stored()?.isRejected == false)
  }
}
