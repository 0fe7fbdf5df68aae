import Testing
import CredmgrYAML

/// A text that the parser rejects at its mark.
struct FaultyText: CustomTestStringConvertible {
  let testDescription: String
  let marked: String
  let reason: YAMLError.Reason

  init(_ description: String, _ marked: String, _ reason: YAMLError.Reason) {
    testDescription = description
    self.marked = marked
    self.reason = reason
  }
}

@Suite struct ParserTests {
  func parse(_ text: String) throws -> Node { try Node.parse(bytes: Array(text.utf8), name: "text") }

  @Test func scalarsHaveTheirTextAndPlace() throws {
    let root = try parse("a: 1\nlonger: [x, 'y', \"z\\n\"]\nblock: |\n  one\n  two\n")
    #expect(root["a"]?.text == "1")
    #expect(root["a"]?.place.line == 1)
    #expect(root["a"]?.place.column == 4)
    #expect(root["longer"]?.elements?.map(\.text) == ["x", "y", "z\n"])
    #expect(root["longer"]?.elements?.map(\.place.column) == [10, 13, 18])
    #expect(root["block"]?.text == "one\ntwo\n")
    #expect(root.entries?.map(\.key) == ["a", "longer", "block"])
    #expect(root.entries?.map(\.keyPlace.line) == [1, 2, 3])
  }

  @Test func columnsCountCharacters() throws {
    let root = try parse("größe: ünf\n")
    #expect(root["größe"]?.place.column == 8)
  }

  @Test(arguments: ["", "~", "null", "Null", "NULL"]) func nothingIsNull(_ written: String) throws {
    let value = try #require(try parse("a: \(written)\n")["a"])
    #expect(value.isNull)
    #expect(value.text == nil)
  }

  @Test func quotedWordsAreTexts() throws {
    let root = try parse("a: 'null'\nb: \"true\"\nc: ''\n")
    #expect(root["a"]?.text == "null")
    #expect(root["b"]?.boolean == nil)
    #expect(root["c"]?.text == "")
  }

  @Test(
    arguments: [("true", true), ("false", false), ("yes", nil), ("on", nil), ("True", nil), ("1", nil)]
      as [(String, Bool?)])
  func onlyTrueAndFalseAreBooleans(_ written: String, _ value: Bool?) throws {
    let node = try #require(try parse("a: \(written)\n")["a"])
    #expect(node.boolean == value)
    #expect(node.text == written)
  }

  @Test func aliasesAreCopies() throws {
    let root = try parse("a: &x {k: v}\nb: *x\nc: &y t\nd: [*y]\n")
    #expect(root["b"]?["k"]?.text == "v")
    #expect(root["b"]?["k"]?.place.line == 1)
    #expect(root["d"]?.elements?.first?.text == "t")
  }

  @Test func mergeKeysAreKeys() throws {
    let root = try parse("a: &x {k: v}\nb:\n  <<: *x\n")
    #expect(root["b"]?["k"] == nil)
    #expect(root["b"]?["<<"]?["k"]?.text == "v")
  }

  @Test func byteOrderMarksAreSkipped() throws { #expect(try parse("\u{FEFF}a: b\n")["a"]?.text == "b") }

  @Test func carriageReturnsEndLines() throws {
    let root = try parse("a: b\r\nc: d\r\n")
    #expect(root["a"]?.text == "b")
    #expect(root["c"]?.place.line == 2)
    #expect(root.place.source.line(2) == "c: d")
  }

  static let faulty: [FaultyText] = [
    FaultyText("an empty text", "‸", .empty), FaultyText("only a comment", "# nothing\n‸", .empty),
    FaultyText("a second document", "a: b\n‸---\nc: d\n", .severalDocuments),
    FaultyText("a key that is a list", "a: b\n? ‸[x]\n: c\n", .keyNotScalar),
    FaultyText("an alias without an anchor", "a: ‸*x\n", .unknownAlias("x")),
    FaultyText("an alias before its anchor", "a: ‸*x\nb: &x c\n", .unknownAlias("x")),
    FaultyText("an alias within its own anchor", "a: &x [‸*x]\n", .unknownAlias("x")),
    FaultyText("a bracket that is not closed", "a: [b\nc‸: d\n", .syntax("did not find expected ',' or ']'")),
    FaultyText(
      "a key that is not indented as the others", "a: b\n c‸: d\n",
      .syntax("mapping values are not allowed in this context")),
    FaultyText("a tab for an indentation", "a:\n‸\tb: c\n", .syntax("a tab cannot indent a line; use spaces")),
    FaultyText(
      "a tab in an indentation", "a:\n  b: c\n ‸\td: e\n", .syntax("a tab cannot indent a line; use spaces")),
    FaultyText("a quote that is not closed", "a: \"b\n‸", .syntax("found unexpected end of stream")),
    FaultyText("a bell", "ä: b\nc: ü‸\u{7}\n", .syntax("control characters are not allowed")),
  ]

  @Test(arguments: faulty) func faultsHaveTheirPlace(_ faulty: FaultyText) throws {
    let marked = MarkedText(faulty.marked)
    let error = try #require(throws: YAMLError.self) { try Node.parse(bytes: marked.bytes, name: "text") }
    #expect(error.reason == faulty.reason)
    #expect([MarkedText.Mark(line: error.place.line, column: error.place.column)] == marked.marks)
    #expect(error.place.source.name == "text")
  }

  @Test func repeatedKeysAreReportedAndTheFirstCounts() throws {
    let marked = MarkedText("a: 1\nb: {c: 2, ‸c: 3}\n‸a: 4\n‸a: 5\n")
    var duplicates: [YAMLError] = []
    let root = try Node.parse(bytes: marked.bytes, name: "text", duplicates: &duplicates)
    #expect(root["a"]?.text == "1")
    #expect(root["b"]?["c"]?.text == "2")
    #expect(
      duplicates.map(\.reason) == [
        .duplicateKey("c", firstLine: 2), .duplicateKey("a", firstLine: 1), .duplicateKey("a", firstLine: 1),
      ])
    #expect(duplicates.map { .init(line: $0.place.line, column: $0.place.column) } == marked.marks)
    #expect(throws: YAMLError.self) { try Node.parse(bytes: marked.bytes, name: "text") }
  }

  @Test(
    arguments: [[0x61, 0x3A, 0x20, 0xFF], [0xC0, 0xAF], [0x61, 0xED, 0xA0, 0x80], [0xFE, 0xFF, 0x00, 0x61]] as [[UInt8]]
  ) func rejectsInvalidUTF8(_ bytes: [UInt8]) throws {
    let error = try #require(throws: YAMLError.self) { try Node.parse(bytes: bytes, name: "text") }
    #expect(error.reason == .notUTF8)
  }

  @Test(arguments: ["\u{85}", "\u{2028}", "\u{2029}", "\r"] as [Unicode.Scalar])
  func rejectsLineBreaksThatEditorsHide(_ scalar: Unicode.Scalar) throws {
    let error = try #require(throws: YAMLError.self) { try parse("a: b\nc: d # e \(scalar)f: g") }
    #expect(error.reason == .hiddenBreak(scalar))
    #expect((error.place.line, error.place.column) == (2, 10))
  }

  /// Some editors write U+FEFF at the start.
  @Test func aByteOrderMark() throws {
    let node = try parse("\u{FEFF}a: b\nc: d")
    #expect(node["a"]?.text == "b")
    #expect(node["c"].map { [$0.place.line, $0.place.column] } == [2, 4])
    #expect(throws: YAMLError.self) { try parse("\u{FEFF}\u{FEFF}a: b\nc: d") }
  }

  // MARK: Bounds

  @Test func textsHaveALimit() throws {
    let line = "a: b #"
    let largest = line + String(repeating: "x", count: 256 * 1024 - line.utf8.count)
    #expect(try parse(largest)["a"]?.text == "b")
    let error = try #require(throws: YAMLError.self) { try parse(largest + "x") }
    #expect(error.reason == .tooLarge(bytes: 256 * 1024))
  }

  @Test func nestingHasALimit() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "[", count: depth) + "x" + String(repeating: "]", count: depth)
    }
    #expect(throws: Never.self) { try parse(nested(32)) }
    for depth in [33, 100_000] {
      let error = try #require(throws: YAMLError.self) { try parse(nested(depth)) }
      #expect(error.reason == .tooDeep(32))
    }
  }

  @Test func eachUseOfAnAliasCounts() throws {
    var bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for level in 1...9 {
      let uses = Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
      bomb += "a\(level): &a\(level) [\(uses)]\n"
    }
    let error = try #require(throws: YAMLError.self) { try parse(bomb) }
    #expect(error.reason == .tooManyNodes(20_000))
    #expect(error.place.line == 5)
  }
}

@Suite struct SourceTests {
  @Test(arguments: [(1, "a"), (2, ""), (3, "ä b"), (4, ""), (5, ""), (99, "")])
  func lineByNumber(_ number: Int, _ line: String) {
    #expect(Source(name: "text", text: "a\n\nä b\r\n").line(number) == line)
  }
}
