import CredmgrDescriptors
import CredmgrHTTP
import Testing

@testable import CredmgrOAuth

/// Answers in XML and as bare text.
struct AnswerFormatTests {
  private static func client(_ response: String) throws -> Client {
    try Fixture.client(
      "response: { \(response) }\naccount: a.user.name", endpoints: "identity: https://provider.example/me")
  }

  private static func read(
    _ body: String, _ rules: String, status: Int = 200, type: String = "application/xml"
  ) throws -> Credential {
    let response = HTTPResponse(status: status, fields: ["Content-Type": type], body: Array(body.utf8))
    return try client(rules).outcome(response, .token, grant: .authorizationCode, scope: [], now: Fixture.now)
      .issued().credential
  }

  /// The old form of Concur's answers.
  private static let xml = """
    format: xml, within: Access_Token, keep: { instance_url: Instance_Url },
    fields: { access_token: Token, refresh_token: Refresh_Token, expires_at: Expiration_date },
    errors: { code: Error.Code, description: Error.Message, meanings: { Expired: invalid_grant } }
    """

  @Test func xml() throws {
    let credential = try Self.read(
      """
      <?xml version="1.0"?>
      <Access_Token xmlns:i="urn:i"><Instance_Url>https://eu.provider.example/</Instance_Url><Token>t&#49;</Token>
      <Expiration_date>2030-01-01T00:00:00Z</Expiration_date><Refresh_Token i:kind="x">r1</Refresh_Token></Access_Token>
      """, Self.xml)
    #expect(credential.accessToken.reveal() == "t1" && credential.refreshToken?.reveal() == "r1")
    #expect(credential.kept == ["instance_url": "https://eu.provider.example/"])
    #expect(credential.expiresAt == 1_893_456_000)
  }

  @Test func refusalsInXML() throws {
    let body = "<Error><Code>Expired</Code><Message>Log in &amp; try again</Message></Error>"
    for status in [200, 400, 401] {
      let answer = ErrorResponse(code: "invalid_grant", words: "Log in & try again", status: status)
      #expect(throws: OAuthError.refused(.token, answer)) { try Self.read(body, Self.xml, status: status) }
    }
    #expect(throws: OAuthError.unavailable(.token, status: 503, words: nil, retryAfter: nil)) {
      try Self.read("<html>", Self.xml, status: 503)
    }
    #expect(throws: OAuthError.refused(.token, ErrorResponse(code: "http_400", words: nil, status: 400))) {
      try Self.read("<html>", Self.xml, status: 400)
    }
  }

  @Test(arguments: [
    "", "<html>", "<a>&b;</a>", "{\"Access_Token\":{\"Token\":\"t\"}}",
  ]) func unreadableXML(_ body: String) {
    #expect(throws: OAuthError.unreadable(.token, expected: .xml, mediaType: "application/xml")) {
      try Self.read(body, Self.xml)
    }
  }

  /// A second token is never ignored.
  @Test func repeatedElements() {
    #expect(throws: OAuthError.malformedField(.token, .accessToken)) {
      try Self.read("<Access_Token><Token>a</Token><Token>b</Token></Access_Token>", Self.xml)
    }
  }

  @Test func labelledJSONIsJSON() throws {
    let body = "{\"Access_Token\":{\"Token\":\"t\"}}"
    #expect(try Self.read(body, Self.xml, type: "application/json").accessToken.reveal() == "t")
  }

  @Test func aListOfOneElement() throws {
    let client = try Fixture.client(
      "account: element.name",
      endpoints: """
        identity: { url: https://provider.example/me, response: { format: xml, element: { of: sites.site } } }
        """)
    for (sites, name) in [("<site><name>a</name></site>", "a"), ("<site name=\"b\"/><site name=\"c\"/>", "b")] {
      let response = HTTPResponse(status: 200, body: Array("<sites>\(sites)</sites>".utf8))
      #expect(try client.identity(response, element: 0).name == name)
    }
  }

  @Test func theRequestAcceptsXML() throws {
    let client = try Fixture.client(
      endpoints: "identity: { url: https://provider.example/me, response: { format: xml } }")
    let request = try client.identityRequest(Fixture.credential(), nonce: Fixture.nonce)
    #expect(request.fields["Accept"] == "application/xml")
  }

  private static let text = "format: text, fields: { access_token: text }"

  @Test(arguments: ["3940FAAC4CB8DD36", " 3940FAAC4CB8DD36\r\n", "\n3940FAAC4CB8DD36\n\n"])
  func bareText(_ body: String) throws {
    #expect(try Self.read(body, Self.text, type: "text/plain").accessToken.reveal() == "3940FAAC4CB8DD36")
    #expect(try Self.read(body, Self.text, type: "application/json").accessToken.reveal() == "3940FAAC4CB8DD36")
  }

  @Test(arguments: [
    "", " \n", "<html>Sign in</html>", " <!doctype html>", "a\nb", String(repeating: "a", count: 65_537),
  ]) func unreadableText(_ body: String) {
    #expect(throws: OAuthError.unreadable(.token, expected: .text, mediaType: "text/plain")) {
      try Self.read(body, Self.text, type: "text/plain")
    }
  }

  @Test(arguments: ["a\u{1}b", "ä"]) func textThatIsNoToken(_ body: String) {
    #expect(throws: OAuthError.malformedField(.token, .accessToken)) { try Self.read(body, Self.text) }
  }

  /// Only a success is a token. A refusal may be JSON.
  @Test func refusalsBesideText() {
    #expect(throws: OAuthError.refused(.token, ErrorResponse(code: "http_401", words: nil, status: 401))) {
      try Self.read("Unauthorized", Self.text, status: 401, type: "text/plain")
    }
    #expect(throws: OAuthError.refused(.token, ErrorResponse(code: "invalid_grant", words: nil, status: 400))) {
      try Self.read("{\"error\":\"invalid_grant\"}", Self.text, status: 400, type: "application/json")
    }
  }

  @Test func tokensInBothFormatsAreMasked() throws {
    let xml = KnownSecrets()
    xml.learn(
      HTTPResponse(status: 200, body: Array("<Access_Token><Token>token-1234</Token></Access_Token>".utf8)),
      of: try Self.client(Self.xml).descriptor)
    #expect(xml.masked("x token-1234") == "x …")
    let text = KnownSecrets()
    text.learn(HTTPResponse(status: 200, body: Array("token-1234\n".utf8)), of: try Self.client(Self.text).descriptor)
    #expect(text.masked("x token-1234") == "x …")
  }
}
