import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText
import Testing

@testable import CredmgrCredentialManager
import Credmgr

/// Accounts in a vault that several machines share.
struct SharedAccountTests {
  /// Returns a machine whose account "ana" is in the vault "team".
  private static func shared(
    _ text: String = Fixture.endpoints, _ credential: Credential = Fixture.credential(identity: "ana"),
    variables: [String: String] = [:]
  ) throws -> (Fixture, DirectoryVaults) {
    let fixture = try Fixture.added(text, variables: variables, credential: credential)
    let vaults = try fixture.team()
    try fixture.source.share("ana", of: "example", in: "team")
    return (fixture, vaults)
  }

  private static func noCredential(_ account: String?) -> CredentialError {
    .loginNeeded(provider: "example", account: account, .noCredential)
  }

  private static let unreachable = CredentialError.vault(
    .server(.unreachable(detail: "connection refused"), vault: "team"))

  // MARK: Share

  @Test func theRefreshTokenMoves() throws {
    let (fixture, _) = try Self.shared()
    let copy = try #require(try fixture.stored())
    #expect(copy.vault == "team" && !copy.isMoving)
    #expect(copy.refreshToken == nil)
    #expect(copy.accessToken == Secret("token-1"))
    let whole = try #require(try fixture.sharedCredential())
    #expect(whole.vault == nil && !whole.isMoving)
    #expect(whole.refreshToken == Secret("refresh-1"))
    #expect(try fixture.source.joined("team").accounts().registration(of: "example")?.clientIdentifier == "client-1")
    #expect(throws: CredentialError.shared(.alreadyShared(provider: "example", account: "ana", vault: "team"))) {
      try fixture.source.share("ana", of: "example", in: "team")
    }
  }

  /// A share whose process died before the vault had the account goes on at the next refresh, or when repeated.
  @Test(arguments: [false, true], [false, true]) func aShareThatWasInterrupted(
    _ isStored: Bool, _ isRepeated: Bool
  ) throws {
    let (fixture, vaults) = try Self.shared()
    let whole = try #require(try fixture.sharedCredential())
    var moving = whole
    (moving.vault, moving.isMoving) = ("team", true)
    try fixture.store(moving)
    let theirs = try fixture.source.joined("team").accounts()
    if !isStored { try theirs.apply([.remove(RecordIdentifier(.credential, of: AccountID("example", "ana")))]) }
    if isRepeated {
      try fixture.source.share("ana", of: "example", in: "team")
    } else {
      // No process refreshes the account here meanwhile.
      vaults.isReachable(false)
      #expect(throws: Self.unreachable) { try fixture.refreshedAnew() }
      #expect(try fixture.stored() == moving)
      vaults.isReachable(true)
      fixture.http.then(.token("token-2", refresh: "refresh-2"))
      #expect(try fixture.refreshedAnew().credential.accessToken == Secret("token-2"))
    }
    let copy = try #require(try fixture.stored())
    #expect(copy.vault == "team" && !copy.isMoving && copy.refreshToken == nil)
    #expect(try fixture.sharedCredential()?.refreshToken == Secret(isRepeated ? "refresh-1" : "refresh-2"))
  }

  /// The server of the vault is lost for ever. The user can give up an account on its way, and leave.
  @Test func anAccountOnItsWayToALostVault() throws {
    let (fixture, vaults) = try Self.shared()
    var moving = try #require(try fixture.sharedCredential())
    (moving.vault, moving.isMoving) = ("team", true)
    try fixture.store(moving)
    vaults.isReachable(false)
    let unfinished = CredentialError.shared(.unfinishedShare(provider: "example", account: "ana", vault: "team"))
    #expect(throws: unfinished) { try fixture.source.leaveVault("team") }
    #expect(throws: unfinished) { try fixture.source.logout("ana", of: "example", keepsRemote: false) }
    _ = try fixture.source.logout("ana", of: "example", keepsRemote: true)
    _ = try fixture.source.leaveVault("team")
    #expect(try fixture.stored() == nil && fixture.source.joinedVaults().isEmpty)
  }

  /// The vault has another account of this name, so the account stays on this machine.
  @Test func aNameThatIsTaken() throws {
    let (fixture, vaults) = try Self.shared()
    let other = try OtherMachine(beside: fixture, vaults, joins: false)
    let taken = CredentialError.shared(.nameTaken(provider: "example", account: "ana", vault: "team"))
    try other.source.add(
      other.source.addition(shipped: "example", as: nil), clientIdentifier: "client-2", clientSecret: Secret("s"),
      variables: [:], replaces: false, confirms: { _, _, _ in false })
    var own = Fixture.credential("own", refresh: "refresh-own")
    own.loggedInAt = 1
    let accounts = try other.source.accounts(.readWrite)
    let identifier = RecordIdentifier(.credential, of: AccountID("example", "ana"))
    try accounts.apply([.store(own.encoded, as: identifier)])
    _ = try other.source.joinVault(Secret("team"), as: nil, member: nil)
    #expect(throws: taken) { try other.source.share("ana", of: "example", in: "team") }
    #expect(try accounts.account(AccountID("example", "ana"))?.credential == own)
    // The same happens if the vault got the other account after the share began.
    var moving = own
    (moving.vault, moving.isMoving) = ("team", true)
    try accounts.apply([.store(moving.encoded, as: identifier)])
    #expect(throws: taken) { try other.source.share("ana", of: "example", in: "team") }
    #expect(try accounts.account(AccountID("example", "ana"))?.credential == own)
    #expect(try fixture.sharedCredential()?.refreshToken == Secret("refresh-1"))
    // The user's own account comes first.
    try other.source.synchronize(with: "team")
    #expect(other.notices == [.hidden(provider: "example", account: "ana", vault: "team")])
    #expect(try other.source.freshAccount("ana", of: "example").credential.accessToken == Secret("own"))
  }

  @Test func anExchangeThatDidNotSucceed() throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    _ = try fixture.team()
    try fixture.leave(ExchangeNote(.refresh, startedAt: 1), nil)
    #expect(throws: CredentialError.shared(.unfinishedExchange(provider: "example", account: "ana"))) {
      try fixture.source.share("ana", of: "example", in: "team")
    }
    #expect(try fixture.stored()?.vault == nil)
    #expect(try fixture.sharedCredential() == nil)
  }

  // MARK: Copies

  /// A valid copy needs no server, no lock and no network.
  @Test func aValidCopyIsUsedLikeAnyAccount() throws {
    let (fixture, vaults) = try Self.shared()
    let before = vaults.calls
    let account = try fixture.another().freshAccount(nil, of: "example")
    #expect(account.credential.accessToken == Secret("token-1"))
    #expect(vaults.calls == before)
  }

  /// The program without the network hands over, and without the server the error says so.
  @Test func anExpiredCopyNeedsTheServer() throws {
    let (fixture, vaults) = try Self.shared()
    vaults.isReachable(false)
    fixture.clock.advance(.seconds(3590))
    #expect(throws: CredentialError.networkNeeded) { try fixture.another().freshAccount(nil, of: "example") }
    // It is still valid for 10 seconds.
    #expect(try fixture.fresh().credential.accessToken == Secret("token-1"))
    #expect(
      fixture.notices.contains { if case .notRefreshed(_, "ana", _, Self.unreachable) = $0 { true } else { false } })
    fixture.clock.advance(.seconds(11))
    #expect(throws: CredentialError.networkNeeded) { try fixture.another().freshAccount(nil, of: "example") }
    #expect(throws: Self.unreachable) { try fixture.fresh() }
  }

  /// Copies are refreshed up to 10 % of their life before the margin.
  @Test func theSpreadOfCopies() throws {
    let fixture = try Fixture()
    _ = try fixture.team()
    let margins = try (0..<200).map { _ in
      try fixture.source.copy(of: Fixture.credential(), from: "team", for: nil).margin.wholeSeconds
    }
    #expect(margins.allSatisfy { (60...360).contains($0) })
    #expect(Set(margins).count > 20)
    var lasting = Fixture.credential()
    lasting.expiresAt = nil
    #expect(try fixture.source.copy(of: lasting, from: "team", for: nil).margin == .seconds(60))
  }

  @Test func twoMachinesRefreshOnce() throws {
    let (fixture, vaults) = try Self.shared()
    let other = try OtherMachine(beside: fixture, vaults)
    #expect(try other.source.freshAccount("ana", of: "example").credential.accessToken == Secret("token-1"))
    #expect(other.notices == [.registrationTaken(provider: "example", vault: "team")])
    fixture.clock.advance(.seconds(3600))
    fixture.http.then(.token("token-2", refresh: "refresh-2"))
    #expect(try fixture.fresh().credential.accessToken == Secret("token-2"))
    let account = try other.source.freshAccount("ana", of: "example")
    #expect(account.credential.accessToken == Secret("token-2"))
    #expect(account.credential.refreshToken == nil && account.credential.vault == "team")
    #expect(fixture.http.requests.count == 1)
    #expect(try fixture.sharedCredential()?.refreshToken == Secret("refresh-2"))
    // From now on, both copies are valid without the server.
    vaults.isReachable(false)
    #expect(try other.another().freshAccount("ana", of: "example").credential.accessToken == Secret("token-2"))
  }

  /// A server refuses the token. The next use refreshes it once; a machine with the old token takes the new one.
  @Test func aTokenThatIsRejected() throws {
    let (fixture, vaults) = try Self.shared()
    let other = try OtherMachine(beside: fixture, vaults)
    _ = try other.source.freshAccount("ana", of: "example")
    for source in [fixture.source, other.source] {
      try source.reject(Secret("token-1"), account: "ana", of: "example")
    }
    fixture.http.then(.token("token-2", refresh: "refresh-2"))
    for source in [fixture.source, other.source] {
      #expect(try source.freshAccount("ana", of: "example").credential.accessToken == Secret("token-2"))
    }
    #expect(fixture.http.requests.count == 1)
  }

  /// The machine that lost its lease does not use up the refresh token.
  @Test func anExchangeThatAnotherMachineTookOver() throws {
    let (fixture, vaults) = try Self.shared()
    fixture.clock.advance(.seconds(3600))
    vaults.state.withLock { $0.holdsLeases = false }
    let overtaken = CredentialError.vault(.server(.overtaken(AccountID("example", "ana")), vault: "team"))
    #expect(throws: overtaken) { try fixture.fresh() }
    #expect(fixture.http.requests.isEmpty)
    vaults.state.withLock { $0.holdsLeases = true }
    fixture.http.then(.token("token-2"))
    #expect(try fixture.fresh().credential.accessToken == Secret("token-2"))
  }

  /// A key that does not expire is never refreshed, and a new one is taken when a server refuses the old one.
  @Test func aKeyInAVault() throws {
    var key = Credential(grant: .apiKey, accessToken: Secret("key-1"), obtainedAt: Fixture.now)
    key.identity = "ana"
    let (fixture, vaults) = try Self.shared(KeyLoginTests.text, key)
    #expect(try fixture.fresh().credential.accessToken == Secret("key-1"))
    try fixture.source.reject(Secret("key-1"), account: "ana", of: "example")
    #expect(throws: CredentialError.loginNeeded(provider: "example", account: "ana", .rejected)) { try fixture.fresh() }
    let theirs = try fixture.source.joined("team").accounts()
    key.accessToken = Secret("key-2")
    try theirs.apply([.store(key.encoded, as: RecordIdentifier(.credential, of: AccountID("example", "ana")))])
    #expect(try fixture.fresh().credential.accessToken == Secret("key-2"))
    _ = vaults
  }

  /// A machine whose clock is an hour ahead knows by the server's clock when a token expires.
  @Test func clocksThatDisagree() throws {
    let (fixture, vaults) = try Self.shared()
    let ahead = ManualClock()
    ahead.advance(.hours(1))
    let offset = DirectoryVaults(in: vaults.folder)
    offset.state.withLock { $0.clockOffset = .hours(-1) }
    let other = try OtherMachine(beside: fixture, offset, clock: ahead)
    let copy = try other.source.freshAccount("ana", of: "example")
    #expect(copy.credential.accessToken == Secret("token-1"))
    #expect(copy.credential.expiresAt == Fixture.now + .hours(2))
    #expect(try other.another().freshAccount("ana", of: "example").credential.accessToken == Secret("token-1"))
    for clock in [fixture.clock, ahead] { clock.advance(.seconds(3600)) }
    fixture.http.then(.token("token-2", refresh: "refresh-2"))
    #expect(try other.source.freshAccount("ana", of: "example").credential.accessToken == Secret("token-2"))
    #expect(try fixture.sharedCredential()?.expiresAt == Fixture.now + .hours(2))
    #expect(try fixture.fresh().credential.accessToken == Secret("token-2"))
    #expect(try fixture.stored()?.expiresAt == Fixture.now + .hours(2))
    #expect(fixture.http.requests.count == 1)
  }

  // MARK: Answers that wait

  /// A process dies after it has saved the provider's answer, and before it has committed it.
  private static func withWaitingAnswer(_ fixture: Fixture) throws {
    let id = AccountID("example", "ana")
    let theirs = try fixture.source.joined("team").accounts(.readWrite)
    let locked = try theirs.store.lock(id, timeout: .zero, clock: fixture.clock) { _ in true }
    let pending = try locked.begin(noting: ExchangeNote(.refresh, startedAt: Fixture.now).encoded)
    pending.keep(Fixture.credential("token-2", refresh: "refresh-2", identity: "ana"), after: Secret("token-1"))
    try pending.finish(.unfinished)
    _ = consume locked
    try fixture.leave(ExchangeNote(.refresh, startedAt: Fixture.now), nil)
  }

  private static func state(_ fixture: Fixture) throws -> AccountState? {
    let accounts = try fixture.another().accounts()
    return try accounts.states(of: accounts.accounts(of: nil), at: fixture.clock.now()).first
  }

  enum Use: CaseIterable { case token, sync, answers }

  /// The token of the copy is still valid. The next use commits the answer all the same, without an exchange.
  @Test(arguments: Use.allCases) func aWaitingAnswerIsCommittedAtTheNextUse(_ use: Use) throws {
    let (fixture, vaults) = try Self.shared()
    try Self.withWaitingAnswer(fixture)
    #expect(try Self.state(fixture) == .expiring)
    #expect(try fixture.another().interruptedExchanges().map(\.vault) == ["team"])
    #expect(throws: CredentialError.networkNeeded) { try fixture.another().freshAccount("ana", of: "example") }
    // Without the server, the valid token is served.
    vaults.isReachable(false)
    #expect(try fixture.fresh().credential.accessToken == Secret("token-1"))
    vaults.isReachable(true)
    switch use {
    case .token: #expect(try fixture.fresh().credential.accessToken == Secret("token-2"))
    case .sync: try fixture.source.synchronize(with: "team")
    case .answers: try fixture.source.commitAnswers(waitingFor: "team")
    }
    #expect(try fixture.sharedCredential()?.refreshToken == Secret("refresh-2"))
    #expect(try fixture.stored()?.accessToken == Secret("token-2"))
    #expect(try Self.state(fixture) == .usable && fixture.source.interruptedExchanges().isEmpty)
    #expect(fixture.http.requests.isEmpty)
    // From now on, nothing asks the vault.
    let before = vaults.calls
    _ = try fixture.another().freshAccount("ana", of: "example")
    #expect(vaults.calls == before)
  }

  /// The process died without an answer. The copy says so, stays as it is, and asks the vault once at most.
  @Test func anInterruptedExchangeOfACopy() throws {
    let (fixture, vaults) = try Self.shared()
    try fixture.leave(ExchangeNote(.refresh, startedAt: Fixture.now), nil)
    vaults.isReachable(false)
    for _ in 0..<2 { #expect(try fixture.fresh().credential.accessToken == Secret("token-1")) }
    #expect(fixture.notices.count == 2)
    #expect(try Self.state(fixture) == .usable)
    #expect(try fixture.another().interruptedExchanges().map(\.vault) == [nil])
    vaults.isReachable(true)
    fixture.http.then(.token("token-2", refresh: "refresh-2"))
    #expect(try fixture.refreshedAnew().credential.accessToken == Secret("token-2"))
    #expect(try fixture.source.interruptedExchanges().isEmpty)
  }

  /// An exchange that ends leaves no note, whatever the provider says.
  @Test func noNoteStays() throws {
    let (fixture, _) = try Self.shared()
    fixture.http.then(.json("{\"error\":\"invalid_grant\"}", status: 400))
    #expect(throws: CredentialError.self) { try fixture.refreshedAnew() }
    #expect(try fixture.source.interruptedExchanges().isEmpty)
    #expect(try Self.state(fixture) == .usable)
  }

  // MARK: Accounts that come and go

  @Test func anAccountThatIsGone() throws {
    let (fixture, vaults) = try Self.shared()
    let other = try OtherMachine(beside: fixture, vaults)
    _ = try other.source.freshAccount("ana", of: "example")
    _ = try fixture.source.joined("team").logout("ana", of: "example", keepsRemote: true)
    fixture.clock.advance(.seconds(3600))
    #expect(throws: Self.noCredential("ana")) { try other.source.freshAccount("ana", of: "example") }
    #expect(try other.another().accounts().accounts(of: nil).isEmpty)
    #expect(other.notices.contains(.vanished(provider: "example", account: "ana", vault: "team")))
    try fixture.source.synchronize(with: "team")
    #expect(try fixture.stored() == nil)
    #expect(fixture.notices == [.vanished(provider: "example", account: "ana", vault: "team")])
  }

  /// A logout without the vault leaves the account to the other members.
  @Test func aLogoutOfACopy() throws {
    let (fixture, _) = try Self.shared()
    let result = try fixture.source.logout("ana", of: "example", keepsRemote: false)
    #expect(result.revocation == .notAsked)
    #expect(try fixture.stored() == nil)
    #expect(fixture.http.requests.isEmpty)
    #expect(try fixture.sharedCredential()?.refreshToken == Secret("refresh-1"))
  }

  /// The account is unknown here and the server does not answer, so credmgr cannot know whether a login is needed.
  @Test func anUnknownAccountWithoutTheServer() throws {
    let (fixture, vaults) = try Self.shared()
    let other = try OtherMachine(beside: fixture, vaults)
    #expect(throws: CredentialError.networkNeeded) { try other.another().freshAccount("ana", of: "example") }
    vaults.isReachable(false)
    #expect(throws: Self.unreachable) { try other.source.freshAccount("ana", of: "example") }
    vaults.isReachable(true)
    let unknown = CredentialError.loginNeeded(provider: "nowhere", account: nil, .noCredential)
    #expect(throws: unknown) { try other.source.freshAccount(nil, of: "nowhere") }
    #expect(try other.source.freshAccount(nil, of: "example").name == "ana")
    #expect(throws: CredentialError.unknownAccount("ben", provider: "example", known: ["ana"])) {
      try other.source.freshAccount("ben", of: "example")
    }
  }

  /// The default of a machine with one own account stays, whatever appears in the vault.
  @Test func theDefaultStays() throws {
    let (fixture, vaults) = try Self.shared()
    let other = try OtherMachine(beside: fixture, vaults)
    let source = other.source
    try source.synchronize(with: "team")
    #expect(try source.accounts().selected(for: "example") == "ana")
    try fixture.store(Fixture.credential("token-b", identity: "ben"), "ben")
    try fixture.source.share("ben", of: "example", in: "team")
    try source.synchronize(with: "team")
    #expect(try source.freshAccount(nil, of: "example").name == "ana")
    #expect(try source.freshAccount("ben", of: "example").credential.accessToken == Secret("token-b"))
  }

  @Test func leaving() throws {
    let (fixture, vaults) = try Self.shared()
    let other = try OtherMachine(beside: fixture, vaults)
    try other.source.synchronize(with: "team")
    #expect(try other.source.joinedVaults() == ["team"])
    _ = try other.source.leaveVault("team")
    #expect(try other.source.joinedVaults().isEmpty)
    #expect(try other.source.accounts().accounts(of: nil).isEmpty)
    #expect(throws: CredentialError.vault(.server(.notJoined, vault: "team"))) { try other.source.vaultName("team") }
    #expect(throws: CredentialError.shared(.vaultNeeded(known: []))) { try other.source.vaultName(nil) }
  }

  /// A refused leave keeps the copies of the vault's other accounts.
  @Test func leavingWithAnAccountOnItsWay() throws {
    let (fixture, _) = try Self.shared()
    try fixture.store(Fixture.credential("token-z", identity: "zoe"), "zoe")
    var moving = try #require(try fixture.source.accounts().account(AccountID("example", "zoe"))).credential
    (moving.vault, moving.isMoving) = ("team", true)
    try fixture.store(moving, "zoe")
    #expect(throws: CredentialError.shared(.unfinishedShare(provider: "example", account: "zoe", vault: "team"))) {
      try fixture.source.leaveVault("team")
    }
    #expect(try fixture.stored()?.vault == "team")
  }

  // MARK: Providers

  /// A descriptor that did not come with the program travels with the account.
  @Test func aDescriptorThatTravels() throws {
    let fixture = try Fixture()
    try fixture.addOwn(Fixture.endpoints)
    try fixture.store(Fixture.credential())
    let vaults = try fixture.team()
    try fixture.source.share("ana", of: "example", in: "team")
    let other = try OtherMachine(beside: fixture, vaults)
    fixture.clock.advance(.seconds(3600))
    fixture.http.then(.token("token-2"))
    #expect(try other.source.freshAccount("ana", of: "example").credential.accessToken == Secret("token-2"))
    #expect(
      try File.read(other.source.home.userProviders + "/example.yaml", limit: 1 << 20)
        == File.read(fixture.home.userProviders + "/example.yaml", limit: 1 << 20))
    // A file of the user stays as it is.
    let third = try OtherMachine(beside: fixture, vaults, name: "third")
    let own = Array("provider: example\n\(Fixture.endpoints)\ntitle: Mine\n".utf8)
    try File.createDirectory(third.source.home.userProviders)
    try File.replace(third.source.home.userProviders + "/example.yaml", own)
    try third.source.synchronize(with: "team")
    #expect(try File.read(third.source.home.userProviders + "/example.yaml", limit: 1 << 20) == own)
  }

  /// The server hides the team's own descriptor, whose name is that of a shipped one with other servers. A new member
  /// must not use the shipped one with the team's tokens.
  @Test func ownDescriptorThatIsMissing() throws {
    let fixture = try Fixture()
    try fixture.addOwn(Fixture.endpoints)
    try fixture.store(Fixture.credential())
    let vaults = try fixture.team()
    try fixture.source.share("ana", of: "example", in: "team")
    let descriptor = RecordIdentifier(kind: .descriptor, provider: "example", account: "")
    try fixture.source.joined("team").accounts().apply([.remove(descriptor)])
    try fixture.ship(Fixture.endpoints.replacing("provider.example", with: "shipped.example"))
    let other = try OtherMachine(beside: fixture, vaults)
    #expect(throws: CredentialError.vault(.server(.damaged(descriptor), vault: "team"))) {
      try other.source.synchronize(with: "team") { _, _ in true }
    }
    #expect(try other.source.accounts().accounts(of: nil).isEmpty)
  }

  /// A variable that names a file of one machine would let the other members choose what this machine reads.
  @Test func placesOnOneMachineAreRefused() throws {
    let text = """
      grant: token_exchange
      endpoints: { token: https://provider.example/token }
      hosts: [api.provider.example]
      """
    let fixture = try Fixture.added(text, secret: nil)
    var credential = Fixture.credential(refresh: nil)
    credential.grant = .tokenExchange
    credential.variables = ["subject_token": "env:CI_TOKEN"]
    try fixture.store(credential)
    let vaults = try fixture.team()
    let refused = CredentialError.shared(.notShareable(provider: "example", variable: "subject_token"))
    #expect(throws: refused) { try fixture.source.share("ana", of: "example", in: "team") }
    #expect(try fixture.stored()?.vault == nil)
    // A member stored it with another program.
    let theirs = try fixture.source.joined("team").accounts()
    let registration = try #require(try fixture.registration())
    try theirs.apply([
      .store(registration.encoded, as: Accounts.registration("example")),
      .store(credential.encoded, as: RecordIdentifier(.credential, of: AccountID("example", "ben"))),
    ])
    let other = try OtherMachine(beside: fixture, vaults)
    #expect(throws: Self.noCredential("ben")) { try other.source.freshAccount("ben", of: "example") }
    #expect(other.notices == [.withheld(provider: "example", vault: "team", refused)])
    #expect(throws: refused) {
      try other.source.joined("team").permit(.refresh, "example", variables: credential.variables)
    }
  }

  /// An export of the user's own vault has no copies, which work only on machines that joined.
  @Test func anExportHasNoCopies() throws {
    let (fixture, _) = try Self.shared()
    let own = try fixture.source.exportVault(isPlain: true).json.formatted
    #expect(!own.contains("token-1"))
    let theirs = try fixture.source.joined("team").exportVault(isPlain: true).json.formatted
    #expect(theirs.contains("refresh-1") && theirs.contains("client-1"))
  }

  // MARK: Logins

  @Test func aLoginIntoAVault() throws {
    let fixture = try Fixture.added()
    _ = try fixture.team()
    fixture.consent(.token("token-1", refresh: "refresh-1"), .json("{\"login\":\"bot\"}"))
    let account = try fixture.login { $0.vault = "team" }
    #expect(account.name == "bot" && account.credential.vault == "team")
    #expect(account.credential.refreshToken == nil)
    #expect(try fixture.sharedCredential("bot")?.refreshToken == Secret("refresh-1"))
    // An account of a vault stays there.
    fixture.clock.advance(.seconds(1))
    fixture.consent(.token("token-2", refresh: "refresh-2"), .json("{\"login\":\"bot\"}"))
    #expect(try fixture.login { $0.account = "bot" }.credential.vault == "team")
    #expect(try fixture.sharedCredential("bot")?.refreshToken == Secret("refresh-2"))
  }

  /// The account of a vault must not become this machine's own because the server is away.
  @Test func aLoginWithoutTheServer() throws {
    let (fixture, vaults) = try Self.shared()
    vaults.isReachable(false)
    for name in ["ana", nil] {
      #expect(throws: Self.unreachable) { try fixture.login { $0.account = name } }
    }
    #expect(try fixture.stored()?.vault == "team")
    #expect(fixture.http.requests.isEmpty)
  }

  /// The server goes away during the login. The error says where the account is now.
  @Test func aServerThatGoesAwayDuringALogin() throws {
    var hasFailed = false
    for count in 1..<20 where !hasFailed {
      let (fixture, vaults) = try Self.shared()
      vaults.state.withLock { $0.limit = $0.calls + count }
      fixture.clock.advance(.seconds(1))
      fixture.consent(.token("token-2", refresh: "refresh-2"), .json("{\"login\":\"ana\"}"))
      do { _ = try fixture.login { $0.account = "ana" } } catch let error as CredentialError {
        guard error != Self.unreachable else { continue }
        #expect(
          error
            == .shared(
              .notInVault(provider: "example", account: "ana", vault: "team", replaces: true, Self.unreachable)))
        vaults.state.withLock { $0.limit = .max }
        try fixture.source.share("ana", of: "example", in: "team", replaces: true)
        #expect(try fixture.sharedCredential()?.refreshToken == Secret("refresh-2"))
        hasFailed = true
      }
    }
    #expect(hasFailed)
  }

  /// The process of a login to a shared account died after it had marked the account. The vault gets the new login.
  @Test func aLoginThatWasInterruptedOnItsWay() throws {
    let (fixture, vaults) = try Self.shared()
    var moving = Fixture.credential("token-9", refresh: "refresh-9", identity: "ana")
    moving.loggedInAt = Fixture.now + .seconds(5)
    (moving.vault, moving.isMoving, moving.isReplacing) = ("team", true, true)
    try fixture.store(moving)
    fixture.http.then(.token("token-10", refresh: "refresh-10"))
    #expect(try fixture.refreshedAnew().credential.accessToken == Secret("token-10"))
    #expect(try fixture.sharedCredential()?.refreshToken == Secret("refresh-10"))
    #expect(try fixture.stored()?.isReplacing == false)
    _ = vaults
  }

  /// A login was interrupted on its way, and another machine has refreshed the account since, or logged in again. Only
  /// a refreshed token of the replaced login is replaced.
  @Test(arguments: [false, true], [1, 5] as [Int64]) func aLoginThatAnotherMemberReplaced(
    _ isLogin: Bool, _ second: Int64
  ) throws {
    let (fixture, _) = try Self.shared()
    let id = AccountID("example", "ana")
    let theirs = try fixture.source.joined("team").accounts(.readWrite)
    let there = try theirs.existing(id)
    var moving = Fixture.credential("token-9", refresh: "refresh-9", identity: "ana")
    (moving.loggedInAt, moving.loginIdentifier) = (Fixture.now + .seconds(5), "x")
    (moving.vault, moving.isMoving, moving.isReplacing) = ("team", true, true)
    (moving.replacedRevision, moving.replacedLogin) = (there.revision, there.credential.loggedInAt)
    try fixture.store(moving)
    var newer = Fixture.credential("token-2", refresh: "refresh-2", identity: "ana")
    newer.loginIdentifier = isLogin ? "y" : nil
    // The other machine's clock may be behind, and both logins may be in one second.
    if isLogin { newer.loggedInAt = Fixture.now + .seconds(second) }
    try theirs.apply([.store(newer.encoded, as: RecordIdentifier(.credential, of: id))])
    guard isLogin else {
      fixture.http.then(.token("token-10", refresh: "refresh-10"))
      #expect(try fixture.refreshedAnew().credential.accessToken == Secret("token-10"))
      return
    }
    #expect(throws: CredentialError.shared(.loggedInSince(provider: "example", account: "ana", vault: "team"))) {
      try fixture.refreshedAnew()
    }
    #expect(try fixture.sharedCredential()?.refreshToken == Secret("refresh-2"))
    let own = try #require(try fixture.stored())
    #expect(own.vault == nil && own.refreshToken == Secret("refresh-9"))
    try fixture.source.share("ana", of: "example", in: "team", replaces: true)
    #expect(try fixture.sharedCredential()?.refreshToken == Secret("refresh-9"))
  }

  /// Two members log in to one account in the same second. The login that replaces the other one arrives.
  @Test func twoLoginsInOneSecond() throws {
    let (fixture, _) = try Self.shared()
    try fixture.setLogin("other")
    for number in [2, 3] {
      fixture.consent(.token("token-\(number)", refresh: "refresh-\(number)"), .json("{\"login\":\"ana\"}"))
      #expect(try fixture.login { $0.account = "ana" }.credential.accessToken == Secret("token-\(number)"))
      #expect(try fixture.sharedCredential()?.refreshToken == Secret("refresh-\(number)"))
    }
  }

  /// The vault has another account of the name, so the login ends before the user logs in, unless it replaces it.
  @Test func aLoginToANameThatIsTaken() throws {
    let (fixture, vaults) = try Self.shared()
    var own = Fixture.credential("own", refresh: "refresh-own", identity: "ana")
    own.loggedInAt = 1
    try fixture.store(own)
    func logIn(replaces: Bool) throws -> Account {
      try fixture.login { ($0.account, $0.vault, $0.givesAway) = ("ana", "team", replaces) }
    }
    #expect(throws: CredentialError.shared(.nameTaken(provider: "example", account: "ana", vault: "team"))) {
      try logIn(replaces: false)
    }
    #expect(fixture.http.requests.isEmpty)
    fixture.consent(.token("token-2", refresh: "refresh-2"), .json("{\"login\":\"ana\"}"))
    #expect(try logIn(replaces: true).credential.vault == "team")
    #expect(try fixture.sharedCredential()?.refreshToken == Secret("refresh-2"))
    _ = vaults
  }

  // MARK: The library

  @Test func theLibraryUsesSharedAccounts() async throws {
    let (fixture, vaults) = try Self.shared()
    vaults.isReachable(false)
    let credentials = Credentials(home: fixture.home, clock: fixture.clock)
    #expect(try await credentials.token(for: "example", account: "ana").account == "ana")
  }
}

extension Fixture {
  /// Gives the login of the account "ana" in the vault another identifier.
  fileprivate func setLogin(_ identifier: String) throws {
    var credential = try #require(try sharedCredential())
    credential.loginIdentifier = identifier
    try source.joined("team").accounts(.readWrite).apply([
      .store(credential.encoded, as: RecordIdentifier(.credential, of: AccountID("example", "ana")))
    ])
  }

  /// Refreshes the account "ana" even if its token is valid.
  fileprivate func refreshedAnew() throws -> Account {
    try source.refreshed(source.accounts().existing(AccountID("example", "ana")), RefreshPolicy(always: true))
  }
}
