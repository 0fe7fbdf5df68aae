import CredmgrCryptography
import CredmgrHTTP
import CredmgrDescriptors
import Testing

@testable import CredmgrOAuth
import CredmgrText

struct TokenResponseTests {
  private static func read(_ response: HTTPResponse, _ more: String = "") throws -> Credential {
    try Fixture.client(more).outcome(response, .token, grant: .authorizationCode, scope: ["a", "b"], now: Fixture.now)
      .issued().credential
  }

  private static func json(_ members: String, _ more: String = "") throws -> Credential {
    try read(.json("{\"access_token\":\"t\"\(members.isEmpty ? "" : "," + members)}"), more)
  }

  /// Matches the example of RFC 6749, 5.1.
  @Test func exampleOfTheRFC() throws {
    let credential = try Self.read(
      .json(
        """
        {
          "access_token":"2YotnFZFEjr1zCsicMWpAA",
          "token_type":"example",
          "expires_in":3600,
          "refresh_token":"tGzv3JOkF0XG5Qx2TlKWIA",
          "example_parameter":"example_value"
        }
        """), "response: { keep: [example_parameter] }\nheader_style: { token_types: [example] }")
    #expect(credential.accessToken == Secret("2YotnFZFEjr1zCsicMWpAA"))
    #expect(credential.tokenType == "example")
    #expect(credential.expiresAt == Fixture.now + .seconds(3600))
    #expect(credential.refreshToken == Secret("tGzv3JOkF0XG5Qx2TlKWIA"))
    #expect(credential.kept == ["example_parameter": "example_value"])
    #expect(credential.obtainedAt == Fixture.now)
    #expect(credential.grantedScope == nil)
    #expect(credential.withheldScope == [])
  }

  /// RFC 8693, 2.2.1 and 3: only some of the types give access to an API.
  @Test func theTypeOfAnExchangedToken() throws {
    func read(_ type: String, _ leg: String = "") throws -> Credential {
      let client = try Fixture.client(
        grant: "token_exchange", endpoints: "token: { url: 'https://provider.example/token'\(leg) }")
      return try client.outcome(
        .json("{\"access_token\":\"t\",\"token_type\":\"Bearer\",\"issued_token_type\":\"\(type)\"}"), .token,
        grant: .tokenExchange, scope: [], now: Fixture.now
      ).issued().credential
    }
    let prefix = "urn:ietf:params:oauth:token-type:"
    for type in ["access_token", "jwt"].map({ prefix + $0 }) + ["urn:provider:token", ""] {
      #expect(try read(type).accessToken == Secret("t"))
    }
    for type in ["refresh_token", "id_token", "saml1", "saml2"] {
      #expect(throws: OAuthError.issuedTokenType(.token, prefix + type)) { try read(prefix + type) }
    }
    let leg = ", parameters: { requested_token_type: '\(prefix)id_token' }"
    #expect(try read(prefix + "id_token", leg).accessToken == Secret("t"))
  }

  /// A client must not use a token of an unknown type (RFC 6749, 7.1).
  @Test(arguments: ["DPoP", "dpop", "mac", "N_A", "user", "pop", "7", ""]) func aTypeThatIsNotPresented(_ type: String)
    throws
  {
    let member = "\"token_type\":\"\(type)\""
    #expect(throws: OAuthError.tokenType(.token, type)) { try Self.json(member) }
    if !type.isEmpty {
      #expect(throws: OAuthError.tokenType(.token, type)) { try Self.json(member, "header_style: \(type)") }
    }
    let listed = "header_style: { token_types: ['\(type.uppercased())'] }"
    #expect(try Self.json(member, listed).tokenType == type)
    // A refresh may return the only valid refresh token.
    var previous = Fixture.credential()
    previous.refreshToken = Secret("refresh-1")
    let outcome = try Fixture.client().outcome(
      .json("{\"access_token\":\"t\",\"refresh_token\":\"refresh-2\",\(member)}"), .refresh, refreshing: previous,
      now: Fixture.now)
    previous.refreshToken = Secret("refresh-2")
    #expect(outcome == .rotated(previous, .tokenType(.refresh, type)))
  }

  @Test(arguments: ["\"Bearer\"", "\"bearer\"", "\"BEARER\"", "null"])
  func aTypeThatIsPresented(_ type: String) throws {
    for style in ["", "header_style: token", "header_style: { query: token }", "header_style: { header: X-Token }"] {
      #expect(try Self.json("\"token_type\":\(type)", style).accessToken == Secret("t"))
    }
    #expect(try Self.json("").tokenType == nil)
  }

  @Test(arguments: ["[\"mac\"]", "{\"a\":\"mac\"}", "7", "false"]) func aTokenTypeThatIsNotText(_ type: String) {
    #expect(throws: OAuthError.malformedField(.token, .tokenType)) { try Self.json("\"token_type\":\(type)") }
  }

  /// Kept fields are printed, and one may be the account's name.
  @Test func noSecretIsKept() throws {
    let more = "response: { keep: [who, user, page] }\naccount: who"
    let credential = try Self.read(
      .json(
        """
        {"access_token":"access-token-1","refresh_token":"refresh-token-1","who":"access-token-1","user":"ada",
         "page":"https://a.example/?t=refresh-token-1"}
        """), more)
    #expect(credential.kept == ["user": "ada"])
    #expect(try Fixture.client(more).accountName(in: credential) == nil)
    let identity = "identity: https://provider.example/me"
    let client = try Fixture.client("account: [who, user]", endpoints: identity)
    let json = HTTPResponse.json(#"{"who": "access-token-1", "user": "ada"}"#)
    #expect(try client.identity(json, of: credential).name == "ada")
  }

  /// A time beyond any calendar must not crash the program by overflow.
  @Test(arguments: ["9223372036854775807", "-9223372036854775808", "1e400", "99999999999999999999"])
  func aHugeTimeDoesNotOverflow(_ moment: String) throws {
    for form in ["seconds", "jwt"] {
      let payload = Base64.encodeURL(Array("{\"exp\":\(moment)}".utf8))
      let value = form == "jwt" ? "\"e30.\(payload).s\"" : "\(moment)"
      for date in ["", "Sun, 09 Sep 2001 01:46:41 GMT", "Sun, 09 Sep 9999 01:46:41 GMT"] {
        var response = HTTPResponse.json("{\"access_token\":\"t\",\"end\":\(value)}")
        if !date.isEmpty { response.fields.set("Date", date) }
        let credential = try Self.read(response, "response: { fields: { expires_at: { path: end, time: \(form) } } }")
        #expect(credential.accessToken == Secret("t"))
        _ = credential.expiresAt.map { $0 - Fixture.now }
        #expect(try Credential(decoding: credential.encoded).accessToken == Secret("t"))
      }
    }
  }

  /// docs.github.com, "Authorizing OAuth apps"
  @Test func form() throws {
    let credential = try Self.read(
      .form("access_token=gho_16C7e42F292c6912E7710c838347Ae178B4a&scope=repo%2Cgist&token_type=bearer\n"),
      "response_format: form\nscope: { granted_separator: \",\" }")
    #expect(credential.accessToken == Secret("gho_16C7e42F292c6912E7710c838347Ae178B4a"))
    #expect(credential.tokenType == "bearer")
    #expect(credential.grantedScope == ["repo", "gist"])
    #expect(credential.expiresAt == nil)
  }

  /// The media type decides if the text is not in the declared format, or could be in any format.
  @Test func anAnswerInAnotherFormat() throws {
    #expect(try Self.read(.json("{\"access_token\":\"a=b\"}"), "response_format: form").accessToken == Secret("a=b"))
    #expect(try Self.read(.form("access_token=t"), "response_format: json").accessToken == Secret("t"))
    let unlabelled = HTTPResponse(status: 200, body: Array("{\"access_token\":\"t\"}".utf8))
    #expect(try Self.read(unlabelled).accessToken == Secret("t"))
    // Servers send this type (text/html) for everything without a label.
    #expect(try Self.read(.html("access_token=t"), "response_format: form").accessToken == Secret("t"))
    let mislabelled = HTTPResponse(
      status: 200, fields: ["Content-Type": "text/plain"], body: Array("\u{FEFF}{\"access_token\":\"t\"}".utf8))
    #expect(try Self.read(mislabelled).accessToken == Secret("t"))
  }

  // MARK: Expiry

  @Test(
    arguments: [
      ("\"expires_in\":3599", 3599), ("\"expires_in\":\"3599\"", 3599), ("\"expires_in\":3599.9", 3599),
      ("\"expires_in\":3.6e3", 3600), ("\"expires_in\":0", nil), ("\"expires_in\":\"0\"", nil),
      ("\"expires_in\":null", nil), ("\"expires_in\":\"\"", nil), ("", nil),
    ] as [(String, Int64?)]) func expiresIn(_ members: String, _ seconds: Int64?) throws
  { #expect(try Self.json(members).expiresAt == seconds.map { Fixture.now + .seconds($0) }) }

  /// No provider issues an expired token, and a negative lifetime does not mean "never expires".
  @Test(arguments: ["-1", "\"-5\"", "-1e10"]) func anExpiresInThatHasPassed(_ value: String) throws {
    #expect(try Self.json("\"expires_in\":\(value)").expiresAt == Fixture.now + .seconds(300))
    #expect(try Self.json("\"expires_in\":\(value),\"expires_at\":1700000100").expiresAt == 1_700_000_100)
  }

  /// The number is too large to be meant, and an unlimited lifetime would be wrong as well.
  @Test(arguments: ["9223372036854775808", "\"18446744073709551615\"", "1e30", "\"1e99\"", "\"inf\"", "315360001"])
  func hugeExpiresIn(_ value: String) throws {
    let credential = try Self.json("\"expires_in\":\(value)")
    #expect(credential.expiresAt == Fixture.now + .days(3650))
  }

  @Test(arguments: ["\"soon\"", "true", "\"nan\"", "\"3600 s\""]) func invalidExpiresIn(_ value: String) throws {
    // The token is valid anyway, and so may be a rotated refresh token.
    #expect(try Self.json("\"expires_in\":\(value)").expiresAt == nil)
    #expect(try Self.json("\"expires_in\":\(value),\"expires_at\":1700000100").expiresAt == 1_700_000_100)
  }

  @Test(
    arguments: [
      ("\"expires_at\":1700000100", 1_700_000_100), ("\"expires_at\":\"1700000100\"", 1_700_000_100),
      ("\"expires_at\":\"2023-11-14 22:15:00Z\"", 1_700_000_100),
      ("\"expires_at\":\"2023-11-14T23:15:00.123+01:00\"", 1_700_000_100), ("\"expires_at\":0", nil),
      ("\"expires_at\":\"\"", nil),
      // The lifetime takes precedence, because it does not depend on two clocks.
      ("\"expires_in\":5,\"expires_at\":\"2013-08-23 18:45:29Z\"", 1_700_000_005),
      ("\"expires_in\":0,\"expires_at\":1700000100", 1_700_000_100),
    ] as [(String, Moment?)])
  func expiresAt(_ members: String, _ moment: Moment?) throws { #expect(try Self.json(members).expiresAt == moment) }

  /// Our clock, the provider's clock and the expiry differ; the token is valid for as long as the provider means.
  @Test(
    arguments: [
      ("Tue, 14 Nov 2023 22:13:20 GMT", 1_700_000_100, 100), ("Wed, 15 Nov 2023 22:13:20 GMT", 1_700_086_500, 100),
      ("Mon, 13 Nov 2023 22:13:20 GMT", 1_699_913_700, 100), (nil, 1_700_000_100, 100),
      ("yesterday", 1_700_000_100, 100),
      // Expired by our clock, which may be wrong, and by the provider's own.
      (nil, 1_699_999_000, 300), ("Tue, 14 Nov 2023 22:13:20 GMT", 1_700_000_000, 0),
      ("Tue, 14 Nov 2023 22:13:20 GMT", 1_699_999_990, -10),
    ] as [(String?, Int64, Int64)])
  func momentsAreByTheProvidersClock(_ date: String?, _ moment: Int64, _ lifetime: Int64) throws {
    var response = HTTPResponse.json("{\"access_token\":\"t\",\"expires_at\":\(moment)}")
    if let date { response.fields.set("Date", date) }
    let credential = try Self.read(response)
    #expect(credential.expiresAt == Fixture.now + .seconds(lifetime))
  }

  @Test(arguments: ["\"tomorrow\"", "\"2023-02-29 00:00:00Z\""])
  func invalidExpiresAt(_ text: String) throws { #expect(try Self.json("\"expires_at\":\(text)").expiresAt == nil) }

  @Test func formsOfTime() throws {
    let milliseconds = """
      response:
        fields:
          expires_in: { path: lives.ms, time: milliseconds }
          expires_at: { path: dies, time: milliseconds }
      """
    #expect(try Self.json("\"lives\":{\"ms\":5000}", milliseconds).expiresAt == Fixture.now + .seconds(5))
    #expect(try Self.json("\"dies\":1700000100500", milliseconds).expiresAt == 1_700_000_100)
    let date = "response: { fields: { expires_at: { path: expires_at, time: date } } }"
    #expect(try Self.json("\"expires_at\":1700000100", date).expiresAt == nil)
  }

  @Test func lifetimeOfTheDescriptor() throws {
    #expect(try Self.json("", "expiry: { lifetime: 8h, margin: 5m }").expiresAt == Fixture.now + .seconds(28_800))
    #expect(try Self.json("", "expiry: { lifetime: 8h, margin: 5m }").margin == .minutes(5))
    #expect(try Self.json("\"expires_in\":60", "expiry: { lifetime: 8h }").expiresAt == Fixture.now + .seconds(60))
    // A number out of range must not crash or make the token expire now.
    let endless = try Self.json("", "expiry: { lifetime: 9223372036854775807s }")
    #expect(endless.expiresAt.map { $0 > Fixture.now } ?? true)
  }

  // MARK: Scopes and kept fields

  @Test(
    arguments: [
      ("\"scope\":\"a b\"", " ", ["a", "b"]), ("\"scope\":\"a,b\"", ",", ["a", "b"]),
      ("\"scope\":\"a, b,\"", ",", ["a", "b"]), ("\"scope\":[\"a\",\"b\"]", " ", ["a", "b"]),
      ("\"scope\":\"\"", " ", nil), ("\"scope\":\"  a  \"", " ", ["a"]), ("\"scope\":null", " ", nil), ("", " ", nil),
    ] as [(String, String, [String]?)])
  func grantedScope(_ members: String, _ separator: String, _ scopes: [String]?) throws {
    let credential = try Self.json(members, "scope: { granted_separator: \"\(separator)\" }")
    #expect(credential.grantedScope == scopes)
    #expect(credential.requestedScope == ["a", "b"])
    #expect(credential.withheldScope == ["a", "b"].filter { !(scopes ?? ["a", "b"]).contains($0) })
  }

  @Test func fieldsElsewhere() throws {
    let more = """
      response:
        within: authed_user
        fields: { access_token: [token, access_token], refresh_token: tokens.1.value }
        keep: { team: team.id, user: [id, user_id], flag: flag, empty: [nothing, none] }
      """
    let credential = try Self.read(
      .json(
        """
        {"ok": true, "none": "", "team": {"id": 12345678901234567890}, "flag": true,
         "authed_user": {"access_token": "x", "token": "t", "id": "U1",
                         "tokens": [{"value": "no"}, {"value": "r"}]}}
        """), more)
    #expect(credential.accessToken == Secret("t"))
    #expect(credential.refreshToken == Secret("r"))
    #expect(credential.kept == ["team": "12345678901234567890", "user": "U1", "flag": "true"])
  }

  @Test func aNameWithADotIsFoundLiterally() throws {
    let credential = try Self.json("\"a.b\":\"whole\",\"a\":{\"b\":\"inner\"}", "response: { keep: { a: a.b } }")
    #expect(credential.kept == ["a": "whole"])
  }

  // MARK: Tokens that are none

  @Test(arguments: [
    "{\"access_token\":12}", "{\"access_token\":true}", "{\"access_token\":[\"t\"]}",
    "{\"access_token\":\"a\\r\\nX-Evil: yes\"}", "{\"access_token\":\"a\\u0000\"}", "{\"access_token\":\"ä\"}",
  ]) func malformedToken(_ text: String) {
    #expect(throws: OAuthError.malformedField(.token, .accessToken)) { try Self.read(.json(text)) }
  }

  @Test(arguments: ["{}", "{\"access_token\":\"\"}", "{\"access_token\":null}", "{\"Access_Token\":\"t\"}"])
  func missingToken(_ text: String) {
    #expect(throws: OAuthError.missingField(.token, .accessToken)) { try Self.read(.json(text)) }
  }

  // MARK: No answer

  @Test(
    arguments: [
      (.html("<html><a href=\"?a=b\">Sign in</a></html>"), "text/html"),
      (.json("{access_token: yes"), "application/json"), (.json("[\"access_token\"]"), "application/json"),
      (.json("\"t\""), "application/json"), (HTTPResponse(status: 200), nil), (HTTPResponse(status: 204), nil),
    ] as [(HTTPResponse, String?)]) func unreadable(_ response: HTTPResponse, _ type: String?)
  { #expect(throws: OAuthError.unreadable(.token, expected: .json, mediaType: type)) { try Self.read(response) } }

  @Test(arguments: [
    HTTPResponse.html("<a b=\"c\">"), .html("\n <!doctype html><a b=\"c\">"), .form("no pair"),
    HTTPResponse(status: 200, fields: ["Content-Type": "application/xml"], body: Array(" <a b=\"c\"/>".utf8)),
    HTTPResponse(status: 200, body: [0xFF, 0x3D, 0x41]),
  ]) func unreadableForm(_ response: HTTPResponse) {
    #expect(throws: OAuthError.unreadable(.token, expected: .form, mediaType: response.mediaType)) {
      try Self.read(response, "response_format: form")
    }
  }

  @Test(arguments: [301, 302, 307, 308]) func redirectIsNotFollowed(_ status: Int) {
    #expect(throws: OAuthError.redirected(.token, status: status)) {
      try Self.read(.json("{\"access_token\":\"t\"}", status: status))
    }
  }

  /// The class of the status overrides the body.
  @Test(arguments: [429, 500, 502, 503]) func aServerThatCannotAnswer(_ status: Int) {
    for (body, words) in [
      ("<p>Later</p>", nil), ("{}", nil), ("{\"access_token\":\"t\"}", nil),
      ("{\"error\":\"rate_limited\"}", "rate_limited"),
      ("{\"error\":\"invalid_grant\",\"error_description\":\"try later\"}", "try later"),
    ] as [(String, String?)] {
      #expect(throws: OAuthError.unavailable(.token, status: status, words: words, retryAfter: nil)) {
        try Self.read(.json(body, status: status))
      }
    }
  }

  /// These codes mean the same with any status (RFC 6749, 4.1.2.1).
  @Test(arguments: [200, 400, 503], ["server_error", "temporarily_unavailable"])
  func wordsOfAServerThatCannotAnswer(_ status: Int, _ code: String) {
    #expect(throws: OAuthError.unavailable(.token, status: status, words: nil, retryAfter: nil)) {
      try Self.read(.json("{\"error\":\"\(code)\"}", status: status))
    }
  }

  /// A code that the descriptor translates counts with any status.
  @Test func errorsThatTheDescriptorKnows() {
    let rules = "response: { errors: { code: fault, meanings: { \"17\": invalid_grant } } }"
    #expect(
      throws: OAuthError.refused(.token, ErrorResponse(code: "invalid_grant", words: "17", status: 500))
    ) { try Self.read(.json("{\"fault\":17}", status: 500), rules) }
    #expect(throws: OAuthError.unavailable(.token, status: 500, words: "18", retryAfter: nil)) {
      try Self.read(.json("{\"fault\":18}", status: 500), rules)
    }
  }

  /// RFC 9110, 10.2.3
  @Test(
    arguments: [
      ("30", nil, 30), ("0", nil, 0), ("-1", nil, nil), ("soon", nil, nil),
      ("Sun, 06 Nov 1994 08:50:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 60),
      ("Sun, 06 Nov 1994 08:50:37 GMT", nil, nil),
      ("Sun, 06 Nov 1994 08:48:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 0),
    ] as [(String, String?, Int64?)])
  func retryAfter(_ text: String, _ date: String?, _ seconds: Int64?) {
    var response = HTTPResponse.json("{}", status: 429)
    response.fields.set("Retry-After", text)
    if let date { response.fields.set("Date", date) }
    #expect(throws: OAuthError.unavailable(.token, status: 429, words: nil, retryAfter: seconds.map { .seconds($0) })) {
      try Self.read(response)
    }
  }

  @Test(arguments: [400, 401, 403, 404]) func refusedWithoutAnErrorCode(_ status: Int) {
    for response in [HTTPResponse.html("<p>No</p>", status: status), .json("{\"access_token\":\"t\"}", status: status)]
    {
      let refusal = ErrorResponse(code: "http_\(status)", words: nil, status: status)
      #expect(throws: OAuthError.refused(.token, refusal)) { try Self.read(response) }
    }
  }

  // MARK: Errors

  @Test(
    arguments: [
      // RFC 6749, 5.2
      (
        .json("{\"error\":\"invalid_request\"}", status: 400), "",
        ErrorResponse(code: "invalid_request", words: nil, status: 400)
      ),
      // With a token as well, and a status of success.
      (
        .json("{\"error\":\"invalid_grant\",\"error_description\":\"old\",\"access_token\":\"t\"}"), "",
        ErrorResponse(code: "invalid_grant", words: "old", status: 200)
      ),
      // GitHub: a form, status 200.
      (
        .form("error=bad_verification_code&error_description=The+code+passed+is+incorrect+or+expired."),
        "response_format: form\nresponse: { errors: { meanings: { bad_verification_code: invalid_grant } } }",
        ErrorResponse(code: "invalid_grant", words: "The code passed is incorrect or expired.", status: 200)
      ),
      // Without a description, users can look up the provider's own code.
      (
        .form("error=bad_refresh_token"),
        "response_format: form\nresponse: { errors: { meanings: { bad_refresh_token: invalid_grant } } }",
        ErrorResponse(code: "invalid_grant", words: "bad_refresh_token", status: 200)
      ),
      // OCLC
      (
        .json("{\"code\":401,\"message\":\"No\",\"detail\":\"at all\"}", status: 401),
        """
        response:
          errors: { code: [error, code], description: [error_description, message], meanings: { "401": invalid_client } }
        """, ErrorResponse(code: "invalid_client", words: "No", status: 401)
      ),
      // A field that does not apply is empty.
      (
        .json("{\"error\":\"\",\"error_description\":\"\",\"status\":\"bad\",\"why\":\"so\"}"),
        "response: { errors: { code: [error, status], description: [error_description, why] } }",
        ErrorResponse(code: "bad", words: "so", status: 200)
      ),
      (
        .json("{\"ok\":false,\"error\":\"no_such_code\"}"), "",
        ErrorResponse(code: "no_such_code", words: nil, status: 200)
      ),
      (
        .json("{\"errors\":[{\"code\":\"denied\"}]}", status: 400), "response: { errors: { code: errors.0.code } }",
        ErrorResponse(code: "denied", words: nil, status: 400)
      ),
    ] as [(HTTPResponse, String, ErrorResponse)])
  func refused(_ response: HTTPResponse, _ more: String, _ refusal: ErrorResponse) {
    #expect(throws: OAuthError.refused(.token, refusal)) { try Self.read(response, more) }
  }

  @Test(
    arguments: [
      ("error: authorization pending.", "authorization_pending"),
      ("error: authorization pending", "authorization_pending"),
      ("Authorization Pending", "authorization_pending"), ("error: slow down", "slow_down"),
      ("  error:  slow down . ", "slow_down"), ("error: device code invalid.", "invalid_grant"),
      ("error: refresh token invalid.", "invalid_grant"), ("authorization invalid.", "invalid_grant"),
      ("error: something else", "error: something else"), ("ok", nil), ("OK.", nil),
    ] as [(String, String?)])
  func textsOfL2P(_ text: String, _ code: String?) throws {
    let descriptor = try ShippedDescriptors.load("l2p")
    let rules = try #require(descriptor.endpoints[.deviceToken]).response.errors
    #expect(rules.canonical(text) == code)
  }

  @Test func wordsAreOneLineForATerminal() {
    let long = ErrorResponse(code: "c", words: "a\u{1B}[31m\r\n" + String(repeating: "x", count: 1000), status: 400)
    #expect(long.words?.hasPrefix("a [31m  xxx") == true)
    #expect(long.words?.count == 500)
  }

  // MARK: Refresh

  private static func previous() -> Credential {
    var credential = Fixture.credential("old")
    credential.refreshToken = Secret("refresh-1")
    credential.refreshTokenExpiresAt = Fixture.now + .seconds(1000)
    credential.requestedScope = ["a", "b"]
    credential.grantedScope = ["a"]
    credential.kept = ["user": "u", "team": "t"]
    credential.variables = ["tenant": "x"]
    credential.identity = "ana"
    credential.redirectURI = "http://127.0.0.1:1/"
    credential.tokenType = "Bearer"
    credential.idToken = Secret("id")
    credential.expiresAt = Fixture.now
    credential.isRejected = true
    return credential
  }

  private static func refresh(_ text: String) throws -> Credential {
    try Fixture.client("response: { keep: [user, team] }").outcome(
      .json(text), .refresh, refreshing: previous(), now: Fixture.now + .seconds(50)
    ).issued().credential
  }

  /// Keeps the old refresh token (RFC 6749, 6).
  @Test func anAnswerWithoutARefreshTokenKeepsTheOldOne() throws {
    var expected = Self.previous()
    expected.accessToken = Secret("new")
    expected.isRejected = false
    expected.expiresAt = Fixture.now + .seconds(110)
    expected.obtainedAt = Fixture.now + .seconds(50)
    expected.kept["user"] = "u2"
    #expect(
      try Self.refresh("{\"access_token\":\"new\",\"expires_in\":60,\"user\":\"u2\",\"refresh_token\":\"\"}")
        == expected)
  }

  @Test func aNewRefreshTokenReplacesTheOldOne() throws {
    let credential = try Self.refresh("{\"access_token\":\"new\",\"refresh_token\":\"refresh-2\"}")
    #expect(credential.refreshToken == Secret("refresh-2"))
    // The new refresh token's lifetime is unknown; that of the old one does not apply.
    #expect(credential.refreshTokenExpiresAt == nil)
    #expect(credential.expiresAt == nil)
  }

  @Test func theSameRefreshTokenKeepsItsExpiry() throws {
    let same = "{\"access_token\":\"new\",\"refresh_token\":\"refresh-1\""
    #expect(try Self.refresh(same + "}").refreshTokenExpiresAt == Fixture.now + .seconds(1000))
    #expect(
      try Self.refresh(same + ",\"refresh_token_expires_in\":900}").refreshTokenExpiresAt == Fixture.now + .seconds(950)
    )
  }

  @Test func redirectFieldsAreKept() throws {
    let client = try Fixture.client("response: { keep: [realmId, user] }")
    let request = try client.authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1:1/", scope: ["a"], random: KnownRandom(), nonce: Fixture.nonce)
    let response = try client.authorizationResponse(
      [("code", "c"), ("state", request.state), ("realmId", "r"), ("user", "redirect")], to: request)
    let credential = try client.outcome(
      .json("{\"access_token\":\"t\",\"user\":\"token\"}"), after: response, now: Fixture.now
    ).issued().credential
    #expect(credential.kept == ["realmId": "r", "user": "token"])
    #expect(credential.redirectURI == "http://127.0.0.1:1/")
    #expect(credential.grant == .authorizationCode)
  }
}
