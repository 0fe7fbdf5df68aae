import CredmgrJSON
import Testing

@Suite struct JSONWriterTests {
  static let values: [(value: JSONValue, text: String)] = [
    (.null, "null"), (true, "true"), (.number("1.50e+3"), "1.50e+3"), ([], "[]"), ([:], "{}"),
    (["a": 1, "b": ["c", .null]], #"{"a":1,"b":["c",null]}"#), ("ä€😀/", "\"ä€😀/\""),
    ("\"\\\n\r\t\u{8}\u{0}", #""\"\\\n\r\t\u0008\u0000""#),
    // The writer escapes characters that a terminal would interpret.
    ("\u{1B}[31m\u{7F}\u{9B}", #""\u001b[31m\u007f\u009b""#),
    ("a\u{202E}b\u{200B}\u{2028}\u{E0041}\u{3164}", #""a\u202eb\u200b\u2028\udb40\udc41\u3164""#),
    (.optional(nil), "null"), (.optional("x"), "\"x\""), (.integer(-7 as Int8), "-7"),
  ]

  @Test(arguments: values) func valuesAreWritten(_ value: JSONValue, _ text: String) throws {
    #expect(value.encoded == text)
    #expect(try JSONValue.parse(Array(text.utf8)) == value)
  }

  @Test func formatsForReaders() throws {
    let value: JSONValue = ["a": 1, "b": ["c", ["d": []]], "e": [:]]
    let text = """
      {
        "a": 1,
        "b": [
          "c",
          {
            "d": []
          }
        ],
        "e": {}
      }
      """
    #expect(value.formatted == text)
    #expect(try JSONValue.parse(Array(value.formatted.utf8)) == value)
  }

  @Test func membersKeepTheirOrder() {
    let value: JSONValue = ["z": 1, "a": 2, "m": 3]
    #expect(value.encoded == #"{"z":1,"a":2,"m":3}"#)
  }
}
