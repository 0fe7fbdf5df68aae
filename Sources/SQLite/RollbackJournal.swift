import CSQLite

/// The pages that the open transaction changed, as they were before it (sqlite.org/fileformat.html, section 3).
public struct RollbackJournal {
  /// Each page that the transaction changed, unless it is behind the new end or nothing was kept in it: its number, and where
  /// its content begins in the journal.
  public let places: [(page: Int, offset: Int64)]

  private let connection: Connection
  private let pageSize: Int

  private static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
  private static let headerByteCount = 28

  /// Reads the journal of the transaction that is open, after `Connection.flush()`.
  ///
  /// - Returns: `nil` if there is none, or one that cannot be read.
  /// - Throws: `.failed`.
  public init?(_ connection: Connection, pageSize: Int) throws(SQLiteError) {
    self.connection = connection
    self.pageSize = pageSize
    var places: [(page: Int, offset: Int64)] = []
    var offset: Int64 = 0
    // Each time that pages had to go to the file there is a header.
    while true {
      let (header, isWhole) = try connection.bytes(ofJournal: true, at: offset, count: Self.headerByteCount)
      if !isWhole { break }
      if header.prefix(Self.magic.count).allSatisfy({ $0 == 0 }) {
        // It is filled in when the pages behind it go to the file, of which there are none yet.
        let sectorSize = Int64(Self.number(header, 20))
        guard try !connection.bytes(ofJournal: true, at: offset + sectorSize, count: 1).isWhole else { return nil }
        break
      }
      let (count, sectorSize) = (Self.number(header, 8), Int64(Self.number(header, 20)))
      guard header.starts(with: Self.magic), count != UInt32.max, (512...65536).contains(sectorSize),
        Self.number(header, 24) == UInt32(pageSize)
      else { return nil }
      offset += sectorSize
      for _ in 0..<count {
        let (number, isWhole) = try connection.bytes(ofJournal: true, at: offset, count: 4)
        guard isWhole else { return nil }
        places.append((Int(Self.number(number, 0)), offset + 4))
        // The number, the page, and a checksum.
        offset += Int64(4 + pageSize + 4)
      }
      offset = (offset + sectorSize - 1) / sectorSize * sectorSize
    }
    if offset == 0 { return nil }
    self.places = places
  }

  /// The page that begins there.
  ///
  /// - Throws: `.failed`.
  public func page(at offset: Int64) throws(SQLiteError) -> [UInt8] {
    try connection.bytes(ofJournal: true, at: offset, count: pageSize).bytes
  }

  private static func number(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
    bytes[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }
}

extension Connection {
  /// Writes the pages that the open transaction has changed to the file, all but the first one; an undone transaction takes them
  /// back. From here on nobody can read until the transaction ends.
  ///
  /// - Throws: `.failed`, with the condition `.busy` when somebody reads for too long.
  public func flush() throws(SQLiteError) {
    let status = unsafe sqlite3_db_cacheflush(database)
    guard status == SQLITE_OK else { throw error(status, during: .step) }
  }
}
