import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText
import Testing

@testable import CredmgrCredentialManager

/// Logins with a key or a password that the user types, and with a token that the user made.
struct KeyLoginTests {
  static let text = """
    grant: api_key
    key: { page: https://provider.example/keys, pattern: ex-.* }
    endpoints: { identity: https://api.provider.example/me }
    account: login
    hosts: [api.provider.example]
    """

  /// Returns a fixture with a shipped provider that has not been added.
  static func shipped(_ text: String = KeyLoginTests.text, typed: [String]? = ["ex-1"]) throws -> Fixture {
    let fixture = try Fixture()
    try fixture.ship(text)
    fixture.user.typed = typed
    return fixture
  }

  @Test func aLoginAddsAShippedProvider() throws {
    let fixture = try Self.shipped(typed: [" ex-1\n"])
    fixture.http.then(.identity("ana"))
    let account = try fixture.login()
    #expect(account.name == "ana" && account.credential.identity == "ana")
    #expect(account.credential.accessToken == Secret("ex-1") && account.credential.grant == .apiKey)
    #expect(fixture.http.requests.map { $0.fields["Authorization"] } == ["Bearer ex-1"])
    #expect(fixture.user.prompts.map { $0.map(\.label) } == [["API key"]])
    let registration = try #require(try fixture.registration())
    #expect(registration.clientIdentifier.isEmpty && registration.agreement?.origins.isEmpty == false)
    let other = fixture.another()
    #expect(try other.handOut(nil, of: "example", by: .token, to: .caller).credential.accessToken == Secret("ex-1"))
    #expect(try other.headerFields(nil, of: "example", for: nil)["Authorization"] == "Bearer ex-1")
    #expect(!account.isRefreshable(at: Fixture.now))
    try fixture.expectNothingLeft()
  }

  @Test func theUsersOwnDescriptorIsAddedFirst() throws {
    let fixture = try Fixture()
    try fixture.edit(Self.text)
    fixture.user.typed = ["ex-1"]
    #expect(throws: CredentialError.self) { try fixture.login() }
    #expect(fixture.user.prompts.isEmpty)
    #expect(try fixture.another().accountsIfAny()?.registration(of: "example") == nil)
  }

  @Test(arguments: [401, 200]) func aRefusedKeyIsNotStored(_ status: Int) throws {
    let errors = "response: { errors: { meanings: { bad_key: invalid_token } } }\n"
    let fixture = try Self.shipped(errors + Self.text)
    fixture.http.then(.json(#"{"error":"bad_key","error_description":"no such key"}"#, status: status))
    fixture.user.keepsUnverified = true
    #expect(throws: CredentialError.tokenRefused(provider: "example", refused: "API key", words: "no such key")) {
      try fixture.login()
    }
    #expect(fixture.user.questions.isEmpty)
    #expect(try fixture.another().accounts().accounts(of: "example").isEmpty)
    #expect(try fixture.registration() == nil)
    try fixture.expectNothingLeft()
    // Only the user can know that it is a valid key of another kind.
    fixture.http.then(.json(#"{"error":"bad_key"}"#, status: status))
    #expect(try fixture.login { $0.keepsUnverified = true }.credential.isUnverified)
    #expect(fixture.notices.contains(.unconfirmed(account: "default", provider: "example", credential: "API key")))
  }

  /// The user can type the key again.
  @Test(arguments: [nil, "work"]) func anInterruptionAtTheQuestionLeavesNothing(_ account: String?) throws {
    let fixture = try Self.shipped()
    for _ in 0..<2 {
      fixture.http.then(.json("{}", status: 503))
      fixture.user.keepsUnverified = false
      (fixture.user.isCancelled, fixture.user.stopsAtQuestion) = (false, true)
      #expect(throws: CredentialError.interrupted) { try fixture.login { $0.account = account } }
      try fixture.expectNothingLeft()
    }
  }

  /// A login after an interrupted one leaves no note of it, also if the provider refuses the key.
  @Test(arguments: [nil, "work"]) func aRefusedLoginAfterAnInterruptedOne(_ account: String?) throws {
    let fixture = try Self.shipped()
    try fixture.add(fixture.source.addition(shipped: "example", as: nil), id: nil)
    let id = AccountID("example", account)
    for isGiven in [false, true] {
      try fixture.leave(ExchangeNote(.login, startedAt: Fixture.now), nil, account ?? "")
      fixture.http.then(.json("{}", status: 401))
      #expect(throws: CredentialError.tokenRefused(provider: "example", refused: "API key", words: nil)) {
        try fixture.login {
          $0.account = account
          $0.unlessAlive = isGiven
        }
      }
      #expect(try fixture.another().accounts().note(id) == nil)
    }
    // The note of a lost refresh stays.
    try fixture.leave(ExchangeNote(.refresh, startedAt: Fixture.now), nil, account ?? "")
    fixture.http.then(.json("{}", status: 401))
    #expect(throws: CredentialError.self) { try fixture.login { $0.account = account } }
    #expect(try fixture.another().accounts().note(id)?.losesRefresh == true)
  }

  static let digest = """
    grant: basic
    endpoints: { identity: https://api.provider.example/me }
    header_style: Digest
    account: login
    hosts: [api.provider.example]
    """

  static let challenge = #"Digest realm="r", qop="auth", algorithm=SHA-256, nonce="n1""#

  /// A server that has not seen the password neither confirms nor rejects it.
  @Test(arguments: [
    (200, ""), (401, ""), (401, "Basic realm=\"r\""), (401, "Bearer"), (403, ""),
    (401, "Digest realm=\"r\", nonce=\"n1\", qop=\"auth-int\""),
    (401, "Digest realm=\"r\", nonce=\"n1\", qop=\"auth\", algorithm=MD5-sess"),
  ]) func aPasswordWithoutAChallenge(_ status: Int, _ challenge: String) throws {
    let fixture = try Self.shipped(Self.digest, typed: ["ada", "pw-1"])
    func answer() -> HTTPResponse {
      let fields: HTTPFields = challenge.isEmpty ? [:] : ["WWW-Authenticate": challenge]
      return HTTPResponse(status: status, fields: fields, body: Array(#"{"login":"ada"}"#.utf8))
    }
    let fault = CredentialError.oauth(.noChallenge(.identity), provider: "example")
    fixture.http.then(answer())
    #expect(throws: CredentialError.unverified(provider: "example", fault)) { try fixture.login() }
    fixture.http.then(answer())
    #expect(try fixture.login { $0.keepsUnverified = true }.credential.isUnverified)
    fixture.http.then(answer())
    #expect(throws: fault) { try fixture.source.validate(nil, of: "example") }
    fixture.http.then(answer())
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: "https://api.provider.example/x"))
    let head = try fixture.source.send(request, account: nil, of: "example", limits: .unlimited) { _ in true }
    #expect(head.status == status)
    let stored = try #require(try fixture.stored("ada"))
    #expect(stored.isUnverified && !stored.isRejected)
    #expect(fixture.http.requests.allSatisfy { $0.fields["Authorization"] == nil })
  }

  /// A server that has seen the answer to its challenge does both.
  @Test func aPasswordWithAChallenge() throws {
    let fixture = try Self.shipped(Self.digest, typed: ["ada", "pw-1"])
    let refusal = HTTPResponse(status: 401, fields: ["WWW-Authenticate": Self.challenge])
    fixture.http.then(refusal, .json("{}", status: 401))
    #expect(throws: CredentialError.tokenRefused(provider: "example", refused: "password", words: nil)) {
      try fixture.login()
    }
    fixture.http.then(refusal, .json(#"{"login":"ada"}"#))
    #expect(try !fixture.login().credential.isUnverified)
    fixture.http.then(refusal, refusal)
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: "https://api.provider.example/x"))
    _ = try fixture.source.send(request, account: nil, of: "example", limits: .unlimited) { _ in true }
    #expect(try fixture.stored("ada")?.isRejected == true)
  }

  static let faults: [HTTPResponse] = [
    HTTPResponse(status: 503), HTTPResponse(status: 404), .json("{}", status: 400), .json("not JSON"),
    HTTPResponse(status: 429), .json("{}"), .json("[]"), .json(#"{"name":"ana"}"#), .json(#"{"login":null}"#),
    HTTPResponse(status: 200, fields: ["Content-Type": "text/html"], body: Array("<p>Sign in</p>".utf8)),
  ]

  @Test(arguments: faults.indices, [false, true]) func anUnverifiedKeyNeedsConsent(_ index: Int, _ keeps: Bool) throws {
    let fixture = try Self.shipped()
    fixture.http.then(Self.faults[index])
    fixture.user.keepsUnverified = keeps ? true : nil
    if keeps {
      #expect(try fixture.login().name == "default")
      #expect(try fixture.stored("default")?.accessToken == Secret("ex-1"))
      #expect(try fixture.stored("default")?.isUnverified == true)
      // The question showed the error.
      #expect(fixture.notices.contains(.unidentified(account: "default", beside: nil, nil)))
      fixture.http.then(.json(#"{"login":"ana"}"#))
      #expect(try fixture.source.validate(nil, of: "example").validity == .active)
      #expect(try fixture.stored("default")?.isUnverified == false)
    } else {
      let error = #expect(throws: CredentialError.self) { try fixture.login() }
      guard case .unverified("example", _)? = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(try fixture.another().accounts().accounts(of: "example").isEmpty && fixture.registration() == nil)
    }
    #expect(fixture.user.questions.count == 1)
    try fixture.expectNothingLeft()
  }

  @Test func aUserWhoDeclinesReadsTheErrorOnce() throws {
    let fixture = try Self.shipped()
    fixture.http.then(HTTPResponse(status: 503))
    fixture.user.keepsUnverified = false
    #expect(throws: CredentialError.notStored) { try fixture.login() }
    #expect(fixture.user.questions.count == 1)
  }

  /// Without a field for the user's name, any answer but an empty one shows that the provider knows the key.
  @Test(arguments: [("{}", false), ("[]", false), (#"{"data":[]}"#, true), (#"[{"id":1}]"#, true)])
  func evidenceWithoutAName(_ text: String, _ isEvidence: Bool) throws {
    let fixture = try Self.shipped(Self.text.replacing("account: login\n", with: ""))
    fixture.http.then(.json(text))
    if isEvidence {
      #expect(try fixture.login().name == "default")
    } else {
      let fault = CredentialError.oauth(.noEvidence(.identity), provider: "example")
      #expect(throws: CredentialError.unverified(provider: "example", fault)) { try fixture.login() }
    }
    #expect(fixture.user.questions.count == (isEvidence ? 0 : 1))
  }

  /// A page may also be well-formed XML.
  @Test(arguments: [("<html><body>Sign in</body></html>", false), ("<User><Id>1</Id></User>", true)])
  func evidenceInXML(_ text: String, _ isEvidence: Bool) throws {
    let fixture = try Self.shipped(
      """
      grant: api_key
      endpoints: { identity: { url: https://api.provider.example/me, response: { format: xml } } }
      hosts: [api.provider.example]
      """)
    fixture.http.then(HTTPResponse(status: 200, fields: ["Content-Type": "text/html"], body: Array(text.utf8)))
    let account = try? fixture.login()
    #expect((account != nil) == isEvidence)
    #expect(fixture.user.questions.count == (isEvidence ? 0 : 1))
  }

  /// A descriptor translates the code of a provider whose status 401 does not say that the key is wrong.
  @Test(arguments: [("insufficient_scope", 0), ("access_denied", 1)])
  func aKeyOfAnotherKind(_ meaning: String, _ questions: Int) throws {
    let errors = "response: { errors: { meanings: { restricted: \(meaning) } } }\n"
    let fixture = try Self.shipped(errors + Self.text)
    fixture.http.then(.json(#"{"error":"restricted"}"#, status: 401))
    fixture.user.keepsUnverified = true
    #expect(try fixture.login().name == "default")
    #expect(fixture.user.questions.count == questions)
  }

  @Test func anUnreachableProvider() throws {
    let fixture = try Self.shipped()
    fixture.http.then(HTTPError.unreachable(host: "api.provider.example", reason: .connectionRefused))
    let error = #expect(throws: CredentialError.self) { try fixture.login() }
    guard case .unverified("example", .http)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  /// RFC 6750, 3.1
  @Test(arguments: [(403, "insufficient_scope"), (401, "invalid_token")])
  func theHeaderOfARefusalNamesItsReason(_ status: Int, _ code: String) throws {
    let fixture = try Self.shipped()
    let challenge = #"Bearer realm="x", error="\#(code)""#
    fixture.http.then(HTTPResponse(status: status, fields: ["WWW-Authenticate": challenge]))
    if status == 403 {
      #expect(try fixture.login().name == "default")
    } else {
      #expect(throws: CredentialError.tokenRefused(provider: "example", refused: "API key", words: nil)) {
        try fixture.login()
      }
    }
    #expect(fixture.user.questions.isEmpty)
  }

  /// A valid key may be unable to read the profile, and some providers answer so to an unknown key.
  @Test(arguments: [("forbidden", false), ("insufficient_scope", true)])
  func aKeyThatCannotReadItsUser(_ code: String, _ isConfirmed: Bool) throws {
    let fixture = try Self.shipped()
    fixture.http.then(.json(#"{"error":"\#(code)"}"#, status: 403))
    fixture.user.keepsUnverified = !isConfirmed
    #expect(try fixture.login().name == "default")
    #expect(fixture.user.questions.count == (isConfirmed ? 0 : 1))
    #expect(try fixture.stored("default")?.isUnverified == !isConfirmed)
  }

  @Test(arguments: [
    ("", PasteFault.empty("API key")), ("ex-1\nex-2", .lines("API key")), ("ex 1", .blank("API key")),
    ("other-1", .pattern("API key")), (String(repeating: "e", count: 1 << 20), .tooLong("API key", bytes: 65536)),
  ]) func aWrongPasteIsNotSent(_ text: String, _ fault: PasteFault) throws {
    let fixture = try Self.shipped(typed: [text])
    #expect(throws: CredentialError.wrongPaste(provider: "example", fault)) { try fixture.login() }
    #expect(fixture.http.requests.isEmpty)
    #expect(try fixture.registration() == nil)
  }

  @Test func aKeyOfAnotherShippedProvider() throws {
    let fixture = try Self.shipped(Self.text.replacing("ex-.*", with: "sk-.*"), typed: ["sk-ant-1"])
    try fixture.ship(Self.text.replacing("ex-.*", with: "sk-ant-.*"), "other")
    try fixture.ship(Self.text.replacing("ex-.*", with: "sk-.*"), "twin")
    let refusal = CredentialError.foreignKey(provider: "example", owners: ["other"], canAgree: false)
    #expect(throws: refusal) { try fixture.login() }
    #expect(throws: refusal) {
      try fixture.source.login("example", LoginOptions(), token: Secret("sk-ant-2"))
    }
    #expect(fixture.http.requests.isEmpty)
    // The keys of two providers have the same beginning.
    fixture.user.typed = ["sk-1"]
    fixture.http.then(.identity("ana"))
    #expect(try fixture.login().name == "ana")
    // A descriptor of the user may be for a server that accepts these keys, so the user decides.
    let own = "provider: own\n" + Self.text.replacing(", pattern: ex-.*", with: "").replacing("api.", with: "own.")
    try File.createDirectory(fixture.home.userProviders)
    try File.replace(fixture.home.userProviders + "/own.yaml", Array(own.utf8))
    let loaded = try fixture.home.library.load("own")
    let foreign = CredentialError.foreignKey(provider: "own", owners: ["other"], canAgree: true)
    #expect(throws: foreign) { try fixture.source.requireOwnKey(["sk-ant-2"], of: loaded) }
    try fixture.source.requireOwnKey(["sk-ant-2"], of: loaded, agrees: true)
    // The other provider takes its own keys.
    fixture.user.typed = ["sk-ant-1"]
    fixture.http.then(.identity("ana"))
    #expect(try fixture.source.login("other", LoginOptions(), user: fixture.user).name == "ana")
  }

  @Test func withoutATerminal() throws {
    let fixture = try Self.shipped(typed: nil)
    #expect(throws: CredentialError.promptNeeded(provider: "example", ["API key"])) { try fixture.login() }
  }

  @Test func aUserNameAndAPassword() throws {
    let fixture = try Self.shipped(
      "grant: basic\nendpoints: { identity: https://api.provider.example/me }\nhosts: [api.provider.example]",
      typed: ["Ada", "p w"])
    fixture.http.then(.json(#"{"id":1}"#), .json(#"{"id":1}"#))
    let account = try fixture.login()
    #expect(account.name == "Ada" && account.credential.variables == ["username": "Ada"])
    let header = "Basic " + Base64.encode(Array("Ada:p w".utf8))
    #expect(fixture.http.requests.map { $0.fields["Authorization"] } == [header])
    #expect(try fixture.another().headerFields(nil, of: "example", for: nil)["Authorization"] == header)
    // A later login to the account needs the same values as the first one.
    #expect(try fixture.login { $0.account = "Ada" }.credential.accessToken == Secret("p w"))
    #expect(fixture.user.prompts.map { $0.map(\.label) } == [["user name", "password"], ["user name", "password"]])
  }

  /// A value of the login may be part of a host, which the template of the agreement covers.
  @Test func severalValues() throws {
    let fixture = try Self.shipped(
      """
      grant: secrets
      variables: { site: { at_login: true }, id: { at_login: true, secret: true }, key: { at_login: true, secret: true } }
      endpoints: { identity: "https://{site}.provider.example/me" }
      extra_headers: { X-Key: "{key}" }
      hosts: ["{site}.provider.example"]
      """, typed: ["eu", "id-1", "key-1"])
    fixture.http.then(.json(#"{"id":1}"#))
    let account = try fixture.login()
    #expect(fixture.http.requests.map(\.uri.text) == ["https://eu.provider.example/me"])
    #expect(fixture.http.requests[0].fields["X-Key"] == "key-1")
    #expect(account.credential.accessToken == Secret("id-1"))
    fixture.http.then(HTTPResponse(status: 200))
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: "https://eu.provider.example/x"))
    _ = try fixture.source.send(request, account: nil, of: "example", limits: .tokenEndpoint) { _ in true }
    let foreign = HTTPRequest(method: "GET", uri: try URI(parsing: "https://us.provider.example/x"))
    #expect(throws: CredentialError.self) {
      try fixture.source.send(foreign, account: nil, of: "example", limits: .tokenEndpoint) { _ in true }
    }
  }

  /// A login to an existing account asks for all parts of a new key.
  @Test func anotherKeyOfAnAccount() throws {
    let fixture = try Self.shipped(
      """
      grant: secrets
      variables: { id: { at_login: true }, key: { at_login: true, secret: true }, host: { default: a.example } }
      endpoints: {}
      extra_headers: { X-Id: "{id}" }
      hosts: ["{host}"]
      """, typed: ["id-1", "key-1"])
    var wish = LoginOptions()
    wish.account = "ada"
    wish.variables = ["host": "b.example"]
    _ = try fixture.source.login("example", wish, user: fixture.user)
    #expect(fixture.notices == [.valuesStay(provider: "example", ["host=b.example"])])
    wish.variables = [:]
    fixture.user.typed = ["id-2", "key-2"]
    let account = try fixture.source.login("example", wish, user: fixture.user)
    #expect(account.credential.accessToken == Secret("key-2"))
    #expect(account.credential.variables == ["id": "id-2", "key": "key-2", "host": "b.example"])
    #expect(fixture.notices.count == 1)
  }

  // MARK: Expiry

  @Test func theUserSaysWhenAKeyExpires() throws {
    let fixture = try Self.shipped(Self.text.replacing("pattern: ex-.*", with: "lifetime: 30d"))
    fixture.http.then(.identity("ana"), .identity("ana"))
    #expect(try fixture.login().credential.expiresAt == Fixture.now + .days(30))
    #expect(try fixture.login { $0.expiresAt = Fixture.now + .days(7) }.credential.expiresAt == Fixture.now + .days(7))
  }

  // MARK: A token for an OAuth provider

  static let oauth = """
    grant: authorization_code
    variables: { redirect_uri: { format: redirect } }
    endpoints:
      authorization: https://provider.example/authorize
      token: https://provider.example/token
      identity: https://api.provider.example/me
      revocation: https://provider.example/revoke
    redirect: "{redirect_uri}"
    key: { page: https://provider.example/tokens, pattern: ex-.* }
    account: login
    hosts: [api.provider.example]
    """

  @Test func aTokenNeedsNoClient() throws {
    let fixture = try Self.shipped(Self.oauth)
    fixture.http.then(.identity("ana"))
    let account = try fixture.source.login("example", LoginOptions(), token: Secret("ex-1"))
    #expect(account.credential.isGiven && account.credential.grant == .apiKey)
    // A login in the browser needs a client.
    let error = #expect(throws: CredentialError.self) { try fixture.login() }
    guard case .notAdded("example", _)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    // Adding it keeps the account.
    try fixture.add(
      fixture.source.addition(shipped: "example", as: nil), variables: ["redirect_uri": "http://127.0.0.1/callback"])
    #expect(try fixture.registration()?.clientIdentifier == "client-1")
    #expect(try fixture.stored()?.accessToken == Secret("ex-1"))
    // No client can revoke a token that the user made.
    #expect(try fixture.source.logout(nil, of: "example", keepsRemote: false).revocation == .notAsked)
  }

  /// A token for an OAuth provider follows the rule of keys.
  @Test(arguments: faults.indices, [false, true]) func anUnverifiedTokenNeedsConsent(
    _ index: Int, _ keeps: Bool
  ) throws {
    let fixture = try Self.shipped(Self.oauth)
    fixture.http.then(Self.faults[index])
    fixture.user.keepsUnverified = keeps ? true : nil
    let wish = LoginOptions()
    if keeps {
      #expect(try fixture.source.login("example", wish, token: Secret("ex-1"), user: fixture.user).name == "default")
    } else {
      let error = #expect(throws: CredentialError.self) {
        try fixture.source.login("example", wish, token: Secret("ex-1"), user: fixture.user)
      }
      guard case .unverified("example", _)? = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(try fixture.another().accounts().accounts(of: "example").isEmpty && fixture.registration() == nil)
    }
    #expect(fixture.user.questions.count == 1)
  }

  /// Also if the descriptor does not say where the answer has the name.
  @Test func aTokenIsVerifiedWithoutAName() throws {
    let fixture = try Self.shipped(Self.oauth.replacing("account: login\n", with: ""))
    fixture.http.then(HTTPResponse(status: 503))
    #expect(throws: CredentialError.self) {
      try fixture.source.login("example", LoginOptions(), token: Secret("ex-1"), user: fixture.user)
    }
    #expect(fixture.user.questions.count == 1)
  }

  /// Without an endpoint that verifies a token, credmgr asks nothing. An introspection for a client is not one.
  @Test(arguments: ["", "introspection: https://provider.example/introspect"])
  func aTokenThatNothingVerifies(_ endpoint: String) throws {
    let fixture = try Self.shipped(
      Self.oauth.replacing("identity: https://api.provider.example/me", with: endpoint))
    let account = try fixture.source.login("example", LoginOptions(), token: Secret("ex-1"), user: fixture.user)
    #expect(account.name == "default")
    #expect(fixture.user.questions.isEmpty && fixture.http.requests.isEmpty)
  }

  // MARK: Attack and control

  /// A changed descriptor that names another host gets no key; the agreed one does.
  @Test(arguments: [false, true]) func aChangedDescriptorGetsNoKey(_ isOwn: Bool) throws {
    let fixture = try Self.shipped()
    fixture.http.then(.identity("ana"))
    _ = try fixture.login()
    let evil = Self.text.replacing("api.provider.example", with: "evil.example")
    try isOwn ? fixture.edit(evil) : fixture.ship(evil)
    let source = fixture.another(http: fixture.http)
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: "https://evil.example/x"))
    let error = #expect(throws: CredentialError.self) {
      try source.send(request, account: nil, of: "example", limits: .tokenEndpoint) { _ in true }
    }
    guard case .descriptorChanged("example", _, _, let places)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(places.map(\.name).contains("evil.example"))
    #expect(throws: CredentialError.self) { try source.login("example", LoginOptions(), user: fixture.user) }
    #expect(throws: CredentialError.self) { try source.headerFields(nil, of: "example", for: nil) }
    #expect(fixture.http.requests.count == 1)
    try fixture.ship(Self.text)
    if isOwn { _ = try File.remove(fixture.home.userProviders + "/example.yaml") }
    fixture.http.then(HTTPResponse(status: 200))
    let agreed = HTTPRequest(method: "GET", uri: try URI(parsing: "https://api.provider.example/x"))
    _ = try fixture.another(http: fixture.http).send(
      agreed, account: nil, of: "example", limits: .tokenEndpoint
    ) { _ in true }
    #expect(fixture.http.requests[1].fields["Authorization"] == "Bearer ex-1")
  }

  /// A changed user name of Basic would carry another secret.
  @Test func anotherPresentationNeedsConsent() throws {
    let fixture = try Self.shipped()
    fixture.http.then(.identity("ana"))
    _ = try fixture.login()
    try fixture.edit(Self.text + "\nheader_style: { username: api }")
    let error = #expect(throws: CredentialError.self) {
      try fixture.another().headerFields(nil, of: "example", for: nil)
    }
    guard case .descriptorChanged? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }
}
