import CredmgrDescriptors
import Testing

/// Tests for values visible outside the provider's endpoints: pages, redirects, issuers, hosts and user names.
struct SecretAddressTests {
  private static func head(_ authorization: String, _ more: String = "") -> String {
    """
    provider: sample
    grant: [authorization_code, device_code]
    variables: { key: { secret: true, default: x }, plain: { default: y } }
    header_style: { parameters: { X-Key: "{key}{plain}" } }
    endpoints:
      authorization: \(authorization)
      token: https://a.example/t
      device_authorization: https://a.example/d
    \(more)

    """
  }

  private static let page = "https://a.example/a"

  static let shown: [FaultyDescriptor] =
    ["client_secret", "assertion", "access_token", "refresh_token", "token_secret", "code", "state", "key"].flatMap {
      name in
      [
        FaultyDescriptor("\(name) in a page", head("‸\"\(page)?x={\(name)}\""), .secretInAddress(name)),
        FaultyDescriptor(
          "\(name) in a page's parameter", head("{ url: \"\(page)\", parameters: { x: ‸\"{\(name)}\" } }"),
          .secretInAddress(name)),
        FaultyDescriptor(
          "\(name) in a parameter that asks who it is", head("{ url: \"\(page)\", choose: { x: ‸\"{\(name)}\" } }"),
          .secretInAddress(name)),
        FaultyDescriptor(
          "\(name) computed", head("{ url: \"\(page)\", parameters: { x: ‸\"{plain || base64(\(name))}\" } }"),
          .secretInAddress(name)),
        FaultyDescriptor(
          "\(name) at a device",
          head(page, "device: { verification_uri_complete: ‸\"{verification_uri}?x={\(name)}\" }"),
          .secretInAddress(name)),
        FaultyDescriptor(
          "\(name) in a redirect", head(page, "redirect: ‸\"http://127.0.0.1/{\(name)}\""), .secretInAddress(name)),
        FaultyDescriptor("\(name) in an issuer", head(page, "issuer: ‸\"https://{\(name)}\""), .secretInAddress(name)),
        FaultyDescriptor(
          "\(name) in a host", head(page, "hosts: [a.example, ‸\"{\(name)}.a.example\"]"), .secretInAddress(name)),
        FaultyDescriptor(
          "\(name) at git", head(page, "git: { hosts: [‸\"{\(name)}.a.example\"], username: ‸\"{\(name)}\" }"),
          .secretInAddress(name), .secretInAddress(name)),
        FaultyDescriptor(
          "\(name) at docker", head(page, "docker: { hosts: [‸\"{\(name)}.a.example\"], username: ‸\"{\(name)}\" }"),
          .secretInAddress(name), .secretInAddress(name)),
        FaultyDescriptor(
          "\(name) in the host of an endpoint",
          head(page).replacing("https://a.example/d", with: "‸\"https://{\(name)}.a.example/d\""),
          .secretInAddress(name)),
      ]
    } + [
      FaultyDescriptor(
        "a page for the code at a foreign host",
        head(page, "device: { verification_uri_complete: ‸\"https://evil.example/?c={user_code}\" }"),
        .foreignPage("https://evil.example")),
      FaultyDescriptor(
        "a page for the code at a foreign port",
        head(page, "device: { verification_uri_complete: ‸\"https://a.example:8443/?c={user_code}\" }"),
        .foreignPage("https://a.example:8443")),
      FaultyDescriptor(
        "a page for the code without https",
        head(page, "device: { verification_uri_complete: ‸\"http://a.example/?c={user_code}\" }"),
        .insecureURL("http://a.example/?…")),
    ]

  @Test(arguments: shown) func secretsAreNotShown(_ faulty: FaultyDescriptor) { faulty.check() }

  /// Other values may appear there, and secrets may go to the provider's own endpoints.
  @Test(arguments: [
    head("{ url: \"\(page)?s={scope}\", parameters: { x: \"{client_id}{redirect_uri}{plain}\" } }"),
    head(page, "device: { verification_uri_complete: \"{verification_uri}?d={user_code}&x={plain}\" }"),
    head(page, "device: { verification_uri_complete: \"https://a.example/x/{user_code}\" }"),
    head(page, "issuer: \"https://{plain}.a.example\"\nredirect: \"http://127.0.0.1/{plain}\""),
    head(page, "git: { hosts: [\"{plain}.a.example\"], username: \"{account}-{plain}\" }"),
    head(page, "response: { keep: { who: user.id } }\naccount: who\nextra_headers: { X: \"{who}\" }"),
    head(page, "response: { keep: { who: country.code } }\naccount: who"),
    head(page).replacing("https://a.example/d", with: "\"https://a.example/{key}?t={client_secret}\""),
    head(page).replacing(
      "https://a.example/t",
      with: "{ url: \"https://a.example/t\", parameters: { x: \"{hex(sha256(client_secret))}{assertion}\" } }"),
  ]) func otherValuesAreShown(_ text: String) { #expect(FaultyDescriptor("", text).findings == []) }
}

/// Tests for the parts of URLs and hosts that a response may choose.
struct KeptBoundTests {
  private static func text(_ keep: String, _ more: String, variables: String = "") -> String {
    """
    provider: sample
    grant: authorization_code
    \(variables)
    endpoints:
      authorization: https://a.example/a
      token: https://a.example/t
    response: { keep: \(keep) }
    \(more)

    """
  }

  private static let api = "variables: { api: { default: a.example } }"

  static let faulty: [FaultyDescriptor] = [
    FaultyDescriptor(
      "a variable's host", text("{ ‸api: api }", "hosts: [\"{api}\"]", variables: api), .keptVariable("api")),
    FaultyDescriptor(
      "a variable's host, in a list", text("[‸api]", "hosts: [\"x.{api}\"]", variables: api), .keptVariable("api")),
    FaultyDescriptor(
      "a variable's endpoint",
      text("{ ‸api: { path: api } }", "", variables: api)
        .replacing("  token:", with: "  refresh: https://{api}/t\n  token:"), .keptVariable("api")),
    FaultyDescriptor(
      "a variable's path",
      text("{ ‸api: api }", "", variables: api)
        .replacing("  token:", with: "  refresh: https://a.example/{api}\n  token:"), .keptVariable("api")),
    FaultyDescriptor(
      "a variable's host of git", text("{ ‸api: api }", "git: { hosts: [\"{api}\"] }", variables: api),
      .keptVariable("api")),
    FaultyDescriptor(
      "a variable's issuer", text("{ ‸api: api }", "issuer: \"https://{api}\"", variables: api), .keptVariable("api")),
    FaultyDescriptor(
      "a variable's host, kept from the redirect",
      text("[id]", "hosts: [\"{api}\"]", variables: api).replacing(
        "https://a.example/a", with: "{ url: https://a.example/a, response: { keep: { ‸api: api } } }"),
      .keptVariable("api")),
    FaultyDescriptor(
      "all hosts under a value", text("[‸dc]", "hosts: [‸\"*.{dc}\", ‸\"*.x{dc}.a.example\"]"),
      .unboundedHost("dc"),
      .keptSubdomains("dc"), .keptSubdomains("dc")),
    FaultyDescriptor(
      "an invalid pattern", text("{ dc: { path: dc, pattern: ‸\"[0-9\" } }", ""), .invalidPattern("[0-9")),
    FaultyDescriptor("a missing path", text("{ dc: ‸{ pattern: \"[0-9]\" } }", ""), .missingKey("path")),
    FaultyDescriptor(
      "an unknown key", text("{ dc: { path: dc, ‸patern: \"[0-9]\" } }", ""),
      .unknownKey("patern", suggestion: "pattern")),
  ]

  @Test(arguments: faulty) func aResponseCannotReplaceAVariable(_ faulty: FaultyDescriptor) { faulty.check() }

  @Test(arguments: [
    text("[api]", "extra_headers: { X-API: \"{api}\" }", variables: api),
    text("{ api: ~, id: id }", "hosts: [\"{api}\"]", variables: api),
    text(
      "[dc]", "hosts: [\"{dc}.a.example\", \"{dc || api}.a.example\", \"*.a.example\", \"*.{api}\"]", variables: api),
  ]) func otherNamesMayBeKept(_ text: String) { #expect(FaultyDescriptor("", text).findings == []) }

  /// Unlimited hosts in a response are a warning.
  @Test(arguments: [
    text("[‸dc]", "hosts: [\"{dc}\"]"), text("{ ‸dc: x }", "hosts: [\"{dc}.com\"]"),
    text("[‸dc]", "").replacing("  token:", with: "  refresh: \"https://{dc}:8443/t\"\n  token:"),
    text("[‸dc]", "kubectl: { hosts: [\"x-{dc}\"] }"), text("[‸dc]", "git: { hosts: [\"{dc}\"] }"),
    text("[‸dc]", "docker: { hosts: [\"{dc}\"] }"), bounded(".*", "{dc}"), bounded("[a-z]+", "{dc}.com"),
    bounded("https?://[^/]+/?", "{dc}"), bounded(".+[.](com|org)", "{dc}"), bounded("[0-9.]+", "{dc}"),
  ]) func unlimitedHostsAreWarnings(_ text: String) throws {
    let faulty = FaultyDescriptor("", text)
    let mark = try #require(MarkedText(text).marks.first)
    #expect(faulty.descriptor != nil && faulty.findings.map(\.problem) == [.unboundedHost("dc")])
    #expect(faulty.findings.map { [$0.place.line, $0.place.column] } == [[mark.line, mark.column]])
    #expect(faulty.findings.map(\.severity) == [.warning])
  }

  private static func bounded(_ pattern: String, _ host: String) -> String {
    text("{ ‸dc: { path: dc, pattern: \"\(pattern)\" } }", "hosts: [\"\(host)\"]")
  }

  @Test(arguments: [
    (".*", "{dc}.a.example"), ("[a-z]+[.]a[.]example", "{dc}"), ("https://[a-z.]+[.]a[.]example(/.*)?", "{dc}"),
    ("us|eu", "{dc}.com"),
  ]) func limitedHostsCauseNoWarning(_ pattern: String, _ host: String) {
    #expect(FaultyDescriptor("", Self.bounded(pattern, host)).findings == [])
  }

  @Test func shippedDescriptorsLimitEveryHost() throws {
    for name in PackageFiles.shipped {
      let findings = try PackageFiles.shippedLibrary.load(name).warnings
      #expect(!findings.contains { if case .unboundedHost = $0.problem { true } else { false } }, "\(name)")
    }
  }

  /// The placeholder with values that it accepts and rejects.
  static let values: [(hosts: String, taken: [String], refused: [String])] = [
    (
      "{dc}.a.example", ["us1", "eu-west-1"],
      [
        "a.b", "https://evil.example/?", "evil.example/", "evil.example:443", "x@evil", ".x", "x.", "a..b", "-x", "x-",
        "*",
        "a_b", "é", "x\n", "",
      ]
    ), ("api.{dc}", ["b"], ["b.example", "b.example:8443", "b.example/", "https://b.example"]),
    (
      "{dc}",
      [
        "b.example", "b.example:8443", "https://b.example", "https://b.example/base", "https://b.example:8443/",
        "http://127.0.0.1:8080",
      ],
      [
        "http://b.example", "https://b.example/?x", "https://b.example/#x", "https://u@b.example/", "*.example",
        "ftp://b.example", "b.example/x", "localhost:0", "",
      ]
    ), ("a.example:{dc}", ["1", "8443"], ["0", "65536", "x", "1/"]),
    ("https://{dc}/x", ["b.example", "b.example:8443"], ["https://b.example", "b.example/", "*.b.example"]),
    ("https://a.example/{dc}", ["anything/at all"], []),
  ]

  @Test(arguments: values) func valuesMustFitTheirPlaceholder(_ place: String, _ taken: [String], _ refused: [String])
    throws
  {
    var text = Self.text("[dc]", "hosts: [\"\(place)\"]")
    if place.contains("/") {
      text = Self.text("[dc]", "").replacing("  token:", with: "  refresh: \"\(place)\"\n  token:")
    }
    let descriptor = try #require(FaultyDescriptor("", text).descriptor)
    for value in taken { #expect(descriptor.accepts(value, keptAs: "dc"), "\(value)") }
    for value in refused { #expect(!descriptor.accepts(value, keptAs: "dc"), "\(value)") }
  }

  /// Each pattern of a name must match the whole value.
  @Test func patternsLimitValues() throws {
    let text = Self.text("{ dc: { path: dc, pattern: \"us[0-9]+\" } }", "hosts: [\"{dc}.a.example\"]")
    let descriptor = try #require(FaultyDescriptor("", text).descriptor)
    #expect(descriptor.accepts("us12", keptAs: "dc"))
    let several = Self.text("{ dc: { path: dc, pattern: \"[a-z]+[.]eu\" } }", "hosts: [\"{dc}.a.example\"]")
    #expect(FaultyDescriptor("", several).descriptor?.accepts("a.eu", keptAs: "dc") == true)
    for value in ["eu1", "us", "us1.evil", "xus1", "us1x"] { #expect(!descriptor.accepts(value, keptAs: "dc")) }
    #expect(descriptor.patterns(ofKept: "dc") == ["us[0-9]+"])
    let again = try #require(FaultyDescriptor("", descriptor.yaml).descriptor)
    #expect(again == descriptor)
    let two = try #require(
      FaultyDescriptor(
        "",
        text.replacing(
          "  token: https://a.example/t",
          with: """
              token:
                url: https://a.example/t
                response: { keep: { dc: { path: dc, pattern: "[a-z]+[12]" } } }
            """)
      ).descriptor)
    #expect(two.accepts("us2", keptAs: "dc"))
    #expect(!two.accepts("us3", keptAs: "dc"))
    #expect(!two.accepts("eu2", keptAs: "dc"))
  }

  @Test func aHostIsFilledAsAWhole() throws {
    func host(_ template: String, _ value: String) -> String? { try? Template(parsing: template).host { _ in value } }
    #expect(host("{x}.a.example", "Us1") == "us1.a.example")
    #expect(host("{x}.a.example", "https://evil.example/?") == nil)
    #expect(host("{x}.a.example", "evil.example:443") == nil)
    #expect(host("api.{x}", "b.example:8443") == "api.b.example:8443")
    #expect(host("*.{x}", "b.example") == "*.b.example")
    #expect(host("*.{x}", "com") == nil)
    #expect(host("{x}", "https://b.example:443/base") == "b.example")
    #expect(host("{x}", "http://[::1]:8080/") == "[::1]:8080")
    #expect(host("{x}", "*.b.example") == nil)
    #expect(host("{x}", "https://b.example/?evil") == nil)
    #expect(host("127.0.0.1:{x}", "8080") == "127.0.0.1:8080")
    #expect(host("*.A.example", "") == "*.a.example")
  }

  /// Salesforce: an organization's host, or the older host of a pod.
  @Test func theShippedDescriptorLimitsItsInstance() throws {
    let bytes = try #require(PackageFiles.read(PackageFiles.root + "/providers/salesforce.yaml"))
    let library = DescriptorLibrary(directories: []) { _ in nil }
    let descriptor = try library.load(bytes, name: "salesforce.yaml").descriptor
    for host in ["acme.my", "acme--dev.sandbox.my", "acme-dev-ed.develop.my", "orgfarm-1.trailblaze.my", "na1", "cs15"]
    { #expect(descriptor.accepts("https://\(host).salesforce.com", keptAs: "instance_url"), "\(host)") }
    for url in [
      "https://evil.example", "https://evil.example/.my.salesforce.com", "https://acme.my.salesforce.com.evil.example",
      "http://acme.my.salesforce.com", "https://acme.my.salesforce.com/?x", "https://x@na1.salesforce.com",
      "https://evil-salesforce.com", "https://acme.my.salesforce.com:8443",
    ] { #expect(!descriptor.accepts(url, keptAs: "instance_url"), "\(url)") }
  }
}

/// Tests for templates that would take much time or memory.
struct TemplateBoundTests {
  private static func nested(_ depth: Int, _ text: String) -> String {
    depth == 0 ? text : "hex(\(nested(depth - 1, text)), \(nested(depth - 1, text)))"
  }

  private static let tooLong = Finding.Problem.template(.tooLong(Template.longest))

  static let faulty: [FaultyDescriptor] = [
    FaultyDescriptor(
      "nine nested functions", tail: "extra_headers: { X: ‸'{\(nested(9, "client_id"))}' }\n",
      .template(.tooDeep(8))),
    FaultyDescriptor(
      "a text that doubles at each level",
      tail: "extra_headers: { X: ‸'{\(nested(8, "\"\(String(repeating: "a", count: 8))\""))}' }\n", tooLong),
    FaultyDescriptor(
      "a default that doubles",
      tail: "variables: { s: { default: \(String(repeating: "a", count: 20000)) } }\n"
        + "extra_headers: { X: ‸'{hex(sha256(hex(hex(s))))}' }\n", tooLong),
    FaultyDescriptor(
      "an overlong text", tail: "extra_headers: { X: ‸\(String(repeating: "a", count: 65_537)) }\n", tooLong),
  ]

  @Test(arguments: faulty) func expensiveTemplatesAreRejected(_ faulty: FaultyDescriptor) { faulty.check() }

  @Test func providersTemplatesAreAccepted() {
    let deep = "{" + String(repeating: "hex(", count: 8) + "client_id" + String(repeating: ")", count: 8) + "}"
    let text = String(repeating: "a", count: 65_536)
    #expect(FaultyDescriptor("", tail: "extra_headers: { X: '\(deep)', Y: \(text) }\n").findings == [])
  }

  /// Values known only at the login are limited at that time.
  @Test func valuesHaveALimit() throws {
    let half = String(repeating: "a", count: 32_769)
    func filled(_ template: String, _ value: String) throws -> Int {
      try Template(parsing: template).filled(
        { _ in value },
        calculate: { function, arguments in function == .sha256 ? [1, 2] : Array((arguments + arguments).joined()) }
      ).utf8.count
    }
    #expect(try filled("{x}", half + half.dropLast(2)) == 65_536)
    #expect(try filled("{hex(x)}", String(half.dropLast())) == 65_536)
    for template in ["{x}{x}", "{hex(x)}", "{lowercase(hex(x))}", "{hex(sha256(x, x))}"] {
      #expect(throws: TemplateError.tooLong(Template.longest), "\(template)") { try filled(template, half) }
    }
    // A signed request may be long.
    #expect(try filled("{hex(sha256(request_body))}", half + half) == 4)
  }
}

extension FaultyDescriptor {
  private var checked: (findings: [Finding], descriptor: Descriptor?) {
    let library = DescriptorLibrary(directories: []) { _ in nil }
    let bytes = MarkedText(marked).bytes
    return (
      library.check(bytes, name: "sample.yaml").findings, try? library.load(bytes, name: "sample.yaml").descriptor
    )
  }

  var findings: [Finding] { checked.findings }
  var descriptor: Descriptor? { checked.descriptor }

  /// Checks that each problem is at its mark, without other findings.
  func check() {
    #expect(findings.map(\.problem) == problems)
    let places = findings.map { MarkedText.Mark(line: $0.place.line, column: $0.place.column) }
    #expect(places == MarkedText(marked).marks)
    #expect(descriptor == nil)
  }
}
