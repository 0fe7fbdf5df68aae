import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import Testing

@testable import CredmgrCredentialManager

/// Tests where a descriptor allows credentials to go.
struct AgreementTests {
  private struct Added {
    let loaded: DescriptorLibrary.Loaded
    let client: Client
    var agreement: Agreement { Agreement(client) }

    /// Returns the places that `later` adds, as kind and name.
    func new(in later: Added, variables: [String: String] = [:], for subject: NewPlace.Kind = .tokens) -> [String] {
      agreement.newPlaces(in: later.agreement, later.loaded, variables: variables, for: subject)
        .map { "\($0.kind) \($0.name)" }
    }
  }

  private static func added(_ text: String, _ variables: [String: String] = [:]) throws -> Added {
    let text = """
      provider: example
      grant: authorization_code
      endpoints:
        authorization: https://provider.example/authorize
        token: https://provider.example/token
      \(text)

      """
    let loaded = try DescriptorLibrary(directories: [], read: { _ in nil }).load(Array(text.utf8), name: "example.yaml")
    return Added(
      loaded: loaded,
      client: try Client(descriptor: loaded.descriptor, identifier: "client-1", secret: nil, variables: variables))
  }

  private static func agreement(_ text: String, _ variables: [String: String] = [:]) throws -> Agreement {
    try added(text, variables).agreement
  }

  private static func covers(_ agreement: Agreement, _ url: String) throws -> Bool {
    agreement.covers(try URI(parsing: url), as: [.endpoints, .presented])
  }

  @Test func origins() throws {
    let agreement = try Self.agreement(
      """
      variables: { tenant: {} }
      response: { keep: [instance_url] }
      hosts: ["{tenant}.example", "{instance_url}"]
      redirect: https://elsewhere.example/callback
      git: { hosts: [git.example] }
      """, ["tenant": "one"])
    #expect(agreement.texts(.endpoints) == ["https://provider.example"])
    #expect(agreement.texts(.presented) == ["https://one.example", "{instance_url}"])
    #expect(agreement.texts(.helpers) == ["https://git.example"])
    #expect(agreement.places[.presented]?.keys.sorted() == ["{instance_url}", "{tenant}.example"])
    #expect(agreement.places[.clusters] == nil && agreement.bounds == ["instance_url": ""])
    #expect(agreement.clientIdentifier == "client-1")
    #expect(agreement.texts(.redirect) == ["https://elsewhere.example/callback"])
    #expect(Agreement(agreement.value) == agreement)
  }

  @Test(
    arguments: [
      ("hosts: [api.example]", "https://api.example/x", true),
      ("hosts: [api.example]", "https://api.example:444/", false),
      ("hosts: [api.example]", "http://api.example/", false),
      ("hosts: [\"api.example:8443\"]", "https://api.example:8443", true),
      ("hosts: [\"*.example\"]", "https://a.example/", true), ("hosts: [\"*.a.example\"]", "https://a.example/", false),
      ("hosts: [\"*.a.example\"]", "https://evil-a.example/", false),
      ("hosts: [\"127.0.0.1:8080\"]", "http://127.0.0.1:8080/", true),
      ("hosts: [\"127.0.0.1:8080\"]", "https://127.0.0.1:8080/", true),
      ("hosts: [127.0.0.1]", "http://127.0.0.1/", true),
      ("hosts: [\"{dc}.api.example\"]\nresponse: { keep: [dc] }", "https://us1.api.example/", true),
      ("hosts: [\"{dc}.api.example\"]\nresponse: { keep: [dc] }", "https://evil.example/?.api.example", false),
      ("hosts: [\"{dc}.api.example\"]\nresponse: { keep: [dc] }", "https://us1.api.example.evil.example/", false),
      ("hosts: [\"{dc}.api.example\"]\nresponse: { keep: [dc] }", "https://us1.api.example:8443/", false),
      ("hosts: [\"{base}\"]\nresponse: { keep: [base] }", "https://any.example:8443/x", true),
      ("hosts: [\"{base}\"]\nresponse: { keep: [base] }", "http://any.example/x", false),
      // Without a pattern, an answer provides one label. Variables without a value match nothing.
      ("hosts: [\"{dc}.s3.example\"]\nresponse: { keep: [dc] }", "https://evil.other.s3.example/", false),
      (bounded("[a-z]+(\\\\.[a-z]+)?"), "https://eu.west.api.example/", true),
      (bounded("us[0-9]+"), "https://eu.api.example/", false),
      ("hosts: [\"{v}.api.example\"]\nvariables: { v: { optional: true } }", "https://us1.api.example/", false),
      ("hosts: [\"{v}\"]\nvariables: { v: { optional: true } }", "https://us1.api.example/", false),
      // The pattern of a base URL limits its origin, but not its path.
      (boundedBase, "https://a.good.example/x", true), (boundedBase, "https://a.good.example:8443/rest/", false),
      (boundedBase, "https://evil.example/rest/", false), (boundedBase, "https://a.good.example.evil.example/", false),
      (
        "hosts: [\"{a || b}.{a || b}.{a || b}.{a || b}.{a || b}.{a || b}.{a || b}.example\"]\n"
          + "response: { keep: [a, b] }",
        "https://1.2.3.4.5.6.7.example/", true
      ),
    ])
  func anAgreementCoversAURL(_ text: String, _ url: String, _ isCovered: Bool) throws {
    #expect(try Self.covers(Self.agreement(text), url) == isCovered)
    #expect(try Self.covers(Self.agreement(text), "https://provider.example/other"))
    #expect(try !Self.covers(Self.agreement(""), "https://evil.example/"))
  }

  @Test func claims() throws {
    let agreement = try Self.agreement(
      """
      variables: { host: {} }
      git: { hosts: ["{host}", "gist.{host}"], username: x-access-token, ignore_username: true }
      docker: { hosts: ["registry.{host}"], username: "{account}" }
      """, ["host": "Code.example"])
    let claims = try #require(agreement.claims)
    #expect(claims.map(\.helper) == [.git, .git, .docker])
    #expect(claims.map(\.host) == ["code.example", "gist.code.example", "registry.code.example"])
    #expect(claims.map(\.username) == ["x-access-token", "x-access-token", "{account}"])
    let credential = Credential(grant: .basic, accessToken: Secret("pw"), obtainedAt: 0)
    let ana = Account(provider: "example", name: "ana", credential: credential, revision: 1)
    #expect(claims.map { $0.username(of: ana) } == ["x-access-token", "x-access-token", "ana"])
    #expect(claims.map(\.ignoresUsername) == [true, true, false])
    #expect(Agreement(agreement.value) == agreement)
    #expect(try Self.agreement("git: { hosts: [git.example] }").claims?.first?.username == "oauth2")
    #expect(try Self.agreement("").claims == [])
  }

  @Test func aPlaceWithoutConsentIsNew() throws {
    let agreed = try Self.added("")
    let later = try Self.added("git: { hosts: [git.example] }")
    #expect(agreed.new(in: later) == ["tokens git.example"])
    // git gets a token but never the client's secret.
    #expect(agreed.new(in: later, for: .secrets) == [])
    #expect(later.new(in: agreed) == [])
    #expect(agreed.new(in: try Self.added("hosts: [api.example]")) == ["tokens api.example"])
  }

  /// Returns a line for another endpoint.
  private static func other(_ endpoint: String) -> String { "  \(endpoint)" }

  private static func secret(_ key: String) -> String {
    "variables: { key: { default: x, \(key) } }\nextra_headers: { X-Key: \"{key}\" }"
  }

  private static func assertion(_ more: String) -> String {
    "client: { authentication: private_key_jwt }\n\(more)"
  }

  private static let boundedBase = """
    response: { keep: { base: { path: base, pattern: 'https://[a-z]+\\.good\\.example/rest/' } } }
    hosts: ["{base}"]
    """

  private static func page(_ text: String) -> String { "device: { verification_uri_complete: \"\(text)\" }" }

  private static func devicePage(_ text: String) -> (String, String, [String]) {
    ("", page(text), ["devicePage \(text)"])
  }

  private static func bounded(_ pattern: String) -> String {
    "response: { keep: { dc: { path: dc, pattern: \"\(pattern)\" } } }\nhosts: [\"{dc}.api.example\"]"
  }

  /// Fewer places and stricter settings are fine; a new way to leave this machine is not.
  @Test(
    arguments: [
      ("hosts: [\"*.example\"]", "hosts: [a.example, \"*.b.example\"]", []),
      ("hosts: [\"*.a.example\"]", "hosts: [\"*.example\"]", ["tokens *.example"]),
      ("hosts: [\"127.0.0.1:80\"]", "hosts: [\"127.0.0.1:81\"]", ["tokens 127.0.0.1:81"]),
      ("", "redirect: http://127.0.0.1/other", []), ("", "redirect: http://localhost:8080/", []),
      ("", "redirect: oob", []), ("", "redirect: https://evil.example/cb", ["redirect https://evil.example/cb"]),
      ("", "redirect: other.app:/cb", ["redirect other.app:/cb"]),
      (
        "", "redirect: \"{r}\"\nvariables: { r: { default: \"https://evil.example/cb\" } }",
        ["redirect https://evil.example/cb"]
      ),
      (
        "", "redirect: \"https://evil.example/{v}\"\nvariables: { v: { default: x } }",
        ["redirect https://evil.example/x"]
      ),
      ("redirect: app:/cb", "redirect: app:/cb", []), ("redirect: https://a.example/", "", []),
      ("issuer: https://provider.example", "issuer: https://other.example", ["issuer https://other.example"]),
      ("", "issuer: https://provider.example", []),
      ("issuer: https://provider.example", "", ["anyIssuer (none)"]),
      ("iss: required", "iss: optional", ["setting(\"iss\") optional"]), ("iss: optional", "iss: required", []),
      ("", "redirect: http://127.0.0.2:7999/", ["redirect http://127.0.0.2:7999/"]),
      (
        "device: { verification_uri_complete: \"{verification_uri}?c={user_code}\" }",
        "device: { verification_uri_complete: \"https://provider.example/?c={user_code}\" }",
        ["devicePage https://provider.example/?c={user_code}"]
      ),
      ("", "hosts: [\"provider.example:8443\"]", ["tokens provider.example:8443"]),
      ("", "response: { keep: [base] }\nhosts: [\"{base}\"]", ["tokens {base}"]),
      (
        "", "response: { keep: [base] }\nvariables: { o: { default: evil.example } }\nhosts: [\"{base || o}\"]",
        ["tokens evil.example", "tokens {base}"]
      ),
      // A wider or missing limit is a new place.
      (bounded("us[0-9]+"), bounded(".*"), ["tokens {dc}.api.example"]),
      (bounded("us[0-9]+"), "response: { keep: [dc] }\nhosts: [\"{dc}.api.example\"]", ["tokens {dc}.api.example"]),
      (bounded("us[0-9]+"), bounded("us[0-9]+"), []),
      (bounded("us[0-9]+"), bounded("us[0-9]+").replacing("dc", with: "Dc"), ["tokens {Dc}.api.example"]),
      (
        bounded("us[0-9]+"), bounded("us[0-9]+").replacing("{dc}", with: "{x}").replacing("dc:", with: "x:"),
        ["tokens {x}.api.example"]
      ),
      // A user's value and an answer's value are different.
      (
        "hosts: [\"{b}\"]\nvariables: { b: { optional: true } }", "hosts: [\"{b}\"]\nresponse: { keep: [b] }",
        ["tokens {b}"]
      ),
      // Variables without a value stay unfilled.
      (
        "hosts: [api.example]", "hosts: [\"{t}.example\"]\nvariables: { t: { optional: true } }", ["tokens {t}.example"]
      ),
      // Each kind has its own places.
      ("git: { hosts: [x.example] }", other("refresh: https://x.example/"), ["secrets x.example"]),
      (
        "kubectl: { hosts: ['*.x.example'] }", other("refresh: https://a.x.example/"),
        ["secrets a.x.example", "tokens any cluster"]
      ),
      ("hosts: [x.example]", other("refresh: https://x.example/\nhosts: [x.example]"), ["secrets x.example"]),
      (other("refresh: https://x.example/"), "hosts: [x.example]\ngit: { hosts: [x.example] }", []),
      ("hosts: [x.example]", "hosts: [x.example]\ndocker: { hosts: [x.example] }", []),
      ("git: { hosts: [x.example] }", "hosts: [x.example]", ["tokens x.example"]),
      ("kubectl: { hosts: [x.example] }", "", ["tokens any cluster"]),
      // Only the provider's own page with the code as its only addition needs no consent.
      ("", page("{verification_uri}?user_code={user_code}"), []),
      devicePage("https://provider.example/d?c={user_code}"),
      devicePage("https://provider.example/next/evil.example?c={user_code}"),
      devicePage("{verification_uri}?c=1&d={user_code}"),
      devicePage("{verification_uri}?c&d={user_code}"),
      devicePage("{verification_uri}?c;d={user_code}"),
      devicePage("{verification_uri}?c%26d={user_code}"),
      devicePage("{verification_uri}?#c={user_code}"),
      devicePage("{verification_uri}/x?c={user_code}"),
      devicePage("{verification_uri}?={user_code}"),
      devicePage("{verification_uri}?c={user_code}&d"),
      devicePage("{verification_uri}?c={user_code}#d"),
      ("kubectl: { hosts: [x.example] }", "kubectl: { hosts: [y.example] }", ["tokens y.example"]),
      // A secret stays secret.
      (secret("secret: true"), secret("secret: false"), ["shownSecret key"]),
      (secret("secret: false"), secret("secret: true"), []), (secret("secret: true"), "", []),
      ("extra_headers: { X: a }", "extra_headers: { X: \"{client_secret}\" }", ["shownSecret client_secret"]),
      ("extra_headers: { X: \"{client_secret}\" }", "extra_headers: { Y: \"{client_secret}\" }", []),
      (
        "variables: { key: { optional: true, secret: true } }",
        "variables: { key: { optional: true, secret: true } }\nextra_headers: { X: \"{hex(key)}\" }",
        ["shownSecret key"]
      ),
      // The audience of assertions.
      (assertion(""), assertion("issuer: https://honest.example"), ["audience https://honest.example"]),
      ("issuer: https://a.example", assertion("issuer: https://a.example"), []),
      (
        assertion(""), assertion("assertion: { claims: { aud: https://honest.example } }"),
        ["audience https://honest.example"]
      ),
      (assertion(""), assertion("assertion: { claims: { aud: null } }"), ["audience *"]),
      (assertion("issuer: https://a.example"), assertion("issuer: https://a.example"), []),
    ])
  func laterPlacesAreNew(_ before: String, _ after: String, _ new: [String]) throws {
    #expect(try Self.added(before).new(in: Self.added(after)) == new)
  }

  /// Answers override variables, so a variable's current value does not matter.
  @Test func templatesAreComparedAsWritten() throws {
    let variables = "variables: { api: { default: provider.example } }\nhosts: [\"{api}\"]"
    #expect(try Self.agreement(variables).origins == ["https://provider.example"])
    let kept = try Self.agreement(
      "variables: { x: {} }\nresponse: { keep: [a, b] }\nhosts: [\"{a || b || x}.example\"]", ["x": "v"])
    #expect(
      kept.origins
        == ["https://provider.example", "https://v.example", "https://{a}.example", "https://{b}.example"])
  }

  // MARK: Vaults of earlier versions

  private static func old(_ destinations: [String]?, _ text: String = Fixture.endpoints) throws -> Fixture {
    let fixture = try Fixture.added(text, secret: nil, credential: Fixture.credential())
    let hosts = destinations.map { ",\"destinations\":[" + $0.map { "\"\($0)\"" }.joined(separator: ",") + "]" } ?? ""
    let vault = try fixture.another().vault(.readWrite)
    try vault.apply([.store(Secret("{\"client_id\":\"client-1\"\(hosts)}"), as: Accounts.registration("example"))])
    return fixture
  }

  private static func sealed(_ fixture: Fixture) throws -> Agreement? {
    try fixture.registration()?.agreement
  }

  @Test(arguments: [nil, ["api.provider.example", "provider.example"]])
  func anEarlierVersionsAgreementIsCompletedWithinItsHosts(_ destinations: [String]?) throws {
    let fixture = try Self.old(destinations)
    _ = try fixture.another().client("example")
    let sealed = try #require(try Self.sealed(fixture))
    #expect(!sealed.isOfEarlierVersion)
    #expect(sealed.origins == ["https://api.provider.example", "https://provider.example"])
    #expect(sealed.texts(.redirect) == ["http://127.0.0.1/callback"])
    // From now on, the redirect and the page count as well.
    try fixture.ship(Fixture.endpoints + "\nredirect: https://provider.example/cb")
    #expect(throws: CredentialError.self) { try fixture.another().client("example") }
  }

  /// The previous version stored origins without templates, in two lists for all kinds.
  @Test func theLastVersionsAgreementIsCompletedWithinItsOrigins() throws {
    let text = Fixture.endpoints + "\ngit: { hosts: [git.example] }"
    func seal() throws -> Fixture {
      let fixture = try Self.old(nil, text)
      let sealed = """
        {"client_id":"client-1","agreement":{"client_id":"client-1",
        "secret_origins":["https://api.provider.example","https://provider.example"],
        "token_origins":["https://api.provider.example","https://git.example","https://provider.example"],
        "presented_origins":["https://api.provider.example"],"cluster_origins":null,
        "redirect":"http://127.0.0.1/callback","device_page":null,"issuer":null,"claims":[],"bounds":{}}}
        """
      let change = Change.store(Secret(sealed), as: Accounts.registration("example"))
      _ = try fixture.another().accounts(.readWrite).store.apply([change])
      return fixture
    }
    let fixture = try seal()
    _ = try fixture.another().client("example")
    let sealed = try #require(try Self.sealed(fixture))
    #expect(!sealed.isOfEarlierVersion && sealed.texts(.presented) == ["https://api.provider.example"])
    #expect(sealed.places[.endpoints]?["https://provider.example"] == ["https://provider.example"])
    let evil = ["refresh: https://git.example/r", "refresh: https://evil.example/r"]
    for endpoint in evil {
      let fixture = try seal()
      try fixture.ship(text.replacing("  revocation:", with: "  \(endpoint)\n  revocation:"))
      #expect(throws: CredentialError.self) { try fixture.another().client("example") }
      #expect(try Self.sealed(fixture)?.isOfEarlierVersion == true)
    }
  }

  @Test(arguments: [
    Fixture.endpoints.replacing("api.provider.example", with: "evil.example"),
    Fixture.endpoints + "\nredirect: https://evil.example/cb",
    Fixture.endpoints + "\ndevice: { verification_uri_complete: \"https://evil.example/{user_code}\" }",
  ]) func anEarlierVersionsAgreementIsNotWidened(_ text: String) throws {
    let fixture = try Self.old(["api.provider.example", "provider.example"])
    try fixture.ship(text)
    #expect(throws: CredentialError.self) { try fixture.another().client("example") }
    #expect(try Self.sealed(fixture)?.isOfEarlierVersion == true)
  }

  // MARK: Clusters

  @Test(
    arguments: [
      // Without hosts, any cluster over TLS or on this machine is allowed.
      ("", "https://k8s.example:6443", true), ("", "http://127.0.0.1:8080", true), ("", "http://k8s.example", false),
      // API hosts are allowed at any port, because cluster ports differ.
      ("hosts: [k8s.example]", "https://k8s.example:6443", true), ("hosts: [k8s.example]", "https://k8s.example", true),
      ("hosts: [k8s.example]", "https://evil.example:6443", false),
      ("hosts: [k8s.example]", "https://k8s.example.evil.example", false),
      ("hosts: [k8s.example]", "https://127.0.0.1:6443", true),
      ("hosts: ['k8s.example:6443']", "https://k8s.example:7000", false),
      // Only the declared clusters are allowed.
      ("hosts: [api.example]\nkubectl: { hosts: ['*.k8s.example'] }", "https://a.k8s.example:6443", true),
      ("hosts: [api.example]\nkubectl: { hosts: ['*.k8s.example'] }", "https://k8s.example:6443", false),
      ("hosts: [api.example]\nkubectl: { hosts: ['*.k8s.example'] }", "https://api.example", false),
      ("kubectl: { hosts: [k8s.example] }", "https://127.0.0.1:6443", false),
      ("kubectl: { hosts: [k8s.example] }", "http://k8s.example:6443", false),
    ])
  func clusters(_ more: String, _ server: String, _ isGiven: Bool) throws {
    let agreement = try Self.agreement(more)
    let sealed = try #require(Agreement(agreement.value))
    #expect(sealed == agreement)
    let uri = try URI(parsing: server)
    #expect(sealed.presents(toCluster: uri) == isGiven)
  }

  /// A secret of the protocol that this file does not know could be sent to API hosts without consent.
  @Test func everySecretOfTheProtocolIsKnown() {
    let secrets = Descriptor.secretNamesOfEngine.subtracting(["access_token", "state", "user_code", "verification_uri"])
    #expect(secrets.isSubset(of: Agreement.protocolSecrets))
  }

  /// A server that gets the client's secret must not appear as one that gets only tokens.
  @Test func aServerWithTheSecretIsShownAsSuch() {
    func place(_ kind: NewPlace.Kind, _ name: String = "e.example") -> NewPlace {
      NewPlace(kind: kind, name: name, before: [], place: nil)
    }
    var places = [place(.tokens)]
    places.add([place(.secrets), place(.tokens), place(.tokens, "f.example")])
    #expect(places == [place(.secrets), place(.tokens, "f.example")])
  }
}
