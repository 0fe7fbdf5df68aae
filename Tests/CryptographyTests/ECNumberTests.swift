import Testing

@testable import CredmgrCryptography

/// Signatures with libnettle, which OpenSSL verifies.
@Suite("P-256 with libnettle") struct ECNumberTests {
  /// Uses the key, the nonce and the signature of RFC 6979, A.2.5.
  @Test func signsLikeTheExample() throws {
    let key = try number("C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721")
    let nonce = try number("A6E3C57DD01ABE90086538398355DD4C3B17AA873382B0F24D6129493D8AAD60")
    #expect(
      Hexadecimal.encode(key.publicKey)
        == "60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"
        + "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299")
    #expect(
      Hexadecimal.encode(key.signature(for: Array("sample".utf8), nonce: nonce))
        == "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
        + "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8")
  }

  /// Reads the same private key in the form that libnettle signs and in the form that OpenSSL signs.
  @Test func agreesWithOpenSSL() throws {
    let bytes = try #require(
      Hexadecimal.decode("f841c1ac30a71b79ec515948e35b18870c17508c10fb344f8847b2cc519ea774"))
    let ours = try ECPrivateKey(pem: ECNumber(random: Repeated(bytes: bytes)).pem)
    let theirs = try ECPrivateKey(pem: Secret(ECKeyTests.privateKey))
    #expect(ours.publicBytes == theirs.publicBytes)
    for number in 0..<600 {
      let message = Array("message \(number)".utf8)
      let signature = try ours.signature(for: message)
      #expect(signature.count == 64)
      #expect(theirs.isValid(signature: signature, for: message))
    }
    #expect(try ours.signature(for: []) != ours.signature(for: []))
  }

  @Test func publicKeysWithLeadingZeros() throws {
    for value in 1...600 {
      let bytes = [UInt8](repeating: 0, count: 30) + [UInt8(value >> 8), UInt8(value & 0xFF)]
      let pem = try #require(ECNumber(Secret(bytes: bytes))).pem
      let key = try ECPrivateKey(pem: pem)
      let handle = try KeyHandle(pem, .p256)
      #expect(key.publicBytes == handle.publicBytes())
    }
  }

  @Test func onlyNumbersOfTheFieldAreKeys() throws {
    let order = "FFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551"
    for text in [order, String(repeating: "FF", count: 32), String(repeating: "00", count: 32), "01", ""] {
      let bytes = try #require(Hexadecimal.decode(text))
      #expect(ECNumber(Secret(bytes: bytes)) == nil, "\(text)")
    }
    _ = try number("FFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632550")
    _ = try number(String(repeating: "00", count: 31) + "01")
  }

  @Test func readsOnlyItsOwnForm() throws {
    let pem = ECNumber(random: SystemRandomSource()).pem
    #expect(ECNumber(pem: pem) != nil)
    let text = pem.reveal()
    let others = [
      "", String(text.dropLast()), text + "\n", text.replacing("EC PRIVATE", with: "EC PRIVATA"),
      text.replacing("MDEC", with: "MDAC"), text.replacing("MDEC", with: "!DEC"), ECKeyTests.privateKey,
    ]
    for other in others { #expect(ECNumber(pem: Secret(other)) == nil, "\(other.count)") }
  }

  private func number(_ text: String) throws -> ECNumber {
    let bytes = try #require(Hexadecimal.decode(text))
    return try #require(ECNumber(Secret(bytes: bytes)))
  }

  private struct Repeated: RandomSource {
    let bytes: [UInt8]
    func bytes(_ count: Int) -> [UInt8] { Array(bytes.prefix(count)) }
  }
}
