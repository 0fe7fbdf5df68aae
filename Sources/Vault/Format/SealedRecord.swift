import CredmgrCryptography
import CredmgrSQLite
import CredmgrStore

/// A row of the table `record`.
struct SealedRecord {
  var lookup: Int64
  var kind: Int64
  var grouping: Int64
  var revision: Int64
  var sealed: [UInt8]

  /// The tag that distinguishes two sealings, even of the same record and revision.
  var tag: [UInt8] { Array(sealed.suffix(Format.tagByteCount)) }

  /// The record, or `nil` if any column was altered.
  func opened(_ keys: VaultKeys) -> Record? {
    guard let kind = UInt8(exactly: kind).flatMap(RecordKind.init),
      let plaintext = keys.records.opened(sealed, associatedData)
    else { return nil }
    var start = 0
    guard let provider = Self.name(in: plaintext, &start), let account = Self.name(in: plaintext, &start)
    else { return nil }
    return Record(
      identifier: RecordIdentifier(kind: kind, provider: provider, account: account),
      payload: plaintext[start..<plaintext.count], revision: revision)
  }

  private var associatedData: BinaryWriter {
    var fields = Format.associatedData(.record)
    fields.append(lookup)
    fields.append(kind)
    fields.append(grouping)
    fields.append(revision)
    return fields
  }

  private static func name(in plaintext: Secret, _ start: inout Int) -> String? {
    let beginning = start + 2
    let name = plaintext.withBytes { bytes -> String? in
      guard beginning <= bytes.count else { return nil }
      let end = beginning + (Int(bytes[beginning - 2]) << 8 | Int(bytes[beginning - 1]))
      guard end <= bytes.count, let text = try? UTF8Span(validating: bytes.extracting(beginning..<end)) else {
        return nil
      }
      return String(copying: text)
    }
    guard let name else { return nil }
    start = beginning + name.utf8.count
    return name
  }
}

extension SealedRecord {
  static let selection = "SELECT lookup,kind,grouping,revision,sealed FROM record"

  init(_ statement: borrowing Statement) throws(SQLiteError) {
    self.init(
      lookup: try statement.integer(0), kind: try statement.integer(1), grouping: try statement.integer(2),
      revision: try statement.integer(3), sealed: try statement.bytes(4))
  }

  init(_ record: Record, keys: VaultKeys, random: some RandomSource) throws(VaultError) {
    let identifier = record.identifier
    self.init(
      lookup: keys.lookup(identifier), kind: Int64(identifier.kind.rawValue),
      grouping: keys.grouping(identifier.kind, provider: identifier.provider), revision: record.revision, sealed: [])
    var names = BinaryWriter()
    names.append(name: identifier.provider)
    names.append(name: identifier.account)
    sealed = try keys.records.sealed(Secret(names.bytes, record.payload), associatedData, random: random)
  }
}
