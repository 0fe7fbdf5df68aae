import CredmgrText
import Testing

struct TextSearchTests {
  @Test(arguments: [
    ("https://a", "://", 5), ("aaab", "ab", 2), ("abc", "abc", 0), ("abc", "abcd", nil), ("abc", "", nil),
    ("", "a", nil), ("a\r\nb", "\n", 2),
  ]) func firstPlace(_ text: String, _ other: String, _ offset: Int?) {
    let place = text.firstPlace(of: other)
    #expect(place.map { text.utf8.distance(from: text.utf8.startIndex, to: $0.lowerBound) } == offset)
    #expect(place.map { text[$0] == other } ?? true)
  }

  @Test(arguments: [
    ("a, b, c", ", ", ["a", "b", "c"]), (",a,", ",", ["", "a", ""]), ("a", ",", ["a"]), ("", ",", [""]),
    ("a", "", ["a"]),
  ]) func pieces(_ text: String, _ separator: String, _ expected: [String]) {
    #expect(text.pieces(separatedBy: separator).map(String.init) == expected)
  }

  @Test func replacesEachOccurrence() {
    #expect("a&b&&c".exchanging("&", for: "&amp;") == "a&amp;b&amp;&amp;c")
    #expect("aaa".exchanging("aa", for: "b") == "ba")
    #expect("abc".exchanging("x", for: "y") == "abc")
  }
}
