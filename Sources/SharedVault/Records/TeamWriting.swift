import CredmgrCryptography
import CredmgrPlatform
import CredmgrPostgreSQL
import CredmgrStore

extension TeamVault {
  @discardableResult package func apply(_ changes: [Change]) throws(StoreError) -> Int64 {
    var isFresh = false
    for _ in 0..<Self.attemptLimit {
      var plan = Plan(self, changes)
      do throws(StoreError) {
        try plan.read(isFresh: isFresh)
        try plan.make()
      } catch .conflict where !isFresh {
        // The cells in memory may be older than those in the database.
        isFresh = true
        continue
      } catch {
        guard plan.commitsAnswer, mayRetry(error, plan.lease) else { throw error }
        isFresh = true
        continue
      }
      guard !plan.writes.isEmpty else {
        if let account = plan.endedExchange, answer(for: account) != nil { try settle(account) }
        return lastRevision
      }
      do throws(StoreError) {
        switch try write(plan.writes, plan.rows) {
        case .done:
          finish(plan)
          return plan.revision
        case .beaten: break
        case .unknown(let error):
          if try hasCommitted(plan, after: error) {
            if let account = plan.endedExchange { try settle(account) }
            finish(plan)
            return plan.revision
          }
          // Another attempt might wait as long, for example for the standby.
          if error == server.fault(.silent), !(plan.commitsAnswer && mayRetry(error, plan.lease)) { throw error }
        }
      } catch {
        guard plan.commitsAnswer, mayRetry(error, plan.lease) else { throw error }
      }
      isFresh = true
    }
    throw server.fault(.failed(detail: "other machines change the same records all the time"))
  }

  private static let attemptLimit = 200

  /// Whether to try again to commit a provider's answer: while the server cannot be reached, as long as the lease keeps
  /// other machines from using the old refresh token, and unless a signal asks the program to end.
  private func mayRetry(_ error: StoreError, _ lease: Lease?) -> Bool {
    guard let lease, case .server(let fault, _) = error, !Signals.isWaiting else { return false }
    switch fault {
    case .unreachable, .silent, .readOnly: break
    default: return false
    }
    guard lease.age(place.clock) < Lease.time - Server.patience else { return false }
    do { try place.clock.sleep(for: .milliseconds(500)) } catch { return false }
    return true
  }

  /// Waits until the standby has what a read has shown. A primary shows a commit after its restart even if the standby
  /// does not have it, and a failover would then lose an answer that this machine has deleted.
  private func settle(_ account: AccountID) throws(StoreError) {
    let name = CellName(RecordIdentifier(.credential, of: account))
    while true {
      switch try server.attempt(Schema.settle, [.bytes(vault), .bytes(keys.lookup(name))]) {
      case .done, .beaten: return
      case .unknown(let error):
        guard mayRetry(error, lease(of: RecordIdentifier(.pending, of: account))) else { throw error }
      }
    }
  }

  /// Whether a write took effect whose outcome is unknown.
  func hasCommitted(_ plan: Plan, after error: StoreError) throws(StoreError) -> Bool {
    var error = error
    while true {
      do throws(StoreError) {
        guard let first = plan.writes.first else { return false }
        guard case .cell(let stored)? = try fetch([first.name])[first.name] else { return false }
        if stored.mark == first.mark { return true }
        // A later state of the same cell names ours in its trail.
        return stored.cell.follows(first.mark, at: stored.mark) && stored.mark.revision > first.mark.revision
      } catch let failure {
        error = failure
      }
      guard mayRetry(error, plan.lease) else { throw error }
    }
  }

  /// One cell to write.
  struct Write {
    let name: CellName
    let cell: Cell
    /// The revision of the row that it replaces, or 0.
    let old: Int64
    let sealed: [UInt8]
    let mark: Cell.Mark
    /// The holder that the row must have; empty for any.
    let holder: [UInt8]
    let endsLease: Bool
  }

  /// `events` continue the chain of the first cell.
  func write(_ writes: [Write], _ events: [[UInt8]]) throws(StoreError) -> Server.Outcome {
    let log = writes.first?.cell.log ?? LogEnd()
    let kinds = writes.map { keys.groups(of: $0.name) }
    return try server.attempt(
      Schema.write(locksKey: writes.contains { $0.old == 0 }),
      [
        .bytes(vault), .integer(keys.epoch), .byteLists(writes.map { keys.lookup($0.name) }),
        .byteLists(kinds.map(\.kind)), .byteLists(kinds.map(\.grouping)), .integers(writes.map(\.old)),
        .integers(writes.map(\.mark.revision)), .byteLists(writes.map(\.sealed)), .byteLists(writes.map(\.holder)),
        .integers(writes.map { $0.endsLease ? 1 : 0 }), .byteLists(events), .integer(Int64(writes.count)),
        .bytes(log.chain), .integer(log.count - Int64(events.count)), .integer(log.trimmed),
      ])
  }

  private func finish(_ plan: Plan) {
    lastRevision = max(lastRevision, plan.revision)
    for write in plan.writes {
      remember(write.name, write.mark)
      guard let identifier = write.name.identifier, let lease = leases[identifier] else { continue }
      lease.isBeginning = false
      lease.noteRevision = write.cell.note?.revision ?? lease.noteRevision
      if write.endsLease {
        leases[identifier] = nil
      } else if !lease.isLost {
        lease.stored = .cell(Stored(cell: write.cell, mark: write.mark, holder: lease.holder))
      }
    }
    if leases.isEmpty { saveSeen() }
  }

  package func check(_ identifiers: [RecordIdentifier]) throws(StoreError) {
    for identifier in identifiers
    where max(identifier.provider.utf8.count, identifier.account.utf8.count) > Plan.nameLimit {
      throw .tooLarge(identifier)
    }
    // Taking a lease has just shown that the server accepts changes.
    let held = identifiers.filter { CellName($0).identifier.map { leases[$0] != nil } ?? false }
    if !held.isEmpty, held.count == identifiers.count { return }
    _ = try current { _ in (Schema.readState, []) }
    let rows = try server.query(
      "SELECT (current_setting('transaction_read_only')='on')::int,"
        + "(has_table_privilege('credmgr.record','INSERT') AND has_table_privilege('credmgr.record','UPDATE'))::int")
    if rows.first?.integer(0) == 1 { throw server.fault(.readOnly) }
    if rows.first?.integer(1) != 1 { throw server.fault(.noRights(detail: "permission denied for table record")) }
  }
}

/// The effect of changes on cells.
struct Plan {
  private let vault: TeamVault
  private let changes: [Change]
  private var cells: [CellName: TeamVault.Loaded] = [:]
  private var drafts: [CellName: Draft] = [:]
  private var order: [CellName] = []
  private var events: [Secret] = []
  /// The sealed events.
  private(set) var rows: [[UInt8]] = []
  private(set) var writes: [TeamVault.Write] = []
  private(set) var revision: Int64 = 0

  static let nameLimit = Int(UInt16.max)
  private static let payloadLimit = 16 << 20
  /// Anyone can write a greater one into a row.
  private static let latestRevision: Int64 = 1 << 60

  private struct Draft {
    var cell: Cell
    var isChanged = false
    var endsLease = false
    let hadRecord: Bool
  }

  init(_ vault: TeamVault, _ changes: [Change]) {
    self.vault = vault
    self.changes = changes
  }

  private static func target(_ change: Change) -> RecordIdentifier? {
    switch change {
    case .store(_, as: let identifier, if: _), .remove(let identifier, if: _), .require(let identifier): identifier
    case .note: nil
    }
  }

  /// The lease of the account whose note the changes end or begin.
  var lease: Lease? {
    for change in changes {
      if let identifier = Self.target(change), identifier.kind == .pending, let lease = vault.lease(of: identifier) {
        return lease
      }
    }
    return nil
  }

  /// The account whose note the changes remove.
  var endedExchange: AccountID? {
    for case .remove(let identifier, if: _) in changes where identifier.kind == .pending { return identifier.accountID }
    return nil
  }

  /// Whether the changes end an exchange, so that losing them may lose a provider's answer.
  var commitsAnswer: Bool {
    lease != nil && endedExchange != nil
      && changes.contains { if case .store = $0 { true } else { false } }
  }

  mutating func read(isFresh: Bool) throws(StoreError) {
    for name in changes.compactMap(Self.target).map(CellName.init) where !order.contains(name) { order.append(name) }
    if order.isEmpty {
      // The key may have changed, with which the events are sealed.
      if isFresh { _ = try vault.current { _ in (Schema.readState, []) } }
      return
    }
    cells = isFresh ? try vault.fetch(order) : try vault.cells(order)
    for (name, loaded) in cells {
      guard let identifier = name.identifier, let lease = vault.leases[identifier] else { continue }
      if case .cell(let stored) = loaded, stored.holder != lease.holder { lease.isLost = true }
      let known = lease.stored?.mark
      lease.stored = lease.isLost ? nil : loaded
      // An exchange must begin with what the process that asks has read.
      if lease.isBeginning, lease.isLost || known != loaded.mark {
        throw vault.server.fault(.overtaken(identifier.accountID))
      }
    }
  }

  mutating func make() throws(StoreError) {
    revision = max(vault.lastRevision + 1, vault.serverNow() ?? 0)
    for name in order {
      let (cell, old): (Cell, Int64)
      switch cells[name] {
      case .cell(let stored): (cell, old) = (stored.cell, stored.mark.revision)
      case .faulty(_, let row): (cell, old) = (.replacement(name, roster: vault.membership.roster.head), row)
      case .absent, nil: (cell, old) = (Cell(name, roster: vault.membership.roster.head), 0)
      }
      let seen = try vault.seenMark(of: name)?.revision ?? 0
      revision = max(revision, min(max(old, seen), Self.latestRevision) + 1)
      drafts[name] = Draft(cell: cell, hadRecord: cell.record != nil)
    }
    for change in changes { try make(change) }
    try list()
    try makeRoomForEvents()
    for name in order { try write(name) }
  }

  private mutating func make(_ change: Change) throws(StoreError) {
    switch change {
    case .note(let event):
      if event.count <= TeamVault.eventLimit { events.append(event) }
    case .require(let identifier):
      if try part(identifier) == nil { throw .conflict(identifier, actual: nil) }
      // The database compares only the rows that a statement writes.
      drafts[CellName(identifier)]?.isChanged = true
    case .store(let payload, as: let identifier, if: let precondition):
      guard payload.count <= Self.payloadLimit,
        max(identifier.provider.utf8.count, identifier.account.utf8.count) <= Self.nameLimit
      else { throw .tooLarge(identifier) }
      try check(identifier, precondition)
      set(identifier, Cell.Part(payload: payload, revision: 0))
    case .remove(let identifier, if: let precondition):
      try check(identifier, precondition)
      set(identifier, nil)
    }
  }

  /// The part of a cell with its revision; throws if it cannot be believed.
  private func part(_ identifier: RecordIdentifier) throws(StoreError) -> Cell.Part? {
    let name = CellName(identifier)
    if case .faulty(let error, _)? = cells[name], drafts[name]?.isChanged != true { throw error }
    return identifier.kind == .pending ? drafts[name]?.cell.note : drafts[name]?.cell.record
  }

  private func check(_ identifier: RecordIdentifier, _ precondition: Precondition) throws(StoreError) {
    if precondition == .any { return }
    let actual = try part(identifier)?.revision
    switch precondition {
    case .any: break
    case .absent: if actual != nil { throw .conflict(identifier, actual: actual) }
    case .revision(let expected): if actual != expected { throw .conflict(identifier, actual: actual) }
    }
  }

  private mutating func set(_ identifier: RecordIdentifier, _ part: Cell.Part?) {
    let name = CellName(identifier)
    guard var draft = drafts[name] else { return }
    if identifier.kind == .pending {
      let lease = vault.lease(of: identifier)
      // A machine that took over the exchange may have written its own note.
      if let lease, lease.isLost, part != nil || draft.cell.note?.revision != lease.noteRevision { return }
      draft.endsLease = part == nil && lease?.isLost == false
      if part == nil, draft.cell.note == nil, !draft.endsLease { return }
      draft.cell.note = part
    } else {
      if part == nil, draft.cell.record == nil, !isFaulty(name) { return }
      draft.cell.record = part
    }
    draft.isChanged = true
    drafts[name] = draft
  }

  private func isFaulty(_ name: CellName) -> Bool { if case .faulty? = cells[name] { true } else { false } }

  /// Adds the parts of the directory that change.
  private mutating func list() throws(StoreError) {
    var flips: [CellName: [(RecordIdentifier, isAdded: Bool)]] = [:]
    for name in order {
      guard let identifier = name.identifier, let draft = drafts[name], let part = CellName.directory(of: identifier),
        draft.hadRecord != (draft.cell.record != nil) || (isFaulty(name) && draft.isChanged && draft.cell.note == nil)
      else { continue }
      flips[part, default: []].append((identifier, draft.cell.record != nil))
    }
    guard !flips.isEmpty else { return }
    let parts = try vault.fetch(Array(flips.keys))
    for (part, flips) in flips {
      var directory = try vault.directory(part, in: parts)
      let before = directory.records
      for (identifier, isAdded) in flips {
        if isAdded { directory.records.insert(identifier) } else { directory.records.remove(identifier) }
      }
      guard directory.records != before, case .cell(let stored)? = parts[part] else { continue }
      var cell = stored.cell
      cell.record = Cell.Part(payload: directory.encoded, revision: 0)
      cells[part] = parts[part]
      drafts[part] = Draft(cell: cell, isChanged: true, hadRecord: true)
      revision = max(revision, stored.mark.revision + 1)
      order.append(part)
    }
  }

  /// Events of nothing that changes belong to the vault itself.
  private mutating func makeRoomForEvents() throws(StoreError) {
    guard !events.isEmpty, !drafts.values.contains(where: \.isChanged) else { return }
    let read = try vault.fetch([.log])
    switch read[.log] {
    case .cell(let stored):
      cells[.log] = read[.log]
      drafts[.log] = Draft(cell: stored.cell, isChanged: true, hadRecord: false)
      revision = max(revision, stored.mark.revision + 1)
      order.append(.log)
    case .faulty(let error, _): throw error
    case .absent, nil: throw vault.server.fault(.altered)
    }
  }

  private mutating func write(_ name: CellName) throws(StoreError) {
    guard var draft = drafts[name], draft.isChanged else { return }
    var old: Int64 = 0
    switch cells[name] {
    case .cell(let stored):
      old = stored.mark.revision
      draft.cell.extend(after: stored.mark)
    case .faulty(_, let row): old = row
    case .absent, nil: break
    }
    if draft.cell.record?.revision == 0 { draft.cell.record?.revision = revision }
    if draft.cell.note?.revision == 0 { draft.cell.note?.revision = revision }
    draft.cell.roster = vault.membership.roster.head
    if writes.isEmpty, !events.isEmpty { rows = try vault.sealed(events, after: &draft.cell.log) }
    let sealed = try cryptography(
      draft.cell.sealed(vault.keys, vault: vault.vault, revision: revision, random: vault.place.random))
    let lease = name.identifier.flatMap { vault.leases[$0] }
    let holder = lease.flatMap { $0.isLost ? nil : $0.holder }
    writes.append(
      TeamVault.Write(
        name: name, cell: draft.cell, old: old, sealed: sealed, mark: Cell.mark(revision, sealed),
        holder: holder ?? [], endsLease: draft.endsLease && holder != nil))
  }
}
