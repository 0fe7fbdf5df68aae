import Testing

@testable import CredmgrDescriptors

@Suite struct EffectTests {
  static let vain: [FaultyDescriptor] = [
    FaultyDescriptor(
      "keys of missing grants",
      tail: "‸oauth1: {version: false}\n‸device: {interval: 5s}\n‸redirect: https://a.example/cb\n",
      .withoutGrant("oauth1", [.oauth1]), .withoutGrant("device", [.deviceCode]),
      .withoutGrant("redirect", [.authorizationCode, .implicit, .oauth1])),
    FaultyDescriptor(
      "an endpoint of a missing grant",
      "provider: sample\ngrant: client_credentials\n"
        + "endpoints: {token: https://a.example/t, ‸device_authorization: https://a.example/d}\n",
      .withoutGrant("device_authorization", [.deviceCode])),
    FaultyDescriptor(
      "programs that cannot sign requests",
      "provider: sample\ngrant: oauth1\nendpoints: {temporary_credentials: https://a.example/r, "
        + "authorization: https://a.example/a, token: https://a.example/t}\n‸git: {hosts: [a.example]}\n"
        + "‸kubectl: {hosts: [a.example]}\n", .boundToken("git"), .boundToken("kubectl")),
    FaultyDescriptor(
      "fields that no response here contains",
      tail: "response: {fields: {‸verification_uri: u, access_token: t}, ‸active: valid}\n",
      .readElsewhere("verification_uri", [.deviceAuthorization]), .readElsewhere("active", [.introspection])),
    FaultyDescriptor(
      "keys for other endpoints", leg: "‸follows: refresh, response: {fields: {‸code: c}}",
      .readElsewhere("follows", [.tokenExchange, .identity]), .readElsewhere("code", [.authorization])),
    FaultyDescriptor(
      "parameters that credmgr does not send", leg: "rename: {‸clientid: x}, in_query: [‸redirect], verbatim: [‸bogus]",
      .unsentParameter("clientid", suggestion: "client_id"), .unsentParameter("redirect", suggestion: "redirect_uri"),
      .unsentParameter("bogus", suggestion: nil)),
    FaultyDescriptor(
      "a path with a bracket",
      "provider: sample\ngrant: client_credentials\naccount: [id, ‸\"user[email]\"]\n"
        + "endpoints: {token: https://a.example/t, identity: https://a.example/me}\n", .bracketInPath("user[email]")),
    FaultyDescriptor(
      "an account's name that nothing supplies", tail: "account: [‸login, id]\nresponse: {keep: [id]}\n",
      .accountWithoutSource("login")),
    FaultyDescriptor(
      "an account's name that is secret",
      "provider: sample\ngrant: session\naccount: ‸password\nvariables: {password: {at_login: true, secret: true}}\n"
        + "endpoints: {token: {url: https://a.example/t, parameters: {p: \"{password}\"}}}\n",
      .shownSecret("password")),
    FaultyDescriptor(
      "lists without an entry",
      "provider: sample\ngrant: client_credentials\ngit: {‸hosts: [], username: x}\nendpoints: {token: "
        + "https://a.example/t, revocation: {url: https://a.example/r, ‸tokens: []}, introspection: {url: "
        + "https://a.example/i, response: {active: {path: a, ‸equals: []}}}}\n",
      .emptyList("hosts"), .emptyList("tokens"), .emptyList("equals")),
    FaultyDescriptor(
      "keys at the browser's page, and the browser's key elsewhere",
      "provider: sample\ngrant: authorization_code\nendpoints: {authorization: {url: https://a.example/a, "
        + "‸method: POST, ‸headers: {X-A: b}, ‸authentication: none}, token: {url: https://a.example/t, "
        + "‸choose: {prompt: login}}}\n",
      .sentByBrowser("method"), .sentByBrowser("headers"), .sentByBrowser("authentication"),
      .readElsewhere("choose", [.authorization])),
    FaultyDescriptor(
      "a field of OAuth 1.0a, and a mistyped code",
      tail: "response: {fields: {‸oauth_token: t}, errors: {meanings: {x: ‸invalid_gramt, y: own_code}}}\n",
      .withoutGrant("oauth_token", [.oauth1]),
      .unknownValue("invalid_gramt", allowed: [], suggestion: "invalid_grant")),
    FaultyDescriptor(
      "a required issuer that is unknown",
      "provider: sample\ngrant: authorization_code\n‸iss: required\nendpoints: {authorization: https://a.example/a, "
        + "token: https://a.example/t}\n", .withoutKey("iss", needed: "issuer")),
    FaultyDescriptor(
      "keys of an unknown issuer",
      "provider: sample\ngrant: authorization_code\nendpoints: {authorization: https://a.example/a, "
        + "token: https://a.example/t, ‸jwks: https://a.example/k}\n", .withoutKey("jwks", needed: "issuer")),
    FaultyDescriptor(
      "a signed answer that nothing verifies",
      "provider: sample\ngrant: authorization_code\nendpoints: {authorization: {url: https://a.example/a, "
        + "parameters: {response_mode: ‸jwt}}, token: https://a.example/t}\n", .unverifiableAnswer(needed: "issuer"),
      .unverifiableAnswer(needed: "jwks")),
    FaultyDescriptor("an assertion that nothing sends", tail: "‸assertion: {lifetime: 1m}\n", .unusedAssertion),
    FaultyDescriptor(
      "an assertion in a header of the API", tail: "extra_headers: {X-JWT: ‸\"{assertion}\"}\n", .assertionInRequest),
    FaultyDescriptor(
      "an assertion in the query of the API", tail: "extra_query: {jwt: ‸\"{base64(assertion)}\"}\n",
      .assertionInRequest),
    FaultyDescriptor(
      "a variable of the login with a default", tail: "variables: {region: {‸at_login: true, default: eu}}\n",
      .unpromptedVariable("region")),
    FaultyDescriptor(
      "a page without TLS", tail: "client: {register: ‸http://a.example/apps}\n",
      .invalidURL("http://a.example/apps")),
    FaultyDescriptor(
      "two scopes in one text", tail: "scope: {default: ‸read write, separator: \",\"}\n", .blankInScope("read write")),
  ]

  @Test(arguments: vain) func keysWithoutEffectAreWarnings(_ faulty: FaultyDescriptor) throws {
    let findings = FindingTests.findings(of: faulty)
    #expect(findings.allSatisfy { $0.severity == .warning })
    let library = DescriptorLibrary(directories: []) { _ in nil }
    #expect(try library.load(MarkedText(faulty.marked).bytes, name: "sample.yaml").warnings == findings)
  }

  /// An endpoint may send additional and renamed parameters.
  @Test func sentParametersCauseNoWarning() throws {
    let leg = "parameters: {key: x}, rename: {key: k, client_id: appid}, in_query: [appid, key, scope]"
    let text = "provider: sample\ngrant: client_credentials\nendpoints: {token: {url: https://a.example/t, \(leg)}}\n"
    #expect(DescriptorLibrary(directories: []) { _ in nil }.check(Array(text.utf8), name: "sample.yaml").findings == [])
  }

  @Test(arguments: [
    "client: {authentication: private_key_jwt}\n", "grant: client_credentials\nextra_headers: {}\n",
  ]) func aSentAssertionCausesNoWarning(_ rest: String) {
    let isClient = rest.hasPrefix("client")
    let leg = isClient ? "https://a.example/t" : "{url: https://a.example/t, parameters: {assertion: \"{assertion}\"}}"
    let text =
      "provider: sample\n" + (isClient ? "grant: client_credentials\n" : "") + rest
      + "assertion: {lifetime: 1m}\nendpoints: {token: \(leg)}\n"
    #expect(DescriptorLibrary(directories: []) { _ in nil }.check(Array(text.utf8), name: "sample.yaml").findings == [])
  }

  /// A base may have keys that a descriptor does not use.
  @Test func inheritedKeysCauseNoWarning() throws {
    let base =
      "provider: base\ngrant: [client_credentials, oauth1]\noauth1: {version: false}\n"
      + "variables: {spare: {default: x}}\nendpoints:\n"
      + ["token", "temporary_credentials", "authorization"].map { "  \($0): https://a.example/\($0)\n" }.joined()
    let library = MemoryLibrary(["base": base, "top": "provider: top\nextends: base\ngrant: client_credentials\n"])
      .library
    #expect(try library.load("top").warnings == [])
  }

  @Test(arguments: [("openid profile", " "), ("openid,profile", ",")])
  func aTextMayContainSeveralScopes(_ scope: String, _ separator: String) throws {
    let descriptor = try descriptor(
      sampleHead + "scope: {default: \"\(scope)\", separator: \"\(separator)\"}\n")
    #expect(descriptor.scope.requested == ["openid", "profile"])
  }
}
