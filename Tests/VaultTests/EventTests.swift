import CredmgrCryptography
import Glibc
import CredmgrPlatform
import CredmgrStore
import Testing

@testable import CredmgrVault

@Suite("The log") struct EventTests {
  private let temporary: TemporaryVault
  private let vault: Vault
  private let location: VaultLocation
  private let path: String
  private let ana = RecordIdentifier.credential("github", "ana")

  init() throws {
    temporary = try TemporaryVault()
    location = temporary.location
    path = EventLog(location).path
    vault = try temporary.open()
  }

  private func log() throws -> [String] { try vault.events().events.map { $0.reveal() } }

  private func lines() -> [ArraySlice<UInt8>] {
    TemporaryVault.read(path).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
  }

  private func write(_ lines: [ArraySlice<UInt8>]) {
    TemporaryVault.write(path, Array(lines.joined(separator: [UInt8(ascii: "\n")])))
  }

  @Test("an event is logged only after its change, unless it is too long")
  func changes() throws {
    let long = Secret(String(repeating: "x", count: 2049))
    try vault.apply([.store(Secret("x"), as: ana), .note(long), .note(Secret("stored"))])
    try vault.note(long)
    #expect(throws: VaultError.conflict(ana, actual: 1)) {
      try vault.apply([.note(Secret("never")), .store(Secret("y"), as: ana, if: .absent)])
    }
    #expect(try log() == ["stored"])
    #expect(try vault.verify() == [])
  }

  @Test("a note changes nothing in the vault, reveals nothing, and is readable immediately") func notes() throws {
    try vault.store(Secret("x"), as: ana)
    let before = TemporaryVault.read(location.file)
    let reader = try temporary.open(.readOnly)
    for number in 0..<10 { try reader.note(Secret("given \(number)")) }
    #expect(TemporaryVault.read(location.file) == before)
    #expect(try log() == (0..<10).map { "given \($0)" })
    let text = String(decoding: TemporaryVault.read(path), as: UTF8.self)
    #expect(!text.contains("given") && !text.contains(Base64.encode(Array("given".utf8)).prefix(6)))
    var status = stat()
    #expect(unsafe stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
  }

  @Test("the log has a limit, keeps its newest events, and binds each file to the previous one")
  func bounded() throws {
    let event = String(repeating: "e", count: 2000)
    for number in 0..<1000 { try vault.note(Secret("\(number) \(event)")) }
    let size = TemporaryVault.read(path).count + TemporaryVault.read(path + ".1").count
    #expect((EventLog.limit..<2 * EventLog.limit + 8000).contains(size))
    let (events, lost) = try vault.events()
    #expect(lost == 0)
    let numbers = events.compactMap { Int($0.reveal().prefix { $0 != " " }) }
    #expect(numbers == Array(1000 - events.count..<1000))
    #expect(events.count > 300)
    TemporaryVault.write(path + ".1", Array(TemporaryVault.read(path + ".1").dropLast(3000)) + Array("\n".utf8))
    #expect(try vault.events().lost > 0)
    unsafe unlink(path + ".1")
    #expect(try vault.events().lost == 1)
  }

  @Test("removed, moved, repeated and altered lines are detected", arguments: 0..<4)
  func altered(_ kind: Int) throws {
    for number in 0..<6 { try vault.note(Secret("\(number)")) }
    var lines = lines()
    switch kind {
    case 0: lines.remove(at: 2)
    case 1: lines.swapAt(2, 3)
    case 2: lines.insert(lines[2], at: 4)
    default: lines[2][lines[2].startIndex + 30] ^= 1
    }
    write(lines)
    let (events, lost) = try vault.events()
    #expect(lost == [1, 3, 2, 1][kind])
    #expect(events.count == [5, 6, 7, 5][kind])
    #expect(events.last?.reveal() == "5")
  }

  @Test("an incomplete line is skipped, and the next line reports the loss")
  func halfWritten() throws {
    try vault.note(Secret("first"))
    let whole = TemporaryVault.read(path)
    try vault.note(Secret("second"))
    TemporaryVault.write(path, Array(TemporaryVault.read(path).dropLast(20)))
    #expect(try log() == ["first"])
    #expect(try vault.events().lost == 0)
    try vault.note(Secret("third"))
    #expect(try log() == ["first", "third"])
    #expect(try vault.events().lost == 1)
    TemporaryVault.write(path, whole + Array("nonsense\n\u{0}\n".utf8))
    try vault.note(Secret("third"))
    #expect(try log() == ["first", "third"])
    #expect(try vault.events().lost == 2)
  }

  @Test("an unsafe log file is not written and does not prevent a change") func unsafeFile() throws {
    for kind in 0..<3 {
      switch kind {
      case 0: unsafe symlink(location.directory + "/elsewhere", path)
      case 1: unsafe mkfifo(path, 0o600)
      default: TemporaryVault.write(path, [], mode: 0o644)
      }
      #expect(throws: VaultError.self, "\(kind)") { try vault.note(Secret("given")) }
      #expect(throws: VaultError.self, "\(kind)") { try vault.events() }
      try vault.apply([.store(Secret("\(kind)"), as: ana), .note(Secret("x"))])
      unsafe unlink(path)
    }
    #expect(try log() == [])
    #expect(try vault.record(ana)?.payload.reveal() == "2")
  }

  @Test("a rotation seals the log again, but validates no altered lines") func rotation() throws {
    for number in 0..<5 { try vault.note(Secret("\(number)")) }
    var lines = lines()
    lines.remove(at: 1)
    write(lines)
    let old = TemporaryVault.read(path)
    try vault.rotate(to: [.keyFile(random: SystemRandomSource())], now: 0, noting: Secret("rotated"))
    try vault.note(Secret("given"))
    #expect(try log() == ["0", "2", "3", "4", "rotated", "given"])
    #expect(try vault.events().lost == 1)
    TemporaryVault.write(path, old)
    #expect(try log() == [])
  }

  @Test("a restore moves a log with other keys away") func restore() throws {
    let backup = try TemporaryVault()
    try backup.open().store(Secret("then"), as: ana)
    try vault.note(Secret("now"))
    let line = TemporaryVault.read(path)
    for _ in 0..<2 {
      _ = try backup.location.backup(backup.open().image()).restore(to: location)
      #expect(TemporaryVault.read(path + ".replaced") == line)
      try temporary.open().note(Secret("restored"))
    }
    #expect(try temporary.open().events().events.map { $0.reveal() } == ["restored", "restored"])
  }

  /// Pages of up to 64 events, in two series.
  @Test("events from records of earlier versions are read") func earlier() throws {
    func page(_ series: String, _ account: String, first: Int64, _ events: [String]) -> Change {
      var fields = BinaryWriter()
      fields.append(first)
      fields.append(UInt8(3))
      fields.append(raw: [1, 2, 3])
      for event in events {
        fields.append(UInt16(event.utf8.count))
        fields.append(raw: Array(event.utf8))
      }
      let name = RecordIdentifier(kind: .event, provider: series, account: account)
      return .store(Secret(bytes: fields.bytes), as: name)
    }
    try vault.apply([
      page("changes", "current", first: 2, ["c"]), page("changes", "0", first: 0, ["a", "b"]),
      page("hand-outs", "current", first: 0, ["given"]), .note(Secret("later")),
    ])
    #expect(try log() == ["a", "b", "c", "given", "later"])
    #expect(try vault.status.recordCount == 0)
  }

  @Test("concurrent writes and changes lose and duplicate no event") func races() async throws {
    let location = location
    let notes: [@Sendable () throws -> Void] = (0..<4).map { number in
      {
        let vault = try location.open(.readOnly)
        for round in 0..<100 { try vault.note(Secret("\(number) \(round) \(String(repeating: "x", count: 1900))")) }
      }
    }
    let changes: @Sendable () throws -> Void = {
      let vault = try location.open()
      for round in 0..<30 { try vault.apply([.note(Secret("change \(round)"))]) }
    }
    try await concurrently(notes + [changes])
    let (events, lost) = try vault.events()
    #expect(lost == 0)
    #expect(events.count == 430)
    #expect(Set(events.map { $0.reveal() }).count == 430)
    #expect(try vault.verify() == [])
  }
}
