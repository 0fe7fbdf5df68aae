import CredmgrCryptography
import Glibc
import CredmgrSQLite
import CredmgrStore
import Testing

@testable import CredmgrVault

/// Tests for the effects of processes on each other; connections of one process stand for processes.
@Suite("Concurrent processes") struct SeveralAtOnceTests {
  private let temporary: TemporaryVault
  private let location: VaultLocation

  init() throws {
    temporary = try TemporaryVault()
    location = temporary.location
  }

  @Test("processes that create the vault concurrently share it and lose no change") func creation() async throws {
    let location = location
    try await concurrently(
      (0..<12).map { number in
        {
          let vault = try location.open()
          for round in 0..<5 { try vault.store(Secret("\(number)"), as: .credential("p\(number)", "a\(round)")) }
        }
      })
    let vault = try temporary.open(.readOnly)
    #expect(try vault.records(.credential, provider: nil).count == 60)
    #expect(try vault.verify() == [])
    var status = stat()
    for (path, mode) in [(location.directory, 0o700), (location.file, 0o600), (location.keyFile, 0o600)] {
      #expect(unsafe stat(path, &status) == 0)
      #expect(status.st_mode & 0o7777 == mode_t(mode))
    }
  }

  @Test("concurrent readers notice another process's new vault key") func snapshotAfterRotation() throws {
    let identifier = RecordIdentifier.credential("p", "a")
    let writer = try temporary.open()
    try writer.store(Secret("1"), as: identifier)
    let reader = try temporary.open(.readOnly)
    try writer.rotate(to: [.keyFile(random: SystemRandomSource())], now: 0)
    let read = try reader.snapshot { () throws(VaultError) in try reader.record(identifier) }
    #expect(try read.get()?.payload.reveal() == "1")
  }

  @Test("a counter with a precondition counts every process") func counter() async throws {
    let location = location
    let counter = RecordIdentifier.credential("p", "counter")
    try temporary.open().store(Secret("0"), as: counter)
    let adds: @Sendable () throws -> Void = {
      let vault = try location.open()
      var left = 10
      while left > 0 {
        let record = try #require(try vault.record(counter))
        let next = try #require(Int(record.payload.reveal())) + 1
        do throws(VaultError) {
          try vault.store(Secret("\(next)"), as: counter, if: .revision(record.revision))
          left -= 1
        } catch {
          // Another connection was faster, so this reads again.
          guard case .conflict = error else { throw error }
        }
      }
    }
    try await concurrently(Array(repeating: adds, count: 6))
    let vault = try temporary.open()
    #expect(try vault.record(counter)?.payload.reveal() == "60")
    #expect(try vault.verify() == [])
  }

  @Test("a key file that a killed creation left without a vault is used") func interruptedCreation() throws {
    _ = try temporary.open()
    let key = TemporaryVault.read(location.keyFile)
    unsafe unlink(location.file)
    try temporary.open().store(Secret("x"), as: .credential("p", "a"))
    #expect(TemporaryVault.read(location.keyFile) == key)
    #expect(try temporary.open(.readOnly).record(.credential("p", "a"))?.payload.reveal() == "x")
  }

  @Test(
    "even a reader undoes a killed writer's incomplete change", arguments: [StoreAccess.readOnly, .readWrite])
  func hotJournal(_ access: StoreAccess) throws {
    let vault = try temporary.open()
    for number in 0..<30 { try vault.store(Secret("old"), as: .credential("p", "a\(number)")) }
    let connection = try Connection(path: location.file, .readWrite, busyTimeout: .zero)
    // With a cache of one page, SQLite writes the file long before the commit.
    try connection.execute(
      "PRAGMA cache_size=1;BEGIN IMMEDIATE;UPDATE record SET sealed=randomblob(3000);DELETE FROM bucket")
    let (half, journal) = (TemporaryVault.read(location.file), TemporaryVault.read(location.file + "-journal"))
    let crashed = try TemporaryVault()
    TemporaryVault.write(crashed.location.keyFile, TemporaryVault.read(location.keyFile))
    TemporaryVault.write(crashed.location.file, half)
    TemporaryVault.write(crashed.location.file + "-journal", journal)
    try connection.execute("ROLLBACK")
    #expect(half != TemporaryVault.read(location.file))
    let opened = try crashed.open(access)
    for number in 0..<30 { #expect(try opened.record(.credential("p", "a\(number)"))?.payload.reveal() == "old") }
    #expect(try opened.verify() == [])
  }

  /// The system drops all of a process's locks on a file when it closes any descriptor of the file (fcntl(2)).
  @Test("opening a vault keeps the locks of this process's other connections") func locks() throws {
    _ = try temporary.open()
    var status = stat()
    try #require(unsafe stat(location.file, &status) == 0)
    let place = ":\(status.st_ino) "
    func held() -> Int {
      String(decoding: TemporaryVault.read("/proc/locks"), as: UTF8.self).split(separator: "\n")
        .count { $0.contains(place) && $0.contains(" \(getpid()) ") }
    }
    let writer = try Connection(path: location.file, .readWrite, busyTimeout: .zero)
    try writer.execute("BEGIN IMMEDIATE")
    let before = held()
    #expect(before > 0)
    _ = try temporary.open(.readOnly)
    #expect(held() == before)
    try writer.execute("ROLLBACK")
  }
}
