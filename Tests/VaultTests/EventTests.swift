import Cryptography
import Glibc
import Platform
import SQLite
import Testing

@testable import Vault

@Suite("The log")
struct EventTests {
  private let temporary: TemporaryVault
  private let vault: Vault
  private let location: VaultLocation
  private let ana = RecordIdentifier.credential("github", "ana")

  init() throws {
    temporary = try TemporaryVault()
    location = temporary.location
    vault = try temporary.open()
  }

  private func log(_ series: EventSeries, _ vault: Vault? = nil) throws -> [String] {
    try (vault ?? self.vault).events().filter { $0.series == series }.map { $0.payload.reveal() }
  }

  private func journal() throws -> [UInt8] { try JournalFile.read(HandOutJournal(location).path) }

  @Test("an event is committed with the change that it is about, or not at all")
  func changes() throws {
    try vault.apply([.store(Secret("x"), as: ana), .note(Secret("stored"))])
    #expect(try log(.changes) == ["stored"])
    #expect(throws: VaultError.conflict(ana, actual: 1)) {
      try vault.apply([.note(Secret("never")), .store(Secret("y"), as: ana, if: .absent)])
    }
    #expect(try log(.changes, temporary.open(.readOnly)) == ["stored"])
    #expect(try vault.verify() == [])
  }

  @Test("the log is a ring: the last thousand events stay, and the file does not grow")
  func ring() throws {
    var sizes: [Int] = []
    for round in 0..<30 {
      try vault.apply((0..<100).map { .note(Secret("event \(round * 100 + $0)")) })
      sizes.append(TemporaryVault.read(location.file).count)
    }
    let events = try vault.events()
    #expect(events.last?.payload.reveal() == "event 2999")
    #expect(events.last?.number == 2999)
    #expect((1024...1088).contains(events.count))
    let numbers = events.compactMap(\.number)
    #expect(numbers == Array(2999 - Int64(events.count) + 1...2999))
    #expect(try #require(sizes.last) <= sizes[12] + 4 * Format.pageSize)
    #expect(try vault.connection.integer("SELECT count(*) FROM record") == 17)
    #expect(try vault.status.recordCount == 0)
    #expect(try vault.verify() == [])
  }

  @Test("a hand-out changes nothing in the vault, and can be read at once")
  func handOuts() throws {
    try vault.store(Secret("x"), as: ana)
    let before = TemporaryVault.read(location.file)
    let reader = try temporary.open(.readOnly)
    for number in 0..<10 { try reader.noteHandOut(Secret("given \(number)")) }
    #expect(TemporaryVault.read(location.file) == before)
    #expect(try log(.handOuts) == (0..<10).map { "given \($0)" })
    let text = String(decoding: try journal(), as: UTF8.self)
    #expect(!text.contains("given") && !text.contains(Base64.encode(Array("given".utf8)).prefix(6)))
    var status = stat()
    #expect(unsafe stat(HandOutJournal(location).path, &status) == 0 && status.st_mode & 0o777 == 0o600)
  }

  @Test("the next change of the vault takes the hand-outs in")
  func taking() throws {
    for number in 0..<200 { try vault.noteHandOut(Secret("given \(number)")) }
    try vault.apply([.note(Secret("changed"))])
    #expect(try journal() == [])
    #expect(try log(.handOuts) == (0..<200).map { "given \($0)" })
    #expect(try log(.changes) == ["changed"])
    #expect(try vault.events().allSatisfy { $0.number != nil })
    try vault.noteHandOut(Secret("later"))
    #expect(try log(.handOuts).last == "later")
    #expect(try vault.events().last?.number == nil)
    #expect(try vault.verify() == [])
  }

  @Test("many hand-outs do not push out the changes")
  func separateRings() throws {
    try vault.apply([.note(Secret("key change"))])
    for _ in 0..<3 {
      for number in 0..<500 { try vault.noteHandOut(Secret("\(number)")) }
      try vault.apply([.note(Secret("x"))])
    }
    #expect(try log(.changes) == ["key change", "x", "x", "x"])
    #expect(try log(.handOuts).count <= 1088)
  }

  @Test("the journal is bounded, and its newest entries stay")
  func bounded() throws {
    let event = String(repeating: "e", count: 1000)
    for number in 0..<600 { try vault.noteHandOut(Secret("\(number) \(event)")) }
    #expect(try journal().count < 2 * HandOutJournal.limit + 4000)
    let kept = try log(.handOuts)
    #expect(kept.last?.hasPrefix("599 ") == true)
    #expect(kept.count > 100)
    try vault.apply([.note(Secret("x"))])
    try vault.apply([.note(Secret("x"))])
    #expect(try journal() == [])
    #expect(try log(.handOuts) == kept)
  }

  @Test("a process that dies between the commit and the removal of the journal: nothing is there twice")
  func interruptedTaking() throws {
    for number in 0..<5 { try vault.noteHandOut(Secret("given \(number)")) }
    let lines = try journal()
    try vault.apply([.note(Secret("x"))])
    let path = HandOutJournal(location).path
    TemporaryVault.write(path + ".taken", lines)
    try vault.noteHandOut(Secret("given 5"))
    #expect(try log(.handOuts) == (0..<6).map { "given \($0)" })
    try vault.apply([.note(Secret("x"))])
    #expect(try log(.handOuts) == (0..<6).map { "given \($0)" })
    try vault.apply([.note(Secret("x"))])
    #expect(try log(.handOuts) == (0..<6).map { "given \($0)" })
    #expect(try journal() == [])
  }

  @Test("a change that fails leaves the hand-outs where they are")
  func failedTaking() throws {
    try vault.store(Secret("x"), as: ana)
    try vault.noteHandOut(Secret("given"))
    #expect(throws: VaultError.self) {
      try vault.apply([.note(Secret("x")), .store(Secret("y"), as: ana, if: .absent)])
    }
    #expect(try log(.handOuts) == ["given"])
    try vault.apply([.note(Secret("x"))])
    #expect(try log(.handOuts) == ["given"])
  }

  @Test("a damaged index of the log costs no change, and the hand-outs wait", arguments: EventSeries.allCases)
  func damagedIndex(_ series: EventSeries) throws {
    try vault.noteHandOut(Secret("first"))
    try vault.apply([.store(Secret("x"), as: ana), .note(Secret("stored"))])
    let current = EventPage.current(series)
    let number = IndexBucket.number(vault.openingKeys.lookup(current))
    try #require(number != IndexBucket.number(vault.openingKeys.lookup(ana)))
    try temporary.tamper("DELETE FROM bucket WHERE number=\(number)")
    try vault.noteHandOut(Secret("second"))
    try vault.check([ana])
    for value in ["y", "z"] { try vault.apply([.store(Secret(value), as: ana), .note(Secret("stored"))]) }
    #expect(try vault.record(ana)?.payload.reveal() == "z")
    #expect(try log(.handOuts) == ["first", "second"])
    #expect(try vault.verify() == [.index(number, .dropped)])
  }

  @Test("lines that nobody wrote, or only half, spoil no other line")
  func damagedJournal() throws {
    let path = HandOutJournal(location).path
    try vault.noteHandOut(Secret("first"))
    let half = TemporaryVault.read(path)
    TemporaryVault.write(path, half + Array(half.prefix(half.count / 2)))
    try vault.noteHandOut(Secret("second"))
    TemporaryVault.write(path, TemporaryVault.read(path) + Array("nonsense\n\u{0}\n".utf8))
    try vault.noteHandOut(Secret("third"))
    #expect(try log(.handOuts) == ["first", "second", "third"])
    try vault.apply([.note(Secret("x"))])
    #expect(try log(.handOuts) == ["first", "second", "third"])
  }

  @Test("a journal that is not ours alone is not written, and does not hinder a change")
  func unsafeJournal() throws {
    let path = HandOutJournal(location).path
    for kind in 0..<3 {
      switch kind {
      case 0: unsafe symlink(location.directory + "/elsewhere", path)
      case 1: unsafe mkfifo(path, 0o600)
      default: TemporaryVault.write(path, [], mode: 0o644)
      }
      #expect(throws: VaultError.self, "\(kind)") { try vault.noteHandOut(Secret("given")) }
      try vault.apply([.note(Secret("x"))])
      for suffix in ["", ".taken"] { unsafe unlink(path + suffix) }
    }
    #expect(try log(.changes).count == 3)
  }

  @Test("a rotation takes the hand-outs along")
  func rotation() throws {
    try vault.apply((0..<70).map { .note(Secret("\($0)")) })
    for number in 0..<70 { try vault.noteHandOut(Secret("given \(number)")) }
    try vault.rotate(to: [.keyFile(random: SystemRandomSource())], now: 0, noting: Secret("rotated"))
    try vault.noteHandOut(Secret("given 70"))
    #expect(try log(.changes) == (0..<70).map { "\($0)" } + ["rotated"])
    #expect(try log(.handOuts) == (0..<71).map { "given \($0)" })
    #expect(try vault.verify() == [])
  }

  @Test("a page that was altered is named, and does not hinder a change; that something is gone can be seen")
  func damagedPage() throws {
    try vault.apply((0..<70).map { .note(Secret("\($0)")) })
    try vault.store(Secret("x"), as: ana)
    let lookup = vault.openingKeys.lookup(EventPage.current(.changes))
    try temporary.tamper("UPDATE record SET sealed=zeroblob(length(sealed)) WHERE lookup=\(lookup)")
    #expect(try vault.verify() == [.record(EventPage.current(.changes), .altered)])
    #expect(try log(.changes) == (0..<64).map { "\($0)" })
    try vault.apply([.store(Secret("y"), as: ana), .note(Secret("after"))])
    #expect(try vault.verify() == [])
    let events = try vault.events()
    #expect(events.last?.payload.reveal() == "after")
    #expect(try #require(events.last?.number) > 70)
  }

  @Test("a damaged part of the index that only the log needs does not keep a token from being stored")
  func damagedIndex() throws {
    try vault.apply([.store(Secret("x"), as: ana), .note(Secret("before"))])
    let keys = vault.openingKeys
    let number = IndexBucket.number(keys.lookup(EventPage.current(.changes)))
    try #require(number != IndexBucket.number(keys.lookup(ana)))
    try temporary.tamper("UPDATE bucket SET sealed=zeroblob(80) WHERE number=\(number)")
    try vault.apply([.store(Secret("y"), as: ana), .note(Secret("lost"))])
    #expect(try vault.record(ana)?.payload.reveal() == "y")
    #expect(try vault.verify() == [.index(number, .altered)])
  }

  @Test("an event that is too long is left out")
  func tooLong() throws {
    let long = Secret(String(repeating: "x", count: 2049))
    try vault.apply([.note(long), .note(Secret("short"))])
    try vault.noteHandOut(long)
    #expect(try vault.events().map { $0.payload.reveal() } == ["short"])
  }

  @Test("nothing that is handed out is lost, or there twice, while others change the vault")
  func races() async throws {
    let location = location
    _ = vault
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<4 {
        group.addTask {
          let vault = try Vault.open(location, .readOnly, random: SystemRandomSource())
          for round in 0..<100 { try vault.noteHandOut(Secret("\(number) \(round)")) }
        }
      }
      for _ in 0..<2 {
        group.addTask {
          let vault = try Vault.open(location, .readWrite, random: SystemRandomSource())
          for _ in 0..<30 { try vault.apply([.note(Secret("change"))]) }
        }
      }
      try await group.waitForAll()
    }
    let given = try log(.handOuts)
    #expect(given.count == 400)
    #expect(Set(given).count == 400)
    #expect(try log(.changes).count == 60)
    #expect(try vault.verify() == [])
  }
}
