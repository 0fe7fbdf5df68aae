import CredmgrYAML
import Testing

@testable import CredmgrDescriptors

/// Tests `profile: fapi2` (FAPI 2.0 Security Profile) and `profile: fapi2_message_signing`.
struct ProfileTests {
  private static let whole = """
    provider: bank
    profile: fapi2
    grant: authorization_code
    endpoints:
      pushed_authorization_request: https://login.bank.example/par
      authorization: https://login.bank.example/authorize
      token: https://login.bank.example/token
    issuer: https://login.bank.example
    hosts: [api.bank.example]

    """

  private static func check(_ text: String) -> (descriptor: Descriptor?, rules: [ProfileRule]) {
    let library = DescriptorLibrary(directories: []) { _ in nil }
    let rules = library.check(Array(text.utf8), name: "bank.yaml").findings.compactMap { finding in
      if case .profile(_, let rule) = finding.problem, finding.severity == .error { rule } else { nil }
    }
    return (try? library.load(Array(text.utf8), name: "bank.yaml").descriptor, rules)
  }

  @Test func theProfileSetsWhatIsMissing() throws {
    let (loaded, rules) = Self.check(Self.whole)
    let descriptor = try #require(loaded)
    #expect(rules.isEmpty)
    #expect(descriptor.pkce == .s256 && descriptor.issuerResponse == .required && descriptor.tokenBinding == .dpop)
    #expect(descriptor.client.authentication == .privateKeyJWT && descriptor.assertion?.algorithm == .es256)
    #expect(descriptor.binding(of: .authorizationCode) == .bound(.dpop))
    // The simulator writes the whole descriptor, which means the same.
    #expect(Self.check(descriptor.yaml).descriptor == descriptor)
  }

  @Test(arguments: [
    "token_binding: mutual_tls", "client: { authentication: tls_client_auth }",
    "client: { authentication: self_signed_tls_client_auth }", "iss: required", "pkce: S256",
    "assertion: { algorithm: ES256 }",
  ])
  func otherValuesOfTheProfile(_ line: String) { #expect(Self.check(Self.whole + line).rules == []) }

  @Test(
    arguments: [
      ("pkce: none", .proofKey), ("pkce: plain", .proofKey), ("pkce: S256-hex", .proofKey),
      ("iss: optional", .issuerResponse), ("token_binding: none", .binding),
      ("client: { authentication: client_secret_basic }", .authentication),
      ("client: { authentication: client_secret_jwt }", .authentication),
      ("client: { authentication: none }", .authentication), ("assertion: { algorithm: RS256 }", .algorithm),
      ("assertion: { algorithm: HS256 }", .algorithm),
      ("assertion: { claims: { aud: https://login.bank.example/token } }", .audience),
      ("assertion: { audience: endpoint }", .audience), ("id_token_signed_response_alg: RS256", .algorithm),
      ("header_style: { query: access_token }", .header), ("header_style: { body: token }", .header),
    ] as [(String, ProfileRule)])
  func otherValuesAreRefused(_ line: String, _ rule: ProfileRule) {
    let (descriptor, rules) = Self.check(Self.whole + line)
    #expect(rules == [rule])
    #expect(descriptor == nil)
  }

  // MARK: Message Signing

  private static let signing = whole.replacing("fapi2\n", with: "fapi2_message_signing\n")
    .replacing("  token:", with: "  jwks: https://login.bank.example/keys\n  token:")

  @Test func messageSigningSetsWhatIsMissing() throws {
    let (loaded, rules) = Self.check(Self.signing)
    let descriptor = try #require(loaded)
    #expect(rules.isEmpty)
    #expect(descriptor.signsRequests && descriptor.getsSignedAnswers && descriptor.tokenBinding == .dpop)
    #expect(Self.check(descriptor.yaml).descriptor == descriptor)
    // Without a login in a browser, nothing is signed.
    let machine = Self.signing.replacing("grant: authorization_code", with: "grant: client_credentials")
    #expect(Self.check(machine).descriptor?.signsRequests == false)
  }

  @Test(
    arguments: [
      ("request_object: false", .signedRequest), ("assertion: { lifetime: 61m }", .requestLifetime),
      ("pkce: plain", .proofKey),
    ] as [(String, ProfileRule)])
  func otherValuesThanMessageSigning(_ line: String, _ rule: ProfileRule) {
    #expect(Self.check(Self.signing + line).rules == [rule])
  }

  @Test(arguments: ["query.jwt", "query", "form_post.jwt"]) func otherAnswersThanMessageSigning(_ mode: String) {
    let page = "authorization: { url: https://login.bank.example/authorize, parameters: { response_mode: \(mode) } }"
    let text = Self.signing.replacing("authorization: https://login.bank.example/authorize", with: page)
    #expect(Self.check(text).rules == [.signedAnswer])
    let bare = Self.signing.replacing("  jwks: https://login.bank.example/keys\n", with: "")
    #expect(Self.check(bare).rules == [.keys])
  }

  @Test func missingParts() {
    let bare = """
      provider: bank
      profile: fapi2
      grant: [authorization_code, implicit]
      endpoints:
        authorization: https://login.bank.example/authorize
        token: { url: https://login.bank.example/token, authentication: none }

      """
    #expect(Self.check(bare).rules == [.issuer, .noImplicit, .pushedRequest, .authentication])
    let without = "token: { url: https://login.bank.example/token, parameters: { client_assertion: null } }"
    let text = Self.whole.replacing("token: https://login.bank.example/token", with: without)
    #expect(text != Self.whole && Self.check(text).rules == [.authentication])
  }
}
