import CredmgrCryptography
import CredmgrStore
import Testing

@testable import CredmgrVault

@Suite("Records") struct RecordTests {
  private let temporary: TemporaryVault
  private let vault: Vault
  private let ana = RecordIdentifier.credential("github", "ana")

  init() throws {
    temporary = try TemporaryVault()
    vault = try temporary.open()
  }

  @Test(
    "stored records are read unchanged, even from another connection",
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

  @Test("names differ if any byte or their division differs", arguments: RecordKind.allCases)
  func names(_ kind: RecordKind) throws {
    let names =
      [("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc")]
      + ["\u{E9}", "e\u{301}", "\u{1100}\u{1161}", "\u{AC00}"].map { ("p", $0) }
    let identifiers = names.map { RecordIdentifier(kind: kind, provider: $0, account: $1) }
    for (index, identifier) in identifiers.enumerated() { try vault.store(Secret("\(index)"), as: identifier) }
    try vault.rotate(to: [.keyFile(random: SystemRandomSource())], now: 0)
    for (index, identifier) in identifiers.enumerated() {
      #expect(try vault.record(identifier)?.payload.reveal() == "\(index)")
    }
    for other in RecordKind.allCases where other != kind { #expect(try vault.records(other, provider: nil).isEmpty) }
    try vault.remove(identifiers[4])
    #expect(try vault.record(identifiers[5]) != nil)
    #expect(try vault.verify() == [])
    #expect(try vault.status.recordCount == (kind == .event || kind == .host ? 0 : 7))
  }

  @Test("overlong records are rejected") func limits() throws {
    let long = RecordIdentifier.credential(String(repeating: "p", count: 65536), "")
    #expect(throws: VaultError.tooLarge(long)) { try vault.store(Secret("x"), as: long) }
    let large = Secret(bytes: Array(repeating: 0, count: 16 << 20 + 1))
    #expect(throws: VaultError.tooLarge(ana)) { try vault.store(large, as: ana) }
    let most = RecordIdentifier.credential(String(repeating: "p", count: 65535), "a")
    try vault.store(Secret("x"), as: most)
    #expect(try vault.record(most)?.identifier == most)
  }

  @Test("a vault open for reading is not changed") func readOnly() throws {
    let reader = try temporary.open(.readOnly)
    let error = VaultError.readOnly(path: temporary.location.file)
    #expect(throws: error) { try reader.store(Secret("x"), as: ana) }
    #expect(throws: error) { try reader.remove(ana) }
    #expect(throws: error) { try reader.check([ana]) }
  }

  @Test("the file reveals neither names nor payloads, even after removals") func silentFile() throws {
    let words = ["linkedin-prod", "ana.accountname", "ghp_SecretPayload"]
    for round in 0..<40 {
      let identifier = RecordIdentifier.credential(words[0], words[1] + "\(round)")
      try vault.store(Secret(words[2] + String(repeating: "x", count: round * 50)), as: identifier)
      if round.isMultiple(of: 3) { try vault.remove(identifier) }
    }
    let file = TemporaryVault.read(temporary.location.file)
    for word in words {
      let bytes = Array(word.utf8)
      let parts = [bytes, Array(Base64.encode(bytes).utf8.dropLast(4)), Array(Hexadecimal.encode(bytes).utf8)]
      for part in parts { #expect(!file.indices.contains { file[$0...].starts(with: part) }, "\(word)") }
    }
  }

  @Test("hidden names reveal nothing, differ, and are the same in every process") func hiddenNames() throws {
    let name = vault.hiddenName(of: AccountID("github", "ana"))
    #expect(name.utf8.count == 32)
    #expect(Hexadecimal.decode(name) != nil)
    #expect(name == (try temporary.open(.readOnly).hiddenName(of: AccountID("github", "ana"))))
    #expect(name != vault.hiddenName(of: AccountID("github", "ben")))
    #expect(name != vault.hiddenName(of: AccountID("githuba", "na")))
    let other = try TemporaryVault()
    #expect(name != (try other.open().hiddenName(of: AccountID("github", "ana"))))
  }
}
