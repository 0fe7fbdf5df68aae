import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrStore
import Testing

@testable import CredmgrCredentialManager

/// Tests that no provider receives an answer meant for another (RFC 9700, 4.4), and how redirects distinguish
/// providers.
struct MixUpTests {
  private static func endpoints(_ page: String, _ token: String, _ more: String = "") -> String {
    "grant: authorization_code\nendpoints: { authorization: \"\(page)\", token: \"\(token)\" }\n\(more)"
  }

  /// Returns a fixture with an honest provider next to the tested one.
  private static func fixture(_ text: String, honest: String = "") throws -> Fixture {
    let fixture = try Fixture()
    try fixture.add(endpoints("https://honest.example/authorize", "https://honest.example/token", honest), "honest")
    try fixture.add(text)
    return fixture
  }

  private static func login(_ fixture: Fixture, issuer: String? = nil) throws -> Account {
    fixture.user.consent([("code", "code-1"), ("state", "state")] + (issuer.map { [("iss", $0)] } ?? []))
    return try fixture.login()
  }

  @Test(arguments: [
    ("https://evil.example/authorize", "https://evil.example/token", "issuer: https://honest.example"),
    ("https://evil.example/authorize", "https://evil.example/token", "issuer: https://honest.example/other"),
    ("https://honest.example/authorize", "https://evil.example/token", ""),
    ("https://honest.example/other", "https://evil.example/token", ""),
    ("https://HONEST.example:443/authorize", "https://evil.example/token", ""),
    ("https://honest.example./authorize", "https://evil.example/token", ""),
    ("https://evil.example/authorize", "https://evil.example/token", "redirect: http://127.0.0.1/callback/honest"),
    ("https://evil.example/authorize", "https://evil.example/token", "redirect: http://127.0.0.1//callback/h%6Fnest/"),
    ("https://evil.example/authorize", "https://evil.example/token", "redirect: http://127.0.0.1/callback/./honest"),
    ("https://evil.example/authorize", "https://evil.example/token", "redirect: http://127.0.0.1/callback/x/../honest"),
    ("https://evil.example/authorize", "https://evil.example/token", "redirect: http://127.0.0.1/callback/%2Fhonest"),
    ("https://evil.example/authorize", "https://evil.example/token", "redirect: http://127.0.0.1/callback%2Fhonest"),
    ("https://evil.example/authorize", "https://evil.example/token", "redirect: http://localhost/callback/%2568onest"),
    ("https://evil.example/authorize", "https://evil.example/token", "redirect: http://127.0.0.1:81/CallBack/Honest;x"),
    ("https://evil.example/authorize", "https://evil.example/token", "redirect: http://127.0.0.1/callback/honest/more"),
  ]) func aDescriptorThatBorrowsFromAnotherIsNotUsed(_ page: String, _ token: String, _ more: String) throws {
    let fixture = try Self.fixture(Self.endpoints(page, token, more), honest: "issuer: https://honest.example")
    guard case .loginsRefused(.mixUp(provider: "example", other: "honest", _))? = fixture.notices.last else {
      throw CredentialError.interrupted
    }
    let error = #expect(throws: CredentialError.self) { try fixture.login() }
    guard case .mixUp(provider: "example", other: "honest", _)? = error else { throw CredentialError.interrupted }
    #expect(fixture.user.opened.isEmpty)
  }

  /// The same server twice, and unrelated servers.
  @Test(arguments: [
    ("https://honest.example/authorize", "https://honest.example/token", "issuer: https://honest.example"),
    ("https://honest.example/other", "https://api.honest.example/token", ""),
    ("https://other.example/authorize", "https://other.example/token", "redirect: http://127.0.0.1/callback/honesty"),
    ("https://other.example/authorize", "https://other.example/token", "issuer: https://other.example"),
    ("https://other.example/authorize", "https://other.example/token", "redirect: http://127.0.0.1/callback"),
  ]) func providersBesideEachOther(_ page: String, _ token: String, _ more: String) throws {
    let fixture = try Self.fixture(
      Self.endpoints(page, token, more), honest: "issuer: https://honest.example")
    #expect(fixture.notices.isEmpty)
    fixture.http.then(.token("token-1"))
    #expect(try Self.login(fixture).credential.accessToken == Secret("token-1"))
  }

  /// Another server's code is not sent anywhere.
  @Test(arguments: ["https://honest.example", "https://example.org/shared/honest"])
  func anAnswerOfAnotherProvider(_ issuer: String) throws {
    let text = Self.endpoints("https://example.org/shared/evil/authorize", "https://honest.example/token")
    let fixture = try Self.fixture(text, honest: "issuer: https://example.org/shared/honest")
    #expect(
      throws: CredentialError.mixUp(provider: "example", other: "honest", .answer(issuer: issuer))
    ) { try Self.login(fixture, issuer: issuer) }
    #expect(fixture.http.requests.isEmpty)
    fixture.http.then(.token("token-1"))
    _ = try Self.login(fixture, issuer: "https://example.org/shared")
  }

  // MARK: Borrowed pages in a user's own file

  private static let unrelated = endpoints(
    "https://evil.example/authorize", "https://evil.example/token", "issuer: https://honest.example")

  /// An issuer elsewhere would make that server's answers count, so a login requires the user's consent.
  @Test func anIssuerElsewhereNeedsConsent() throws {
    let fixture = try Fixture()
    var seen: [NewPlace] = []
    let error = #expect(throws: CredentialError.self) { try fixture.addOwn(Self.unrelated) }
    guard case .peculiar("example", let places, true)? = error else { throw CredentialError.interrupted }
    #expect(places.map(\.kind) == [.issuer] && places[0].place?.line == 4)
    try fixture.addOwn(Self.unrelated) {
      seen = $0
      return true
    }
    #expect(seen == places)
    try fixture.addOwn(Self.unrelated, replaces: true)
    fixture.http.then(.token("token-1"))
    _ = try Self.login(fixture, issuer: "https://honest.example")
  }

  @Test func aChangeToAnIssuerElsewhere() throws {
    let fixture = try Fixture()
    try fixture.addOwn(Self.endpoints("https://evil.example/authorize", "https://evil.example/token"))
    try fixture.editOwn(Self.unrelated)
    #expect(throws: CredentialError.self) { try fixture.login() }
    #expect(fixture.user.opened.isEmpty)
  }

  @Test(arguments: [
    Self.endpoints("https://own.example/authorize", "https://own.example/token", "issuer: https://own.example/x"),
    Self.endpoints("https://login.own.example/authorize", "https://own.example/token", "issuer: https://own.example"),
    Self.endpoints("https://login.example/authorize", "https://own.example/token", "issuer: https://own.example/x"),
    "grant: client_credentials\nendpoints: { token: https://own.example/t }\nissuer: https://own.example",
  ]) func anIssuerOfItsOwn(_ text: String) throws { try Fixture().addOwn(text) }

  private static let shipped = "issuer: https://id.github.example\nhosts: [\"*.githubapi.example\"]"

  /// Shipped providers count even if they were not added.
  @Test(arguments: [
    ("https://github.example/authorize", "https://evil.example/token", ""),
    ("https://GitHub.example:443/other", "https://evil.example/token", ""),
    ("https://www.github.example/authorize", "https://evil.example/token", ""),
    ("https://evil.example/authorize", "https://evil.example/token", "issuer: https://id.github.example"),
    ("https://id.github.example/authorize", "https://evil.example/token", "issuer: https://id.github.example"),
  ]) func aShippedProviderIsNotBorrowedFrom(_ page: String, _ token: String, _ more: String) throws {
    let fixture = try Fixture()
    try fixture.ship(
      Self.endpoints(
        "https://{h}/authorize", "https://{h}/token",
        Self.shipped + "\nvariables: { h: { default: github.example }, needed: {} }\nextra_headers: { X: \"{needed}\" }"
      ), "github")
    try fixture.addOwn(Self.endpoints(page, token, more)) { _ in true }
    let error = #expect(throws: CredentialError.self) { try fixture.login() }
    guard case .mixUp(provider: "example", other: "github", _)? = error else { throw CredentialError.interrupted }
    #expect(fixture.user.opened.isEmpty)
  }

  /// Each customer of this product has a login page on a host below a common one.
  @Test func aTenantOfAShippedProvider() throws {
    let tenants = Self.endpoints(
      "https://{shop}.shops.example/authorize", "https://{shop}.shops.example/token", "variables: { shop: {} }")
    for (token, isAsked) in [("evil.example", true), ("ana.shops.example", false)] {
      let fixture = try Fixture()
      try fixture.ship(tenants, "shops")
      var asked: [NewPlace] = []
      try fixture.addOwn(Self.endpoints("https://ana.shops.example/authorize", "https://\(token)/token")) {
        asked = $0
        return true
      }
      #expect(asked.map(\.name) == (isAsked ? [token] : []))
      #expect(asked.allSatisfy { $0.kind == .borrower(owner: "shops", page: "ana.shops.example") })
      if isAsked {
        #expect(throws: CredentialError.self) { try fixture.login() }
        #expect(fixture.user.opened.isEmpty)
      }
    }
  }

  /// The user's own descriptor of the same provider, and one that extends it.
  @Test(arguments: [
    ("example", Self.endpoints("https://github.example/other", "https://api.github.example/token", Self.shipped)),
    ("github", "extends: github\nscope: [read]"), ("example", "extends: github\nscope: [read]"),
  ]) func anOwnDescriptorOfAShippedProvider(_ identifier: String, _ text: String) throws {
    let fixture = try Fixture()
    try fixture.ship(
      Self.endpoints("https://github.example/authorize", "https://github.example/token", Self.shipped), "github")
    try fixture.addOwn(text, identifier)
    #expect(fixture.notices.isEmpty)
    fixture.http.then(.token("token-1"))
    fixture.user.consent([("code", "code-1"), ("state", "state"), ("iss", "https://id.github.example")])
    _ = try fixture.source.login(identifier, LoginOptions(), user: fixture.user)
  }

  private static func honest(_ identity: String = "https://api.example/me") -> String {
    """
    grant: [authorization_code, device_code]
    endpoints:
      authorization: https://login.example/authorize
      token: https://login.example/token
      device_authorization: https://login.example/device
      identity: \(identity)
    account: name
    hosts: [api.example, "*.hosts.example"]
    """
  }

  /// Results from another provider's page may go to its endpoints. Anything else requires consent once.
  @Test(arguments: [
    (#"identity: https://evil.example/me"#, "evil.example"),
    (#"refresh: https://a.hosts.example/r"#, "a.hosts.example"),
    (#"token: https://a.hosts.example/t"#, "a.hosts.example"), (#"token: https://api.example/t"#, nil),
    (#"device_token: https://a.hosts.example/t"#, "a.hosts.example"),
    (#"identity: https://a.hosts.example/me"#, "a.hosts.example"),
    (#"revocation: https://evil.example/r"#, "evil.example"),
    (#"introspection: https://evil.example/i"#, "evil.example"),
    (#"token_exchange: https://evil.example/x"#, "evil.example"), (#"hosts: [evil.example]"#, "evil.example"),
    (#"hosts: ["*.evil.example"]"#, "*.evil.example"), (#"hosts: ["*.example"]"#, "*.example"),
    (#"hosts: ["*.hosts.example", b.hosts.example, x.login.example]"#, nil), (#"hosts: ["{v}"]"#, nil),
    (#"hosts: ["{w}"]"#, "w.example"), (#"hosts: ["{v}.evil.example"]"#, "v.example.evil.example"),
    (#"git: { hosts: [evil.example], username: x }"#, "evil.example"),
    (#"docker: { hosts: [evil.example] }"#, "evil.example"),
    (#"kubectl: { hosts: [evil.example] }"#, "evil.example"), (#"kubectl: { hosts: [api.example] }"#, nil),
  ]) func tokensOfAnotherProvidersPage(_ line: String, _ asked: String?) throws {
    let variables = "\nvariables: { v: { help: any }, w: { default: w.example } }"
    var text = Self.honest()
    if ["hosts", "git", "docker", "kubectl"].contains(where: line.hasPrefix) {
      text = text.replacing("\nhosts: [api.example, \"*.hosts.example\"]", with: "") + "\n" + line
    } else {
      let name = line.prefix { $0 != ":" }
      let lines = text.split(separator: "\n").filter { !$0.hasPrefix("  \(name):") }
      text = lines.map { $0 == "account: name" ? "  \(line)\naccount: name" : String($0) }.joined(separator: "\n")
    }
    for isShipped in [true, false] {
      let fixture = try Fixture()
      if isShipped { try fixture.ship(Self.honest(), "honest") } else { try fixture.addOwn(Self.honest(), "honest") }
      var seen: [NewPlace] = []
      func add(replaces: Bool = false) throws {
        try fixture.addOwn(text + variables, variables: ["v": "v.example"], replaces: replaces) {
          seen += $0
          return !seen.isEmpty
        }
      }
      try add()
      #expect(seen.map(\.name) == (asked.map { [$0] } ?? []))
      #expect(seen.allSatisfy { $0.kind == .borrower(owner: "honest", page: "login.example") && $0.place != nil })
      seen = []
      try add(replaces: true)
      #expect(seen.isEmpty && fixture.notices.isEmpty)
      if line.hasPrefix("token_exchange") { fixture.http.then(.token("token-0")) }
      fixture.http.then(.token("token-1"), .json("{\"name\": \"ana\"}"))
      _ = try Self.login(fixture)
    }
  }

  /// The page where users make the keys of a shipped provider, on another domain than the provider's servers.
  @Test(arguments: [("https://api.honest.example/me", true), ("https://{host}/me", false)])
  func aPageForKeysElsewhere(_ identity: String, _ isAsked: Bool) throws {
    func text(_ identity: String, _ path: String, _ more: String = "") -> String {
      """
      grant: api_key
      key: { page: "https://console.test/\(path)" }
      endpoints: { identity: "\(identity)" }
      account: name
      \(more)
      """
    }
    let fixture = try Fixture()
    try fixture.ship(text(identity, "keys", identity.contains("{") ? "variables: { host: {} }" : ""), "honest")
    for path in ["keys", "keys/", "other"] {
      var seen: [NewPlace] = []
      try fixture.addOwn(text("https://evil.test/me", path), replaces: path != "keys") {
        seen += $0
        return true
      }
      #expect(seen.map(\.name) == (isAsked && path == "keys" ? ["evil.test"] : []), "\(path)")
    }
  }

  /// The page where users register clients of a shipped provider.
  @Test(arguments: [
    ("https://login.example/apps", "https://evil.test", true),
    ("https://docs.login.example/apps", "https://evil.test", false),
    ("https://login.example/apps", "https://api.login.example", false),
    ("https://login.example/apps", "http://127.0.0.1:7000", false), ("see the manual", "https://evil.test", false),
  ]) func aPageForClients(_ page: String, _ origin: String, _ isAsked: Bool) throws {
    let fixture = try Fixture()
    try fixture.ship(Self.honest(), "honest")
    func add(replaces: Bool) throws -> [String] {
      var seen: [NewPlace] = []
      let text = Self.endpoints(origin + "/a", origin + "/t", "client: { register: \"\(page)\" }")
      try fixture.addOwn(text, replaces: replaces) {
        seen += $0
        return true
      }
      return seen.map(\.name)
    }
    #expect(try add(replaces: false) == (isAsked ? ["evil.test"] : []))
    #expect(try add(replaces: true) == [])
    // The consent is remembered.
    guard isAsked else { return }
    fixture.http.then(.token("token-1"))
    _ = try Self.login(fixture)
  }

  /// A self-hosted product whose page for keys is its documentation.
  @Test func theDocumentationOfAProduct() throws {
    let product = """
      grant: authorization_code
      variables: { host: { default: honest.example } }
      key: { page: https://docs.honest.example/tokens }
      endpoints: { authorization: "https://{host}/a", token: "https://{host}/t" }
      """
    let fixture = try Fixture()
    try fixture.ship(product, "honest")
    try fixture.addOwn("extends: honest\nvariables: { host: { default: git.corp.test } }") { places in
      Issue.record("\(places)")
      return false
    }
  }

  /// A variable for the host does not turn a service's own page into documentation.
  @Test(arguments: ["https://honest.example/keys", "https://app.honest.example/keys"])
  func thePageOfAServiceWithAVariable(_ page: String) throws {
    func text(_ host: String) -> String {
      """
      grant: api_key
      variables: { host: { default: \(host) } }
      key: { page: \(page) }
      endpoints: { identity: "https://{host}/me" }
      account: name
      """
    }
    let fixture = try Fixture()
    try fixture.ship(text("eu.app.honest.example"), "honest")
    var seen: [NewPlace] = []
    try fixture.addOwn(text("api.evil.test"), "example") {
      seen += $0
      return true
    }
    #expect(seen.map(\.name) == ["api.evil.test"])
  }

  /// The page for clients may be on a server without endpoints.
  @Test(arguments: ["https", "http"]) func aPageForClientsElsewhere(_ scheme: String) throws {
    let fixture = try Fixture()
    let client = "client: { register: \"\(scheme)://console.honest.example/apps\" }"
    try fixture.ship(Self.endpoints("https://login.other.test/a", "https://login.other.test/t", client), "honest")
    var seen: [NewPlace] = []
    try fixture.addOwn(Self.endpoints("https://evil.test/a", "https://evil.test/t", client)) {
      seen += $0
      return true
    }
    #expect(seen.map(\.name) == ["evil.test"])
  }

  /// The page for clients is no page for keys of others, and the page for keys no page for their clients.
  @Test(arguments: ["key: { page", "client: { register"]) func aPageForTheOther(_ key: String) throws {
    let fixture = try Fixture()
    let servers = Self.endpoints("https://login.other.test/a", "https://login.other.test/t")
    try fixture.ship(servers + "\(key): https://console.honest.test/apps }", "honest")
    let keys = "grant: basic\nkey: { page: https://console.honest.test/x }\nendpoints: {}\nhosts: [evil.test]"
    let clients = "client: { register: https://console.honest.test/x }"
    for text in [keys, Self.endpoints("https://evil.test/a", "https://evil.test/t", clients)] {
      var seen: [NewPlace] = []
      #expect(throws: CredentialError.self) {
        try fixture.addOwn(text) {
          seen += $0
          return false
        }
      }
      #expect(seen.map(\.name) == ["evil.test"])
    }
  }

  /// The user's own descriptors may have one page for clients, which is on none of their servers.
  @Test func aPageForClientsOfTwoOwnDescriptors() throws {
    let fixture = try Fixture()
    for name in ["a", "b"] {
      let client = "client: { register: https://portal.corp.test/apps }"
      try fixture.addOwn(Self.endpoints("https://\(name).test/a", "https://\(name).test/t", client), name) { places in
        Issue.record("\(places)")
        return false
      }
    }
  }

  /// Two shipped providers with one page for clients, of which one has variables with fixed values.
  @Test func aSharedPageForClients() throws {
    let fixture = try Fixture()
    let client = "client: { register: https://console.honest.example/apps }"
    let servers = "variables: { server: { default: login.other.test, choices: [login.other.test] } }\n"
    try fixture.ship(Self.endpoints("https://app.more.test/a", "https://app.more.test/t", client), "more")
    try fixture.ship(servers + Self.endpoints("https://{server}/a", "https://{server}/t", client), "honest")
    try fixture.addOwn("extends: honest") { places in
      Issue.record("\(places)")
      return false
    }
  }

  /// A server on this machine may play a shipped provider.
  @Test(arguments: ["example", "honest"]) func aServerOnThisMachineWithTheHostOfAnother(_ name: String) throws {
    let fixture = try Fixture()
    func text(_ origin: String) -> String {
      """
      grant: api_key
      key: { page: https://login.example/keys }
      endpoints: { identity: "\(origin)/me" }
      account: name
      git: { hosts: [login.example], username: x }
      """
    }
    try fixture.ship(text("https://login.example"), "honest")
    try fixture.addOwn(text("http://127.0.0.1:7000"), name) { places in
      Issue.record("\(places)")
      return false
    }
  }

  /// The same descriptor twice, with the user's own values for its variables.
  @Test func oneDescriptorForSeveralServers() throws {
    let fixture = try Fixture()
    let text = Self.honest() + "\ngit: { hosts: [\"git.example:{p}\"] }\nvariables: { p: { default: \"1\" } }"
    try fixture.addOwn(text, "honest") { _ in true }
    try fixture.addOwn(text, variables: ["p": "8443"])
    let other = text.replacing("default: \"1\"", with: "default: \"8444\"")
    #expect(throws: CredentialError.self) { try fixture.addOwn(other, "third") }
  }

  /// Consent for the provider's own page does not cover another provider's page.
  @Test func aChangeToAnotherProvidersPage() throws {
    let fixture = try Fixture()
    try fixture.ship(Self.honest(), "honest")
    func text(_ page: String) -> String {
      Self.endpoints(page, "https://login.example/token\", identity: \"https://evil.example/me", "account: name")
    }
    try fixture.addOwn(text("https://evil.example/a"))
    try fixture.editOwn(text("https://login.example/a"))
    let error = #expect(throws: CredentialError.self) { try fixture.login() }
    guard case .peculiar(_, let places, false)? = error else { throw CredentialError.interrupted }
    #expect(places.map(\.name) == ["evil.example"] && fixture.user.opened.isEmpty)
  }

  /// A provider with an unreadable descriptor is still protected.
  @Test func theSealedPlacesFillGapsOfTheDescriptor() throws {
    let fixture = try Fixture()
    try fixture.addOwn(Self.honest(), "honest")
    try fixture.editOwn("grant: telepathy", "honest")
    try fixture.addOwn(Self.endpoints("https://login.example/a", "https://evil.example/token")) { _ in true }
    #expect(throws: CredentialError.self) { try fixture.login() }
    #expect(fixture.notices.count == 1 && fixture.user.opened.isEmpty)
  }

  // MARK: The page for a device's code

  private static func device(_ server: String, _ more: String = "") -> String {
    "grant: device_code\nendpoints: { device_authorization: \"https://\(server)/device\", token: \"https://\(server)/token\" }\n\(more)"
  }

  private static func login(_ fixture: Fixture, page: String, complete: String? = nil) throws {
    let members = [("verification_uri", page)] + (complete.map { [("verification_uri_complete", $0)] } ?? [])
    let text = members.map { ", \"\($0.0)\": \"\($0.1)\"" }.joined()
    fixture.http.then(.json("{\"device_code\": \"D\", \"user_code\": \"U\", \"expires_in\": 60\(text)}"))
    _ = try fixture.login()
  }

  private static func expectNothingShown(_ fixture: Fixture) {
    #expect(fixture.user.opened.isEmpty && fixture.http.requests.count == 1)
    #expect(!fixture.user.steps.contains { if case .device = $0 { true } else { false } })
  }

  /// The user would enter a stranger's code on another provider's page (RFC 8628, 5.4).
  @Test(arguments: [
    "https://honest.example/device", "https://www.honest.example/d", "https://www.google.example/device",
    "https://github.example/login/device",
  ]) func aPageOfAnotherProviderIsNotShown(_ page: String) throws {
    for more in ["", "device: { hosts: [\"*.example\", \"*.google.example\", \"*.honest.example\"] }"] {
      let fixture = try Fixture()
      try fixture.add(Self.device("honest.example"), "honest")
      try fixture.add(Self.device("oauth.googleapis.example", "device: { hosts: [www.google.example] }"), "google")
      try fixture.ship(Self.device("github.example"), "github")
      try fixture.addOwn(Self.device("evil.example", more)) { _ in true }
      let error = #expect(throws: CredentialError.self) { try Self.login(fixture, page: page) }
      switch error {
      case .mixUp("example", _, .devicePage)?: #expect(!more.isEmpty)
      case .foreignDevicePage("example", _)?: #expect(more.isEmpty)
      default: Issue.record("\(String(describing: error))")
      }
      Self.expectNothingShown(fixture)
      // The page with the code is refused as well.
      #expect(throws: CredentialError.self) {
        try Self.login(fixture, page: "https://evil.example/d", complete: page + "?code=U")
      }
    }
  }

  /// A user can agree to exactly the host of another provider's page.
  @Test func aPageOfAnotherProviderThatWasAgreedTo() throws {
    let fixture = try Fixture()
    try fixture.ship(Self.device("github.example"), "github")
    let text = Self.device("own.example", "device: { hosts: [github.example] }")
    #expect(throws: CredentialError.self) { try fixture.addOwn(text) }
    try fixture.addOwn(text) { $0.map(\.kind) == [.othersDevicePage(owner: "github")] }
    fixture.http.then(
      .json(
        "{\"device_code\": \"D\", \"user_code\": \"U\", \"verification_uri\": \"https://github.example/login/device\"}"),
      .token("token-1"))
    _ = try fixture.login()
    #expect(fixture.user.opened == ["https://github.example/login/device"])
  }

  @Test(arguments: [
    ("https://own.example/d", ""), ("https://www.own.example/d", ""),
    ("https://pages.example/d", "device: { hosts: [pages.example] }"),
    ("https://a.pages.example/d", "device: { hosts: [\"*.pages.example\"] }"),
  ]) func aPageOfItsOwnIsShown(_ page: String, _ more: String) throws {
    let fixture = try Fixture.added()
    try fixture.add(Self.device("honest.example"), "honest")
    try fixture.addOwn(Self.device("own.example", more), replaces: true) { places in
      #expect(places.map(\.kind) == [.devicePage] && !more.isEmpty)
      return true
    }
    fixture.http.then(
      .json("{\"device_code\": \"D\", \"user_code\": \"U\", \"verification_uri\": \"\(page)\"}"), .token("token-1"))
    _ = try fixture.login()
    #expect(fixture.user.opened == [page])
  }

  @Test func aChangeOfTheHostsOfAPage() throws {
    let fixture = try Fixture()
    try fixture.addOwn(Self.device("own.example"))
    try fixture.editOwn(Self.device("own.example", "device: { hosts: [evil.example] }"))
    let error = #expect(throws: CredentialError.self) { try fixture.login() }
    guard case .descriptorChanged(_, _, true, let places)? = error else { throw CredentialError.interrupted }
    #expect(places.map(\.name) == ["evil.example"] && fixture.http.requests.isEmpty)
  }

  // MARK: The redirect

  @Test func anEarlierRegistrationKeepsItsRedirect() throws {
    let fixture = try Fixture.added()
    var registration = try #require(try fixture.registration())
    registration.redirect = nil
    _ = try fixture.another().accounts(.readWrite).store.apply([
      .store(registration.encoded, as: Accounts.registration("example"))
    ])
    try fixture.add(fixture.source.addition(shipped: "example", as: nil), id: nil, replaces: true)
    fixture.http.then(.token("token-1"), .identity("ana"))
    _ = try Self.login(fixture)
    #expect(try URI(parsing: #require(fixture.page[first: "redirect_uri"])).path == "/callback")
  }
}
