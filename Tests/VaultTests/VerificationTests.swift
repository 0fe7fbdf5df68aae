import Cryptography
import Platform
import SQLite
import Testing
import Vault

/// SQLite does not write down what was in a page that is not used, so a change that is killed would leave it altered.
@Suite("Pages that are not used") struct UnusedPageTests {
  private static func integer(_ vault: TemporaryVault, _ sql: String) throws -> Int64 {
    try Connection(path: vault.location.file, .readOnly, busyTimeout: 0).integer(sql)
  }

  /// A change that makes the file shorter is committed before the file is cut: who dies between the two leaves pages
  /// behind that are nobody's.
  @Test("pages behind the end are cut off, and nothing else is")
  func behindTheEnd() throws {
    let temporary = try TemporaryVault()
    try temporary.open().store(Secret("token"), as: .credential("github", "a"))
    let bytes = TemporaryVault.read(temporary.location.file)
    TemporaryVault.write(temporary.location.file, bytes + Array(repeating: 7, count: 8192))
    #expect(try temporary.open(.readOnly).verify() == [])
    #expect(TemporaryVault.read(temporary.location.file) == bytes)
    TemporaryVault.write(temporary.location.file, bytes + [7])
    #expect(try temporary.open(.readOnly).verify() == [.structure])
    #expect(TemporaryVault.read(temporary.location.file) == bytes + [7])
  }

  @Test("a process that has the vault open cuts them off before it changes anything")
  func behindTheEndOfAnOpenVault() throws {
    let temporary = try TemporaryVault()
    let vault = try temporary.open()
    try vault.store(Secret("token"), as: .credential("github", "a"))
    let bytes = TemporaryVault.read(temporary.location.file)
    for change in 0..<3 {
      try temporary.append(Array(repeating: 7, count: 8192))
      switch change {
      case 0: try vault.check([.credential("github", "a")])
      case 1: try vault.store(Secret("other"), as: .credential("github", "a"))
      default: try vault.rotate(to: [.keyFile(random: SystemRandomSource())], now: 0)
      }
      #expect(TemporaryVault.read(temporary.location.file).count == bytes.count)
      #expect(try vault.verify() == [])
    }
  }

  /// Pages in the middle of the vault are not nobody's because a byte of the first one says so.
  @Test("a number of pages that was altered cuts nothing off and lets nothing be written over")
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
      // Nor is it a backup that is cut.
      #expect(throws: VaultError.self) {
        try Vault.open(
          image: altered, path: path, keyFile: temporary.location.keyFile, random: SystemRandomSource(),
          holders: [.keyFile]
        ).restore(to: temporary.location)
      }
      #expect(TemporaryVault.read(path) == altered, "\(fewer) pages")
    }
    TemporaryVault.write(path, bytes)
    #expect(try temporary.open(.readOnly).verify() == [])
  }

  @Test("there are none between two changes")
  func none() throws {
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

  @Test("how they are given back cannot be altered")
  func flag() throws {
    let temporary = try TemporaryVault()
    try temporary.open().store(Secret("token"), as: .credential("github", "a"))
    // The largest root page and the flag of the incremental vacuum (sqlite.org/fileformat.html, 1.3.12): neither of them is
    // anything else than these.
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

@Suite("Verification")
struct VerificationTests {
  private let temporary: TemporaryVault
  private let vault: Vault
  private let identifiers = (0..<6).map { RecordIdentifier.credential("github", "account\($0)") }

  init() throws {
    temporary = try TemporaryVault()
    vault = try temporary.open()
    for identifier in identifiers { try vault.store(Secret("old"), as: identifier) }
    #expect(try vault.verify() == [])
  }

  /// The revision of a record is the only thing about it that can be read without a key.
  private func place(_ index: Int) throws -> String {
    "revision=\(try #require(try vault.record(identifiers[index])).revision)"
  }

  /// The last entry of a leaf (sqlite.org/fileformat.html, 1.6) is not counted any more.
  private func hideLastEntry(ofIndex name: String) throws {
    let root = try Connection(path: temporary.location.file, .readOnly, busyTimeout: 0)
      .integer("SELECT rootpage FROM sqlite_schema WHERE name='\(name)'")
    var bytes = TemporaryVault.read(temporary.location.file)
    let page = (Int(root) - 1) * 4096
    try #require(bytes[page] == 10 && bytes[page + 4] > 1)
    bytes[page + 4] -= 1
    TemporaryVault.write(temporary.location.file, bytes)
  }

  @Test("a record that SQLite's index hides is there all the same")
  func hiddenByTheIndex() throws {
    try hideLastEntry(ofIndex: "record_group")
    let vault = try temporary.open()
    #expect(try vault.records(.credential, provider: "github").map(\.identifier) == identifiers)
    #expect(try vault.records(.credential, provider: nil).count == identifiers.count)
    #expect(try vault.unreadable(.credential, provider: nil).isEmpty)
    #expect(try vault.verify() == [.structure])
  }

  @Test("parts that do not fit together are found out before something is used up; a byte that nothing needs is let be")
  func structure() throws {
    try vault.requireStructure()
    var bytes = TemporaryVault.read(temporary.location.file)
    // The space between the pointers to the cells of the header's page and its only cell.
    let root = try Connection(path: temporary.location.file, .readOnly, busyTimeout: 0)
      .integer("SELECT rootpage FROM sqlite_schema WHERE name='header'")
    bytes[(Int(root) - 1) * 4096 + 64] ^= 1
    TemporaryVault.write(temporary.location.file, bytes)
    #expect(try temporary.open().verify() == [.unusedBytes])
    try temporary.open().requireStructure()
    try hideLastEntry(ofIndex: "record_group")
    #expect(throws: VaultError.damaged(path: temporary.location.file, .structure)) {
      try temporary.open().requireStructure()
    }
  }

  @Test("an altered record is named and does not take the others along")
  func altered() throws {
    let place = try place(2)
    try temporary.tamper("UPDATE record SET sealed=zeroblob(length(sealed)) WHERE \(place)")
    #expect(try vault.verify() == [.record(identifiers[2], .altered)])
    #expect(throws: VaultError.damagedRecord(identifiers[2])) { try vault.record(identifiers[2]) }
    #expect(try vault.records(.credential, provider: "github").count == 5)
    for index in [0, 1, 3, 4, 5] {
      #expect(try vault.record(identifiers[index])?.payload.reveal() == "old")
    }
    try vault.store(Secret("new"), as: identifiers[2])
    #expect(try vault.verify() == [])
  }

  @Test("every column is bound", arguments: ["kind=2", "grouping=grouping+1", "revision=revision+100"])
  func columns(_ change: String) throws {
    try temporary.tamper("UPDATE record SET \(change) WHERE \(try place(1))")
    #expect(try vault.verify() == [.record(identifiers[1], .altered)])
    #expect(throws: VaultError.damagedRecord(identifiers[1])) { try vault.record(identifiers[1]) }
  }

  @Test("a record under another look-up hash")
  func moved() throws {
    try temporary.tamper("UPDATE record SET lookup=lookup+1 WHERE \(try place(1))")
    let findings = try vault.verify()
    #expect(findings.contains(.record(identifiers[1], .dropped)))
    #expect(findings.count == 2)
  }

  @Test("a dropped record is named")
  func dropped() throws {
    try temporary.tamper("DELETE FROM record WHERE \(try place(3))")
    #expect(try vault.verify() == [.record(identifiers[3], .dropped)])
    #expect(try vault.record(identifiers[3]) == nil)
  }

  @Test("two records in each other's place are named")
  func swapped() throws {
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

  @Test("an older sealing of a record, and a removed record, are named")
  func replayed() throws {
    let old = TemporaryVault.read(temporary.location.file)
    try vault.store(Secret("new"), as: identifiers[4])
    try vault.remove(identifiers[5])
    let other = try TemporaryVault()
    TemporaryVault.write(other.location.file, old)
    try temporary.tamper(
      "ATTACH '\(other.location.file)' AS old;INSERT OR REPLACE INTO record SELECT * FROM old.record")
    #expect(
      Set(try vault.verify()) == [.record(identifiers[4], .replayed), .record(identifiers[5], .replayed)])
  }

  @Test("the index of the time of the replay does not help")
  func replayedIndex() throws {
    let old = TemporaryVault.read(temporary.location.file)
    try vault.store(Secret("new"), as: identifiers[4])
    let other = try TemporaryVault()
    TemporaryVault.write(other.location.file, old)
    try temporary.tamper(
      """
      ATTACH '\(other.location.file)' AS old;INSERT OR REPLACE INTO record SELECT * FROM old.record;
      INSERT OR REPLACE INTO bucket SELECT * FROM old.bucket
      """)
    let findings = try vault.verify()
    #expect(findings.count == 1)
    guard case .index(_, .replayed) = findings.first else {
      Issue.record("\(findings)")
      return
    }
    #expect(throws: VaultError.self) { try vault.store(Secret("x"), as: identifiers[4]) }
  }

  @Test("parts of the index that are altered or missing are named, and hinder no reading")
  func index() throws {
    try temporary.tamper(
      "UPDATE bucket SET sealed=zeroblob(100) WHERE number=(SELECT min(number) FROM bucket)")
    let altered = try vault.verify()
    guard case .index(let number, .altered) = altered.first else {
      Issue.record("\(altered)")
      return
    }
    #expect(altered.count == 1)
    try temporary.tamper("DELETE FROM bucket WHERE number=\(number)")
    #expect(try vault.verify() == [.index(number, .dropped)])
    for identifier in identifiers { #expect(try vault.record(identifier)?.payload.reveal() == "old") }
    #expect(throws: VaultError.damaged(path: temporary.location.file, .index(number))) {
      try vault.check(identifiers)
    }
  }

  @Test(
    "a header that is altered or missing is named and hinders no reading, but writing",
    arguments: [
      "UPDATE header SET sealed=zeroblob(60)", "UPDATE header SET key=zeroblob(16)", "DELETE FROM header",
    ])
  func header(_ sql: String) throws {
    try temporary.tamper(sql)
    #expect(try vault.verify() == [.header])
    #expect(try temporary.open(.readOnly).record(identifiers[0])?.payload.reveal() == "old")
    #expect(throws: VaultError.damaged(path: temporary.location.file, .header)) {
      try vault.store(Secret("x"), as: identifiers[0])
    }
  }

  @Test(
    "slots that are altered or added are named",
    arguments: [
      "UPDATE slot SET number=7", "INSERT INTO slot VALUES(9,2,0,x'00',x'00')",
      "INSERT INTO slot SELECT 9,kind,created,parameters,wrapped FROM slot",
    ])
  func slots(_ sql: String) throws {
    try temporary.tamper(sql)
    #expect(try vault.verify() == [.slots])
    #expect(throws: VaultError.damaged(path: temporary.location.file, .slots)) {
      try vault.store(Secret("x"), as: identifiers[0])
    }
  }

  @Test("a slot that is altered does not open", arguments: ["created=1", "wrapped=zeroblob(104)"])
  func slot(_ change: String) throws {
    try temporary.tamper("UPDATE slot SET \(change)")
    #expect(throws: VaultError.damaged(path: temporary.location.file, .slots)) { try temporary.open() }
  }

  @Test("a table too many is named")
  func schema() throws {
    try temporary.tamper("CREATE TABLE more(x)")
    #expect(try vault.verify() == [.schema])
  }

  @Test("a file that SQLite itself has arranged anew is told from what was written")
  func rearranged() throws {
    try temporary.tamper("VACUUM")
    #expect(try vault.verify() == [.unusedBytes])
    try vault.store(Secret("x"), as: identifiers[0])
    #expect(try vault.verify() == [])
  }

  @Test("random changes leave nothing to find, whatever pages they split and join")
  func randomChanges() throws {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<120 {
      let identifier = RecordIdentifier.credential(
        "p\(Int.random(in: 0..<4, using: &random))", "a\(Int.random(in: 0..<20, using: &random))")
      if Int.random(in: 0..<4, using: &random) == 0 {
        try vault.remove(identifier)
      } else {
        let count = Int.random(in: 0..<3000, using: &random)
        try vault.store(Secret(String(repeating: "x", count: count)), as: identifier)
      }
      #expect(try vault.verify() == [])
    }
  }
}

/// From 1 MiB on a change looks only at the pages that it changes.
@Suite("Large vaults") struct LargeVaultTests {
  private let temporary: TemporaryVault
  private let vault: Vault

  init() throws {
    temporary = try TemporaryVault()
    vault = try temporary.open()
    try vault.apply(
      (0..<1200).map { number in
        .store(
          Secret(String(repeating: "x", count: 600 + number % 700)), as: .credential("p\(number % 7)", "a\(number)"),
          if: .any)
      })
    #expect(TemporaryVault.read(temporary.location.file).count > 300 * 4096)
    #expect(try vault.verify() == [])
  }

  @Test("changes of all sizes, which split and join pages and make the file longer and shorter, leave nothing to find")
  func randomChanges() throws {
    var random = SystemRandomNumberGenerator()
    for round in 0..<150 {
      var changes: [Change] = []
      for _ in 0..<[1, 1, 1, 3, 40].randomElement(using: &random)! {
        let number = Int.random(in: 0..<1300, using: &random)
        let identifier = RecordIdentifier.credential("p\(number % 7)", "a\(number)")
        if Int.random(in: 0..<3, using: &random) == 0 {
          changes.append(.remove(identifier, if: .any))
        } else {
          let count = Int.random(in: 0..<[3000, 60_000][round % 10 / 9], using: &random)
          changes.append(.store(Secret(String(repeating: "x", count: count)), as: identifier, if: .any))
        }
      }
      // Another process has no page in its memory.
      try (round % 2 == 0 ? vault : temporary.open()).apply(changes)
      if round % 5 == 4 { #expect(try temporary.open(.readOnly).verify() == []) }
    }
  }

  /// More pages change than SQLite keeps in its memory, so that some are in the file before the change is done.
  @Test("a change of most of the file, one that fails, and the way below 1 MiB and back")
  func whole() throws {
    let all = (0..<1200).map { RecordIdentifier.credential("p\($0 % 7)", "a\($0)") }
    try vault.apply(all.map { .store(Secret(String(repeating: "y", count: 1900)), as: $0, if: .any) })
    #expect(try vault.verify() == [])
    let bytes = TemporaryVault.read(temporary.location.file)
    #expect(throws: VaultError.self) {
      try vault.apply(
        all.map { .store(Secret(String(repeating: "z", count: 4000)), as: $0, if: .any) }
          + [.store(Secret("z"), as: all[0], if: .absent)])
    }
    #expect(TemporaryVault.read(temporary.location.file) == bytes)
    #expect(try vault.verify() == [])
    try vault.apply(all.dropFirst(100).map { .remove($0, if: .any) })
    #expect(try vault.verify() == [])
    #expect(TemporaryVault.read(temporary.location.file).count < 100 * 4096)
    try vault.apply(all.map { .store(Secret(String(repeating: "x", count: 900)), as: $0, if: .any) })
    try vault.store(Secret("token"), as: all[7])
    #expect(try vault.verify() == [])
    try vault.rotate(to: [.keyFile(random: SystemRandomSource())], now: 0)
    #expect(try vault.verify() == [])
    try vault.store(Secret("token"), as: all[8])
    #expect(try temporary.open(.readOnly).verify() == [])
  }

  /// While this process had the vault open, another one died between its commit and the cutting of the file.
  @Test("pages behind the end that come while the vault is open", arguments: [100, 60_000])
  func behindTheEnd(_ size: Int) throws {
    try vault.store(Secret("token"), as: .credential("p1", "a1"))
    let end = TemporaryVault.read(temporary.location.file).count
    try File.truncate(temporary.location.file, to: Int64(end + 8 * 4096))
    try vault.store(Secret(String(repeating: "x", count: size)), as: .credential("p2", "a2"))
    #expect(try temporary.open(.readOnly).verify() == [])
    try vault.remove(.credential("p2", "a2"))
    #expect(try temporary.open(.readOnly).verify() == [])
  }

  @Test("a byte of any page")
  func flips() throws {
    try vault.store(Secret("token"), as: .credential("p1", "a1"))
    let file = TemporaryVault.read(temporary.location.file)
    for page in stride(from: 0, to: file.count / 4096, by: 7) {
      var altered = file
      altered[page * 4096 + Int.random(in: 100..<4096)] ^= [1, 0x80, 0x20].randomElement()!
      TemporaryVault.write(temporary.location.file, altered)
      let found = try? temporary.open(.readOnly, busyTimeout: 0).verify()
      #expect(found != [], "page \(page)")
    }
  }

  /// A place between the list of the cells and the cells of a leaf (sqlite.org/fileformat.html, 1.6).
  private static func unusedByte(_ file: [UInt8], _ page: Int) -> Int? {
    func number(_ offset: Int) -> Int { Int(file[page + offset]) << 8 | Int(file[page + offset + 1]) }
    let end = 8 + 2 * number(3)
    return file[page] == 13 && number(5) > end + 64 ? page + end + 32 : nil
  }

  @Test("a byte in which nothing is kept stays found out, and a rotation writes it anew")
  func unused() throws {
    var file = TemporaryVault.read(temporary.location.file)
    let byte = try #require(
      stride(from: file.count - 4096, to: 4096, by: -4096).lazy.compactMap { Self.unusedByte(file, $0) }.first)
    // What a balanced page had there before may still be there.
    file[byte] ^= 1
    TemporaryVault.write(temporary.location.file, file)
    let vault = try temporary.open()
    #expect(try vault.verify() == [.unusedBytes])
    try vault.store(Secret("token"), as: .credential("other", "name"))
    #expect(try vault.verify() == [.unusedBytes])
    try vault.rotate(to: [.keyFile(random: SystemRandomSource())], now: 0)
    #expect(try vault.verify() == [])
  }
}
