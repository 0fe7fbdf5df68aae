import CredmgrDescriptors
import CredmgrOAuth
import CredmgrPlatform
import Testing

@testable import CredmgrCredentialManager

/// Tests which pages for keys and clients belong to another provider, with the shipped descriptors.
struct BorrowedPageTests {
  private let fixture: Fixture
  private let source: CredentialSource
  private let library: DescriptorLibrary
  private let others: OtherProviders
  private let names: [String]

  init() throws {
    let repository = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined()
    let fixture = try Fixture()
    let home = try Home(
      environment: { $0 == "CREDMGR_HOME" ? fixture.root + "/home" : nil },
      executable: repository + "/.build/debug/credmgr", ownHome: { _ in nil })
    let source = CredentialSource(home: home, http: nil, clock: fixture.clock, random: KnownRandom())
    (self.fixture, self.source, library) = (fixture, source, home.library)
    others = try OtherProviders(source, than: "stranger", isOwn: true)
    names = try File.names(in: repository + "/providers").filter { $0.hasSuffix(".yaml") }.map {
      String($0.dropLast(".yaml".count))
    }.sorted()
  }

  /// Returns the places that need consent because another provider's page leads to them.
  private func borrowers(_ text: String, variables: [String: String]? = nil) throws -> [String] {
    let loaded = try library.load(Array("provider: stranger\n\(text)\n".utf8), name: "stranger.yaml")
    var client = Client(unregistered: loaded.descriptor)
    if let variables {
      client = try Client(descriptor: loaded.descriptor, identifier: "x", secret: nil, variables: variables)
    }
    return others.peculiarities(of: client, loaded, beyond: nil).filter(\.isBorrowed).map(\.name)
  }

  /// These programs run on any host, so their pages count as documentation.
  private static let programs = [
    "auth0", "authentik", "bluesky", "codeberg", "databricks", "databricks-oauth", "dataverse", "drone",
    "elasticsearch", "forgejo", "gitea", "home-assistant", "jenkins", "jfrog", "keycloak", "mastodon",
    "mattermost", "mattermost-oauth", "metabase-key", "n8n", "nextcloud", "okta", "okta-service", "okta-token",
    "proxmox", "qdrant", "semaphore", "snowflake", "sonarqube", "teamcity", "vault", "weaviate", "zitadel",
    "zulip",
  ]

  /// A stranger's descriptor with the page for keys of a shipped provider as its page for clients, or the reverse.
  @Test func aPageOfAnyShippedProvider() throws {
    var unknown: Set<String> = []
    for name in names {
      let descriptor = try library.load(name).descriptor
      let keys = descriptor.client.register.map { page in
        "grant: basic\nkey: { page: \"\(page)\" }\nendpoints: {}\nhosts: [evil.test]"
      }
      let clients = descriptor.key?.page.map { page in
        """
        grant: authorization_code
        endpoints: { authorization: https://evil.test/a, token: https://evil.test/t }
        client: { register: "\(page)" }
        """
      }
      for text in [keys, clients].compactMap(\.self) where text.contains("\"http") {
        if try borrowers(text) != ["evil.test"] { unknown.insert(name) }
      }
    }
    #expect(unknown.sorted() == Self.programs)
  }

  /// The keys of these two providers begin alike, and neither refuses its own.
  @Test(arguments: ["stripe-api", "clerk"]) func aBeginningThatTwoProvidersUse(_ name: String) throws {
    let loaded = try library.load(name)
    for beginning in ["sk_live_", "sk_test_"] {
      let key = beginning + String(repeating: "x", count: 24)
      #expect(throws: Never.self) { try source.requireOwnKey([key], of: loaded) }
    }
  }

  /// The user's own variant of a shipped provider.
  @Test func aVariantOfAnyShippedProvider() throws {
    for name in names {
      let descriptor = try library.load(name).descriptor
      let isAnyHost = { (variable: Variable) in variable.choices.isEmpty && variable.pattern == nil }
      let hosts = descriptor.variables.filter { $0.format == .hostname && isAnyHost($0) }
      let values = Dictionary(uniqueKeysWithValues: hosts.map { ($0.name, "sso.corp.test") })
      guard let places = try? borrowers("extends: \(name)", variables: values) else { continue }
      #expect(places == [], "\(name)")
    }
  }

  /// A shipped program with its documentation at a forge or another service.
  @Test(arguments: ["gogs", "grafana", "github-enterprise", "keycloak", "gitea"])
  func aProgramOnAnOwnHost(_ name: String) throws {
    #expect(try borrowers("extends: \(name)\nvariables: { host: { default: sso.corp.test } }") == [])
  }
}
