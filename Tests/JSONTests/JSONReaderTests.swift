import CredmgrJSON
import Testing

@Suite struct JSONReaderTests {
  func parse(_ text: String) throws -> JSONValue { try JSONValue.parse(Array(text.utf8)) }

  static let values: [(text: String, value: JSONValue)] = [
    ("null", .null), (" true ", true), ("\tfalse\r\n", false), ("0", 0), ("-12", -12), ("\"\"", ""),
    ("[]", []), ("[ ]", []), ("{}", [:]), ("{ }", [:]),
    ("[1, \"a\", null]", [1, "a", .null]),
    ("{\"a\": {\"b\": [true]}}", ["a": ["b": [true]]]),
    ("1.50e+3", .number("1.50e+3")),
    ("123456789012345678901234567890", .number("123456789012345678901234567890")),
    (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"),
    (#""\u0041\u00e4\u20AC""#, "Aä€"),
    (#""\ud83d\ude00""#, "😀"),
    ("\"ä€😀\u{7F}\"", "ä€😀\u{7F}"),
    ("\u{FEFF}1", 1),
  ]

  @Test(arguments: values) func valuesAreRead(_ text: String, _ value: JSONValue) throws {
    #expect(try parse(text) == value)
  }

  static let faults: [(text: String, offset: Int)] = [
    ("", 0), ("  ", 2), ("nul", 3), ("True", 0), ("1 2", 2), ("[1,]", 3), ("[1 2]", 3), ("[", 1), ("{", 1),
    ("{\"a\"}", 4), ("{\"a\":}", 5), ("{\"a\":1,}", 7), ("{a:1}", 1), ("{'a':1}", 1),
    ("01", 1), ("-", 1), ("+1", 0), (".5", 0), ("1.", 2), ("1e", 2), ("NaN", 0), ("Infinity", 0), ("0x10", 1),
    ("\"a", 2), ("\"a\nb\"", 2), ("\"\u{0}\"", 1), (#""\x""#, 2), (#""\u12g4""#, 5), (#""\u12"#, 5),
    (#""\ud83d""#, 7), (#""\ude00""#, 7), (#""\ud83d\u0041""#, 13), ("// c\n1", 0), ("[1] x", 4),
    ("\u{FEFF}", 3),
  ]

  @Test(arguments: faults) func faultsHaveTheirOffset(_ text: String, _ offset: Int) throws {
    let error = try #require(throws: JSONError.self) { try parse(text) }
    #expect(error.offset == offset)
  }

  @Test(
    arguments: [[0x22, 0xFF, 0x22], [0x22, 0xC0, 0xAF, 0x22], [0xFF], [0x22, 0xED, 0xA0, 0x80, 0x22]] as [[UInt8]])
  func rejectsInvalidUTF8(_ bytes: [UInt8]) {
    #expect(throws: JSONError.self) { try JSONValue.parse(bytes) }
  }

  @Test func nestingHasALimit() throws {
    func nested(_ depth: Int) -> String { String(repeating: "[", count: depth) + String(repeating: "]", count: depth) }
    #expect(throws: Never.self) { try parse(nested(64)) }
    #expect(throws: JSONError.self) { try parse(nested(65)) }
    #expect(throws: JSONError.self) { try parse(String(repeating: "[", count: 1_000_000)) }
    #expect(throws: JSONError.self) { try parse(String(repeating: "{\"a\":", count: 1_000_000)) }
  }

  @Test func theLastOfSeveralMembersCounts() throws {
    #expect(try parse("{\"a\": 1, \"b\": 2, \"a\": 3}")["a"] == 3)
  }

  @Test func errorsContainNoText() throws {
    let error = try #require(throws: JSONError.self) { try parse("{\"access_token\": \"secret-1\" x}") }
    #expect(!"\(error)".contains("secret-1"))
  }

  @Test func accessorsDistinguishKinds() throws {
    let value = try parse("{\"s\": \"1\", \"n\": 1, \"r\": 1.5, \"l\": [1], \"big\": 99999999999999999999}")
    #expect(value["s"]?.text == "1")
    #expect(value["s"]?.integer == nil)
    #expect(value["n"]?.integer == 1)
    #expect(value["n"]?.text == nil)
    #expect(value["r"]?.integer == nil)
    #expect(value["big"]?.integer == nil)
    #expect(value["l"]?.elements == [1])
    #expect(value["none"] == nil)
    #expect(value.members?.map(\.name) == ["s", "n", "r", "l", "big"])
    #expect(value["l"]?["s"] == nil)
  }
}
