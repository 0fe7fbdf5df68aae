import CredmgrCryptography
import Glibc
import CredmgrPlatform
import CredmgrSharedVault
import CredmgrStore
import Synchronization
import Testing
import CredmgrText
import CredmgrVault

/// A place for accounts; each `open` stands for another process.
struct Place: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let open: @Sendable () throws -> any AccountStore
}

/// A clock that advances only when a caller waits.
final class WaitingClock: WallClock {
  private let elapsed = Mutex(Duration.zero)
  private let onSleep: @Sendable () -> Void

  init(onSleep: @escaping @Sendable () -> Void = {}) { self.onSleep = onSleep }

  func now() -> Moment { 1_700_000_000 }
  func monotonic() -> MonotonicMoment { MonotonicMoment(sinceBoot: elapsed.withLock { $0 }) }
  func sleep(for time: Duration) {
    elapsed.withLock { $0 += time }
    onSleep()
  }
}

@Suite(.serialized) struct ConformanceTests {
  static let stores: [@Sendable () throws -> (Place, Folder?)] = [
    {
      let contents = MemoryStore.Contents()
      return (Place(testDescription: "in memory") { MemoryStore(contents) }, nil)
    },
    {
      let folder = try Folder()
      let path = folder.path
      return (
        Place(testDescription: "in a file") {
          try Vault.open(VaultLocation(directory: path), .readWrite, random: SystemRandomSource())
        }, folder
      )
    },
    {
      let machine = try Machine()
      try TeamVaults().create(
        "team", at: TestServer.shared.get().pooledAddress, password: nil, member: "m", in: machine.place)
      return (Place(testDescription: "in a database, through a pooler") { try machine.open() }, nil)
    },
  ]

  /// A directory that is removed with the value.
  final class Folder: Sendable {
    let path: String

    init() throws {
      path = "/tmp/credmgr-store-" + Hexadecimal.encode(SystemRandomSource().bytes(8))
      try #require(unsafe mkdir(path, 0o700) == 0)
    }

    deinit {
      for name in (try? File.names(in: path)) ?? [] { unsafe unlink(path + "/" + name) }
      unsafe rmdir(path)
    }
  }

  static let ana = AccountID("example", "ana")
  static let credential = RecordIdentifier(.credential, of: ana)
  static let pending = RecordIdentifier(.pending, of: ana)

  private func each(_ number: Int, _ body: (Place) throws -> Void) throws {
    let (place, folder) = try Self.stores[number]()
    try withExtendedLifetime(folder) { try body(place) }
  }

  private func lock(
    _ store: any AccountStore, clock: any WallClock = WaitingClock(), timeout: Duration = .zero,
    waiting: (Duration) -> Bool = { _ in true }
  ) throws(LockError) -> LockedAccount { try store.lock(Self.ana, timeout: timeout, clock: clock, waiting: waiting) }

  // MARK: Records

  @Test(arguments: 0..<Self.stores.count) func readsStoredRecords(_ number: Int) throws {
    try each(number) { place in
      let store = try place.open()
      #expect(try store.record(Self.credential) == nil)
      let first = try store.apply([.store(Secret("one"), as: Self.credential)])
      let second = try store.apply([.store(Secret("two"), as: Self.credential)])
      #expect(second > first)
      let read = try #require(try place.open().record(Self.credential))
      #expect((read.payload, read.revision) == (Secret("two"), second))
      try store.apply([.remove(Self.credential)])
      #expect(try place.open().record(Self.credential) == nil)
      let third = try store.apply([.store(Secret("three"), as: Self.credential)])
      #expect(third > second, "a revision comes but once")
      #expect(try store.apply([.store(Secret("note"), as: Self.pending)]) > third, "the later of two records")
      #expect(try place.open().verify() == [])
    }
  }

  @Test(arguments: 0..<Self.stores.count) func kindsAndProviders(_ number: Int) throws {
    try each(number) { place in
      let store = try place.open()
      let names = [("b", "x"), ("a", "z"), ("a", "y")]
      try store.apply(names.map { .store(Secret($0.1), as: RecordIdentifier(.credential, of: AccountID($0.0, $0.1))) })
      try store.apply([.store(Secret("s"), as: RecordIdentifier(.selection, of: AccountID("a")))])
      #expect(try store.records(.credential, provider: nil).map(\.identifier.account) == ["y", "z", "x"])
      #expect(try store.records(.credential, provider: "a").map(\.identifier.account) == ["y", "z"])
      #expect(try store.records(.pending, provider: nil).isEmpty)
      #expect(try store.unreadable(.credential, provider: nil, without: []).isEmpty)
      #expect(try store.isLost(Self.credential) == false)
      // Unicode equates these two encodings of "é", but they are different names.
      let (one, two) = (AccountID("a", "\u{E9}"), AccountID("a", "e\u{301}"))
      try store.apply([.store(Secret("1"), as: RecordIdentifier(.credential, of: one))])
      #expect(try store.record(RecordIdentifier(.credential, of: two)) == nil)
    }
  }

  @Test(arguments: 0..<Self.stores.count) func allOrNothing(_ number: Int) throws {
    try each(number) { place in
      let store = try place.open()
      let revision = try store.apply([.store(Secret("one"), as: Self.credential, if: .absent)])
      let other = RecordIdentifier(.credential, of: AccountID("example", "ben"))
      let conflict = StoreError.conflict(Self.credential, actual: revision)
      let failing: [(Change, StoreError)] = [
        (.store(Secret("two"), as: Self.credential, if: .absent), conflict),
        (.store(Secret("two"), as: Self.credential, if: .revision(revision + 1)), conflict),
        (.remove(Self.credential, if: .revision(revision + 1)), conflict),
        (.require(Self.pending), .conflict(Self.pending, actual: nil)),
        (.remove(Self.pending, if: .revision(1)), .conflict(Self.pending, actual: nil)),
      ]
      for (change, error) in failing {
        #expect(throws: error) { try store.apply([.store(Secret("x"), as: other), change, .note(Secret("event"))]) }
      }
      #expect(try store.record(other) == nil)
      #expect(try store.record(Self.credential)?.payload == Secret("one"))
      #expect(try store.events().events.isEmpty)
      try store.apply([.require(Self.credential), .store(Secret("2"), as: Self.credential, if: .revision(revision))])
      #expect(try store.record(Self.credential)?.payload == Secret("2"))
      try store.apply([.remove(other), .remove(Self.credential), .store(Secret("3"), as: Self.credential)])
      #expect(try store.record(Self.credential)?.payload == Secret("3"))
    }
  }

  /// Another process's change becomes visible after the snapshot. A store may block that process or let it continue.
  @Test(arguments: 0..<Self.stores.count) func aSnapshotIsOneMoment(_ number: Int) async throws {
    struct Unusual: Error {}
    let (place, folder) = try Self.stores[number]()
    let store = try place.open()
    try store.apply([.store(Secret("one"), as: Self.credential), .store(Secret("one"), as: Self.pending)])
    var writer: Task<Void, any Error>?
    let read = try store.snapshot { () throws(StoreError) -> [Secret?] in
      let first = try store.record(Self.credential)?.payload
      writer = Task.detached { try place.open().apply([.store(Secret("two"), as: Self.pending)]) }
      return [first, try store.record(Self.pending)?.payload]
    }.get()
    #expect(read == [Secret("one"), Secret("one")])
    try await writer?.value
    #expect(try store.record(Self.pending)?.payload == Secret("two"))
    #expect(throws: Unusual.self) { try store.snapshot { () throws(Unusual) in throw Unusual() }.get() }
    try store.check([Self.credential])
    withExtendedLifetime(folder) {}
  }

  // MARK: Locks

  @Test(arguments: 0..<Self.stores.count) func hiddenNames(_ number: Int) throws {
    try each(number) { place in
      let name = try place.open().hiddenName(of: Self.ana)
      #expect(name.utf8.count == 32)
      #expect(try place.open().hiddenName(of: Self.ana) == name)
      #expect(try place.open().hiddenName(of: AccountID("example", "ben")) != name)
    }
  }

  @Test(arguments: 0..<Self.stores.count) func onlyOneHolderHasTheLock(_ number: Int) throws {
    try each(number) { place in
      let (store, other) = (try place.open(), try place.open())
      do {
        let lock = try lock(store)
        #expect(other.isLocked(Self.ana))
        #expect(!other.isLocked(AccountID("example", "ben")) && !other.isLocked(AccountID("example")))
        #expect(throws: LockError.timedOut) { _ = try self.lock(other, timeout: .seconds(2)) }
        var asked = 0
        #expect(throws: LockError.gaveUp) {
          _ = try self.lock(other, timeout: .seconds(60)) { _ in
            asked += 1
            return asked < 3
          }
        }
        #expect(asked == 3)
        _ = consume lock
      }
      #expect(!other.isLocked(Self.ana))
      _ = try lock(other)
    }
  }

  @Test(arguments: 0..<Self.stores.count) func waitingEndsWithTheLock(_ number: Int) throws {
    try each(number) { place in
      let held = Mutex(Optional(try lock(place.open())))
      let clock = WaitingClock { held.withLock { $0 = nil } }
      let lock = try lock(place.open(), clock: clock, timeout: .seconds(60))
      #expect(lock.id == Self.ana)
    }
  }

  // MARK: Exchanges

  /// An account and an exchange in progress; the tests check the results from another process.
  private func exchange(
    _ number: Int, keepsAnswer: Bool = true, note: Secret? = nil, clock: any WallClock = WaitingClock(),
    _ body: (consuming PendingExchange, any AccountStore) throws -> Void
  ) throws {
    try each(number) { place in
      let (store, other) = (try place.open(), try place.open())
      try store.apply([.store(Secret("old"), as: Self.credential)])
      if let note { try store.apply([.store(note, as: Self.pending)]) }
      let locked = try lock(store, clock: clock)
      let pending = try locked.begin(noting: Secret("under way"), keepsAnswer: keepsAnswer)
      #expect(try other.record(Self.pending)?.payload == Secret("under way"))
      try body(pending, other)
    }
  }

  private static let replacesOld: @Sendable (Secret) -> Bool = { $0 == Secret("old") }

  @Test(arguments: 0..<Self.stores.count) func storesAResponse(_ number: Int) throws {
    try exchange(number) { pending, other in
      pending.keep(Secret("new"), isForced: false)
      #expect(other.answer(for: Self.ana) == Secret("new"))
      let event = Change.note(Secret("renewed"))
      let revision = try pending.finish(.renewed(Secret("new"), replacing: Self.replacesOld, [event]))
      let record = try #require(try other.record(Self.credential))
      #expect(record.payload == Secret("new") && record.revision == revision)
      #expect(try other.record(Self.pending) == nil)
      #expect(other.answer(for: Self.ana) == nil)
      #expect(try other.events().events == [Secret("renewed")])
    }
  }

  @Test(arguments: 0..<Self.stores.count) func lateResponse(_ number: Int) throws {
    try exchange(number) { pending, other in
      pending.keep(Secret("new"), isForced: false)
      try other.apply([.store(Secret("theirs"), as: Self.credential)])
      let revision = try pending.finish(.renewed(Secret("new"), replacing: Self.replacesOld, []))
      #expect(revision == nil)
      #expect(try other.record(Self.credential)?.payload == Secret("theirs"))
      #expect(try other.record(Self.pending) == nil)
      #expect(other.answer(for: Self.ana) == nil)
    }
  }

  /// The record was changed, but the exchange still started from it.
  @Test(arguments: 0..<Self.stores.count) func responseForAChangedRecord(_ number: Int) throws {
    try exchange(number) { pending, other in
      try other.apply([.store(Secret("old, rejected"), as: Self.credential)])
      let revision = try pending.finish(.renewed(Secret("new"), replacing: { _ in true }, []))
      #expect(revision != nil)
      #expect(try other.record(Self.credential)?.payload == Secret("new"))
    }
  }

  @Test(arguments: 0..<Self.stores.count) func responseForARemovedAccount(_ number: Int) throws {
    try exchange(number) { pending, other in
      try other.apply([.remove(Self.credential)])
      do throws(CommitError) {
        try pending.finish(.renewed(Secret("new"), replacing: Self.replacesOld, []))
        Issue.record("it came back")
      } catch {
        #expect(error.reason == .conflict(Self.credential, actual: nil))
        #expect(!error.isKept)
      }
      #expect(try other.record(Self.credential) == nil)
      #expect(try other.record(Self.pending) == nil)
    }
  }

  @Test(arguments: 0..<Self.stores.count) func changesWithAResponse(_ number: Int) throws {
    let ben = RecordIdentifier(.credential, of: AccountID("example", "ben"))
    try exchange(number) { pending, other in
      pending.keep(Secret("token"), isForced: true)
      try pending.finish(.committed([.require(Self.credential), .store(Secret("token"), as: ben)]))
      #expect(try other.record(ben)?.payload == Secret("token"))
      #expect(try other.record(Self.pending) == nil)
      #expect(other.answer(for: Self.ana) == nil)
    }
    try exchange(number) { pending, other in
      let stale = Change.store(Secret("token"), as: Self.credential, if: .absent)
      try pending.finish(.committed([stale]) { _ in .retry([.store(Secret("token"), as: ben)]) })
      #expect(try other.record(ben)?.payload == Secret("token"))
      #expect(other.answer(for: Self.ana) == nil)
    }
    try exchange(number) { pending, other in
      pending.keep(Secret("token"), isForced: true)
      do throws(CommitError) {
        try pending.finish(.committed([.store(Secret("token"), as: Self.credential, if: .absent)]) { _ in .keep })
        Issue.record("a precondition that does not hold")
      } catch {
        #expect(error.isKept)
      }
      #expect(other.answer(for: Self.ana) != nil)
      other.removeAnswer(for: Self.ana)
    }
    try exchange(number) { pending, other in
      do throws(CommitError) {
        try pending.finish(.committed([.store(Secret("token"), as: Self.credential, if: .absent)]))
        Issue.record("a precondition that does not hold")
      } catch {
        #expect(!error.isKept)
      }
      let note = try other.record(Self.pending)
      #expect(note == nil)
    }
  }

  @Test(arguments: 0..<Self.stores.count, [nil, "before"]) func exchangeWithoutAResponse(
    _ number: Int, _ before: String?
  ) throws {
    try exchange(number, note: before.map { Secret($0) }) { pending, other in
      #expect(pending.before == before.map { Secret($0) })
      try pending.finish(.ended(noting: nil))
      #expect(try other.record(Self.pending)?.payload == before.map { Secret($0) })
      #expect(other.answer(for: Self.ana) == nil)
    }
    try exchange(number, note: before.map { Secret($0) }) { pending, other in
      try pending.finish(.ended(noting: Secret("refused")))
      #expect(try other.record(Self.pending)?.payload == Secret("refused"))
    }
  }

  /// An exchange without its own response leaves a waiting one in place until that is committed.
  @Test(arguments: 0..<Self.stores.count) func earlierResponse(_ number: Int) throws {
    for isCommitted in [false, true] {
      try each(number) { place in
        let store = try place.open()
        try store.makeRoom(for: Self.ana).fill(Secret("waits"), isForced: true)
        let locked = try lock(store)
        let pending = try locked.begin(noting: Secret("revoking"), keepsAnswer: false)
        try pending.finish(isCommitted ? .committed([]) : .ended(noting: nil))
        #expect(try place.open().answer(for: Self.ana) == (isCommitted ? nil : Secret("waits")))
      }
    }
  }

  /// The process dies before, during or after storing the response.
  @Test(arguments: 0..<Self.stores.count, [nil, "new"]) func crashDuringAnExchange(_ number: Int, _ answer: String?)
    throws
  {
    try each(number) { place in
      do {
        let store = try place.open()
        try store.apply([.store(Secret("old"), as: Self.credential)])
        let locked = try lock(store)
        let pending = try locked.begin(noting: Secret("under way"))
        if let answer { pending.keep(Secret(answer), isForced: false) }
        try pending.finish(.unfinished)
      }
      let next = try place.open()
      #expect(!next.isLocked(Self.ana))
      #expect(try next.record(Self.pending)?.payload == Secret("under way"))
      #expect(next.answer(for: Self.ana) == answer.map { Secret($0) })
      guard let kept = next.answer(for: Self.ana) else { return }
      let locked = try lock(next)
      try locked.resume().finish(.renewed(kept, replacing: Self.replacesOld, []))
      #expect(try next.record(Self.credential)?.payload == Secret("new"))
      #expect(try next.record(Self.pending) == nil)
      #expect(next.answer(for: Self.ana) == nil)
    }
  }

  /// The disk is full. The commit may find space again; otherwise the loss is reported.
  @Test(arguments: [false, true]) func responseThatCannotBeStored(_ isCommitted: Bool) throws {
    let contents = MemoryStore.Contents()
    let store = MemoryStore(contents)
    let locked = try lock(store)
    let pending = try locked.begin(noting: Secret("under way"))
    contents.setFull(true)
    pending.keep(Secret("token"), isForced: true)
    if isCommitted { contents.setFull(false) }
    do throws(CommitError) {
      try pending.finish(.committed([.store(Secret("token"), as: Self.credential)]))
      #expect(isCommitted)
    } catch {
      #expect(!isCommitted && !error.isKept && error.reason == .full(path: ""))
    }
    #expect(store.record(Self.credential)?.payload == (isCommitted ? Secret("token") : nil))
    #expect(store.record(Self.pending)?.payload == (isCommitted ? nil : Secret("under way")))
    #expect(store.answer(for: Self.ana) == nil)
  }

  /// A new exchange replaces a waiting response.
  @Test(arguments: 0..<Self.stores.count) func newSpaceIsEmpty(_ number: Int) throws {
    try each(number) { place in
      let store = try place.open()
      try store.makeRoom(for: Self.ana).fill(Secret("waits"), isForced: false)
      let locked = try lock(store)
      try locked.begin(noting: Secret("under way")).finish(.unfinished)
      #expect(store.answer(for: Self.ana) == nil)
      #expect(store.answer(for: AccountID("example")) == nil)
    }
  }

  // MARK: The log

  @Test(arguments: 0..<Self.stores.count) func theLog(_ number: Int) throws {
    try each(number) { place in
      let (store, other) = (try place.open(), try place.open())
      try store.apply([.note(Secret("a change"))])
      try other.note(Secret("a hand-out"))
      try store.apply([.note(Secret("another change"))])
      let log = try place.open().events()
      #expect(Set(log.events.map { $0.reveal() }) == ["a change", "a hand-out", "another change"])
      #expect(log.lost == 0)
    }
  }
}
