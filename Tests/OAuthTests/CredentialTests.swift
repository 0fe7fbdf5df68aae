import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrDescriptors
import Testing

@testable import CredmgrOAuth
import CredmgrText

struct CredentialTests {
  private static let full: Credential = {
    var credential = Credential(
      grant: .authorizationCode, accessToken: Secret("access \"é\"\n"), obtainedAt: 1_700_000_000, margin: .seconds(30))
    credential.tokenType = "Bearer"
    credential.expiresAt = 1_700_003_600
    credential.refreshToken = Secret("refresh")
    credential.refreshTokenExpiresAt = 1_800_000_000
    credential.tokenSecret = Secret("token secret")
    credential.sessionHandle = Secret("handle")
    credential.importedFrom = Secret("imported")
    credential.idToken = Secret("a.b.c")
    credential.requestedScope = ["a", "b c"]
    credential.grantedScope = []
    credential.kept = ["principalID": "p", "": ""]
    credential.variables = ["host": "h"]
    credential.redirectURI = "http://127.0.0.1:1/"
    credential.identity = "ana"
    credential.isRejected = true
    return credential
  }()

  @Test func readsBackUnchanged() throws {
    for grant in Grant.allCases {
      var credential = Self.full
      credential.grant = grant
      #expect(try Credential(decoding: credential.encoded) == credential)
    }
    let least = Credential(grant: .implicit, accessToken: Secret(""), obtainedAt: -1)
    #expect(try Credential(decoding: least.encoded) == least)
  }

  @Test func sameBytesEachTime() { #expect(Self.full.encoded == Self.full.encoded) }

  @Test(arguments: [
    "", "{}", "[]", "null", "{\"grant\":\"implicit\"}",
    "{\"grant\":\"telepathy\",\"access_token\":\"t\",\"obtained_at\":1,\"margin\":1}",
    "{\"grant\":\"implicit\",\"access_token\":1,\"obtained_at\":1,\"margin\":1}",
    "{\"grant\":\"implicit\",\"access_token\":\"t\",\"obtained_at\":\"1\",\"margin\":1}",
  ]) func malformed(_ text: String) {
    #expect(throws: OAuthError.malformedCredential) { try Credential(decoding: Secret(text)) }
  }

  // MARK: Secrets

  /// Returns every printable form of a value.
  private static func printed(_ value: Any) -> String {
    var dumped = ""
    dump(value, to: &dumped)
    return dumped + String(describing: value) + String(reflecting: value) + "\(value)"
  }

  @Test func nothingShowsASecret() throws {
    let client = try Fixture.client(
      "response: { keep: [user] }", endpoints: "device_authorization: https://provider.example/d", secret: "SECRET-0")
    let request = try client.authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1:1/", scope: [], random: KnownRandom(), nonce: Fixture.nonce)
    let response = try client.authorizationResponse([("code", "SECRET-1"), ("state", request.state)], to: request)
    let tokenRequest = try client.tokenRequest(response, nonce: Fixture.nonce)
    let answer = HTTPResponse.json(
      "{\"access_token\":\"SECRET-2\",\"refresh_token\":\"SECRET-3\",\"id_token\":\"SECRET-4\"}")
    let credential = try client.outcome(answer, after: response, now: 0).issued().credential
    let device = try client.deviceAuthorization(
      .json("{\"device_code\":\"SECRET-5\",\"user_code\":\"U\",\"verification_uri\":\"https://v.example/\"}"),
      scope: [], now: 0)
    let oauth1 = try Fixture.client(
      grant: "oauth1", endpoints: "temporary_credentials: https://provider.example/i", secret: "SECRET-6")
    let temporary = try oauth1.temporaryCredentials(
      .form("oauth_token=SECRET-7&oauth_token_secret=SECRET-8&oauth_callback_confirmed=true"), callback: "oob")
    let consent = try oauth1.resourceOwnerAuthorization(
      [("oauth_token", "SECRET-7"), ("oauth_verifier", "SECRET-9")], to: temporary)
    let verifier = try #require(request.codeVerifier)
    let values: [Any] = [
      client, request, response, tokenRequest, answer, credential, credential.encoded, device, oauth1, temporary,
      consent, verifier, Optional(credential) as Any, [credential],
      try client.presenting(credential, on: HTTPRequest(method: "GET", uri: request.uri), nonce: Fixture.nonce),
      try oauth1.tokenRequest(temporary, consent, nonce: Fixture.nonce),
    ]
    for value in values {
      let text = Self.printed(value)
      for secret in ["SECRET", request.state, verifier.text] {
        #expect(!text.contains(secret), "\(type(of: value))")
      }
    }
  }

  /// Errors contain only the parts of an answer that are meant for people.
  @Test func noErrorShowsAnAnswer() throws {
    let client = try Fixture.client()
    for response in [
      HTTPResponse.html("SECRET"), .json("{SECRET"), .json("{\"access_token\":\"SECRET\\n\"}"),
      .html("SECRET", status: 500), .html("SECRET", status: 400), .html("SECRET", status: 302),
    ] {
      do {
        _ = try client.outcome(response, .token, grant: .authorizationCode, scope: [], now: 0).issued().credential
        Issue.record("no error")
      } catch {
        #expect(!Self.printed(error).contains("SECRET"))
      }
    }
  }
}

/// Tests the expiry of ID tokens (OpenID Connect Core 1.0, 2).
struct IDTokenExpiryTests {
  @Test(
    arguments: [
      ("{\"exp\":4102444800}", 4_102_444_800), ("{\"exp\":1000000000.75}", 1_000_000_000), ("{\"exp\":\"soon\"}", nil),
      ("{\"sub\":\"ada\"}", nil), ("{\"exp\":1e400}", nil), ("nothing", nil),
    ] as [(String, Moment?)])
  func isReadFromItsClaims(_ claims: String, _ end: Moment?) {
    var credential = Credential(grant: .authorizationCode, accessToken: Secret("t"), obtainedAt: 0)
    #expect(credential.idTokenExpiresAt == nil)
    credential.idToken = Secret("e30." + Base64.encodeURL(Array(claims.utf8)) + ".x")
    #expect(credential.idTokenExpiresAt == end)
  }
}
