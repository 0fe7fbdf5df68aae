import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText
import Testing

@testable import CredmgrCredentialManager

/// Another process changes a provider during a login, or logs in during the question about a change. No account follows
/// a provider to a server that no question named for it.
@Suite struct ProviderChangeTests {
  private static let text =
    Fixture.endpoints.replacing("api.provider.example", with: "{host}").replacing("[{host}]", with: "[\"{host}\"]")
    + "\nvariables: { host: { default: api.provider.example } }"

  private static func change(
    _ source: CredentialSource, client: String = "client-1", host: String = "other.example",
    confirms: CredentialSource.Consent = { _, _, _ in true }
  ) throws(CredentialError) {
    try source.add(
      source.addition(shipped: "example", as: nil), clientIdentifier: client, clientSecret: Secret("secret-1"),
      variables: ["host": host], replaces: true, confirms: confirms, agrees: { _ in true })
  }

  private static let conflict = CredentialError.vault(.conflict(Accounts.registration("example"), actual: nil))

  private static func me(_ name: String, _ subject: String) -> HTTPResponse {
    .json("{\"login\": \"\(name)\", \"sub\": \"\(subject)\"}")
  }

  // MARK: During a login

  @Test(arguments: [true, false]) func aProviderStays(_ isClient: Bool) throws {
    let fixture = try Fixture.added(Self.text)
    fixture.consent()
    let consents = fixture.user.browse
    fixture.user.browse = { url in
      #expect(throws: CredentialError.loginUnderWay(provider: "example", account: nil)) {
        try isClient
          ? Self.change(fixture.another(), client: "client-2", host: "api.provider.example")
          : Self.change(fixture.another())
      }
      try consents?(url)
    }
    fixture.http.then(.token("token-1"), .identity("ana"))
    #expect(try fixture.login().name == "ana")
    #expect(try fixture.registration()?.clientIdentifier == "client-1")
  }

  /// The login with a token holds no lock.
  @Test func aChangedProviderGetsNoAccount() throws {
    let fixture = try Fixture.added(Self.text)
    fixture.http.then { _ in
      do { try Self.change(fixture.another()) } catch { Issue.record(error) }
      return .identity("ana")
    }
    #expect(throws: CredentialError.providerChanged("example")) {
      _ = try fixture.source.login("example", LoginOptions(), token: Secret("token-1"))
    }
    #expect(try fixture.registration()?.variables == ["host": "other.example"])
    #expect(try fixture.another().accounts().accounts(of: "example").isEmpty)
  }

  /// Not even the verification sends the token there.
  @Test(arguments: [true, false]) func aProviderThatChangedDuringThePromptGetsNothing(_ wasAdded: Bool) throws {
    let fixture = wasAdded ? try Fixture.added(Self.text) : try Fixture()
    let shipped = Self.text.replacing(
      "grant: [authorization_code, device_code, client_credentials]\n", with: "grant: authorization_code\n")
    if !wasAdded { try fixture.ship(shipped + "\nclient: { id: public }") }
    var wish = LoginOptions()
    wish.seenDigest = fixture.source.destinationsDigest(ofLogin: wish, to: "example")
    #expect(wish.seenDigest != nil)
    if wasAdded {
      try Self.change(fixture.another())
    } else {
      var other = LoginOptions()
      other.variables = ["host": "other.example"]
      fixture.http.then(.identity("eve"))
      _ = try fixture.source.login("example", other, token: Secret("theirs"))
    }
    let count = fixture.http.requests.count
    #expect(throws: CredentialError.providerChanged("example")) {
      _ = try fixture.source.login("example", wish, token: Secret("token-1"))
    }
    #expect(fixture.http.requests.count == count)
  }

  /// The client that another process adds meanwhile is in no other place.
  @Test func theFirstLoginKeepsAnotherClient() throws {
    let fixture = try Fixture()
    try fixture.ship(
      "grant: authorization_code\nclient: { id: public }\n"
        + Fixture.endpoints.replacing(
          "grant: [authorization_code, device_code, client_credentials]\n", with: ""))
    fixture.http.then { _ in
      do {
        let other = fixture.another()
        try other.add(
          other.addition(shipped: "example", as: nil), clientIdentifier: "client-2", clientSecret: Secret("own"),
          variables: [:], replaces: false, confirms: { _, _, _ in false })
      } catch { Issue.record(error) }
      return .identity("ana")
    }
    #expect(try fixture.source.login("example", LoginOptions(), token: Secret("token-1")).name == "ana")
    #expect(try fixture.registration()?.clientSecret == Secret("own"))
  }

  // MARK: During the question

  @Test func aLoginDuringTheQuestionIsNamedByTheNextOne() throws {
    let fixture = try Fixture.added(Self.text, credential: Fixture.credential())
    var asked: [[String]] = []
    func change() throws(CredentialError) {
      try Self.change(fixture.another()) { _, accounts, _ in
        asked.append(accounts)
        if asked.count > 1 { return true }
        fixture.http.then(.identity("eve"))
        do { _ = try fixture.source.login("example", LoginOptions(), token: Secret("given")) } catch {
          Issue.record(error)
        }
        return true
      }
    }
    #expect(throws: Self.conflict) { try change() }
    #expect(try fixture.registration()?.variables == [:])
    try change()
    #expect(asked == [["ana"], ["ana", "eve"]])
    #expect(try fixture.registration()?.variables == ["host": "other.example"])
  }

  @Test func anImportedAccountIsNoticedAsWell() throws {
    let fixture = try Fixture.added()
    let other = try Fixture.added(credential: Fixture.credential(), account: "eve")
    let before = try fixture.source.accounts().revision(ofRegistration: "example")
    let bytes = Array(try other.another().exportVault(isPlain: true).json.encoded.utf8)
    _ = try fixture.source.importVault(bytes, acceptsPlain: true, replaces: false)
    #expect(try fixture.stored("eve") != nil)
    #expect(try fixture.source.accounts().revision(ofRegistration: "example") != before)
  }

  // MARK: After an interruption

  @Test(arguments: [true, false]) func anInterruptedLogin(_ hasMoved: Bool) throws {
    let fixture = try Fixture.added(Self.text)
    var kept = Fixture.credential("kept", refresh: "kept-refresh")
    kept.requestedScope = ["read"]
    kept.registrationDigest = try fixture.registration()?.digest()
    try fixture.leave(ExchangeNote(.login, startedAt: Fixture.now), KeptAnswer(kept, after: nil), "")
    if hasMoved {
      try Self.change(fixture.source)
      fixture.consent(.token("new"))
    }
    fixture.http.then(.identity("ana"))
    let account = try fixture.login()
    #expect(account.credential.accessToken == Secret(hasMoved ? "new" : "kept"))
    #expect(account.credential.registrationDigest == nil)
    #expect(fixture.notices.contains(.tokensLeft(provider: "example", nil)) == hasMoved)
    #expect(fixture.http.requests.count == (hasMoved ? 2 : 1))
    try fixture.expectNothingLeft()
  }

  /// No other place has the new refresh token, so it waits for the provider as it was.
  @Test func anImportWaits() throws {
    let fixture = try Fixture.added(Self.text)
    let before = try #require(try fixture.registration())
    func store(_ registration: Registration) {
      do { try fixture.another().store(["example": registration], with: []) } catch { Issue.record(error) }
    }
    fixture.http.then(.token("ours", refresh: "refresh-1"))
    fixture.http.then { _ in
      var moved = before
      moved.clientIdentifier = "client-2"
      moved.agreement?.clientIdentifier = "client-2"
      store(moved)
      return .identity("ana")
    }
    for _ in 1...2 {
      #expect(throws: CredentialError.providerChanged("example")) {
        try fixture.login { $0.refreshToken = Secret("tool-1") }
      }
    }
    store(before)
    fixture.http.then(.identity("ana"))
    _ = try fixture.login { $0.refreshToken = Secret("tool-1") }
    #expect(try fixture.stored()?.refreshToken == Secret("refresh-1"))
    try fixture.expectNothingLeft()
  }

  // MARK: Another server of the same provider

  /// Two realms of a server have an administrator each.
  @Test func aUserOfTheSameNameAtAnotherServer() throws {
    let fixture = try Fixture.added(Self.text)
    for (host, subject, token, name) in [
      (nil, "1", "a", "admin"), ("b.example", "2", "b", "admin-2"), ("b.example", "2", "c", "admin-2"),
      (nil, "1", "d", "admin"),
    ] {
      fixture.consent(.token(token), Self.me("admin", subject))
      let account = try fixture.login { options in
        if let host { options.variables["host"] = host }
      }
      #expect(account.name == name)
    }
    #expect(try fixture.stored("admin")?.accessToken == Secret("d"))
    #expect(try fixture.stored("admin-2")?.accessToken == Secret("c"))
    fixture.consent(.token("e"), Self.me("renamed", "2"))
    #expect(try fixture.login { $0.variables["host"] = "b.example" }.name == "admin-2")
  }

  /// The account follows its provider.
  @Test func aProviderWithAnotherIssuer() throws {
    let text = Self.text + "\nissuer: https://{host}"
    let fixture = try Fixture.added(text)
    for name in ["ana", "ana.new"] {
      fixture.consent(.token("token of " + name), Self.me(name, "1"))
      let account = try fixture.login()
      #expect(account.name == "ana")
      if name == "ana" { try Self.change(fixture.another()) }
    }
  }

  /// The variable names no server.
  @Test func anotherUserOfTheSameNameWithAnotherVariable() throws {
    let fixture = try Fixture.added(
      Fixture.endpoints + "\nextra_headers: { X-Note: \"{note}\" }\nvariables: { note: { default: x } }")
    fixture.consent(.token("a"), Self.me("ana", "1"))
    _ = try fixture.login { $0.variables["note"] = "y" }
    fixture.consent(.token("b"), Self.me("ana", "2"))
    fixture.http.then(HTTPResponse(status: 200))
    #expect(throws: CredentialError.self) { try fixture.login() }
    #expect(try fixture.stored()?.accessToken == Secret("a"))
  }
}
