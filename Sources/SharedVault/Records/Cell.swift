import CredmgrCryptography
import CredmgrStore

/// The content of one row: a record with the note of its account, and the trail of its earlier states.
///
/// A row that once existed stays, with an empty cell, so that no member takes a removed row for a legitimate one.
struct Cell: Sendable {
  struct Part: Sendable {
    var payload: Secret
    var revision: Int64
  }

  /// A state of a cell, as a member remembers it.
  struct Mark: Sendable, Equatable {
    var revision: Int64
    var tag: [UInt8]
  }

  let name: CellName
  var record: Part?
  var note: Part?
  /// The earlier states, the latest first.
  private(set) var trail: [Mark] = []
  /// Whether states before the trail exist.
  private(set) var isCut = false
  /// How far the writer knew the list of members, and the beginning of its hash there.
  var roster: Roster.Head
  var log = LogEnd()

  static let trailLimit = 64
  static let markByteCount = 8

  init(_ name: CellName, roster: Roster.Head) {
    self.name = name
    self.roster = roster
  }

  /// Begins a cell again after an unreadable one, from `revision` on.
  static func replacement(_ name: CellName, roster: Roster.Head) -> Cell {
    var cell = Cell(name, roster: roster)
    cell.isCut = true
    return cell
  }

  mutating func extend(after mark: Mark) {
    trail.insert(mark, at: 0)
    if trail.count > Self.trailLimit {
      trail.removeLast()
      isCut = true
    }
  }

  /// Whether this cell, whose own state is `mark`, follows the state that a member saw.
  func follows(_ seen: Mark, at mark: Mark) -> Bool {
    if seen == mark { return true }
    if let known = trail.first(where: { $0.revision == seen.revision }) { return known == seen }
    return isCut && seen.revision < (trail.last?.revision ?? mark.revision)
  }

  // MARK: Sealing

  func sealed(
    _ keys: EpochKeys, vault: [UInt8], revision: Int64, random: any RandomSource
  ) throws(CryptographyError) -> [UInt8] {
    var fields = FieldWriter()
    fields.append(raw: name.encoded)
    fields.append(roster.sequence)
    fields.append(Array(roster.hash.prefix(Self.markByteCount)))
    fields.append(log.chain)
    fields.append(log.count)
    fields.append(log.hash)
    fields.append(Int64(isCut ? 1 : 0))
    fields.append(Int64(trail.count))
    for mark in trail {
      fields.append(mark.revision)
      fields.append(raw: mark.tag)
    }
    for part in [record, note] {
      fields.append(part?.revision ?? 0)
      fields.append(part?.payload)
    }
    return try keys.records.sealed(
      Secret(bytes: fields.bytes), Self.context(keys, vault: vault, lookup: keys.lookup(name), revision: revision),
      random: random)
  }

  /// The cell of a row, or `nil` if the row was altered or belongs elsewhere.
  init?(opening sealed: [UInt8], _ keys: EpochKeys, vault: [UInt8], lookup: [UInt8], revision: Int64) {
    guard
      let plaintext = keys.records.opened(sealed, Self.context(keys, vault: vault, lookup: lookup, revision: revision))
    else { return nil }
    var fields = FieldReader(plaintext.revealBytes())
    guard let name = CellName(&fields), let sequence = fields.number(), let hash = fields.list(),
      let chain = fields.list(), let count = fields.number(), let last = fields.list(), let isCut = fields.number(),
      let trail = fields.items({ fields -> Mark? in
        guard let revision = fields.number(), let tag = fields.raw(Self.markByteCount) else { return nil }
        return Mark(revision: revision, tag: tag)
      }), let recordRevision = fields.number(), let record = fields.secret(), let noteRevision = fields.number(),
      let note = fields.secret(), fields.isAtEnd
    else { return nil }
    self.name = name
    self.roster = Roster.Head(sequence: sequence, hash: hash)
    log = LogEnd(chain: chain, count: count, hash: last)
    self.isCut = isCut != 0
    self.trail = trail
    self.record = record.map { Part(payload: $0, revision: recordRevision) }
    self.note = note.map { Part(payload: $0, revision: noteRevision) }
  }

  static func mark(_ revision: Int64, _ sealed: [UInt8]) -> Mark {
    Mark(revision: revision, tag: Array(sealed.suffix(markByteCount)))
  }

  private static func context(
    _ keys: EpochKeys, vault: [UInt8], lookup: [UInt8], revision: Int64
  ) -> FieldWriter {
    var fields = FieldWriter()
    fields.append("credmgr shared record")
    fields.append(vault)
    fields.append(keys.epoch)
    fields.append(lookup)
    fields.append(revision)
    return fields
  }
}

/// The content of a part of the directory.
struct Directory {
  var records: Set<RecordIdentifier>

  init(_ payload: Secret?) throws(CryptographyError) {
    records = []
    guard let payload else { return }
    var fields = FieldReader(payload.revealBytes())
    while !fields.isAtEnd {
      guard let identifier = CellName(&fields)?.identifier else { throw .notAuthentic }
      records.insert(identifier)
    }
  }

  var encoded: Secret {
    Secret(bytes: records.flatMap { CellName.record($0).encoded })
  }
}
