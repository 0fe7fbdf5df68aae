import Testing

@testable import QRCode

/// The judge reads a whole code with a program that is not ours; here is what that cannot show.
struct QRCodeTests {
  @Test func aShortTextTakesTheSmallestVersion() throws {
    let code = try #require(QRCode("https://x.org/d"))
    #expect(code.modules.count == 21)
    #expect(code.modules.allSatisfy { $0.count == 21 })
  }

  @Test(arguments: ["", "a\0b", String(repeating: "a", count: 2954)])
  func whatNoVersionHoldsHasNoCode(_ text: String) { #expect(QRCode(text) == nil) }

  @Test func theLongestTextHasOne() { #expect(QRCode(String(repeating: "a", count: 2953))?.modules.count == 177) }
}
