import CredmgrCryptography
import CredmgrHTTP
import Testing

@testable import CredmgrOAuth

struct KnownSecretsTests {
  private static func masked(_ text: String, _ secrets: String...) -> String {
    let known = KnownSecrets()
    for secret in secrets { known.learn(Secret(secret)) }
    return known.masked(text)
  }

  @Test(
    arguments: [
      ("", ""), ("nothing", "nothing"), ("s3cret+/=", "…"), ("a s3cret+/= b s3cret+/=", "a … b …"),
      ("s3cret%2B%2F%3D", "…"), ("s3cret%2b%2f%3d", "…"), ("7333637265742b2f3d", "…"), ("7333637265742B2F3D", "…"),
      // In base64, alone and after one and two bytes.
      ("czNjcmV0Ky89", "…9"), ("xzcmV0", "xzcmV0"),
      ("eHMzY3JldCsvPQ==", "eH…Q=="), ("eHhzM2NyZXQrLz0=", "eHh…0="),
      // Cut off.
      ("the token s3cret+/", "the token …"), ("s3cret", "s3cret"),
    ])
  func everyForm(_ text: String, _ expected: String) { #expect(Self.masked(text, "s3cret+/=") == expected) }

  /// Servers quote a request as JSON, whose escapes are a matter of taste.
  @Test(
    arguments: [
      (#"bad "umlaut\u00e41234""#, #"bad "…""#), (#"umlaut\u00E41234 x umlautä1234"#, "… x …"),
      (#"{\"p\":\"umlaut\\u00e41234\"}"#, #"{\"p\":\"…\"}"#), (#"a\/b\"c\\d\ud83d\ude00"#, "…"),
      (#"a\/b\"c\\d😀"#, "…"), (#"a\u002fb\u0022c\u005cd\uD83D\uDE00"#, "…"),
      // Not escapes of a secret.
      (#"\u00e \ud83d \u+0e4 \"#, #"\u00e \ud83d \u+0e4 \"#),
    ]) func jsonEscapes(_ text: String, _ expected: String)
  {
    let secrets = ["umlautä1234", #"a/b"c\d😀"#]
    let known = KnownSecrets()
    for secret in secrets { known.learn(Secret(secret)) }
    #expect(known.masked(text) == expected)
    #expect(known.reveals(text) == (text != expected))
  }

  /// Published metadata is not masked when it is sent later.
  @Test func metadata() {
    let known = KnownSecrets()
    known.learn(
      HTTPResponse.json(
        """
        {"issuer": "https://login.example", "token_endpoint": "https://login.example/token",
        "code_challenge_methods_supported": ["S256-hexadecimal"], "token_endpoint_auth_method": "client_secret_post",
        "client_secret": "secret-of-client", "registration_access_token": "token-of-client",
        "registration_client_uri": "https://login.example/clients/of-ones-own", "unheard_of": "unheard-of"}
        """))
    for text in ["https://login.example", "https://login.example/token", "S256-hexadecimal", "client_secret_post"] {
      #expect(known.masked(text) == text)
    }
    for text in ["secret-of-client", "token-of-client", "unheard-of"] {
      #expect(known.masked(text) == "…")
    }
  }

  /// A provider may quote any part of a request.
  @Test func theBeginningOfATokenIsMasked() {
    let known = KnownSecrets()
    var credential = Credential(grant: .authorizationCode, accessToken: Secret("at_0123456789abcdef"), obtainedAt: 0)
    credential.refreshToken = Secret("RT.0123456789abcdef")
    known.learn(credential)
    #expect(known.masked("bad: RT.0123456789abc...") == "bad: …...")
    #expect(known.masked("at_0123456789 and RT.012345678") == "… and …")
    #expect(known.masked("RT.01234 is short") == "RT.01234 is short")
  }

  /// The secrets of any answer are masked, but its other words are not.
  @Test(arguments: [
    (HTTPResponse.json(#"{"a": [{"refresh-token": "the-secret"}], "error": "busy"}"#, status: 400)),
    .form("error=busy&access_token=the-secret"), .json(#"{"body": {"ticket": "the-secret"}, "error": "busy"}"#),
    .json(#"{"client_secret": ["the-secret"]}"#), HTTPResponse(status: 401, fields: ["X-Ticket": "the-secret"]),
  ]) func secretsOfAnAnswer(_ answer: HTTPResponse) throws {
    let known = KnownSecrets()
    known.learn(
      answer,
      of: try Fixture.client("response: { fields: { id_token: body.ticket, access_token: \"header:X-Ticket\" } }")
        .descriptor)
    #expect(known.masked("busy: the-secret") == "busy: …" && known.reveals("a(the-secret)"))
    #expect(known.masked("code error ticket") == "code error ticket")
  }

  @Test func secretsOfARedirect() throws {
    let known = KnownSecrets()
    let page =
      "authorization: { url: https://provider.example/a, rename: { state: s }, response: { fields: { code: c } } }"
    let descriptor = try Fixture.client(endpoints: page).descriptor
    known.learn([("s", "the-state"), ("c", "the-code"), ("error", "access_denied")], of: descriptor)
    #expect(known.masked("access_denied the-code the-state") == "access_denied … …")
  }

  /// Values that may be secret because of their names are still allowed in a text; known secrets are not.
  @Test func aSecretCannotBeAName() {
    let known = KnownSecrets()
    known.learn(Secret("token-of-ana"))
    known.learn(Secret("short"))
    known.learn(HTTPResponse.json(#"{"custom": "nothing secret"}"#))
    for name in ["token-of-ana", "ana (token-of-ana)", "746f6b656e2d6f662d616e61", "short"] {
      #expect(known.reveals(name), "\(name)")
    }
    for name in ["ana", "shorty", "nothing secret", "token-1", ""] { #expect(!known.reveals(name), "\(name)") }
  }

  @Test func aSecretThatIsPartOfAnother() {
    #expect(Self.masked("abcd-efgh abcd", "abcd", "abcd-efgh") == "… …")
    #expect(Self.masked("abc", "abc") == "abc", "too short to be a secret")
  }

  @Test func aCombiningMarkHidesNothing() { #expect(!Self.masked("token-1\u{301}", "token-1").contains("token-1")) }

  private static let uri = try? URI(parsing: "https://p.example/t?code=code-1&scope=read")

  @Test(
    arguments: [
      ("Authorization", "Bearer token-1", "token-1"), ("Authorization", "token-1", "token-1"),
      ("Authorization", "Basic aWQ6cCUyQi0x", "p+-1"), ("X-Api-Key", "token-1", "token-1"),
      ("Authorization", "OAuth oauth_token=\"t%2F-1\", oauth_version=\"1.0\"", "t/-1"),
      ("Cookie", "session=token-1", "session=token-1"),
    ])
  func fieldsOfARequest(_ name: String, _ value: String, _ secret: String) throws {
    let known = KnownSecrets()
    let uri = try #require(Self.uri)
    known.learn(HTTPRequest(method: "GET", uri: uri, fields: HTTPFields([HTTPField(name: name, value: value)])))
    #expect(known.masked("it was \(secret)!") == "it was …!")
    #expect(known.masked("code-1 read 1.0") == "… read 1.0")
  }

  @Test func bodiesOfRequests() throws {
    let uri = try #require(Self.uri)
    for (type, body) in [
      ("application/x-www-form-urlencoded", "grant_type=refresh_token&refresh_token=r%2F-1&client_id=public"),
      ("application/json", "{\"grant_type\":\"refresh_token\",\"x\":{\"y\":[\"r/-1\"]},\"client_id\":\"public\"}"),
    ] {
      let known = KnownSecrets()
      known.learn(HTTPRequest(method: "POST", uri: uri, fields: ["Content-Type": type], body: Array(body.utf8)))
      #expect(known.masked("refresh_token r/-1 of public") == "refresh_token … of public")
    }
  }

  @Test func answers() {
    let known = KnownSecrets()
    known.learn(.json("{\"access_token\":\"token-12\",\"scope\":\"read-write\",\"n\":[\"short\"]}"))
    known.learn(.json("{\"error\":\"invalid_grant\",\"trace\":\"correlation-1\"}", status: 400))
    #expect(known.masked("token-12 read-write short correlation-1") == "… read-write short correlation-1")
  }

  /// Forms in which a server may quote a secret.
  @Test(arguments: ["a%252Fb%253Dc-1", "A/B=C-1", "a/b=c-1", "a\\/b=c-1", "YS9iPWMtMQ==", "612f623d632d31"])
  func writtenBack(_ form: String) {
    let masked = Self.masked("<\(form)>", "a/b=c-1")
    #expect(!masked.contains(form.dropFirst(2).dropLast(2)), "\(masked)")
  }

  @Test func inHTML() { #expect(Self.masked("<p>a&amp;b&lt;c&quot;</p>", "a&b<c\"") == "<p>…</p>") }

  /// Each part of a JWT is as secret as the whole.
  @Test func partsOfAJWT() {
    let parts = ["eyJhbGciOiJFUzI1NiJ9", "eyJzdWIiOiJjbGllbnQtMSJ9", "c2lnbmF0dXJlLTEyMzQ1"]
    for part in parts {
      #expect(Self.masked("bad \(part)!", parts.joined(separator: ".")) == "bad …!")
    }
    #expect(Self.masked("short b", "a.b.c-secret") == "short b")
  }

  @Test func aBareTokenWithParameters() throws {
    let known = KnownSecrets()
    let fields: HTTPFields = ["Authorization": "tk_12345, principalID=\"p\""]
    known.learn(HTTPRequest(method: "GET", uri: try #require(Self.uri), fields: fields))
    #expect(known.masked("no tk_12345") == "no …")
  }

  @Test func shortAndNumericSecretsOfAnswers() {
    let known = KnownSecrets()
    known.learn(.json("{\"data\":{\"Access-Token\":\"t-12\",\"pin_code\":4711,\"number\":12345678,\"n\":1234}}"))
    #expect(known.masked("t-12 4711 12345678 1234") == "… … … 1234")
  }

  @Test(arguments: [
    ("access_token", true), ("urn:x[0].y", true), ("@type", true), ("eyJhbGciOiJFUzI1NiJ9{", false), ("a b", false),
    (String(repeating: "a", count: 49), false), ("é", false), ("a\nb", false),
  ]) func names(_ text: String, _ isName: Bool) { #expect(KnownSecrets.isName(text) == isName) }

  @Test func errors() {
    let known = KnownSecrets()
    known.learn(Secret("token-1"))
    #expect(
      OAuthError.refused(.token, ErrorResponse(code: "token-1", words: "no token-1", status: 400)).masked(by: known)
        == .refused(.token, ErrorResponse(code: "…", words: "no …", status: 400)))
    #expect(
      OAuthError.unreadable(.token, expected: .json, mediaType: "text/token-1").masked(by: known)
        == .unreadable(.token, expected: .json, mediaType: "text/…"))
    #expect(OAuthError.stateMissing.masked(by: known) == .stateMissing)
  }
}
