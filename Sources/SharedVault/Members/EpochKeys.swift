import CredmgrCryptography
import CredmgrStore

/// The keys derived from the secret of one epoch: the time between two changes of the vault's key.
struct EpochKeys: Sendable {
  let epoch: Int64
  let secret: Secret
  private let names: SealingKey
  let records: SealingKey
  let roster: SealingKey

  init(_ epoch: Int64, _ secret: Secret) throws(CryptographyError) {
    self.epoch = epoch
    self.secret = secret
    let key = try SealingKey(secret)
    records = try key.subkey(context: "crmgrsv1", id: 1)
    names = try key.subkey(context: "crmgrsv1", id: 2)
    roster = try key.subkey(context: "crmgrsv1", id: 3)
  }

  /// A hash that the list of members states for this key, so that only an administrator can choose the key.
  var commitment: [UInt8] { hash(0) { _ in } }

  /// Returns the key under which the database finds a cell. It reveals nothing about the cell's name.
  func lookup(_ name: CellName) -> [UInt8] { hash(1) { $0.append(raw: name.encoded) } }

  func grouping(_ kind: RecordKind, provider: String?) -> [UInt8] {
    hash(2) {
      $0.append(Int64(kind.rawValue))
      if let provider { $0.append(provider) }
    }
  }

  /// The values of the columns `kind` and `grouping`, by which the database finds the cells of a kind and a provider.
  func groups(of name: CellName) -> (kind: [UInt8], grouping: [UInt8]) {
    guard let identifier = name.identifier else { return ([], []) }
    return (grouping(identifier.kind, provider: nil), grouping(identifier.kind, provider: identifier.provider))
  }

  private func hash(_ purpose: Int64, _ fill: (inout FieldWriter) -> Void) -> [UInt8] {
    var fields = FieldWriter()
    fields.append(purpose)
    fill(&fields)
    return Array(names.keyedHash(fields.bytes).prefix(16))
  }
}

/// The name of the content of a row of the table `record`.
enum CellName: Hashable, Sendable {
  /// A record; the note of an account belongs to the cell of its credential.
  case record(RecordIdentifier)
  /// A part of the directory, the list of all durable records.
  case directory(Int)
  /// Nothing but the end of the log of what changes no record.
  case log

  static let directoryCount = 16

  /// The cells that exist since the vault was created.
  static let initial = (0..<directoryCount).map { CellName.directory($0) } + [.log]

  init(_ identifier: RecordIdentifier) {
    var identifier = identifier
    if identifier.kind == .pending { identifier.kind = .credential }
    self = .record(identifier)
  }

  /// The part of the directory that lists a record; `nil` for kinds that come and go.
  static func directory(of identifier: RecordIdentifier) -> CellName? {
    guard [.credential, .registration, .descriptor, .selection].contains(identifier.kind) else { return nil }
    let digest = blake2b(CellName.record(identifier).encoded)
    return .directory(Int(digest[0]) % directoryCount)
  }

  /// The part of the directory that lists it.
  var part: CellName? { identifier.flatMap(Self.directory(of:)) }

  var identifier: RecordIdentifier? {
    if case .record(let identifier) = self { identifier } else { nil }
  }

  var encoded: [UInt8] {
    var fields = FieldWriter()
    switch self {
    case .directory(let number): fields.append(-1 - Int64(number))
    case .log: fields.append(-1 - Int64(Self.directoryCount))
    case .record(let identifier):
      fields.append(Int64(identifier.kind.rawValue))
      fields.append(identifier.provider)
      fields.append(identifier.account)
    }
    return fields.bytes
  }

  init?(_ fields: inout FieldReader) {
    guard let number = fields.number() else { return nil }
    if number < 0 {
      guard number >= -1 - Int64(Self.directoryCount) else { return nil }
      self = number < -Int64(Self.directoryCount) ? .log : .directory(Int(-1 - number))
    } else {
      guard let kind = UInt8(exactly: number).flatMap(RecordKind.init), let provider = fields.text(),
        let account = fields.text()
      else { return nil }
      self = .record(RecordIdentifier(kind: kind, provider: provider, account: account))
    }
  }
}
