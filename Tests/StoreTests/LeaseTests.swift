import CredmgrCryptography
import CredmgrPlatform
import CredmgrPostgreSQL
import CredmgrStore
import CredmgrText
import Glibc
import Synchronization
import Testing

@testable import CredmgrSharedVault

private let ana = AccountID("example", "ana")
private let credential = RecordIdentifier(.credential, of: ana)
private let pending = RecordIdentifier(.pending, of: ana)
private let replacesOld: @Sendable (Secret) -> Bool = { $0 == Secret("old") }

/// Exchanges of two machines, each with its own clock.
@Suite struct LeaseTests {
  private let team: Team
  private var clocks: [WaitingClock] { team.machines.map(\.clock) }

  init() throws {
    team = try Team(2)
    try team.machines[0].open().apply([.store(Secret("old"), as: credential)])
  }

  private func lock(
    _ vault: TeamVault, _ number: Int, timeout: Duration = .zero, waiting: (Duration) -> Bool = { _ in true }
  ) throws(LockError) -> LockedAccount {
    try vault.lock(ana, timeout: timeout, clock: clocks[number], waiting: waiting)
  }

  @Test func oneMachineHoldsTheLease() throws {
    let (one, two) = (try team.machines[0].open(), try team.machines[1].open())
    do {
      let held = try lock(one, 0)
      #expect(two.isLocked(ana) && !two.isLocked(AccountID("example", "ben")))
      #expect(throws: LockError.timedOut) { _ = try self.lock(two, 1, timeout: .seconds(20)) }
      // While it waits, a caller looks at the account without a further statement.
      let count = two.server.statementCount
      var looks = 0
      #expect(throws: LockError.gaveUp) {
        _ = try self.lock(two, 1, timeout: .seconds(20)) { _ in
          looks += (try? two.record(credential)) != nil ? 1 : 0
          return looks < 2
        }
      }
      #expect(looks == 2 && two.server.statementCount == count + 2)
      _ = consume held
    }
    #expect(!two.isLocked(ana))
    _ = try lock(two, 1)
  }

  /// The record is in the memory of the holder, and another machine removes it.
  @Test func aRequiredRecordIsComparedInTheDatabase() throws {
    let (one, two) = (try team.machines[0].open(), try team.machines[1].open())
    let held = try lock(one, 0)
    try two.apply([.remove(credential)])
    let ben = RecordIdentifier(.credential, of: AccountID("example", "ben"))
    #expect(throws: StoreError.conflict(credential, actual: nil)) {
      try one.apply([.require(credential), .store(Secret("x"), as: ben)])
    }
    #expect(try two.record(ben) == nil)
    _ = consume held
  }

  /// The holder finishes while the other waits, which then sees the new token.
  @Test func waitingEndsWithTheLease() throws {
    let (one, two) = (try team.machines[0].open(), try team.machines[1].open())
    let held = Mutex(Optional(try lock(one, 0)))
    let second = try lock(two, 1, timeout: .seconds(60)) { _ in
      held.withLock { locked in
        if let locked = locked.take() {
          _ = try? locked.begin(noting: Secret("n")).finish(.renewed(Secret("new"), replacing: replacesOld, []))
        }
      }
      return true
    }
    #expect(try two.record(credential)?.payload == Secret("new"))
    #expect(second.id == ana)
  }

  /// A process dies with the lease. Its machine continues immediately, another one after the documented time.
  @Test func deadHolders() throws {
    func die() throws {
      let vault = try team.machines[0].open()
      let locked = try lock(vault, 0)
      try locked.begin(noting: Secret("under way")).finish(.unfinished)
      // Without a connection, nothing ends the lease.
      vault.leases = [:]
      _ = consume locked
    }
    try die()
    let two = try team.machines[1].open()
    #expect(throws: LockError.timedOut) { _ = try self.lock(two, 1, timeout: .seconds(60)) }
    // The next process of the machine knows how long the first one waited.
    let start = clocks[1].monotonic()
    do {
      let locked = try lock(team.machines[1].open(), 1, timeout: .seconds(60))
      #expect(clocks[1].monotonic() - start < Lease.time - .seconds(59))
      #expect(locked.id == ana)
      _ = consume locked
    }
    try die()
    let again = try team.machines[0].open()
    _ = try lock(again, 0)
    #expect(try again.record(pending)?.payload == Secret("under way"))
  }

  /// A holder that was cut off comes back after another machine took over.
  @Test func overtakenHolders() throws {
    let (one, two) = (try team.machines[0].open(), try team.machines[1].open())
    let slow = try lock(one, 0)
    #expect(one.stillHolds(ana))
    let fast = try lock(two, 1, timeout: .seconds(200))
    let exchange = try fast.begin(noting: Secret("of two"))
    // It begins no exchange with what it read.
    #expect(throws: ServerFault.overtaken(ana).ofTeam) {
      _ = try slow.begin(noting: Secret("of one")).finish(.unfinished)
    }
    clocks[0].sleep(for: .seconds(60))
    #expect(!one.stillHolds(ana))
    #expect(try two.record(pending)?.payload == Secret("of two"))
    try exchange.finish(.renewed(Secret("new"), replacing: replacesOld, []))
    #expect(try one.record(credential)?.payload == Secret("new"))
    _ = consume slow
    _ = consume fast
  }

  /// An answer that comes late is stored if the account is still as it was, and otherwise the newer one stays.
  @Test(arguments: [false, true]) func lateAnswers(_ otherIsFaster: Bool) throws {
    let (one, two) = (try team.machines[0].open(), try team.machines[1].open())
    let slow = try lock(one, 0)
    let late = try slow.begin(noting: Secret("of one"))
    let fast = try lock(two, 1, timeout: .seconds(200))
    let exchange = try fast.begin(noting: Secret("of two"))
    if otherIsFaster {
      #expect(try exchange.finish(.renewed(Secret("of two"), replacing: replacesOld, [])) != nil)
      #expect(try late.finish(.renewed(Secret("of one"), replacing: replacesOld, [])) == nil)
    } else {
      #expect(try late.finish(.renewed(Secret("of one"), replacing: replacesOld, [])) != nil)
      // The note of the other machine stays.
      #expect(try team.machines[0].open().record(pending)?.payload == Secret("of two"))
      #expect(try exchange.finish(.renewed(Secret("of two"), replacing: replacesOld, [])) == nil)
    }
    let stored = try team.machines[0].open().record(credential)?.payload
    #expect(stored == Secret(otherIsFaster ? "of two" : "of one"))
    #expect(try team.machines[0].open().record(pending) == nil)
    _ = consume slow
    _ = consume fast
  }

  /// The key changes in the middle of an exchange, whose answer is stored with the new key.
  @Test func rotationDuringAnExchange() throws {
    let vault = try team.machines[1].open()
    do {
      let locked = try lock(vault, 1)
      let exchange = try locked.begin(noting: Secret("under way"))
      try team.machines[0].open().rotate()
      exchange.keep(Secret("new"), isForced: false)
      #expect(vault.answer(for: ana) == Secret("new"))
      #expect(try exchange.finish(.renewed(Secret("new"), replacing: replacesOld, [.note(Secret("e"))])) != nil)
      _ = consume locked
    }
    let other = try team.machines[0].open()
    #expect(try other.record(credential)?.payload == Secret("new"))
    #expect(try other.record(pending) == nil && !other.isLocked(ana))
    #expect(try other.events().events == [Secret("e")])
    #expect(try other.verify() == [] && vault.verify() == [])
  }

  /// The server ends the connection during a statement. A trigger does so once, before the statement takes effect.
  @Test(arguments: ["BEFORE", "AFTER"]) func lostConnections(_ moment: String) throws {
    let own = try Team(2, database: try TestServer.shared.get().database())
    try own.machines[0].open().apply([.store(Secret("old"), as: credential)])
    let vault = try own.machines[1].open()
    let locked = try vault.lock(ana, timeout: .zero, clock: own.machines[1].clock) { _ in true }
    let exchange = try locked.begin(noting: Secret("under way"))
    try own.tamper("CREATE SEQUENCE once")
    try own.tamper(
      "CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN "
        + "IF nextval(''once'')=1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NEW; END'")
    try own.tamper(
      "CREATE TRIGGER leave \(moment) UPDATE ON credmgr.record FOR EACH ROW EXECUTE FUNCTION leave()")
    #expect(try exchange.finish(.renewed(Secret("new"), replacing: replacesOld, [])) != nil)
    #expect(try own.machines[0].open().record(credential)?.payload == Secret("new"))
    #expect(try own.machines[0].open().record(pending) == nil)
    _ = consume locked
  }

  /// The server cannot be reached when an answer is stored. The holder tries again as long as it surely has the lease.
  @Test(arguments: [true, false]) func serverThatIsAway(_ comesBack: Bool) throws {
    let server = try TestServer.shared.get()
    let (name, link) = (try server.database(), try server.folder() + "/link")
    try #require(unsafe symlink(server.path + "/socket", link) == 0)
    let pauses = Mutex(0)
    let machine = try Machine(
      clock: WaitingClock {
        let count = pauses.withLock { count in
          count += 1
          return count
        }
        if comesBack, count == 20 { _ = unsafe symlink(server.path + "/socket", link) }
      })
    try TeamVaults().create(
      "team", at: "postgresql://credmgr@/\(name)?host=\(link)", password: nil, member: "m", in: machine.place)
    let vault = try machine.open()
    try vault.apply([.store(Secret("old"), as: credential)])
    let locked = try vault.lock(ana, timeout: .zero, clock: machine.clock) { _ in true }
    let exchange = try locked.begin(noting: Secret("under way"))
    exchange.keep(Secret("new"), isForced: false)
    unsafe unlink(link)
    try server.connect().query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname=$1", [.text(name)], within: .seconds(60))
    if comesBack {
      #expect(try exchange.finish(.renewed(Secret("new"), replacing: replacesOld, [])) != nil)
      #expect(try machine.open().record(credential)?.payload == Secret("new"))
      #expect(vault.answer(for: ana) == nil)
      return
    }
    do throws(CommitError) {
      try exchange.finish(.renewed(Secret("new"), replacing: replacesOld, []))
      Issue.record("stored")
    } catch {
      #expect(error.isKept && pauses.withLock { $0 } > 100)
      if case .server(.unreachable, _) = error.reason {} else { Issue.record("\(error)") }
    }
    vault.leases = [:]
    _ = consume locked
    for _ in 0..<10 {
      #expect(throws: LockError.self) {
        _ = try machine.open().lock(ana, timeout: .zero, clock: machine.clock) { _ in true }
      }
    }
    // The next process of this machine stores the answer.
    try #require(unsafe symlink(server.path + "/socket", link) == 0)
    let next = try machine.open()
    let kept = try #require(next.answer(for: ana))
    let again = try next.lock(ana, timeout: .zero, clock: machine.clock) { _ in true }
    #expect(try again.resume().finish(.renewed(kept, replacing: replacesOld, [])) != nil)
    #expect(try machine.open().record(credential)?.payload == Secret("new"))
  }

  /// The statement took effect, but its outcome did not arrive.
  @Test func lostOutcomes() throws {
    let vault = try team.machines[1].open()
    var plan = Plan(vault, [.store(Secret("new"), as: credential)])
    try plan.read(isFresh: true)
    try plan.make()
    #expect(try !vault.hasCommitted(plan, after: .outOfMemory))
    guard case .done = try vault.write(plan.writes, []) else { throw TestServer.Failure(text: "beaten") }
    #expect(try vault.hasCommitted(plan, after: .outOfMemory))
    try team.machines[0].open().apply([.store(Secret("later"), as: credential)])
    #expect(try vault.hasCommitted(plan, after: .outOfMemory))
  }

  /// Another process of this machine sees a newer state while a process reads. The older one is not "set back".
  @Test func newerStateSeenMeanwhile() throws {
    let (slow, fast) = (try team.machines[1].open(), try team.machines[1].open())
    let name = CellName(credential)
    let loaded = try slow.withAllSeen { () throws(StoreError) -> TeamVault.Loaded in
      let rows = try slow.current { keys in (Schema.read, [.byteLists([keys.lookup(name)])]) }
      try team.machines[0].open().apply([.store(Secret("new"), as: credential)])
      _ = try fast.record(credential)
      return try slow.loaded(name, rows.first)
    }
    guard case .cell = loaded else { throw TestServer.Failure(text: "\(loaded)") }
    #expect(try team.machines[1].open().record(credential)?.payload == Secret("new"))
  }

  /// Machines that write the same records at the same time.
  @Test func simultaneousChanges() async throws {
    let machines = team.machines
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<4 {
        group.addTask {
          let vault = try machines[number % 2].open()
          for round in 0..<5 {
            try vault.apply([
              .store(Secret("\(number) \(round)"), as: credential),
              .store(Secret("x"), as: RecordIdentifier(.credential, of: AccountID("p\(number)", "a\(round)"))),
            ])
          }
        }
      }
      try await group.waitForAll()
    }
    let vault = try machines[0].open()
    #expect(try vault.records(.credential, provider: nil).count == 21)
    #expect(try vault.verify() == [])
  }
}
