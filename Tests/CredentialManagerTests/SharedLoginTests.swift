import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrSQLite
import CredmgrStore
import CredmgrText
import Synchronization
import Testing

@testable import CredmgrCredentialManager

/// Logins that wait for a login of another process, and take over its result.
struct SharedLoginTests {
  private static let mismatch = CredentialError.identityMismatch(
    provider: "example", account: "ana", expected: "ana", found: "eve", other: nil)
  private static let denied = CredentialError.oauth(
    .refused(.authorization, ErrorResponse(code: "access_denied", words: "no", status: nil)), provider: "example")

  /// Returns a fixture with the note of another process's login, and with a dead account for one without a name.
  private static func waiting(for other: String?) throws -> Fixture {
    let fixture = try Fixture.added()
    if other == nil {
      var dead = Fixture.credential("dead", refresh: nil)
      dead.isRejected = true
      try fixture.store(dead)
    }
    var note = ExchangeNote(.login, startedAt: 1)
    note.process = 4711
    try fixture.leave(note, nil, other ?? "")
    return fixture
  }

  private static func failing(_ error: CredentialError, _ account: String?) throws -> [Change] {
    let id = AccountID("example", account)
    let failure = try #require(LoginFailure(error, after: nil))
    return [
      .remove(RecordIdentifier(.pending, of: id)), .store(failure.encoded, as: RecordIdentifier(.failure, of: id)),
    ]
  }

  /// A login without a name repairs a dead account, and a login with a name creates the first one.
  @Test(arguments: [nil, "ana"] as [String?]) func gitWaitsForEveryLogin(_ other: String?) throws {
    let fixture = try Self.waiting(for: other)
    let lock = try fixture.lock(other)
    fixture.whileWaiting([Fixture.storing("theirs")])
    let account = try fixture.login { ($0.account, $0.unlessAlive) = (other == nil ? "ana" : nil, true) }
    _ = consume lock
    #expect(account.credential.accessToken == Secret("theirs"))
    #expect(fixture.user.opened.isEmpty)
    #expect(fixture.user.steps.contains { if case .waiting(_, process: 4711) = $0 { true } else { false } })
  }

  /// A user who declined, or signed in as another user, is not asked again by each process that waited.
  @Test(arguments: [nil, "ana"] as [String?], [denied, mismatch])
  func waitingLoginsFailAsTheFirstOne(_ other: String?, _ error: CredentialError) throws {
    let fixture = try Self.waiting(for: other)
    let held = Mutex(try fixture.lock(other))
    try fixture.whileWaiting(Self.failing(error, other)) { held.withLock { $0 = nil } }
    #expect(throws: error) {
      try fixture.login { ($0.account, $0.unlessAlive) = (other == nil ? "ana" : nil, true) }
    }
    #expect(fixture.user.opened.isEmpty)
  }

  @Test func aWaitingLoginForTheSameNameFailsAsTheFirstOne() throws {
    let fixture = try Fixture.added()
    let held = Mutex(try fixture.lock("ana"))
    try fixture.whileWaiting(Self.failing(Self.denied, "ana")) { held.withLock { $0 = nil } }
    #expect(throws: Self.denied) { try fixture.login { ($0.account, $0.unlessAlive) = ("ana", true) } }
    #expect(fixture.user.opened.isEmpty)
  }

  /// git opened a window for the account that the user wants to repair.
  @Test(arguments: [true, false]) func aLoginOfTheUserWaitsForGitsLogin(_ isDead: Bool) throws {
    let fixture = try Self.waiting(for: "ana")
    var account = Fixture.credential("old", refresh: nil)
    (account.isRejected, account.loggedInAt) = (isDead, account.loggedInAt - .seconds(60))
    try fixture.store(account)
    let lock = try fixture.lock("ana")
    fixture.whileWaiting([Fixture.storing("theirs")])
    if !isDead { fixture.consent(.token("ours"), .identity("bob")) }
    #expect(try fixture.login().credential.accessToken == Secret(isDead ? "theirs" : "ours"))
    _ = consume lock
  }

  /// Ends a login that opens a browser, instead of waiting for its page.
  private static func expectNoBrowser(_ user: ScriptedUser) {
    user.browse = { [unowned user] _ in user.isCancelled = true }
  }

  /// Returns the changes of a git process that finds the account "ana" dead and begins a login to it.
  private static func gitsLogin() -> [Change] {
    var dead = Fixture.credential("dead", refresh: nil)
    (dead.isRejected, dead.loggedInAt) = (true, dead.loggedInAt - .seconds(60))
    let id = AccountID("example", "ana")
    return [
      .store(dead.encoded, as: RecordIdentifier(.credential, of: id)),
      .store(ExchangeNote(.login, startedAt: 1).encoded, as: RecordIdentifier(.pending, of: id)),
    ]
  }

  /// When this login looked first, the account was alive. Since then it has waited for its lock.
  @Test func aLoginOfTheUserLooksAgainWithItsLock() throws {
    var old = Fixture.credential("old")
    old.loggedInAt = old.loggedInAt - .seconds(60)
    let fixture = try Fixture.added(credential: old)
    Self.expectNoBrowser(fixture.user)
    let gits = try fixture.lock("ana")
    let own = Mutex(try fixture.lock(nil))
    fixture.whileWaiting(Self.gitsLogin()) { [home = fixture.home, clock = fixture.clock] in
      own.withLock { $0 = nil }
      clock.onSleep { try? Fixture.apply([Fixture.storing("theirs")], in: home) }
    }
    #expect(try fixture.login().credential.accessToken == Secret("theirs"))
    #expect(fixture.user.opened.isEmpty)
    _ = consume gits
  }

  /// When this login looked with its lock, git's login to the default account had not begun.
  @Test func theSecondOfTwoLoginsGivesWay() throws {
    let fixture = try Fixture.added()
    let selected = Change.store(Secret("ana"), as: Accounts.selection("example"))
    try Fixture.apply(Self.gitsLogin().prefix(1) + [selected], in: fixture.home)
    try fixture.store(Fixture.credential("bobs"), "bob")
    Self.expectNoBrowser(fixture.user)
    let gits = Mutex<FileLock?>(nil)
    // These are the last words before the login begins.
    func begin() throws {
      try gits.withLock { $0 = try fixture.lock("ana") }
      try Fixture.apply(Self.gitsLogin(), in: fixture.home)
      fixture.whileWaiting([Fixture.storing("theirs")])
    }
    fixture.user.listen = { if case .alreadyLoggedIn = $0 { try begin() } }
    #expect(try fixture.login().credential.accessToken == Secret("theirs"))
    #expect(fixture.user.opened.isEmpty)
    #expect(try fixture.note(nil) == nil)
    fixture.user.listen = nil
    gits.withLock { $0 = nil }
  }

  /// The user started this login on purpose.
  @Test func aLoginOfTheUserTriesAgain() throws {
    let fixture = try Fixture.added()
    let held = Mutex(try fixture.lock(nil))
    try fixture.whileWaiting(Self.failing(Self.denied, nil)) { held.withLock { $0 = nil } }
    fixture.consent(.token("ours"), .identity("ana"))
    #expect(try fixture.login().credential.accessToken == Secret("ours"))
  }

  /// A login that ends without an answer from a user leaves the window to the next one.
  @Test func aKilledLoginIsRepeated() throws {
    let fixture = try Self.waiting(for: nil)
    let held = Mutex(try fixture.lock(nil))
    fixture.whileWaiting([]) { held.withLock { $0 = nil } }
    fixture.consent(.token("ours"), .identity("ana"))
    let account = try fixture.login { ($0.account, $0.unlessAlive) = ("ana", true) }
    #expect(account.credential.accessToken == Secret("ours"))
  }

  @Test func anEarlierFailureIsNotShared() throws {
    let fixture = try Fixture.added()
    fixture.user.consent([("error", "access_denied"), ("error_description", "no"), ("state", "state")])
    #expect(throws: Self.denied) { try fixture.login { $0.unlessAlive = true } }
    #expect(try fixture.source.accounts().failure(AccountID("example"))?.0.error == Self.denied)
    fixture.consent(.token("ours"), .identity("ana"))
    #expect(try fixture.login { $0.unlessAlive = true }.credential.accessToken == Secret("ours"))
    #expect(try fixture.source.accounts().failure(AccountID("example")) == nil)
  }

  @Test func everyFailureIsReadAsItWasWritten() throws {
    let other = CredentialError.otherLoginFailed(provider: "example")
    let errors: [(CredentialError, CredentialError?)] = [
      (Self.denied, Self.denied), (Self.mismatch, Self.mismatch),
      (.timedOut(after: .seconds(300)), .timedOut(after: .seconds(300))),
      (.oauth(.deviceCodeExpired, provider: "example"), other),
      (.http(.unreachable(host: "provider.example", reason: .timedOut), provider: "example"), other),
      (.interrupted, nil), (.vault(.absent(path: "vault.db")), nil),
    ]
    for (error, shared) in errors {
      let failure = LoginFailure(error, after: nil)
      #expect(failure?.error == shared)
      if let failure { #expect(LoginFailure(decoding: failure.encoded, of: "example") == failure) }
    }
    let wrong = try #require(LoginFailure(Self.mismatch, after: nil))
    #expect(LoginFailure(Self.denied, after: wrong)?.isWrongPerson == true)
    #expect(LoginFailure(decoding: Secret("nonsense"), of: "example").error == other)
  }

  /// A vault that cannot be read says nothing about the account, so credmgr opens no browser.
  @Test func aVaultThatCannotBeReadEndsTheWait() throws {
    let fixture = try Fixture.added()
    let lock = try fixture.lock("ana")
    let path = fixture.home.vaultLocation.file
    fixture.clock.onSleep {
      _ = try? Connection(path: path, .readWrite, busyTimeout: .zero).execute("DROP TABLE record")
    }
    do {
      _ = try fixture.login { ($0.account, $0.unlessAlive) = ("ana", true) }
      Issue.record("no error")
    } catch CredentialError.vault {}
    _ = consume lock
    #expect(fixture.user.opened.isEmpty)
  }
}

/// The account's name if the provider does not say who logged in.
struct UnidentifiedLoginTests {
  private static let refusal = HTTPResponse.json("{}", status: 403)

  private static func refreshable(_ identity: String? = nil) -> Credential {
    var credential = Fixture.credential("old", identity: identity)
    credential.isRejected = true
    return credential
  }

  /// Only a refresh shows whether the provider has revoked the token.
  @Test(arguments: ["default", "ada"], [true, false])
  func theOnlyAccountKeepsItsName(_ name: String, _ hasIdentity: Bool) throws {
    let text = hasIdentity ? Fixture.endpoints : Fixture.endpoints.replacing("account: login", with: "account: []")
    let fixture = try Fixture.added(
      text, credential: Self.refreshable(name == "ada" && hasIdentity ? "ada" : nil), account: name)
    let revoked = HTTPResponse.json("{\"error\": \"invalid_grant\"}", status: 400)
    if !hasIdentity, name == "default" { fixture.http.then(revoked) }
    fixture.consent(.token("new"))
    if hasIdentity { fixture.http.then(Self.refusal) }
    if hasIdentity || name == "ada" { fixture.http.then(revoked) }
    #expect(try fixture.login().name == name)
    #expect(try fixture.source.accounts().accounts(of: "example").map(\.name) == [name])
    #expect(fixture.notices.contains { if case .unchecked(name, _) = $0 { true } else { false } } == hasIdentity)
  }

  /// The new token may be another user's.
  @Test(arguments: [.token("renewed"), .json("{}", status: 503)] as [HTTPResponse])
  func anAccountThatMayWorkIsNotReplaced(_ answer: HTTPResponse) throws {
    let fixture = try Fixture.added(credential: Self.refreshable("ada"), account: "ada")
    fixture.consent(.token("new"), Self.refusal, answer)
    #expect(try fixture.login().name == "default")
    #expect(try fixture.stored("ada")?.refreshToken == Secret("refresh-1"))
    let ada = AccountID("example", "ada")
    #expect(fixture.notices.contains { if case .unidentified("default", ada, _) = $0 { true } else { false } })
  }

  @Test func theDefaultAccountKeepsItsName() throws {
    var dead = Self.refreshable("ada")
    dead.refreshToken = nil
    let fixture = try Fixture.added(credential: dead, account: "ada")
    try fixture.store(Fixture.credential("bobs", identity: "bob"), "bob")
    try fixture.source.accounts(.readWrite).select("ada", provider: "example")
    fixture.consent(.token("new"), Self.refusal)
    #expect(try fixture.login().name == "ada")
    #expect(try fixture.stored("bob")?.accessToken == Secret("bobs"))
  }

  /// The token works, so another user may have logged in.
  @Test func aWorkingTokenIsNotReplaced() throws {
    let fixture = try Fixture.added(credential: Fixture.credential("old", identity: "ada"), account: "ada")
    fixture.consent(.token("new"), Self.refusal)
    #expect(try fixture.login().name == "default")
    let ada = AccountID("example", "ada")
    #expect(fixture.notices.contains { if case .unidentified("default", ada, _) = $0 { true } else { false } })
  }

  @Test func aDeadAccountIsNotReportedAsLoggedIn() throws {
    var dead = Fixture.credential("dead", refresh: nil, identity: "ana")
    dead.isRejected = true
    let fixture = try Fixture.added(credential: dead)
    fixture.consent(.token("new"), .identity("ana"))
    _ = try fixture.login()
    #expect(!fixture.user.steps.contains { if case .alreadyLoggedIn = $0 { true } else { false } })
  }

  /// The browser would agree as the wrong user again.
  @Test func afterTheWrongUserTheProviderIsAsked() throws {
    let text = Fixture.endpoints.replacing(
      "  authorization: https://provider.example/authorize",
      with: """
          authorization:
            url: https://provider.example/authorize
            choose: { prompt: select_account, login_hint: "{identity}" }
        """)
    let fixture = try Fixture.added(
      text, credential: Fixture.credential("old", refresh: nil, identity: "ada"), account: "ada")
    func page(_ person: String) throws -> [String?] {
      fixture.consent(.token("new"), .identity(person))
      if person != "ada" { fixture.http.then(HTTPResponse(status: 200)) }
      _ = try? fixture.login { $0.account = "ada" }
      return try [fixture.page[first: "prompt"], fixture.page[first: "login_hint"]]
    }
    #expect(try page("eve") == [nil, nil])
    #expect(try page("eve") == ["select_account", "ada"])
    #expect(try page("ada") == ["select_account", "ada"])
    #expect(try page("ada") == [nil, nil])
  }
}
