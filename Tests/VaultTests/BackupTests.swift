import CredmgrCryptography
import Glibc
import CredmgrPlatform
import CredmgrSQLite
import CredmgrStore
import Testing

@testable import CredmgrVault

@Suite("Backup and restore") struct BackupTests {
  private let temporary: TemporaryVault
  private let vault: Vault
  private let location: VaultLocation
  private let random = SystemRandomSource()
  private let ana = RecordIdentifier.credential("github", "ana")

  init() throws {
    temporary = try TemporaryVault()
    location = temporary.location
    vault = try temporary.open()
    try vault.store(Secret("then"), as: ana)
  }

  @Test("a backup is a copy of the file and opens with the same key") func image() throws {
    let image = try vault.image()
    #expect(image == TemporaryVault.read(location.file))
    let backup = try location.backup(image)
    #expect(try backup.record(ana)?.payload.reveal() == "then")
    #expect(try backup.verify() == [])
    #expect(throws: VaultError.readOnly(path: "/backup")) { try backup.store(Secret("x"), as: ana) }
  }

  @Test("a backup made during writes is complete") func concurrent() async throws {
    let location = location
    try await concurrently([
      {
        let vault = try location.open()
        for round in 0..<60 {
          try vault.apply(["a", "b"].map { .store(Secret("\(round)"), as: .credential("p", $0)) })
        }
      },
      {
        let vault = try location.open(.readOnly)
        for _ in 0..<60 {
          let image = try vault.image()
          let copy = try location.backup(image)
          #expect(try copy.verify() == [])
          let first = try copy.record(.credential("p", "a"))?.payload
          #expect(try copy.record(.credential("p", "b"))?.payload == first)
        }
      },
    ])
  }

  @Test("restoring brings the records back, even for processes with an open vault") func restore() throws {
    let image = try vault.image()
    let revision = try vault.store(Secret("now"), as: ana)
    try vault.store(Secret("more"), as: .credential("p", "a"))
    let present = TemporaryVault.read(location.file)
    let kept = try location.backup(image).restore(to: location)
    #expect(kept == [location.file + ".replaced"])
    #expect(TemporaryVault.read(kept[0]) == present)
    #expect(try vault.record(ana)?.payload.reveal() == "then")
    #expect(try vault.record(.credential("p", "a")) == nil)
    #expect(try vault.verify() == [])
    #expect(throws: VaultError.self) { try vault.store(Secret("x"), as: ana, if: .revision(revision)) }
    #expect(try vault.store(Secret("later"), as: ana) > revision)
  }

  @Test("a backup from before a rotation restores its key file and keeps the other one") func otherKey() throws {
    let image = try vault.image()
    let old = TemporaryVault.read(location.keyFile)
    try vault.rotate(to: [.keyFile(random: random)], now: 0)
    let new = TemporaryVault.read(location.keyFile)
    #expect(throws: VaultError.keyFileOfAnotherVault(path: location.keyFile)) { try location.backup(image) }
    let place = try TemporaryVault()
    TemporaryVault.write(place.location.keyFile, old)
    let kept = try location.backup(image, keyFile: place.location.keyFile).restore(to: location)
    #expect(kept == [location.file + ".replaced", location.keyFile + ".replaced"])
    #expect(TemporaryVault.read(location.keyFile) == old)
    #expect(TemporaryVault.read(kept[1]) == new)
    #expect(try vault.record(ana)?.payload.reveal() == "then")
    #expect(try temporary.open().verify() == [])
  }

  /// Simulates a rotation killed after its commit: the key file in force is next to the older one.
  private func strandKeyFile() throws -> (older: [UInt8], inForce: [UInt8]) {
    let older = TemporaryVault.read(location.keyFile)
    try vault.rotate(to: [.keyFile(random: random)], now: 0)
    let inForce = TemporaryVault.read(location.keyFile)
    TemporaryVault.write(location.nextKeyFile, inForce)
    TemporaryVault.write(location.keyFile, older)
    try vault.store(Secret("now"), as: ana)
    return (older, inForce)
  }

  /// Opens the previous vault with its kept files.
  private func openKept(_ kept: [String]) throws -> String? {
    let place = try TemporaryVault()
    TemporaryVault.write(place.location.file, TemporaryVault.read(kept[0]))
    TemporaryVault.write(place.location.keyFile, TemporaryVault.read(kept[1]))
    return try place.open(.readOnly).record(ana)?.payload.reveal()
  }

  @Test("the key file in force is kept, even before it is moved to its place", arguments: [true, false])
  func keyFileInForce(_ isNamed: Bool) throws {
    let image = try vault.image()
    let (older, inForce) = try strandKeyFile()
    let place = try TemporaryVault()
    TemporaryVault.write(place.location.keyFile, older)
    let kept = try location.backup(image, keyFile: isNamed ? place.location.keyFile : nil).restore(to: location)
    #expect(kept == [location.file + ".replaced", location.keyFile + ".replaced"])
    #expect(TemporaryVault.read(kept[1]) == inForce)
    #expect(try openKept(kept) == "now")
    #expect(TemporaryVault.read(location.keyFile) == older)
    #expect(!File.exists(location.nextKeyFile))
    #expect(try temporary.open().record(ana)?.payload.reveal() == "then")
  }

  @Test("a backup that the current key file opens needs no other key file") func backupOfTheKeyFileInForce() throws {
    let (_, inForce) = try strandKeyFile()
    let image = try vault.image()
    try vault.store(Secret("later"), as: ana)
    #expect(try location.backup(image).restore(to: location) == [location.file + ".replaced"])
    #expect(TemporaryVault.read(location.keyFile) == inForce)
    #expect(!File.exists(location.nextKeyFile))
    #expect(try temporary.open().record(ana)?.payload.reveal() == "now")
  }

  @Test("both key files of a damaged vault are kept if either may be in force")
  func keyFilesOfADamagedVault() throws {
    let image = try vault.image()
    let (older, inForce) = try strandKeyFile()
    let place = try TemporaryVault()
    TemporaryVault.write(place.location.keyFile, older)
    // The records of this vault are still readable.
    try temporary.tamper("UPDATE header SET sealed=zeroblob(60)")
    let damaged = TemporaryVault.read(location.file)
    var kept = try location.backup(image, keyFile: place.location.keyFile).restore(to: location)
    #expect(TemporaryVault.read(kept[0]) == damaged)
    #expect(kept.dropFirst().map { TemporaryVault.read($0) } == [inForce])
    #expect(try temporary.open().record(ana)?.payload.reveal() == "then")
    // Nothing in it is readable.
    TemporaryVault.write(location.file, Array("no vault at all".utf8))
    TemporaryVault.write(location.nextKeyFile, inForce)
    let third = try KeyFile(random: random).content
    TemporaryVault.write(location.keyFile, third)
    kept = try location.backup(image, keyFile: place.location.keyFile).restore(to: location)
    #expect(kept == [location.file, location.nextKeyFile, location.keyFile].map { $0 + ".replaced" })
    #expect(kept.dropFirst().map { TemporaryVault.read($0) } == [inForce, third])
    #expect(try temporary.open().record(ana)?.payload.reveal() == "then")
    #expect(!File.exists(location.nextKeyFile))
  }

  @Test("a backup without a key file removes the key file") func withoutKeyFile() throws {
    try vault.protect(with: .passphrase(Secret("p"), costs: .cheap, random: random), now: 0)
    try vault.unprotect(.keyFile)
    let image = try vault.image()
    try vault.protect(with: .keyFile(random: random), now: 0)
    let kept = try location.backup(image, [.answering("p")]).restore(to: location)
    #expect(kept.count == 2)
    #expect(!File.exists(location.keyFile))
    #expect(try temporary.open(holders: [.keyFile, .answering("p")]).verify() == [])
  }

  @Test(
    "a missing or damaged vault is replaced",
    arguments: ["gone", "empty", "garbage", "truncated", "overwritten", "other database"])
  func damaged(_ damage: String) throws {
    let image = try vault.image()
    switch damage {
    case "gone": unsafe unlink(location.file)
    case "empty": TemporaryVault.write(location.file, [])
    case "garbage": TemporaryVault.write(location.file, Array("no vault at all".utf8))
    case "truncated": TemporaryVault.write(location.file, Array(image.prefix(8192)))
    case "overwritten":
      TemporaryVault.write(location.file, Array(image.prefix(4096)) + Array(repeating: 7, count: image.count - 4096))
    default: try temporary.tamper("DROP TABLE slot;DROP TABLE record")
    }
    TemporaryVault.write(location.file + "-journal", [])
    _ = try location.backup(image).restore(to: location)
    #expect(try temporary.open().record(ana)?.payload.reveal() == "then")
    #expect(try temporary.open().verify() == [])
    #expect(!File.exists(location.file + "-journal"))
  }

  @Test("an altered backup is rejected without changes") func damagedBackup() throws {
    let image = try vault.image()
    let before = TemporaryVault.read(location.file)
    for (step, byte) in image.enumerated() where byte != 0 && step.isMultiple(of: 7) {
      var altered = image
      altered[step] ^= 0x10
      guard (try? location.backup(altered).verify()) != [] else { continue }
      #expect(throws: VaultError.self, "\(step)") { try location.backup(altered).restore(to: location) }
    }
    for count in [0, 1, 99, 100, 4096, image.count - 4096] {
      #expect(throws: VaultError.self) { try location.backup(Array(image.prefix(count))).restore(to: location) }
    }
    #expect(TemporaryVault.read(location.file) == before)
    #expect(!File.exists(location.file + ".replaced"))
  }

  @Test("a newer version's vault is not replaced") func newer() throws {
    let image = try vault.image()
    try temporary.tamper("PRAGMA user_version=2")
    #expect(throws: VaultError.newerFormat(path: location.file, found: 2, supported: 1)) {
      try location.backup(image).restore(to: location)
    }
  }
}
