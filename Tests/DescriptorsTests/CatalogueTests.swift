import CredmgrYAML
import Testing

@testable import CredmgrDescriptors

/// The keys `verified` and `group`, and the page that is generated from all shipped descriptors.
@Suite struct CatalogueTests {
  @Test(arguments: ["documentation 2026-11", "live 2026-11-23", "unverified"])
  func verificationsAreRead(_ text: String) throws {
    #expect(try descriptor(sampleHead + "verified: \(text)\n").verified?.text == text)
  }

  @Test(arguments: [
    "documentation", "documentation 2026", "documentation 2026-13", "documentation 2026-1", "documentation 2026-11-02",
    "live", "live 2026-11", "live 2026-11-32", "live  2026-11-02", "live 2026-11-02 now", "live 2026-1١-02", "yes",
    "Documentation 2026-11", "documentation -026-11", "unverified 2026-11",
  ]) func otherVerificationsAreRefused(_ text: String) throws {
    let marked = MarkedText(sampleHead + "verified: ‸\(text)\n")
    let found = MemoryLibrary().library.check(marked.bytes, name: "sample.yaml").findings
    #expect(found.map(\.severity) == [.error])
    #expect(found.map { .init(line: $0.place.line, column: $0.place.column) } == marked.marks)
  }

  /// A verification is about one file.
  @Test func aVerificationIsNotInherited() throws {
    let base =
      "provider: base\ngrant: api_key\nendpoints: {}\nhosts: [a.example]\nverified: live 2026-11-23\ngroup: ai\n"
    let library = MemoryLibrary([
      "base": base, "own": "provider: own\nextends: base\nextra_headers: { A: b }\n",
      "alias": "provider: alias\nextends: base\n",
    ]).library
    #expect(try library.load("alias").descriptor.verified == .live(day: "2026-11-23"))
    #expect(try library.load("base").descriptor.verified == .live(day: "2026-11-23"))
    #expect(try library.load("own").descriptor.verified == nil)
    #expect(try library.load("own").descriptor.group == .ai)
  }

  @Test func environmentsNameTheVariablesOfPrograms() throws {
    let text =
      "provider: sample\ngrant: secrets\nendpoints: {}\nhosts: [a.example]\n"
      + "variables: { other: { at_login: true } }\nenvironment: "
    #expect(try descriptor(text + "A_API_KEY\n").environment == ["access_token": ["A_API_KEY"]])
    #expect(try descriptor(text + "{ other: A_ID }\n").environment == ["other": ["A_ID"]])
    #expect(try descriptor(text + "{ other: [A_ID, B_ID] }\n").environment == ["other": ["A_ID", "B_ID"]])
    for wrong in [
      "PATH", "LD_PRELOAD", "a_token", "TOKEN", "A-TOKEN", "{ another: A_ID }", "[A_ID]", "{ other: HOME }",
    ] {
      let found = MemoryLibrary().library.check(Array((text + wrong + "\n").utf8), name: "sample.yaml").findings
      #expect(found.contains { $0.severity == .error }, "\(wrong)")
    }
  }

  @Test func kindsAndNeedsFollowTheGrants() throws {
    func facts(_ name: String) throws -> [[String]] {
      let descriptor = try PackageFiles.shippedLibrary.load(name).descriptor
      return [descriptor.kinds, descriptor.needs]
    }
    #expect(try facts("openai") == [["API key"], ["API key"]])
    #expect(try facts("github") == [["OAuth", "API key"], ["client", "API key"]])
    #expect(try facts("mastodon") == [["OAuth"], ["nothing"]])
    #expect(try facts("twilio") == [["password"], ["password"]])
    #expect(try facts("datadog") == [["secrets"], ["secrets"]])
    #expect(try facts("flickr") == [["OAuth 1.0a"], ["client"]])
  }

  @Test func thePageOfProvidersMatchesTheDescriptors() throws {
    let all = try PackageFiles.shipped.map { try PackageFiles.shippedLibrary.load($0) }
    var text = """
      # Providers

      This page lists the providers that are built in. A test generates it from the descriptors in `providers/`, and \
      `credmgr providers`
      prints the same list.

      | column | meaning |
      | --- | --- |
      | kind | the kinds of credentials, the preferred one first |
      | to begin | the things that you need before the first login: a client that you register, a key that you make, or nothing |
      | verified | when and how the facts of the descriptor were last checked; in parentheses, the number of facts that were not found |

      """
    for group in ProviderGroup.allCases {
      let members = all.filter { ($0.descriptor.group ?? .other) == group }
      if members.isEmpty { continue }
      text +=
        "\n## \(group.title)\n\n| provider | name | kind | to begin | verified |\n| --- | --- | --- | --- | --- |\n"
      for loaded in members {
        let descriptor = loaded.descriptor
        let open = loaded.unverifiedCount == 0 ? "" : " (\(loaded.unverifiedCount))"
        let page = descriptor.key?.page ?? descriptor.client.register
        let begin = descriptor.needs.joined(separator: " or ")
        text += "| [`\(descriptor.identifier)`](../providers/\(descriptor.identifier).yaml) | \(descriptor.title) "
        text += "| \(descriptor.kinds.joined(separator: ", ")) | \(page.map { "[\(begin)](\($0))" } ?? begin) "
        text += "| \((descriptor.verified ?? .unverified).text)\(open) |\n"
      }
    }
    GeneratedFile.compare("/docs/providers.md", text)
  }
}

extension ProviderGroup {
  fileprivate var title: String {
    switch self {
    case .ai: "AI"
    case .cloud: "Cloud"
    case .forge: "Forges"
    case .packages: "Packages and containers"
    case .ci: "Continuous integration"
    case .observability: "Observability"
    case .payment: "Payment"
    case .mail: "Mail"
    case .messaging: "Messaging"
    case .crm: "Customers"
    case .storage: "Storage"
    case .identity: "Identity"
    case .data: "Data"
    case .research: "Research"
    case .other: "Other"
    }
  }
}
