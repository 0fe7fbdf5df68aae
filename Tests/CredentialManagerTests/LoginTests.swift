import Cryptography
import HTTP
import OAuth
import Platform
import Descriptors
import Synchronization
import Testing
import Store

@testable import CredentialManager
import Text

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

  /// A host, or a tenant, that only the identity endpoint knows.
  @Test(arguments: [true, false]) func whatTheIdentitySaysIsKept(_ namesAccount: Bool) throws {
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

  /// The token would go where the answer says; without it, the account would be of no use.
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

  /// An account's name is shown wherever there is one.
  @Test func aTokenIsNoAccountsName() throws {
    let fixture = try Fixture.added(secret: "key-of-the-client")
    fixture.consent(.token("token-1-of-ana"), .identity("token-1-of-ana"))
    #expect(try fixture.login().name == "default")
    fixture.consent(.token("token-2-of-ana"), .identity("ana (key-of-the-client)"), HTTPResponse(status: 200))
    #expect(throws: CredentialError.oauth(.secretAccount, provider: "example")) { try fixture.login() }
    fixture.consent(.token("token-3-of-ana"), .identity("ana"))
    #expect(try fixture.login().name == "ana")
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

  @Test func thePersonSaysNo() throws {
    let fixture = try Fixture.added()
    fixture.user.consent([("error", "access_denied"), ("error_description", "the person said no"), ("state", "state")])
    let refusal = ErrorResponse(code: "access_denied", words: "the person said no", status: nil)
    #expect(throws: CredentialError.oauth(.refused(.authorization, refusal), provider: "example")) {
      try fixture.login()
    }
    #expect(try fixture.user.visits[0].answer().contains("the person said no"))
    #expect(try fixture.source.accounts().accounts(of: nil).isEmpty)
  }

  /// RFC 8252, 7.3, with a query of its own, which has to come back.
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

  @Test func theTokenBecomesAnother() throws {
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

  /// What was interrupted between the two is no use, and the person is asked once more.
  @Test func aTokenThatDidNotBecomeAnotherIsNotKept() throws {
    let fixture = try Fixture.added(Fixture.exchanging())
    fixture.consent(.token("short", refresh: "refresh-1"), .json("{\"error\": \"invalid_request\"}", status: 400))
    #expect(
      throws: CredentialError.oauth(
        .refused(.tokenExchange, ErrorResponse(code: "invalid_request", words: nil, status: 400)), provider: "example")
    ) { try fixture.login() }
    #expect(try fixture.source.accounts().accounts(of: nil).isEmpty)
    fixture.consent(.token("short-2"), .json("{\"session\": \"long\"}"), .identity("ana"))
    #expect(try fixture.login().credential.accessToken == Secret("long"))
    #expect(fixture.http.requests[2].parameters[first: "grant_type"] == "authorization_code")
  }

  /// A request that is no answer ends nothing.
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

  /// A login reads its answer as a refresh does: a token is good without what cannot be read beside it.
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

  /// The process died behind the commit of the token: the next login goes on from there.
  /// So it does when the vault has got another key since.
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

  /// Another scope, another grant, too long ago, done already: the login is a new one.
  @Test(arguments: 0..<4) func aLoginThatIsAnotherOne(_ number: Int) throws {
    let fixture = try Fixture.added()
    var kept = Fixture.credential("kept")
    kept.requestedScope = number == 0 ? ["read", "write"] : ["read"]
    if number == 1 { kept.grant = .deviceCode }
    if number == 2 { kept.loggedInAt = kept.loggedInAt - .seconds(601) }
    // The commit takes the note away before the file: one without the other is of a login that is done.
    try fixture.leave(number == 3 ? nil : ExchangeNote(.login, startedAt: 1), KeptAnswer(kept, after: nil), "")
    fixture.consent(.token("token-1"), .identity("ana"))
    #expect(try fixture.login().credential.accessToken == Secret("token-1"))
    try fixture.expectNothingLeft()
  }

  /// A refresh and a logout need the place of its answer.
  @Test(arguments: [true, false]) func anInterruptedLoginThatAnotherCommandEndsIsTold(_ isRefresh: Bool) throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    try fixture.leave(ExchangeNote(.login, startedAt: 1), KeptAnswer(Fixture.credential("kept"), after: nil))
    if isRefresh {
      fixture.http.then(.token("token-2"))
      _ = try fixture.source.freshAccount("ana", of: "example", RefreshPolicy(always: true))
    } else {
      _ = try fixture.source.logout("ana", of: "example", keepsRemote: true)
    }
    #expect(fixture.notices == [Fixture.interrupted(.login)])
    try fixture.expectNothingLeft()
  }

  @Test func aProviderStaysWhileSomebodyLogsIn() throws {
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

  /// Whoever removed the provider meanwhile has forgotten its client: an account would be left that nobody can refresh.
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

  @Test func anInterruptedLoginIsTold() throws {
    let fixture = try Fixture.added()
    try fixture.leave(ExchangeNote(.login, startedAt: 1), nil, "")
    fixture.consent()
    fixture.http.then { _ in
      #expect((try? fixture.note(nil)) == ExchangeNote(.login, startedAt: Fixture.now))
      return .token("token-1")
    }
    fixture.http.then(.identity("ana"))
    _ = try fixture.login()
    let interruption = Interruption(provider: "example", account: nil, exchange: .login, startedAt: 1)
    #expect(fixture.notices == [.beginsAnew(after: interruption)])
    #expect(try fixture.note(nil) == nil)
  }

  /// Nothing is lost when the provider says no, and what was told before stays true.
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

  @Test func deviceCode() throws {
    let fixture = try Fixture.added()
    fixture.http.then(Self.device, Self.pending(), Self.pending("slow_down"), Self.pending())
    fixture.http.then(.unreachable(host: "provider.example", reason: .timedOut))
    fixture.http.then(.token("token-1"), .identity("ana"))
    let account = try fixture.login { ($0.grant, $0.opensBrowser) = (.deviceCode, false) }
    #expect(account.name == "ana")
    // 5, 5, then slower: 10, 10; after a time-out 15.
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

  /// Two intervals of five seconds do not fit into what is left: the last question comes at the end, and not too soon.
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
  }

  // MARK: Whose it is

  @Test func aGivenTokenThatTheProviderDoesNotTake() throws {
    let fixture = try Fixture.added()
    fixture.http.then(.json("{\"error\":\"invalid_token\",\"error_description\":\"who?\"}", status: 401))
    #expect(throws: CredentialError.tokenRefused(provider: "example", words: "who?")) {
      try fixture.source.login("example", LoginOptions(), token: Secret("token-1"))
    }
    #expect(try fixture.source.accounts().accounts(of: nil).isEmpty)
    // 403 is about what the token may do, and 503 about the provider.
    for (status, name) in [(403, "one"), (503, "two")] {
      fixture.http.then(.json("{}", status: status))
      var wish = LoginOptions()
      wish.account = name
      #expect(try fixture.source.login("example", wish, token: Secret("token-1")).name == name)
      #expect(fixture.notices.contains { if case .unidentified(name, _) = $0 { true } else { false } })
    }
  }

  /// Controls, ends of line, and marks that make a name look like another.
  @Test(arguments: ["a\\nb", "\\u001b[31m", "\\u0085", "\\u202egpj", "\\u200bada", "\\u2028", "\\u0000"])
  func aNameThatNoAccountCanHave(_ name: String) throws {
    let fixture = try Fixture.added()
    fixture.consent(.token("token-1"), .identity(name))
    let account = try fixture.login()
    #expect(account.name == "default")
    #expect(account.credential.identity == nil)
    #expect(fixture.notices == [.unnameable(account: "default", provider: "example")])
  }

  /// "é" is one code point or two, and one account.
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

  /// What does not fit changes nothing, and the person can paste once more.
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

  /// As it stands in a mail, a chat or a script.
  @Test(arguments: [("<", ">"), ("\"", "\""), ("'", "'"), ("“", "”"), (" `", "` "), ("<\"", "\">"), ("", "")])
  func pastedWithMarks(_ before: String, _ after: String) throws {
    let fixture = try Fixture.added()
    fixture.user.paste { redirect, state in ["\(before)\(redirect)?code=code-1&state=\(state)\(after)"] }
    fixture.http.then(.token("token-1"), .identity("ana"))
    _ = try fixture.login { $0.pastes = true }
    #expect(fixture.http.requests[0].parameters[first: "code"] == "code-1")
  }

  /// The refusal of the provider is the end, wherever it is read.
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
    // Nobody has the new tokens now, so they are revoked.
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

  /// The browser may be signed in as the person of another account.
  @Test func aProviderIsAskedWhoItIs() throws {
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
    // It asked, and got the same person again.
    _ = try page("more", "bob")
    #expect(
      fixture.notices == [.sameIdentity(provider: "example", account: "more", identity: "bob", other: "home")])
    _ = try page("more", "bob")
    #expect(fixture.notices.count == 1)
  }

  @Test func aSecondPersonDoesNotTakeTheFirstOnesPlace() throws {
    let fixture = try Fixture.added(credential: Self.old)
    try fixture.source.accounts(.readWrite).select("ana", provider: "example")
    fixture.consent(.token("new"), .identity("bob"))
    #expect(try fixture.login().name == "bob")
    #expect(try fixture.stored("ana")?.accessToken == Secret("old"))
    #expect(try fixture.stored("bob")?.accessToken == Secret("new"))
    #expect(try fixture.source.accounts().resolve(nil, provider: "example").name == "ana")
  }

  @Test(arguments: [HTTPResponse.json("{}", status: 500), .json("{}", status: 403)])
  func anIdentityThatCannotBeHadCostsNoToken(_ response: HTTPResponse) throws {
    let fixture = try Fixture.added()
    fixture.consent(.token("new"), response)
    #expect(try fixture.login().name == "default")
    #expect(try fixture.stored("default")?.accessToken == Secret("new"))
    #expect(fixture.notices.contains { if case .unidentified("default", _) = $0 { true } else { false } })

    // It could be somebody else now, who gets a name of its own.
    fixture.consent(.token("other"), response)
    #expect(try fixture.login().name == "default-2")
    #expect(try fixture.stored("default")?.accessToken == Secret("new"))
    // Whoever names the account means it.
    fixture.consent(.token("newer"), response)
    #expect(try fixture.login { $0.account = "default" }.name == "default")
    #expect(try fixture.stored("default")?.accessToken == Secret("newer"))
  }

  /// The account stays who it is, and the tokens are kept.
  @Test(arguments: [HTTPResponse.json("{}", status: 500), .json("{}", status: 403)])
  func anIdentityThatCannotBeHadAnyMoreChangesNoName(_ response: HTTPResponse) throws {
    let fixture = try Fixture.added(credential: Self.old, account: "work")
    fixture.consent(.token("new"), response)
    let account = try fixture.login { $0.account = "work" }
    #expect(account.name == "work")
    #expect(account.credential.identity == "ana")
    #expect(try fixture.stored("work")?.accessToken == Secret("new"))
    #expect(fixture.notices.contains { if case .unidentified("work", _) = $0 { true } else { false } })
  }

  /// A provider may end all that a person gave to a client when one token is revoked.
  @Test func theTokenOfAnotherAccountsPersonIsNotRevoked() throws {
    let fixture = try Fixture.added(credential: Self.old, account: "work")
    try fixture.store(Fixture.credential("bobs", identity: "bob"), "bob")
    fixture.consent(.token("new"), .identity("bob"))
    let error = CredentialError.identityMismatch(
      provider: "example", account: "work", expected: "ana", found: "bob", other: "bob")
    #expect(throws: error) { try fixture.login { $0.account = "work" } }
    #expect(fixture.http.requests.count == 2)
  }

  @Test func aTokenThatCannotBeRevokedIsTold() throws {
    let fixture = try Fixture.added(credential: Self.old, account: "work")
    fixture.consent(.token("new"), .identity("bob"), HTTPResponse(status: 503))
    #expect(throws: CredentialError.self) { try fixture.login { $0.account = "work" } }
    #expect(fixture.notices.contains { if case .notRevoked("example", _) = $0 { true } else { false } })
  }

  /// What an account was logged in with is asked for again, unless somebody says otherwise.
  @Test func aLoginToAnAccountIsForTheSameAsBefore() throws {
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

  @Test func aNameThatIsNone() throws {
    let fixture = try Fixture.added()
    #expect(throws: CredentialError.malformedAccount("a\nb")) { try fixture.login { $0.account = "a\nb" } }
  }

  @Test func aTokenThatThePersonHas() throws {
    let fixture = try Fixture.added()
    fixture.http.then(.identity("ana"))
    let account = try fixture.source.login("example", LoginOptions(), token: Secret("pat-1"))
    #expect(account.name == "ana")
    #expect(try fixture.stored()?.accessToken == Secret("pat-1"))
    #expect(try fixture.stored()?.expiresAt == nil)
    #expect(fixture.http.requests[0].fields["Authorization"] == "Bearer pat-1")
    for text in ["", "a b", "a\n", "ä"] {
      #expect(throws: CredentialError.malformedToken) {
        try fixture.source.login("example", LoginOptions(), token: Secret(text))
      }
    }
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

  @Test func whoWaitsGetsWhatTheFirstOneGot() throws {
    let fixture = try Fixture.added()
    let lock = try fixture.lock(nil)
    fixture.whileWaiting([Fixture.storing("theirs")])
    let account = try fixture.login()
    _ = consume lock
    #expect(account.credential.accessToken == Secret("theirs"))
    #expect(fixture.user.opened.isEmpty)
    #expect(fixture.user.steps.contains { if case .waiting = $0 { true } else { false } })
  }

  /// Who wants a token looked for one before it came here. In between, another process may have logged in.
  @Test(arguments: [true, false], [nil, "ana"] as [String?])
  func whoWantsATokenTakesTheOneOfALoginInBetween(_ hasIdentity: Bool, _ account: String?) throws {
    let text = hasIdentity ? Fixture.endpoints : Fixture.endpoints.replacing("account: login", with: "account: []")
    let fixture = try Fixture.added(text)
    #expect(throws: CredentialError.loginNeeded(provider: "example", account: account, .noCredential)) {
      try fixture.source.freshAccount(account, of: "example")
    }
    try fixture.store(Fixture.credential("theirs"))
    let found = try fixture.login { ($0.account, $0.unlessAlive) = (account, true) }
    #expect(found.credential.accessToken == Secret("theirs"))
    #expect(fixture.user.opened.isEmpty)
    // A token that is over is none.
    try fixture.change { $0.isRejected = true }
    fixture.consent(.token("ours"))
    if hasIdentity { fixture.http.then(.identity("ana")) }
    _ = try fixture.login { ($0.account, $0.unlessAlive) = (account, true) }
    #expect(fixture.user.opened.count == 1)
  }

  @Test func whoIsCancelledWaitsForNobody() throws {
    let fixture = try Fixture.added()
    let lock = try fixture.lock(nil)
    fixture.user.isCancelled = true
    #expect(throws: CredentialError.interrupted) { try fixture.login() }
    _ = consume lock
    #expect(fixture.clock.monotonic() < .seconds(1))
  }

  /// Somebody logged in before: that is not what was asked for. So it is when an account is refreshed meanwhile.
  @Test(arguments: [false, true]) func aLoginOfBeforeIsNoneOfNow(_ isRefreshed: Bool) throws {
    let fixture = try Fixture.added(credential: Fixture.credential("theirs"))
    let lock = Mutex(try fixture.lock(nil))
    let changes = isRefreshed ? [Fixture.storing("renewed")] : []
    fixture.whileWaiting(changes) { lock.withLock { $0 = nil } }
    fixture.consent(.token("ours"), .identity("ana"))
    #expect(try fixture.login().credential.accessToken == Secret("ours"))
  }
}
