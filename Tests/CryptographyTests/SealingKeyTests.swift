import CredmgrCryptography
import Testing

@Suite("Sealing") struct SealingKeyTests {
  private static func key(_ bytes: some Sequence<UInt8>) throws -> SealingKey {
    try SealingKey(Secret(bytes: Array(bytes)))
  }

  @Test("draft-irtf-cfrg-xchacha-03, appendix A.3.1") func vector() throws {
    let key = try Self.key(0x80...0x9f)
    let nonce = Array(0x40...0x57) as [UInt8]
    let data: [UInt8] = [0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7]
    let plaintext = Secret(
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
        + "sunscreen would be it.")
    let sealed = try key.seal(plaintext, associatedData: data, nonce: nonce)
    #expect(
      Hexadecimal.encode(sealed) == "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb"
        + "731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb96b72e1213b452"
        + "2f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff9"
        + "21f9664c97637da9768812f615c68b13b52e" + "c0875924c1c7987947deafd8780acf49")
    #expect(try key.open(sealed, associatedData: data, nonce: nonce) == plaintext)
  }

  @Test("only unaltered sealings open", arguments: ["", "x", "a longer plaintext of some words"])
  func alterations(_ text: String) throws {
    let key = try SealingKey(random: SystemRandomSource())
    let nonce = SystemRandomSource().bytes(24)
    let data = Array("data".utf8)
    let sealed = try key.seal(Secret(text), associatedData: data, nonce: nonce)
    #expect(sealed.count == text.utf8.count + 16)
    #expect(try key.open(sealed, associatedData: data, nonce: nonce).reveal() == text)
    for index in sealed.indices {
      var altered = sealed
      altered[index] ^= 0x10
      #expect(throws: CryptographyError.notAuthentic) { try key.open(altered, associatedData: data, nonce: nonce) }
      #expect(throws: CryptographyError.notAuthentic) {
        try key.open(Array(sealed.prefix(index)), associatedData: data, nonce: nonce)
      }
    }
    for index in nonce.indices {
      var altered = nonce
      altered[index] ^= 1
      #expect(throws: CryptographyError.notAuthentic) { try key.open(sealed, associatedData: data, nonce: altered) }
    }
    #expect(throws: CryptographyError.notAuthentic) { try key.open(sealed, associatedData: [], nonce: nonce) }
    let other = try SealingKey(random: SystemRandomSource())
    #expect(throws: CryptographyError.notAuthentic) { try other.open(sealed, associatedData: data, nonce: nonce) }
  }

  @Test("rejects wrong lengths", arguments: [0, 12, 23, 25]) func lengths(_ count: Int) throws {
    let key = try SealingKey(random: SystemRandomSource())
    let bytes = [UInt8](repeating: 0, count: count)
    let error = CryptographyError.wrongLength(expected: 24, actual: count)
    #expect(throws: error) { try key.seal(Secret("x"), associatedData: [], nonce: bytes) }
    #expect(throws: error) { try key.open(bytes, associatedData: [], nonce: bytes) }
    #expect(throws: CryptographyError.wrongLength(expected: 32, actual: count)) { try SealingKey(Secret(bytes: bytes)) }
  }

  /// Python's hashlib.blake2b and cryptography's Argon2id computed the values of this test and the next two.
  @Test("subkeys: BLAKE2b with the number as salt and the context as personalization")
  func subkeys() throws {
    let key = try Self.key(0...31)
    let subkey = try key.subkey(context: "credmgr", id: 7)
    #expect(
      Hexadecimal.encode(subkey.reveal().revealBytes())
        == "68247fe30e7aad0309c8b25cf606b80b6ff021c4a2ee7a58cdb6ca1f6a95d8ce")
    #expect(try key.subkey(context: "credmgr", id: 8).reveal() != subkey.reveal())
    #expect(try key.subkey(context: "credmgs", id: 7).reveal() != subkey.reveal())
    #expect(key.reveal().revealBytes() == Array(0...31))
    #expect(throws: CryptographyError.wrongLength(expected: 8, actual: 9)) {
      try key.subkey(context: "too long!", id: 1)
    }
  }

  @Test("keys use separate memory, even after reuse") func manyKeys() throws {
    func numbered(_ number: Int) throws -> SealingKey {
      try Self.key((0..<32).map { UInt8(truncatingIfNeeded: $0 == 0 ? number / 256 : number &+ $0) })
    }
    var keys: [Int: SealingKey] = [:]
    // More keys than a page can hold, every third of which is replaced.
    for number in 0..<500 { keys[number] = try numbered(number) }
    for number in stride(from: 0, to: 500, by: 3) { keys[number] = nil }
    for number in 500..<700 { keys[number] = try numbered(number) }
    for (number, key) in keys { #expect(key.reveal() == (try numbered(number).reveal())) }
    #expect(Set(keys.values.map { $0.keyedHash([1]) }).count == keys.count)
  }

  @Test("the keyed hash is BLAKE2b") func keyedHash() throws {
    #expect(
      Hexadecimal.encode(try Self.key(0...31).keyedHash(Array("message".utf8)))
        == "2615bcafac3ebcd31940a8f15d876916435d805823d2db78c201a8e94624a0ae")
    #expect(try Self.key(0...31).keyedHash([]).count == 32)
  }

  @Test("Argon2id of a passphrase") func passphrase() throws {
    let key = try SealingKey(
      passphrase: Secret("correct horse"), costs: PassphraseCosts(operations: 3, memory: 8 << 20), salt: Array(0...15))
    #expect(
      Hexadecimal.encode(key.reveal().revealBytes())
        == "77af1c306ae70c8ad00394b671ee364ffb2e7e12f88e5045953b12dd0ccaa9db")
    #expect(PassphraseCosts.moderate == PassphraseCosts(operations: 3, memory: 256 << 20))
  }

  @Test(
    "rejects costs that no vault uses",
    arguments: [(0, 8 << 20), (65, 8 << 20), (3, 8191), (3, 5 << 30), (.max, .max)] as [(UInt64, UInt64)])
  func costs(_ operations: UInt64, _ memory: UInt64) {
    #expect(throws: CryptographyError.costsOutOfRange) {
      try SealingKey(
        passphrase: Secret("x"), costs: PassphraseCosts(operations: operations, memory: memory), salt: Array(0...15))
    }
  }

  @Test("rejects an empty passphrase and a short salt") func emptyPassphrase() {
    let costs = PassphraseCosts(operations: 1, memory: 8192)
    #expect(throws: CryptographyError.wrongLength(expected: 1, actual: 0)) {
      try SealingKey(passphrase: Secret(""), costs: costs, salt: Array(0...15))
    }
    #expect(throws: CryptographyError.wrongLength(expected: 16, actual: 15)) {
      try SealingKey(passphrase: Secret("x"), costs: costs, salt: Array(0...14))
    }
  }

  @Test("splits and joins secrets") func parts() {
    let secret = Secret([1, 2], Secret(bytes: [3, 4, 5]))
    #expect(secret.revealBytes() == [1, 2, 3, 4, 5])
    #expect(secret[1..<3].revealBytes() == [2, 3])
    #expect(secret[4..<9].revealBytes() == [5])
    #expect(secret[7..<9].isEmpty)
  }

  @Test("random bytes have the requested length and differ each time") func random() {
    #expect(SystemRandomSource().bytes(0).isEmpty)
    #expect(SystemRandomSource().bytes(32).count == 32)
    #expect(SystemRandomSource().bytes(32) != SystemRandomSource().bytes(32))
  }
}
