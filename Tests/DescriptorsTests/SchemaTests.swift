import Glibc
import CredmgrJSON
import Testing
import CredmgrText

@testable import CredmgrDescriptors

/// Checks the files generated from the table of keys: `docs/descriptor.schema.json`, and the tables of keys in
/// `docs/descriptors.md`. `CREDMGR_RECORD=1` writes them and fails.
@Suite struct SchemaTests {
  @Test func theSchemaMatchesTheKeys() {
    GeneratedFile.compare("/docs/descriptor.schema.json", DescriptorSchema().written)
  }

  @Test func theReferenceMatchesTheKeys() throws {
    let path = "/docs/descriptors.md"
    let lines = String(decoding: try #require(PackageFiles.read(PackageFiles.root + path)), as: UTF8.self)
      .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    var names: [String] = []
    var isReplaced = false
    var written: [String] = []
    for line in lines {
      isReplaced = isReplaced && line.hasPrefix("|")
      if !isReplaced { written.append(line) }
      guard line.hasPrefix("<!-- keys: ") else { continue }
      let name = String(line.dropFirst("<!-- keys: ".count).prefix { $0 != " " })
      names.append(name)
      written += Self.rows(try #require(DescriptorTables.all.first { $0.name == name }, "\(name)"))
      isReplaced = true
    }
    #expect(Set(names) == Set(DescriptorTables.all.map(\.name)))
    GeneratedFile.compare(path, written.joined(separator: "\n"))
  }

  private static func rows(_ table: TableDescription) -> [String] {
    ["| key | type | default | what it is | needed by |", "| --- | --- | --- | --- | --- |"]
      + table.keys.map { "| `\($0.name)` | \($0.type) | \($0.standard ?? "–") | \($0.meaning) | \($0.neededBy) |" }
  }

  /// The faulty descriptors of these tests whose fault a schema can detect, for the judge.
  @Test func theFaultyDescriptorsMatchTheTests() {
    let all = FindingTests.keys + FindingTests.values + FindingTests.owned
    let seen = all.filter { faulty in faulty.problems.contains(where: Self.isSeen) }
    #expect(seen.count > 20)
    let items = seen.map { JSONValue.array([.string($0.testDescription), .string(MarkedText($0.marked).text)]) }
    GeneratedFile.compare("/Tests/Judge/descriptors/faulty.json", JSONValue.array(items).written())
  }

  private static func isSeen(_ problem: Finding.Problem) -> Bool {
    switch problem {
    case .unknownKey, .missingKey, .wrongType, .unknownValue, .invalidDuration, .ownedParameter, .forbiddenHeader: true
    default: false
    }
  }
}

/// The tables in the reference.
enum DescriptorTables {
  static let all: [TableDescription] = [
    Descriptor.keys.description, Endpoint.keys(of: .token).description, ResponseRules.keys.description,
    FieldSource.keys.description, KeptField.keys.description, ElementRules.keys.description,
    ErrorRules.keys.description,
    ActiveField.keys.description,
    HeaderStyle.keys.description, ScopeRules.keys.description, AuthorizationDetailsRules.keys.description,
    ClientRules.keys.description,
    TypedKeyRules.keys.description,
    AssertionRules.keys.description, ExpiryRules.keys.description, DeviceRules.keys.description,
    OAuth1Rules.keys.description, AWS4Rules.keys.description, GitRules.keys.description, DockerRules.keys.description,
    KubectlRules.keys.description, Variable.keys.description,
  ].compactMap { $0 }
}

extension JSONValue {
  /// Readable JSON, with short values on one line.
  func written(_ indentation: String = "") -> String {
    let inner = indentation + "  "
    func block(_ open: String, _ close: String, _ texts: [String], _ space: String) -> String {
      let line = open + space + texts.joined(separator: ", ") + space + close
      if texts.isEmpty { return open + close }
      if line.utf8.count < 100, !line.contains("\n") { return line }
      return open + "\n" + texts.map { inner + $0 }.joined(separator: ",\n") + "\n" + indentation + close
    }
    return switch self {
    case .array(let items): block("[", "]", items.map { $0.written(inner) }, "")
    case .object(let members):
      block("{", "}", members.map { JSONValue.string($0.name).encoded + ": " + $0.value.written(inner) }, " ")
    default: encoded
    }
  }
}

/// The schema (JSON Schema, draft 2020-12).
struct DescriptorSchema {
  private var tables: [(name: String, schema: JSONValue)] = []

  var written: String {
    var schema = DescriptorSchema()
    let properties = schema.properties(Descriptor.keys.description)
    let legs = EndpointKind.allCases.filter { $0.leg.base == nil }.map {
      JSONValue.Member($0.rawValue, Self.reference("withURL"))
    }
    let top: JSONValue = [
      "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:credmgr:descriptor",
      "title": "A descriptor of credmgr",
      "description": "docs/descriptors.md says what each key means. null stands for a key that is not there.",
      "type": "object", "properties": properties, "additionalProperties": false, "required": ["provider"],
      "anyOf": [
        ["required": ["extends"]],
        [
          "required": ["grant", "endpoints"],
          "properties": ["endpoints": ["type": "object", "properties": .object(legs)]],
        ],
      ], "$defs": .object(Self.definitions + schema.tables.map { .init($0.name, $0.schema) }),
    ]
    return top.written() + "\n"
  }

  private static func reference(_ name: String) -> JSONValue { ["$ref": .string("#/$defs/" + name)] }

  private static func texts(_ texts: [String]) -> JSONValue { .array(texts.map(JSONValue.string)) }

  private static var definitions: [JSONValue.Member] {
    // JSON Schema's expressions cannot ignore case.
    let owned = DescriptorDecoder.ownedHeaders.sorted().map { name in
      name.map { $0.isLetter ? "[\($0.uppercased())\($0)]" : "\($0)" }.joined()
    }.joined(separator: "|")
    return [
      .init("text", ["type": ["string", "number", "boolean", "null"]]),
      .init(
        "texts",
        ["anyOf": [reference("text"), ["type": "array", "items": ["type": ["string", "number", "boolean"]]]]]),
      .init("identifier", ["type": "string", "pattern": "^[a-z0-9_][a-z0-9._-]{0,63}$"]),
      .init(
        "headerName",
        ["type": ["string", "null"], "pattern": .string("^(?!(?:\(owned))$)[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]),
      .init("headerValue", ["type": ["string", "number", "boolean", "null"], "pattern": "^[^\\x00-\\x1f\\x7f]*$"]),
      .init("withURL", ["anyOf": [["type": ["string", "null"]], ["required": ["url"]]]]),
    ]
  }

  private mutating func properties(_ table: TableDescription) -> JSONValue {
    .object(table.keys.map { .init($0.name, schema($0.shape)) })
  }

  private mutating func schema(_ shape: Shape) -> JSONValue {
    switch shape {
    case .text, .pattern("", _): return Self.reference("text")
    case .texts: return Self.reference("texts")
    case .boolean: return ["type": ["boolean", "null"]]
    case .identifier: return Self.reference("identifier")
    case .headerName: return Self.reference("headerName")
    case .headerValue: return Self.reference("headerValue")
    case .pattern(let pattern, _): return ["type": ["string", "null"], "pattern": .string(pattern)]
    case .choice(let words): return ["enum": .array(words.map(JSONValue.string) + [.null])]
    case .template(let words):
      return ["anyOf": [schema(.choice(words)), ["type": "string", "pattern": "[{]"]]]
    case .choices(let words):
      let one: JSONValue = ["enum": Self.texts(words)]
      return ["anyOf": [one, ["type": "array", "items": one], ["type": "null"]]]
    case .url(let owned):
      let pattern = "[?&](?:" + owned.sorted().joined(separator: "|") + ")(?:[=&#]|$)"
      return ["type": ["string", "null"], "not": ["type": "string", "pattern": .string(pattern)]]
    case .name(let owned): return ["not": ["enum": Self.texts(owned.sorted())]]
    case .mapping(let value, let names):
      var members: [JSONValue.Member] = [.init("type", ["object", "null"])]
      if let names { members.append(.init("propertyNames", schema(names))) }
      return .object(members + [.init("additionalProperties", schema(value))])
    case .either(let one, let other): return ["anyOf": [schema(one), schema(other)]]
    case .table(let description):
      let table = description()
      if !tables.contains(where: { $0.name == table.name }) {
        tables.append((table.name, .null))
        var members: [JSONValue.Member] = [
          .init("type", ["object", "null"]), .init("properties", properties(table)),
          .init("additionalProperties", false),
        ]
        let required = table.keys.filter(\.isRequired).map(\.name)
        // An endpoint may inherit its URL.
        if !required.isEmpty, table.short != "url" { members.append(.init("required", Self.texts(required))) }
        tables = tables.map { $0.name == table.name ? ($0.name, .object(members)) : $0 }
      }
      return Self.reference(table.name)
    }
  }
}
