import CredmgrCryptography
import CredmgrHTTP
import CredmgrDescriptors
import Testing

@testable import CredmgrOAuth
import CredmgrText

struct DeviceAuthorizationTests {
  private static func client(_ more: String = "") throws -> Client {
    try Fixture.client(
      more, grant: "device_code", endpoints: "device_authorization: https://provider.example/device", secret: nil)
  }

  private static func device(_ members: String = "", _ more: String = "") throws -> DeviceAuthorization {
    let answer = HTTPResponse.json(
      """
      {"device_code":"D","user_code":"WDJB-MJHT","verification_uri":"https://example.com/device"\
      \(members.isEmpty ? "" : "," + members)}
      """)
    return try client(more).deviceAuthorization(answer, scope: ["a"], now: Fixture.now)
  }

  /// Matches the example of RFC 8628, 3.2.
  @Test func exampleOfTheRFC() throws {
    let device = try Self.device(
      "\"verification_uri_complete\":\"https://example.com/device?user_code=WDJB-MJHT\",\"expires_in\":1800,\"interval\":5"
    )
    #expect(device.userCode == "WDJB-MJHT")
    #expect(device.verificationURI == "https://example.com/device")
    #expect(device.verificationURIComplete == "https://example.com/device?user_code=WDJB-MJHT")
    #expect(device.polling.timeLeft(now: Fixture.now + .seconds(60)) == .seconds(1740))
    #expect(device.polling.next(now: Fixture.now) == .wait(.seconds(5)))
    let request = try Self.client().deviceTokenRequest(device, nonce: Fixture.nonce)
    #expect(
      request.form
        == "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=D&client_id=client-1")
  }

  /// RFC 8628, 5.2: anyone who sees the device code could request the token.
  @Test func theUserCodeIsNotTheDeviceCode() throws {
    let answer = "{\"device_code\":\"D\",\"user_code\":\"D\",\"verification_uri\":\"https://example.com/device\"}"
    #expect(throws: OAuthError.malformedField(.deviceAuthorization, .userCode)) {
      try Self.client().deviceAuthorization(.json(answer), scope: [], now: Fixture.now)
    }
  }

  @Test func theScopesMayBeSentAgain() throws {
    let client = try Fixture.client(
      grant: "device_code",
      endpoints: """
        device_authorization: https://provider.example/device
        device_token: { parameters: { scope: "{scope}" } }
        """, secret: nil)
    let request = try client.deviceTokenRequest(Self.device(), nonce: Fixture.nonce)
    #expect(request.form.hasSuffix("&scope=a"))
  }

  @Test func aPageFromATemplate() throws {
    let device = try Self.device("", "device: { verification_uri_complete: \"{verification_uri}?d={user_code}\" }")
    #expect(device.verificationURIComplete == "https://example.com/device?d=WDJB-MJHT")
    let ours = try Self.device("", "device: { verification_uri_complete: \"https://provider.example/d/{user_code}\" }")
    #expect(ours.verificationURIComplete == "https://provider.example/d/WDJB-MJHT")
  }

  /// The user would enter the code on a stranger's page, with whatever follows.
  @Test(arguments: [
    ("https://{host}/?c={user_code}", "https://evil.example"), ("https://{host}:8443/", "https://evil.example:8443"),
    ("https://provider.{host}/", "https://provider.evil.example"),
    ("http://127.0.0.1:{port}/{host}", "http://127.0.0.1:7003"),
  ]) func aForeignPageIsNotComposed(_ page: String, _ origin: String) throws {
    let client = try Fixture.client(
      "device: { verification_uri_complete: \"\(page)\" }\nvariables: { host: {}, port: {} }\n"
        + "extra_headers: { X: \"{host}{port}\" }", grant: "device_code",
      endpoints: "device_authorization: https://provider.example/device", secret: nil,
      variables: ["host": "evil.example", "port": "7003"])
    let answer = HTTPResponse.json(
      """
      {"device_code":"D","user_code":"U","verification_uri":"https://example.com",\
      "verification_uri_complete":"https://example.com/U"}
      """)
    #expect(throws: OAuthError.foreignPage(origin: origin)) {
      try client.deviceAuthorization(answer, scope: [], now: Fixture.now)
    }
  }

  @Test(arguments: [
    "http://example.com/d", "vscode://x/d", "javascript:alert(1)", "example.com/d", "https://u@example.com", "7", "-h",
    "file:///etc/passwd", "https://example.com/d\\u001b[31m", "https://example.com/a d",
  ]) func anInsecurePageIsRefused(_ page: String) throws {
    for field in ["verification_uri", "verification_uri_complete"] {
      var members = ["verification_uri": "https://example.com/d"]
      members[field] = page
      let text = members.map { "\"\($0)\":\"\($1)\"" }.joined(separator: ",")
      #expect(throws: OAuthError.insecurePage(try #require(ResponseField(rawValue: field)))) {
        try Self.client().deviceAuthorization(
          .json("{\"device_code\":\"D\",\"user_code\":\"U\",\(text)}"), scope: [], now: Fixture.now)
      }
    }
  }

  /// A provider on this machine has no https; another provider's page may be on another host.
  @Test(arguments: ["http://127.0.0.1:7003/d", "https://www.elsewhere.example/device?a=b#c"])
  func aPageOfTheAnswerIsShown(_ page: String) throws {
    let device = try Self.client().deviceAuthorization(
      .json("{\"device_code\":\"D\",\"user_code\":\"U\",\"verification_uri\":\"\(page)\"}"), scope: [],
      now: Fixture.now)
    #expect(device.verificationURI == page)
  }

  @Test(
    arguments: [
      ("", "", 5), ("\"interval\":7", "", 7), ("\"interval\":\"7\"", "", 7), ("", "device: { interval: 9s }", 9),
      ("\"interval\":2", "device: { interval: 9s }", 2), ("\"interval\":0", "", 1), ("\"interval\":100000", "", 300),
    ])
  func interval(_ members: String, _ more: String, _ seconds: Int64) throws {
    #expect(try Self.device(members, more).polling.next(now: Fixture.now) == .wait(.seconds(seconds)))
  }

  @Test func lifetimeWhenTheAnswerHasNone() throws {
    #expect(try Self.device().polling.timeLeft(now: Fixture.now) == .minutes(30))
  }

  @Test(
    arguments: [
      ("{\"user_code\":\"U\",\"verification_uri\":\"v\"}", ResponseField.deviceCode),
      ("{\"device_code\":\"D\",\"verification_uri\":\"v\"}", .userCode),
      ("{\"device_code\":\"D\",\"user_code\":\"U\",\"verification_url\":\"v\"}", .verificationURI),
    ])
  func missing(_ text: String, _ field: ResponseField) {
    #expect(throws: OAuthError.missingField(.deviceAuthorization, field)) {
      try Self.client().deviceAuthorization(.json(text), scope: [], now: Fixture.now)
    }
  }

  @Test(arguments: ["\"expires_in\":-1", "\"interval\":\"often\"", "\"interval\":-5"])
  func malformed(_ members: String) {
    let field: ResponseField = members.contains("interval") ? .interval : .expiresIn
    #expect(throws: OAuthError.malformedField(.deviceAuthorization, field)) { try Self.device(members) }
  }

  // MARK: Polling

  /// RFC 8628, 3.5: five more seconds from then on.
  @Test func slowDownAddsFiveSeconds() {
    var polling = DevicePolling(interval: .seconds(5), slowDown: .add(.seconds(5)), deadline: 1000)
    #expect(polling.next(now: 0) == .wait(.seconds(5)))
    polling.slowDown()
    #expect(polling.next(now: 5) == .wait(.seconds(10)))
    #expect(polling.next(now: 15) == .wait(.seconds(10)))
    polling.slowDown()
    #expect(polling.next(now: 25) == .wait(.seconds(15)))
  }

  /// Clients of L2P wait a fifth longer each time, and never less.
  @Test func slowDownMultiplies() {
    var polling = DevicePolling(interval: .seconds(5), slowDown: .multiply(120), deadline: 1000)
    var waits: [DevicePolling.Step] = []
    for _ in 0..<4 {
      polling.slowDown()
      waits.append(polling.next(now: 0))
    }
    // 6, 7.2, 8.64 and 10.36 seconds, rounded up.
    #expect(waits == [.wait(.seconds(6)), .wait(.seconds(8)), .wait(.seconds(9)), .wait(.seconds(11))])
  }

  @Test(
    arguments: [(nil, 10), (10, 10), (20, 20), (3, 10), (0, 10), (-5, 10), (301, 10), (Int64.max, 10)]
      as [(Int64?, Int64)])
  func intervalOfTheProvider(_ named: Int64?, _ seconds: Int64) {
    var polling = DevicePolling(interval: .seconds(5), slowDown: .add(.seconds(5)), deadline: 1000)
    polling.slowDown(to: named.map { .seconds($0) })
    #expect(polling.next(now: 0) == .wait(.seconds(seconds)))
  }

  @Test func expiry() {
    let polling = DevicePolling(interval: .seconds(5), slowDown: .add(.seconds(5)), deadline: 100)
    #expect(polling.next(now: 94) == .wait(.seconds(5)))
    // The next poll would be too late.
    #expect(polling.next(now: 95) == .expired)
    #expect(polling.next(now: 200) == .expired)
    #expect(polling.timeLeft(now: 200) == .zero)
  }

  @Test(arguments: [DeviceRules.SlowDown.add(.seconds(Int64.max / 2)), .multiply(1000)])
  func endlessSlowDowns(_ rule: DeviceRules.SlowDown) {
    var polling = DevicePolling(interval: .seconds(300), slowDown: rule, deadline: Moment(secondsSince1970: .max))
    for _ in 0..<100 { polling.slowDown() }
    #expect(polling.next(now: 0) == .wait(.seconds(86_400)))
  }

  // MARK: Answers

  private static func answer(_ response: HTTPResponse, _ more: String = "") throws -> DeviceAnswer {
    try client(more).deviceAnswer(response, to: device(), now: Fixture.now + .seconds(5))
  }

  @Test(
    arguments: [
      (.json("{\"error\":\"authorization_pending\"}", status: 400), "", .pending),
      (.json("{\"error\":\"authorization_pending\"}"), "", .pending),
      (.form("error=authorization_pending&error_description=x"), "response_format: form", .pending),
      (.json("{\"error\":\"slow_down\"}", status: 400), "", .slowDown(interval: nil)),
      (.json("{\"error\":\"slow_down\",\"interval\":10}", status: 400), "", .slowDown(interval: .seconds(10))),
      (.json("{\"error\":\"slow_down\",\"interval\":\"11\"}"), "", .slowDown(interval: .seconds(11))),
      (.form("error=slow_down&interval=10"), "response_format: form", .slowDown(interval: .seconds(10))),
      // Some providers send 429 or 500 to make a device wait.
      (.json("{\"error\":\"slow_down\"}", status: 429), "", .slowDown(interval: nil)),
      (.json("{\"error\":\"authorization_pending\"}", status: 500), "", .pending),
    ] as [(HTTPResponse, String, DeviceAnswer)])
  func wait(_ response: HTTPResponse, _ more: String, _ answer: DeviceAnswer) throws {
    #expect(try Self.answer(response, more) == answer)
  }

  @Test func ends() {
    #expect(throws: OAuthError.deviceCodeExpired) {
      try Self.answer(.json("{\"error\":\"expired_token\"}", status: 400))
    }
    let refusal = ErrorResponse(code: "access_denied", words: nil, status: 400)
    #expect(throws: OAuthError.refused(.deviceToken, refusal)) {
      try Self.answer(.json("{\"error\":\"access_denied\"}", status: 400))
    }
    #expect(throws: OAuthError.unavailable(.deviceToken, status: 503, words: nil, retryAfter: nil)) {
      try Self.answer(.html("later", status: 503))
    }
  }

  @Test func deviceErrorsAtAnyStatus() {
    #expect(throws: OAuthError.deviceCodeExpired) {
      try Self.answer(.json("{\"error\":\"expired_token\"}", status: 500))
    }
    #expect(throws: OAuthError.unavailable(.deviceToken, status: 429, words: "rate_limited", retryAfter: nil)) {
      try Self.answer(.json("{\"error\":\"rate_limited\"}", status: 429))
    }
  }

  @Test func credential() throws {
    guard
      case .issued(let credential, _) = try Self.answer(
        .json("{\"access_token\":\"t\",\"refresh_token\":\"r\",\"expires_in\":60}"))
    else {
      Issue.record("no credential")
      return
    }
    #expect(credential.grant == .deviceCode)
    #expect(credential.accessToken == Secret("t"))
    #expect(credential.refreshToken == Secret("r"))
    #expect(credential.expiresAt == Fixture.now + .seconds(65))
    #expect(credential.requestedScope == ["a"])
  }

  /// Tests GitHub's descriptor; ProviderAnswerTests has L2P's.
  @Test func ofTheShippedDescriptors() throws {
    let github = try Client(
      descriptor: ShippedDescriptors.load("github"), identifier: "c", secret: nil, variables: [:])
    func answer(_ form: String) throws -> DeviceAnswer {
      try github.deviceAnswer(.form(form), to: Self.device(), now: Fixture.now)
    }
    #expect(try answer("error=authorization_pending&error_uri=https%3A%2F%2Fd.example") == .pending)
    #expect(throws: OAuthError.deviceCodeExpired) { try answer("error=token_expired&error_description=x") }
  }
}
