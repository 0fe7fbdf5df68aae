import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import Testing

@testable import CredmgrOAuth
import CredmgrText

/// Tests values inside of others: the claims of a JWT, pieces of a text, and elements of a list.
struct PathTests {
  private static func token(_ members: String, _ keep: String) throws -> [String: String] {
    try Fixture.client("response: { keep: \(keep) }").outcome(
      .json("{\"access_token\": \"t\", \(members)}"), .token, grant: .authorizationCode, scope: [], now: Fixture.now
    ).issued().credential.kept
  }

  private static func jwt(_ claims: String) -> String { "e30.\(Base64.encodeURL(Array(claims.utf8))).x" }

  // MARK: Claims of a JWT

  @Test func claimsOfAToken() throws {
    let jwt = Self.jwt(#"{"corpId": "c-7", "org": {"id": 12}, "roles": ["a", "b"]}"#)
    let keep = "{ corp: assertion.corpId, org: assertion.org.id, role: assertion.roles.1, none: assertion.x.y }"
    #expect(try Self.token("\"assertion\": \"\(jwt)\"", keep) == ["corp": "c-7", "org": "12", "role": "b"])
  }

  @Test(arguments: ["\"text\"", "\"a.b.c\"", "\"a.b\"", "\"e30.W10.x\"", "7", "null"])
  func otherTextsHaveNoClaims(_ value: String) throws {
    #expect(try Self.token("\"assertion\": \(value)", "{ corp: assertion.corpId }") == [:])
  }

  /// Two programs could read different values.
  @Test func aRepeatedClaim() throws {
    let jwt = Self.jwt(#"{"tid": "1", "tid": "2"}"#)
    #expect(throws: OAuthError.repeated(.token, name: "assertion.tid")) {
      try Self.token("\"assertion\": \"\(jwt)\"", "{ tenant: assertion.tid }")
    }
  }

  /// A claim never becomes a host that the pattern does not allow.
  @Test func claimsAreBounded() throws {
    let jwt = Self.jwt(#"{"dc": "evil.example/"}"#)
    #expect(throws: OAuthError.valueOutOfBounds(.token, name: "dc")) {
      try Self.token("\"assertion\": \"\(jwt)\"", "{ dc: { path: assertion.dc, pattern: 'us[0-9]+' } }")
    }
  }

  // MARK: Pieces

  @Test(
    arguments: [
      ("after: /id/, before: /", "https://l.example/id/00D1/0051", "00D1"),
      ("after: '@'", "ada@a.example", "a.example"),
      ("before: '@'", "ada@a.example", "ada"), ("after: '-'", "key-us6-x", "us6-x"), ("after: '-'", "key", nil),
      ("before: '-'", "key", nil), ("after: k, before: '-'", "a-k", nil), ("after: key", "key", nil),
    ] as [(String, String, String?)])
  func piecesOfAValue(_ keys: String, _ value: String, _ piece: String?) throws {
    #expect(try Self.token("\"id\": \"\(value)\"", "{ piece: { path: id, \(keys) } }")["piece"] == piece)
  }

  /// The pattern is about the piece, which is what templates use.
  @Test func aPieceHasAPattern() throws {
    let keep = "{ dc: { path: api, after: '://', before: '.', pattern: 'us[0-9]+' } }"
    #expect(try Self.token("\"api\": \"https://us6.api.example\"", keep) == ["dc": "us6"])
    #expect(throws: OAuthError.valueOutOfBounds(.token, name: "dc")) {
      try Self.token("\"api\": \"https://evil.example\"", keep)
    }
  }

  // MARK: Elements

  private static let accounts = """
    {"accounts": [{"id": "1", "name": "One", "default": false, "uri": "https://a.example", "can": ["r"]},
    {"id": "2", "name": "Two", "default": true, "uri": "https://b.example", "can": ["r", "w"]},
    {"id": "3", "name": "Three", "default": false, "can": ["w"]}]}
    """

  private static func client(_ element: String, variables: [String: String] = [:]) throws -> Client {
    try Fixture.client(
      """
      account: element.name
      variables: { site: { optional: true } }
      """,
      endpoints: """
        identity:
          url: https://a.example/me
          response:
            element: { of: accounts, label: name, \(element) }
            keep: { id: element.id, uri: element.uri }
        """, variables: variables)
  }

  private static func identity(
    _ client: Client, _ credential: Credential = Fixture.credential(), element: Int? = 0
  ) throws -> (labels: [String], name: String?, kept: [String: String]) {
    let response = HTTPResponse.json(accounts)
    let found = try client.identity(response, of: credential, element: element)
    return (try client.elements(in: response, .identity, for: credential)?.labels ?? [], found.name, found.kept)
  }

  @Test func theElementThatFulfilsACondition() throws {
    let found = try Self.identity(Self.client("where: { default: 'true' }"))
    #expect(found.labels == ["Two"] && found.name == "Two" && found.kept == ["id": "2", "uri": "https://b.example"])
    #expect(try Self.identity(Self.client("where: { can: w, default: 'true' }")).name == "Two")
  }

  @Test func aConditionWithAVariable() throws {
    let keys = "where: { name: '{site}' }"
    #expect(try Self.identity(Self.client(keys, variables: ["site": "Three"])).kept == ["id": "3"])
    // Without a value, the condition is left out.
    #expect(try Self.identity(Self.client(keys)).labels == ["One", "Two", "Three"])
    #expect(throws: OAuthError.elementMissing(.identity)) {
      try Self.identity(Self.client(keys, variables: ["site": "Four"]))
    }
  }

  @Test func theUserChooses() throws {
    let client = try Self.client("where: { can: w }")
    let open = try Self.identity(client)
    #expect(open.labels == ["Two", "Three"] && open.name == "Two")
    #expect(try Self.identity(client, element: 1).kept == ["id": "3"])
    #expect(try Self.identity(client, element: 7).name == "Two")
    let list = try #require(try client.elements(in: .json(Self.accounts), .identity, for: Fixture.credential()))
    #expect(list.place(of: ["id": "3", "other": "x"]) == 1 && list.place(of: ["id": "4"]) == nil)
    #expect(list.isKnown(["id": "4"]) && !list.isKnown(["other": "x"]) && !list.isNamed)
    var credential = Fixture.credential()
    credential.kept = ["id": "3", "other": "x"]
    let refreshed = try Self.identity(client, credential, element: nil)
    #expect(refreshed.name == "Three" && refreshed.kept == ["id": "3"])
  }

  /// A refresh never changes to another account of the user.
  @Test func aChosenElementThatIsGone() throws {
    let client = try Self.client("where: { can: w }")
    var credential = Fixture.credential()
    credential.kept = ["id": "4"]
    #expect(try Self.identity(client, credential, element: nil).kept == [:])
    #expect(try Self.identity(client, credential, element: 1).kept == ["id": "3"])
  }

  /// A refresh keeps the value of an element that the list no longer has, and ignores the fallback.
  @Test(arguments: [#"[{"id": "1"}, {"id": "3"}]"#, #"[{"id": "1"}]"#, "[]"]) func aFallback(_ list: String) throws {
    let client = try Fixture.client(
      endpoints: """
        token_exchange:
          url: https://a.example/sites
          response: { fields: { access_token: [] }, element: { of: sites }, keep: { site: [element.id, other] } }
        """)
    func site(_ list: String, _ credential: Credential, element: Int? = nil) throws -> Credential {
      let answer = HTTPResponse.json(#"{"sites": \#(list), "other": "9"}"#)
      return try client.outcome(answer, .tokenExchange, refreshing: credential, element: element, now: 0).issued()
        .credential
    }
    #expect(try site("[]", Fixture.credential(), element: 0).kept == ["site": "9"])
    var credential = Fixture.credential()
    credential.kept = ["site": "2"]
    #expect(try site(list, credential).kept == ["site": "2"])
    #expect(try site(#"[{"id": "1"}, {"id": "2"}]"#, credential).kept == ["site": "2"])
  }

  /// Pages of an account have a token each. A refresh never gets that of another one.
  @Test func aTokenOfAnElement() throws {
    let client = try Fixture.client(
      endpoints: """
        token_exchange:
          url: https://a.example/pages
          response: { fields: { access_token: element.tok }, element: { label: id }, keep: { region: element.r } }
        """)
    func token(_ regions: [String], _ credential: Credential, element: Int? = nil) throws -> Secret {
      let pages = regions.map { #"{"id": "\#($0)", "r": "\#($0.prefix(2))", "tok": "token-\#($0)"}"# }
      let answer = HTTPResponse.json("[\(pages.joined(separator: ", "))]")
      return try client.outcome(answer, .tokenExchange, refreshing: credential, element: element, now: 0).issued()
        .credential.accessToken
    }
    #expect(try token(["us1", "eu1"], Fixture.credential(), element: 1) == Secret("token-eu1"))
    let unknown = OAuthError.elementUnknown(.tokenExchange)
    #expect(throws: unknown) { try token(["us1", "eu1", "eu2"], Fixture.credential(), element: 1) }
    var credential = Fixture.credential()
    #expect(throws: unknown) { try token(["us1"], credential) }
    credential.kept = ["region": "eu"]
    #expect(try token(["us1", "eu1"], credential) == Secret("token-eu1"))
    #expect(throws: unknown) { try token(["us1"], credential) }
    #expect(throws: unknown) { try token(["us1", "eu1", "eu2"], credential) }
  }

  @Test func anAnswerThatIsAList() throws {
    let client = try Fixture.client(
      "account: element.name",
      endpoints: """
        identity:
          url: https://a.example/me
          response: { element: { label: name }, keep: { id: element.id } }
        """)
    func found(_ text: String) throws -> (name: String?, kept: [String: String]) {
      let found = try client.identity(.json(text))
      return (found.name, found.kept)
    }
    #expect(try found(#"[{"id": 7, "name": "Seven"}]"#).kept == ["id": "7"])
    #expect(try found("[]") == (nil, [:]) && found(#"{"name": "no list"}"#) == (nil, [:]))
    #expect(try found("[7, null]") == (nil, [:]))
    let list = try client.elements(
      in: .json(#"[{"name": "One"}, {"id": 2}, {"name": "x-token-123456-x"}]"#), .identity,
      for: Fixture.credential("token-123456"))
    #expect(list?.labels == ["One", "2", "3"])
    #expect(throws: OAuthError.repeated(.identity, name: "element.id")) { try found(#"[{"id": 1, "id": 2}]"#) }
  }

  /// A further question after the login: Jira's sites.
  @Test func anExchangeThatKeepsTheToken() throws {
    let client = try Fixture.client(
      endpoints: """
        token_exchange:
          url: https://a.example/sites
          method: GET
          authentication: access_token
          parameters: { grant_type: null, subject_token: null, subject_token_type: null }
          response: { fields: { access_token: [] }, element: { label: url }, keep: { site: element.id } }
        """)
    let credential = Fixture.credential()
    let request = try client.tokenExchangeRequest(credential, nonce: Fixture.nonce)
    #expect(request.uri.text == "https://a.example/sites" && request.fields["Authorization"] == "Bearer token-1")
    let sites = HTTPResponse.json(#"[{"id": "s1", "url": "https://one.example"}, {"id": "s2"}]"#)
    #expect(try client.elements(in: sites, .tokenExchange, for: credential)?.labels == ["https://one.example", "2"])
    let kept = try client.outcome(sites, .tokenExchange, refreshing: credential, element: 1, now: 0).issued().credential
    #expect(kept.kept == ["site": "s2"] && kept.accessToken == credential.accessToken)
  }

  // MARK: Further tokens

  private static let second =
    "response: { keep: { user_token: { path: user.access_token, secret: true }, id: user.id } }"

  @Test func aFurtherTokenIsKept() throws {
    let client = try Fixture.client(Self.second)
    let answer = HTTPResponse.json(#"{"access_token": "bot-1", "user": {"access_token": "user-1", "id": "u"}}"#)
    var credential = try client.outcome(answer, .token, grant: .authorizationCode, scope: [], now: 0).issued()
      .credential
    #expect(credential.accessToken == Secret("bot-1") && credential.kept == ["id": "u"])
    #expect(credential.keptSecrets == ["user_token": Secret("user-1")])
    #expect(try Credential(decoding: credential.encoded) == credential)
    #expect(credential.presenting("user_token")?.accessToken == Secret("user-1"))
    #expect(credential.presenting("id") == nil && credential.presenting("access_token") == nil)
    // An answer without it keeps the earlier one.
    credential.refreshToken = Secret("refresh-1")
    let refreshed = client.outcome(.json(#"{"access_token": "bot-2"}"#), .refresh, refreshing: credential, now: 0)
    #expect(try refreshed.issued().credential.keptSecrets == ["user_token": Secret("user-1")])
  }

  @Test func aFurtherTokenIsPrintable() throws {
    let answer = HTTPResponse.json(#"{"access_token": "bot-1", "user": {"access_token": "a\nb"}}"#)
    #expect(throws: OAuthError.valueOutOfBounds(.token, name: "user_token")) {
      try Fixture.client(Self.second).outcome(answer, .token, grant: .authorizationCode, scope: [], now: 0).issued()
    }
  }

  /// The value of another field that repeats the token is not shown.
  @Test func aFurtherTokenIsNotShown() throws {
    let token = "a-further-token-of-a-login"
    let answer = HTTPResponse.json(
      "{\"access_token\": \"bot-1\", \"user\": {\"access_token\": \"\(token)\", \"id\": \"x\(token)\"}}")
    let credential = try Fixture.client(Self.second).outcome(
      answer, .token, grant: .authorizationCode, scope: [], now: 0
    ).issued().credential
    #expect(credential.kept == [:] && credential.holds(token))
    let secrets = KnownSecrets()
    secrets.learn(credential)
    #expect(secrets.reveals("x" + token))
  }

  /// No address and no list of hosts contains it, and without the key `keep` cannot name it.
  @Test(arguments: [
    second + "\nhosts: ['{user_token}.example']", second + "\nissuer: 'https://{user_token}.example'",
    "response: { keep: { user_token: user.access_token } }",
  ])
  func aFurtherTokenIsSecret(_ more: String) {
    #expect(throws: ProviderError.self) { try Fixture.client(more) }
  }

  /// The same refresh token gets a token for another resource.
  @Test func aTokenForASecondResource() throws {
    let client = try Fixture.client(
      endpoints: """
        token_exchange:
          url: https://provider.example/token
          follows: [token, refresh]
          parameters:
            grant_type: refresh_token
            refresh_token: "{refresh_token}"
            scope: files
            subject_token: null
            subject_token_type: null
          response:
            fields: { access_token: [], refresh_token: [], expires_in: [] }
            keep: { files: { path: access_token, secret: true } }
        """)
    var credential = Fixture.credential("mail")
    credential.refreshToken = Secret("refresh-1")
    credential.expiresAt = Fixture.now + .hours(1)
    #expect(client.exchangesToken(afterRefreshOf: credential))
    let request = try client.tokenExchangeRequest(credential, nonce: Fixture.nonce)
    #expect(request.form == "grant_type=refresh_token&refresh_token=refresh-1&scope=files")
    let answer = HTTPResponse.json(#"{"access_token": "files-1", "refresh_token": "other", "expires_in": 60}"#)
    let both = try client.outcome(answer, .tokenExchange, refreshing: credential, now: Fixture.now).issued().credential
    #expect(both.accessToken == Secret("mail") && both.refreshToken == Secret("refresh-1"))
    #expect(both.keptSecrets == ["files": Secret("files-1")] && both.expiresAt == credential.expiresAt)
  }
}
