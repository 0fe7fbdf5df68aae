import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText
import Synchronization
import Testing

@testable import CredmgrCredentialManager

/// Logins with the refresh token of another tool, which the provider may replace with its answer. The new one is then
/// never lost.
@Suite struct ImportedLoginTests {
  private static func imports(_ token: String, replaces: Bool = false) -> (inout LoginOptions) -> Void {
    { ($0.refreshToken, $0.replaces) = (Secret(token), replaces) }
  }

  /// Returns an answer that waits after an import was interrupted.
  private static func answer(_ number: Int, to imported: String) -> KeptAnswer {
    var credential = Fixture.credential("token-\(number)", refresh: "refresh-\(number)")
    credential.importedFrom = Secret(imported)
    return KeptAnswer(credential, after: nil)
  }

  private static func interrupted(_ credential: Credential? = nil, after age: Duration = .zero) throws -> Fixture {
    let fixture = try Fixture.added(credential: credential)
    try fixture.leave(ExchangeNote(.login, startedAt: Fixture.now), Self.answer(1, to: "tool-1"), "")
    fixture.clock.advance(age)
    return fixture
  }

  private static func there(_ name: String = "ana") -> CredentialError {
    .alreadyThere([RecordIdentifier(.credential, of: AccountID("example", name))], files: [])
  }

  // MARK: An interrupted import

  /// The tool's own token is used up, so the answer counts for as long as it waits.
  @Test(arguments: [0, 7200] as [Int64]) func theSameImportGoesOn(_ seconds: Int64) throws {
    let fixture = try Self.interrupted(after: .seconds(seconds))
    fixture.http.then(.identity("ana"))
    #expect(try fixture.login(Self.imports("tool-1")).name == "ana")
    #expect(try fixture.stored()?.refreshToken == Secret("refresh-1"))
    #expect(fixture.http.requests.count == 1)
    try fixture.expectNothingLeft()
  }

  /// The first account stays even with `--replace`, which is about accounts from before the import.
  @Test(arguments: [true, false]) func anotherImportFinishesTheFirst(_ replaces: Bool) throws {
    let fixture = try Self.interrupted()
    fixture.http.then(.identity("ana"))
    #expect(throws: Self.there()) { try fixture.login(Self.imports("tool-2", replaces: replaces)) }
    #expect(try fixture.stored()?.refreshToken == Secret("refresh-1"))
    #expect(fixture.notices == [.importFinished(provider: "example", account: "ana")])
    #expect(fixture.http.requests.count == 1)
    try fixture.expectNothingLeft()
  }

  /// An account that was there before stays, because only the import knows whether to replace it.
  @Test func anotherLoginFinishesTheImport() throws {
    let fixture = try Self.interrupted(Fixture.credential("old", identity: "ana"), after: .seconds(700))
    fixture.http.then(.identity("ana"))
    fixture.consent(.token("new"), .identity("ana"))
    #expect(try fixture.login().name == "ana")
    #expect(try fixture.stored("ana-2")?.refreshToken == Secret("refresh-1"))
    try fixture.expectNothingLeft()
  }

  @Test(arguments: [true, false]) func aLoginWithANameFinishesTheImport(_ isGiven: Bool) throws {
    let fixture = try Self.interrupted()
    fixture.http.then(.identity("ana"))
    if isGiven {
      fixture.http.then(.identity("eve"))
      #expect(try fixture.source.login("example", LoginOptions(), token: Secret("given")).name == "eve")
    } else {
      fixture.consent(.token("new"), .identity("eve"))
      #expect(try fixture.login { $0.account = "eve" }.name == "eve")
    }
    #expect(try fixture.stored()?.refreshToken == Secret("refresh-1"))
    try fixture.expectNothingLeft()
  }

  /// The only valid refresh token is that of the import, so a typed token of the same user becomes another account.
  @Test(arguments: [nil, "ana"] as [String?]) func aTypedTokenBesideTheImport(_ name: String?) throws {
    let fixture = try Self.interrupted()
    for _ in 1...2 { fixture.http.then(.identity("ana")) }
    var wish = LoginOptions()
    wish.account = name
    #expect(try fixture.source.login("example", wish, token: Secret("given")).name == "ana-2")
    #expect(try fixture.stored()?.refreshToken == Secret("refresh-1"))
    #expect(try fixture.stored("ana-2")?.accessToken == Secret("given"))
    try fixture.expectNothingLeft()
  }

  /// The import was of another account.
  @Test func aLogoutKeepsTheAnswer() throws {
    let fixture = try Self.interrupted(Fixture.credential("old"))
    _ = try fixture.source.logout("ana", of: "example", keepsRemote: true)
    fixture.http.then(.identity("eve"))
    #expect(try fixture.login(Self.imports("tool-1")).credential.refreshToken == Secret("refresh-1"))
    try fixture.expectNothingLeft()
  }

  /// Only the client to which the provider issued the answer can use it.
  @Test func anAnswerKeepsItsClient() throws {
    let fixture = try Self.interrupted()
    let addition = try fixture.source.addition(shipped: "example", as: nil)
    let waits = CredentialError.importWaits(provider: "example", command: [])
    #expect(throws: waits) { try fixture.source.remove("example", keepsRemote: true) }
    #expect(throws: waits) { try fixture.add(addition, id: "client-2", replaces: true) }
    try fixture.add(addition, secret: "secret-2", replaces: true)
    #expect(try fixture.registration()?.clientSecret == Secret("secret-2"))
    let answer = try fixture.another().accounts().store.answer(for: AccountID("example"))
    #expect(answer != nil)
    // The other tool no longer has a valid token, so credmgr revokes this one.
    fixture.http.then(.json("{}"), .json("{}"))
    #expect(try fixture.source.dropUnfinished(of: "example", keepsRemote: false, onlyOfImports: true))
    #expect(fixture.notices == [.importedTokenReplaced(provider: "example")])
    try fixture.expectNothingLeft()
    #expect(try fixture.source.remove("example", keepsRemote: true).client == nil)
  }

  // MARK: The client

  /// Two secrets may be valid at the same time, and the entry has the only copy of its own.
  @Test func aNewSecretOfTheClient() throws {
    let fixture = try Fixture.added()
    let text = #"{"client_id":"client-1","client_secret":"secret-2","refresh_token":"tool-1"}"#
    let client = try #require(ImportedClient(Secret(text)))
    func place() throws -> CredentialSource.ClientPlace? {
      try fixture.source.place(of: client, among: ["example"], suffix: "tool")
    }
    guard case .otherSecret("example", let known)? = try place() else {
      Issue.record("the other secret was not noticed")
      return
    }
    #expect(known == Secret("secret-1"))
    #expect(throws: CredentialError.notAdded(provider: "example", Self.needs)) {
      try fixture.login { wish in
        (wish.refreshToken, wish.clientIdentifier, wish.clientSecret) = (Secret("tool-1"), "client-1", client.secret)
      }
    }
    try fixture.source.replaceSecret(known, by: client.secret, ofClient: "client-1", at: "example")
    #expect(try fixture.registration()?.clientSecret == Secret("secret-2"))
    guard case .added("example")? = try place() else {
      Issue.record("the new secret was not stored")
      return
    }
    // Another process has changed it meanwhile.
    #expect(throws: CredentialError.providerChanged("example")) {
      try fixture.source.replaceSecret(known, by: known, ofClient: "client-1", at: "example")
    }
    #expect(fixture.http.requests.isEmpty)
  }

  private static let needs = ClientNeeds(needsIdentifier: true, needsSecret: false, register: nil)

  // MARK: Another process

  /// Both imports found no account, and only one of them stores its token.
  @Test func anAccountThatAppearsAtTheEnd() throws {
    let fixture = try Fixture.added()
    fixture.http.then(HTTPResponse(status: 503))
    fixture.source.notice = { _ in
      do { try fixture.store(Fixture.credential("theirs")) } catch { Issue.record(error) }
    }
    var wish = LoginOptions()
    (wish.account, wish.replaces, wish.keepsUnverified) = ("ana", false, true)
    #expect(throws: Self.there()) { try fixture.source.login("example", wish, token: Secret("given")) }
    #expect(try fixture.stored()?.accessToken == Secret("theirs"))
  }

  @Test func aHostLoginThatAppearsAtTheEnd() throws {
    let fixture = try Fixture()
    let origin = "https://git.example"
    let (ours, theirs) = (
      HostLogin(username: "ana", password: Secret("ours")), HostLogin(username: "ana", password: Secret("theirs"))
    )
    try fixture.another().store(theirs, for: origin)
    #expect(throws: CredentialError.self) { try fixture.source.store(ours, for: origin, replacing: nil) }
    #expect(try fixture.source.hostLogin(HostLoginPattern(origin: origin)) == theirs)
    try fixture.source.store(ours, for: origin, replacing: theirs)
    #expect(try fixture.source.hostLogin(HostLoginPattern(origin: origin)) == ours)
  }

  /// The account appears during the wait.
  @Test(arguments: [true, false]) func anImportLooksAgainAfterItsWait(_ replaces: Bool) throws {
    let fixture = try Fixture.added()
    let lock = Mutex(try fixture.lock(nil))
    fixture.whileWaiting([Fixture.storing("theirs")]) { lock.withLock { $0 = nil } }
    #expect(throws: Self.there()) { try fixture.login(Self.imports("tool-2", replaces: replaces)) }
    #expect(try fixture.stored()?.accessToken == Secret("theirs"))
    #expect(fixture.http.requests.isEmpty)
  }

  /// An import that fails takes its client away, while another one waits for it.
  @Test func anImportWithoutItsClientSendsNothing() throws {
    let fixture = try Fixture.added()
    let lock = Mutex(try fixture.lock(nil))
    fixture.whileWaiting([.remove(Accounts.registration("example"))]) { lock.withLock { $0 = nil } }
    let needs = ClientNeeds(needsIdentifier: true, needsSecret: false, register: nil)
    #expect(throws: CredentialError.notAdded(provider: "example", needs)) { try fixture.login(Self.imports("tool-1")) }
    #expect(fixture.http.requests.isEmpty)
  }

  /// Another import may have added its own client.
  @Test func anotherClientDoesNotGetTheToken() throws {
    let fixture = try Fixture.added()
    let needs = ClientNeeds(needsIdentifier: true, needsSecret: false, register: nil)
    #expect(throws: CredentialError.notAdded(provider: "example", needs)) {
      try fixture.login { ($0.refreshToken, $0.clientIdentifier) = (Secret("tool-1"), "client-2") }
    }
    #expect(fixture.http.requests.isEmpty)
  }

  /// The provider has already replaced the refresh token, so both accounts stay.
  @Test(arguments: [true, false]) func anAccountThatAppearsDuringTheRefresh(_ isOfAnotherUser: Bool) throws {
    let text = Fixture.endpoints + "\nsubject: id"
    let fixture = try Fixture.added(text)
    fixture.http.then(.token("ours", refresh: "refresh-1"))
    fixture.http.then { _ in
      var theirs = Fixture.credential("theirs", identity: "ana")
      theirs.subject = isOfAnotherUser ? "8" : "7"
      do { try fixture.store(theirs) } catch { Issue.record(error) }
      return .json(#"{"login":"ana","id":"7"}"#)
    }
    #expect(try fixture.login(Self.imports("tool-1", replaces: isOfAnotherUser)).name == "ana-2")
    #expect(try fixture.stored()?.accessToken == Secret("theirs"))
    #expect(try fixture.stored("ana-2")?.refreshToken == Secret("refresh-1"))
  }

  /// Such tokens are not revoked, because many providers would also revoke those of the other tool.
  @Test func anAnswerThatIsOfNoUse() throws {
    let fixture = try Fixture.added(Fixture.endpoints + "\nissuer: https://provider.example")
    // The ID token is for the audience "other".
    let idToken =
      "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL3Byb3ZpZGVyLmV4YW1wbGUiLCJzdWIiOiIxIiwiYXVkIjoib3Ro"
      + "ZXIiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMzYwMH0."
    fixture.http.then(.json(#"{"access_token":"a","refresh_token":"refresh-1","id_token":"\#(idToken)"}"#))
    #expect(throws: CredentialError.self) { try fixture.login(Self.imports("tool-1")) }
    #expect(fixture.notices == [.importedTokenReplaced(provider: "example")])
    #expect(fixture.http.requests.count == 1)
    try fixture.expectNothingLeft()
  }

  // MARK: An addition that is undone

  private enum User: CaseIterable { case nobody, account, answer, login, namedLogin }

  /// The provider goes only if nothing needs it.
  @Test(arguments: User.allCases, [true, false]) private func undoing(_ user: User, _ wasAdded: Bool) throws {
    let fixture = try Fixture()
    try fixture.ship(Fixture.endpoints)
    let addition = try fixture.source.addition(shipped: "example", as: "own")
    if wasAdded {
      // A login with a token adds no client.
      try fixture.source.add(
        addition, clientIdentifier: nil, clientSecret: nil, variables: [:], replaces: false, isForTokens: true,
        confirms: { _, _, _ in false })
      try fixture.store(Fixture.credential("given", refresh: nil), "eve", "own")
      _ = try File.remove(fixture.home.userProviders + "/own.yaml")
    }
    let before = try fixture.source.snapshot(of: "own")
    try fixture.add(addition)
    var lock: FileLock?
    let id = AccountID("own", user == .namedLogin ? "ana" : nil)
    let store = try fixture.another().accounts(.readWrite).store
    let note = Change.store(ExchangeNote(.login, startedAt: 1).encoded, as: RecordIdentifier(.pending, of: id))
    switch user {
    case .nobody: break
    case .account: try fixture.store(Fixture.credential(), "ana", "own")
    case .answer:
      try store.apply([note])
      try store.makeRoom(for: id).fill(Self.answer(1, to: "tool-1").encoded, isForced: false)
    case .login, .namedLogin:
      try store.apply([note])
      lock = try FileLock.acquire(fixture.home.vaultLocation.lock(store.hiddenName(of: id)), timeout: .zero)
    }
    try? fixture.source.restore(before)
    _ = consume lock
    let isGone = user == .nobody
    #expect(try fixture.registration("own")?.clientIdentifier == (isGone ? wasAdded ? "" : nil : "client-1"))
    #expect(File.exists(fixture.home.userProviders + "/own.yaml") == !isGone)
    if user == .answer { #expect(store.answer(for: id) != nil) }
  }
}
