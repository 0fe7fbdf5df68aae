import CredmgrCryptography
import Glibc
import CredmgrPlatform
import CredmgrSQLite
import CredmgrStore
import Testing

@testable import CredmgrVault

@Suite("Bad input") struct BadInputTests {
  private let temporary: TemporaryVault
  private let location: VaultLocation
  private let ana = RecordIdentifier.credential("github", "ana")

  init() throws {
    temporary = try TemporaryVault()
    location = temporary.location
    try temporary.open().store(Secret("token"), as: ana)
  }

  /// Expects the error, and no changes on disk.
  private func expect(_ error: VaultError, _ sourceLocation: SourceLocation = #_sourceLocation) {
    for access in [StoreAccess.readOnly, .readWrite] {
      #expect(throws: error, sourceLocation: sourceLocation) { try temporary.open(access) }
    }
  }

  @Test("a missing vault is not created for reading") func absent() throws {
    let empty = try TemporaryVault()
    #expect(throws: VaultError.absent(path: empty.location.file)) { try empty.open(.readOnly) }
    #expect(unsafe access(empty.location.keyFile, F_OK) != 0)
    let nowhere = VaultLocation(directory: empty.location.directory + "/elsewhere")
    #expect(throws: VaultError.absent(path: nowhere.file)) {
      try Vault.open(nowhere, .readOnly, random: SystemRandomSource())
    }
    #expect(unsafe access(nowhere.directory, F_OK) != 0)
  }

  @Test("a missing key file is not replaced") func keyMissing() throws {
    let key = TemporaryVault.read(location.keyFile)
    unsafe unlink(location.keyFile)
    expect(.keyFileMissing(path: location.keyFile))
    #expect(unsafe access(location.keyFile, F_OK) != 0)
    TemporaryVault.write(location.keyFile, key)
    #expect(try temporary.open().record(ana)?.payload.reveal() == "token")
  }

  @Test("another vault's key file") func otherKey() throws {
    let other = try TemporaryVault()
    _ = try other.open()
    TemporaryVault.write(location.keyFile, TemporaryVault.read(other.location.keyFile))
    expect(.keyFileOfAnotherVault(path: location.keyFile))
  }

  @Test("a key file with an altered or missing byte") func alteredKey() throws {
    let key = TemporaryVault.read(location.keyFile)
    for index in key.indices {
      var altered = key
      altered[index] ^= 1
      TemporaryVault.write(location.keyFile, altered)
      expect(.keyFileInvalid(path: location.keyFile))
      TemporaryVault.write(location.keyFile, Array(key.prefix(index)))
      expect(.keyFileInvalid(path: location.keyFile))
    }
    TemporaryVault.write(location.keyFile, key + key)
    expect(.keyFileInvalid(path: location.keyFile))
    TemporaryVault.write(location.keyFile, Array(repeating: 0x61, count: 5000))
    expect(.file(.tooLarge(path: location.keyFile, limit: 4096)))
  }

  @Test("a newer format", arguments: [2, 0x7fff_ffff]) func newer(_ version: Int64) throws {
    try temporary.tamper("PRAGMA user_version=\(version)")
    expect(.newerFormat(path: location.file, found: version, supported: 1))
  }

  @Test(
    "an unknown format, another program's database, and a database without the vault's tables",
    arguments: [("PRAGMA user_version=0", .structure), ("PRAGMA application_id=1", nil), ("DROP TABLE slot", .schema)]
      as [(String, VaultPart?)])
  func otherDatabase(_ sql: String, _ part: VaultPart?) throws {
    try temporary.tamper(sql)
    expect(part.map { .damaged(path: location.file, $0) } ?? .notAVault(path: location.file))
  }

  @Test("another file", arguments: [1, 5000]) func otherFile(_ count: Int) throws {
    TemporaryVault.write(location.file, Array(String(repeating: "text", count: count).utf8))
    expect(.notAVault(path: location.file))
  }

  @Test("a vault that only a user can open") func locked() throws {
    try temporary.tamper("UPDATE slot SET kind=2")
    expect(.locked([.passphrase]))
    try temporary.tamper("DELETE FROM slot")
    expect(.damaged(path: location.file, .slots))
  }

  @Test("a truncated vault", arguments: [0, 1, 99, 100, 4095, 4096, 4097, 8192, 20_000])
  func truncated(_ count: Int) throws {
    let bytes = TemporaryVault.read(location.file)
    try #require(count < bytes.count)
    TemporaryVault.write(location.file, Array(bytes.prefix(count)))
    expect(.truncated(path: location.file))
    #expect(TemporaryVault.read(location.file) == Array(bytes.prefix(count)))
  }

  @Test("files that others can read or write", arguments: [0o740, 0o704, 0o720, 0o702, 0o710] as [mode_t])
  func modes(_ mode: mode_t) throws {
    for (path, own) in [(location.directory, 0o700), (location.keyFile, 0o600), (location.file, 0o600)] {
      unsafe chmod(path, mode)
      expect(.file(.readableByOthers(path: path, mode: mode)))
      unsafe chmod(path, mode_t(own))
    }
  }

  @Test("links, pipes, directories and open files in place of the vault's and SQLite's files")
  func otherKinds() throws {
    for path in [location.keyFile, location.file] + ["-journal", "-wal", "-shm"].map({ location.file + $0 }) {
      unsafe rename(path, path + ".moved")
      unsafe mkfifo(path, 0o600)
      expect(.file(.notRegularFile(path: path)))
      unsafe unlink(path)
      unsafe mkdir(path, 0o700)
      expect(.file(.notRegularFile(path: path)))
      unsafe rmdir(path)
      unsafe symlink(location.directory + "/elsewhere", path)
      expect(.file(.symbolicLink(path: path)))
      unsafe unlink(path)
      TemporaryVault.write(path, [1], mode: 0o644)
      expect(.file(.readableByOthers(path: path, mode: 0o644)))
      unsafe unlink(path)
      unsafe rename(path + ".moved", path)
    }
    #expect(try temporary.open().verify() == [])
  }

  @Test("a link in place of the directory") func linkedDirectory() throws {
    let moved = location.directory + ".moved"
    unsafe rename(location.directory, moved)
    unsafe symlink(moved, location.directory)
    expect(.file(.symbolicLink(path: location.directory)))
    unsafe unlink(location.directory)
    TemporaryVault.write(location.directory, [])
    expect(.file(.notDirectory(path: location.directory)))
    unsafe unlink(location.directory)
    unsafe rename(moved, location.directory)
    #expect(try temporary.open().verify() == [])
  }

  @Test("the fault of a key file is known without opening the vault") func keyFileFault() throws {
    #expect(Vault.keyFileFault(at: location) == nil)
    unsafe chmod(location.keyFile, 0o640)
    #expect(Vault.keyFileFault(at: location) == .file(.readableByOthers(path: location.keyFile, mode: 0o640)))
    unsafe unlink(location.keyFile)
    #expect(Vault.keyFileFault(at: location) == .keyFileMissing(path: location.keyFile))
    try temporary.tamper("UPDATE slot SET kind=2")
    #expect(Vault.keyFileFault(at: location) == nil)
  }

  @Test("files of another user", .enabled("only the superuser can give files away") { geteuid() == 0 })
  func owners() throws {
    for path in [location.directory, location.keyFile, location.file] {
      unsafe chown(path, 12345, 12345)
      expect(.file(.otherOwner(path: path)))
      unsafe chown(path, 0, 0)
    }
  }

  @Test("a read-only directory", .disabled(if: geteuid() == 0, "the superuser can write everywhere"))
  func readOnlyDirectory() throws {
    let vault = try temporary.open()
    unsafe chmod(location.directory, 0o500)
    defer { unsafe chmod(location.directory, 0o700) }
    #expect(throws: VaultError.readOnly(path: location.file)) { try vault.store(Secret("x"), as: ana) }
    #expect(try temporary.open(.readOnly).record(ana)?.payload.reveal() == "token")
  }

  @Test("a file that this process may write, but SQLite could not open") func noDescriptor() {
    let cantOpen = SQLiteError.failed(code: 14)
    #expect(
      VaultError(cantOpen, path: location.file)
        == .file(.system(call: "open", path: location.file, code: EMFILE)))
    #expect(VaultError(cantOpen, path: "/nowhere/vault.db") == .readOnly(path: "/nowhere/vault.db"))
  }

  @Test("a vault locked by another process") func busy() throws {
    let vault = try temporary.open(busyTimeout: .milliseconds(1))
    let other = try Connection(path: location.file, .readWrite, busyTimeout: .zero)
    try other.execute("BEGIN IMMEDIATE")
    #expect(throws: VaultError.busy(path: location.file)) { try vault.store(Secret("x"), as: ana) }
    #expect(throws: VaultError.busy(path: location.file)) { try vault.check([ana]) }
    #expect(try vault.record(ana)?.payload.reveal() == "token")
    try other.execute("ROLLBACK;BEGIN EXCLUSIVE")
    #expect(throws: VaultError.busy(path: location.file)) { try vault.record(ana) }
    try other.execute("ROLLBACK")
    try vault.store(Secret("x"), as: ana)
  }

  @Test("a full disk changes nothing, and writing works again after freeing space") func full() throws {
    let vault = try temporary.open()
    let pages = try vault.file.connection.integer("PRAGMA page_count")
    _ = try vault.file.connection.integer("PRAGMA max_page_count=\(pages)")
    let large = Secret(String(repeating: "x", count: 50_000))
    #expect(throws: VaultError.full(path: location.file)) { try vault.store(large, as: ana) }
    #expect(try vault.record(ana)?.payload.reveal() == "token")
    #expect(try vault.verify() == [])
    _ = try vault.file.connection.integer("PRAGMA max_page_count=100000")
    try vault.store(large, as: ana)
    #expect(try vault.record(ana)?.payload == large)
  }
}
