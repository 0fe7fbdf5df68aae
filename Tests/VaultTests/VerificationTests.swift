import CredmgrCryptography
import CredmgrPlatform
import CredmgrSQLite
import CredmgrStore
import Testing

@testable import CredmgrVault

@Suite("The end of the file") struct FileEndTests {
  private static func integer(_ vault: TemporaryVault, _ sql: String) throws -> Int64 {
    try Connection(path: vault.location.file, .readWrite, busyTimeout: .zero).integer(sql)
  }

  /// A process that dies between the commit and truncating the file leaves unused pages.
  @Test("extra pages after the end are harmless, even for an open vault")
  func behindTheEnd() throws {
    let temporary = try TemporaryVault()
    let vault = try temporary.open()
    try vault.store(Secret("token"), as: .credential("github", "a"))
    try temporary.append(Array(repeating: 7, count: 8192))
    #expect(try temporary.open(.readOnly).verify() == [])
    try vault.check([.credential("github", "a")])
    for size in [10, 60_000, 10] {
      try vault.store(Secret(String(repeating: "x", count: size)), as: .credential("github", "b"))
      #expect(try vault.verify() == [])
    }
    try vault.rotate(to: [.keyFile(random: SystemRandomSource())], now: 0)
    #expect(try temporary.open(.readOnly).verify() == [])
    #expect(try vault.record(.credential("github", "a"))?.payload.reveal() == "token")
  }

  /// An altered byte in the first page must not make pages in the middle unused.
  @Test("an altered number of pages neither truncates nor overwrites anything")
  func alteredPageCount() throws {
    let temporary = try TemporaryVault()
    let vault = try temporary.open()
    for number in 0..<40 {
      try vault.store(Secret(String(repeating: "x", count: 1500)), as: .credential("github", "\(number)"))
    }
    let path = temporary.location.file
    let bytes = TemporaryVault.read(path)
    let count = bytes[31]
    #expect(bytes.count == Int(count) * 4096)
    for fewer in stride(from: count - 1, to: 3, by: -2) {
      var altered = bytes
      altered[31] = fewer
      TemporaryVault.write(path, altered)
      #expect((try? temporary.open(.readOnly).verify()) != [], "\(fewer) pages")
      #expect(throws: VaultError.damaged(path: path, .structure), "\(fewer) pages") {
        try temporary.open().store(Secret("y"), as: .credential("github", "0"))
      }
      #expect(throws: VaultError.self) {
        try temporary.open().rotate(to: [.keyFile(random: SystemRandomSource())], now: 0)
      }
      #expect(throws: VaultError.self) { try temporary.open().check([.credential("github", "0")]) }
      #expect(TemporaryVault.read(path) == altered, "\(fewer) pages")
      // A truncated backup is rejected as well.
      #expect(throws: VaultError.self) { try temporary.location.backup(altered).restore(to: temporary.location) }
      #expect(TemporaryVault.read(path) == altered, "\(fewer) pages")
    }
    TemporaryVault.write(path, bytes)
    #expect(try temporary.open(.readOnly).verify() == [])
  }

  @Test("changes leave no unused pages and can shorten the file") func unused() throws {
    let temporary = try TemporaryVault()
    let vault = try temporary.open()
    let large = Secret(String(repeating: "x", count: 50_000))
    for name in ["a", "b", "c"] { try vault.store(large, as: .credential("github", name)) }
    let pages = try Self.integer(temporary, "PRAGMA page_count")
    for name in ["a", "c"] {
      try vault.remove(.credential("github", name))
      #expect(try Self.integer(temporary, "PRAGMA freelist_count") == 0)
      #expect(try temporary.open().verify() == [])
    }
    #expect(try Self.integer(temporary, "PRAGMA page_count") < pages - 20)
    #expect(try vault.record(.credential("github", "b"))?.payload == large)
  }

  @Test("the flag for freeing pages cannot be altered") func flag() throws {
    let temporary = try TemporaryVault()
    try temporary.open().store(Secret("token"), as: .credential("github", "a"))
    // The largest root page and the flag of the incremental vacuum (sqlite.org/fileformat.html, 1.3.12).
    let bytes = TemporaryVault.read(temporary.location.file)
    for (offset, value) in [(55, 0), (67, 0), (67, 2)] as [(Int, UInt8)] {
      var altered = bytes
      altered[offset] = value
      TemporaryVault.write(temporary.location.file, altered)
      let path = temporary.location.file
      #expect(throws: VaultError.damaged(path: path, .structure)) { try temporary.open() }
    }
  }
}

@Suite("Verification") struct VerificationTests {
  private let temporary: TemporaryVault
  private let vault: Vault
  private let identifiers = (0..<6).map { RecordIdentifier.credential("github", "account\($0)") }

  init() throws {
    temporary = try TemporaryVault()
    vault = try temporary.open()
    for identifier in identifiers { try vault.store(Secret("old"), as: identifier) }
    #expect(try vault.verify() == [])
  }

  /// The revision, which is the only part of a record readable without a key.
  private func place(_ index: Int) throws -> String {
    "revision=\(try #require(try vault.record(identifiers[index])).revision)"
  }

  /// Reduces the count of a leaf's entries, which hides the last one (sqlite.org/fileformat.html, 1.6).
  private func hideLastEntry(ofIndex name: String) throws {
    let root = try Connection(path: temporary.location.file, .readWrite, busyTimeout: .zero)
      .integer("SELECT rootpage FROM sqlite_schema WHERE name='\(name)'")
    var bytes = TemporaryVault.read(temporary.location.file)
    let page = (Int(root) - 1) * 4096
    try #require(bytes[page] == 10 && bytes[page + 4] > 1)
    bytes[page + 4] -= 1
    TemporaryVault.write(temporary.location.file, bytes)
  }

  @Test("a record that SQLite's index hides is still found") func hiddenByTheIndex() throws {
    try hideLastEntry(ofIndex: "record_group")
    let vault = try temporary.open()
    #expect(try vault.records(.credential, provider: "github").map(\.identifier) == identifiers)
    #expect(try vault.records(.credential, provider: nil).count == identifiers.count)
    #expect(try vault.unreadable(.credential, provider: nil).isEmpty)
    #expect(try vault.verify() == [.structure])
  }

  @Test("inconsistent parts are found before a token is consumed") func structure() throws {
    try vault.check(identifiers)
    try hideLastEntry(ofIndex: "record_group")
    #expect(throws: VaultError.damaged(path: temporary.location.file, .structure)) {
      try temporary.open().check(identifiers)
    }
  }

  @Test("an altered record is named and does not affect others") func altered() throws {
    let place = try place(2)
    try temporary.tamper("UPDATE record SET sealed=zeroblob(length(sealed)) WHERE \(place)")
    #expect(try vault.verify() == [.record(identifiers[2], .altered)])
    #expect(throws: VaultError.damagedRecord(identifiers[2])) { try vault.record(identifiers[2]) }
    #expect(try vault.records(.credential, provider: "github").count == 5)
    for index in [0, 1, 3, 4, 5] { #expect(try vault.record(identifiers[index])?.payload.reveal() == "old") }
    try vault.store(Secret("new"), as: identifiers[2])
    #expect(try vault.verify() == [])
  }

  @Test(
    "every column is authenticated, and a dropped record is named",
    arguments: ["kind=2", "grouping=grouping+1", "revision=revision+100", nil])
  func columns(_ change: String?) throws {
    try temporary.tamper((change.map { "UPDATE record SET " + $0 } ?? "DELETE FROM record") + " WHERE \(try place(1))")
    #expect(try vault.verify() == [.record(identifiers[1], change == nil ? .dropped : .altered)])
    guard change != nil else { return #expect(try vault.record(identifiers[1]) == nil) }
    #expect(throws: VaultError.damagedRecord(identifiers[1])) { try vault.record(identifiers[1]) }
  }

  @Test("a record under another lookup hash") func moved() throws {
    try temporary.tamper("UPDATE record SET lookup=lookup+1 WHERE \(try place(1))")
    let findings = try vault.verify()
    #expect(findings.contains(.record(identifiers[1], .dropped)))
    #expect(findings.count == 2)
  }

  @Test("swapped records are named") func swapped() throws {
    let (first, second) = (try place(0), try place(1))
    try temporary.tamper(
      """
      CREATE TEMP TABLE kept AS SELECT * FROM record WHERE \(first) OR \(second);
      UPDATE record SET sealed=(SELECT sealed FROM kept WHERE \(second)) WHERE \(first);
      UPDATE record SET sealed=(SELECT sealed FROM kept WHERE \(first)) WHERE \(second);
      """)
    #expect(
      Set(try vault.verify()) == [
        .record(identifiers[0], .swapped(with: identifiers[1])),
        .record(identifiers[1], .swapped(with: identifiers[0])),
      ])
    #expect(throws: VaultError.damagedRecord(identifiers[0])) { try vault.record(identifiers[0]) }
  }

  private func bringBack(_ tables: [String], of old: [UInt8]) throws {
    let other = try TemporaryVault()
    TemporaryVault.write(other.location.file, old)
    let copies = tables.map { "INSERT OR REPLACE INTO \($0) SELECT * FROM old.\($0);" }.joined()
    try temporary.tamper("ATTACH '\(other.location.file)' AS old;\(copies)")
  }

  @Test("replayed and removed records are named") func replayed() throws {
    let old = TemporaryVault.read(temporary.location.file)
    try vault.store(Secret("new"), as: identifiers[4])
    try vault.remove(identifiers[5])
    try bringBack(["record"], of: old)
    #expect(Set(try vault.verify()) == [.record(identifiers[4], .replayed), .record(identifiers[5], .replayed)])
  }

  @Test("replaying the matching index as well does not help") func replayedIndex() throws {
    let old = TemporaryVault.read(temporary.location.file)
    try vault.store(Secret("new"), as: identifiers[4])
    try bringBack(["record", "bucket"], of: old)
    let findings = try vault.verify()
    #expect(findings.count == 1)
    guard case .index(_, .replayed) = findings.first else {
      Issue.record("\(findings)")
      return
    }
    #expect(throws: VaultError.self) { try vault.store(Secret("x"), as: identifiers[4]) }
  }

  @Test("altered or missing parts of the index are named and do not prevent reading") func index() throws {
    try temporary.tamper("UPDATE bucket SET sealed=zeroblob(100) WHERE number=(SELECT min(number) FROM bucket)")
    let altered = try vault.verify()
    guard case .index(let number, .altered) = altered.first else {
      Issue.record("\(altered)")
      return
    }
    #expect(altered.count == 1)
    try temporary.tamper("DELETE FROM bucket WHERE number=\(number)")
    #expect(try vault.verify() == [.index(number, .dropped)])
    for identifier in identifiers { #expect(try vault.record(identifier)?.payload.reveal() == "old") }
    #expect(throws: VaultError.damaged(path: temporary.location.file, .index(number))) { try vault.check(identifiers) }
  }

  @Test(
    "altered, added or missing headers and slots are named; they prevent writing, but not reading",
    arguments: [
      ("UPDATE header SET sealed=zeroblob(60)", .header), ("UPDATE header SET key=zeroblob(16)", .header),
      ("DELETE FROM header", .header), ("UPDATE slot SET number=7", .slots),
      ("INSERT INTO slot VALUES(9,2,0,x'00',x'00')", .slots),
      ("INSERT INTO slot SELECT 9,kind,created,parameters,wrapped FROM slot", .slots),
    ] as [(String, VaultPart)])
  func headerAndSlots(_ sql: String, _ part: VaultPart) throws {
    try temporary.tamper(sql)
    #expect(try vault.verify() == [part == .header ? .header : .slots])
    #expect(try temporary.open(.readOnly).record(identifiers[0])?.payload.reveal() == "old")
    #expect(throws: VaultError.damaged(path: temporary.location.file, part)) {
      try vault.store(Secret("x"), as: identifiers[0])
    }
  }

  @Test("an altered slot does not open", arguments: ["created=1", "wrapped=zeroblob(104)"])
  func slot(_ change: String) throws {
    try temporary.tamper("UPDATE slot SET \(change)")
    #expect(throws: VaultError.damaged(path: temporary.location.file, .slots)) { try temporary.open() }
  }

  @Test("an additional table is named") func schema() throws {
    try temporary.tamper("CREATE TABLE more(x)")
    #expect(try vault.verify() == [.schema])
  }

  @Test("an earlier version's digest is ignored") func earlierDigest() throws {
    try temporary.tamper("UPDATE header SET digest=randomblob(32)")
    #expect(try vault.verify() == [])
    try vault.store(Secret("new"), as: identifiers[0])
    #expect(try temporary.open().record(identifiers[0])?.payload.reveal() == "new")
  }

  @Test("random changes that split and join pages cause no findings") func randomChanges() throws {
    var random = SeededGenerator(state: 1)
    for round in 0..<150 {
      let identifier = RecordIdentifier.credential(
        "p\(Int.random(in: 0..<4, using: &random))", "a\(Int.random(in: 0..<20, using: &random))")
      if Int.random(in: 0..<4, using: &random) == 0 {
        try vault.remove(identifier)
      } else {
        let count = Int.random(in: 0..<[3000, 60_000][round % 10 / 9], using: &random)
        try vault.store(Secret(String(repeating: "x", count: count)), as: identifier)
      }
      #expect(try vault.verify() == [])
    }
  }
}

/// SplitMix64, so that each run makes the same changes.
private struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
