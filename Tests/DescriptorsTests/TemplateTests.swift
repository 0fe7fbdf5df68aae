import CredmgrHTTP
import CredmgrDescriptors
import Testing

@Suite struct TemplateTests {
  static let values = ["a": "1", "b": "two words", "empty": "", "Upper": "AbC", "x.y-z_1": "dotted"]

  static let filled: [(template: String, text: String)] = [
    ("", ""), ("plain", "plain"), ("{a}", "1"), ("x{a}y{b}", "x1ytwo words"), ("{ a }", "1"), ("{none || a}", "1"),
    ("{empty || a}", "1"), ("{a || b}", "1"), ("{none||empty||b}", "two words"), ("{none || \"text\"}", "text"),
    ("{\"a | b\"}", "a | b"), ("{lowercase(Upper)}-{uppercase(b)}", "abc-TWO WORDS"),
    ("{lowercase(uppercase(Upper))}", "abc"), ("{lowercase(none) || a}", "1"), ("{x.y-z_1}", "dotted"),
    ("{lowercase(\"A, (\")}", "a, ("), ("{\"a\\nb\"}", "a\nb"), ("{now()||a}", "1"), ("{hex(a) || b}", "two words"),
    ("{{}}", "{}"), ("{{a}}", "{a}"), ("{{{a}}}", "{1}"), ("ä{a}€", "ä1€"),
  ]

  @Test(arguments: filled) func placeholdersAreFilled(_ template: String, _ text: String) throws {
    #expect(try Template(parsing: template).filled { Self.values[$0] } == text)
  }

  static let faulty: [(template: String, error: TemplateError)] = [
    ("{", .unbalancedBrace(offset: 0)), ("a{b", .unbalancedBrace(offset: 1)), ("a}", .unbalancedBrace(offset: 1)),
    ("{a}}", .unbalancedBrace(offset: 3)), ("{}", .malformedPlace("")), ("{a b}", .malformedPlace("a b")),
    ("{a || }", .malformedPlace("")), ("{a | b}", .malformedPlace("a | b")), ("{ä}", .malformedPlace("ä")),
    ("{rot13(a)}", .unknownFunction("rot13")), ("{base64()}", .malformedPlace("")),
    ("{sha256(a)}", .malformedPlace("sha256(a)")), ("{lowercase(a, b)}", .malformedPlace("lowercase(a, b)")),
    ("{uppercase(sha256(a))}", .malformedPlace("uppercase(sha256(a))")), ("{random(a)}", .malformedPlace("random(a)")),
    ("{hmac_sha256(a)}", .malformedPlace("hmac_sha256(a)")), ("{hex(a, )}", .malformedPlace("")),
    ("{lowercase()}", .malformedPlace("")),
    ("{a\n}", .malformedPlace("a\n")), ("{\"a}", .malformedPlace("\"a")), ("{a/b}", .malformedPlace("a/b")),
  ]

  @Test(arguments: faulty) func faultsAreReported(_ template: String, _ error: TemplateError) {
    #expect(throws: error) { try Template(parsing: template) }
  }

  @Test(arguments: [
    ("{none}", "none"), ("{empty}", "empty"), ("{none || empty}", "none"), ("{lowercase(none)}", "none"),
  ]) func missingValuesAreErrors(_ template: String, _ name: String) throws {
    let template = try Template(parsing: template)
    #expect(throws: TemplateError.missing(name)) { try template.filled { Self.values[$0] } }
  }

  @Test func valuesAreNotParsed() throws {
    let template = try Template(parsing: "{a}")
    #expect(try template.filled { _ in "{b} }} \"" } == "{b} }} \"")
  }

  @Test func namesAndLiterals() throws {
    #expect(try Template(parsing: "{hex(hmac_sha256(a, b, \"c\", now(), d))}").names == ["a", "b", "d"])
    #expect(try Template(parsing: "{a}x{lowercase(b) || \"t\" || c}").names == ["a", "b", "c"])
    #expect(try Template(parsing: "x{{y}}").literal == "x{y}")
    #expect(try Template(parsing: "x{y}").literal == nil)
  }
}

@Suite struct URLTemplateTests {
  func fill(_ template: String, _ values: [String: String]) throws -> String {
    try URLTemplate(Template(parsing: template)).filled { values[$0] }.text
  }

  static let good: [(template: String, value: String, url: String)] = [
    ("https://{x}/t", "a.example", "https://a.example/t"),
    ("https://{x}/t", "a.example:8443", "https://a.example:8443/t"),
    ("https://{x}.a.example/t", "tenant-1", "https://tenant-1.a.example/t"),
    ("http://127.0.0.1:{x}/t", "8080", "http://127.0.0.1:8080/t"),
    // After the authority a value is one piece, whatever its content.
    ("https://a.example/{x}/t", "b/c?d#e", "https://a.example/b%2Fc%3Fd%23e/t"),
    ("https://a.example/{x}/t", "../..", "https://a.example/..%2F../t"),
    ("https://a.example/t?v={x}", "1&state=2", "https://a.example/t?v=1%26state%3D2"),
    ("https://a.example/t?v={x}", "a b+ä", "https://a.example/t?v=a%20b%2B%C3%A4"),
    // At the beginning a value is a base URL.
    ("{x}/services", "https://a.example", "https://a.example/services"),
    ("{x}/services", "https://a.example/", "https://a.example/services"),
    ("{x}/services", "https://a.example/base/", "https://a.example/base/services"),
    ("{x}", "https://a.example/", "https://a.example/"),
    ("{x}", "http://127.0.0.1:1234/", "http://127.0.0.1:1234/"),
  ]

  @Test(arguments: good) func placeholdersAreFilled(_ template: String, _ value: String, _ url: String) throws {
    #expect(try fill(template, ["x": value]) == url)
  }

  /// Values with which a user or a provider might redirect the credential to another host.
  static let attacks = [
    "evil.com/", "evil.com?", "evil.com#", "evil.com\\", "evil.com/.", "x@evil.com", "@evil.com", "evil.com:1/",
    "evil.com%2F", "evil.com\n", "evil.com\r\nHost: x", "evil.com\t", "evil.com ", " evil.com", "evil.com:",
    ".evil.com", "-evil.com", "evil.com:99999", "evil.com:0", "evil.com:-1", "evil.com:1:2", "[::1]", "évil.com",
    "evil。com", "evil.com\u{0}", "//evil.com", "https://evil.com", "a_b", "",
  ]

  @Test(arguments: attacks) func valuesCannotChangeTheHost(_ value: String) {
    #expect(throws: URLTemplateError.self) { try fill("https://{x}.example", ["x": value]) }
    #expect(throws: URLTemplateError.self) { try fill("https://{x}/token", ["x": value]) }
  }

  @Test func attacksAreNamed() {
    #expect(throws: URLTemplateError.authority("evil.com/")) { try fill("https://{x}.example", ["x": "evil.com/"]) }
    #expect(throws: URLTemplateError.authority("evil.com/")) { try fill("https://a.{x}", ["x": "evil.com/"]) }
  }

  static let places: [(template: String, places: [HostPlace], names: String)] = [
    ("https://{x}.example/{y}", [.piece], "x"), ("https://a/{x}", [], ""), ("{x}/token", [.base], "x"),
    ("{a || b}/{c}", [.base], "a b"), ("https://{lowercase(x)}.{y}?z={z}", [.piece, .piece], "x y"),
    ("https://{x}/t", [.host], "x"), ("https://{x}:{y}/t", [.piece, .port], "x y"), ("https://good.example/", [], ""),
  ]

  @Test(arguments: places) func placeholdersInAHost(_ template: String, _ places: [HostPlace], _ names: String) throws {
    let found = URLTemplate(try Template(parsing: template)).hostPlaces
    #expect(found.map(\.place) == places)
    #expect(found.flatMap(\.names).joined(separator: " ") == names)
  }

  /// A value directly after a base URL would change its host.
  @Test func valuesCannotContinueAHost() throws {
    #expect(throws: URLTemplateError.base("{x}{y}")) { try fill("{x}{y}", ["x": "https://a.example", "y": "b"]) }
    #expect(throws: URLTemplateError.base("{x}.{y}/t")) { try fill("{x}.{y}/t", ["x": "https://a", "y": "evil.com"]) }
    #expect(try fill("{x}{y}", ["x": "https://a.example/", "y": "b"]) == "https://a.example/b")
    #expect(try fill("{x}?d={y}", ["x": "https://a.example/m/", "y": "b"]) == "https://a.example/m/?d=b")
  }

  @Test func valuesCannotChangeThePath() throws {
    for value in [".", ".."] {
      for template in ["https://a.example/{x}/t", "https://a.example/{x}", "https://a.example/b/{x}?q=1"] {
        #expect(throws: URLTemplateError.path(template)) { try fill(template, ["x": value]) }
      }
    }
    #expect(throws: URLTemplateError.path("https://a.example/.{x}/t")) {
      try fill("https://a.example/.{x}/t", ["x": "."])
    }
    #expect(try fill("https://a.example/v{x}/t", ["x": ".."]) == "https://a.example/v../t")
    #expect(try fill("https://a.example/t?v={x}", ["x": ".."]) == "https://a.example/t?v=..")
    for value in ["https://a.example?x=1", "https://a.example/#"] {
      #expect(throws: URLTemplateError.base("{x}/t")) { try fill("{x}/t", ["x": value]) }
      #expect(try fill("{x}", ["x": value]) == value)
    }
  }

  /// The value contains a port, which only the end of a host may have.
  @Test func aPortInsideAHostIsInvalid() {
    #expect(throws: URLTemplateError.self) { try fill("https://{x}.example/t", ["x": "evil.com:443"]) }
  }

  static let insecure = [
    "http://a.example", "http://127.0.0.1.a.example", "http://localhost.a.example", "ftp://127.0.0.1",
    "file:///etc/passwd", "javascript:alert(1)", "HTTP://a.example",
  ]

  @Test(arguments: insecure) func baseURLsMustBeSecure(_ value: String) {
    #expect(throws: URLTemplateError.self) { try fill("{x}/t", ["x": value]) }
  }

  @Test(arguments: [
    "http://127.0.0.1:80", "http://127.255.0.1", "http://localhost", "http://[::1]:8080", "https://a.example",
  ]) func loopbackMayBeInsecure(_ value: String) throws { #expect(try fill("{x}/t", ["x": value]) == value + "/t") }

  @Test func missingValuesAreNamed() {
    #expect(throws: URLTemplateError.template(.missing("x"))) { try fill("https://a.example/{x}", [:]) }
  }

  @Test(arguments: [
    "app://callback?a=b", "com.example.app:/oauth", "urn:ietf:wg:oauth:2.0:oob", "http://a.example/cb",
    "https://a.example/",
  ]) func aRedirectMayHaveAnyScheme(_ value: String) throws {
    let template = URLTemplate(try Template(parsing: "{x}"))
    #expect(try template.anyScheme { _ in value }.text == value)
  }
}
