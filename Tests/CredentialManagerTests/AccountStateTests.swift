import Cryptography
import HTTP
import OAuth
import Store
import Testing
import Text

@testable import CredentialManager

/// The states of an account, and what leads from one to another (docs/architecture.md).
struct AccountStateTests {
  typealias Reason = CredentialError.LoginReason

  /// A token that was obtained an hour ago, with a margin of a minute.
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

  /// What is left of the token, whether it was refused, its refresh token, what was noted, and who wants it.
  struct Row: Sendable {
    let left: Int64?
    var isRejected = false
    var refresh: String? = "refresh-1"
    var note: ExchangeNote?
    var answerWaits = false
    var refreshes = true
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
    // As long as the provider says.
    Row(nil, .usable), Row(61, .usable), Row(60, .expiring), Row(1, .expiring), Row(0, .refreshable),
    Row(1000, .refreshable) { $0.isRejected = true },
    // Nothing to refresh it with, here or in the descriptor.
    Row(61, .usable) { $0.refresh = nil }, Row(60, .ending) { $0.refresh = nil },
    Row(0, .expired(.expired)) { $0.refresh = nil }, Row(60, .ending) { $0.refreshes = false },
    Row(0, .expired(.expired)) { $0.refreshes = false },
    Row(1000, .expired(.rejected)) { ($0.refresh, $0.isRejected) = (nil, true) },
    // The provider refused for good; another refresh token is another question, and so is a bare status.
    Row(nil, .refused(over)) { $0.note = refused() }, Row(1000, .refused(over)) { $0.note = refused() },
    Row(30, .refused(over)) { $0.note = refused() }, Row(0, .expired(over)) { $0.note = refused() },
    Row(1000, .expired(over)) { ($0.note, $0.isRejected) = (refused(), true) },
    Row(0, .refreshable) { $0.note = refused("refresh-0") }, Row(0, .refreshable) { $0.note = refused(nil) },
    Row(0, .refreshable) { ($0.note, $0.wish) = (refused(), RefreshPolicy(asksAgain: true)) },
    // Somebody wants more.
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
    // What waits beside the vault goes before everything else.
    Row(1000, .refreshable) { $0.answerWaits = true },
    Row(0, .refreshable) { ($0.answerWaits, $0.note) = (true, refused()) },
    // A login that is under way changes nothing for a token that is good.
    Row(0, .loggingIn(.expired)) { ($0.isLoggingIn, $0.refresh) = (true, nil) },
    Row(0, .refreshable) { $0.isLoggingIn = true }, Row(61, .usable) { $0.isLoggingIn = true },
  ]

  @Test func everyState() {
    for (number, row) in Self.table.enumerated() {
      let credential = Self.credential(left: row.left, refresh: row.refresh, isRejected: row.isRejected)
      let state = AccountState(
        credential, note: row.note, answerWaits: row.answerWaits, refreshes: row.refreshes,
        isLoggingIn: row.isLoggingIn, for: row.wish, at: Fixture.now)
      #expect(state == row.state, "row \(number)")
    }
  }

  // MARK: Transitions

  private static let refusal = HTTPResponse.json(
    "{\"error\":\"invalid_grant\",\"error_description\":\"over\"}", status: 400)

  private enum Event {
    case time(Int64)
    case rejection
    case handOut(HTTPResponse?, isGiven: Bool)  // The provider's answer to the refresh, if there is one.
    case login
  }

  /// What happens to an account with a token for an hour, one after the other, and the state after each.
  private static let ways: [[(Event, AccountState)]] = [
    [(.time(3540), .expiring), (.handOut(.token("2"), isGiven: true), .usable)],
    [(.time(3540), .expiring), (.time(60), .refreshable), (.handOut(.token("2"), isGiven: true), .usable)],
    [(.time(3540), .expiring), (.handOut(HTTPResponse(status: 503), isGiven: true), .expiring)],
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
  ]

  @Test(arguments: [true, false], ways.indices) func everyTransition(_ hasIdentity: Bool, _ way: Int) throws {
    let text = hasIdentity ? Fixture.endpoints : Fixture.endpoints.replacing("account: login", with: "account: []")
    let name = hasIdentity ? "ana" : "default"
    let fixture = try Fixture.added(
      text, credential: Fixture.credential(identity: hasIdentity ? "ana" : nil), account: name)
    for (step, (event, state)) in Self.ways[way].enumerated() {
      switch event {
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
        // The plain command is enough, and it opens one page.
        #expect(try fixture.login().name == name)
        #expect(fixture.user.opened.count == 1)
      }
      let accounts = try fixture.another().accounts()
      let account = try accounts.resolve(nil, provider: "example")
      #expect(try accounts.states(of: [account], at: fixture.clock.now()) == [state], "step \(step)")
      // Whoever asks finds out the same.
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

  // MARK: The token's life

  private static func isUsable(_ credential: Credential, _ wish: RefreshPolicy = RefreshPolicy(), at now: Moment)
    -> Bool
  {
    AccountState(credential, for: wish, at: now) == .usable
  }

  /// A token that lives for less than twice the margin is not refreshed at every call.
  @Test func aShortLifeHasAShorterMargin() {
    var credential = Fixture.credential()
    credential.expiresAt = Fixture.now + .seconds(40)
    #expect(Self.isUsable(credential, at: Fixture.now + .seconds(19)))
    #expect(!Self.isUsable(credential, at: Fixture.now + .seconds(20)))
  }

  /// What somebody wishes for beyond the margin counts for no more than half of the token's life.
  @Test func comfort() {
    let wish = RefreshPolicy(preferredLifetime: .seconds(300))
    var credential = Fixture.credential()
    #expect(Self.isUsable(credential, wish, at: Fixture.now + .seconds(3299)))
    #expect(!Self.isUsable(credential, wish, at: Fixture.now + .seconds(3300)))
    #expect(Self.isUsable(credential, at: Fixture.now + .seconds(3300)))
    credential.expiresAt = Fixture.now + .seconds(400)
    #expect(Self.isUsable(credential, wish, at: Fixture.now + .seconds(199)))
  }

  /// No figure of an exported file makes the program die of arithmetic.
  @Test func momentsBeyondAllReckoning() {
    for moment in [Moment(secondsSince1970: .max), Moment(secondsSince1970: .min)] {
      var credential = Fixture.credential()
      credential.expiresAt = moment
      credential.refreshTokenExpiresAt = moment
      credential.obtainedAt = Moment(secondsSince1970: moment > 0 ? .min : .max)
      #expect(AccountState(credential, at: Fixture.now) == (moment > 0 ? .usable : .expired(.expired)))
    }
  }

  // MARK: Clocks

  /// A token that was obtained at `Fixture.now` for an hour, at other times of the clock.
  @Test(
    arguments: [
      (0, true), (3539, true), (3540, false), (86_400, false), (-60, true), (-61, false), (-86_400, false),
    ] as [(Int64, Bool)])
  func aClockThatIsSet(_ change: Int64, _ isUsable: Bool) {
    #expect(Self.isUsable(Fixture.credential(), at: Fixture.now + .seconds(change)) == isUsable)
    // Where nothing can be done about a clock that was set back, the token is better than none.
    let fixed = Fixture.credential(refresh: nil)
    #expect(Self.isUsable(fixed, at: Fixture.now + .seconds(change)) == (isUsable || change < 0))
  }

  /// Forward by a day, and back again: one refresh each time, whoever calls however often.
  @Test func aClockThatGoesToAndFro() {
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
