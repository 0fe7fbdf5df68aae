import CredmgrText
import Testing

struct TerminalSafetyTests {
  @Test(arguments: [
    ("plain\ttext\nand é, 日本, 👩‍💻", "plain\ttext\nand é, 日本, 👩\u{FFFD}💻"),
    ("\u{1B}]0;owned\u{7}", "\u{FFFD}]0;owned\u{FFFD}"),
    ("a\r\nb\rc", "a\r\nb\u{FFFD}c"), ("\u{9B}31m", "\u{FFFD}31m"),
    ("a\u{2028}b\u{FEFF}\u{61C}", "a\u{FFFD}b\u{FFFD}\u{FFFD}"),
  ]) func replacesControlCharactersInAnyPieces(_ text: String, _ shown: String) {
    let bytes = Array(text.utf8)
    for size in 1...max(bytes.count, 1) {
      var filter = TerminalFilter()
      var result: [UInt8] = []
      for start in stride(from: 0, to: bytes.count, by: size) { result += filter.shown(bytes[start...].prefix(size)) }
      result += filter.end()
      #expect(String(decoding: result, as: UTF8.self) == shown, "pieces of \(size)")
    }
  }

  @Test func invalidUTF8CausesNoDelay() {
    var filter = TerminalFilter()
    #expect(String(decoding: filter.shown([0x61, 0xFF, 0x62, 0xE2, 0x80]), as: UTF8.self) == "a\u{FFFD}b")
    #expect(String(decoding: filter.end(), as: UTF8.self) == "\u{FFFD}")
  }
}
