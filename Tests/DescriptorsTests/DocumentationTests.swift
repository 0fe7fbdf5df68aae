import Testing
import YAML

@testable import Descriptors

/// `docs/descriptors.md` and the decoder know the same keys and values.
@Suite struct DocumentationTests {
  static let lines: [Substring] = {
    let bytes = PackageFiles.read(PackageFiles.root + "/docs/descriptors.md") ?? []
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
  }()

  /// What stands in backquotes in the first column of the tables below a heading whose head begins with `column`.
  static func documented(_ heading: String, _ column: String) -> [String] {
    var names: [String] = []
    var isThere = false
    var isTable = false
    for line in lines {
      if line.hasPrefix("#") {
        isThere = line.drop { $0 == "#" } == " " + heading
      } else if isThere, line.hasPrefix("| ") {
        let cell = line.dropFirst(2).prefix { $0 != "|" }.split(separator: " ").joined(separator: " ")
        if cell == column { isTable = true }
        if isTable, cell.hasPrefix("`"), let end = cell.dropFirst().firstIndex(of: "`") {
          names.append(String(cell[cell.index(after: cell.startIndex)..<end]))
        }
      } else if !line.hasPrefix("|") {
        isTable = false
      }
    }
    return names
  }

  static let tables: [(heading: String, column: String, names: [String])] = [
    ("Keys of a descriptor", "key", DescriptorDecoder.topKeys),
    ("Grants", "grant", Grant.allCases.map(\.rawValue)),
    ("Legs", "leg", EndpointKind.allCases.map(\.rawValue)),
    ("Keys of a leg", "key", DescriptorDecoder.endpointKeys),
    ("Answers", "key", DescriptorDecoder.responseKeys),
    ("Answers", "format", ResponseFormat.allCases.map(\.rawValue)),
    ("Fields", "field", ResponseField.allCases.map(\.rawValue)),
    ("Keys of a field", "key", DescriptorDecoder.fieldKeys),
    ("Errors", "key", DescriptorDecoder.errorKeys),
    ("Keys of active", "key", DescriptorDecoder.activeKeys),
    ("Presentation", "key", DescriptorDecoder.headerStyleKeys),
    ("Scopes", "key", DescriptorDecoder.scopeKeys),
    ("Client", "key", DescriptorDecoder.clientKeys),
    ("Client", "authentication", ClientAuthentication.allCases.map(\.rawValue)),
    ("Assertion", "key", DescriptorDecoder.assertionKeys),
    ("Expiry", "key", DescriptorDecoder.expiryKeys),
    ("Device", "key", DescriptorDecoder.deviceKeys),
    ("OAuth 1.0a", "key", DescriptorDecoder.oauth1Keys),
    ("Git", "key", DescriptorDecoder.gitKeys),
    ("Docker", "key", DescriptorDecoder.dockerKeys),
    ("Variables", "key", DescriptorDecoder.variableKeys),
    ("Variables", "format", Variable.Format.allCases.map(\.rawValue)),
    (
      "Templates", "name",
      DescriptorDecoder.engineNames + DescriptorDecoder.endpointNames + DescriptorDecoder.requestNames
    ),
    ("Functions", "function", Template.Function.allCases.map(\.rawValue)),
  ]

  @Test(arguments: tables)
  func theTablesAreWhatTheDecoderKnows(_ heading: String, _ column: String, _ names: [String]) {
    let documented = Self.documented(heading, column)
    #expect(Set(documented) == Set(names))
    #expect(documented.count == names.count, "nothing stands twice")
  }

  /// Values that stand in the row of their key.
  static let values: [(key: String, names: [String])] = [
    ("response_format", ResponseFormat.allCases.map(\.rawValue)), ("state", StateRule.allCases.map(\.rawValue)),
    ("iss", StateRule.allCases.map(\.rawValue)),
    ("pkce", PKCEMethod.allCases.map(\.rawValue)), ("send", ParameterPlacement.allCases.map(\.rawValue)),
    ("time", TimeForm.allCases.map(\.rawValue)), ("signature_method", SignatureMethod.allCases.map(\.rawValue)),
    ("transport", SignatureTransport.allCases.map(\.rawValue)),
    ("algorithm", AssertionAlgorithm.allCases.map(\.rawValue)),
    ("callback", [EndpointKind.temporaryCredentials, .authorization].map(\.rawValue)),
    ("callback_confirmed", StateRule.allCases.map(\.rawValue)), ("verifier", StateRule.allCases.map(\.rawValue)),
  ]

  @Test(arguments: values)
  func theTypeOfAKeyNamesItsValues(_ key: String, _ names: [String]) throws {
    let row = try #require(Self.lines.first { $0.hasPrefix("| `\(key)` |") })
    let type = row.split(separator: "|")[1]
    let documented = type.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter {
      $0.offset % 2 == 1
    }
    #expect(documented.map { String($0.element) } == names)
  }

  @Test func whatIsOwnedIsNamed() {
    func owned(_ beginning: String) -> Set<String> {
      let start = Self.lines.firstIndex { $0.hasPrefix("- **\(beginning)**") } ?? 0
      let item = Self.lines[start...].enumerated().prefix { $0.offset == 0 || $0.element.hasPrefix("  ") }
      let text = item.map(\.element).joined(separator: " ")
      let sentences = text.split(separator: ": ", maxSplits: 1).last?.prefix { $0 != "." } ?? ""
      let pieces = sentences.split(separator: "`", omittingEmptySubsequences: false).enumerated()
      return Set(pieces.filter { $0.offset % 2 == 1 }.map { $0.element.lowercased() })
    }
    #expect(owned("Owned parameters.") == DescriptorDecoder.ownedParameters)
    #expect(owned("Owned headers.") == DescriptorDecoder.ownedHeaders)
  }

  /// The examples of the page, each a whole descriptor.
  static let examples: [String] = {
    var examples: [String] = []
    var example: [Substring]?
    for line in lines {
      if line == "```yaml" {
        example = []
      } else if line == "```" {
        if let example { examples.append(example.joined(separator: "\n") + "\n") }
        example = nil
      } else {
        example?.append(line)
      }
    }
    return examples
  }()

  @Test func thereAreExamples() { #expect(Self.examples.count >= 10) }

  @Test(arguments: examples)
  func examplesAreWithoutFindings(_ example: String) {
    let findings = PackageFiles.shippedLibrary.check(Array(example.utf8), name: "<example>").findings
    #expect(findings.isEmpty, "\(findings.map { "\($0.place.line):\($0.place.column) \($0.problem)" })")
  }

  /// Links within the page lead somewhere.
  @Test func linksLeadToHeadings() {
    let anchors = Self.lines.filter { $0.hasPrefix("#") }.map { heading in
      heading.drop { $0 == "#" || $0 == " " }.lowercased().filter {
        $0.isLetter || $0.isNumber || $0 == " " || $0 == "-"
      }
      .replacing(" ", with: "-")
    }
    for line in Self.lines {
      for piece in line.split(separator: "](#").dropFirst() {
        let anchor = String(piece.prefix { $0 != ")" })
        #expect(anchors.contains(anchor), "#\(anchor)")
      }
    }
  }
}
