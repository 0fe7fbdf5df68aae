import Testing

@testable import CredmgrHTTP

struct PercentEncodingTests {
  /// Test cases of the OAuth 1 community (section 5.1).
  @Test(arguments: [
    ("abcABC123", "abcABC123"), ("-._~", "-._~"), ("%", "%25"), ("+", "%2B"), ("&=*", "%26%3D%2A"), ("\n", "%0A"),
    (" ", "%20"), ("\u{7F}", "%7F"), ("\u{80}", "%C2%80"), ("\u{3001}", "%E3%80%81"), ("", ""), ("\0", "%00"),
  ]) func encodes(text: String, encoded: String) {
    #expect(PercentEncoding.encode(text) == encoded)
    #expect(PercentEncoding.decode(encoded, plusAsSpace: false) == text)
    #expect(PercentEncoding.decode(encoded, plusAsSpace: true) == text)
  }

  @Test(
    arguments: [
      ("a+b", false, "a+b"), ("a+b", true, "a b"), ("%2b", true, "+"), ("%c3%A9", false, "é"), ("%", false, nil),
      ("%4", false, nil), ("%zz", false, nil), ("%ff", false, nil), ("a%41", false, "aA"),
    ] as [(String, Bool, String?)]) func decodes(text: String, plusAsSpace: Bool, expected: String?)
  { #expect(PercentEncoding.decode(text, plusAsSpace: plusAsSpace) == expected) }
}

struct FormParametersTests {
  @Test(
    arguments: [
      ("", []), ("a=1&b=2", [("a", "1"), ("b", "2")]), ("name", [("name", "")]), ("name=", [("name", "")]),
      ("=v", [("", "v")]), ("a=b=c", [("a", "b=c")]), ("&&a=1&", [("a", "1")]), ("a=x+y%20z", [("a", "x y z")]),
      ("a=%&b=%4&c=%zz", [("a", "%"), ("b", "%4"), ("c", "%zz")]), ("a=%ff", [("a", "\u{FFFD}")]),
      ("z=t&z=p", [("z", "t"), ("z", "p")]), ("%61=%26", [("a", "&")]), ("a=é", [("a", "é")]),
    ] as [(String, [(String, String)])])
  func decodes(text: String, pairs: [(String, String)]) {
    let expected = pairs.map { FormParameters.Pair(name: $0.0, value: $0.1) }
    #expect(FormParameters(decoding: text).pairs == expected)
  }

  @Test(arguments: ["", "a=1&a=2", "a%20b=c%26d", "x=%E3%80%81&y="]) func parametersAreWrittenAsRead(text: String) {
    #expect(FormParameters(decoding: text).encoded == text)
  }

  @Test func looksUp() {
    var parameters: FormParameters = [("a", "1"), ("b", "2"), ("a", "3")]
    #expect(parameters[first: "a"] == "1")
    #expect(parameters[first: "A"] == nil)
    #expect(parameters.values(of: "a") == ["1", "3"])
    #expect(parameters.contains("b"))
    parameters.remove("a")
    parameters.append("c", "4")
    parameters.append(contentsOf: [("d", "5")])
    #expect(parameters == [("b", "2"), ("c", "4"), ("d", "5")])
    #expect(!parameters.isEmpty)
  }

  @Test func descriptionHidesValues() {
    let parameters: FormParameters = [("code", "secret")]
    var dumped = ""
    dump(parameters, to: &dumped)
    dump(parameters.pairs, to: &dumped)
    #expect("\(parameters)" == "FormParameters(code)")
    #expect(!(dumped + "\(parameters.pairs)" + String(reflecting: parameters.pairs)).contains("secret"))
  }
}
