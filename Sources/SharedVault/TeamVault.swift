import CredmgrCryptography
import CredmgrPlatform
import CredmgrPostgreSQL
import CredmgrStore
import CredmgrText

/// A vault in a database that several machines share (docs/shared-vault.md). Not thread-safe; several processes and
/// machines can use a vault concurrently.
package final class TeamVault {
  let name: String
  let place: SharedPlace
  let server: Server
  var membership: Membership
  var keys: EpochKeys
  /// The directory of this vault's locks and answers on this machine.
  let folder: String
  /// The last known time of the server in microseconds, and when it was read. Revisions grow with it, so the later of
  /// two records has the greater one even if other machines wrote them.
  private var serverTime: (microseconds: Int64, at: MonotonicMoment)?
  var lastRevision: Int64 = 0
  var leases: [RecordIdentifier: Lease] = [:]
  var view: View?
  /// The states that this process saw, and those of them that the local store does not know.
  var seen: [CellName: Cell.Mark?] = [:]
  var unsavedSeen: Set<CellName> = []
  /// Whether `seen` lacks only cells that this machine has not seen.
  var knowsAllSeen = false

  /// The cells that a snapshot or a wait has read.
  struct View {
    var cells: [CellName: Loaded] = [:]
    var isSnapshot = true
    var isTransaction = false
  }

  /// A cell as it was read.
  struct Stored {
    var cell: Cell
    var mark: Cell.Mark
    /// The lease, or `nil` if the row is free.
    var holder: [UInt8]?
  }

  enum Loaded {
    case absent
    case cell(Stored)
    /// The row cannot be believed. `revision` is the row's, or 0 if it is missing.
    case faulty(StoreError, revision: Int64)
  }

  init(_ name: String, _ membership: Membership, in place: SharedPlace) throws(StoreError) {
    self.name = name
    self.place = place
    self.membership = membership
    keys = try cryptography(membership.keys())
    folder = place.folder + "/" + Hexadecimal.encode(Array(membership.roster.vault.prefix(8)))
    server = try Server(
      membership.server, password: membership.password, name: name,
      silence: Silence(path: folder + "/silent", clock: place.clock))
    do throws(POSIXError) {
      try PrivateFile.createDirectory(folder)
      if !File.exists(lockFile) { try? PrivateFile.create(lockFile, []) }
    } catch {
      throw .file(error)
    }
  }

  var lockFile: String { folder + "/locks" }

  var vault: [UInt8] { membership.roster.vault }

  // MARK: Reading cells

  /// Reads cells: those of a lease, of a snapshot or of a wait from memory.
  func cells(_ names: [CellName]) throws(StoreError) -> [CellName: Loaded] {
    var known: [CellName: Loaded] = [:]
    for name in names {
      if let lease = name.identifier.flatMap({ leases[$0] }), let stored = lease.stored, view?.isTransaction != true {
        known[name] = stored
      } else if let cell = view?.cells[name] {
        known[name] = cell
      }
    }
    let missing = names.filter { known[$0] == nil }
    if missing.isEmpty { return known }
    guard view?.isSnapshot == true else { return known.merging(try fetch(missing)) { first, _ in first } }
    // Everything of an account that a refresh reads is one statement, which needs no transaction.
    let companions: [CellName]
    if view?.cells.isEmpty == true, view?.isTransaction == false, missing.count == 1, let one = missing[0].identifier,
      one.kind == .credential
    {
      companions = [.selection, .registration, .descriptor].map {
        .record(RecordIdentifier(kind: $0, provider: one.provider, account: ""))
      }
    } else {
      companions = []
      try beginView()
    }
    let read = try fetch(missing + companions)
    view?.cells.merge(read) { first, _ in first }
    return known.merging(read) { first, _ in first }
  }

  /// Reads everything else of a snapshot in one transaction, which must still show what was already read.
  func beginView() throws(StoreError) {
    guard let view, view.isSnapshot, !view.isTransaction else { return }
    // All statements of the transaction show the moment of the first one.
    try readAllSeen()
    try server.beginReading()
    self.view?.isTransaction = true
    guard !view.cells.isEmpty else { return }
    let now = try fetch(Array(view.cells.keys))
    for (name, cell) in view.cells where cell.mark != now[name]?.mark {
      throw .conflict(name.identifier ?? Self.wholeVault, actual: now[name]?.mark?.revision)
    }
  }

  private static let wholeVault = RecordIdentifier(kind: .credential, provider: "", account: "")

  /// Reads cells from the database with one statement, and compares them with the directory.
  func fetch(_ names: [CellName]) throws(StoreError) -> [CellName: Loaded] {
    let all = Array(Set(names).union(names.compactMap(\.part)))
    // Before the statement: later, another process of this machine may have seen a newer state than the statement.
    for name in all { _ = try seenMark(of: name) }
    let rows = try current { keys in (Schema.read, [.byteLists(all.map(keys.lookup))]) }
    let byLookup = Dictionary(rows.map { ($0.lookup, $0) }) { first, _ in first }
    var cells: [CellName: Loaded] = [:]
    for name in all { cells[name] = try loaded(name, byLookup[keys.lookup(name)]) }
    let compared = compared(cells)
    return names.reduce(into: [:]) { $0[$1] = compared[$1] }
  }

  struct Row {
    let lookup: [UInt8]
    let revision: Int64
    let sealed: [UInt8]
    let holder: [UInt8]?
    /// The columns `kind` and `grouping`, if the statement returns them.
    let groups: (kind: [UInt8], grouping: [UInt8])?

    init?(_ row: SQLRow) {
      guard let lookup = row.bytes(4), let revision = row.integer(5), let sealed = row.bytes(6) else { return nil }
      self.lookup = lookup
      self.revision = revision
      self.sealed = sealed
      holder = row.bytes(7)
      if let kind = row.bytes(8), let grouping = row.bytes(9) { groups = (kind, grouping) } else { groups = nil }
    }
  }

  /// Runs a statement that begins with the vault's state; again with the new keys if another epoch has begun.
  func current(
    _ statement: (EpochKeys) -> (String, [SQLParameter])
  ) throws(StoreError) -> [Row] {
    for _ in 0..<8 {
      let (text, parameters) = statement(keys)
      let rows = try server.query(text, [.bytes(vault)] + parameters)
      if try accept(rows) { return try cellRows(rows) }
    }
    throw server.fault(.altered)
  }

  /// The rows with a cell. Without one, its columns are null.
  func cellRows(_ rows: [SQLRow]) throws(StoreError) -> [Row] {
    let cells = rows.filter { $0.bytes(4) != nil }
    let read = cells.compactMap(Row.init)
    guard read.count == cells.count else {
      throw server.fault(.schemaEdited(detail: "a column of the table record has another type"))
    }
    return read
  }

  /// Compares the vault's state in a result with what this machine knows; returns `false` if the key has changed.
  func accept(_ rows: [SQLRow]) throws(StoreError) -> Bool {
    guard let row = rows.first, let version = row.integer(0), let epoch = row.integer(1), let sequence = row.integer(2),
      let time = row.integer(3)
    else { throw server.fault(.noVault) }
    guard Schema.supports(version) else {
      throw server.fault(.newerVersion(found: version, supported: Schema.version))
    }
    // A time after the year 2200 would make revisions that no later one exceeds.
    if (0..<Self.latestTime).contains(time) { serverTime = (time, place.clock.monotonic()) }
    let roster = membership.roster
    guard sequence >= roster.head.sequence, epoch >= roster.epoch else {
      // A machine that joined has read records since.
      let hasJoined = try !place.local.records(.seen, provider: name).isEmpty
      throw server.fault(hasJoined ? .setBack(nil) : .joinUnfinished)
    }
    if sequence == roster.head.sequence, epoch == roster.epoch { return true }
    try learnRoster()
    return membership.roster.epoch == roster.epoch
  }

  private static let latestTime: Int64 = 1 << 53

  /// The server's time in microseconds since 1970.
  func serverNow() -> Int64? {
    serverTime.map { $0.microseconds + Int64((place.clock.monotonic() - $0.at) / .microseconds(1)) }
  }

  /// How far the server's clock is ahead of this machine's.
  package var clockOffset: Duration {
    guard let time = serverNow() else { return .zero }
    return .seconds(time / 1_000_000 - place.clock.now().secondsSince1970)
  }

  package var memberName: String? { membership.member?.name }

  package func wasSilent(within time: Duration) -> Bool { server.wasSilent(within: time) }

  /// The cell of a row, checked against what this machine saw before.
  func loaded(_ name: CellName, _ row: Row?) throws(StoreError) -> Loaded {
    let known = try seenMark(of: name)
    guard let row else {
      return known == nil ? .absent : .faulty(server.fault(.setBack(named(name))), revision: 0)
    }
    guard
      let cell = Cell(opening: row.sealed, keys, vault: vault, lookup: row.lookup, revision: row.revision),
      cell.name == name
    else {
      return .faulty(name.identifier.map { .damagedRecord($0) } ?? server.fault(.altered), revision: row.revision)
    }
    // A row that another statement has just changed may be newer than the vault's state in the same result.
    if cell.roster.sequence > membership.roster.head.sequence { try learnRoster() }
    if !membership.roster.contains(cell.roster) { throw server.fault(.forked(nil)) }
    let mark = Cell.mark(row.revision, row.sealed)
    if let known {
      if mark.revision < known.revision {
        return .faulty(server.fault(.setBack(named(name))), revision: row.revision)
      }
      if !cell.follows(known, at: mark) {
        return .faulty(server.fault(.forked(named(name))), revision: row.revision)
      }
    }
    if mark != known { remember(name, mark) }
    return .cell(Stored(cell: cell, mark: mark, holder: row.holder))
  }

  /// The record for an error. The directory and the log are records of the vault without a name.
  private func named(_ name: CellName) -> RecordIdentifier {
    name.identifier ?? RecordIdentifier(kind: .seen, provider: self.name, account: "")
  }

  // MARK: What this machine saw

  func seenMark(of name: CellName) throws(StoreError) -> Cell.Mark? {
    if let known = seen[name] { return known }
    if knowsAllSeen { return nil }
    let mark = try place.local.record(seenIdentifier(name)).flatMap { Self.seen($0.payload)?.mark }
    seen[name] = .some(mark)
    return mark
  }

  func remember(_ name: CellName, _ mark: Cell.Mark) {
    seen[name] = mark
    unsavedSeen.insert(name)
  }

  /// Stores what was seen. A failure loses only the memory of it, so it fails no operation.
  func saveSeen() {
    guard !unsavedSeen.isEmpty else { return }
    for _ in 0..<5 {
      do throws(StoreError) {
        var changes: [Change] = []
        for name in unsavedSeen {
          guard let mark = seen[name] ?? nil else { continue }
          let identifier = seenIdentifier(name)
          let record = try place.local.record(identifier)
          // Another process of this machine may have seen more.
          if let known = record.flatMap({ Self.seen($0.payload)?.mark }), known.revision >= mark.revision { continue }
          var fields = FieldWriter()
          fields.append(mark.revision)
          fields.append(mark.tag)
          fields.append(raw: name.encoded)
          changes.append(
            .store(
              Secret(bytes: fields.bytes), as: identifier, if: record.map { .revision($0.revision) } ?? .absent))
        }
        if !changes.isEmpty { try place.local.apply(changes) }
        unsavedSeen = []
        return
      } catch .conflict {
        continue
      } catch {
        return
      }
    }
  }

  private func seenIdentifier(_ name: CellName) -> RecordIdentifier {
    let hash = blake2b(vault + name.encoded).prefix(16)
    return RecordIdentifier(kind: .seen, provider: self.name, account: Hexadecimal.encode(Array(hash)))
  }

  static func seen(_ payload: Secret) -> (name: CellName, mark: Cell.Mark)? {
    var fields = FieldReader(payload.revealBytes())
    guard let revision = fields.number(), let tag = fields.list(), let name = CellName(&fields) else { return nil }
    return (name, Cell.Mark(revision: revision, tag: tag))
  }

  /// Reads what this machine saw of all records before `body` reads them from the database.
  func withAllSeen<Value>(_ body: () throws(StoreError) -> Value) throws(StoreError) -> Value {
    if knowsAllSeen { return try body() }
    try readAllSeen()
    defer { knowsAllSeen = false }
    return try body()
  }

  private func readAllSeen() throws(StoreError) {
    for record in try place.local.records(.seen, provider: name) {
      guard let (name, mark) = Self.seen(record.payload), seen[name] == nil else { continue }
      seen[name] = mark
    }
    knowsAllSeen = true
  }
}

extension TeamVault.Loaded {
  var mark: Cell.Mark? { if case .cell(let stored) = self { stored.mark } else { nil } }
}

/// Runs a step whose only possible failure is missing memory, because this module chooses lengths.
func cryptography<Result>(_ step: @autoclosure () throws(CryptographyError) -> Result) throws(StoreError) -> Result {
  do throws(CryptographyError) { return try step() } catch { throw .outOfMemory }
}
