import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText
import Testing

@testable import CredmgrOAuth

/// Rich authorization requests (RFC 9396).
struct AuthorizationDetailsTests {
  private static let details = #"[{"type":"account_information","actions":["list_accounts"]}]"#
  private static let key = "authorization_details: '\(details)'"

  private static func sent(_ parameters: FormParameters) -> [String] { parameters.values(of: "authorization_details") }

  private static func form(_ request: HTTPRequest) -> [String] { sent(FormParameters(decoding: request.form)) }

  /// 3, 5 and 6: the same parameter in the page's request, a pushed one, and the token requests.
  @Test func everyRequestOfAGrantCarriesThem() throws {
    let client = try Fixture.client(
      Self.key, grant: "[authorization_code, device_code, client_credentials]",
      endpoints: """
        pushed_authorization_request: https://provider.example/par
        device_authorization: https://provider.example/device
        """)
    let request = try client.authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1/callback", scope: [], random: KnownRandom(),
      nonce: Fixture.nonce)
    #expect(Self.sent(request.uri.queryParameters) == [Self.details])
    #expect(Self.form(try client.pushedRequest(request, nonce: Fixture.nonce)) == [Self.details])
    #expect(Self.form(try client.deviceAuthorizationRequest(scope: [], nonce: Fixture.nonce)) == [Self.details])
    // A token for the client itself is requested again with the details of its login.
    var credential = Fixture.credential(grant: .clientCredentials)
    credential.requestedDetails = AuthorizationDetails(#"[{"type": "other"}]"#)
    let again = try client.refreshRequest(credential, nonce: Fixture.nonce)
    #expect(Self.form(again) == [#"[{"type":"other"}]"#])
    #expect(
      Self.form(
        try Fixture.client(grant: "client_credentials").refreshRequest(
          Fixture.credential(grant: .clientCredentials), nonce: Fixture.nonce)
      ).isEmpty)
  }

  private static func credential(_ members: String, _ previous: Credential? = nil) throws -> (
    Credential, [ResponseField]
  ) {
    let client = try Fixture.client(key)
    let answer = HTTPResponse.json(#"{"access_token": "t"\#(members)}"#)
    let issued = try client.outcome(
      answer, .token, grant: .authorizationCode, scope: [], previous: previous, now: Fixture.now
    ).issued()
    return (issued.credential, issued.unreadable)
  }

  /// 7: the answer says what was granted, which may be less or more than requested.
  @Test func grantedDetailsAreKept() throws {
    let granted = #", "authorization_details": [{"type": "account_information", "accounts": [{"iban": "DE1"}]}]"#
    let (credential, unreadable) = try Self.credential(granted)
    #expect(credential.requestedDetails?.text == Self.details && unreadable.isEmpty)
    #expect(credential.grantedDetails?.text == #"[{"type":"account_information","accounts":[{"iban":"DE1"}]}]"#)
    #expect(try Credential(decoding: credential.encoded) == credential)
    // A refresh that says nothing keeps them.
    let (refreshed, _) = try Self.credential("", credential)
    #expect(refreshed.grantedDetails == credential.grantedDetails)
    #expect(refreshed.requestedDetails == credential.requestedDetails)
  }

  @Test(arguments: [
    ("", []), (#", "authorization_details": []"#, []),
    (#", "authorization_details": "x""#, [ResponseField.authorizationDetails]),
    (#", "authorization_details": [{"actions": []}]"#, [.authorizationDetails]),
  ]) func answersWithoutUsableDetails(_ members: String, _ unreadable: [ResponseField]) throws {
    let (credential, found) = try Self.credential(members)
    #expect(credential.grantedDetails == nil && found == unreadable)
    #expect(credential.accessToken.reveal() == "t")
  }

  /// A text with a secret is not shown.
  @Test func detailsThatRepeatATokenAreDropped() throws {
    let client = try Fixture.client(Self.key)
    let token = "a-token-of-enough-bytes"
    let answer = HTTPResponse.json(#"{"access_token":"\#(token)","authorization_details":[{"type":"\#(token)"}]}"#)
    let credential = try client.outcome(answer, .token, grant: .authorizationCode, scope: [], now: Fixture.now).issued()
      .credential
    #expect(credential.grantedDetails == nil)
  }

  @Test(arguments: [
    "x", "{}", "[]", "[1]", "[{}]", #"[{"type": 1}]"#, #"[{"type": ""}]"#,
    #"[{"type": "a", "type": "b"}]"#, #"[{"type": "a", "b": [{"c": 1, "c": 2}]}]"#,
  ])
  func malformedDetails(_ text: String) throws {
    #expect(AuthorizationDetails(text) == nil)
    let error = #expect(throws: ProviderError.self) {
      try Fixture.client("authorization_details: '\(text)'")
    }
    guard case .invalid(let findings)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(findings.map(\.problem) == [.wrongType(expected: AuthorizationDetails.form)])
  }
}
