import CredmgrCryptography
import Testing

@Suite("Base64 and Base16") struct EncodingTests {
  @Test(
    "test vectors of RFC 4648, section 10",
    arguments: [
      ("", "", ""), ("f", "Zg==", "66"), ("fo", "Zm8=", "666f"), ("foo", "Zm9v", "666f6f"),
      ("foob", "Zm9vYg==", "666f6f62"), ("fooba", "Zm9vYmE=", "666f6f6261"), ("foobar", "Zm9vYmFy", "666f6f626172"),
    ])
  func vectors(_ plain: String, _ base64: String, _ base16: String) {
    let bytes = Array(plain.utf8)
    #expect(Base64.encode(bytes) == base64)
    #expect(Base64.decode(base64) == bytes)
    #expect(Base64.encodeURL(bytes) == String(base64.prefix { $0 != "=" }))
    #expect(Base64.decodeURL(String(base64.prefix { $0 != "=" })) == bytes)
    #expect(Hexadecimal.encode(bytes) == base16)
    #expect(Hexadecimal.decode(base16.uppercased()) == bytes)
  }

  @Test("the two alphabets differ in two characters") func alphabets() {
    #expect(Base64.encode([0xfb, 0xff, 0xfe]) == "+//+")
    #expect(Base64.encodeURL([0xfb, 0xff, 0xfe]) == "-__-")
    #expect(Base64.decode("-__-") == nil)
    #expect(Base64.decodeURL("+//+") == nil)
  }

  @Test("RFC 7636, appendix B: the challenge of the verifier") func challenge() {
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    #expect(
      Base64.encodeURL(HashAlgorithm.sha256.digest(Array(verifier.utf8)))
        == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
  }

  @Test(
    "rejects non-canonical encodings",
    arguments: ["Zg", "Zg=", "Zg===", "Zh==", "Zm9v\n", " Zm9v", "Zm9v Zm9v", "Zm9", "Z", "====", "Zm9vé"])
  func refusesBase64(_ text: String) { #expect(Base64.decode(text) == nil) }

  @Test("rejects padding with the URL alphabet", arguments: ["Zg==", "Zm8=", "Zh", "Z"])
  func refusesURL(_ text: String) { #expect(Base64.decodeURL(text) == nil) }

  @Test("rejects texts that are not hexadecimal", arguments: ["6", "666", "6g", "66 6f", "é9"])
  func refusesHexadecimal(_ text: String) { #expect(Hexadecimal.decode(text) == nil) }

  @Test("every byte is decoded unchanged") func roundTrip() {
    let bytes = Array(UInt8.min...UInt8.max)
    #expect(Base64.decode(Base64.encode(bytes)) == bytes)
    #expect(Base64.decodeURL(Base64.encodeURL(bytes)) == bytes)
    #expect(Hexadecimal.decode(Hexadecimal.encode(bytes)) == bytes)
  }
}
