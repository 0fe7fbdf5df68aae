import Testing
import CredmgrText

@testable import CredmgrDescriptors

@Suite struct VariableTests {
  /// Reads a variable with these keys, as in a descriptor.
  func variable(_ keys: String) throws -> Variable {
    let descriptor = try descriptor(sampleHead + "variables: {v: {\(keys)}}\nextra_headers: {X-V: \"{v}\"}\n")
    return try #require(descriptor.variable("v"))
  }

  static let values: [(keys: String, value: String, isAccepted: Bool)] = [
    ("", "any text", true), ("", "", false), ("optional: true", "", true), ("", "a\nb", false), ("", "a\u{7F}", false),
    ("", "ä €", true), ("format: hostname", "a.example", true), ("format: hostname", "localhost:8080", true),
    ("format: hostname", "https://a.example", false), ("format: hostname", "a.example/b", false),
    ("format: hostname", "a b", false), ("format: hostname", "a.example:x", false),
    ("format: url", "https://a.example/x?y", true), ("format: url", "http://127.0.0.1:1/x", true),
    ("format: url", "http://a.example", false), ("format: url", "a.example", false), ("format: url", "{x}", false),
    ("format: redirect", "http://127.0.0.1/callback", true), ("format: redirect", "ncipApp://success", true),
    ("format: redirect", "app://?aParam=paramVal", true), ("format: redirect", "oob", true),
    ("format: redirect", "urn:ietf:wg:oauth:2.0:oob", true), ("format: redirect", "https://a.example/cb", true),
    ("format: redirect", "callback", false), ("format: integer", "42", true), ("format: integer", "-1", true),
    ("format: integer", "4x", false), ("format: integer", "4.0", false), ("pattern: \"[0-9]{2,3}\"", "128", true),
    ("pattern: \"[0-9]{2,3}\"", "1284", false), ("pattern: \"[0-9]{2,3}\"", "a128", false),
    ("pattern: \"a|ab\"", "ab", true), ("choices: [x, y]", "y", true), ("choices: [x, y]", "Y", false),
    ("choices: x", "x", true), ("choices: [x, y], pattern: \"x\"", "y", false),
  ]

  @Test(arguments: values) func rules(_ keys: String, _ value: String, _ isAccepted: Bool) throws {
    #expect(try variable(keys).accepts(value) == isAccepted)
  }

  @Test func everyKey() throws {
    let variable = try variable(
      "default: \"12\", format: integer, pattern: \"[0-9]+\", choices: [\"12\", \"13\"], help: a number, optional: true"
    )
    #expect(variable.name == "v")
    #expect(variable.defaultValue == "12")
    #expect(variable.format == .integer)
    #expect(variable.pattern == "[0-9]+")
    #expect(variable.choices == ["12", "13"])
    #expect(variable.help == "a number")
    #expect(variable.isOptional)
  }

  @Test func variablesWithoutKeysAreRequiredTexts() throws {
    let descriptor = try descriptor(sampleHead + "variables: {v: }\nextra_headers: {X-V: \"{v}\"}\n")
    let variable = try #require(descriptor.variable("v"))
    #expect(variable.defaultValue == nil)
    #expect(variable.format == .text)
    #expect(!variable.isOptional && !variable.isSecret)
  }

  @Test(arguments: [
    ("", "{redirect_uri}"), ("redirect: oob\n", "oob"), ("redirect: \n", "http://127.0.0.1/callback/sample"),
  ]) func aVariableRedirectURIIsTheRedirect(_ own: String, _ redirect: String) throws {
    let text = sampleHead + own + "variables: {redirect_uri: {default: \"http://127.0.0.1/a\"}, b: {default: x}}\n"
    let descriptor = try descriptor(text + "extra_headers: {X-V: \"{b}{redirect_uri}\"}\n")
    #expect(descriptor.redirect.template.text == redirect)
    #expect(descriptor.variables.map(\.name) == ["redirect_uri", "b"])
    #expect(descriptor.variables.map(\.format) == [.redirect, .text])
  }

  @Test func theVariableOfABaseIsItsRedirect() throws {
    let base = sampleHead.exchanging("sample", for: "base") + "variables: {redirect_uri: }\n"
    let child = "provider: child\nextends: base\nvariables: {redirect_uri: {default: oob}}\n"
    let library = MemoryLibrary(["base": base, "child": child]).library
    #expect(try library.load("child").descriptor.redirect.template.text == "{redirect_uri}")
    let settings = try library.settings(of: "child")
    #expect(settings.first { $0.key == "redirect" }?.value == "{redirect_uri}")
    let other = MemoryLibrary(["base": base, "child": child + "redirect: \"https://a.example/{redirect_uri}\"\n"])
    #expect(try other.library.load("child").descriptor.redirect.template.text == "https://a.example/{redirect_uri}")
  }

  @Test func variablesMayBeSecret() throws {
    let descriptor = try descriptor(
      sampleHead + "variables: {v: {secret: true, pattern: \"[a-z]+\"}}\nextra_headers: {X-V: \"{v}\"}\n")
    let variable = try #require(descriptor.variable("v"))
    #expect(variable.isSecret && variable.accepts("abc") && !variable.accepts("1"))
  }

  /// Only a key has several lines (RFC 7468), and only if it is secret.
  @Test func secretsMayHaveLines() throws {
    let descriptor = try descriptor(
      sampleHead + "variables: {k: {secret: true}, t: {}}\nextra_headers: {X-V: \"{hex(sha256(k))}{t}\"}\n")
    #expect(descriptor.variable("k")?.accepts("-----BEGIN PRIVATE KEY-----\nMC4\n") == true)
    #expect(descriptor.variable("k")?.accepts("a\rb") == false)
    #expect(descriptor.variable("t")?.accepts("a\nb") == false)
  }
}

@Suite struct DurationTests {
  static let durations: [(text: String, seconds: Int64?)] = [
    ("90s", 90), ("5m", 300), ("8h", 28_800), ("30d", 2_592_000), ("0s", 0), ("007s", 7), ("", nil), ("s", nil),
    ("5", nil), ("5 s", nil), ("-5s", nil), ("+5s", nil), ("1.5h", nil), ("5S", nil), ("5w", nil), ("5ms", nil),
    ("٣s", nil), ("9223372036854775807s", 9_223_372_036_854_775_807), ("9223372036854775808s", nil),
    ("9223372036854775807d", nil),
  ]

  @Test(arguments: durations)
  func inSeconds(_ text: String, _ seconds: Int64?) { #expect(Duration(text) == seconds.map { .seconds($0) }) }
}
