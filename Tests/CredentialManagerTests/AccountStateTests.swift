import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrStore
import Testing
import CredmgrText

@testable import CredmgrCredentialManager

/// Tests the states of an account and their transitions (docs/account-states.md).
struct AccountStateTests {
  typealias Reason = CredentialError.LoginReason

  /// Returns a token issued an hour ago, with a margin of a minute.
  private static func credential(left: Int64?, refresh: String? = "refresh-1", isRejected: Bool = false) -> Credential {
    var credential = Fixture.credential(refresh: refresh)
    credential.obtainedAt = Fixture.now - .seconds(3600)
    credential.expiresAt = left.map { Fixture.now + .seconds($0) }
    credential.isRejected = isRejected
    return credential
  }

  private static func refused(_ ended: String? = "refresh-1") -> ExchangeNote {
    let refusal = ExchangeNote.Refusal(
      at: 1, words: "over", isAfterInterruption: false, ended: ended.map { Secret($0) })
    return ExchangeNote(.refresh, startedAt: 1, refusal: refusal)
  }

  private static func after(_ note: ExchangeNote?) -> ExchangeNote { ExchangeNote(.login, startedAt: 2, after: note) }

  /// The remaining lifetime, whether the token was refused, its refresh token, the note, and the caller's wish.
  struct Row: Sendable {
    let left: Int64?
    var isRejected = false
    var refresh: String? = "refresh-1"
    var note: ExchangeNote?
    var answerWaits = false
    var refreshes = true
    var isHeld = false
    var isLoggingIn = false
    var wish = RefreshPolicy()
    let state: AccountState

    init(_ left: Int64?, _ state: AccountState, _ change: (inout Row) -> Void = { _ in }) {
      (self.left, self.state) = (left, state)
      change(&self)
    }
  }

  private static let over = Reason.refreshRefused("over")
  private static let longer = RefreshPolicy(validity: .seconds(2000))
  private static let table: [Row] = [
    // The expiry from the provider decides.
    Row(nil, .usable), Row(61, .usable), Row(60, .expiring), Row(1, .expiring), Row(0, .refreshable),
    Row(1000, .refreshable) { $0.isRejected = true },
    // Without a refresh token, or without a refresh endpoint in the descriptor.
    Row(61, .usable) { $0.refresh = nil }, Row(60, .ending) { $0.refresh = nil },
    Row(0, .expired(.expired)) { $0.refresh = nil }, Row(60, .ending) { $0.refreshes = false },
    Row(0, .expired(.expired)) { $0.refreshes = false },
    Row(1000, .expired(.rejected)) { ($0.refresh, $0.isRejected) = (nil, true) },
    // A permanent refusal applies to one refresh token only, and a status alone is not permanent.
    Row(nil, .refused(over)) { $0.note = refused() }, Row(1000, .refused(over)) { $0.note = refused() },
    Row(30, .refused(over)) { $0.note = refused() }, Row(0, .expired(over)) { $0.note = refused() },
    Row(1000, .expired(over)) { ($0.note, $0.isRejected) = (refused(), true) },
    Row(0, .refreshable) { $0.note = refused("refresh-0") }, Row(0, .doubtful(over)) { $0.note = refused(nil) },
    Row(30, .expiring) { $0.note = refused(nil) }, Row(0, .doubtful(over)) { $0.note = after(refused(nil)) },
    Row(0, .refreshable) { ($0.note, $0.wish) = (refused(nil), RefreshPolicy(asksAgain: true)) },
    Row(0, .refreshable) { ($0.note, $0.answerWaits) = (refused(nil), true) },
    Row(0, .loggingIn(over)) { ($0.note, $0.isHeld) = (after(refused()), true) },
    Row(0, .refreshable) { ($0.note, $0.wish) = (refused(), RefreshPolicy(asksAgain: true)) },
    // The caller wants a longer lifetime.
    Row(1000, .refreshable) { $0.wish = longer }, Row(2001, .usable) { $0.wish = longer },
    Row(1000, .expired(.notRefreshable)) { ($0.wish, $0.refresh) = (longer, nil) },
    Row(1000, .expired(over)) { ($0.wish, $0.note) = (longer, refused()) },
    Row(2001, .refused(over)) { ($0.wish, $0.note) = (longer, refused()) },
    Row(nil, .refreshable) { $0.wish = RefreshPolicy(always: true) },
    Row(nil, .expired(over)) { ($0.wish, $0.note) = (RefreshPolicy(always: true), refused()) },
    Row(10, .usable) { $0.wish = RefreshPolicy(validity: .zero) },
    Row(10, .usable) { $0.wish = RefreshPolicy(validity: .seconds(-100)) },
    Row(1000, .refreshable) { $0.wish = RefreshPolicy(validity: .seconds(Int64.max)) },
    Row(299, .expiring) { $0.wish = RefreshPolicy(preferredLifetime: .seconds(300)) },
    // A saved answer beside the vault comes first.
    Row(1000, .refreshable) { $0.answerWaits = true },
    Row(0, .refreshable) { ($0.answerWaits, $0.note) = (true, refused()) },
    // A running login does not affect a valid token.
    Row(0, .loggingIn(.expired)) { ($0.isLoggingIn, $0.refresh) = (true, nil) },
    Row(0, .refreshable) { $0.isLoggingIn = true }, Row(61, .usable) { $0.isLoggingIn = true },
    // No process can refresh an account that a login holds.
    Row(0, .loggingIn(.loginUnderWay)) { $0.isHeld = true }, Row(61, .usable) { $0.isHeld = true },
    Row(60, .ending) { $0.isHeld = true }, Row(0, .loggingIn(.expired)) { ($0.isHeld, $0.refresh) = (true, nil) },
    Row(1000, .loggingIn(.loginUnderWay)) { ($0.isHeld, $0.wish) = (true, RefreshPolicy(always: true)) },
    // A login or a logout does not forget a refusal.
    Row(1000, .refused(over)) { $0.note = after(refused()) }, Row(0, .expired(over)) { $0.note = after(refused()) },
    Row(0, .loggingIn(over)) { ($0.note, $0.isHeld) = (after(refused()), true) },
    Row(0, .refreshable) { $0.note = after(nil) },
  ]

  @Test func everyState() {
    for (number, row) in Self.table.enumerated() {
      let credential = Self.credential(left: row.left, refresh: row.refresh, isRejected: row.isRejected)
      let state = AccountState(
        credential, note: row.note, answerWaits: row.answerWaits, refreshes: row.refreshes,
        isHeld: row.isHeld, isLoggingIn: row.isLoggingIn, for: row.wish, at: Fixture.now)
      #expect(state == row.state, "row \(number)")
    }
  }

  // MARK: Transitions

  private static let refusal = HTTPResponse.json(
    "{\"error\":\"invalid_grant\",\"error_description\":\"over\"}", status: 400)

  private static let unknown = HTTPResponse.json(
    "{\"error\":\"odd_code\",\"error_description\":\"odd\"}", status: 400)
  private static let invalidClient = HTTPResponse.json("{\"error\":\"invalid_client\"}", status: 401)

  private enum Event {
    case noRefresh  // The token came without a refresh token.
    case time(Int64)
    case rejection
    case handOut(HTTPResponse?, isGiven: Bool)  // The answer to the refresh, if any.
    case login
  }

  /// Events for an account with a token of one hour, in order, and the state after each.
  private static let ways: [[(Event, AccountState)]] = [
    [(.time(3540), .expiring), (.handOut(.token("2"), isGiven: true), .usable)],
    [(.time(3540), .expiring), (.time(60), .refreshable), (.handOut(.token("2"), isGiven: true), .usable)],
    [(.time(3540), .expiring), (.handOut(HTTPResponse(status: 503), isGiven: true), .expiring)],
    [(.time(3540), .expiring), (.handOut(HTTPResponse(status: 403), isGiven: true), .expiring)],
    [(.time(3600), .refreshable), (.handOut(HTTPResponse(status: 429), isGiven: false), .refreshable)],
    [(.time(3600), .refreshable), (.handOut(invalidClient, isGiven: false), .refreshable)],
    // A refusal without a known code is not permanent, but a login helps as well.
    [
      (.time(3600), .refreshable), (.handOut(unknown, isGiven: false), .doubtful(.refreshRefused("odd"))),
      (.handOut(HTTPResponse(status: 401), isGiven: false), .doubtful(.refreshRefused(nil))),
      (.handOut(HTTPResponse(status: 503), isGiven: false), .doubtful(.refreshRefused(nil))),
      (.handOut(.token("2"), isGiven: true), .usable),
    ],
    [
      (.time(3600), .refreshable),
      (.handOut(HTTPResponse(status: 403), isGiven: false), .doubtful(.refreshRefused(nil))),
      (.login, .usable),
    ],
    [(.time(3600), .refreshable), (.handOut(HTTPResponse(status: 503), isGiven: false), .refreshable)],
    [(.rejection, .refreshable), (.handOut(.token("2"), isGiven: true), .usable)],
    [
      (.time(3540), .expiring), (.handOut(refusal, isGiven: true), .refused(over)),
      (.handOut(nil, isGiven: true), .refused(over)), (.time(60), .expired(over)),
      (.handOut(nil, isGiven: false), .expired(over)), (.login, .usable),
    ],
    [
      (.time(3540), .expiring), (.handOut(refusal, isGiven: true), .refused(over)), (.rejection, .expired(over)),
      (.login, .usable),
    ],
    [(.rejection, .refreshable), (.handOut(refusal, isGiven: false), .expired(over)), (.login, .usable)],
    [(.time(3540), .expiring), (.handOut(refusal, isGiven: true), .refused(over)), (.login, .usable)],
    [
      (.noRefresh, .usable), (.time(3540), .ending), (.handOut(nil, isGiven: true), .ending),
      (.time(60), .expired(.expired)), (.handOut(nil, isGiven: false), .expired(.expired)), (.login, .usable),
    ],
    [(.noRefresh, .usable), (.rejection, .expired(.rejected)), (.login, .usable)],
  ]

  @Test(arguments: [true, false], ways.indices) func everyTransition(_ hasIdentity: Bool, _ way: Int) throws {
    let text = hasIdentity ? Fixture.endpoints : Fixture.endpoints.replacing("account: login", with: "account: []")
    let name = hasIdentity ? "ana" : "default"
    let fixture = try Fixture.added(
      text, credential: Fixture.credential(identity: hasIdentity ? "ana" : nil), account: name)
    for (step, (event, state)) in Self.ways[way].enumerated() {
      switch event {
      case .noRefresh:
        var credential = try #require(try fixture.stored(name))
        credential.refreshToken = nil
        try fixture.store(credential, name)
      case .time(let seconds): fixture.clock.advance(.seconds(seconds))
      case .rejection:
        let token = try #require(try fixture.stored(name)).accessToken
        try fixture.another().reject(token, account: nil, of: "example")
      case .handOut(let answer, let isGiven):
        if let answer { fixture.http.then(answer) }
        let token = try? fixture.fresh().credential.accessToken
        #expect((token != nil) == isGiven, "step \(step)")
        #expect(try token == nil || token == fixture.stored(name)?.accessToken)
      case .login:
        fixture.consent(.token("of-a-login", refresh: "refresh-9"))
        if hasIdentity { fixture.http.then(.identity("ana")) }
        // A plain login is enough, and opens one page.
        #expect(try fixture.login().name == name)
        #expect(fixture.user.opened.count == 1)
      }
      let accounts = try fixture.another().accounts()
      let account = try accounts.resolve(nil, provider: "example")
      #expect(try accounts.states(of: [account], at: fixture.clock.now()) == [state], "step \(step)")
      // A request for a token reports the same reason.
      if case .expired(let reason) = state {
        #expect(throws: CredentialError.loginNeeded(provider: "example", account: name, reason)) {
          try fixture.another().freshAccount(nil, of: "example")
        }
      }
    }
  }

  @Test func aLoginIsUnderWay() throws {
    let fixture = try Fixture.added(credential: Fixture.credential(refresh: nil))
    fixture.clock.advance(.seconds(3600))
    for name in ["ana", nil] as [String?] {
      try fixture.leave(ExchangeNote(.login, startedAt: 1), nil, name ?? "")
      let lock = try fixture.lock(name)
      let accounts = try fixture.another().accounts()
      let account = try accounts.resolve("ana", provider: "example")
      #expect(try accounts.states(of: [account], at: fixture.clock.now()) == [.loggingIn(.expired)])
      _ = consume lock
      #expect(try accounts.states(of: [account], at: fixture.clock.now()) == [.expired(.expired)])
      try fixture.leave(nil, nil, name ?? "")
    }
  }

  /// A login to an account with a refused refresh token, while another process asks for the account's token.
  @Test(arguments: [0, 1000] as [Int64]) func aLoginDoesNotHideARefusal(_ left: Int64) throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    try fixture.leave(Self.refused(), nil)
    fixture.clock.advance(.seconds(3600 - left))
    let other = fixture.another(http: ScriptedExchange())
    func state() throws -> AccountState? {
      let accounts = try other.accounts()
      return try accounts.states(of: accounts.accounts(of: nil), at: fixture.clock.now()).first
    }
    let needed = CredentialError.loginNeeded(provider: "example", account: "ana", Self.over)
    func ask(_ wish: RefreshPolicy = RefreshPolicy()) throws { _ = try other.freshAccount(nil, of: "example", wish) }
    func expectToken() throws {
      if left > 0 { try ask() } else { #expect(throws: needed) { try ask() } }
      #expect(throws: needed) { try ask(RefreshPolicy(always: true)) }
    }
    var note: ExchangeNote?
    fixture.user.browse = { _ in
      note = try fixture.note("ana")
      #expect(try state() == (left > 0 ? .refused(Self.over) : .loggingIn(Self.over)))
      try expectToken()
      fixture.user.isCancelled = true
    }
    let before = fixture.clock.passed()
    #expect(throws: CredentialError.interrupted) { try fixture.login { $0.account = "ana" } }
    #expect(try fixture.note("ana") == Self.refused())
    // A login that is killed leaves its note.
    try fixture.leave(note, nil)
    #expect(try state() == (left > 0 ? .refused(Self.over) : .expired(Self.over)))
    try expectToken()
    #expect(fixture.clock.passed() - before < .seconds(1))
  }

  /// A login may hold the account's lock for minutes, so other processes do not wait for it.
  @Test(arguments: [true, false]) func commandsDoNotWaitForALogin(_ beginsMeanwhile: Bool) throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    fixture.clock.advance(.seconds(3570))
    let lock = try fixture.lock("ana")
    let note = Self.after(nil)
    if beginsMeanwhile {
      fixture.whileWaiting([.store(note.encoded, as: RecordIdentifier(.pending, of: AccountID("example", "ana")))])
    } else {
      try fixture.leave(note, nil)
    }
    #expect(try fixture.fresh().credential.accessToken == Secret("token-1"))
    try fixture.leave(beginsMeanwhile ? nil : note, nil)
    fixture.clock.advance(.seconds(30))
    #expect(throws: CredentialError.loginNeeded(provider: "example", account: "ana", .loginUnderWay)) {
      try fixture.fresh()
    }
    #expect(fixture.clock.passed() < .seconds(3602))
    _ = consume lock
    // The login was killed, and the refresh token is still valid.
    fixture.http.then(.token("token-2"))
    #expect(try fixture.fresh().credential.accessToken == Secret("token-2"))
  }

  // MARK: The token's life

  private static func isUsable(_ credential: Credential, _ wish: RefreshPolicy = RefreshPolicy(), at now: Moment)
    -> Bool
  {
    AccountState(credential, for: wish, at: now) == .usable
  }

  /// A token with a lifetime below twice the margin is not refreshed at every call.
  @Test func aShortLifeHasAShorterMargin() {
    var credential = Fixture.credential()
    credential.expiresAt = Fixture.now + .seconds(40)
    #expect(Self.isUsable(credential, at: Fixture.now + .seconds(19)))
    #expect(!Self.isUsable(credential, at: Fixture.now + .seconds(20)))
    // Also with a margin that is as long as the life.
    credential.expiresAt = Fixture.now + .seconds(30)
    credential.margin = .seconds(30)
    #expect(Self.isUsable(credential, at: Fixture.now + .seconds(14)))
    #expect(AccountState(credential, at: Fixture.now + .seconds(15)) == .expiring)
  }

  /// A preferred lifetime counts at most half of the token's lifetime.
  @Test func aPreferredLifetimeIsLimited() {
    let wish = RefreshPolicy(preferredLifetime: .seconds(300))
    var credential = Fixture.credential()
    #expect(Self.isUsable(credential, wish, at: Fixture.now + .seconds(3299)))
    #expect(!Self.isUsable(credential, wish, at: Fixture.now + .seconds(3300)))
    #expect(Self.isUsable(credential, at: Fixture.now + .seconds(3300)))
    credential.expiresAt = Fixture.now + .seconds(400)
    #expect(Self.isUsable(credential, wish, at: Fixture.now + .seconds(199)))
  }

  /// Numbers in an exported file cannot crash the program by overflow.
  @Test func hugeTimesDoNotOverflow() {
    for moment in [Moment(secondsSince1970: .max), Moment(secondsSince1970: .min)] {
      var credential = Fixture.credential()
      credential.expiresAt = moment
      credential.refreshTokenExpiresAt = moment
      credential.obtainedAt = Moment(secondsSince1970: moment > 0 ? .min : .max)
      #expect(AccountState(credential, at: Fixture.now) == (moment > 0 ? .usable : .expired(.expired)))
    }
  }

  // MARK: Clocks

  /// A token issued for an hour at `Fixture.now`, at various times of the clock.
  @Test(
    arguments: [
      (0, true), (3539, true), (3540, false), (86_400, false), (-60, true), (-61, false), (-86_400, false),
    ] as [(Int64, Bool)])
  func aClockThatIsSet(_ change: Int64, _ isUsable: Bool) {
    #expect(Self.isUsable(Fixture.credential(), at: Fixture.now + .seconds(change)) == isUsable)
    // If the clock was set back and the token cannot be refreshed, credmgr keeps using the token.
    let fixed = Fixture.credential(refresh: nil)
    #expect(Self.isUsable(fixed, at: Fixture.now + .seconds(change)) == (isUsable || change < 0))
  }

  /// The clock goes a day forward and back again: each change causes one refresh, however many calls follow.
  @Test func aClockThatMovesBackAndForth() {
    var credential = Fixture.credential()
    var refreshes = 0
    var now = Fixture.now
    for change in [86_400, -86_400, -86_400, 86_400] as [Int64] {
      now = now + .seconds(change)
      for _ in 0..<50 {
        if !Self.isUsable(credential, at: now) {
          refreshes += 1
          credential.obtainedAt = now
          credential.expiresAt = now + .seconds(3600)
        }
        now = now + .seconds(10)
      }
    }
    #expect(refreshes == 4)
  }
}
