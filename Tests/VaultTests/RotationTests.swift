import CredmgrCryptography
import Glibc
import CredmgrStore
import Testing

@testable import CredmgrVault

@Suite("Rotation") struct RotationTests {
  private let temporary: TemporaryVault
  private let vault: Vault
  private let location: VaultLocation
  private let random = SystemRandomSource()
  private let identifiers = (0..<20).map { RecordIdentifier.credential("p\($0 % 3)", "a\($0)") }

  init() throws {
    temporary = try TemporaryVault()
    location = temporary.location
    vault = try temporary.open()
    for identifier in identifiers { try vault.store(Secret(identifier.account), as: identifier) }
  }

  /// The user deletes a copy together with the last backup that it opens.
  @Test("copies of key files are found beside a gap") func keptKeyFiles() throws {
    for number in [1, 2, 3] { #expect(try location.keepKeyFile() == "\(location.keyFile).\(number)") }
    unsafe unlink(location.keyFile + ".1")
    TemporaryVault.write(location.keyFile + ".02", [])
    TemporaryVault.write(location.keyFile + ".old", [])
    #expect(location.keptKeyFiles == [3, 2].map { "\(location.keyFile).\($0)" })
    #expect(try location.keepKeyFile() == location.keyFile + ".4")
    for number in 5...10 { #expect(try location.keepKeyFile() == "\(location.keyFile).\(number)") }
    #expect(location.keptKeyFiles.first == location.keyFile + ".10")
  }

  private func rotate(_ vault: Vault) throws { try vault.rotate(to: [.keyFile(random: random)], now: 9) }

  @Test("every record keeps its revision, and everything is sealed again") func records() throws {
    let before = try identifiers.map { try vault.record($0)?.revision }
    let (identifier, lock) = (vault.openedKeys.vault, vault.hiddenName(of: AccountID("p", "a")))
    let key = TemporaryVault.read(location.keyFile)
    try rotate(vault)
    #expect(try identifiers.map { try vault.record($0)?.revision } == before)
    #expect(try identifiers.map { try vault.record($0)?.payload.reveal() } == identifiers.map(\.account))
    #expect(try vault.records(.credential, provider: "p1").count == 7)
    #expect(vault.openedKeys.vault != identifier)
    #expect(vault.hiddenName(of: AccountID("p", "a")) == lock)
    #expect(TemporaryVault.read(location.keyFile) != key)
    #expect(try vault.status.slots == [.init(kind: .keyFile, created: 9)])
    #expect(try vault.verify() == [])
    #expect(try vault.store(Secret("x"), as: identifiers[0]) > before.compactMap { $0 }.max() ?? 0)
    #expect(try temporary.open(.readOnly).record(identifiers[0])?.payload.reveal() == "x")
  }

  @Test("the old key no longer opens anything") func oldKey() throws {
    let (_, keys, _) = vault.openedKeys
    let file = TemporaryVault.read(location.keyFile)
    try rotate(vault)
    #expect(throws: VaultError.locked([.keyFile])) { try temporary.open(holders: [.opened { _ in keys }]) }
    TemporaryVault.write(location.keyFile, file)
    #expect(throws: VaultError.keyFileOfAnotherVault(path: location.keyFile)) { try temporary.open() }
  }

  @Test("readers and writers with an open vault continue") func others() throws {
    let reader = try temporary.open(.readOnly)
    let writer = try temporary.open()
    for round in 0..<3 {
      try rotate(vault)
      #expect(try reader.record(identifiers[1])?.payload.reveal() == "a1")
      try writer.store(Secret("\(round)"), as: identifiers[2])
      #expect(try vault.record(identifiers[2])?.payload.reveal() == "\(round)")
      #expect(try reader.verify() == [])
    }
  }

  @Test("a rotation renews all slots or none") func slots() throws {
    let draft = try SlotDraft.secretService(random: random)
    try vault.protect(with: .passphrase(Secret("p"), costs: .cheap, random: random), now: 0)
    try vault.protect(with: draft, now: 0)
    let before = TemporaryVault.read(location.file)
    let key = TemporaryVault.read(location.keyFile)
    #expect(throws: VaultError.otherSlots) { try rotate(vault) }
    #expect(TemporaryVault.read(location.file) == before)
    #expect(TemporaryVault.read(location.keyFile) == key)
    let next = try SlotDraft.secretService(random: random)
    let item = try vault.rotate(
      to: [next, .passphrase(Secret("q"), costs: .cheap, random: random), .keyFile(random: random)], now: 0)
    #expect(item == draft.item?.name)
    #expect(try vault.secretServiceItem == next.item?.name)
    #expect(try vault.status.slots.map(\.kind) == [.keyFile, .passphrase, .secretService])
    for holder in [KeyHolder.keyFile, .answering("q"), .secretService { _ in next.item?.key ?? Secret("") }] {
      #expect(try temporary.open(.readOnly, holders: [holder]).record(identifiers[3])?.payload.reveal() == "a3")
    }
    #expect(throws: VaultError.wrongPassphrase) { try temporary.open(holders: [.answering("p")]) }
    #expect(try vault.verify() == [])
  }

  @Test(
    "a rotation rejects altered records",
    arguments: [
      "UPDATE record SET sealed=zeroblob(90) WHERE rowid=(SELECT min(rowid) FROM record)",
      "DELETE FROM record WHERE rowid=(SELECT min(rowid) FROM record)",
      "DELETE FROM bucket WHERE number=(SELECT min(number) FROM bucket)", "UPDATE header SET sealed=zeroblob(60)",
      "INSERT INTO slot SELECT 9,99,created,parameters,wrapped FROM slot", "CREATE TABLE more(x)",
    ])
  func tampered(_ sql: String) throws {
    try temporary.tamper(sql)
    let before = TemporaryVault.read(location.file)
    #expect(throws: VaultError.self) { try rotate(vault) }
    #expect(TemporaryVault.read(location.file) == before)
    let readable = identifiers.count { (try? temporary.open(.readOnly).record($0)) != nil }
    #expect(readable >= identifiers.count - 1)
  }

  @Test("an unwritable key file prevents all changes") func failure() throws {
    let (before, key) = (TemporaryVault.read(location.file), TemporaryVault.read(location.keyFile))
    unsafe mkdir(location.nextKeyFile, 0o700)
    #expect(throws: VaultError.self) { try rotate(vault) }
    #expect(TemporaryVault.read(location.file) == before)
    #expect(TemporaryVault.read(location.keyFile) == key)
    #expect(try vault.verify() == [])
  }

  @Test("concurrent rotations, writes and reads lose nothing") func races() async throws {
    let location = location
    let rotates: @Sendable () throws -> Void = {
      let vault = try location.open()
      for _ in 0..<5 { try vault.rotate(to: [.keyFile(random: SystemRandomSource())], now: 0) }
    }
    let stores: [@Sendable () throws -> Void] = (0..<3).map { number in
      {
        for round in 0..<15 {
          let vault = try location.open()
          try vault.store(Secret("\(round)"), as: .credential("new\(number)", "\(round)"))
          #expect(try vault.record(.credential("p0", "a0"))?.payload.reveal() == "a0")
        }
      }
    }
    try await concurrently([rotates, rotates] + stores)
    let vault = try temporary.open(.readOnly)
    #expect(try vault.records(.credential, provider: nil).count == 65)
    #expect(try vault.verify() == [])
    #expect(unsafe access(location.nextKeyFile, F_OK) != 0)
  }
}
