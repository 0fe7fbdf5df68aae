import CredmgrCryptography
import CredmgrPlatform
import CredmgrPostgreSQL
import CredmgrStore
import CredmgrText

/// A machine's right to make the exchanges of an account.
///
/// The holder is a random number for each lease, so neither copies of a machine nor a server that was set back can
/// mistake one lease for another. No clock of a server decides how long it lasts: a machine takes it over when it has
/// seen the same holder for `time`, measured with its own clock. The holder measures from before its statement, so it
/// gives up earlier than anyone takes over.
final class Lease {
  /// Longer than an exchange: a request takes 30 s, no exchange begins after `askingTime`, and a provider can demand
  /// that the request is repeated.
  static let time = Duration.seconds(90)
  static let askingTime = Duration.seconds(25)

  let holder: [UInt8]
  private let since: MonotonicMoment
  var stored: TeamVault.Loaded?
  /// Whether the next note begins an exchange that uses up what was read.
  var isBeginning = false
  var isLost = false
  /// The revision of the note that this process wrote.
  var noteRevision: Int64?

  init(holder: [UInt8], since: MonotonicMoment, stored: TeamVault.Loaded) {
    self.holder = holder
    self.since = since
    self.stored = stored
  }

  func age(_ clock: any WallClock) -> Duration { clock.monotonic() - since }
}

extension TeamVault {
  func lease(of identifier: RecordIdentifier) -> Lease? { CellName(identifier).identifier.flatMap { leases[$0] } }

  package func stillHolds(_ account: AccountID) -> Bool {
    guard let lease = lease(of: RecordIdentifier(.credential, of: account)), !lease.isLost else { return false }
    return lease.age(place.clock) < Lease.askingTime
  }

  private func lockPlace(_ account: AccountID) -> LockPlace {
    LockPlace(path: lockFile, byte: Int64(hiddenName(of: account).prefix(15), radix: 16) ?? 0)
  }

  package func hiddenName(of account: AccountID) -> String { membership.hiddenName(of: account) }

  /// The processes of a machine queue at a lock of its own, so that they are one holder. A lease that says that this
  /// machine holds it belonged to a process that died.
  package func lock(
    _ account: AccountID, timeout: Duration, clock: any WallClock, waiting: (Duration) -> Bool
  ) throws(LockError) -> LockedAccount {
    let start = clock.monotonic()
    let local: FileLock?
    do throws(POSIXError) {
      local = try FileLock.acquire(lockPlace(account), timeout: timeout, clock: clock, onWait: waiting)
    } catch {
      switch error {
      case .timedOut: throw .timedOut
      case .interrupted: throw .interrupted
      default: throw .store(.file(error))
      }
    }
    guard let local else { throw .gaveUp }
    let held = HeldLease(local)
    try wait(for: account, timeout: timeout - (clock.monotonic() - start), clock: clock, waiting)
    held.vault = self
    held.identifier = RecordIdentifier(.credential, of: account)
    return LockedAccount(account, of: self, clock: clock, lock: held)
  }

  private func wait(
    for account: AccountID, timeout: Duration, clock: any WallClock, _ waiting: (Duration) -> Bool
  ) throws(LockError) {
    let name = CellName(RecordIdentifier(.credential, of: account))
    let start = clock.monotonic()
    var watch = Watch(folder + "/" + hiddenName(of: account) + ".lease", clock)
    let holder = place.random.bytes(16)
    // A statement that was not sent makes no holder.
    do throws(StoreError) { try server.connect() } catch { throw .store(error) }
    do throws(POSIXError) { try watch.add(holder) } catch { throw .store(.file(error)) }
    var pause = Duration.milliseconds(25)
    while true {
      let held: Loaded?
      do throws(StoreError) {
        let others = watch.ours + watch.ripe(at: clock.monotonic())
        guard let other = try takeLease(name, holder, from: others, clock: clock) else {
          watch.confirm(holder)
          return
        }
        held = other
      } catch {
        // The lease that this machine has waited for is part of an unfinished transaction, which the server ends.
        guard error == server.fault(Server.busy) else { throw .store(error) }
        held = nil
      }
      if case .cell(let stored)? = held, let holder = stored.holder { watch.see(holder, at: clock.monotonic()) }
      let waited = clock.monotonic() - start
      if waited >= timeout {
        watch.keep()
        throw .timedOut
      }
      do throws(POSIXError) { try clock.sleep(for: min(pause, timeout - waited)) } catch { throw .interrupted }
      pause = min(pause * 1.5, .milliseconds(500))
      // The caller looks at the account; it sees what this attempt has just read.
      view = held.map { View(cells: [name: $0], isSnapshot: false) }
      let goesOn = waiting(clock.monotonic() - start)
      view = nil
      if !goesOn {
        watch.keep()
        throw .gaveUp
      }
    }
  }

  /// Takes the lease if it is free or one of `others`; returns the cell if another machine holds it.
  private func takeLease(
    _ name: CellName, _ holder: [UInt8], from others: [[UInt8]], clock: any WallClock
  ) throws(StoreError) -> Loaded? {
    guard let identifier = name.identifier else { return nil }
    let names = [name] + [name.part].compactMap { $0 }
    for name in names { _ = try seenMark(of: name) }
    for _ in 0..<8 {
      let since = clock.monotonic()
      let lookups = names.map(keys.lookup)
      let rows = try server.query(
        Schema.lease, [.bytes(vault), .bytes(lookups[0]), .bytes(holder), .byteLists(others), .byteLists(lookups)])
      guard try accept(rows) else { continue }
      let byLookup = Dictionary(try cellRows(rows).map { ($0.lookup, $0) }) { first, _ in first }
      guard let row = byLookup[lookups[0]] else {
        try makeEmpty(name)
        continue
      }
      var cells = [name: try loaded(name, row)]
      for (name, lookup) in zip(names, lookups).dropFirst() { cells[name] = try loaded(name, byLookup[lookup]) }
      var loaded = compared(cells)[name] ?? .absent
      // The row may be newer than the directory in the same result.
      if case .faulty = loaded { loaded = try fetch([name])[name] ?? loaded }
      if rows.first(where: { $0.bytes(4) == lookups[0] })?.integer(8) != 1 { return loaded }
      leases[identifier] = Lease(holder: holder, since: since, stored: loaded)
      return nil
    }
    throw server.fault(.altered)
  }

  /// A lease needs a row.
  private func makeEmpty(_ name: CellName) throws(StoreError) {
    if let known = try seenMark(of: name), known.revision > 0 { throw server.fault(.setBack(name.identifier)) }
    let revision = max(lastRevision + 1, serverNow() ?? 0)
    let cell = Cell(name, roster: membership.roster.head)
    let sealed = try cryptography(cell.sealed(keys, vault: vault, revision: revision, random: place.random))
    let mark = Cell.mark(revision, sealed)
    let write = Write(
      name: name, cell: cell, old: 0, sealed: sealed, mark: mark, holder: [], endsLease: false)
    if case .unknown(let error) = try self.write([write], []) { throw error }
    lastRevision = revision
  }

  fileprivate func release(_ identifier: RecordIdentifier) {
    defer { saveSeen() }
    guard let lease = leases.removeValue(forKey: identifier), !lease.isLost else { return }
    _ = try? server.attempt(
      Schema.release, [.bytes(vault), .bytes(keys.lookup(.record(identifier))), .bytes(lease.holder)])
  }

  package func isLocked(_ account: AccountID) -> Bool {
    if (try? FileLock.isHeld(lockPlace(account))) == true { return true }
    let name = CellName(RecordIdentifier(.credential, of: account))
    guard case .cell(let stored)? = (try? cells([name]))?[name] else { return false }
    return stored.holder != nil
  }
}

/// A file with the holders of this machine's last leases of an account, and how long it has seen another one. Processes
/// that wait in turn add up their times. A lease of a process that died is recognized.
private struct Watch {
  private let path: String
  /// Several if processes died before their statement arrived.
  private(set) var ours: [[UInt8]] = []
  private var other: [UInt8] = []
  private var since = MonotonicMoment(sinceBoot: .zero)
  private let boot: [UInt8]

  private static let limit = 64

  init(_ path: String, _ clock: any WallClock) {
    self.path = path
    boot = (try? File.read("/proc/sys/kernel/random/boot_id", limit: 256)) ?? []
    guard let bytes = try? PreparedFile.read(path, limit: 4096) else { return }
    var fields = FieldReader(bytes)
    guard let boot = fields.list(), let other = fields.list(), let milliseconds = fields.number(),
      let ours = fields.items({ $0.list() })
    else { return }
    self.ours = ours
    let since = MonotonicMoment(sinceBoot: .milliseconds(milliseconds))
    // Another boot has another clock.
    guard boot == self.boot, since <= clock.monotonic() else { return }
    self.other = other
    self.since = since
  }

  mutating func see(_ holder: [UInt8], at now: MonotonicMoment) {
    if holder != other { (other, since) = (holder, now) }
  }

  /// The holder to take over from, if it was seen long enough.
  func ripe(at now: MonotonicMoment) -> [[UInt8]] { !other.isEmpty && now - since >= Lease.time ? [other] : [] }

  /// Names a holder before the statement that makes it one. Keeps the last that surely was one, because an answer may
  /// wait under it, however often the server could not be reached since. The first and the last whose statements were
  /// sent without an answer are the likeliest others.
  mutating func add(_ holder: [UInt8]) throws(POSIXError) {
    if ours.count == Self.limit { ours.remove(at: Self.limit / 2) }
    ours.insert(holder, at: 0)
    try store()
  }

  /// Notes that a holder has the lease, so no earlier one has it.
  mutating func confirm(_ holder: [UInt8]) {
    ours = [holder]
    keep()
  }

  func keep() { try? store() }

  /// After a power cut, the lease of a process that died is another machine's. That costs only time.
  private func store() throws(POSIXError) {
    var fields = FieldWriter()
    fields.append(boot)
    fields.append(other)
    fields.append(Int64((since - MonotonicMoment(sinceBoot: .zero)) / .milliseconds(1)))
    fields.append(Int64(ours.count))
    for holder in ours { fields.append(holder) }
    try PreparedFile.make(path, size: 2048).fill(fields.bytes, isForced: false)
  }
}

/// Ends the lease and then the lock of this machine.
private final class HeldLease {
  private let lock: FileLock
  var vault: TeamVault?
  var identifier: RecordIdentifier?

  init(_ lock: consuming FileLock) { self.lock = lock }

  deinit { if let identifier { vault?.release(identifier) } }
}
