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

struct LoginTests {
  @Test func authorizationCode() throws {
    let fixture = try Fixture.added()
    fixture.consent(.token("token-1", refresh: "refresh-1"), .identity("ana"))
    let account = try fixture.login()
    #expect(account.name == "ana")
    #expect(account.credential.accessToken == Secret("token-1"))
    #expect(account.credential.identity == "ana")
    #expect(try fixture.stored() == account.credential)

    let page = try fixture.page
    #expect(page[first: "scope"] == "read")
    #expect(page[first: "client_id"] == "client-1")
    let form = fixture.http.requests[0].parameters
    #expect(form[first: "code"] == "code-1")
    #expect(form[first: "redirect_uri"] == page[first: "redirect_uri"])
    let redirect = try URI(parsing: #require(page[first: "redirect_uri"]))
    #expect(redirect.host == "127.0.0.1" && redirect.port != nil && redirect.path == "/callback/example")
    let verifier = try #require(form[first: "code_verifier"])
    #expect(CodeVerifier(verifier).challenge(.s256) == page[first: "code_challenge"])
    #expect(fixture.http.requests[1].uri.text == "https://api.provider.example/me")
    #expect(fixture.http.requests[1].fields["Authorization"] == "Bearer token-1")

    #expect(try fixture.user.visits.map { try $0.status } == ["200"])
    #expect(fixture.user.steps == [.open(url: try #require(fixture.user.opened.first))])
    #expect(try fixture.another().accounts().selected(for: "example") == "ana")
    #expect(try fixture.another().interruptedExchanges().isEmpty)
  }

  /// Only the identity endpoint knows this host or tenant.
  @Test(arguments: [true, false]) func identityFieldsAreKept(_ namesAccount: Bool) throws {
    let fixture = try Fixture()
    var text = Fixture.endpoints.replacing(
      "identity: https://api.provider.example/me",
      with: "identity: { url: https://api.provider.example/me, response: { keep: { tenant: teams.0.id } } }")
    if !namesAccount { text = text.replacing("account: login\n", with: "") }
    try fixture.add(text + "\nextra_headers: { X-Tenant: \"{tenant}\" }")
    fixture.consent(.token("token-1", refresh: "refresh-1"), .json(#"{"login": "ana", "teams": [{"id": 7}]}"#))
    let account = try fixture.login()
    #expect(account.name == (namesAccount ? "ana" : "default"))
    #expect(account.credential.kept == ["tenant": "7"])
    let fields = try fixture.source.headerFields(nil, of: "example", for: nil)
    #expect(fields["X-Tenant"] == "7")
  }

  /// The token would go to the host in the answer; without that host, the account would be useless.
  @Test func anIdentityBeyondItsBoundsEndsTheLogin() throws {
    let fixture = try Fixture()
    let text = Fixture.endpoints.replacing(
      "identity: https://api.provider.example/me",
      with: """
        identity:
            url: https://api.provider.example/me
            response: { keep: { dc: { path: dc, pattern: "us[0-9]+" } } }
        """
    ).replacing("hosts: [api.provider.example]", with: "hosts: [\"{dc}.provider.example\"]")
    try fixture.add(text)
    fixture.consent(
      .token("token-1"), .json(#"{"login": "ana", "dc": "https://evil.example/?"}"#), HTTPResponse(status: 200))
    #expect(throws: CredentialError.oauth(.valueOutOfBounds(.identity, name: "dc"), provider: "example")) {
      try fixture.login()
    }
    #expect(try fixture.another().accounts().accounts(of: "example").isEmpty)
    fixture.consent(.token("token-2"), .json(#"{"login": "ana", "dc": "us1"}"#))
    #expect(try fixture.login().credential.kept == ["dc": "us1"])
  }

  /// Account names appear in many places.
  @Test func aTokenCannotNameAnAccount() throws {
    let fixture = try Fixture.added(secret: "key-of-the-client")
    fixture.consent(.token("token-1-of-ana"), .identity("token-1-of-ana"))
    #expect(try fixture.login().name == "default")
    fixture.consent(.token("token-2-of-ana"), .identity("ana (key-of-the-client)"))
    #expect(throws: CredentialError.oauth(.secretAccount, provider: "example")) { try fixture.login() }
    fixture.consent(.token("token-3-of-ana"), .identity("ana"))
    #expect(try fixture.login().name == "ana")
  }

  private static func refusal(_ error: CredentialError?) -> ErrorResponse? {
    if case .oauth(.refused(_, let refusal), _)? = error { refusal } else { nil }
  }

  /// A descriptor may read any field as an error, and a provider may quote anything in a message.
  @Test(arguments: [("code", "[state, error]"), ("[x, code]", "code"), ("copy", "error_description")])
  func noCodeIsShownAsAnError(_ code: String, _ description: String) throws {
    let fixture = try Fixture.added(
      Fixture.endpoints.replacing(
        "authorization: https://provider.example/authorize",
        with: """
          authorization:
              url: https://provider.example/authorize
              response: { errors: { code: \(code), description: \(description) } }
          """))
    var state = ""
    fixture.user.visit { redirect, sent in
      state = sent
      return [
        try Visit.get(
          redirect, [("code", "code-1"), ("copy", "a code-1"), ("state", sent), ("error_description", "for " + sent)])
      ]
    }
    let error = #expect(throws: CredentialError.self) { try fixture.login() }
    let shown = try #require(Self.refusal(error))
    #expect(shown.code.contains("…") && shown.words?.contains("…") != false)
    let page = try fixture.user.visits[0].answer()
    for secret in ["code-1", state] { #expect(!"\(shown) \(page)".contains(secret), "\(shown)") }
  }

  @Test func noTokenIsShownAsAnError() throws {
    let fixture = try Fixture.added(Fixture.endpoints + "\nresponse: { errors: { code: [sub.code, error] } }")
    fixture.consent(.json(#"{"access_token": "token-1", "sub": {"code": "x token-1"}}"#))
    let error = #expect(throws: CredentialError.self) { try fixture.login() }
    #expect(Self.refusal(error)?.code == "x …")
  }

  /// credmgr also shows kept fields, scopes and pages.
  @Test func noSecretIsKeptOrShown() throws {
    let fixture = try Fixture.added(
      Fixture.endpoints.replacing("account: login", with: "account: w").replacing(
        "authorization: https://provider.example/authorize",
        with: "authorization: { url: https://provider.example/authorize, response: { keep: { w: code, v: iss } } }"
      ).replacing("  identity: https://api.provider.example/me\n", with: ""), secret: "key-of-the-client")
    fixture.user.visit { redirect, state in
      [
        try Visit.get(
          redirect, [("code", "code-1-of-ana"), ("state", state), ("iss", "https://provider.example/code-1-of-ana")])
      ]
    }
    fixture.http.then(.json(#"{"access_token": "token-1", "scope": "read key-of-the-client", "token_type": "Bearer"}"#))
    let account = try fixture.login()
    #expect(account.name == "default" && account.credential.kept.isEmpty)
    #expect(account.credential.grantedScope == ["read"])
  }

  @Test(arguments: ["https://provider.example/device-code-1", "https://provider.example/?k=key-of-the-client"])
  func aPageHasNoSecret(_ page: String) throws {
    let fixture = try Fixture.added(
      "grant: device_code\nendpoints: { device_authorization: https://provider.example/d, token: https://provider.example/t }",
      secret: "key-of-the-client")
    fixture.http.then(
      .json(
        """
        {"device_code": "device-code-1", "user_code": "U", "verification_uri": "\(page)", "expires_in": 60}
        """))
    #expect(
      throws: CredentialError.oauth(.malformedField(.deviceAuthorization, .userCode), provider: "example")
    ) { try fixture.login() }
    #expect(fixture.user.opened.isEmpty)
  }

  @Test func aForgedRedirectChangesNothing() throws {
    let fixture = try Fixture.added()
    fixture.user.consent(
      [("code", "forged"), ("state", String(repeating: "A", count: 43))], [("code", "forged")],
      [("error", "access_denied"), ("state", "other")], [("code", "code-1"), ("state", "state")])
    fixture.http.then(.token("token-1"), .identity("ana"))
    _ = try fixture.login()
    #expect(fixture.http.requests[0].parameters[first: "code"] == "code-1")
    #expect(try fixture.user.visits.map { try $0.status } == ["400", "400", "400", "200"])
    #expect(fixture.user.steps.suffix(3) == (1...3).map { .strayRedirect(count: $0) })
  }

  @Test func theUserDeniesAccess() throws {
    let fixture = try Fixture.added()
    fixture.user.consent([("error", "access_denied"), ("error_description", "the person said no"), ("state", "state")])
    let refusal = ErrorResponse(code: "access_denied", words: "the person said no", status: nil)
    #expect(throws: CredentialError.oauth(.refused(.authorization, refusal), provider: "example")) {
      try fixture.login()
    }
    #expect(try fixture.user.visits[0].answer().contains("the person said no"))
    #expect(try fixture.source.accounts().accounts(of: nil).isEmpty)
  }

  /// RFC 8252, 7.3, with a query that must be returned.
  @Test func redirectWithItsOwnQuery() throws {
    let fixture = try Fixture.added(Fixture.endpoints + "\nredirect: http://127.0.0.1/done?own=1")
    fixture.user.visit { redirect, state in
      try [URI(parsing: redirect).withoutQueryAndFragment.text, redirect].map {
        try Visit.get($0, [("code", "c"), ("state", state)])
      }
    }
    fixture.http.then(.token("token-1"), .identity("ana"))
    _ = try fixture.login()
    #expect(try fixture.user.visits.map { try $0.status } == ["404", "200"])
    #expect(fixture.http.requests[0].parameters[first: "redirect_uri"]?.hasSuffix("/done?own=1") == true)
  }

  @Test func theTokenIsExchanged() throws {
    let fixture = try Fixture.added(Fixture.exchanging())
    fixture.consent(.token("short", refresh: "refresh-1"), .json("{\"session\": \"long\", \"expires_in\": 7200}"))
    fixture.http.then(.identity("ana"))
    let account = try fixture.login()
    #expect(account.credential.accessToken == Secret("long"))
    #expect(account.credential.refreshToken == Secret("refresh-1"))
    #expect(account.credential.expiresAt == Fixture.now + .seconds(7200))
    #expect(fixture.http.requests[1].parameters == [("subject_token", "short")])
    #expect(fixture.http.requests[2].fields["Authorization"] == "Bearer long")
    #expect(try fixture.stored() == account.credential)
  }

  /// The token between the two steps is useless alone, so the user must log in again.
  @Test func aTokenThatWasNotExchangedIsNotKept() throws {
    let fixture = try Fixture.added(Fixture.exchanging())
    let done = HTTPResponse(status: 200)
    fixture.consent(
      .token("short", refresh: "refresh-1"), .json("{\"error\": \"invalid_request\"}", status: 400), done, done)
    #expect(
      throws: CredentialError.oauth(
        .refused(.tokenExchange, ErrorResponse(code: "invalid_request", words: nil, status: 400)), provider: "example")
    ) { try fixture.login() }
    // The provider knows both tokens.
    #expect(fixture.http.requests.suffix(2).map { $0.parameters[first: "token"] } == ["refresh-1", "short"])
    #expect(try fixture.source.accounts().accounts(of: nil).isEmpty)
    fixture.consent(.token("short-2"), .json("{\"session\": \"long\"}"), .identity("ana"))
    #expect(try fixture.login().credential.accessToken == Secret("long"))
    #expect(fixture.http.requests[4].parameters[first: "grant_type"] == "authorization_code")
  }

  /// An unrelated request does not end the login.
  @Test func aStrayRequestBeforeTheFragment() throws {
    let fixture = try Fixture.added(
      """
      grant: implicit
      endpoints: { authorization: https://provider.example/authorize }
      response: { keep: [principalID] }
      account: principalID
      """, secret: nil)
    fixture.user.visit { redirect, state in
      [
        try Visit.get(redirect, [("x", "1")]), try Visit.post(redirect, [("x", "1")]),
        try Visit.post(redirect, [("access_token", "forged"), ("state", "other")]), try Visit.get(redirect, []),
        try Visit.post(redirect, [("access_token", "tk_1"), ("principalID", "p-1"), ("state", state)]),
      ]
    }
    let account = try fixture.login()
    #expect(account.name == "p-1")
    #expect(account.credential.grant == .implicit)
    #expect(account.credential.accessToken == Secret("tk_1"))
    #expect(try fixture.page[first: "response_type"] == "token")
    #expect(try fixture.user.visits.map { try $0.status } == ["400", "400", "400", "200", "200"])
  }

  /// A login accepts a token with unreadable optional fields, as a refresh does.
  @Test(
    arguments: [
      (.authorizationCode, .token), (.deviceCode, .deviceToken), (.clientCredentials, .clientCredentials),
    ] as [(Grant, EndpointKind)]) func theAnswerWithTheToken(_ grant: Grant, _ kind: EndpointKind) throws
  {
    let fixture = try Fixture.added()
    func login(_ answers: HTTPResponse...) throws -> Account {
      if grant == .deviceCode { fixture.http.then(Self.device) } else { fixture.consent() }
      for answer in answers { fixture.http.then(answer) }
      return try fixture.login { ($0.grant, $0.scope) = (grant, ["a", "b"]) }
    }
    let good = HTTPResponse.json(#"{"access_token":"t","expires_in":"soon","refresh_token":7}"#)
    let account = try grant.traits.needsPerson ? login(good, .identity("ana")) : login(good)
    #expect(account.name == (grant.traits.needsPerson ? "ana" : "default"))
    #expect(grant.traits.needsPerson || fixture.user.steps.isEmpty)
    #expect(account.credential.grant == grant && account.credential.requestedScope == ["a", "b"])
    #expect(account.credential.accessToken == Secret("t") && account.credential.refreshToken == nil)
    #expect(fixture.notices == [.unreadable(provider: "example", fields: [.expiresIn, .refreshToken])])
    for (answer, error) in [
      (
        .json(#"{"error":"invalid_grant"}"#, status: 400),
        .refused(kind, ErrorResponse(code: "invalid_grant", words: nil, status: 400))
      ), (.json("<html>"), .unreadable(kind, expected: .json, mediaType: "application/json")),
      (.json(#"{"refresh_token":"r"}"#), .missingField(kind, .accessToken)),
    ] as [(HTTPResponse, OAuthError)] {
      #expect(throws: CredentialError.oauth(error, provider: "example")) { try login(answer) }
    }
    #expect(try fixture.stored(account.name)?.accessToken == Secret("t"))
    try fixture.expectNothingLeft()
  }

  // MARK: Interruptions

  /// The process died after storing the token, so the next login continues from there, even after a key rotation.
  @Test(arguments: [false, true]) func aLoginThatWasInterruptedIsFinished(_ isRotated: Bool) throws {
    let fixture = try Fixture.added()
    var kept = Fixture.credential("kept")
    kept.requestedScope = ["read"]
    try fixture.leave(ExchangeNote(.login, startedAt: Fixture.now), KeptAnswer(kept, after: nil), "")
    if isRotated {
      for _ in 0..<2 { try fixture.another().rotateVault() }
      #expect(try fixture.answerFiles.isEmpty)
    }
    #expect(try fixture.source.interruptedExchanges().map(\.exchange) == [.login])
    fixture.http.then(.identity("ana"))
    let account = try fixture.login()
    #expect(account.name == "ana")
    #expect(account.credential.accessToken == Secret("kept"))
    #expect(fixture.user.opened.isEmpty)
    #expect(try fixture.another().interruptedExchanges().isEmpty)
  }

  /// The next login is new if it has another scope or grant, or if the old one is too old or completed.
  @Test(arguments: 0..<4) func aDifferentLogin(_ number: Int) throws {
    let fixture = try Fixture.added()
    var kept = Fixture.credential("kept")
    kept.requestedScope = number == 0 ? ["read", "write"] : ["read"]
    if number == 1 { kept.grant = .deviceCode }
    if number == 2 { kept.loggedInAt = kept.loggedInAt - .seconds(601) }
    // The commit removes the note before the file, so a file without a note belongs to a completed login.
    try fixture.leave(number == 3 ? nil : ExchangeNote(.login, startedAt: 1), KeptAnswer(kept, after: nil), "")
    // No account will use the saved tokens, so they are revoked before the browser opens.
    if number != 3 { fixture.http.then(HTTPResponse(status: 200), HTTPResponse(status: 200)) }
    fixture.consent(.token("token-1"), .identity("ana"))
    #expect(try fixture.login().credential.accessToken == Secret("token-1"))
    try fixture.expectNothingLeft()
  }

  /// A refresh and a logout overwrite the login's saved answer, so they report it.
  @Test(arguments: [true, false]) func anInterruptedLoginIsReportedByAnotherCommand(_ isRefresh: Bool) throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    try fixture.leave(ExchangeNote(.login, startedAt: 1), KeptAnswer(Fixture.credential("kept"), after: nil))
    if isRefresh {
      fixture.http.then(.token("token-2"))
      _ = try fixture.source.freshAccount("ana", of: "example", RefreshPolicy(always: true))
    } else {
      _ = try fixture.source.logout("ana", of: "example", keepsRemote: true)
    }
    #expect(fixture.notices == [Fixture.interrupted(.login), .tokensLeft(provider: "example", nil)])
    try fixture.expectNothingLeft()
  }

  /// Leaves an interrupted login without a name, which has its tokens.
  private static func leaveUnnamed(_ fixture: Fixture, startedAt: Moment = 1) throws {
    var kept = Fixture.credential("kept", refresh: nil)
    kept.requestedScope = ["read"]
    try fixture.leave(ExchangeNote(.login, startedAt: startedAt), KeptAnswer(kept, after: nil), "")
  }

  /// Another login would make a second account of the same user. Revoking the tokens may end those of an account.
  @Test(arguments: [true, false]) func aNamedLoginEndsAnInterruptedLogin(_ works: Bool) throws {
    let fixture = try Fixture.added(credential: works ? Fixture.credential() : nil)
    try Self.leaveUnnamed(fixture)
    if !works { fixture.http.then(HTTPResponse(status: 200)) }
    fixture.consent(.token("new"), .identity("ana"))
    #expect(try fixture.login { $0.account = "ana" }.credential.accessToken == Secret("new"))
    #expect(fixture.http.requests[0].parameters[first: "token"] == (works ? nil : "kept"))
    #expect(fixture.notices.contains(.tokensLeft(provider: "example", nil)) == works)
    try fixture.expectNothingLeft()
  }

  /// If the provider does not name users, the interrupted login is still completed first.
  @Test func anInterruptedLoginWithoutAnIdentity() throws {
    let text = Fixture.endpoints.replacing("account: login", with: "account: []")
    let fixture = try Fixture.added(text, credential: Fixture.credential(), account: "default")
    try Self.leaveUnnamed(fixture, startedAt: Fixture.now)
    #expect(try fixture.login().credential.accessToken == Secret("kept"))
    try Self.leaveUnnamed(fixture, startedAt: Fixture.now)
    fixture.clock.advance(.seconds(700))
    // The hint of this error is complete, and the note was removed.
    #expect(throws: CredentialError.nameNeeded(provider: "example", account: "default")) { try fixture.login() }
    try fixture.expectNothingLeft()
  }

  @Test(arguments: [true, false]) func aLogoutRevokesTheTokensOfAnInterruptedLogin(_ isRemoval: Bool) throws {
    let fixture = try Fixture.added(credential: isRemoval ? nil : Fixture.credential(refresh: nil))
    try Self.leaveUnnamed(fixture)
    if !isRemoval { fixture.http.then(HTTPResponse(status: 200)) }
    fixture.http.then(HTTPResponse(status: 200))
    if isRemoval {
      _ = try fixture.source.remove("example", keepsRemote: false)
    } else {
      _ = try fixture.source.logout("ana", of: "example", keepsRemote: false)
    }
    #expect(fixture.http.requests.last?.parameters[first: "token"] == "kept")
    try fixture.expectNothingLeft()
  }

  @Test func aProviderStaysDuringALogin() throws {
    let fixture = try Fixture.added()
    fixture.consent()
    let consents = fixture.user.browse
    fixture.user.browse = { url in
      #expect(throws: CredentialError.loginUnderWay(provider: "example", account: nil)) {
        try fixture.another().remove("example", keepsRemote: true)
      }
      try consents?(url)
    }
    fixture.http.then(.token("token-1"), .identity("ana"))
    #expect(try fixture.login().name == "ana")
    #expect(try fixture.registration() != nil)
  }

  /// Removing the provider also removes its client, so the account could never be refreshed.
  @Test(arguments: [true, false]) func aProviderThatWasRemovedMeanwhileGetsNoAccount(_ isGiven: Bool) throws {
    let fixture = try Fixture.added()
    if !isGiven { fixture.consent(.token("token-1")) }
    fixture.http.then { _ in
      do {
        try fixture.another().accounts(.readWrite).store.apply([.remove(Accounts.registration("example"))])
      } catch { Issue.record(error) }
      return .identity("ana")
    }
    if !isGiven { fixture.http.then(HTTPResponse(status: 200)) }
    let needs = ClientNeeds(needsIdentifier: true, needsSecret: false, register: nil)
    #expect(throws: CredentialError.notAdded(provider: "example", needs)) {
      guard isGiven else { return _ = try fixture.login() }
      _ = try fixture.source.login("example", LoginOptions(), token: Secret("token-1"))
    }
    #expect(try fixture.stored() == nil)
    try fixture.expectNothingLeft()
  }

  /// The hint after an interruption repeats what the user typed, except secrets.
  @Test func aLoginNotesItsOptions() throws {
    let variables = "variables: { org: { default: '1', help: org }, key: { secret: true, optional: true, help: key } }"
    let fixture = try Fixture.added(Fixture.endpoints + "\n" + variables)
    fixture.consent()
    fixture.http.then { _ in
      let options = LoginNote(scope: ["extra"], variables: ["org": "7"])
      #expect((try? fixture.note(nil))?.options == options)
      return .token("token-1")
    }
    fixture.http.then(.identity("ana"))
    _ = try fixture.login { ($0.scope, $0.variables) = (["extra"], ["org": "7", "key": "hidden"]) }
  }

  @Test func anInterruptedLoginIsReported() throws {
    let fixture = try Fixture.added()
    try fixture.leave(ExchangeNote(.login, startedAt: 1), nil, "")
    fixture.consent()
    fixture.http.then { _ in
      var note = ExchangeNote(.login, startedAt: Fixture.now)
      note.process = ownProcess
      #expect((try? fixture.note(nil)) == note)
      return .token("token-1")
    }
    fixture.http.then(.identity("ana"))
    _ = try fixture.login()
    let interruption = Interruption(provider: "example", account: nil, exchange: .login, startedAt: 1)
    #expect(fixture.notices == [.beginsAnew(after: interruption)])
    #expect(try fixture.note(nil) == nil)
  }

  /// A declined login loses nothing, and earlier reports stay true.
  @Test func aRefusedLoginLeavesNoNote() throws {
    let fixture = try Fixture.added()
    let earlier = ExchangeNote(.refresh, startedAt: 1)
    try fixture.leave(earlier, nil)
    for account in [nil, "ana"] {
      fixture.consent(.json("{\"error\":\"invalid_grant\"}", status: 400))
      #expect(throws: CredentialError.self) { try fixture.login { $0.account = account } }
    }
    #expect(try fixture.note(nil) == nil)
    #expect(try fixture.note("ana") == earlier)
  }

  // MARK: Devices

  private static let device = HTTPResponse.json(
    """
    {"device_code":"D","user_code":"U-1","verification_uri":"https://provider.example/d","expires_in":60,"interval":5}
    """)

  private static func pending(_ code: String = "authorization_pending") -> HTTPResponse {
    .json("{\"error\":\"\(code)\"}", status: 400)
  }

  @Test(arguments: [HTTPError.Unreachable.timedOut, .broken]) func deviceCode(_ loss: HTTPError.Unreachable) throws {
    let fixture = try Fixture.added()
    fixture.http.then(Self.device, Self.pending(), Self.pending("slow_down"), Self.pending())
    fixture.http.then(.unreachable(host: "provider.example", reason: loss))
    fixture.http.then(.token("token-1"), .identity("ana"))
    let account = try fixture.login { ($0.grant, $0.opensBrowser) = (.deviceCode, false) }
    #expect(account.name == "ana")
    // The pauses are 5, 5, then slower: 10, 10; after a poll without an answer, 15.
    #expect(fixture.clock.now() == Fixture.now + .seconds(45))
    #expect(
      fixture.user.steps == [
        .device(
          userCode: "U-1", url: "https://provider.example/d", completeURL: nil, validFor: .seconds(60),
          patience: .seconds(300))
      ])
    #expect(fixture.user.opened.isEmpty)
    #expect(fixture.http.requests[1].parameters[first: "device_code"] == "D")
    #expect(account.credential.expiresAt == Fixture.now + .seconds(45 + 3600))
  }

  @Test func deviceCodeExpires() throws {
    let fixture = try Fixture.added()
    fixture.http.then(Self.device)
    for _ in 0..<11 { fixture.http.then(Self.pending()) }
    #expect(throws: CredentialError.oauth(.deviceCodeExpired, provider: "example")) {
      try fixture.login { $0.grant = .deviceCode }
    }
    #expect(fixture.user.opened == ["https://provider.example/d"])
  }

  @Test func deviceLoginTakesTooLong() throws {
    let fixture = try Fixture.added()
    fixture.http.then(Self.device, Self.pending())
    #expect(throws: CredentialError.timedOut(after: .seconds(8))) {
      try fixture.login { ($0.grant, $0.timeout) = (.deviceCode, .seconds(8)) }
    }
    #expect(fixture.clock.now() == Fixture.now + .seconds(8))
  }

  /// Two intervals of five seconds do not fit, so the last poll is at the end, but not too early.
  @Test(arguments: [(13, [5, 13]), (10, [5, 10]), (8, [8]), (3, [3])] as [(Int64, [Int64])])
  func deviceConsentOfTheLastMoment(_ timeout: Int64, _ asked: [Int64]) throws {
    let fixture = try Fixture.added()
    fixture.http.then(Self.device)
    for _ in asked.dropLast() { fixture.http.then(Self.pending()) }
    fixture.http.then(.token("token-1"), .identity("ana"))
    let account = try fixture.login { ($0.grant, $0.timeout) = (.deviceCode, .seconds(timeout)) }
    #expect(account.credential.obtainedAt == Fixture.now + .seconds(asked.last ?? 0))
    #expect(fixture.http.requests.count == asked.count + 2)
  }

  @Test func deviceLoginIsStopped() throws {
    let fixture = try Fixture.added()
    fixture.http.then(Self.device)
    fixture.user.isCancelled = true
    #expect(throws: CredentialError.interrupted) { try fixture.login { $0.grant = .deviceCode } }
    #expect(fixture.clock.monotonic() <= MonotonicMoment(sinceBoot: .seconds(1)))
  }

  // MARK: The account of a login

  @Test func aGivenTokenThatTheProviderDoesNotTake() throws {
    let fixture = try Fixture.added()
    fixture.http.then(.json("{\"error\":\"invalid_token\",\"error_description\":\"who?\"}", status: 401))
    #expect(throws: CredentialError.tokenRefused(provider: "example", words: "who?")) {
      try fixture.source.login("example", LoginOptions(), token: Secret("token-1"))
    }
    #expect(try fixture.source.accounts().accounts(of: nil).isEmpty)
    // 403 concerns the token's permissions, and 503 the provider.
    for (status, name) in [(403, "one"), (503, "two")] {
      fixture.http.then(.json("{}", status: status), .json("{}", status: status))
      var wish = LoginOptions()
      wish.account = name
      #expect(throws: CredentialError.self) {
        try fixture.source.login("example", wish, token: Secret("token-1"), user: fixture.user)
      }
      #expect(try fixture.source.accounts().readableAccount(AccountID("example", name)) == nil)
      fixture.user.keepsUnverified = true
      #expect(try fixture.source.login("example", wish, token: Secret("token-1"), user: fixture.user).name == name)
      #expect(fixture.notices.contains { if case .unidentified(name, nil, _) = $0 { true } else { false } })
      fixture.user.keepsUnverified = false
    }
  }

  /// Control characters, line breaks, and characters that make names look alike.
  @Test(arguments: ["a\\nb", "\\u001b[31m", "\\u0085", "\\u202egpj", "\\u200bada", "\\u2028", "\\u0000"])
  func aNameThatNoAccountCanHave(_ name: String) throws {
    let fixture = try Fixture.added()
    fixture.consent(.token("token-1"), .identity(name))
    let account = try fixture.login()
    #expect(account.name == "default")
    #expect(account.credential.identity == nil)
    #expect(fixture.notices == [.unnameable(account: "default", provider: "example")])
  }

  /// "é" can be one code point or two, but means one account.
  @Test func aNameInOtherCodePoints() throws {
    let fixture = try Fixture.added()
    for (index, name) in ["ren\u{E9}", "rene\u{301}"].enumerated() {
      fixture.consent(.token("token-\(index)"), .identity(name))
      _ = try fixture.login()
    }
    let accounts = try fixture.source.accounts()
    #expect(try accounts.accounts(of: "example").map { Array($0.name.utf8) } == [Array("ren\u{E9}".utf8)])
    #expect(try accounts.resolve("rene\u{301}", provider: "example").credential.accessToken == Secret("token-1"))
    try fixture.source.accounts(.readWrite).select("rene\u{301}", provider: "example")
    #expect(try fixture.source.accounts().selected(for: "example").map { Array($0.utf8) } == Array("ren\u{E9}".utf8))
  }

  // MARK: Pasting

  @Test func pastedRedirect() throws {
    let fixture = try Fixture.added(Fixture.endpoints + "\nredirect: ncipApp://success", secret: nil)
    fixture.user.paste { _, state in ["ncipapp://success?code=code-1&state=\(state)"] }
    fixture.http.then(.token("token-1"), .identity("ana"))
    _ = try fixture.login()
    #expect(try fixture.page[first: "redirect_uri"] == "ncipApp://success")
    #expect(fixture.http.requests[0].parameters[first: "redirect_uri"] == "ncipApp://success")
    #expect(fixture.user.steps.last == .paste(redirect: "ncipApp://success"))
  }

  @Test func pastedInsteadOfListening() throws {
    let fixture = try Fixture.added()
    fixture.user.paste { redirect, _ in ["\(redirect)?code=code-1&state=other"] }
    #expect(throws: CredentialError.oauth(.stateMismatch, provider: "example")) {
      try fixture.login { $0.pastes = true }
    }
    #expect(try fixture.page[first: "redirect_uri"]?.hasPrefix("http://127.0.0.1:") == true)
    fixture.user.lines = ["hello"]
    #expect(throws: CredentialError.oauth(.notARedirect, provider: "example")) {
      try fixture.login { $0.pastes = true }
    }
    #expect(throws: CredentialError.pasteNeeded(provider: "example", isCode: false)) {
      try fixture.login { $0.pastes = true }
    }
  }

  /// A wrong paste changes nothing, and the user can paste again.
  @Test func pastedOnceMore() throws {
    let fixture = try Fixture.added(Fixture.endpoints + "\nstate: optional")
    fixture.user.paste { redirect, state in
      [
        "code=forged", "https://evil.example/callback?code=forged&state=\(state)", "\(redirect)?x=1",
        "\(redirect)?code=forged&state=other", "\(redirect)?code=code-1",
      ]
    }
    fixture.http.then(.token("token-1"), .identity("ana"))
    _ = try fixture.login { $0.pastes = true }
    #expect(fixture.http.requests[0].parameters[first: "code"] == "code-1")
    let redirect = try #require(try fixture.page[first: "redirect_uri"])
    let strays: [OAuthError] = [.notARedirect, .foreignRedirect(expected: redirect), .stateMissing, .stateMismatch]
    #expect(
      fixture.user.steps.suffix(5) == [.paste(redirect: redirect)]
        + strays.map { .strayPaste(.oauth($0, provider: "example")) })
  }

  /// Pasted from a mail, a chat or a script.
  @Test(arguments: [("<", ">"), ("\"", "\""), ("'", "'"), ("“", "”"), (" `", "` "), ("<\"", "\">"), ("", "")])
  func pastedWithMarks(_ before: String, _ after: String) throws {
    let fixture = try Fixture.added()
    fixture.user.paste { redirect, state in ["\(before)\(redirect)?code=code-1&state=\(state)\(after)"] }
    fixture.http.then(.token("token-1"), .identity("ana"))
    _ = try fixture.login { $0.pastes = true }
    #expect(fixture.http.requests[0].parameters[first: "code"] == "code-1")
  }

  /// The provider's refusal ends the login, however it arrives.
  @Test func pastedRefusal() throws {
    let fixture = try Fixture.added(Fixture.endpoints + "\nstate: optional")
    fixture.user.paste { redirect, _ in ["\(redirect)?error=access_denied", "another"] }
    let refusal = ErrorResponse(code: "access_denied", words: nil, status: nil)
    #expect(throws: CredentialError.oauth(.refused(.authorization, refusal), provider: "example")) {
      try fixture.login { $0.pastes = true }
    }
    #expect(fixture.user.lines == ["another"])
  }

  @Test func codeThatAPageShows() throws {
    let fixture = try Fixture.added(Fixture.endpoints + "\nredirect: oob")
    fixture.user.lines = ["\"code-1\""]
    fixture.http.then(.token("token-1"), .identity("ana"))
    _ = try fixture.login { $0.opensBrowser = false }
    #expect(fixture.http.requests[0].parameters[first: "code"] == "code-1")
    #expect(fixture.http.requests[0].parameters[first: "redirect_uri"] == "oob")
    #expect(fixture.user.opened.isEmpty)
    #expect(throws: CredentialError.pasteNeeded(provider: "example", isCode: true)) {
      try fixture.login { ($0.account, $0.opensBrowser) = ("other", false) }
    }
    guard case .visit(let url)? = fixture.user.steps.first else { throw CredentialError.interrupted }
    #expect(url.hasPrefix("https://provider.example/authorize?"))
  }

  @Test func noBrowserCanBeOpened() throws {
    let fixture = try Fixture.added()
    fixture.user.isCancelled = true
    #expect(throws: CredentialError.interrupted) { try fixture.login() }
    let url = try #require(fixture.user.opened.first)
    #expect(fixture.user.steps == [.open(url: url), .visit(url: url)])
  }

  // MARK: Accounts

  private static let old = Fixture.credential("old", refresh: nil, identity: "ana")

  @Test func anotherIdentityIsRefused() throws {
    let fixture = try Fixture.added(credential: Self.old, account: "work")
    let done = HTTPResponse(status: 200)
    fixture.consent(.token("new", refresh: "new-refresh"), .identity("bob"), done, done)
    let error = CredentialError.identityMismatch(
      provider: "example", account: "work", expected: "ana", found: "bob", other: nil)
    #expect(throws: error) { try fixture.login { $0.account = "work" } }
    // The new tokens are unused, so they are revoked.
    #expect(fixture.http.requests.suffix(2).map { $0.parameters[first: "token"] } == ["new-refresh", "new"])
    #expect(try fixture.stored("work")?.accessToken == Secret("old"))
    #expect(try fixture.another().interruptedExchanges().isEmpty)
  }

  @Test func theSameIdentityAgain() throws {
    let fixture = try Fixture.added(credential: Self.old, account: "work")
    fixture.consent(.token("new"), .identity("ana"))
    let account = try fixture.login { $0.account = "work" }
    #expect(account.name == "work")
    #expect(try fixture.stored("work")?.accessToken == Secret("new"))
    #expect(fixture.user.steps.first == .alreadyLoggedIn(accounts: ["work"]))
  }

  /// The browser may be logged in as another account's user.
  @Test func theProviderNamesTheUser() throws {
    let choosing = """
        authorization:
          url: https://provider.example/authorize
          parameters: { prompt: consent }
          choose: { prompt: select_account consent, login_hint: "{identity}" }
      """
    let text = Fixture.endpoints.replacing(
      "  authorization: https://provider.example/authorize", with: choosing)
    let fixture = try Fixture.added(text)
    func page(_ account: String?, _ person: String) throws -> [String?] {
      fixture.consent(.token("token-of-" + person), .identity(person))
      _ = try fixture.login { $0.account = account }
      return try [fixture.page[first: "prompt"], fixture.page[first: "login_hint"]]
    }
    #expect(try page("work", "ana") == ["consent", nil])
    #expect(try page("work", "ana") == ["consent", nil])
    #expect(try page("home", "bob") == ["select_account consent", nil])
    #expect(try page("work", "ana") == ["select_account consent", "ana"])
    #expect(try page(nil, "eve") == ["select_account consent", nil])
    #expect(fixture.notices.isEmpty)
    // The provider asked, and the same user logged in again.
    _ = try page("more", "bob")
    #expect(
      fixture.notices == [.sameIdentity(provider: "example", account: "more", identity: "bob", other: "home")])
    _ = try page("more", "bob")
    #expect(fixture.notices.count == 1)
  }

  @Test func aSecondUserDoesNotReplaceTheFirst() throws {
    let fixture = try Fixture.added(credential: Self.old)
    try fixture.source.accounts(.readWrite).select("ana", provider: "example")
    fixture.consent(.token("new"), .identity("bob"))
    #expect(try fixture.login().name == "bob")
    #expect(try fixture.stored("ana")?.accessToken == Secret("old"))
    #expect(try fixture.stored("bob")?.accessToken == Secret("new"))
    #expect(try fixture.source.accounts().resolve(nil, provider: "example").name == "ana")
  }

  @Test(arguments: [HTTPResponse.json("{}", status: 500), .json("{}", status: 403)])
  func aFailedIdentityRequestKeepsTheToken(_ response: HTTPResponse) throws {
    let fixture = try Fixture.added()
    fixture.consent(.token("new"), response)
    #expect(try fixture.login().name == "default")
    #expect(try fixture.stored("default")?.accessToken == Secret("new"))
    #expect(fixture.notices.contains { if case .unidentified("default", nil, _) = $0 { true } else { false } })

    // The user may be another one, so the account gets a new name.
    fixture.consent(.token("other"), response)
    #expect(try fixture.login().name == "default-2")
    #expect(try fixture.stored("default")?.accessToken == Secret("new"))
    // Naming the account is deliberate.
    fixture.consent(.token("newer"), response)
    #expect(try fixture.login { $0.account = "default" }.name == "default")
    #expect(try fixture.stored("default")?.accessToken == Secret("newer"))
  }

  /// The account keeps its identity, and the tokens are stored.
  @Test(arguments: [HTTPResponse.json("{}", status: 500), .json("{}", status: 403)])
  func aLostIdentityKeepsTheName(_ response: HTTPResponse) throws {
    let fixture = try Fixture.added(credential: Self.old, account: "work")
    fixture.consent(.token("new", refresh: "refresh-2"), response)
    let account = try fixture.login { $0.account = "work" }
    #expect(account.name == "work")
    #expect(try fixture.stored("work")?.accessToken == Secret("new"))
    #expect(fixture.notices.contains { if case .unchecked("work", _) = $0 { true } else { false } })
    // The provider did not name the new token's user, but the next login must be for the old identity.
    func expectIdentity(_ identity: String?, _ earlier: String?) throws {
      let stored = try #require(try fixture.stored("work"))
      #expect(stored.identity == identity && stored.earlierIdentity == earlier)
    }
    try expectIdentity(nil, "ana")
    #expect(!account.matches(username: "ana"))
    fixture.http.then(.token("newer"))
    _ = try fixture.fresh(RefreshPolicy(always: true))
    try expectIdentity(nil, "ana")
    fixture.consent(.token("bobs"), .identity("bob"), HTTPResponse(status: 200))
    let error = CredentialError.identityMismatch(
      provider: "example", account: "work", expected: "ana", found: "bob", other: nil)
    #expect(throws: error) { try fixture.login { $0.account = "work" } }
    try expectIdentity(nil, "ana")
    fixture.consent(.token("newest"), .identity("ana"))
    _ = try fixture.login { $0.account = "work" }
    try expectIdentity("ana", nil)
  }

  /// Returns a fixture with an account that only a login repairs.
  private static func dead(_ account: String = "ana") throws -> Fixture {
    let fixture = try Fixture.added(credential: Self.old, account: account)
    try fixture.source.accounts(.readWrite).select(account, provider: "example")
    try fixture.source.reject(Secret("old"), account: account, of: "example")
    return fixture
  }

  /// The provider may have renamed the user. A user at a terminal says so, and a script passes an option.
  @Test(arguments: [true, false, nil]) func anotherUserOfADeadAccount(_ answer: Bool?) throws {
    let fixture = try Self.dead()
    fixture.user.isReplacing = answer
    fixture.consent(.token("new"), .identity("ana2"))
    if answer != true { fixture.http.then(HTTPResponse(status: 200)) }
    let account = try? fixture.login { $0.account = "ana" }
    #expect(fixture.user.replacements == (answer == nil ? [] : ["ana2"]))
    #expect(account?.credential.identity == (answer == true ? "ana2" : nil))
    fixture.consent(.token("newest"), .identity("ana2"))
    #expect(try fixture.login { ($0.account, $0.givesAway) = ("ana", true) }.credential.identity == "ana2")
    #expect(try fixture.stored()?.accessToken == Secret("newest"))
    #expect(try fixture.source.accounts().accounts(of: nil).map(\.name) == ["ana"])
  }

  /// An interruption is not the answer "no": the token stays for the next login, which repeats the question.
  @Test func theQuestionAboutAnotherUserIsInterrupted() throws {
    let fixture = try Self.dead()
    (fixture.user.isReplacing, fixture.user.stopsAtQuestion) = (false, true)
    fixture.consent(.token("new"), .identity("ana2"))
    #expect(throws: CredentialError.interrupted) { try fixture.login { $0.account = "ana" } }
    // No token was revoked, and none is reported as left over.
    #expect(fixture.http.requests.allSatisfy { $0.uri.path != "/revoke" })
    #expect(!fixture.notices.contains(.tokensLeft(provider: "example", nil)))
    #expect(try fixture.stored()?.accessToken == Secret("old"))
    (fixture.user.isCancelled, fixture.user.stopsAtQuestion, fixture.user.isReplacing) = (false, false, true)
    fixture.http.then(.identity("ana2"))
    #expect(try fixture.login { $0.account = "ana" }.credential.accessToken == Secret("new"))
    #expect(fixture.user.replacements == ["ana2", "ana2"])
  }

  private static func me(_ name: String, _ subject: String) -> HTTPResponse {
    .json("{\"login\": \"\(name)\", \"sub\": \"\(subject)\"}")
  }

  /// The durable identifier says that the user is the same, whatever the name.
  @Test(arguments: ["ana", nil]) func aRenamedUser(_ account: String?) throws {
    let fixture = try Fixture.added()
    fixture.consent(.token("one"), Self.me("ana", "7"))
    #expect(try fixture.login().credential.subject == "7")
    fixture.consent(.token("two"), Self.me("ana2", "7"))
    let renamed = try fixture.login { $0.account = account }
    #expect(renamed.name == "ana")
    #expect(renamed.credential.identity == "ana2")
    #expect(fixture.notices == [.renamed(provider: "example", account: "ana", before: "ana", now: "ana2")])
    for (token, name) in [("three", "ana3"), ("four", "ana3"), ("five", "ana"), ("six", "ana4")] {
      fixture.consent(.token(token), Self.me(name, "7"))
      #expect(try fixture.login { $0.account = account }.credential.identity == name)
    }
    #expect(try fixture.source.accounts().accounts(of: nil).map(\.name) == ["ana"])
    #expect(try fixture.stored()?.accessToken == Secret("six"))
  }

  /// Another user took the name.
  @Test func aReusedName() throws {
    let fixture = try Fixture.added()
    fixture.consent(.token("one"), Self.me("ana", "7"))
    _ = try fixture.login()
    fixture.consent(.token("two"), Self.me("ana", "8"), HTTPResponse(status: 200))
    let error = CredentialError.identityMismatch(
      provider: "example", account: "ana", expected: "ana (7)", found: "ana (8)", other: nil)
    #expect(throws: error) { try fixture.login() }
    #expect(try fixture.stored()?.accessToken == Secret("one"))
    fixture.consent(.token("three"), Self.me("ana", "8"))
    #expect(try fixture.login { $0.givesAway = true }.credential.subject == "8")
  }

  /// An account that works keeps its user without a question.
  @Test func anotherUserOfAWorkingAccount() throws {
    let fixture = try Fixture.added(credential: Fixture.credential(identity: "ana"))
    fixture.user.isReplacing = true
    fixture.consent(.token("new"), .identity("bob"), HTTPResponse(status: 200))
    #expect(throws: CredentialError.self) { try fixture.login { $0.account = "ana" } }
    #expect(fixture.user.replacements.isEmpty)
  }

  /// A login without a name repairs the only account, so it requests the same.
  @Test(arguments: [true, false]) func aLoginRepeatsTheOptionsOfADeadAccount(_ isDead: Bool) throws {
    let fixture = try Fixture.added(credential: Self.old)
    try fixture.change { ($0.requestedScope, $0.isRejected) = (["write"], isDead) }
    fixture.consent(.token("new"), .identity("ana"))
    let account = try fixture.login()
    #expect(try fixture.page[first: "scope"] == (isDead ? "write" : "read"))
    #expect(account.credential.requestedScope == [isDead ? "write" : "read"])
  }

  @Test func theDefaultAccountStillNeedsALogin() throws {
    let fixture = try Self.dead()
    fixture.consent(.token("new"), .identity("ana2"))
    #expect(try fixture.login().name == "ana2")
    #expect(fixture.notices == [.defaultNeedsLogin(provider: "example", account: "ana", other: "ana2")])
  }

  /// Revoking one token may end all of the user's tokens for the client.
  @Test func anotherUsersTokenIsNotRevoked() throws {
    let fixture = try Fixture.added(credential: Self.old, account: "work")
    try fixture.store(Fixture.credential("bobs", identity: "bob"), "bob")
    fixture.consent(.token("new"), .identity("bob"))
    let error = CredentialError.identityMismatch(
      provider: "example", account: "work", expected: "ana", found: "bob", other: "bob")
    #expect(throws: error) { try fixture.login { $0.account = "work" } }
    #expect(fixture.http.requests.count == 2)
  }

  @Test func anUnrevokedTokenIsReported() throws {
    let fixture = try Fixture.added(credential: Self.old, account: "work")
    fixture.consent(.token("new"), .identity("bob"), HTTPResponse(status: 503))
    #expect(throws: CredentialError.self) { try fixture.login { $0.account = "work" } }
    #expect(fixture.notices.contains { if case .tokensLeft("example", _?) = $0 { true } else { false } })
  }

  /// A login to an account repeats the account's earlier options, unless new ones are given.
  @Test func aLoginRepeatsScopesAndVariables() throws {
    var credential = Self.old
    credential.requestedScope = ["read", "write"]
    let fixture = try Fixture.added(credential: credential, account: "work")
    fixture.consent(.token("new"), .identity("ana"))
    _ = try fixture.login { $0.account = "work" }
    #expect(try fixture.page[first: "scope"] == "read write")
    fixture.consent(.token("new"), .identity("ana"))
    _ = try fixture.login { ($0.account, $0.scope) = ("work", ["write"]) }
    #expect(try fixture.page[first: "scope"] == "write")
    var machine = Fixture.credential("machine", refresh: nil)
    machine.grant = .clientCredentials
    try fixture.store(machine, "robot")
    fixture.http.then(.token("new"))
    #expect(try fixture.login { $0.account = "robot" }.credential.grant == .clientCredentials)
  }

  /// The scope that the endpoint fixes was granted, and the descriptor's default was never requested.
  @Test(arguments: ["null", "api"]) func aScopeFixedByTheEndpoint(_ scope: String) throws {
    let fixture = try Fixture.added(
      """
      grant: client_credentials
      scope: [read]
      endpoints: { client_credentials: { url: "https://provider.example/token", parameters: { scope: \(scope) } } }
      """)
    fixture.http.then(.json("{\"access_token\": \"t\", \"token_type\": \"Bearer\", \"scope\": \"api\"}"))
    #expect(try fixture.login().credential.withheldScope == [])
  }

  @Test func anInvalidName() throws {
    let fixture = try Fixture.added()
    #expect(throws: CredentialError.malformedAccount("a\nb")) { try fixture.login { $0.account = "a\nb" } }
  }

  @Test func aTokenThatTheUserHas() throws {
    let fixture = try Fixture.added()
    fixture.http.then(.identity("ana"))
    let account = try fixture.source.login("example", LoginOptions(), token: Secret("pat-1"))
    #expect(account.name == "ana")
    #expect(try fixture.stored()?.accessToken == Secret("pat-1"))
    #expect(try fixture.stored()?.expiresAt == nil)
    #expect(fixture.http.requests[0].fields["Authorization"] == "Bearer pat-1")
    let faults: [(String, PasteFault)] = [
      ("", .empty("token")), ("a b", .blank("token")), ("a\nb", .lines("token")), ("ä", .character("token")),
    ]
    for (text, fault) in faults {
      #expect(throws: CredentialError.wrongPaste(provider: "example", fault)) {
        try fixture.source.login("example", LoginOptions(), token: Secret(text))
      }
    }
  }

  /// Without its secret, a token of OAuth 1.0a would sign wrongly ever after.
  @Test func aTokenOfOAuth1HasASecret() throws {
    let text = """
      grant: oauth1
      endpoints:
        temporary_credentials: https://provider.example/request
        authorization: https://provider.example/authorize
        token: https://provider.example/access
        identity: https://provider.example/me
      account: login
      """
    let fixture = try Fixture.added(text)
    for given in [["token-1"], ["token-1", ""], ["token-1", "secret 2"], ["token-1", "secret-2", "3"]] {
      #expect(throws: CredentialError.self) { try fixture.source.login("example", LoginOptions(), given: given) }
    }
    let labels = ["token", "token secret"]
    #expect(throws: CredentialError.wrongPaste(provider: "example", .count(expected: labels))) {
      try fixture.source.login("example", LoginOptions(), token: Secret("token-1"))
    }
    #expect(fixture.http.requests.isEmpty)
    fixture.http.then(.identity("ana"))
    let account = try fixture.source.login("example", LoginOptions(), given: [" token-1", "secret-2\n"])
    #expect(account.name == "ana" && account.credential.isGiven && account.credential.grant == .oauth1)
    #expect(try fixture.stored()?.accessToken == Secret("token-1"))
    #expect(try fixture.stored()?.tokenSecret == Secret("secret-2"))
    #expect(fixture.http.requests[0].fields["Authorization"]?.contains("oauth_token=\"token-1\"") == true)
    // No signature works without the client.
    let shipped = try KeyLoginTests.shipped(text)
    #expect(throws: CredentialError.self) {
      try shipped.source.login("example", LoginOptions(), given: ["token-1", "secret-2"])
    }
  }

  // MARK: Several entries

  private static let tenants = """
    grant: authorization_code
    variables: { site: { optional: true } }
    endpoints:
      authorization: https://provider.example/authorize
      token: https://provider.example/token
      identity:
        url: https://provider.example/me
        response: { element: { where: { name: "{site}" }, label: name }, keep: { tenant: element.id } }
    account: element.name
    """

  private static let names = HTTPResponse.json(#"[{"id": "1", "name": "One"}, {"id": "2", "name": "Two"}]"#)

  /// Each organization is an account.
  @Test func anotherEntryOfTheSameUser() throws {
    let fixture = try Fixture.added(
      Self.tenants.replacing("element: {", with: "element: { of: items,") + "\nsubject: uid")
    let list = #"[{"id": "1", "name": "One"}, {"id": "2", "name": "Two"}]"#
    for (site, token) in [("One", "a"), ("Two", "b"), ("One", "c")] {
      fixture.consent(.token(token), .json(#"{"uid": "7", "items": \#(list)}"#))
      #expect(try fixture.login { $0.variables["site"] = site }.name == site)
    }
    #expect(try fixture.stored("One")?.accessToken == Secret("c"))
    #expect(try fixture.stored("Two")?.accessToken == Secret("b"))
    // A login without a name renews the default account.
    try fixture.another().accounts(.readWrite).store.apply([
      .store(Secret("Two"), as: Accounts.selection("example"))
    ])
    fixture.consent(.token("d"), .json(#"{"uid": "7", "items": \#(list)}"#))
    #expect(try fixture.login().name == "Two")
    #expect(try fixture.stored("One")?.accessToken == Secret("c"))
    // The user chooses another one.
    let third = list.replacing("}]", with: #"}, {"id": "3", "name": "Three"}]"#)
    (fixture.user.isReplacing, fixture.user.chosen) = (true, 2)
    fixture.consent(.token("e"), .json(#"{"uid": "7", "items": \#(third)}"#))
    #expect(try fixture.login().name == "Three")
    #expect(try fixture.stored("Two")?.accessToken == Secret("d"))
    // Another one may have the same name.
    let twin = third.replacing("}]", with: #"}, {"id": "4", "name": "Two"}]"#)
    fixture.user.chosen = 3
    fixture.consent(.token("f"), .json(#"{"uid": "7", "items": \#(twin)}"#))
    #expect(try fixture.login().name == "Two-2")
    #expect(try fixture.stored("Two")?.accessToken == Secret("d"))
  }

  @Test func theUserChoosesAnEntry() throws {
    let fixture = try Fixture.added(Self.tenants)
    fixture.user.chosen = 1
    fixture.consent(.token("token-1"), Self.names)
    let account = try fixture.login()
    #expect(account.name == "Two" && account.credential.kept == ["tenant": "2"])
    #expect(fixture.user.choices == [["One", "Two"]] && fixture.notices.isEmpty)
    // The next login to the account needs no question.
    fixture.consent(.token("token-2"), Self.names)
    #expect(try fixture.login { $0.account = "Two" }.credential.kept == ["tenant": "2"])
    #expect(fixture.user.choices.count == 1)
  }

  private static let sites = """
    grant: authorization_code
    endpoints:
      authorization: https://provider.example/authorize
      token: https://provider.example/token
      token_exchange:
        url: https://provider.example/sites
        method: GET
        authentication: access_token
        parameters: { grant_type: null, subject_token: null, subject_token_type: null }
        response: { fields: { access_token: [] }, keep: { tenant: element.id }, element: { label: name } }
      identity: https://provider.example/me
    account: login
    """

  @Test(arguments: ["ana", nil]) func aLaterLoginKeepsTheEntryOfAnExchange(_ name: String?) throws {
    let fixture = try Fixture.added(Self.sites)
    fixture.user.chosen = 1
    fixture.consent(.token("token-1"), Self.names, .identity("ana"))
    #expect(try fixture.login().credential.kept == ["tenant": "2"])
    fixture.user.chosen = nil
    fixture.consent(.token("token-2"), Self.names, .identity("ana"))
    #expect(try fixture.login { $0.account = name }.credential.kept == ["tenant": "2"])
    #expect(fixture.user.choices.count == 1)
    // At a terminal, a login without a name may be for another user.
    (fixture.user.chosen, fixture.user.isReplacing) = (0, true)
    fixture.consent(.token("token-3"), Self.names, .identity("ana"))
    #expect(try fixture.login { $0.account = name }.credential.kept == ["tenant": name == nil ? "1" : "2"])
    #expect(fixture.user.choices.count == (name == nil ? 2 : 1))
  }

  /// An answer of the exchange with these sites.
  private static func list(_ numbers: Int...) -> HTTPResponse {
    .json("[" + numbers.map { #"{"id": "\#($0)", "name": "Site \#($0)"}"# }.joined(separator: ", ") + "]")
  }

  /// Logs Ana in with the second site.
  private static func withSites(_ descriptor: String = sites) throws -> Fixture {
    let fixture = try Fixture.added(descriptor)
    fixture.user.chosen = 1
    fixture.consent(.token("token-1"), list(1, 2, 3), .identity("ana"))
    #expect(try fixture.login().credential.kept == ["tenant": "2"])
    fixture.user.chosen = nil
    return fixture
  }

  @Test func anotherUserGetsNoEntryOfTheFirst() throws {
    let fixture = try Self.withSites()
    fixture.consent(.token("token-2"), Self.list(3, 2, 1), .identity("bob"))
    let account = try fixture.login()
    #expect(account.name == "bob" && account.credential.kept == ["tenant": "3"])
    #expect(fixture.notices == [.chosen(provider: "example", "Site 3", of: 3, variable: nil)])
    // The account's own entry counts, although it is not that of the default account.
    fixture.consent(.token("token-3"), Self.list(2, 1, 3), .identity("bob"))
    #expect(try fixture.login().credential.kept == ["tenant": "3"] && fixture.notices.count == 1)
  }

  @Test(arguments: [nil, 0]) func anAccountThatIsReplacedGetsAnotherEntry(_ chosen: Int?) throws {
    let fixture = try Self.withSites()
    func login() throws -> [String: String] {
      try fixture.login { ($0.account, $0.replaces, $0.givesAway) = ("ana", true, true) }.credential.kept
    }
    fixture.consent(.token("token-2"), Self.list(3, 2, 1), .identity("ana"))
    #expect(try login() == ["tenant": "2"] && fixture.notices.isEmpty)
    fixture.user.chosen = chosen
    fixture.consent(.token("token-3"), Self.list(3, 2, 1), .identity("bob"))
    #expect(try login() == ["tenant": "3"])
    #expect(
      fixture.notices == (chosen == nil ? [.chosen(provider: "example", "Site 3", of: 3, variable: nil)] : []))
    #expect(fixture.user.choices.count == 2)
  }

  /// The first user had chosen the entry by a variable.
  @Test func anotherUserDoesNotGetANamedEntry() throws {
    let text =
      Self.sites.replacing("element: { label: name }", with: "element: { where: { name: '{site}' }, label: name }")
      + "\nvariables: { site: { optional: true } }"
    let fixture = try Fixture.added(text)
    fixture.consent(.token("token-1"), Self.list(1, 2, 3), .identity("ana"))
    #expect(try fixture.login { $0.variables = ["site": "Site 2"] }.credential.kept == ["tenant": "2"])
    func login() throws -> Credential {
      try fixture.login { ($0.account, $0.replaces, $0.givesAway) = ("ana", true, true) }.credential
    }
    // The same user keeps the variable, which may be in other requests as well.
    fixture.consent(.token("token-a"), Self.list(3, 2, 1), .identity("ana"))
    var credential = try login()
    #expect(credential.kept == ["tenant": "2"] && credential.variables == ["site": "Site 2"])
    fixture.consent(.token("token-2"), Self.list(3, 2, 1), .identity("bob"))
    credential = try login()
    #expect(credential.kept == ["tenant": "3"] && credential.variables.isEmpty)
  }

  /// The user has another account, and a third account is the default.
  @Test func theRenewedAccountKeepsItsEntry() throws {
    let fixture = try Self.withSites()
    var other = Fixture.credential("token-a", identity: "ana")
    other.kept = ["tenant": "1"]
    try fixture.store(other, "a1")
    fixture.consent(.token("token-b"), Self.list(3, 2, 1), .identity("bob"))
    #expect(try fixture.login().name == "bob")
    try fixture.another().accounts(.readWrite).store.apply([
      .store(Secret("bob"), as: Accounts.selection("example"))
    ])
    fixture.consent(.token("token-2"), Self.list(1, 2, 3), .identity("ana"))
    let account = try fixture.login()
    #expect(account.name == "ana" && account.credential.kept == ["tenant": "2"])
  }

  @Test(arguments: ["ana", nil], [true, nil]) func theOnlyEntryThatIsLeftIsNamed(
    _ name: String?, _ terminal: Bool?
  ) throws {
    let fixture = try Self.withSites()
    fixture.user.isReplacing = terminal
    fixture.consent(.token("token-2"), Self.list(1), .identity("ana"))
    #expect(try fixture.login { $0.account = name }.credential.kept == ["tenant": "1"])
    #expect(fixture.notices == [.usedInstead(provider: "example", "Site 1", account: "ana")])
    fixture.consent(.token("token-3"), Self.list(1), .identity("ana"))
    _ = try fixture.login { $0.account = name }
    #expect(fixture.notices.count == 1)
  }

  @Test func anUnknownUserKeepsTheEntryWithANotice() throws {
    let fixture = try Self.withSites()
    fixture.consent(.token("token-2"), Self.list(3, 2, 1), .json("{}", status: 503))
    #expect(try fixture.login { $0.account = "ana" }.credential.kept == ["tenant": "2"])
    #expect(fixture.notices.first == .usedAgain(provider: "example", "Site 2", account: "ana"))
  }

  @Test(arguments: [HTTPResponse.json("{}", status: 500), .json("[]"), .json(#"{"login": "ana", "items": []}"#)])
  func aLoginWithoutAListKeepsTheEntry(_ answer: HTTPResponse) throws {
    let fixture = try Fixture.added(
      Self.tenants.replacing("element: {", with: "element: { of: items,")
        .replacing("account: element.name", with: "account: login")
        .replacing("tenant: element.id", with: "tenant: [element.id, login]"))
    let list = #"[{"id": "1", "name": "One"}, {"id": "2", "name": "Two"}]"#
    fixture.user.chosen = 1
    fixture.consent(.token("token-1"), .json(#"{"login": "ana", "items": \#(list)}"#))
    #expect(try fixture.login().credential.kept == ["tenant": "2"])
    fixture.consent(.token("token-2"), answer)
    #expect(try fixture.login { $0.account = "ana" }.credential.kept == ["tenant": "2"])
    #expect(fixture.notices.contains(.elementKept(provider: "example", account: "ana")))
    // Another user gets nothing of the first one.
    fixture.consent(.token("token-3"), .json(#"{"login": "bob", "items": []}"#))
    let other = try fixture.login { ($0.account, $0.replaces, $0.givesAway) = ("ana", true, true) }
    #expect(other.credential.kept == ["tenant": "bob"])
  }

  @Test func anExchangeWithoutAListKeepsTheEntry() throws {
    let fixture = try Self.withSites()
    fixture.consent(.token("token-2"), .json("[]"), .identity("ana"))
    #expect(try fixture.login { $0.account = "ana" }.credential.kept == ["tenant": "2"])
    #expect(fixture.notices == [.elementKept(provider: "example", account: "ana")])
  }

  @Test func theFirstEntryOfATokensAnswerIsNamed() throws {
    let fixture = try Fixture.added(
      """
      grant: authorization_code
      endpoints:
        authorization: https://provider.example/authorize
        token:
          url: https://provider.example/token
          response: { element: { of: items, label: name }, keep: { tenant: element.id } }
      """)
    let items = #"[{"id": 1, "name": "One"}, {"id": 2, "name": "Two"}]"#
    fixture.consent(.json(#"{"access_token": "token-1", "items": \#(items)}"#))
    #expect(try fixture.login().credential.kept == ["tenant": "1"])
    #expect(fixture.notices.contains(.chosen(provider: "example", "One", of: 2, variable: nil)))
  }

  /// The name of an entry says nothing about the user, but the durable identifier does.
  @Test(arguments: [nil, 8, 7]) func theAccountIsNamedLikeTheEntry(_ user: Int?) throws {
    let fixture = try Fixture.added(
      Self.tenants.replacing("element: {", with: "element: { of: items,") + (user == nil ? "" : "\nsubject: uid\n"))
    func answer(_ uid: Int, _ numbers: Int...) -> HTTPResponse {
      let items = numbers.map { #"{"id": "\#($0)", "name": "Site \#($0)"}"# }.joined(separator: ", ")
      return .json(#"{"uid": "\#(uid)", "items": [\#(items)]}"#)
    }
    fixture.user.chosen = 1
    fixture.consent(.token("token-1"), answer(7, 1, 2, 3))
    #expect(try fixture.login().name == "Site 2")
    fixture.user.chosen = nil
    fixture.consent(.token("token-2"), answer(user ?? 8, 3, 2, 1))
    #expect(try fixture.login().name == (user == 8 ? "Site 3" : "Site 2"))
    let expected: [Notice] =
      switch user {
      case nil: [.usedAgain(provider: "example", "Site 2", account: "Site 2")]
      case 8: [.chosen(provider: "example", "Site 3", of: 3, variable: "site")]
      default: []
      }
    #expect(fixture.notices == expected)
  }

  @Test func theUserOfAnAnswerKeepsTheEntry() throws {
    let fixture = try Fixture.added(
      Self.tenants.replacing("element: {", with: "element: { of: items,")
        .replacing("account: element.name", with: "account: login"))
    func answer(_ name: String) -> HTTPResponse {
      .json(#"{"login": "\#(name)", "items": [{"id": "1", "name": "One"}, {"id": "2", "name": "Two"}]}"#)
    }
    (fixture.user.chosen, fixture.user.isReplacing) = (1, true)
    fixture.consent(.token("token-1"), answer("ana"))
    #expect(try fixture.login().credential.kept == ["tenant": "2"])
    fixture.user.chosen = 0
    fixture.consent(.token("token-2"), answer("ana"))
    #expect(try fixture.login().credential.kept == ["tenant": "2"])
    #expect(fixture.user.choices.count == 1)
    fixture.consent(.token("token-3"), answer("bob"))
    #expect(try fixture.login().credential.kept == ["tenant": "1"])
    #expect(fixture.user.choices.count == 2)
  }

  @Test func withoutATerminalTheFirstEntryCounts() throws {
    let fixture = try Fixture.added(Self.tenants)
    fixture.consent(.token("token-1"), Self.names)
    #expect(try fixture.login().name == "One")
    #expect(fixture.notices == [.chosen(provider: "example", "One", of: 2, variable: "site")])
    // A variable chooses without a question.
    fixture.consent(.token("token-2"), Self.names)
    #expect(try fixture.login { $0.variables = ["site": "Two"] }.name == "Two")
    #expect(fixture.user.choices.count == 1)
  }

  @Test func anEntryThatDoesNotExist() throws {
    let fixture = try Fixture.added(Self.tenants)
    fixture.consent(.token("token-1"), Self.names)
    #expect(throws: CredentialError.oauth(.elementMissing(.identity), provider: "example")) {
      try fixture.login { $0.variables = ["site": "Three"] }
    }
    #expect(try fixture.another().accounts().accounts(of: "example").isEmpty)
  }

  @Test func variablesOfThisAccountAlone() throws {
    let fixture = try Fixture.added(
      """
      grant: client_credentials
      variables: { tenant: { default: one } }
      endpoints: { client_credentials: "https://{tenant}.example/token" }
      """)
    fixture.http.then(.token("token-1", seconds: 10), .token("token-2"))
    _ = try fixture.login { $0.variables = ["tenant": "two"] }
    _ = try fixture.fresh(RefreshPolicy(validity: .seconds(60)))
    #expect(fixture.http.requests.map(\.uri.host) == ["two.example", "two.example"])
  }

  // MARK: Before anything is asked

  @Test func aVaultThatCannotBeWritten() throws {
    let fixture = try Fixture.added()
    try fixture.damageVault()
    #expect(throws: CredentialError.vault(.damaged(path: fixture.home.vaultLocation.file, .header))) {
      try fixture.login { $0.grant = .clientCredentials }
    }
    #expect(throws: CredentialError.self) { try fixture.source.login("example", LoginOptions(), token: Secret("t")) }
    #expect(fixture.http.requests.isEmpty)
    #expect(fixture.user.steps.isEmpty)
  }

  @Test func grantThatIsNotOffered() throws {
    let fixture = try Fixture.added()
    #expect(
      throws: CredentialError.grantNotOffered(
        .implicit, offered: [.authorizationCode, .deviceCode, .clientCredentials])
    ) { try fixture.login { $0.grant = .implicit } }
  }

  @Test func withoutANetworkOrAProvider() throws {
    let fixture = try Fixture()
    try fixture.ship(Fixture.endpoints)
    #expect(throws: CredentialError.networkNeeded) {
      try fixture.another().login("example", LoginOptions(), user: fixture.user)
    }
    let needs = ClientNeeds(needsIdentifier: true, needsSecret: false, register: nil)
    #expect(throws: CredentialError.notAdded(provider: "example", needs)) { try fixture.login() }
    #expect(throws: CredentialError.provider(.unknown(identifier: "exemple", suggestion: "example"))) {
      try fixture.source.login("exemple", LoginOptions(), user: fixture.user)
    }
    #expect(!File.exists(fixture.home.vault))
  }

  // MARK: Two processes

  @Test func aWaitingLoginReturnsTheFirstOnesAccount() throws {
    let fixture = try Fixture.added()
    var note = ExchangeNote(.login, startedAt: 1)
    note.process = 4711
    try fixture.leave(note, nil, "")
    let lock = try fixture.lock(nil)
    fixture.whileWaiting([Fixture.storing("theirs")])
    let account = try fixture.login()
    _ = consume lock
    #expect(account.credential.accessToken == Secret("theirs"))
    #expect(fixture.user.opened.isEmpty)
    #expect(fixture.user.steps.contains { if case .waiting(_, process: 4711) = $0 { true } else { false } })
  }

  /// A login with other scopes or another grant is not what this one asks for.
  @Test(arguments: [true, false]) func aLoginWithOtherScopesWaitsForTheFirst(_ isScope: Bool) throws {
    let fixture = try Fixture.added()
    let lock = Mutex(try fixture.lock(nil))
    fixture.whileWaiting([Fixture.storing("theirs")]) { lock.withLock { $0 = nil } }
    if isScope { fixture.consent(.token("ours"), .identity("ana")) } else { fixture.http.then(.token("ours")) }
    let account = try fixture.login { if isScope { $0.scope = ["extra"] } else { $0.grant = .clientCredentials } }
    #expect(account.credential.accessToken == Secret("ours"))
    #expect(account.credential.requestedScope == (isScope ? ["extra"] : ["read"]))
    #expect(try fixture.stored("ana")?.accessToken == Secret(isScope ? "ours" : "theirs"))
  }

  /// The provider has used up the old refresh token, so its answer beside the vault is the only one.
  @Test func aLoginKeepsTheAnswerToARefresh() throws {
    let fixture = try Fixture.added(credential: Fixture.credential("old"))
    try fixture.leave(
      ExchangeNote(.refresh, startedAt: 1),
      KeptAnswer(Fixture.credential("new", refresh: "refresh-2"), after: Secret("old")))
    fixture.user.isCancelled = true
    #expect(throws: CredentialError.interrupted) { try fixture.login { $0.account = "ana" } }
    #expect(try fixture.stored()?.refreshToken == Secret("refresh-2"))
    try fixture.expectNothingLeft()
  }

  /// The caller looked for a token before this login, and another process may have logged in since.
  @Test(arguments: [true, false], [nil, "ana"] as [String?])
  func aLoginInBetweenSatisfiesTheCaller(_ hasIdentity: Bool, _ account: String?) throws {
    let text = hasIdentity ? Fixture.endpoints : Fixture.endpoints.replacing("account: login", with: "account: []")
    let fixture = try Fixture.added(text)
    #expect(throws: CredentialError.loginNeeded(provider: "example", account: account, .noCredential)) {
      try fixture.source.freshAccount(account, of: "example")
    }
    try fixture.store(Fixture.credential("theirs"))
    let found = try fixture.login { ($0.account, $0.unlessAlive) = (account, true) }
    #expect(found.credential.accessToken == Secret("theirs"))
    #expect(fixture.user.opened.isEmpty)
    // An expired token does not count.
    try fixture.change { ($0.isRejected, $0.refreshToken) = (true, nil) }
    fixture.consent(.token("ours"))
    if hasIdentity { fixture.http.then(.identity("ana")) }
    _ = try fixture.login { ($0.account, $0.unlessAlive) = (account, true) }
    #expect(fixture.user.opened.count == 1)
  }

  @Test func aCancelledLoginStopsWaiting() throws {
    let fixture = try Fixture.added()
    let lock = try fixture.lock(nil)
    fixture.user.isCancelled = true
    #expect(throws: CredentialError.interrupted) { try fixture.login() }
    _ = consume lock
    #expect(fixture.clock.passed() < .seconds(1))
  }

  /// An earlier login does not satisfy this one, even if the account is refreshed meanwhile.
  @Test(arguments: [false, true]) func anEarlierLoginDoesNotCount(_ isRefreshed: Bool) throws {
    let fixture = try Fixture.added(credential: Fixture.credential("theirs"))
    let lock = Mutex(try fixture.lock(nil))
    let changes = isRefreshed ? [Fixture.storing("renewed")] : []
    fixture.whileWaiting(changes) { lock.withLock { $0 = nil } }
    fixture.consent(.token("ours"), .identity("ana"))
    #expect(try fixture.login().credential.accessToken == Secret("ours"))
  }
}
