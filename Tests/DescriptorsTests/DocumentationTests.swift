import Testing
import CredmgrYAML

@testable import CredmgrDescriptors

/// Checks that `docs/descriptors.md` and the decoder have the same keys and values.
@Suite struct DocumentationTests {
  static let lines: [Substring] = {
    let bytes = PackageFiles.read(PackageFiles.root + "/docs/descriptors.md") ?? []
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
  }()

  /// The backquoted texts in the first column of the tables under a heading, if its title begins with `column`.
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
    ("Grants", "grant", Grant.allCases.map(\.rawValue)), ("Legs", "leg", EndpointKind.allCases.map(\.rawValue)),
    ("Answers", "format", ResponseFormat.allCases.map(\.rawValue)),
    ("Fields", "field", ResponseField.allCases.map(\.rawValue)),
    ("Client", "authentication", ClientAuthentication.allCases.map(\.rawValue)),
    ("Variables", "format", Variable.Format.allCases.map(\.rawValue)),
    ("Templates", "name", DescriptorDecoder.takenNames),
    ("Functions", "function", Template.Function.allCases.map(\.rawValue)),
  ]

  @Test(arguments: tables)
  func theTablesMatchTheDecoder(_ heading: String, _ column: String, _ names: [String]) {
    let documented = Self.documented(heading, column)
    #expect(Set(documented) == Set(names))
    #expect(documented.count == names.count, "nothing stands twice")
  }

  /// Each row of `docs/standards.md` names tests that exist, and each row of a profile is met.
  @Test func theStandardsNameTheirTests() {
    func read(_ name: Substring) -> String? {
      ["", ".swift"].lazy.compactMap { PackageFiles.read(PackageFiles.root + "/Tests/" + name + $0) }.first
        .map { String(decoding: $0, as: UTF8.self) }
    }
    let text = String(decoding: PackageFiles.read(PackageFiles.root + "/docs/standards.md") ?? [], as: UTF8.self)
    var (heading, rows): (Substring, Int) = ("", 0)
    for line in text.split(separator: "\n") {
      if line.hasPrefix("## ") { heading = line.dropFirst(3) }
      guard line.hasPrefix("| "), !["| ---", "| section", "| server"].contains(where: line.hasPrefix),
        let cell = line.split(separator: "|").last
      else { continue }
      rows += 1
      if cell == " – " {
        #expect(!heading.hasPrefix("FAPI"), "\(line)")
        continue
      }
      let names = cell.split(separator: "`", omittingEmptySubsequences: false).enumerated()
        .filter { !$0.offset.isMultiple(of: 2) }.map(\.element)
      #expect(names.first?.contains("/") == true, "\(line)")
      var file = ""
      for name in names {
        if name.contains("/") {
          file = read(name) ?? ""
          #expect(!file.isEmpty, "\(line)")
        } else {
          #expect(["func ", "def "].contains { file.contains($0 + name + "(") }, "\(name): \(line)")
        }
      }
    }
    #expect(rows > 140)
  }

  @Test func theDocumentationNamesAllOwnedParameters() {
    func owned(_ beginning: String) -> Set<String> {
      let start = Self.lines.firstIndex { $0.hasPrefix("- **\(beginning)**") } ?? 0
      let item = Self.lines[start...].enumerated().prefix { $0.offset == 0 || $0.element.hasPrefix("  ") }
      let text = item.map(\.element).joined(separator: " ")
      let sentences = text.split(separator: ": ", maxSplits: 1).last?.prefix { $0 != "." } ?? ""
      let pieces = sentences.split(separator: "`", omittingEmptySubsequences: false).enumerated()
      return Set(pieces.filter { $0.offset % 2 == 1 }.map { $0.element.lowercased() })
    }
    #expect(owned("Owned parameters.") == OwnedParameters.all)
    #expect(owned("Owned headers.") == DescriptorDecoder.ownedHeaders)
  }

  /// The examples of the page, each of which is a complete descriptor.
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

  @Test func theDocumentationHasExamples() { #expect(Self.examples.count >= 10) }

  @Test(arguments: examples) func examplesHaveNoFindings(_ example: String) {
    let findings = PackageFiles.shippedLibrary.check(Array(example.utf8), name: "<example>").findings
    #expect(findings.isEmpty, "\(findings.map { "\($0.place.line):\($0.place.column) \($0.problem)" })")
  }

  /// Checks the links within the page.
  @Test func linksLeadToHeadings() {
    let anchors = Self.lines.filter { $0.hasPrefix("#") }.map { heading in
      heading.drop { $0 == "#" || $0 == " " }.lowercased().filter {
        $0.isLetter || $0.isNumber || $0 == " " || $0 == "-"
      }.replacing(" ", with: "-")
    }
    for line in Self.lines {
      for piece in line.split(separator: "](#").dropFirst() {
        let anchor = String(piece.prefix { $0 != ")" })
        #expect(anchors.contains(anchor), "#\(anchor)")
      }
    }
  }
}
