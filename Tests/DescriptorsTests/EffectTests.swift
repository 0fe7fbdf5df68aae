import Testing

@testable import Descriptors

@Suite struct EffectTests {
  static let vain: [FaultyDescriptor] = [
    FaultyDescriptor(
      "keys of grants that are not there",
      tail: "‸oauth1: {version: false}\n‸device: {interval: 5s}\n‸redirect: https://a.example/cb\n",
      .withoutGrant("oauth1", [.oauth1]), .withoutGrant("device", [.deviceCode]),
      .withoutGrant("redirect", [.authorizationCode, .implicit, .oauth1])),
    FaultyDescriptor(
      "an endpoint of such a grant",
      "provider: sample\ngrant: client_credentials\n"
        + "endpoints: {token: https://a.example/t, ‸device_authorization: https://a.example/d}\n",
      .withoutGrant("device_authorization", [.deviceCode])),
    FaultyDescriptor(
      "what the answers here are not asked for",
      tail: "response: {fields: {‸verification_uri: u, access_token: t}, ‸active: valid}\n",
      .readElsewhere("verification_uri", [.deviceAuthorization]), .readElsewhere("active", [.introspection])),
    FaultyDescriptor(
      "the same at an endpoint", leg: "‸follows: refresh, response: {fields: {‸code: c}}",
      .readElsewhere("follows", [.tokenExchange]), .readElsewhere("code", [.authorization])),
    FaultyDescriptor(
      "parameters that nobody sends", leg: "rename: {‸clientid: x}, in_query: [‸redirect], verbatim: [‸bogus]",
      .unsentParameter("clientid", suggestion: "client_id"), .unsentParameter("redirect", suggestion: "redirect_uri"),
      .unsentParameter("bogus", suggestion: nil)),
    FaultyDescriptor(
      "a path with a bracket", tail: "account: [id, ‸\"user[email]\"]\n", .bracketInPath("user[email]")),
    FaultyDescriptor(
      "an address without a scheme", tail: "client: {register: ‸a.example/apps}\n", .invalidURL("a.example/apps")),
    FaultyDescriptor(
      "two scopes as one", tail: "scope: {default: ‸read write, separator: \",\"}\n", .blankInScope("read write")),
  ]

  @Test(arguments: vain) func whatHasNoEffectIsToldWhereItStands(_ faulty: FaultyDescriptor) throws {
    let findings = FindingTests.findings(of: faulty)
    #expect(findings.allSatisfy { $0.severity == .warning })
    let library = DescriptorLibrary(directories: []) { _ in nil }
    #expect(try library.load(MarkedText(faulty.marked).bytes, name: "sample.yaml").warnings == findings)
  }

  /// A parameter that the endpoint adds is sent, and so is one under its new name.
  @Test func whatIsSentIsNoFault() throws {
    let leg = "parameters: {key: x}, rename: {key: k, client_id: appid}, in_query: [appid, key, scope]"
    let text = "provider: sample\ngrant: client_credentials\nendpoints: {token: {url: https://a.example/t, \(leg)}}\n"
    #expect(DescriptorLibrary(directories: []) { _ in nil }.check(Array(text.utf8), name: "sample.yaml").findings == [])
  }

  /// The base was written for more than what it is extended to.
  @Test func whatIsInheritedIsNoFault() throws {
    let base =
      "provider: base\ngrant: [client_credentials, oauth1]\noauth1: {version: false}\nendpoints:\n"
      + ["token", "temporary_credentials", "authorization"].map { "  \($0): https://a.example/\($0)\n" }.joined()
    let library = MemoryLibrary(["base": base, "top": "provider: top\nextends: base\ngrant: client_credentials\n"])
      .library
    #expect(try library.load("top").warnings == [])
  }

  @Test(arguments: [("openid profile", " "), ("openid,profile", ",")])
  func scopesInOneTextAreSeveral(_ scope: String, _ separator: String) throws {
    let descriptor = try descriptor(
      sampleHead + "scope: {default: \"\(scope)\", separator: \"\(separator)\"}\n")
    #expect(descriptor.scope.requested == ["openid", "profile"])
  }
}
