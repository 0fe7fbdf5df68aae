import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrText
import Testing

@testable import CredmgrCredentialManager

/// Logins that the user confirms on another device (CIBA Core 1.0), and with authorization details (RFC 9396).
struct RichLoginTests {
  static let ciba = """
    grant: ciba
    endpoints:
      backchannel_authentication: https://provider.example/bc-authorize
      token: https://provider.example/token
    scope: [openid]
    hosts: [api.provider.example]
    """

  private static let acknowledgement = HTTPResponse.json(#"{"auth_req_id":"R-1","expires_in":60,"interval":3}"#)

  private static func pending(_ code: String = "authorization_pending") -> HTTPResponse {
    .json("{\"error\":\"\(code)\"}", status: 400)
  }

  @Test func theUserConfirmsOnAnotherDevice() throws {
    let fixture = try Fixture.added(Self.ciba)
    fixture.user.typed = ["ana@example.org"]
    fixture.http.then(Self.acknowledgement, Self.pending(), Self.pending("slow_down"), .token("token-1"))
    let account = try fixture.login()
    #expect(account.name == "ana@example.org" && account.credential.accessToken == Secret("token-1"))
    // The pauses are 3, 3, then slower: 8.
    #expect(fixture.clock.now() == Fixture.now + .seconds(14))
    let request = fixture.http.requests[0].parameters
    #expect(request[first: "login_hint"] == "ana@example.org" && request[first: "scope"] == "openid")
    let message = try #require(request[first: "binding_message"])
    #expect(
      fixture.user.steps == [
        .confirmation(bindingMessage: message, validFor: .seconds(60), patience: .seconds(300))
      ])
    #expect(fixture.http.requests[1].parameters[first: "auth_req_id"] == "R-1")
    try fixture.expectNothingLeft()
  }

  @Test func theUserRefuses() throws {
    let fixture = try Fixture.added(Self.ciba)
    fixture.user.typed = ["ana"]
    fixture.http.then(Self.acknowledgement, Self.pending("access_denied"))
    let error = #expect(throws: CredentialError.self) { try fixture.login() }
    guard case .oauth(.refused(.backchannelToken, let refusal), _)? = error, refusal.code == "access_denied" else {
      Issue.record("\(String(describing: error))")
      return
    }
    try fixture.expectNothingLeft()
  }

  /// A variable brings the name without a terminal.
  @Test func withoutATerminal() throws {
    let fixture = try Fixture.added(Self.ciba)
    let missing = CredentialError.keyFileNeeded(
      provider: "example", ["user name at the provider"], variables: ["login_hint"])
    #expect(throws: missing) { try fixture.login() }
    fixture.http.then(Self.acknowledgement, .token("token-1"))
    #expect(try fixture.login { $0.variables = ["login_hint": "ana"] }.name == "ana")
  }

  // MARK: Authorization details

  @Test func detailsOfALogin() throws {
    let fixture = try Fixture.added(
      """
      grant: client_credentials
      endpoints: { token: https://provider.example/token }
      authorization_details: { default: '[{"type":"read"}]', types: [read, pay] }
      hosts: [api.provider.example]
      """)
    let granted = #","authorization_details":[{"type":"pay","amount":"1"}]"#
    fixture.http.then(ServiceAccountTests.token("token-1"))
    fixture.http.then(.json("{\"access_token\":\"token-2\",\"expires_in\":3600\(granted)}"))
    fixture.http.then(ServiceAccountTests.token("token-3"))
    #expect(try fixture.login().credential.requestedDetails?.text == #"[{"type":"read"}]"#)
    let pay = try #require(AuthorizationDetails(#"[{"type":"pay"}]"#))
    let account = try fixture.login { ($0.account, $0.details) = ("pay", pay) }
    #expect(account.credential.grantedDetails?.text == #"[{"type":"pay","amount":"1"}]"#)
    // A new token has the same details.
    fixture.clock.advance(.seconds(3600))
    let later = try fixture.source.handOut("pay", of: "example", by: .token, to: .caller)
    #expect(later.credential.grantedDetails == account.credential.grantedDetails)
    #expect(
      fixture.http.requests.map { $0.parameters[first: "authorization_details"] } == [
        #"[{"type":"read"}]"#, #"[{"type":"pay"}]"#, #"[{"type":"pay"}]"#,
      ])
    // A type that the provider does not know is not sent.
    let other = AuthorizationDetails(#"[{"type":"other"}]"#)
    #expect(throws: CredentialError.detailsNotSupported(provider: "example", type: "other", known: ["read", "pay"])) {
      try fixture.login { $0.details = other }
    }
  }

  @Test func metadata() throws {
    let discovery = try DiscoveryTests.discover(
      """
      "backchannel_authentication_endpoint": "https://login.example/bc",
      "backchannel_token_delivery_modes_supported": ["poll", "ping"],
      "grant_types_supported": ["authorization_code", "urn:openid:params:grant-type:ciba"],
      "authorization_details_types_supported": ["read", "pay"]
      """)
    #expect(discovery.text.contains("\ngrant: [authorization_code, ciba]\n"))
    #expect(
      discovery.text.contains(
        "\n  backchannel_authentication: https://login.example/bc  # backchannel_authentication_endpoint\n"))
    #expect(discovery.text.contains("\nauthorization_details: { types: [read, pay] }\n"))
    let push = try DiscoveryTests.discover(
      """
      "backchannel_authentication_endpoint": "https://login.example/bc",
      "backchannel_token_delivery_modes_supported": ["push"],
      "grant_types_supported": ["authorization_code", "urn:openid:params:grant-type:ciba"]
      """)
    #expect(!push.text.contains("backchannel") && !push.text.contains("ciba"))
  }
}
