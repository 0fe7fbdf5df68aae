import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import Testing

@testable import CredmgrOAuth

/// Tests that a provider's answer cannot choose a host beyond the descriptor's limits.
struct KeptValueTests {
  private static let bounded = """
    response: { keep: { dc: { path: dc, pattern: "us[0-9]+" } } }
    hosts: ["{dc}.api.example"]
    """
  private static let unbounded = "response: { keep: [dc] }\nhosts: [\"{dc}.api.example\"]"

  /// These texts are not names of data centers.
  static let attacks = [
    "https://attacker.example/?", "https://attacker.example/", "attacker.example/", "attacker.example:443", "x@y", "*",
    ".attacker", "us1/..", "us1\\n", "us1?", "us1#",
  ]

  private static func token(_ dc: String, _ more: String = "") -> HTTPResponse {
    .json("{\"access_token\":\"t\",\"dc\":\"\(dc)\"\(more)}")
  }

  private static func credential(_ response: HTTPResponse, _ rules: String) throws -> Credential {
    try Fixture.client(rules).outcome(response, .token, grant: .authorizationCode, scope: [], now: Fixture.now).issued()
      .credential
  }

  @Test(arguments: attacks) func aTokenAnswerDoesNotChooseAnotherHost(_ value: String) throws {
    for rules in [Self.bounded, Self.unbounded] {
      #expect(throws: OAuthError.valueOutOfBounds(.token, name: "dc")) { try Self.credential(Self.token(value), rules) }
    }
  }

  @Test func aPatternBoundsTheAnswer() throws {
    for value in ["eu1", "attacker", "us1.attacker", "us", "US1"] {
      #expect(throws: OAuthError.valueOutOfBounds(.token, name: "dc")) {
        try Self.credential(Self.token(value), Self.bounded)
      }
    }
    let client = try Fixture.client(Self.bounded)
    let credential = try Self.credential(Self.token("us12"), Self.bounded)
    #expect(client.hosts(for: credential) == ["us12.api.example"])
    #expect(client.presents(credential, to: try URI(parsing: "https://us12.api.example/x")))
    #expect(!client.presents(credential, to: try URI(parsing: "https://us1.api.example/x")))
    // Without a pattern, any single label is valid.
    #expect(try Self.credential(Self.token("eu"), Self.unbounded).kept == ["dc": "eu"])
    // A missing value is not limited.
    #expect(try Self.credential(.json("{\"access_token\":\"t\"}"), Self.bounded).kept.isEmpty)
  }

  @Test func aDevicesTokenAnswerIsBounded() throws {
    let client = try Fixture.client(
      Self.bounded, grant: "device_code", endpoints: "device_authorization: https://provider.example/d")
    let device = try client.deviceAuthorization(
      .json("{\"device_code\":\"D\",\"user_code\":\"U\",\"verification_uri\":\"https://provider.example/d\"}"),
      scope: [], now: Fixture.now)
    #expect(throws: OAuthError.valueOutOfBounds(.deviceToken, name: "dc")) {
      try client.deviceAnswer(Self.token("x/"), to: device, now: Fixture.now)
    }
    guard case .issued(let credential, _) = try client.deviceAnswer(Self.token("us1"), to: device, now: Fixture.now)
    else { return #expect(Bool(false)) }
    #expect(credential.kept == ["dc": "us1"])
  }

  @Test(arguments: [Grant.authorizationCode, .implicit]) func aRedirectIsBounded(_ grant: Grant) throws {
    let client = try Fixture.client(
      "hosts: [\"{dc}.api.example\"]\nresponse: { keep: { dc: { path: dc, pattern: \"us[0-9]+\" } } }")
    let request = try client.authorizationRequest(
      grant, redirectURI: "http://127.0.0.1:8080/callback", scope: [], random: KnownRandom(), nonce: Fixture.nonce)
    func answer(_ dc: String) throws -> AuthorizationResponse {
      try client.authorizationResponse(
        [("code", "c"), ("access_token", "t"), ("state", request.state), ("dc", dc)], to: request)
    }
    for value in ["https://attacker.example/?", "eu1"] {
      #expect(throws: OAuthError.valueOutOfBounds(.authorization, name: "dc")) { try answer(value) }
    }
    #expect(try answer("us7").answer.kept == ["dc": "us7"])
  }

  @Test func anIdentityIsBounded() throws {
    let client = try Fixture.client(
      "account: name\nhosts: [\"{url}\"]",
      endpoints: """
        identity:
          url: https://provider.example/me
          response: { keep: { url: { path: url, pattern: "https://[a-z]+[.]api[.]example" } } }
        """)
    for value in ["https://attacker.example", "https://a.api.example.attacker.example", "http://a.api.example"] {
      #expect(throws: OAuthError.valueOutOfBounds(.identity, name: "url")) {
        try client.identity(.json("{\"name\":\"ana\",\"url\":\"\(value)\"}"))
      }
    }
    let found = try client.identity(.json("{\"name\":\"ana\",\"url\":\"https://a.api.example\"}"))
    #expect(found.name == "ana" && found.kept == ["url": "https://a.api.example"])
  }

  /// A rotated refresh token is stored anyway, and earlier kept values stay.
  @Test func aRefreshIsBounded() throws {
    let client = try Fixture.client(Self.bounded)
    var previous = Fixture.credential()
    previous.refreshToken = Secret("refresh-1")
    previous.kept["dc"] = "us1"
    let error = OAuthError.valueOutOfBounds(.refresh, name: "dc")
    func outcome(_ dc: String, _ more: String = "") -> TokenOutcome {
      client.outcome(Self.token(dc, more), .refresh, refreshing: previous, now: Fixture.now)
    }
    #expect(outcome("attacker.example/") == .failed(error))
    var rotated = previous
    rotated.refreshToken = Secret("refresh-2")
    #expect(outcome("attacker.example/", ",\"refresh_token\":\"refresh-2\"") == .rotated(rotated, error))
    guard case .issued(let issued, _) = outcome("us2") else { return #expect(Bool(false)) }
    #expect(issued.kept == ["dc": "us2"])
  }

  /// The value is from an earlier version or an import.
  @Test(arguments: attacks + ["eu1"]) func storedValuesAreBounded(_ value: String) throws {
    let client = try Fixture.client(Self.bounded, endpoints: "refresh: https://{dc}.login.example/t")
    var credential = Fixture.credential()
    credential.refreshToken = Secret("refresh-1")
    credential.kept["dc"] = value
    #expect(client.hosts(for: credential).isEmpty)
    #expect(!client.presents(credential, to: try URI(parsing: "https://attacker.example/")))
    #expect(throws: OAuthError.missingValue(.refresh, name: "dc")) {
      try client.refreshRequest(credential, nonce: Fixture.nonce)
    }
    credential.kept["dc"] = "us1"
    #expect(try client.refreshRequest(credential, nonce: Fixture.nonce).uri.host == "us1.login.example")
  }

  /// A whole URL is valid only for an entry that is a single variable.
  @Test func onlyAWholeEntryIsAURL() throws {
    let client = try Fixture.client("response: { keep: [url] }\nhosts: [\"{url}\"]")
    var credential = Fixture.credential()
    for url in ["https://a.example/base", "https://a.example", "a.example"] {
      credential.kept["url"] = url
      #expect(client.hosts(for: credential) == ["a.example"])
    }
    for url in [
      "http://a.example", "https://a.example?x", "https://a.example/#x", "https://u@a.example", "*.a.example",
    ] {
      credential.kept["url"] = url
      #expect(client.hosts(for: credential).isEmpty, "\(url)")
    }
  }

  /// A variable's invalid value is refused before anything is sent.
  @Test func aVariableInAHostMustFitTheHost() throws {
    func client(_ hosts: String, _ value: String) throws -> Client {
      try Fixture.client("variables: { x: {} }\nhosts: [\"\(hosts)\"]", variables: ["x": value])
    }
    for (hosts, value) in [
      ("{x}.a.example", "https://evil.example/?"), ("{x}.a.example", "evil.example/"), ("*.{x}", "com"),
      ("{x}", "*.com"),
      ("{x}", "http://a.example"), ("127.0.0.1:{x}", "99999"),
    ] {
      #expect(throws: ProviderError.self, "\(hosts) \(value)") { try client(hosts, value) }
    }
    for (hosts, value, host) in [
      ("{x}.a.example", "us1", "us1.a.example"), ("api.{x}", "a.example:8443", "api.a.example:8443"),
      ("*.{x}", "a.example", "*.a.example"), ("{x}", "https://a.example/base", "a.example"),
      ("127.0.0.1:{x}", "8080", "127.0.0.1:8080"),
    ] { #expect(try client(hosts, value).hosts(for: Fixture.credential()) == [host]) }
  }

  /// A value that is too long causes an error instead of being left out.
  @Test func aTooLongValueIsReported() throws {
    let half = String(repeating: "a", count: 40_000)
    let endpoints = """
      device_authorization:
        url: https://provider.example/d
        parameters: { x: "{v}{v}" }
      """
    func request(_ endpoints: String, _ value: String) throws -> HTTPRequest {
      try Fixture.client("variables: { v: {} }", grant: "device_code", endpoints: endpoints, variables: ["v": value])
        .deviceAuthorizationRequest(scope: [], nonce: Fixture.nonce)
    }
    #expect(throws: OAuthError.computedValueTooLong(.deviceAuthorization, name: "x")) { try request(endpoints, half) }
    let headers = endpoints.replacing("parameters: { x", with: "headers: { X-V")
    #expect(throws: OAuthError.computedValueTooLong(.deviceAuthorization, name: "X-V")) { try request(headers, half) }
    #expect(try request(endpoints, "ab").form.hasPrefix("x=abab"))
    let many = (1...20).map { "x\($0): \"{v}\"" }.joined(separator: ", ")
    let all = endpoints.replacing("x: \"{v}{v}\"", with: many)
    #expect(throws: OAuthError.computedValueTooLong(.deviceAuthorization, name: "x18")) {
      try request(all, half + half.prefix(20_000))
    }
    #expect(try request(all, half).form.count > 800_000)
    #expect(try request(headers, "ab").fields["X-V"] == "abab")
  }
}
