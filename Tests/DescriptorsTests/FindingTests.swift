import CredmgrDescriptors
import Testing
import CredmgrText
import CredmgrYAML

/// A descriptor with a mark before the place of each expected finding, and the findings in that order.
struct FaultyDescriptor: CustomTestStringConvertible {
  let testDescription: String
  let marked: String
  let problems: [Finding.Problem]

  init(_ description: String, _ marked: String, _ problems: Finding.Problem...) {
    testDescription = description
    self.marked = marked
    self.problems = problems
  }

  /// Adds the required keys before the tail.
  init(_ description: String, tail: String, _ problems: Finding.Problem...) {
    testDescription = description
    marked = sampleHead + tail
    self.problems = problems
  }

  /// Adds a token endpoint with these keys.
  init(_ description: String, leg: String, _ problems: Finding.Problem...) {
    testDescription = description
    marked = "provider: sample\ngrant: client_credentials\nendpoints:\n  token: {url: https://a.example/t, \(leg)}\n"
    self.problems = problems
  }
}

@Suite struct FindingTests {
  private static let mapping = "a mapping such as { key: value }"

  static let keys: [FaultyDescriptor] = [
    FaultyDescriptor(
      "a misspelled key",
      "provider: sample\ngrant: client_credentials\n‸endpoint: {}\nendpoints: {token: https://a.example/t}\n",
      .unknownKey("endpoint", suggestion: "endpoints")),
    FaultyDescriptor("an unknown key", tail: "‸colour: red\n", .unknownKey("colour", suggestion: nil)),
    FaultyDescriptor(
      "swapped letters", tail: "‸ptkce: none\n‸exipry: {}\n",
      .unknownKey("ptkce", suggestion: "pkce"), .unknownKey("exipry", suggestion: "expiry")),
    FaultyDescriptor(
      "an unknown endpoint",
      "provider: sample\ngrant: client_credentials\nendpoints: {token: https://a.example/t, ‸autorization: https://a.example}\n",
      .unknownKey("autorization", suggestion: "authorization")),
    FaultyDescriptor(
      "the name of an endpoint in metadata",
      "provider: sample\ngrant: client_credentials\nendpoints: {token: https://a.example/t, ‸userinfo: https://a.example}\n",
      .unknownKey("userinfo", suggestion: "identity")),
    FaultyDescriptor(
      "an endpoint that does not exist",
      "provider: sample\ngrant: client_credentials\nendpoints: {token: https://a.example/t, ‸pictures: https://a.example}\n",
      .unknownEndpoint("pictures", allowed: EndpointKind.allCases.map(\.rawValue))),
    FaultyDescriptor("an unknown key of an endpoint", leg: "‸metod: GET", .unknownKey("metod", suggestion: "method")),
    FaultyDescriptor(
      "an unknown field", tail: "response: {fields: {‸acces_token: t}}\n",
      .unknownKey("acces_token", suggestion: "access_token")),
    FaultyDescriptor(
      "unknown keys at all levels",
      tail: """
        variables: {v: {‸defualt: x, default: https://a.example}}
        response: {‸form: json, errors: {‸codes: c}, fields: {scope: {path: s, ‸tine: date}}, active: {path: a, ‸equal: b}}
        header_style: {‸schema: x}
        extra_headers: {X-V: "{v}"}
        scope: {‸seperator: ","}
        client: {‸secret: s}
        expiry: {‸lifetme: 1h}
        device: {‸intervall: 5s}
        oauth1: {‸versions: false}
        git: {hosts: [a.example], ‸user: x}
        docker: {hosts: [a.example], ‸names: x}

        """, .unknownKey("defualt", suggestion: "default"), .unknownKey("form", suggestion: "format"),
      .unknownKey("codes", suggestion: "code"), .unknownKey("tine", suggestion: "time"),
      .unknownKey("equal", suggestion: "equals"), .unknownKey("schema", suggestion: "scheme"),
      .unknownKey("seperator", suggestion: "separator"), .unknownKey("secret", suggestion: "secret_pattern"),
      .unknownKey("lifetme", suggestion: "lifetime"), .unknownKey("intervall", suggestion: "interval"),
      .unknownKey("versions", suggestion: "version"), .unknownKey("user", suggestion: "username"),
      .unknownKey("names", suggestion: nil)),
    FaultyDescriptor(
      "a merge key", tail: "client: &c {id: x}\nscope:\n  ‸<<: *c\n", .unknownKey("<<", suggestion: nil)),
    FaultyDescriptor(
      "a repeated key", tail: "pkce: none\n‸pkce: S256\n", .yaml(.duplicateKey("pkce", firstLine: 4))),
    FaultyDescriptor(
      "missing required keys", "‸title: Sample\n",
      .missingKey("provider"), .missingKey("grant"), .missingKey("endpoints")),
    FaultyDescriptor(
      "null for required keys", "‸provider: ~\ngrant: null\nendpoints:\n",
      .missingKey("provider"), .missingKey("grant"), .missingKey("endpoints")),
    FaultyDescriptor(
      "an endpoint without its URL", "provider: sample\ngrant: client_credentials\nendpoints: {token: ‸{send: json}}\n",
      .missingKey("url")),
    FaultyDescriptor("git without hosts", tail: "git: ‸{username: x}\n", .missingKey("hosts")),
    FaultyDescriptor("docker without hosts", tail: "docker: ‸{username: x}\n", .missingKey("hosts")),
    FaultyDescriptor(
      "a redirect without encryption", tail: "redirect: ‸http://a.example/cb\n",
      .insecureURL("http://a.example/cb")),
    FaultyDescriptor(
      "too many variables",
      tail: "variables: ‸{" + (0...256).map { "v\($0): {default: x}" }.joined(separator: ", ")
        + "}\nextra_headers: {X: \"" + (0..<256).map { "{v\($0)}" }.joined() + "\"}\n", .tooManyEntries(256)),
    FaultyDescriptor(
      "too many other entries",
      tail: "extra_headers: ‸{" + (0...256).map { "X-\($0): y" }.joined(separator: ", ") + "}\nhosts: ‸["
        + (0...256).map { "a\($0).example" }.joined(separator: ", ") + "]\n", .tooManyEntries(256),
      .tooManyEntries(256)),
    FaultyDescriptor(
      "nested functions",
      tail: "extra_headers: {X: ‸\"{" + String(repeating: "lowercase(", count: 9) + "client_id"
        + String(repeating: ")", count: 9) + "}\"}\n", .template(.tooDeep(8))),
    FaultyDescriptor(
      "subdomains for git and docker",
      tail: "git: {hosts: [a.example, ‸\"*.a.example\"]}\ndocker: {hosts: ‸\"*.b.example\"}\n",
      .subdomains("*.a.example"), .subdomains("*.b.example")),
    FaultyDescriptor(
      "texts with control characters",
      tail:
        "title: ‸\"a\\e]0;b\\a\"\nvariables: {x: {help: ‸\"\\u202Ea\"}, y: {help: ‸\"a\\0b\"}}\nextra_headers: {X: \"{x}{y}\"}\n",
      .controlCharacter, .controlCharacter, .controlCharacter),
    FaultyDescriptor(
      "line breaks in the protocols of git and docker",
      tail: """
        git: {hosts: [a.example], username: ‸"x\\nhost=b.example"}
        docker: {hosts: [a.example], username: ‸'{uppercase("\\n")}'}
        client: {id: ‸"x\\ry"}
        issuer: ‸"https://a.example\\0"

        """, .controlCharacter, .controlCharacter, .controlCharacter, .controlCharacter),
    FaultyDescriptor(
      "an invalid registry host", tail: "docker: {hosts: [‸\"https://a.example/\"]}\n",
      .invalidHost("https://a.example/")),
  ]

  static let values: [FaultyDescriptor] = [
    FaultyDescriptor(
      "a token of another issuer without an exchange",
      "provider: sample\ngrant: secrets\nendpoints: {}\nvariables: {a: {‸at_exchange: true}}\n",
      .withoutGrant("at_exchange", [.session, .jwtBearer, .tokenExchange])),
    FaultyDescriptor(
      "a token of an element that a refresh cannot find",
      leg: "response: {keep: [uid], fields: {access_token: element.tok}, element: ‸{label: name}}", .tokenOfElement),
    FaultyDescriptor(
      "a key file that names what credmgr reads",
      "provider: sample\ngrant: jwt_bearer\nendpoints: {token: https://a.example/t}\nkey: {file: ‸{subject: a, owner: b}}\n"
        + "variables: {subject: {at_exchange: true}, owner: {at_login: true}}\n",
      .unknownTemplateName("subject", suggestion: nil)),
    FaultyDescriptor("a list at the top", "‸- provider\n", .wrongType(expected: mapping)),
    FaultyDescriptor(
      "a text instead of a mapping", tail: "variables: ‸x\nexpiry: ‸1h\nextra_headers: ‸[a]\n",
      .wrongType(expected: mapping), .wrongType(expected: mapping), .wrongType(expected: mapping)),
    FaultyDescriptor(
      "a mapping instead of a text", tail: "title: ‸{a: b}\naccount: ‸{a: b}\nscope: [a, ‸{b: c}, ‸~]\n",
      .wrongType(expected: "a string"), .wrongType(expected: "a string"), .wrongType(expected: "a string"),
      .wrongType(expected: "a string")),
    FaultyDescriptor("an unquoted placeholder", tail: "redirect: ‸{redirect_uri}\n", .wrongType(expected: "a string")),
    FaultyDescriptor(
      "another word instead of true or false", tail: "oauth1: {version: ‸no}\n", .wrongType(expected: "true or false")),
    FaultyDescriptor(
      "a misspelled value", tail: "pkce: ‸S265\nstate: ‸optinal\n",
      .unknownValue("S265", allowed: ["S256", "S256-hex", "plain", "none"], suggestion: "S256"),
      .unknownValue("optinal", allowed: ["required", "optional"], suggestion: "optional")),
    FaultyDescriptor(
      "an unknown value", tail: "response_format: ‸csv\n",
      .unknownValue("csv", allowed: ["json", "form", "fragment", "query", "xml", "text"], suggestion: nil)),
    FaultyDescriptor(
      "an unknown grant",
      "provider: sample\ngrant: [client_credentials, ‸password]\nendpoints: {token: https://a.example/t}\n",
      .unknownValue(
        "password", allowed: Grant.allCases.map(\.rawValue),
        suggestion: nil)),
    FaultyDescriptor(
      "unknown values of an endpoint", leg: "method: ‸get, send: ‸body, authentication: ‸basic, tokens: [‸id_token]",
      .unknownValue("get", allowed: ["GET", "POST", "PUT", "PATCH", "DELETE"], suggestion: "GET"),
      .unknownValue("body", allowed: ["query", "form", "json", "fragment"], suggestion: nil),
      .unknownValue(
        "basic",
        allowed: [
          "client_secret_basic", "client_secret_post", "private_key_jwt", "client_secret_jwt", "tls_client_auth",
          "self_signed_tls_client_auth", "none", "access_token",
        ], suggestion: nil), .unknownValue("id_token", allowed: ["access_token", "refresh_token"], suggestion: nil)),
    FaultyDescriptor(
      "an unknown signature", tail: "oauth1: {signature_method: ‸HMAC-MD5, transport: ‸headers}\n",
      .unknownValue(
        "HMAC-MD5",
        allowed: ["HMAC-SHA1", "HMAC-SHA256", "HMAC-SHA512", "RSA-SHA1", "RSA-SHA256", "RSA-SHA512", "PLAINTEXT"],
        suggestion: nil), .unknownValue("headers", allowed: ["header", "body", "query"], suggestion: "header")),
    FaultyDescriptor(
      "durations", tail: "expiry: {lifetime: ‸1 hour, margin: ‸-5s}\ndevice: {interval: ‸5, slow_down: ‸x0.5}\n",
      .invalidDuration("1 hour"), .invalidDuration("-5s"), .invalidDuration("5"), .invalidDuration("x0.5")),
    FaultyDescriptor(
      "names",
      "provider: ‸Sample/1\ngrant: client_credentials\nendpoints: {token: \"https://a.example/{a}{b c}\"}\nvariables: {a: , ‸b c: , ‸client_id: , ‸code: }\nresponse: {keep: ‸[state, ok]}\n"
        .replacing("{b c}", with: "{client_id}{code}"), .malformedName("Sample/1"), .malformedName("b c"),
      .malformedName("client_id"), .malformedName("code"), .malformedName("state")),
    FaultyDescriptor(
      "a pattern", tail: "variables: {v: {pattern: ‸\"[0-9\", default: a.example}}\nhosts: [\"{v}\"]\n",
      .invalidPattern("[0-9")),
    FaultyDescriptor(
      "defaults that do not satisfy their rules",
      tail: """
        variables:
          a: {default: ‸x, pattern: "[0-9]+"}
          b: {default: ‸x, choices: [y, z]}
          c: {default: ‸a/b, format: hostname}
          d: {default: ‸http://a.example, format: url}
          e: {default: ‸"", format: text}
        extra_headers: {X-All: "{a}{b}{c}{d}{e}"}

        """, .invalidDefault(variable: "a"), .invalidDefault(variable: "b"), .invalidDefault(variable: "c"),
      .invalidDefault(variable: "d"), .invalidDefault(variable: "e")),
  ]

  static let templates: [FaultyDescriptor] = [
    FaultyDescriptor(
      "a template with an unknown name", tail: "hosts: [‸\"{tenant}.a.example\"]\n",
      .unknownTemplateName("tenant", suggestion: nil)),
    FaultyDescriptor(
      "a template with a misspelled name",
      tail: "variables: {tenant: }\nhosts: [‸\"{tennant}.a.example\", \"{tenant}.b.example\"]\n",
      .unknownTemplateName("tennant", suggestion: "tenant")),
    FaultyDescriptor(
      "a value known only during an exchange", tail: "git: {hosts: [a.example], username: ‸\"{access_token}\"}\n",
      .secretInAddress("access_token")),
    FaultyDescriptor(
      "a secret in the header of a request that the browser sees",
      tail: "request_object: true\nassertion: {header: ‸{x: \"{access_token}\"}}\n", .secretInAddress("access_token")),
    FaultyDescriptor(
      "the redirect without a variable of that name", tail: "redirect: ‸\"{redirect_uri}\"\n",
      .unknownTemplateName("redirect_uri", suggestion: nil)),
    FaultyDescriptor(
      "braces", tail: "extra_headers: {X-A: ‸\"a{b\", X-B: ‸\"a}b\", X-C: ‸\"{}\", X-D: ‸\"{rot13(client_id)}\"}\n",
      .template(.unbalancedBrace(offset: 1)), .template(.unbalancedBrace(offset: 1)), .template(.malformedPlace("")),
      .template(.unknownFunction("rot13"))),
    FaultyDescriptor(
      "http outside loopback",
      "provider: sample\ngrant: client_credentials\nendpoints: {token: ‸http://a.example/token}\n",
      .insecureURL("http://a.example/token")),
    FaultyDescriptor(
      "http with a variable host",
      "provider: sample\ngrant: client_credentials\nendpoints: {token: ‸\"http://{host}/token\"}\nvariables: {host: }\n",
      .insecureURL("http://sample/token")),
    FaultyDescriptor(
      "addresses that only look like loopback",
      "provider: sample\ngrant: client_credentials\nendpoints: {token: ‸http://127.0.0.1.a.example/t, refresh: ‸http://localhost.a.example/t}\n",
      .insecureURL("http://127.0.0.1.a.example/t"), .insecureURL("http://localhost.a.example/t")),
    FaultyDescriptor(
      "invalid URLs",
      "provider: sample\ngrant: client_credentials\nendpoints: {token: ‸a.example/token, refresh: ‸\"https://user@a.example/t\", identity: ‸\"https:///t\"}\n",
      .invalidURL("a.example/token"), .invalidURL("https://user@a.example/t"), .invalidURL("https:///t")),
    FaultyDescriptor(
      "an invalid default host",
      "provider: sample\ngrant: client_credentials\nendpoints: {token: ‸\"https://{host}/t\"}\nvariables: {host: {default: a/b}}\n",
      .invalidURL("https://{host}/t")),
    FaultyDescriptor(
      "hosts",
      tail:
        "hosts: [‸https://a.example, ‸a.example/path, ‸\"*\", ‸\"a.*.example\", ‸\"a b\", ‸user@a.example, ‸a.example:0, ‸.a.example, \"[::1]:8080\", \"[2001:DB8::1]\", ‸\"[::1]/a\", ‸\"[::1]?\", ‸\"[a.example]\"]\n",
      .invalidHost("https://a.example"), .invalidHost("a.example/path"), .invalidHost("*"), .invalidHost("a.*.example"),
      .invalidHost("a b"), .invalidHost("user@a.example"), .invalidHost("a.example:0"), .invalidHost(".a.example"),
      .invalidHost("[::1]/a"), .invalidHost("[::1]?"), .invalidHost("[a.example]")),
  ]

  static let owned: [FaultyDescriptor] = [
    FaultyDescriptor(
      "parameters that the engine owns",
      "provider: sample\ngrant: implicit\nendpoints:\n  authorization: {url: https://a.example/a, parameters: {‸state: x, ‸code_challenge: ~, ‸nonce: y, ‸oauth_signature: z, prompt: w}, choose: {‸redirect_uri: x, prompt: w}}\n",
      .ownedParameter("state"), .ownedParameter("code_challenge"), .ownedParameter("nonce"),
      .ownedParameter("oauth_signature"), .ownedParameter("redirect_uri")),
    FaultyDescriptor(
      "another client",
      "provider: sample\ngrant: implicit\nendpoints:\n  authorization: {url: https://a.example/a, rename: {client_id: key, scope: ‸client_id}, parameters: {‸client_id: x, ‸key: y}}\n  token: {url: https://a.example/t, parameters: {client_id: x}}\n",
      .ownedParameter("client_id"), .ownedParameter("client_id"), .ownedParameter("key")),
    FaultyDescriptor(
      "another parameter renamed to an owned one",
      "provider: sample\ngrant: implicit\nendpoints:\n  authorization: {url: https://a.example/a, rename: {scope: ‸state, state: custom, code_challenge: code_challenge}}\n",
      .ownedParameter("state")),
    FaultyDescriptor(
      "the proof key's verifier at the authorization endpoint",
      leg: "parameters: {‸code_verifier: x, state: y, nonce: z}, rename: {grant_type: ‸oauth_token}",
      .ownedParameter("code_verifier"), .ownedParameter("oauth_token")),
    FaultyDescriptor(
      "an owned parameter in the query of the URL",
      "provider: sample\ngrant: implicit\nendpoints: {authorization: ‸\"https://a.example/t?v=1&state=x\", token: ‸\"https://a.example/t?state=x&code_verifier=y\"}\n",
      .ownedParameter("state"), .ownedParameter("code_verifier")),
    FaultyDescriptor(
      "secrets that credmgr would show",
      tail:
        "response: {keep: {who: ‸access_token, b: ‸authed_user.refreshToken, c: ‸\"header:Access-Token\", d: sub}}\naccount: [login, ‸data.0.id_token]\n",
      .shownSecret("access_token"), .shownSecret("authed_user.refreshToken"), .shownSecret("header:Access-Token"),
      .shownSecret("data.0.id_token")),
    FaultyDescriptor(
      "secrets under custom names",
      tail: "response: {within: body, fields: {access_token: ticket}, keep: {a: ‸ticket, b: ‸body.ticket, e: user}}\n",
      .shownSecret("ticket"), .shownSecret("body.ticket")),
    FaultyDescriptor(
      "secrets in fields that users see",
      "provider: sample\ngrant: device_code\nendpoints:\n  token: https://a.example/t\n  device_authorization: {url: https://a.example/d, response: {fields: {device_code: dc, user_code: ‸[code, device_code], verification_uri: ‸dc, scope: s}}}\n",
      .shownSecret("device_code"), .shownSecret("dc")),
    FaultyDescriptor(
      "headers that the connection owns",
      tail: "extra_headers: {‸Host: a.example, ‸content-length: 0, ‸Transfer-Encoding: chunked, ‸Cookie: a=b}\n",
      .forbiddenHeader("Host"), .forbiddenHeader("content-length"), .forbiddenHeader("Transfer-Encoding"),
      .forbiddenHeader("Cookie")),
    FaultyDescriptor(
      "invalid headers",
      tail: "extra_headers: {‸\"X A\": b, ‸\"X\\r\\nY\": b, X-B: ‸\"a\\r\\nHost: evil.example\", ‸\"\": c}\n",
      .forbiddenHeader("X A"), .forbiddenHeader("X\r\nY"), .forbiddenHeader("X-B"), .forbiddenHeader("")),
    FaultyDescriptor(
      "headers of an endpoint", leg: "headers: {‸Host: a.example, X-B: ‸\"a\\nb\"}",
      .forbiddenHeader("Host"), .forbiddenHeader("X-B")),
    FaultyDescriptor("the header of the token", tail: "header_style: {header: ‸Host}\n", .forbiddenHeader("Host")),
    FaultyDescriptor(
      "a header instead of a scheme", tail: "header_style: ‸\"Authorization: token\"\n",
      .headerInScheme("Authorization: token")),
    FaultyDescriptor("the scheme of the token", tail: "header_style: ‸\"a\\nb\"\n", .forbiddenHeader("a\nb")),
    FaultyDescriptor(
      "parameters after the token", tail: "header_style: {parameters: {‸\"a b\": x}}\n", .forbiddenHeader("a b")),
  ]

  static let whole: [FaultyDescriptor] = [
    FaultyDescriptor(
      "an owned parameter in PHP's notation",
      "provider: sample\ngrant: implicit\nendpoints:\n  authorization: {url: ‸\"https://a.example/a?redirect%5Buri=x\", parameters: {‸\"redirect[uri\": x, ‸\"redirect_uri[]\": x, ‸\"client.id\": x, \"redirect[uri]\": y}}\n",
      .ownedParameter("redirect_uri"), .ownedParameter("redirect[uri"), .ownedParameter("redirect_uri[]"),
      .ownedParameter("client.id")),
    FaultyDescriptor(
      "a grant without its endpoints",
      "provider: sample\ngrant: [‸authorization_code, ‸device_code, ‸oauth1]\nendpoints: {authorization: https://a.example/a}\n",
      .grantWithoutEndpoint(grant: "authorization_code", endpoint: "token"),
      .grantWithoutEndpoint(grant: "device_code", endpoint: "device_authorization"),
      .grantWithoutEndpoint(grant: "device_code", endpoint: "token"),
      .grantWithoutEndpoint(grant: "oauth1", endpoint: "temporary_credentials"),
      .grantWithoutEndpoint(grant: "oauth1", endpoint: "token")),
    FaultyDescriptor(
      "a removed endpoint",
      "provider: sample\ngrant: ‸client_credentials\nendpoints: {token: https://a.example/t, client_credentials: ~}\n",
      .grantWithoutEndpoint(grant: "client_credentials", endpoint: "token")),
    FaultyDescriptor("an unknown base", tail: "extends: ‸nobody\n", .unknownBase("nobody")),
    FaultyDescriptor("an invalid base identifier", tail: "extends: ‸../secret\n", .malformedName("../secret")),
    FaultyDescriptor("a missing base of the same name", tail: "extends: ‸sample\n", .unknownBase("sample")),
    FaultyDescriptor(
      "invalid YAML", "provider: sample\n  grant‸: x\n",
      .yaml(.syntax("mapping values are not allowed in this context"))),
    FaultyDescriptor("an empty file", "‸", .yaml(.empty)),
    FaultyDescriptor("two documents", sampleHead + "‸---\n" + sampleHead, .yaml(.severalDocuments)),
    FaultyDescriptor(
      "excessive nesting",
      tail: "response: " + String(repeating: "[", count: 32) + "‸[]" + String(repeating: "]", count: 32) + "\n",
      .yaml(.tooDeep(32))),
    FaultyDescriptor(
      "several findings in the order of the file",
      """
      provider: sample
      grant: [client_credentials, ‸browser]
      endpoints:
        token:
          url: ‸http://a.example/token
          parameters: {‸code_verifier: x}
        ‸identitiy: https://a.example/me
      header_style: {header: ‸Host}
      expiry: {lifetime: ‸soon}
      ‸expiry: {lifetime: 1h}
      """,
      .unknownValue(
        "browser", allowed: Grant.allCases.map(\.rawValue),
        suggestion: nil), .insecureURL("http://a.example/token"), .ownedParameter("code_verifier"),
      .unknownKey("identitiy", suggestion: "identity"), .forbiddenHeader("Host"), .invalidDuration("soon"),
      .yaml(.duplicateKey("expiry", firstLine: 9))),
  ]

  static func findings(of faulty: FaultyDescriptor) -> [Finding] {
    let marked = MarkedText(faulty.marked)
    let findings = DescriptorLibrary(directories: []) { _ in nil }.check(marked.bytes, name: "sample.yaml").findings
    #expect(findings.map(\.problem) == faulty.problems)
    var places: [MarkedText.Mark] = []
    for finding in findings {
      let place = MarkedText.Mark(line: finding.place.line, column: finding.place.column)
      if !places.contains(place) { places.append(place) }
    }
    #expect(places == marked.marks)
    return findings
  }

  @Test(arguments: keys + values + templates + owned + whole)
  func errorsHaveTheirPlace(_ faulty: FaultyDescriptor) throws {
    let findings = Self.findings(of: faulty)
    #expect(findings.allSatisfy { $0.severity == .error })
    let library = DescriptorLibrary(directories: []) { _ in nil }
    #expect(throws: ProviderError.invalid(findings)) {
      try library.load(MarkedText(faulty.marked).bytes, name: "sample.yaml")
    }
  }

  @Test func invalidUTF8IsReportedAtTheBeginning() {
    let library = DescriptorLibrary(directories: []) { _ in nil }
    let findings = library.check(Array(sampleHead.utf8) + [0xFF], name: "sample.yaml").findings
    #expect(findings.map(\.problem) == [.yaml(.notUTF8)])
  }

  @Test func overlongDescriptors() {
    let library = DescriptorLibrary(directories: []) { _ in nil }
    let bytes = Array((sampleHead + "#" + String(repeating: "x", count: 256 * 1024)).utf8)
    #expect(library.check(bytes, name: "sample.yaml").findings.map(\.problem) == [.yaml(.tooLarge(bytes: 256 * 1024))])
  }

  @Test func aliasBombs() {
    var bomb = sampleHead + "title: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for name in ["b", "c", "d", "e", "f"] {
      let previous = Character(name).asciiValue.map { String(UnicodeScalar($0 - 1)) } ?? ""
      bomb += "\(name): &\(name) [" + Array(repeating: "*\(previous)", count: 10).joined(separator: ", ") + "]\n"
    }
    let library = DescriptorLibrary(directories: []) { _ in nil }
    let findings = library.check(Array(bomb.utf8), name: "sample.yaml").findings
    #expect(findings.map(\.problem) == [.yaml(.tooManyNodes(20_000))])
  }

  /// A variable that only a program reads, for the addresses of the API.
  @Test func aVariableOfTheEnvironmentIsUsed() throws {
    let text = sampleHead + "variables: { site: }\nenvironment: { site: SAMPLE_SITE_ID }\n"
    let library = DescriptorLibrary(directories: []) { _ in nil }
    #expect(try library.load(Array(text.utf8), name: "sample.yaml").warnings.isEmpty)
  }

  @Test func unusedVariablesAreWarnings() throws {
    let marked = MarkedText(sampleHead + "variables: {‸spare: {default: x}}\n")
    let library = DescriptorLibrary(directories: []) { _ in nil }
    let loaded = try library.load(marked.bytes, name: "sample.yaml")
    #expect(loaded.warnings.map(\.problem) == [.unusedVariable("spare")])
    #expect(loaded.warnings.map(\.severity) == [.warning])
    #expect(loaded.warnings.map { .init(line: $0.place.line, column: $0.place.column) } == marked.marks)
  }

  @Test func theFileMustHaveTheProvidersName() throws {
    let problem = Finding.Problem.identifierIsNotFileName(identifier: "sample", fileName: "other.yaml")
    // Outside the path, another file name is only a warning, because it causes no error until the file is installed.
    let outside = DescriptorLibrary(directories: []) { _ in nil }
    #expect(try outside.load(Array(sampleHead.utf8), name: "x/other.yaml").warnings.map(\.problem) == [problem])
    #expect(try outside.load(Array(sampleHead.utf8), name: "<standard input>").warnings.isEmpty)
    let inside = MemoryLibrary(["other": sampleHead]).library
    let error = try #require(throws: ProviderError.self) { try inside.load("other") }
    guard case .invalid(let findings) = error else { throw error }
    #expect(findings.map(\.problem) == [problem])
  }
}

@Suite struct NearMissTests {
  static let words: [(word: String, suggestion: String?)] = [
    ("endpoint", "endpoints"), ("endpionts", "endpoints"), ("ENDPOINTS", "endpoints"), ("enpoint", "endpoints"),
    ("git", "git"), ("gti", "git"), ("xyz", nil), ("colour", nil), ("pro", "provider"), ("", nil),
  ]

  @Test(arguments: words) func suggestion(_ word: String, _ suggestion: String?) {
    #expect(nearMiss(word, among: ["provider", "endpoints", "git", "scope"]) == suggestion)
  }
}
