import CredmgrCryptography
import Testing

@Suite("Secret")
struct SecretTests {
  @Test("returns its bytes unchanged", arguments: ["", "a", "ghp_0123456789", "ключ🔑"])
  func reveals(_ text: String) {
    let secret = Secret(text)
    #expect(secret.reveal() == text)
    #expect(secret.revealBytes() == Array(text.utf8))
    #expect(secret.count == text.utf8.count)
    #expect(secret.isEmpty == text.isEmpty)
  }

  @Test("repairs invalid UTF-8 in the text, but not in the bytes") func repairs() {
    let secret = Secret(bytes: [0x61, 0xff])
    #expect(secret.reveal() == "a\u{FFFD}")
    #expect(secret.revealBytes() == [0x61, 0xff])
  }

  @Test("prints as nothing") func silent() {
    let secret = Secret("hunter2")
    struct Holder { let token: Secret }
    var dumped = ""
    dump(Holder(token: secret), to: &dumped)
    #expect("\(secret)" == "")
    #expect(String(reflecting: secret) == "")
    #expect(Mirror(reflecting: secret).children.isEmpty)
    #expect(!dumped.contains("hunter2"))
    #expect(!"\(Holder(token: secret)) \([secret]) \(Optional(secret) as Any)".contains("hunter2"))
  }

  @Test("compares all bytes") func compares() {
    #expect(Secret("token") == Secret("token"))
    #expect(Secret("") == Secret(bytes: []))
    #expect(Secret("token") != Secret("tokem"))
    #expect(Secret("token") != Secret("toke"))
    #expect(Secret("token") != Secret("uoken"))
  }

  @Test("a revealed array outlives its secret") func outlives() {
    var secret: Secret? = Secret("token")
    let bytes = secret?.revealBytes()
    secret = nil
    #expect(bytes == Array("token".utf8))
    let source = Array("source".utf8)
    secret = Secret(bytes: source)
    secret = nil
    #expect(source == Array("source".utf8))
  }

  @Test("constant-time comparison checks the length and every byte") func constantTime() {
    #expect(constantTimeEqual([], []))
    #expect(constantTimeEqual("état", "état"))
    #expect(!constantTimeEqual("\u{E9}", "e\u{301}"))
    #expect(!constantTimeEqual([1, 2, 3], [1, 2]))
    #expect(!constantTimeEqual([1, 2, 3], [1, 2, 4]))
  }
}
