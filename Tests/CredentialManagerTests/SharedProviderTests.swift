import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText
import Glibc
import Testing

@testable import CredmgrCredentialManager

/// Registrations, descriptors and secrets of the login in a vault that several machines share.
struct SharedProviderTests {
  private static let shared = Accounts.registration("example")

  private static func shared(_ text: String = Fixture.endpoints) throws -> (Fixture, OtherMachine, DirectoryVaults) {
    let fixture = try Fixture.added(text, credential: Fixture.credential(identity: "ana"))
    let vaults = try fixture.team()
    try fixture.source.share("ana", of: "example", in: "team")
    return (fixture, try OtherMachine(beside: fixture, vaults), vaults)
  }

  /// Changes the client secret and publishes it.
  private static func change(_ fixture: Fixture, id: String? = nil, secret: String) throws {
    let addition = try fixture.source.addition(shipped: "example", as: nil)
    try fixture.add(addition, id: id, secret: secret, replaces: true) { _, _, _ in true }
    let earlier = try fixture.source.sharedProvider("example", in: "team")
    try fixture.source.publish("example", in: "team", replacing: earlier)
  }

  /// The client of the vault is changed, and the other members get it where they agree.
  @Test func aChangedClientReachesTheOthers() throws {
    let (fixture, other, _) = try Self.shared()
    try other.source.synchronize(with: "team")
    let before = try #require(try other.source.accounts().registration(of: "example"))
    #expect(before.clientSecret == Secret("secret-1") && before.vault == "team")
    try Self.change(fixture, secret: "secret-2")
    #expect(
      try fixture.source.joined("team").accounts().registration(of: "example")?.clientSecret == Secret("secret-2"))
    try other.source.synchronize(with: "team")
    #expect(try other.source.accounts().registration(of: "example")?.clientSecret == Secret("secret-2"))
    // Another client needs consent.
    try Self.change(fixture, id: "client-2", secret: "secret-3")
    try other.source.synchronize(with: "team")
    #expect(try other.source.accounts().registration(of: "example")?.clientIdentifier == "client-1")
    var asked: [String] = []
    try other.source.synchronize(with: "team") { _, places in
      asked += places.map(\.name)
      return true
    }
    #expect(asked == ["client-2"])
    #expect(try other.source.accounts().registration(of: "example")?.clientIdentifier == "client-2")
    // Nothing is asked again.
    try other.source.synchronize(with: "team")
    #expect(try other.source.accounts().registration(of: "example")?.clientSecret == Secret("secret-3"))
  }

  /// A client that the user of another machine has changed there stays.
  @Test func anOwnClientStays() throws {
    let (fixture, other, _) = try Self.shared()
    try other.source.synchronize(with: "team")
    var own = try #require(try other.source.accounts().registration(of: "example"))
    (own.clientSecret, own.vault) = (Secret("mine"), nil)
    try other.source.store(["example": own], with: [])
    try Self.change(fixture, secret: "secret-2")
    try other.source.synchronize(with: "team") { _, _ in true }
    #expect(try other.source.accounts().registration(of: "example")?.clientSecret == Secret("mine"))
  }

  /// A descriptor that came from the vault is replaced, but not after the user has edited it.
  @Test(arguments: [false, true]) func aChangedDescriptor(_ isEdited: Bool) throws {
    let fixture = try Fixture()
    try fixture.addOwn(Fixture.endpoints)
    try fixture.store(Fixture.credential())
    let vaults = try fixture.team()
    try fixture.source.share("ana", of: "example", in: "team")
    let other = try OtherMachine(beside: fixture, vaults)
    try other.source.synchronize(with: "team")
    let path = other.source.home.userProviders + "/example.yaml"
    let edited = Array("provider: example\n\(Fixture.endpoints)\ntitle: Mine\n".utf8)
    if isEdited { try File.replace(path, edited) }
    try Self.publish(Fixture.endpoints + "\ntitle: Better", fixture.source)
    try other.source.synchronize(with: "team") { _, _ in true }
    let text = try File.read(path, limit: 1 << 20)
    #expect(
      try isEdited ? text == edited : text == File.read(fixture.home.userProviders + "/example.yaml", limit: 1 << 20))
    // The members move the provider to another server.
    try Self.publish(Fixture.endpoints.replacing("provider.example", with: "other.example"), fixture.source)
    try other.source.synchronize(with: "team") { _, _ in true }
    #expect(try isEdited == (File.read(path, limit: 1 << 20) == edited))
    #expect(try Self.hasFile(path, other) == isEdited)
    if isEdited {
      // The file has another name now, so the vault's is taken.
      try File.remove(path)
      try other.source.synchronize(with: "team") { _, _ in true }
    }
    let moved = try other.source.freshAccount("ana", of: "example").credential.accessToken
    #expect(try moved == fixture.sharedCredential()?.accessToken)
  }

  /// Changes the descriptor of the vault.
  private static func publish(_ text: String, _ source: CredentialSource) throws {
    let bytes = Array("provider: example\n\(text)\n".utf8)
    let earlier = try source.sharedProvider("example", in: "team")
    try source.add(
      source.addition(bytes, named: "example.yaml", as: nil), clientIdentifier: "client-1",
      clientSecret: nil, variables: [:], replaces: true, shared: earlier, confirms: { _, _, _ in true },
      agrees: { _ in true })
    try source.publish("example", in: "team", replacing: earlier)
  }

  /// Whether a machine said that a file of its user keeps it from using the vault's accounts, and removed the copies.
  private static func hasFile(_ path: String, _ machine: OtherMachine) throws -> Bool {
    guard case .withheld(_, _, .shared(.otherProvider(_, _, _, .hasFile(path))))? = machine.notices.last else {
      return false
    }
    return try machine.source.accounts().accounts(of: "example").isEmpty
  }

  /// A file that the user had before stays, also after the members have changed the provider.
  @Test(arguments: ["provider.example", "other.example"]) func anOwnFileStays(_ host: String) throws {
    let fixture = try Fixture()
    try fixture.addOwn(Fixture.endpoints)
    try fixture.store(Fixture.credential())
    let vaults = try fixture.team()
    try fixture.source.share("ana", of: "example", in: "team")
    let other = try OtherMachine(beside: fixture, vaults)
    let path = other.source.home.userProviders + "/example.yaml"
    let own = Array("provider: example\n\(Fixture.endpoints)\n# Mine.\n".utf8)
    try File.createDirectory(other.source.home.userProviders)
    try File.replace(path, own)
    try other.source.synchronize(with: "team")
    #expect(try other.source.freshAccount("ana", of: "example").credential.accessToken == Secret("token-1"))
    for title in ["Better", "Best"] {
      let text = Fixture.endpoints.replacing("provider.example", with: host)
      try Self.publish(text + "\ntitle: \(title)", fixture.source)
      try other.source.synchronize(with: "team") { _, _ in true }
      #expect(try File.read(path, limit: 1 << 20) == own)
      #expect(try Self.hasFile(path, other) == (host == "other.example"))
    }
  }

  /// A file that cannot be read here is the user's as well, and the warning names it.
  @Test(arguments: ["long", "link", "invalid"]) func anOwnFileThatCannotBeRead(_ kind: String) throws {
    let fixture = try Fixture()
    try fixture.addOwn(Fixture.endpoints)
    try fixture.store(Fixture.credential())
    let vaults = try fixture.team()
    try fixture.source.share("ana", of: "example", in: "team")
    let other = try OtherMachine(beside: fixture, vaults)
    let path = other.source.home.userProviders + "/example.yaml"
    try File.createDirectory(other.source.home.userProviders)
    let target = other.source.home.userProviders + "/target.yaml"
    switch kind {
    case "link": try #require(unsafe symlink(target, path) == 0)
    case "long": try File.replace(path, [UInt8](repeating: UInt8(ascii: "#"), count: 1 << 20 + 1))
    default: try File.replace(path, Array("grant: nonsense\n".utf8))
    }
    try other.source.synchronize(with: "team") { _, _ in true }
    #expect(!File.exists(target) && File.isLink(path) == (kind == "link"))
    if kind == "long" { #expect(try File.read(path, limit: 1 << 21).count == 1 << 20 + 1) }
    switch other.notices.last {
    case .withheld(_, _, .provider(.invalid(let findings))) where kind == "invalid":
      #expect(findings.first?.place.source.name == path)
    default: #expect(try Self.hasFile(path, other), "\(other.notices)")
    }
    #expect(try other.source.accounts().accounts(of: nil).isEmpty)
  }

  /// The file of the machine that gave its descriptor to the vault is replaced, and its text is in a copy.
  @Test func aDescriptorThatAnotherMemberChanges() throws {
    let fixture = try Fixture()
    try fixture.addOwn(Fixture.endpoints + "\n# Mine.")
    try fixture.store(Fixture.credential())
    let vaults = try fixture.team()
    try fixture.source.share("ana", of: "example", in: "team")
    let path = fixture.home.userProviders + "/example.yaml"
    let own = try File.read(path, limit: 1 << 20)
    let other = try OtherMachine(beside: fixture, vaults)
    try other.source.synchronize(with: "team") { _, _ in true }
    for title in ["Better", "Best"] {
      try Self.publish(Fixture.endpoints + "\ntitle: \(title)", other.source)
      try fixture.source.synchronize(with: "team")
      #expect(try String(decoding: File.read(path, limit: 1 << 20), as: UTF8.self).contains("title: \(title)"))
    }
    #expect(try File.read(path + ".old", limit: 1 << 20) == own && !File.exists(path + ".old2"))
    #expect(fixture.notices.contains(.setAside(copy: path + ".old", vault: "team")))
  }

  /// The user puts the own text back from the copy, and the next synchronization does not replace it.
  @Test func aTextThatWasPutBackStays() throws {
    let fixture = try Fixture()
    try fixture.addOwn(Fixture.endpoints + "\n# Mine.")
    try fixture.store(Fixture.credential())
    let vaults = try fixture.team()
    try fixture.source.share("ana", of: "example", in: "team")
    let path = fixture.home.userProviders + "/example.yaml"
    let own = try File.read(path, limit: 1 << 20)
    let other = try OtherMachine(beside: fixture, vaults)
    try other.source.synchronize(with: "team") { _, _ in true }
    try Self.publish(Fixture.endpoints + "\ntitle: Better", other.source)
    try fixture.source.synchronize(with: "team")
    #expect(try File.read(path, limit: 1 << 20) != own)
    try File.replace(path, File.read(path + ".old", limit: 1 << 20))
    try fixture.source.synchronize(with: "team") { _, _ in true }
    #expect(try File.read(path, limit: 1 << 20) == own)
  }

  /// A helper asks about a host whose provider another member has shared since.
  @Test func aHostOfTheVaultIsFound() throws {
    let (fixture, other, vaults) = try Self.shared(Fixture.endpoints + "\ngit: { hosts: [git.provider.example] }")
    func providers(_ host: String) throws -> [String] { try other.source.claims(of: host, for: .git).map(\.provider) }
    #expect(try providers("git.provider.example") == ["example"])
    // A known host needs no server, and an unknown one only once a minute.
    var calls = vaults.calls
    #expect(try providers("git.provider.example") == ["example"] && providers("elsewhere.example") == [])
    #expect(vaults.calls == calls)
    fixture.clock.advance(.seconds(60))
    #expect(try providers("elsewhere.example") == [])
    #expect(vaults.calls > calls)
    fixture.clock.advance(.seconds(60))
    vaults.isReachable(false)
    #expect(try providers("elsewhere.example") == [])
    calls = vaults.calls
    #expect(try providers("elsewhere.example") == [] && vaults.calls == calls)
  }

  /// Secrets that only a login sends stay in the vault, and those that requests send are copied.
  @Test func secretsOfTheLogin() throws {
    let text = """
      grant: session
      variables:
        user: { at_login: true }
        password: { at_login: true, secret: true }
        tenant_key: { at_login: true, secret: true }
      endpoints:
        token:
          url: https://provider.example/login
          send: json
          parameters: { user: "{user}", password: "{password}" }
      extra_headers: { X-Tenant: "{tenant_key}" }
      account: user
      hosts: [api.provider.example]
      """
    let fixture = try Fixture.added(text, secret: nil)
    var credential = Fixture.credential(refresh: nil, identity: "ana")
    credential.grant = .session
    credential.variables = ["user": "ana", "password": "secret-of-ana", "tenant_key": "key-of-tenant"]
    try fixture.store(credential)
    let vaults = try fixture.team()
    try fixture.source.share("ana", of: "example", in: "team")
    let other = try OtherMachine(beside: fixture, vaults)
    let kept = ["user": "ana", "tenant_key": "key-of-tenant"]
    #expect(try other.source.freshAccount("ana", of: "example").credential.variables == kept)
    #expect(try fixture.stored()?.variables == kept)
    #expect(try fixture.sharedCredential()?.variables == credential.variables)
    fixture.clock.advance(.seconds(3600))
    fixture.http.then(.token("token-2"))
    let renewed = try other.source.freshAccount("ana", of: "example")
    #expect(renewed.credential.accessToken == Secret("token-2") && renewed.credential.variables == kept)
    #expect(try fixture.sharedCredential()?.variables == credential.variables)
  }

  // MARK: Providers with other servers

  private static let movable =
    Fixture.endpoints.replacing("provider.example", with: "{host}").replacing("[api.{host}]", with: "[\"api.{host}\"]")
    + "\nvariables: { host: { default: provider.example } }"

  /// Two machines: the vault has the account "ben" of the first one, whose account "ana" is its own.
  private static func twoMachines() throws -> (Fixture, OtherMachine) {
    let fixture = try Fixture.added(movable, credential: Fixture.credential(identity: "ana"))
    let vaults = try fixture.team()
    try fixture.store(Fixture.credential("token-b", refresh: "refresh-b", identity: "ben"), "ben")
    try fixture.source.share("ben", of: "example", in: "team")
    let other = try OtherMachine(beside: fixture, vaults)
    try other.source.synchronize(with: "team")
    return (fixture, other)
  }

  /// Changes the server of the vault's provider. Returns the accounts about which the user was asked.
  @discardableResult private static func move(_ source: CredentialSource) throws -> [String] {
    var asked: [String] = []
    let earlier = try source.sharedProvider("example", in: "team")
    try source.add(
      source.addition(shipped: "example", as: nil), clientIdentifier: "client-1", clientSecret: Secret("s"),
      variables: ["host": "other.example"], replaces: true, shared: earlier,
      confirms: { _, accounts, _ in
        asked += accounts
        return true
      }, agrees: { _ in true })
    try source.publish("example", in: "team", replacing: earlier)
    return asked
  }

  /// Another machine has shared an account since this one looked at the vault.
  @Test func theQuestionNamesAllAccountsOfTheVault() throws {
    let (fixture, other) = try Self.twoMachines()
    try fixture.source.share("ana", of: "example", in: "team")
    #expect(try other.source.accounts().accounts(of: "example").map(\.name) == ["ben"])
    #expect(try Set(Self.move(other.source)) == ["ana", "ben"])
    // The machine itself had agreed to the new server before, but the vault had not.
    let again = try OtherMachine(beside: fixture, DirectoryVaults(in: fixture.root + "/shared"), name: "again")
    let addition = try again.source.addition(shipped: "example", as: nil)
    for host in ["other.example", "third.example"] {
      try again.source.add(
        addition, clientIdentifier: "client-1", clientSecret: Secret("s"), variables: ["host": host], replaces: true,
        confirms: { _, _, _ in true }, agrees: { _ in true })
    }
    let earlier = try again.source.sharedProvider("example", in: "team")
    #expect(throws: CredentialError.self) {
      try again.source.add(
        addition, clientIdentifier: "client-1", clientSecret: Secret("s"), variables: ["host": "third.example"],
        replaces: true, shared: earlier, confirms: { _, _, _ in false }, agrees: { _ in true })
    }
  }

  /// One machine shares an account and another one changes the provider's server, at each moment of the other.
  /// Each account that gets the new server was in the question.
  @Test(arguments: [false, true]) func aShareDuringAChangeOfTheProvider(_ isShareInside: Bool) throws {
    var outcomes: Set<String> = []
    var (moment, calls) = (0, 0)
    repeat {
      let (fixture, other) = try Self.twoMachines()
      var asked: [String] = []
      let share = { _ = try? fixture.source.share("ana", of: "example", in: "team") }
      let change = {
        do { asked += try Self.move(other.source) } catch CredentialError.shared(.providerChanged(_, _, let isChanged))
        {
          #expect(isChanged)
        } catch {}
      }
      let (outer, inner) = isShareInside ? (change, share) : (share, change)
      let machine = isShareInside ? other.source : fixture.source
      let store = try #require(try machine.joined("team").sharedStore() as? DirectoryStore)
      calls = 0
      store.onCall = {
        calls += 1
        if calls == moment + 1 { inner() }
      }
      outer()
      store.onCall = nil
      let isShared = try fixture.sharedCredential() != nil
      let host = try fixture.source.joined("team").accounts().registration(of: "example")?.variables["host"]
      if isShared, host != nil { #expect(asked.contains("ana"), "moment \(moment)") }
      outcomes.insert("\(isShared ? "shared" : "here") \(host ?? "as before")")
      let place: String? = isShared ? "team" : nil
      #expect(try fixture.stored()?.vault == place)
      moment += 1
    } while calls >= moment
    #expect(moment > 3)
    #expect(outcomes == ["shared as before", "here other.example", "shared other.example"])
  }

  /// A login to the vault, and another machine changes the provider's server, at each moment of the login.
  @Test func aLoginDuringAChangeOfTheProvider() throws {
    var outcomes: Set<String> = []
    var (moment, calls) = (0, 0)
    repeat {
      let (fixture, other) = try Self.twoMachines()
      var asked: [String] = []
      let store = try #require(try fixture.source.joined("team").sharedStore() as? DirectoryStore)
      calls = 0
      store.onCall = {
        calls += 1
        if calls == moment + 1 { asked += (try? Self.move(other.source)) ?? [] }
      }
      fixture.consent(.token("token-c", refresh: "refresh-c"), .identity("cleo"))
      _ = try? fixture.login { ($0.account, $0.vault) = ("cleo", "team") }
      store.onCall = nil
      let isShared = try fixture.sharedCredential("cleo") != nil
      let isMoved = try fixture.source.joined("team").accounts().registration(of: "example")?.variables["host"] != nil
      if isShared, isMoved { #expect(asked.contains("cleo"), "moment \(moment)") }
      outcomes.insert(isShared ? "shared" : "here")
      fixture.http.forgetAnswers()
      moment += 1
    } while calls >= moment
    #expect(moment > 3)
    #expect(outcomes == ["shared", "here"])
  }

  /// A machine refreshes an account, and another one moves the provider and logs in there, at each moment of the
  /// refresh. Neither token of the new server is stored here or sent to the old one, to which this machine agreed.
  @Test(arguments: [3600, 1]) func aRefreshDuringAChangeOfTheProvider(_ life: Int64) throws {
    var outcomes: Set<String> = []
    var (moment, calls) = (0, 0)
    repeat {
      let (fixture, other) = try Self.twoMachines()
      fixture.clock.advance(.seconds(3600))
      let store = try #require(try other.source.joined("team").sharedStore() as? DirectoryStore)
      calls = 0
      store.onCall = {
        calls += 1
        guard calls == moment + 1, (try? Self.move(fixture.source)) != nil else { return }
        var credential = Fixture.credential("token-new", refresh: "refresh-new", identity: "ben")
        (credential.obtainedAt, credential.loggedInAt) = (fixture.clock.now(), fixture.clock.now())
        credential.expiresAt = fixture.clock.now() + .seconds(life)
        try? fixture.store(credential, "ben")
        _ = try? fixture.source.share("ben", of: "example", in: "team", replaces: true)
      }
      fixture.http.then(.token("token-old", refresh: "refresh-old"))
      let token = try? other.source.freshAccount("ben", of: "example").credential.accessToken.reveal()
      store.onCall = nil
      #expect(token == nil || token == "token-old", "moment \(moment)")
      let stored = try other.source.accounts().account(AccountID("example", "ben"))?.credential.accessToken
      #expect(stored != Secret("token-new"), "moment \(moment)")
      #expect(
        fixture.http.requests.allSatisfy { request in
          request.uri.host == "provider.example"
            && !String(decoding: request.body, as: UTF8.self).contains("refresh-new")
        }, "moment \(moment)")
      outcomes.insert(token ?? "refused")
      if calls > moment {
        // The copy goes with the registration.
        try other.source.synchronize(with: "team")
        #expect(try other.source.accounts().accounts(of: "example").isEmpty)
        try other.source.synchronize(with: "team") { _, _ in true }
        let copy = try other.source.accounts().existing(AccountID("example", "ben")).credential
        #expect(try copy.accessToken == fixture.sharedCredential("ben")?.accessToken)
      }
      fixture.http.forgetAnswers()
      moment += 1
    } while calls >= moment
    #expect(moment > 3)
    #expect(outcomes == ["token-old", "refused"])
  }

  /// Two vaults have the provider. The members of one move it, so this machine's copies of the other one are removed.
  @Test func aMoveRemovesTheCopiesOfOtherVaults() throws {
    let (fixture, other) = try Self.twoMachines()
    try fixture.source.createVault("second", at: "postgresql://db.example/credmgr", password: nil, member: "ana")
    try fixture.source.share("ana", of: "example", in: "second")
    _ = try other.source.joinVault(Secret("second"), as: nil, member: nil)
    try other.source.synchronize(with: "second")
    func names() throws -> [String] { try other.source.accounts().accounts(of: "example").map(\.name).sorted() }
    #expect(try names() == ["ana", "ben"])
    try Self.move(fixture.source)
    try other.source.synchronize(with: "team") { _, _ in false }
    #expect(try names() == ["ana"])
    try other.source.synchronize(with: "team") { _, _ in true }
    #expect(try names() == ["ben"])
    func isWithheld() -> Bool {
      guard case .withheld("example", "second", .shared(.otherProvider(_, "second", _, .isOwn)))? = other.notices.last
      else { return false }
      return true
    }
    #expect(other.notices.contains { if case .withheld(_, "second", _) = $0 { true } else { false } })
    try other.source.synchronize(with: "second") { _, _ in true }
    #expect(try names() == ["ben"] && isWithheld())
  }

  /// The account of an interrupted share stays here if the members have changed the provider, and is free again.
  @Test func aShareThatIsRefusedTakesItsMarkBack() throws {
    let (fixture, other) = try Self.twoMachines()
    var moving = try #require(try fixture.stored())
    (moving.vault, moving.isMoving) = ("team", true)
    try fixture.store(moving)
    try Self.move(other.source)
    let error = #expect(throws: CredentialError.self) {
      try fixture.source.share("ana", of: "example", in: "team")
    }
    if case .shared(.otherProvider(_, _, _, .isOutdated)) = error {} else { Issue.record("\(error as Any)") }
    #expect(try fixture.stored()?.vault == nil)
    _ = try fixture.source.logout("ana", of: "example", keepsRemote: true)
  }

  /// A share was interrupted after the vault had the account, and another machine has refreshed it since.
  @Test(arguments: [false, true]) func aRefreshOfAnotherMachineIsEnough(_ isReplacing: Bool) throws {
    let (fixture, other, _) = try Self.shared()
    var moving = try #require(try fixture.sharedCredential())
    (moving.vault, moving.isMoving, moving.isReplacing) = ("team", true, isReplacing)
    try other.source.synchronize(with: "team")
    fixture.clock.advance(.seconds(3600))
    fixture.http.then(.token("token-2", refresh: "refresh-2"))
    #expect(try other.source.freshAccount("ana", of: "example").credential.accessToken == Secret("token-2"))
    try fixture.store(moving)
    let account = try fixture.source.accounts().existing(AccountID("example", "ana"))
    let renewed = try fixture.source.refreshed(account, RefreshPolicy(always: true, acceptsNewer: true))
    #expect(renewed.credential.accessToken == Secret("token-2") && !renewed.credential.isMoving)
  }

  /// The provider has ended all tokens, also the newer one of another machine.
  @Test func tokensThatTheProviderEnded() throws {
    let (fixture, other, _) = try Self.shared()
    try other.source.synchronize(with: "team")
    fixture.clock.advance(.seconds(3600))
    fixture.http.then(.token("token-2", refresh: "refresh-2"))
    _ = try other.source.freshAccount("ana", of: "example")
    // A refresh on demand does not just take the token that the vault has.
    let account = try fixture.source.accounts().existing(AccountID("example", "ana"))
    fixture.http.then(.token("token-3", refresh: "refresh-3"))
    let renewed = try fixture.source.refreshed(account, RefreshPolicy(always: true))
    #expect(renewed.credential.accessToken == Secret("token-3"))
    // A request tries it, and asks for a new one if the server refuses it as well.
    fixture.http.then(
      .json("{}", status: 401), .json("{}", status: 401), .token("token-4", refresh: "refresh-4"), .json("{}"))
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: "https://api.provider.example/x"))
    let head = try other.source.send(request, account: "ana", of: "example", limits: .unlimited) { _ in true }
    #expect(head.status == 200)
    let sent = fixture.http.requests.suffix(4).map { $0.fields["Authorization"] ?? "" }
    #expect(sent.map { $0.hasPrefix("Bearer") } == [true, true, false, true])
    #expect(sent[0] == "Bearer token-2" && sent[1] == "Bearer token-3" && sent[3] == "Bearer token-4")
  }
}
