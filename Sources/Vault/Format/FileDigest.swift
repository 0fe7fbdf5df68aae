import Cryptography
import SQLite

/// A keyed digest over every byte of the file: the parts that nothing is kept in are covered by nothing else.
///
/// It is the sum, bit by bit, of a keyed hash of each page, so that a change looks at the pages that it changes and at no
/// others. Such a sum is a sound code as long as one summand never comes twice (Bellare, Guérin, Rogaway: XOR MACs, 1995): the
/// page with the header is another one at each change.
///
/// It stands in the file itself, so its own place counts as zeros, and so do the counters that SQLite writes
/// at the commit.
struct FileDigest {
  static let byteCount = SealingKey.byteCount

  /// The change counter, and the two fields that repeat it and say who wrote (sqlite.org/fileformat.html,
  /// section 1.3).
  private static let counters = [24..<28, 92..<100]
  /// The number of pages, and where unused pages begin and how many there are.
  private static let (pageCount, unusedPages) = (28..<32, 32..<40)

  private let key: SealingKey
  /// The first page of the table `header`, in which the digest stands.
  private let root: Int
  private var sum = [UInt8](repeating: 0, count: byteCount)

  private init(_ keys: VaultKeys, root: Int) throws(VaultError) {
    key = try converting { () throws(CryptographyError) in try keys.image() }
    self.root = root
  }

  /// Writes the digest of the file, as the open transaction has made it, over a placeholder of random bytes
  /// in the header's row. Nothing else may be written before the commit.
  ///
  /// - Parameter previous: the digest from before the transaction; `nil` if there was none of these keys.
  static func write(
    placeholder: [UInt8], after previous: [UInt8]?, _ connection: Connection, _ keys: VaultKeys,
    _ location: VaultLocation
  ) throws(VaultError) {
    let root = try converting(location, connection) { () throws(SQLiteError) in try rootPage(connection) }
    var digest =
      try previous.map { previous throws(VaultError) in
        try changed(previous, to: placeholder, FileDigest(keys, root: root), connection, location)
      } ?? nil
    if digest == nil {
      let image = try converting(location, connection) { () throws(SQLiteError) in try connection.serialize() }
      digest = try Self.digest(of: image, root: root, own: placeholder, keys)
    }
    guard let digest else { throw .damaged(path: location.file, .structure) }
    try converting(location, connection) { () throws(SQLiteError) in
      try connection.overwrite(table: "header", column: "digest", row: 0, with: digest)
    }
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
    var digest = try FileDigest(keys, root: root)
    guard root > 0, image.count % Format.pageSize == 0, root * Format.pageSize <= image.count else { return nil }
    for number in 1...image.count / Format.pageSize {
      let page = image[(number - 1) * Format.pageSize..<number * Format.pageSize]
      guard digest.add(Array(page), number, own: own) else { return nil }
    }
    return digest.sum
  }

  /// The digest that a change makes of the one before it: the pages that were are taken out of the sum, and those that are put
  /// into it.
  ///
  /// - Returns: `nil` if it is to be computed from the whole file: one so small that it takes no longer, or one of the first
  ///   vaults, with unused pages that SQLite does not write down before it uses them.
  private static func changed(
    _ previous: [UInt8], to placeholder: [UInt8], _ empty: FileDigest, _ connection: Connection,
    _ location: VaultLocation
  ) throws(VaultError) -> [UInt8]? {
    func query<Result>(_ body: () throws(SQLiteError) -> Result) throws(VaultError) -> Result {
      try converting(location, connection, body)
    }
    func filePage(_ number: Int) throws(VaultError) -> [UInt8] {
      try query { () throws(SQLiteError) in
        try connection.bytes(at: Int64(number - 1) * Int64(Format.pageSize), count: Format.pageSize)
      }
    }
    let (count, unused) = try query { () throws(SQLiteError) in
      (Int(try connection.integer("PRAGMA page_count")), try connection.integer("PRAGMA freelist_count"))
    }
    guard count > Format.wholeDigestPageLimit, unused == 0 else { return nil }
    let opened = try query { () throws(SQLiteError) -> RollbackJournal? in
      try connection.flush()
      return try RollbackJournal(connection, pageSize: Format.pageSize)
    }
    guard let journal = opened else { return nil }
    let before = journal.places.first { $0.page == 1 }
    var first =
      if let before { try query { () throws(SQLiteError) in try journal.page(at: before.offset) } } else {
        try filePage(1)
      }
    guard first[unusedPages].allSatisfy({ $0 == 0 }) else { return nil }
    // What a killed process left behind the end was nobody's.
    let initialCount = Int(Format.number(in: first, at: pageCount.lowerBound))
    var digest = empty
    digest.sum = previous
    var seen: Set = [1]
    for (number, offset) in journal.places where number != 1 {
      seen.insert(number)
      if number <= initialCount {
        let old = try query { () throws(SQLiteError) in try journal.page(at: offset) }
        guard digest.add(old, number, own: previous) else { return nil }
      }
      if number <= count { guard digest.add(try filePage(number), number, own: placeholder) else { return nil } }
    }
    // Behind the new end, pages stand in the file as they were. Behind the old end there was nothing.
    for number in (min(count, initialCount) + 1..<max(count, initialCount) + 1) where !seen.contains(number) {
      guard digest.add(try filePage(number), number, own: placeholder) else { return nil }
    }
    // SQLite writes the first page at the commit. What changes in it besides the counters is the number of pages.
    _ = digest.add(first, 1, own: previous)
    for (shift, offset) in pageCount.enumerated() {
      first[offset] = UInt8(truncatingIfNeeded: count >> (24 - 8 * shift))
    }
    _ = digest.add(first, 1, own: placeholder)
    return digest.sum
  }

  /// Puts a page into the sum, or takes it out.
  ///
  /// - Returns: `false` if the digest does not stand in the page in which it should.
  private mutating func add(_ page: [UInt8], _ number: Int, own: [UInt8]) -> Bool {
    var fields = FieldWriter()
    fields.append(Int64(number))
    var zeros = number == 1 ? Self.counters : []
    if number == root {
      guard own.count == Self.byteCount,
        let place = (0...page.count - Self.byteCount).first(where: { start in
          page[start] == own[0] && page[start..<start + Self.byteCount].elementsEqual(own)
        })
      else { return false }
      zeros.append(place..<place + Self.byteCount)
    }
    if zeros.isEmpty {
      fields.append(raw: page)
    } else {
      var page = page
      for range in zeros { for offset in range { page[offset] = 0 } }
      fields.append(raw: page)
    }
    let hash = key.keyedHash(fields.bytes)
    for index in sum.indices { sum[index] ^= hash[index] }
    return true
  }
}
