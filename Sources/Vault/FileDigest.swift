import Cryptography
import SQLite

/// A keyed digest over every byte of the file: the parts that nothing is kept in are covered by nothing else.
///
/// It stands in the file itself, so its own place counts as zeros, and so do the counters that SQLite writes
/// at the commit.
enum FileDigest {
  static let byteCount = SealingKey.byteCount

  /// The change counter, and the two fields that repeat it and say who wrote (sqlite.org/fileformat.html,
  /// section 1.3).
  private static let counters = [24..<28, 92..<100]

  /// Writes the digest of the file, as the open transaction has made it, over a placeholder of random bytes
  /// in the header's row. Nothing else may be written before the commit.
  static func write(
    placeholder: [UInt8], _ connection: Connection, _ keys: VaultKeys, _ location: VaultLocation
  ) throws(VaultError) {
    let (image, root) = try converting(location, connection) { () throws(SQLiteError) in
      (try connection.serialize(), try rootPage(connection))
    }
    guard let digest = try digest(of: image, root: root, own: placeholder, keys) else {
      throw .damaged(path: location.file, .structure)
    }
    try converting(location, connection) { () throws(SQLiteError) in
      try connection.overwrite(table: "header", column: "digest", row: 0, with: digest)
    }
  }

  /// Whether the file, as the open transaction has made it, is small enough.
  static func isWanted(
    _ connection: Connection, _ location: VaultLocation
  ) throws(VaultError) -> Bool {
    let pages = try converting(location, connection) { () throws(SQLiteError) in
      try connection.integer("PRAGMA page_count")
    }
    // The header is yet to be written: it can need a few more.
    return pages < Format.digestPageLimit
  }

  /// The first page of the table `header`, in which the digest stands.
  static func rootPage(_ connection: Connection) throws(SQLiteError) -> Int {
    Int(try connection.integer("SELECT rootpage FROM sqlite_schema WHERE name='header'"))
  }

  /// The digest of a file.
  ///
  /// - Parameter own: what stands in the place of the digest.
  /// - Returns: `nil` if it does not stand there.
  static func digest(
    of image: [UInt8], root: Int, own: [UInt8], _ keys: VaultKeys
  ) throws(VaultError) -> [UInt8]? {
    var image = image
    let page = (root - 1) * Format.pageSize
    guard root > 0, image.count >= page + Format.pageSize, own.count == byteCount,
      let place = (page...page + Format.pageSize - byteCount).first(where: { start in
        image[start] == own[0] && image[start..<start + byteCount].elementsEqual(own)
      })
    else { return nil }
    for range in counters + [place..<place + byteCount] {
      for offset in range { image[offset] = 0 }
    }
    let key = try converting { () throws(CryptographyError) in try keys.image() }
    return key.keyedHash(image)
  }
}
