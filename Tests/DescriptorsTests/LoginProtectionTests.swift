import CredmgrDescriptors
import Testing

/// Tests the parameters, the redirect and the state that protect a login.
@Suite struct LoginProtectionTests {
  private static func problems(
    _ page: String, _ more: String = "", grant: String = "authorization_code", _ severity: Finding.Severity = .error
  ) -> [String] {
    let text = """
      provider: sample
      grant: \(grant)
      variables: { v: { optional: true }, r: { default: redirect_uri }, u: { default: "https://a.example/a?redirect_uri=x" } }
      endpoints:
        authorization: \(page)
        token: { url: https://a.example/t, headers: { X-V: "{v}{r}{u}" } }
        registration: https://a.example/r
      \(more)

      """
    let findings = DescriptorLibrary(directories: []) { _ in nil }.check(Array(text.utf8), name: "sample.yaml").findings
    return findings.filter { $0.severity == severity }.map { "\($0.place.line) \($0.problem)" }
  }

  private static let page = "https://a.example/a"

  @Test(arguments: [
    "parameters: { redirect_uri: \"https://evil.example/cb\" }", "parameters: { Redirect_URI: x }",
    "parameters: { redirect%5Furi: x }", "parameters: { redirect.uri: x }", "parameters: { \"redirect_uri[]\": x }",
    "parameters: { request: eyJ }", "parameters: { request_uri: \"https://evil.example/r\" }",
    "parameters: { response_type: token }", "parameters: { state: null }",
    "rename: { scope: redirect_uri, redirect_uri: x }", "rename: { response_type: redirect_uri }",
    "rename: { extra: redirect_uri }, parameters: { extra: x }", "rename: { scope: redirect%5furi }",
    "rename: { redirect_uri: back }, parameters: { back: x }", "rename: { redirect_uri: back, scope: back }",
    "rename: { extra: request }, parameters: { extra: x }",
  ]) func ownedParametersAreRejectedInEveryForm(_ keys: String) {
    let found = Self.problems("{ url: \(Self.page), \(keys) }")
    #expect(found.contains { $0.hasPrefix("5 ownedParameter") }, "\(found)")
  }

  /// A server ignores an unknown parameter, and so would not check PKCE.
  @Test(arguments: [
    ("code_challenge", "x"), ("code_challenge_method", "y"), ("code_challenge", "Code_Challenge"),
    ("code_challenge_method", "code_challenge"),
  ]) func theProofKeyCannotBeRenamed(_ name: String, _ wire: String) {
    let found = Self.problems("{ url: \(Self.page), rename: { \(name): \(wire) } }")
    #expect(found == ["5 fixedParameter(\"\(name)\")"])
  }

  @Test(arguments: [
    "?redirect_uri=x", "?redirect%5Furi=x", "?a=b&REDIRECT_URI=x", "?a=b;redirect_uri=x", "#/login?redirect_uri=x",
    "?{r}=x", "?{v || 'redirect_uri'}=x", "?redirect_{'uri'}=x", "?{lowercase('REDIRECT_URI')}=x", "?request=eyJ",
  ]) func addressesSetNoOwnedParameters(_ query: String) {
    let query = query.replacing("'", with: "\\\"")
    #expect(Self.problems("\"\(Self.page)\(query)\"").contains { $0.hasPrefix("5 ownedParameter") })
  }

  @Test(arguments: ["{u}", "{v || 'https://a.example/a?redirect_uri=x'}"]) func variableAddressesSetNoOwnedParameters(
    _ url: String
  ) {
    let url = url.replacing("'", with: "\\\"")
    #expect(Self.problems("\"\(url)\"").contains { $0.hasPrefix("5 ownedParameter") })
  }

  @Test(arguments: [
    "parameters: { redirect_uri: null }", "parameters: { redirect_uri: \"{redirect_uri}\", prompt: login }",
    "parameters: { response_type: null }", "parameters: { response_type: code id_token }",
    "rename: { redirect_uri: back, client_id: key, state: s }", "rename: { code_challenge: code_challenge }",
    "rename: { redirect_uri: redirect_uri }",
    "parameters: { requested: x, redirect: y, states: z }", "rename: { extra: other }, parameters: { extra: x }",
  ]) func otherParametersAreFree(_ keys: String) {
    #expect(Self.problems("{ url: \"\(Self.page)?next=/state&tenant={v}#/redirect_uri\", \(keys) }") == [])
  }

  @Test func aRegistrationCannotNameAnotherRedirect() {
    let found = Self.problems(Self.page).isEmpty
    #expect(found)
    let text = """
      provider: sample
      grant: client_credentials
      endpoints:
        token: https://a.example/t
        registration: { url: https://a.example/r, parameters: { redirect_uris: "https://evil.example/cb" } }

      """
    #expect(throws: ProviderError.self) { try descriptor(text) }
    let other = text.replacing("redirect_uris", with: "client_uri")
    #expect(throws: Never.self) { try descriptor(other) }
  }

  @Test(arguments: ["[]", "[issuer]", "{ path: other }"]) func theIssuerCannotBeHidden(_ path: String) {
    for text in ["response: { fields: { iss: \(path) } }", ""] {
      let page = text.isEmpty ? "{ url: \(Self.page), response: { fields: { iss: \(path) } } }" : Self.page
      #expect(Self.problems(page, text).contains { $0.contains("ownedParameter(\"iss\")") })
    }
    #expect(Self.problems(Self.page, "response: { fields: { iss: iss, code: auth_code } }") == [])
  }

  @Test(arguments: [
    "{v || 'https://evil.example/cb'}", "{lowercase('https://evil.example/cb')}", "https://{lowercase(v)}.example/cb",
    "https://evil.example/{scope}", "http://evil.example/cb",
  ]) func redirectsAreNotComputed(_ redirect: String) {
    let redirect = redirect.replacing("'", with: "\\\"")
    #expect(Self.problems(Self.page, "redirect: \"\(redirect)\"").count == 1)
  }

  @Test(arguments: [
    "oob", "http://127.0.0.1:8417/callback", "https://app.example/cb", "https://{v}.example/cb", "{v}", "my.app:/cb",
    "my.app.{client_id}:/cb",
  ]) func redirectsMayHaveVariables(_ redirect: String) {
    #expect(Self.problems(Self.page, "redirect: \"\(redirect)\"") == [])
  }

  private static let optional = ["state: optional", "response: { fields: { state: [] } }"]

  /// RFC 8252, 7.1: other applications may receive responses to custom schemes.
  @Test(arguments: ["authorization_code", "implicit"]) func customSchemesNeedAState(_ grant: String) {
    let redirect = "redirect: vscode://x/y"
    for state in Self.optional {
      let found = Self.problems(Self.page, redirect + "\n" + state, grant: grant)
      #expect(found.contains { $0.contains("unprotectedState") }, "\(state) \(found)")
    }
    #expect(Self.problems(Self.page, redirect, grant: grant) == [])
  }

  @Test(
    arguments: [
      ("pkce: none", "authorization_code"), ("redirect: http://127.0.0.1:8417/callback", "implicit"), ("", "implicit"),
      ("redirect: http://localhost/cb", "[authorization_code, implicit]"),
    ])
  func aMissingStateIsAWarning(_ more: String, _ grant: String) {
    for state in Self.optional {
      let found = Self.problems(Self.page, more + "\n" + state, grant: grant, .warning)
      #expect(found.contains { $0.contains("unprotectedState") }, "\(state) \(found)")
      #expect(Self.problems(Self.page, more + "\n" + state, grant: grant) == [])
    }
    #expect(Self.problems(Self.page, more, grant: grant, .warning) == [], "with a state that comes back")
  }

  /// A proof key ties a response to its login, and so does a user who pastes it.
  @Test(
    arguments: [
      ("", "authorization_code"), ("redirect: https://app.example/cb", "implicit"), ("redirect: oob", "implicit"),
      ("redirect: urn:ietf:wg:oauth:2.0:oob", "authorization_code"), ("redirect: \"{v}\"", "implicit"),
    ])
  func stateMayBeMissing(_ more: String, _ grant: String) {
    for state in Self.optional { #expect(Self.problems(Self.page, more + "\n" + state, grant: grant) == []) }
  }

  @Test func eachProviderHasItsOwnRedirect() throws {
    let text = "provider: sample\ngrant: implicit\nendpoints: { authorization: https://a.example/a }\n"
    #expect(try descriptor(text).redirect.text == "http://127.0.0.1/callback/sample")
    #expect(try descriptor(text + "redirect: http://127.0.0.1/own\n").redirect.text == "http://127.0.0.1/own")
  }

  /// The compliance tables name every shipped descriptor that does less.
  @Test func theThreatModelNamesEveryException() throws {
    var found: [String: [String]] = [:]
    for name in PackageFiles.shipped {
      let descriptor = try PackageFiles.shippedLibrary.load(name).descriptor
      let (grants, location) = (Set(descriptor.grants), descriptor.headerStyle.location)
      let redirect = descriptor.redirect.template
      let defaults = redirect.names.compactMap { descriptor.variable($0)?.defaultValue }
      let isOAuth = descriptor.grants.contains { $0.traits.typed == nil && ![.oauth1, .session].contains($0) }
      var rules: [String] = []
      if grants.contains(.authorizationCode), descriptor.pkce == .none { rules.append("PKCE for confidential clients") }
      if descriptor.pkce == .plain { rules.append("a challenge method") }
      if grants.contains(.implicit) { rules += ["SHOULD NOT | implicit grant", "NOT RECOMMENDED | implicit grant"] }
      if descriptor.state == .optional { rules += ["prevent CSRF", "RECOMMENDED | `state`"] }
      if ([redirect.text] + defaults).contains(where: { $0.hasPrefix("http://localhost") }) {
        rules.append("loopback address literal")
      }
      if isOAuth {
        switch location {
        case .query, .path: rules.append("token in a URI")
        case .body: rules.append("token in the body")
        case .header, .none: break
        }
      }
      for rule in rules { found[rule, default: []].append(name) }
    }
    let bytes = try #require(PackageFiles.read(PackageFiles.root + "/docs/threat-model.md"))
    let text = String(decoding: bytes, as: UTF8.self)
    for rule in [
      "PKCE for confidential clients", "a challenge method", "SHOULD NOT | implicit grant", "prevent CSRF",
      "NOT RECOMMENDED | implicit grant", "RECOMMENDED | `state`", "loopback address literal", "token in a URI",
      "token in the body",
    ] {
      let row = try #require(text.split(separator: "\n").first { $0.contains(rule) })
      let names = row.split(separator: "`").map(String.init).filter { PackageFiles.shipped.contains($0) }
      #expect(names == found[rule] ?? [], "\(rule)")
    }
  }
}
