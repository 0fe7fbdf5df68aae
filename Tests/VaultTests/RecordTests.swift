import Cryptography
import Store
import Testing
import Vault

@Suite("Records")
struct RecordTests {
  private let temporary: TemporaryVault
  private let vault: Vault
  private let ana = RecordIdentifier.credential("github", "ana")

  init() throws {
    temporary = try TemporaryVault()
    vault = try temporary.open()
  }

  @Test(
    "comes back as it was stored, also from another connection",
    arguments: ["", "a", "token", String(repeating: "long", count: 20_000), "ключ\n\0🔑"])
  func roundTrip(_ payload: String) throws {
    let revision = try vault.store(Secret(payload), as: ana)
    for vault in [vault, try temporary.open(.readOnly)] {
      let record = try #require(try vault.record(ana))
      #expect(record.payload.reveal() == payload)
      #expect(record.identifier == ana)
      #expect(record.revision == revision)
    }
    #expect(try vault.verify() == [])
  }

  @Test("names are kept apart", arguments: RecordKind.allCases)
  func names(_ kind: RecordKind) throws {
    let identifiers = [
      RecordIdentifier(kind: kind, provider: "ab", account: "c"),
      RecordIdentifier(kind: kind, provider: "a", account: "bc"),
      RecordIdentifier(kind: kind, provider: "abc", account: ""),
      RecordIdentifier(kind: kind, provider: "", account: "abc"),
    ]
    for (index, identifier) in identifiers.enumerated() {
      try vault.store(Secret("\(index)"), as: identifier)
    }
    for (index, identifier) in identifiers.enumerated() {
      #expect(try vault.record(identifier)?.payload.reveal() == "\(index)")
    }
    for other in RecordKind.allCases where other != kind {
      #expect(try vault.records(other, provider: nil).isEmpty)
    }
  }

  @Test("names that look alike are kept apart, byte by byte")
  func alike() throws {
    let names = ["\u{E9}", "e\u{301}", "\u{1100}\u{1161}", "\u{AC00}"]
    for name in names { try vault.store(Secret("of \(Array(name.utf8))"), as: .credential("p", name)) }
    #expect(try vault.verify() == [])
    #expect(try vault.status.recordCount == 4)
    for name in names {
      #expect(try vault.record(.credential("p", name))?.payload.reveal() == "of \(Array(name.utf8))")
    }
    try vault.rotate(to: [.keyFile(random: SystemRandomSource())], now: 0)
    #expect(try vault.verify() == [])
    try vault.remove(.credential("p", names[0]))
    #expect(try vault.record(.credential("p", names[1])) != nil)
    #expect(try vault.verify() == [])
  }

  @Test("lists one provider's accounts, or all, in the order of their names")
  func lists() throws {
    for (provider, account) in [("gitlab", "b"), ("github", "z"), ("github", "a"), ("git", "hub")] {
      try vault.store(Secret(provider + account), as: .credential(provider, account))
    }
    try vault.store(Secret("x"), as: RecordIdentifier(kind: .login, provider: "github", account: "l"))
    #expect(try vault.records(.credential, provider: "github").map(\.identifier.account) == ["a", "z"])
    #expect(
      try vault.records(.credential, provider: nil).map { $0.payload.reveal() }
        == ["github", "githuba", "githubz", "gitlabb"])
    #expect(try vault.records(.credential, provider: "gith").isEmpty)
    #expect(try vault.status.recordCount == 5)
  }

  @Test("a revision grows with each change, and a removal does not set it back")
  func revisions() throws {
    let first = try vault.store(Secret("1"), as: ana)
    let second = try vault.store(Secret("2"), as: ana)
    #expect(second > first)
    #expect(try vault.remove(ana))
    #expect(try !vault.remove(ana))
    #expect(try vault.record(ana) == nil)
    #expect(try vault.store(Secret("3"), as: ana) > second)
    #expect(try vault.verify() == [])
  }

  @Test("a change is made only if its precondition holds")
  func preconditions() throws {
    #expect(throws: VaultError.conflict(ana, actual: nil)) {
      try vault.store(Secret("x"), as: ana, if: .revision(1))
    }
    let first = try vault.store(Secret("1"), as: ana, if: .absent)
    #expect(throws: VaultError.conflict(ana, actual: first)) {
      try vault.store(Secret("x"), as: ana, if: .absent)
    }
    let second = try vault.store(Secret("2"), as: ana, if: .revision(first))
    #expect(throws: VaultError.conflict(ana, actual: second)) {
      try vault.remove(ana, if: .revision(first))
    }
    #expect(try vault.record(ana)?.payload.reveal() == "2")
    #expect(try vault.remove(ana, if: .revision(second)))
    #expect(throws: VaultError.conflict(ana, actual: nil)) { try vault.remove(ana, if: .revision(second)) }
  }

  @Test("several changes are made together or not at all")
  func together() throws {
    let ben = RecordIdentifier.credential("github", "ben")
    let revision = try vault.apply([.store(Secret("a"), as: ana), .store(Secret("b"), as: ben)])
    #expect(try vault.record(ana)?.revision == revision)
    #expect(try vault.record(ben)?.revision == revision)
    #expect(throws: VaultError.conflict(ben, actual: revision)) {
      try vault.apply([.store(Secret("c"), as: ana), .remove(ben, if: .absent)])
    }
    #expect(try vault.record(ana)?.payload.reveal() == "a")
    try vault.apply([.remove(ana), .remove(ben), .store(Secret("d"), as: ana)])
    #expect(try vault.record(ana)?.payload.reveal() == "d")
    #expect(try vault.record(ben) == nil)
    #expect(try vault.verify() == [])
  }

  @Test("what is too large is refused")
  func limits() throws {
    let long = RecordIdentifier.credential(String(repeating: "p", count: 65536), "")
    #expect(throws: VaultError.tooLarge(long)) { try vault.store(Secret("x"), as: long) }
    let large = Secret(bytes: Array(repeating: 0, count: 16 << 20 + 1))
    #expect(throws: VaultError.tooLarge(ana)) { try vault.store(large, as: ana) }
    let most = RecordIdentifier.credential(String(repeating: "p", count: 65535), "a")
    try vault.store(Secret("x"), as: most)
    #expect(try vault.record(most)?.identifier == most)
  }

  @Test("a vault that is open for reading is not changed")
  func readOnly() throws {
    let reader = try temporary.open(.readOnly)
    let error = VaultError.readOnly(path: temporary.location.file)
    #expect(throws: error) { try reader.store(Secret("x"), as: ana) }
    #expect(throws: error) { try reader.remove(ana) }
    #expect(throws: error) { try reader.check([ana]) }
  }

  @Test("neither names nor payloads can be read in the file, also after removals")
  func silentFile() throws {
    let words = ["linkedin-prod", "ana.accountname", "ghp_SecretPayload"]
    for round in 0..<40 {
      let identifier = RecordIdentifier.credential(words[0], words[1] + "\(round)")
      try vault.store(Secret(words[2] + String(repeating: "x", count: round * 50)), as: identifier)
      if round.isMultiple(of: 3) { try vault.remove(identifier) }
    }
    let file = TemporaryVault.read(temporary.location.file)
    for word in words {
      let bytes = Array(word.utf8)
      let parts = [
        bytes, Array(Base64.encode(bytes).utf8.dropLast(4)), Array(Hexadecimal.encode(bytes).utf8),
      ]
      for part in parts {
        #expect(!file.indices.contains { file[$0...].starts(with: part) }, "\(word)")
      }
    }
  }

  @Test("lock names say nothing, differ, and are the same in every process")
  func lockNames() throws {
    let name = vault.lockName(provider: "github", account: "ana")
    #expect(name.utf8.count == 32)
    #expect(Hexadecimal.decode(name) != nil)
    #expect(name == (try temporary.open(.readOnly).lockName(provider: "github", account: "ana")))
    #expect(name != vault.lockName(provider: "github", account: "ben"))
    #expect(name != vault.lockName(provider: "githuba", account: "na"))
    let other = try TemporaryVault()
    #expect(name != (try other.open().lockName(provider: "github", account: "ana")))
  }

  @Test("a file of 75 MiB has its digest, too")
  func large() throws {
    let payload = Secret(String(repeating: "p", count: 15 << 20))
    for number in 0..<5 { try vault.store(payload, as: .credential("p", "\(number)")) }
    #expect(try vault.verify() == [])
    for number in 0..<5 { try vault.remove(.credential("p", "\(number)")) }
    try vault.store(Secret("small"), as: ana)
    #expect(try vault.verify() == [])
  }
}
