import CredmgrJSON
import CredmgrXML
import Testing

/// The values are those of other parsers: Python's ElementTree reads the same texts and attributes.
@Suite struct XMLDocumentTests {
  func parse(_ text: String) throws -> JSONValue { try XMLDocument.parse(Array(text.utf8)) }

  static let documents: [(text: String, value: JSONValue)] = [
    ("<a/>", ["a": ""]), ("<a> b </a>", ["a": "b"]), ("<a>b&amp;&#x63;<![CDATA[<d>]]></a>", ["a": "b&c<d>"]),
    ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- c -->\n<a><b>1</b><c>ä</c></a>\n", ["a": ["b": "1", "c": "ä"]]),
    ("<a><b>1</b><c/><b>2</b></a>", ["a": ["b": ["1", "2"], "c": ""]]),
    (
      "<x:a xmlns:x=\"urn:x\" xmlns=\"urn:y\"><x:b x:c=\"1\"/><d e=\"2\">3</d></x:a>",
      ["a": ["b": ["c": "1"], "d": "3"]]
    ),
    ("<a b=\"1\"><b>2</b>text</a>", ["a": ["b": ["1", "2"]]]),
    // Only the encoding of the bytes counts.
    ("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>ä</a>", ["a": "ä"]),
    ("<?xml version=\"1.0\" encoding=\"UTF-16\"?><a>b</a>", ["a": "b"]),
  ]

  @Test(arguments: documents) func documentsAreRead(_ text: String, _ value: JSONValue) throws {
    #expect(try parse(text) == value)
  }

  static func nested(_ depth: Int) -> String {
    String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
  }

  static let faults: [String] = [
    "", " ", "a", "<a>", "<a></b>", "<a/><b/>", "<a/>b", "<a b=c/>", "<a b='1' b='2'/>", "<a>&b;</a>", "<a>&#0;</a>",
    "<a>\u{0}</a>", "{\"a\":1}", "<!doctype html><html></html>",
    "<?xml version=\"1.0\" encoding=\"UTF-7\"?><a>+ADw-b/+AD4-</a",
  ]

  static let documentTypes: [String] = [
    // A document type of any kind, wherever it is: entities that grow, from a file, from a server, and parameters.
    "<!DOCTYPE a><a/>",
    "<!DOCTYPE a [<!ENTITY b \"bb\"><!ENTITY c \"&b;&b;&b;&b;\">]><a>&c;</a>",
    "<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/hostname\">]><a>&b;</a>",
    "<!DOCTYPE a SYSTEM \"http://127.0.0.1:9/a.dtd\"><a/>",
    "<!DOCTYPE a [<!ENTITY % b SYSTEM \"http://127.0.0.1:9/b\"> %b;]><a/>",
  ]

  @Test(arguments: faults) func faultsAreRefused(_ text: String) {
    #expect(throws: XMLError.syntax) { try parse(text) }
  }

  @Test(arguments: documentTypes) func documentTypesAreRefused(_ text: String) {
    #expect(throws: XMLError.documentType) { try parse(text) }
  }

  @Test func bytesThatAreNoText() {
    #expect(throws: XMLError.syntax) { try XMLDocument.parse(Array("<a>".utf8) + [0xFF] + Array("</a>".utf8)) }
    // UTF-16, with and without a mark.
    #expect(throws: XMLError.syntax) { try XMLDocument.parse([0xFF, 0xFE] + "<a/>".utf16.flatMap { [UInt8($0), 0] }) }
    #expect(throws: XMLError.syntax) { try XMLDocument.parse("<a/>".utf16.flatMap { [UInt8($0), 0] }) }
  }

  @Test func theBounds() throws {
    _ = try parse(Self.nested(64))
    #expect(throws: XMLError.tooDeep(levels: 64)) { try parse(Self.nested(65)) }
    let attributes = { (count: Int) in (0..<count).map { " a\($0)='>'" }.joined() }
    let decoys = "<!-- don't --><?b c='?><d><![CDATA[<e f='>]]></d>"
    #expect(throws: XMLError.tooManyAttributes(256)) { try parse("<r>\(decoys)<a\(attributes(257))/></r>") }
    #expect(try parse("<r>\(decoys)<a\(attributes(256))/></r>")["r"]?["a"]?["a255"] == ">")
    // Each element looks for its namespace among those of all elements around it.
    let around = { (levels: Int) in String(repeating: "<n\(attributes(64))>", count: levels) }
    #expect(throws: XMLError.tooManyAttributes(256)) { try parse(around(5)) }
    let beside = String(repeating: "<b\(attributes(128))/><b\(attributes(128))></b>", count: 9)
    #expect(try parse("<r>\(around(2))</n></n>\(beside)</r>")["r"]?["b"]?.elements?.count == 18)
    let long = "<a>" + String(repeating: "b", count: 1 << 20) + "</a>"
    #expect(throws: XMLError.tooLong(bytes: 1 << 20)) { try parse(long) }
    let many = "<a>" + String(repeating: "<b/>", count: 200_000) + "</a>"
    #expect(try parse(many)["a"]?["b"]?.elements?.count == 200_000)
  }

  @Test func theLibraryIsFound() { #expect(!XMLDocument.isMissing) }
}
