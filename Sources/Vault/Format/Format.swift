import CredmgrStore

/// The constants of the file format, explained in docs/vault-format.md.
enum Format {
  static let version: Int64 = 1
  /// `crmv` in ASCII.
  static let applicationID: UInt32 = 0x6372_6D76
  static let pageSize = 4096
  static let identifierByteCount = 16
  static let tagByteCount = 16
  static let payloadLimit = 16 << 20

  /// The schema's statements exactly as in the file, because `verify` compares them.
  static let schema: [(name: String, sql: String)] = [
    (
      "slot",
      "CREATE TABLE slot(number INTEGER PRIMARY KEY,kind INTEGER NOT NULL,created INTEGER NOT NULL,"
        + "parameters BLOB NOT NULL,wrapped BLOB NOT NULL)STRICT"
    ),
    (
      "header",
      "CREATE TABLE header(number INTEGER PRIMARY KEY,digest BLOB NOT NULL,key BLOB NOT NULL,"
        + "sealed BLOB NOT NULL)STRICT"
    ), ("bucket", "CREATE TABLE bucket(number INTEGER PRIMARY KEY,sealed BLOB NOT NULL)STRICT"),
    (
      "record",
      "CREATE TABLE record(lookup INTEGER PRIMARY KEY,kind INTEGER NOT NULL,"
        + "grouping INTEGER NOT NULL,revision INTEGER NOT NULL,sealed BLOB NOT NULL)STRICT"
    ), ("record_group", "CREATE INDEX record_group ON record(kind,grouping)"),
  ]

  /// The beginning of a sealing's associated data, so that a blob of one kind never opens as another.
  enum Purpose: String {
    case slot, header, bucket, record
    case answer, event
  }

  static func associatedData(_ purpose: Purpose) -> BinaryWriter {
    var fields = BinaryWriter()
    fields.append(name: "credmgr vault " + purpose.rawValue)
    fields.append(version)
    return fields
  }

  /// Checks the first 100 bytes of the file (sqlite.org/fileformat.html, section 1.3) before SQLite reads them.
  static func check(fileHeader bytes: [UInt8], path: String) throws(VaultError) {
    guard bytes.count == 100, bytes.starts(with: "SQLite format 3\0".utf8), number(in: bytes, at: 68) == applicationID
    else { throw .notAVault(path: path) }
    let found = Int64(number(in: bytes, at: 60))
    guard found <= version else { throw .newerFormat(path: path, found: found, supported: version) }
    guard found == version, hasConstantFields(bytes),
      (number(in: bytes, at: 52) != 0) == (number(in: bytes, at: 64) != 0), number(in: bytes, at: 64) <= 1
    else { throw .damaged(path: path, .structure) }
  }

  /// Checks page size, rollback journal, no reserved space, payload fractions, schema format, cache size, UTF-8 and the
  /// reserved bytes. Two fields depend on each other: the largest root page, and whether unused pages can be freed,
  /// which was not possible in the first vaults. This is one expression, because a loop over a list of offsets and
  /// values would take as long as everything else that `token` reads.
  private static func hasConstantFields(_ bytes: [UInt8]) -> Bool {
    number(in: bytes, at: 16) == 0x1000_0101 && number(in: bytes, at: 20) == 0x0040_2020
      && number(in: bytes, at: 44) == 4 && number(in: bytes, at: 48) == 0 && number(in: bytes, at: 56) == 1
      && bytes[72..<92].allSatisfy { $0 == 0 }
  }

  static func number(in bytes: [UInt8], at offset: Int) -> UInt32 {
    bytes[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }
}
