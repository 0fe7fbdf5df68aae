import CredmgrCryptography
import CredmgrHTTP
import CredmgrPlatform
import CredmgrDescriptors
import Testing

@testable import CredmgrOAuth
import CredmgrText

/// Reads answers from the providers' documentation with the shipped descriptors. The descriptors name the pages. Names
/// and shapes are real; the values are invented.
struct ProviderAnswerTests {
  private static func client(_ identifier: String, _ variables: [String: String] = [:]) throws -> Client {
    let descriptor = try ShippedDescriptors.load(identifier)
    return try Client(
      descriptor: descriptor, identifier: "client-1", secret: Secret(descriptor.client.hasSecret ? "secret-1" : ""),
      variables: variables)
  }

  private static func read(
    _ client: Client, _ json: String, _ leg: EndpointKind = .token, previous: Credential? = nil, status: Int = 200
  ) throws -> Credential {
    try client.outcome(
      .json(json, status: status), leg, grant: .authorizationCode, scope: client.descriptor.scope.requested,
      previous: previous, now: Fixture.now
    ).issued().credential
  }

  /// Returns the error code of a refused answer; `nil` if it is accepted.
  private static func refusal(_ read: () throws -> Any) throws -> String? {
    do {
      _ = try read()
      return nil
    } catch OAuthError.refused(_, let error) {
      return error.code
    }
  }

  private static func api(_ client: Client, _ credential: Credential, _ url: String) throws -> HTTPFields {
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: url))
    return try client.presenting(credential, on: request, nonce: Fixture.nonce).fields
  }

  // MARK: Slack

  @Test("Slack: the bot's token is at the top level, next to the user's token") func slackBot() throws {
    let client = try Self.client("slack", ["redirect_uri": "https://app.example/callback"])
    let credential = try Self.read(
      client,
      """
      {"ok":true,"access_token":"xoxb-1","token_type":"bot","scope":"commands,users:read","bot_user_id":"U0BOT",\
      "app_id":"A1","team":{"name":"Softball","id":"T1"},"enterprise":null,\
      "authed_user":{"id":"U1","scope":"chat:write","access_token":"xoxp-1","token_type":"user"}}
      """)
    #expect(credential.accessToken == Secret("xoxb-1"))
    #expect(credential.refreshToken == nil)
    #expect(credential.expiresAt == nil)
    #expect(credential.grantedScope == ["commands", "users:read"])
    #expect(credential.kept == ["team_id": "T1", "bot_user_id": "U0BOT"])
  }

  @Test("Slack: a user's token with rotation, and its refresh, whose answer is flat") func slackPerson() throws {
    let client = try Self.client(
      "slack", ["redirect_uri": "https://app.example/callback", "user_scope": "search:read"])
    let credential = try Self.read(
      client,
      """
      {"ok":true,"app_id":"A1","authed_user":{"id":"U1","scope":"search:read","access_token":"xoxe.xoxp-1-a",\
      "token_type":"user","refresh_token":"xoxe-1-a","expires_in":43200},"team":{"id":"T1"},"enterprise":null}
      """)
    #expect(credential.accessToken == Secret("xoxe.xoxp-1-a"))
    #expect(credential.refreshToken == Secret("xoxe-1-a"))
    #expect(credential.expiresAt == Fixture.now + .seconds(43200))
    #expect(credential.grantedScope == ["search:read"])
    let refreshed = try Self.read(
      client,
      """
      {"ok":true,"access_token":"xoxe.xoxp-1-b","expires_in":43200,"refresh_token":"xoxe-1-b","token_type":"user",\
      "scope":"search:read","team":{"id":"T1"}}
      """, .refresh, previous: credential)
    #expect(refreshed.accessToken == Secret("xoxe.xoxp-1-b"))
    #expect(refreshed.refreshToken == Secret("xoxe-1-b"))
    let page = try client.authorizationRequest(
      .authorizationCode, redirectURI: "https://app.example/callback", scope: ["a", "b"], random: KnownRandom(),
      nonce: Fixture.nonce)
    #expect(page.uri.queryParameters[first: "user_scope"] == "search:read")
    #expect(page.uri.queryParameters[first: "scope"] == "a,b")
  }

  @Test(
    "Slack: a no has status 200",
    arguments: [("invalid_code", EndpointKind.token), ("invalid_refresh_token", .refresh)])
  func slackRefusal(_ word: String, _ leg: EndpointKind) throws {
    let client = try Self.client("slack", ["redirect_uri": "https://app.example/callback"])
    #expect(try Self.refusal { try Self.read(client, "{\"ok\":false,\"error\":\"\(word)\"}", leg) } == "invalid_grant")
  }

  @Test(
    "Slack: auth.test",
    arguments: [
      ("{\"ok\":true,\"url\":\"https://t.slack.com/\",\"user\":\"ada\",\"user_id\":\"U1\"}", Validity.active),
      ("{\"ok\":false,\"error\":\"invalid_auth\"}", .inactive),
      ("{\"ok\":false,\"error\":\"token_expired\"}", .inactive),
    ])
  func slackValidity(_ json: String, _ validity: Validity) throws {
    let client = try Self.client("slack", ["redirect_uri": "https://app.example/callback"])
    #expect(try client.validity(.json(json), .introspection) == validity)
    if validity == .active {
      #expect(try client.identity(.json(json)).name == "ada")
    } else {
      #expect(throws: OAuthError.self) { try client.identity(.json(json)).name }
    }
  }

  // MARK: Withings

  @Test("Withings: the answer is within `body`, and each refresh returns a new refresh token") func withings() throws {
    let client = try Self.client("withings", ["redirect_uri": "https://app.example/callback"])
    func answer(_ number: Int) -> String {
      """
      {"status":0,"body":{"userid":"363","access_token":"a-\(number)","refresh_token":"r-\(number)",\
      "scope":"user.info,user.metrics","expires_in":10800,"token_type":"Bearer"}}
      """
    }
    let credential = try Self.read(client, answer(1))
    #expect(credential.accessToken == Secret("a-1"))
    #expect(credential.expiresAt == Fixture.now + .seconds(10800))
    #expect(credential.grantedScope == ["user.info", "user.metrics"])
    #expect(client.accountName(in: credential) == "363")
    let refreshed = try Self.read(client, answer(2), .refresh, previous: credential)
    #expect(refreshed.accessToken == Secret("a-2"))
    #expect(refreshed.refreshToken == Secret("r-2"))
  }

  @Test("Withings: a status other than 0 is an error, although the HTTP status is 200") func withingsRefusal() throws {
    let client = try Self.client("withings", ["redirect_uri": "https://app.example/callback"])
    do {
      _ = try Self.read(client, "{\"status\":503,\"body\":{},\"error\":\"Invalid Params: invalid code\"}")
      Issue.record("taken")
    } catch OAuthError.refused(let leg, let error) {
      #expect(leg == .token)
      #expect(error.code == "503")
      #expect(error.words == "Invalid Params: invalid code")
    }
    let word = try Self.refusal {
      try Self.read(client, "{\"status\":401,\"body\":{},\"error\":\"XRequestID: not provided\"}", .refresh)
    }
    #expect(word == "invalid_grant")
  }

  // MARK: Twitch

  @Test("Twitch: scopes are a list, and each request names the client") func twitch() throws {
    let client = try Self.client("twitch")
    let credential = try Self.read(
      client,
      """
      {"access_token":"t","expires_in":14124,"refresh_token":"r","scope":["channel:moderate","user:read:email"],\
      "token_type":"bearer"}
      """)
    #expect(credential.grantedScope == ["channel:moderate", "user:read:email"])
    #expect(credential.withheldScope == [])
    #expect(credential.expiresAt == Fixture.now + .seconds(14124))
    let fields = try Self.api(client, credential, "https://api.twitch.tv/helix/users")
    #expect(fields["Client-Id"] == "client-1")
    #expect(fields["Authorization"] == "Bearer t")
  }

  @Test("Twitch: errors have a status and a message, and no code") func twitchRefusals() throws {
    let client = try Self.client("twitch")
    let refused = "{\"error\":\"Bad Request\",\"status\":400,\"message\":\"Invalid refresh token\"}"
    #expect(try Self.refusal { try Self.read(client, refused, .refresh, status: 400) } == "invalid_grant")
    let response = HTTPResponse.json(
      "{\"device_code\":\"d\",\"expires_in\":1800,\"interval\":5,\"user_code\":\"ABCDEFGH\","
        + "\"verification_uri\":\"https://www.twitch.tv/activate?public=true&device-code=ABCDEFGH\"}")
    let device = try client.deviceAuthorization(response, scope: [], now: Fixture.now)
    let pending = HTTPResponse.json("{\"status\":400,\"message\":\"authorization_pending\"}", status: 400)
    #expect(try client.deviceAnswer(pending, to: device, now: Fixture.now) == .pending)
  }

  @Test("Twitch: the validation presents the token with another scheme") func twitchValidity() throws {
    let client = try Self.client("twitch")
    let (leg, request) = try client.validationRequest(Fixture.credential("t"), nonce: Fixture.nonce)
    #expect(
      request.wire == "GET https://id.twitch.tv/oauth2/validate\nAuthorization: OAuth t\nAccept: application/json\n")
    let good = "{\"client_id\":\"client-1\",\"login\":\"ada\",\"scopes\":[],\"user_id\":\"1\",\"expires_in\":5520838}"
    #expect(try client.validity(.json(good), leg) == .active)
    let bad = HTTPResponse.json("{\"status\":401,\"message\":\"invalid access token\"}", status: 401)
    #expect(try client.validity(bad, leg) == .inactive)
  }

  // MARK: TikTok

  @Test("TikTok: both lifetimes, commas, and the user's identifier") func tiktok() throws {
    let client = try Self.client("tiktok")
    let credential = try Self.read(
      client,
      """
      {"access_token":"act.1","expires_in":86400,"open_id":"o-1","refresh_expires_in":31536000,\
      "refresh_token":"rft.1","scope":"user.info.basic,video.list","token_type":"Bearer"}
      """)
    #expect(credential.expiresAt == Fixture.now + .seconds(86400))
    #expect(credential.refreshTokenExpiresAt == Fixture.now + .seconds(31_536_000))
    #expect(credential.grantedScope == ["user.info.basic", "video.list"])
    #expect(credential.kept == ["open_id": "o-1"])
    let refused = """
      {"error":"invalid_grant","error_description":"Refresh token is invalid or expired.","log_id":"2022"}
      """
    #expect(try Self.refusal { try Self.read(client, refused, .refresh) } == "invalid_grant")
  }

  @Test("TikTok: the error code `ok` means success") func tiktokIdentity() throws {
    let client = try Self.client("tiktok")
    let good = """
      {"data":{"user":{"open_id":"o-1","display_name":"Ada"}},"error":{"code":"ok","message":"","log_id":"2022"}}
      """
    #expect(try client.identity(.json(good)).name == "Ada")
    let bad = """
      {"data":{},"error":{"code":"access_token_invalid","message":"The access token is invalid.","log_id":"2022"}}
      """
    #expect(try Self.refusal { try client.identity(.json(bad, status: 401)).name as Any } == "access_token_invalid")
  }

  @Test("TikTok: the challenge is the SHA-256 of the verifier in hexadecimal") func tiktokChallenge() throws {
    // sha256("abc"), FIPS 180-2, B.1
    let made = CodeVerifier("abc").challenge(try Self.client("tiktok").descriptor.pkce)
    #expect(made == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
  }

  // MARK: Strava

  @Test("Strava: both forms of the expiry, and the athlete") func strava() throws {
    let client = try Self.client("strava")
    let credential = try Self.read(
      client,
      """
      {"token_type":"Bearer","expires_at":1700021600,"expires_in":21600,"refresh_token":"r","access_token":"a",\
      "athlete":{"id":1234,"username":null,"firstname":"Ada"}}
      """)
    #expect(credential.expiresAt == Fixture.now + .seconds(21600))
    #expect(credential.kept == ["athlete_id": "1234"])
    let refreshed = try Self.read(
      client,
      """
      {"token_type":"Bearer","access_token":"b","expires_at":1700021600,"expires_in":20566,"refresh_token":"s"}
      """, .refresh, previous: credential)
    #expect(refreshed.expiresAt == Fixture.now + .seconds(20566))
    #expect(refreshed.refreshToken == Secret("s"))
    #expect(refreshed.kept == ["athlete_id": "1234"])
    #expect(try client.identity(.json("{\"id\":1234,\"username\":null}")).name == "1234")
  }

  @Test("Strava: the redirect contains the scopes that the user accepted") func stravaScope() throws {
    let client = try Self.client("strava")
    let request = try client.authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1:8417/callback", scope: ["read", "activity:read"],
      random: KnownRandom(), nonce: Fixture.nonce)
    let redirect = try client.authorizationResponse(
      [("state", request.state), ("code", "c"), ("scope", "read,profile:read_all")], to: request)
    func scope(_ answer: String) throws -> [String]? {
      try client.outcome(.json(answer), after: redirect, now: Fixture.now).issued().credential.grantedScope
    }
    #expect(try scope("{\"access_token\":\"a\"}") == ["read", "profile:read_all"])
    #expect(try scope("{\"access_token\":\"a\",\"scope\":\"read\"}") == ["read"])
  }

  @Test("Strava: errors are a list of faults") func stravaRefusal() throws {
    let refused = """
      {"message":"Bad Request","errors":[{"resource":"RefreshToken","field":"refresh_token","code":"invalid"}]}
      """
    let client = try Self.client("strava")
    #expect(try Self.refusal { try Self.read(client, refused, .refresh, status: 400) } == "invalid_grant")
  }

  // MARK: Shopify

  @Test("Shopify: no token type, no expiry, Shopify's own header, and only one shop") func shopify() throws {
    let client = try Self.client("shopify", ["shop": "a-shop"])
    let credential = try Self.read(client, "{\"access_token\":\"f85632\",\"scope\":\"write_orders,read_products\"}")
    #expect(credential.expiresAt == nil)
    #expect(credential.grantedScope == ["write_orders", "read_products"])
    let fields = try Self.api(client, credential, "https://a-shop.myshopify.com/admin/api/graphql.json")
    #expect(fields["X-Shopify-Access-Token"] == "f85632")
    #expect(fields["Authorization"] == nil)
    #expect(throws: OAuthError.foreignHost("b-shop.myshopify.com")) {
      try Self.api(client, credential, "https://b-shop.myshopify.com/admin")
    }
    #expect(throws: ProviderError.self) { try Self.client("shopify", ["shop": "evil.example/"]) }
  }

  // MARK: Launchpad

  @Test("Launchpad: no verifier, no confirmed callback, and PLAINTEXT signatures") func launchpad() throws {
    let client = try Self.client("launchpad")
    let temporary = try client.temporaryCredentials(
      .form("oauth_token=rt&oauth_token_secret=rs"), callback: "http://127.0.0.1:5000/callback")
    #expect(
      try client.authorizationPage(temporary, scope: [], nonce: Fixture.nonce).text
        == "https://launchpad.net/+authorize-token?oauth_token=rt"
        + "&oauth_callback=http%3A%2F%2F127.0.0.1%3A5000%2Fcallback&allow_permission=READ_PUBLIC")
    let authorization = try client.resourceOwnerAuthorization([("oauth_token", "rt")], to: temporary)
    let form = FormParameters(decoding: try client.tokenRequest(temporary, authorization, nonce: Fixture.nonce).form)
    #expect(form[first: "oauth_consumer_key"] == "client-1")
    #expect(form[first: "oauth_signature_method"] == "PLAINTEXT")
    #expect(form[first: "oauth_signature"] == "&rs")
    #expect(!form.contains("oauth_verifier"))
    let credential = try client.outcome(
      .form("oauth_token=at&oauth_token_secret=as&lp.context=None"), .token, grant: .oauth1, scope: [],
      kept: authorization.kept, now: Fixture.now
    ).issued().credential
    #expect(
      try Self.api(client, credential, "https://api.launchpad.net/1.0/people/+me")["Authorization"] == """
        OAuth realm="https://api.launchpad.net/", oauth_consumer_key="client-1", oauth_token="at", \
        oauth_signature_method="PLAINTEXT", oauth_timestamp="137131200", oauth_nonce="nonce-1", oauth_version="1.0", \
        oauth_signature="%26as"
        """)
  }

  // MARK: Zotero

  @Test("Zotero: the token's secret is the key, and requests with it are not signed") func zotero() throws {
    let client = try Self.client("zotero", ["write_access": "1"])
    let temporary = try client.temporaryCredentials(
      .form("oauth_token=rt&oauth_token_secret=rs&oauth_callback_confirmed=true"), callback: "oob")
    let page = try client.authorizationPage(temporary, scope: [], nonce: Fixture.nonce).queryParameters
    #expect(page[first: "library_access"] == "1")
    #expect(page[first: "write_access"] == "1")
    #expect(page[first: "all_groups"] == "none")
    let credential = try client.outcome(
      .form("oauth_token=at&oauth_token_secret=P9NiFoyLeZu2bZNvvuQPDWsd&userID=475425&username=ada"), .token,
      grant: .oauth1, scope: [], now: Fixture.now
    ).issued().credential
    #expect(client.accountName(in: credential) == "ada")
    #expect(credential.kept["userID"] == "475425")
    #expect(credential.expiresAt == nil)
    let fields = try Self.api(client, credential, "https://api.zotero.org/users/475425/items")
    #expect(fields["Zotero-API-Key"] == "P9NiFoyLeZu2bZNvvuQPDWsd")
    #expect(fields["Authorization"] == nil)
  }

  // MARK: OCLC

  private static let institutions = [
    "authenticating_institution": "128807", "context_institution": "91475", "redirect_uri": "ncipApp://success",
  ]

  @Test("OCLC: the answer is in the fragment, without a state, and the scheme is in lower case")
  func oclcFragment() throws {
    let client = try Self.client("oclc", Self.institutions)
    let request = try client.authorizationRequest(
      .implicit, redirectURI: "ncipApp://success", scope: client.descriptor.scope.requested, random: KnownRandom(),
      nonce: Fixture.nonce)
    let target = try URI(
      parsing: "ncipapp://success#access_token=tk_TBHrsDbSrWW1oS7d3gZr7NJb7PokyOFlf0pr&principalID=8eb3f9c0"
        + "&principalIDNS=urn:oclc:wms:da&context_institution_id=91475&token_type=bearer&expires_in=1199"
        + "&expires_at=2013-08-23%2018:45:29Z&refresh_token=rt_25fXauhJC09E4kwFxcf4TREkTnaRYWHgJA0W"
        + "&refresh_token_expires_in=604799&refresh_token_expires_at=2013-08-30%2018:25:29Z")
    let answer = try client.authorizationResponse(FormParameters(decoding: target.fragment ?? ""), to: request)
    // 18:45:29 in UTC, whatever this machine's time zone.
    let credential = try client.credential(answer, now: 1_377_282_330)
    #expect(credential.accessToken == Secret("tk_TBHrsDbSrWW1oS7d3gZr7NJb7PokyOFlf0pr"))
    #expect(credential.refreshToken == Secret("rt_25fXauhJC09E4kwFxcf4TREkTnaRYWHgJA0W"))
    #expect(credential.expiresAt == 1_377_283_529)
    #expect(credential.refreshTokenExpiresAt == 1_377_887_129)
    #expect(
      credential.kept == [
        "principalID": "8eb3f9c0", "principalIDNS": "urn:oclc:wms:da", "context_institution_id": "91475",
      ])
    #expect(client.accountName(in: credential) == "8eb3f9c0")
    #expect(
      try Self.api(client, credential, "https://circ.sd00.worldcat.org/ncip")["Authorization"] == """
        Bearer tk_TBHrsDbSrWW1oS7d3gZr7NJb7PokyOFlf0pr, principalID="8eb3f9c0", principalIDNS="urn:oclc:wms:da"
        """)
  }

  @Test("OCLC: with the user's own file, the login page asks for the institution")
  func oclcWithoutInstitution() throws {
    let own = "provider: oclc\nextends: oclc\nvariables: { authenticating_institution: { optional: true } }\n"
    let library = DescriptorLibrary(directories: ["own", ShippedDescriptors.folder]) { path in
      path == "own/oclc.yaml" ? Array(own.utf8) : try? File.read(path, limit: 1 << 20)
    }
    var variables = Self.institutions
    variables["authenticating_institution"] = nil
    let client = try Client(
      descriptor: library.load("oclc").descriptor, identifier: "client-1", secret: nil, variables: variables)
    let request = try client.authorizationRequest(
      .implicit, redirectURI: "ncipApp://success", scope: ["WMS_NCIP"], random: KnownRandom(), nonce: Fixture.nonce)
    #expect(!request.uri.queryParameters.contains("authenticatingInstitutionId"))
    #expect(request.uri.queryParameters[first: "contextInstitutionId"] == "91475")
    // A missing variable causes an error before anything is sent.
    #expect(throws: ProviderError.self) { try Self.client("oclc", variables) }
  }

  @Test("OCLC: the user denies access") func oclcDenial() throws {
    let client = try Self.client("oclc", Self.institutions)
    let request = try client.authorizationRequest(
      .implicit, redirectURI: "ncipApp://success", scope: ["WMS_NCIP"], random: KnownRandom(), nonce: Fixture.nonce)
    let parameters = FormParameters(decoding: "error=access_denied&error_description=User+denied+access")
    #expect(try Self.refusal { try client.authorizationResponse(parameters, to: request) } == "access_denied")
  }

  @Test("OCLC: a refresh without a signature, whose answer may omit the refresh token") func oclcRefresh() throws {
    let client = try Self.client("oclc", Self.institutions)
    var old = Fixture.credential("tk_1", grant: .implicit)
    old.refreshToken = Secret("rt_1")
    old.kept = ["principalID": "8eb3f9c0", "principalIDNS": "urn:oclc:wms:da"]
    let request = try client.refreshRequest(old, nonce: Fixture.nonce)
    #expect(request.uri.query == "grant_type=refresh_token&refresh_token=rt_1&client_id=client-1")
    #expect(request.method == "POST")
    #expect(request.body.isEmpty)
    #expect(request.fields["Authorization"] == nil)
    let fresh = try Self.read(
      client,
      """
      {"access_token":"tk_2","token_type":"bearer","expires_in":"1199","expires_at":"2013-08-23 18:45:29Z",\
      "principalID":"8eb3f9c0","principalIDNS":"urn:oclc:wms:da","contextInstitutionId":"91475"}
      """, .refresh, previous: old)
    #expect(fresh.accessToken == Secret("tk_2"))
    #expect(fresh.refreshToken == Secret("rt_1"))
    #expect(fresh.kept["context_institution_id"] == "91475")
    let refused = "{\"code\":401,\"message\":\"Unauthorized\",\"detail\":\"refresh token is not valid\"}"
    #expect(try Self.refusal { try Self.read(client, refused, .refresh, status: 401) } == "invalid_grant")
  }

  @Test("OCLC today: numbers are texts, scopes have another name, and the user's fields may be empty")
  func oclcClientCredentials() throws {
    let client = try Self.client("oclc-today")
    let request = try client.clientCredentialsRequest(
      scope: ["WorldCatMetadataAPI", "context:128807"], nonce: Fixture.nonce)
    #expect(
      request.uri.text == "https://oauth.oclc.org/token?grant_type=client_credentials"
        + "&scope=WorldCatMetadataAPI%20context%3A128807")
    #expect(request.fields["Authorization"] == "Basic Y2xpZW50LTE6c2VjcmV0LTE=")
    #expect(request.body.isEmpty)
    let credential = try Self.read(
      client,
      """
      {"access_token":"tk_1","expires_at":"2013-08-23 18:45:29Z","authenticating_institution_id":"128807",\
      "principalID":"","context_institution_id":"128807","scopes":"WorldCatMetadataAPI context:128807",\
      "token_type":"bearer","expires_in":"3599","principalIDNS":""}
      """, .clientCredentials)
    #expect(credential.grantedScope == ["WorldCatMetadataAPI", "context:128807"])
    #expect(credential.kept == ["context_institution_id": "128807"])
    #expect(
      try Self.api(client, credential, "https://metadata.api.oclc.org/worldcat/manage/bibs")["Authorization"]
        == "Bearer tk_1")
  }

  // MARK: L2P

  @Test("L2P: a device flow with its own names, and errors as texts with status 200") func l2p() throws {
    let client = try Self.client("l2p")
    let asked = try client.deviceAuthorizationRequest(scope: ["l2p2013.rwth"], nonce: Fixture.nonce)
    #expect(asked.form == "scope=l2p2013.rwth&client_id=client-1")
    let device = try client.deviceAuthorization(
      .json(
        """
        {"device_code":"d0","user_code":"SK4V6RR8ZQ","verification_url":"https://oauth.campus.rwth-aachen.de/manage/",\
        "expires_in":1800,"interval":5,"status":"ok"}
        """), scope: ["l2p2013.rwth"], now: Fixture.now)
    #expect(device.verificationURIComplete == "https://oauth.campus.rwth-aachen.de/manage/?q=verify&d=SK4V6RR8ZQ")
    #expect(
      try client.deviceTokenRequest(device, nonce: Fixture.nonce).form == "grant_type=device&code=d0&client_id=client-1"
    )
    func answer(_ text: String) throws -> DeviceAnswer {
      try client.deviceAnswer(.json(text), to: device, now: Fixture.now)
    }
    guard case .pending = try answer("{\"status\":\"error: authorization pending.\",\"access_token\":null}"),
      case .slowDown = try answer("{\"status\":\"error: slow down\"}"),
      case .issued(let credential, _) = try answer(
        """
        {"access_token":"t0","token_type":"bearer","expires_in":1800,"refresh_token":"r0","status":"ok"}
        """)
    else {
      _ = Issue.record("another answer")
      return
    }
    #expect(credential.expiresAt == Fixture.now + .seconds(1800))
    let url = "https://www3.elearning.rwth-aachen.de/_vti_bin/L2PServices/api.svc/v1/viewAllCourseInfo"
    let api = HTTPRequest(method: "GET", uri: try URI(parsing: url))
    let presented = try client.presenting(credential, on: api, nonce: Fixture.nonce)
    #expect(presented.uri.text == url + "?accessToken=t0")
    #expect(presented.fields["Authorization"] == nil)
  }

  @Test("L2P: a refresh returns no refresh token, and after six months its error has another name")
  func l2pRefresh() throws {
    let client = try Self.client("l2p")
    var old = Fixture.credential("t0", grant: .deviceCode)
    old.refreshToken = Secret("r0")
    #expect(
      try client.refreshRequest(old, nonce: Fixture.nonce).form
        == "grant_type=refresh_token&refresh_token=r0&client_id=client-1")
    let answer = "{\"access_token\":\"t1\",\"token_type\":\"bearer\",\"expires_in\":1800,\"status\":\"ok\"}"
    let fresh = try Self.read(client, answer, .refresh, previous: old)
    #expect(fresh.accessToken == Secret("t1"))
    #expect(fresh.refreshToken == Secret("r0"))
    for text in ["{\"error\":\"authorization invalid.\"}", "{\"status\":\"error: refresh token invalid.\"}"] {
      #expect(try Self.refusal { try Self.read(client, text, .refresh) } == "invalid_grant")
    }
    let ended = try client.revocationRequests(old, nonce: Fixture.nonce)
    #expect(ended.map(\.form) == ["refresh_token=r0&client_id=client-1&grant_type=invalidate"])
  }
}
