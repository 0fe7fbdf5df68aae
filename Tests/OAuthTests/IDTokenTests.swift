import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import Testing

@testable import CredmgrOAuth
import CredmgrText

/// Tests the checks of an ID token before it is stored (OpenID Connect Core 1.0, 3.1.3.7).
struct IDTokenTests {
  private static let issuer = "https://provider.example"
  private static let good: JSONValue = [
    "iss": "https://provider.example", "sub": "ada", "aud": "client-1", "iat": 1_700_000_000, "exp": 1_700_003_600,
  ]

  private static func token(_ claims: JSONValue, header: JSONValue = ["alg": "ES256"], mark: String = "bWFyaw")
    -> String
  {
    let parts = [header, claims].map { Base64.encodeURL(Array($0.encoded.utf8)) }
    return (parts + [mark]).joined(separator: ".")
  }

  /// Returns the valid claims with some changes; `null` removes one.
  private static func claims(_ changes: JSONValue) -> JSONValue {
    let changed = changes.members ?? []
    let kept = (good.members ?? []).filter { member in !changed.contains { $0.name == member.name } }
    return .object(kept + changed.filter { $0.value != .null })
  }

  private static func client(_ more: String = "") throws -> Client {
    try Fixture.client("issuer: \(issuer)\n" + more, endpoints: "identity: https://provider.example/me")
  }

  private static func read(
    _ idToken: String, _ client: Client? = nil, _ kind: EndpointKind = .token, previous: Credential? = nil,
    now: Moment = Fixture.now, date: String? = nil
  ) throws -> Credential {
    var response = HTTPResponse.json("{\"access_token\": \"t\", \"id_token\": \"\(idToken)\"}")
    if let date { response.fields.set("Date", date) }
    return try (client ?? Self.client()).outcome(
      response, kind, grant: .authorizationCode, scope: [], previous: previous, now: now
    ).issued().credential
  }

  @Test(
    arguments: [
      [:], ["aud": ["client-1"]], ["aud": ["other", "client-1"], "azp": "client-1"], ["azp": "client-1"],
      ["iss": "provider.example"], ["exp": 1_699_999_800], ["iat": 1_700_000_200], ["exp": .number("1700003600.5")],
      ["extra": "x"],
    ] as [JSONValue])
  func oneThatIsKept(_ changes: JSONValue) throws {
    let token = Self.token(Self.claims(changes))
    #expect(try Self.read(token).idToken == Secret(token))
  }

  @Test(
    arguments: [
      (["iss": "https://evil.example"], .issuer(expected: issuer, found: "https://evil.example")),
      (["iss": "https://provider.example/"], .issuer(expected: issuer, found: "https://provider.example/")),
      (["iss": .null], .missing(claim: "iss")), (["sub": .null], .missing(claim: "sub")),
      (["sub": ""], .missing(claim: "sub")), (["aud": "other"], .audience), (["aud": ["other"]], .audience),
      (["aud": .null], .audience), (["aud": []], .audience), (["azp": "other"], .authorizedParty),
      (["azp": 7], .authorizedParty), (["aud": ["client-1", "other"]], .authorizedParty), (["exp": 1], .expired),
      (["exp": 1_699_999_700], .expired), (["exp": .null], .missing(claim: "exp")),
      (["exp": "1700003600"], .missing(claim: "exp")), (["iat": .null], .missing(claim: "iat")),
      (["iat": 1_700_000_300], .issuedLater), (["nbf": 1_700_000_300], .issuedLater),
      (["at_hash": "b3RoZXI"], .accessTokenHash),
      (["at_hash": 7], .accessTokenHash),
    ] as [(JSONValue, JWTFault)])
  func invalidIDTokensAreRefused(_ changes: JSONValue, _ fault: JWTFault) {
    for kind in [EndpointKind.token, .refresh, .deviceToken, .tokenExchange] {
      #expect(throws: OAuthError.idToken(kind, fault)) {
        try Self.read(
          Self.token(Self.claims(changes)), Fixture.client("issuer: \(Self.issuer)", endpoints: Self.otherLegs), kind)
      }
    }
  }

  private static let otherLegs = "device_token: https://provider.example/d\ntoken_exchange: https://provider.example/x"

  @Test(arguments: [["alg": "none"], ["alg": "NONE"], [:], ["alg": 7]] as [JSONValue])
  func unsignedIDTokensAreRefused(_ header: JSONValue) {
    #expect(throws: OAuthError.idToken(.token, .unsigned)) { try Self.read(Self.token(Self.good, header: header)) }
    #expect(throws: OAuthError.idToken(.token, .unsigned)) { try Self.read(Self.token(Self.good, mark: "")) }
  }

  @Test func aRepeatedClaim() throws {
    let claims = JSONValue.object((Self.good.members ?? []) + [.init("aud", "client-1")])
    #expect(throws: OAuthError.idToken(.token, .repeated(claim: "aud"))) { try Self.read(Self.token(claims)) }
  }

  /// The shapes are from RFC 7515, appendix A. A text that is not a JWT is not stored, but the token still counts.
  @Test(arguments: ["x", "a.b.c", "e30.e30", "e30.W10.x"]) func invalidTextIsNoIDToken(_ text: String) throws {
    #expect(try Self.read(text).idToken == nil)
    #expect(
      try Self.client().outcome(
        .json("{\"access_token\":\"t\",\"id_token\":\"\(text)\"}"), .token, grant: .authorizationCode, scope: [],
        now: Fixture.now
      ).issued().unreadable == [.idToken])
  }

  @Test(arguments: ["ES256", "HS384", "PS512", "EdDSA"]) func theHashOfTheAccessToken(_ algorithm: String) throws {
    let hash: HashAlgorithm = algorithm == "ES256" ? .sha256 : algorithm == "HS384" ? .sha384 : .sha512
    let digest = hash.digest(Array("t".utf8))
    let text = Base64.encodeURL(Array(digest.prefix(digest.count / 2)))
    let token = Self.token(Self.claims(["at_hash": .string(text)]), header: ["alg": .string(algorithm)])
    #expect(try Self.read(token).idToken == Secret(token))
    let other = Self.token(
      Self.claims(["at_hash": .string(String(text.reversed()))]), header: ["alg": .string(algorithm)])
    #expect(throws: OAuthError.idToken(.token, .accessTokenHash)) { try Self.read(other) }
  }

  /// If this machine's clock is wrong, the provider's clock decides.
  @Test func ourClockIsWrong() throws {
    let token = Self.token(Self.good)
    let date = "Tue, 14 Nov 2023 22:13:20 GMT"
    for now in [Fixture.now + .seconds(90_000), Fixture.now - .seconds(90_000)] {
      #expect(try Self.read(token, now: now, date: date).idToken == Secret(token))
      #expect(throws: OAuthError.self) { try Self.read(token, now: now) }
    }
  }

  @Test func anUndeclaredIssuer() throws {
    let token = Self.token(Self.claims(["iss": "https://other.example"]))
    #expect(try Self.read(token, Fixture.client()).idToken == Secret(token))
  }

  // MARK: At a refresh

  @Test func aRefreshForAnotherUser() throws {
    var previous = Fixture.credential()
    previous.refreshToken = Secret("refresh-1")
    previous.idToken = Secret(Self.token(Self.claims(["nonce": "n"])))
    let client = try Fixture.client()
    func outcome(_ changes: JSONValue) -> TokenOutcome {
      let idToken = Self.token(Self.claims(changes))
      return client.outcome(
        .json("{\"access_token\":\"t\",\"refresh_token\":\"refresh-2\",\"id_token\":\"\(idToken)\"}"), .refresh,
        refreshing: previous, now: Fixture.now)
    }
    // The new refresh token may be the only valid one.
    for (changes, fault) in [
      (["sub": "eve"], .subject), (["nonce": "m"], .nonce),
      (["iss": "https://e.example"], .issuer(expected: Self.issuer, found: "https://e.example")),
    ] as [(JSONValue, JWTFault)] {
      var rotated = previous
      rotated.refreshToken = Secret("refresh-2")
      #expect(outcome(changes) == .rotated(rotated, .idToken(.refresh, fault)))
    }
    for changes in [[:], ["nonce": "n"], ["iat": 1_699_990_000]] as [JSONValue] {
      guard case .issued(let credential, _) = outcome(changes) else {
        Issue.record("\(changes)")
        continue
      }
      #expect(credential.idToken == Secret(Self.token(Self.claims(changes))))
    }
    // An answer without an ID token keeps the previous one.
    #expect(
      try client.outcome(.json("{\"access_token\":\"t\"}"), .refresh, refreshing: previous, now: Fixture.now).issued()
        .credential.idToken == previous.idToken)
  }

  // MARK: At a login

  private static func login(
    _ more: String, scope: [String] = ["openid"], claims: (_ nonce: String) -> JSONValue?
  ) throws -> Credential {
    let client = try client(more)
    let request = try client.authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1:1/cb", scope: scope, random: KnownRandom(),
      nonce: Fixture.nonce)
    let response = try client.authorizationResponse([("code", "c"), ("state", request.state)], to: request)
    let idToken = claims(request.nonce ?? "").map { ", \"id_token\": \"\(token($0))\"" } ?? ""
    return try client.outcome(.json("{\"access_token\": \"t\"\(idToken)}"), after: response, now: Fixture.now).issued()
      .credential
  }

  /// A login with the scope `openid` sends a nonce without being told to.
  @Test(arguments: ["", "nonce: true"]) func theNonceOfTheLogin(_ key: String) throws {
    #expect(try Self.login(key) { Self.claims(["nonce": .string($0)]) }.idToken != nil)
    #expect(throws: OAuthError.idToken(.token, .missing(claim: "nonce"))) { try Self.login(key) { _ in Self.good } }
    #expect(throws: OAuthError.idToken(.token, .nonce)) {
      try Self.login(key) { _ in Self.claims(["nonce": "another"]) }
    }
    // A login that requested no ID token needs none.
    #expect(try Self.login(key, scope: ["read"]) { _ in nil }.idToken == nil)
  }

  @Test func aProviderWithoutANonce() throws {
    #expect(try Self.login("nonce: false") { _ in Self.good }.idToken != nil)
    #expect(try Self.login("", scope: ["read"]) { $0.isEmpty ? Self.good : nil }.idToken != nil)
  }

  /// 3.1.3.3. A provider without keys may know the scope, but not ID tokens.
  @Test func aMissingIDToken() throws {
    for more in ["nonce: true", "id_token_signed_response_alg: HS256"] {
      #expect(throws: OAuthError.missingField(.token, .idToken)) { try Self.login(more) { _ in nil } }
    }
    #expect(try Self.login("") { _ in nil }.idToken == nil)
  }

  private static let signedIn = JSONValue.number("\(Fixture.now.secondsSince1970 - 400)")

  private static func later(_ seconds: Int64) -> JSONValue { .number("\(Fixture.now.secondsSince1970 + seconds)") }

  /// The provider's clock is three hours ahead of ours, or as much behind.
  @Test(
    arguments: [
      (10_800, 10_790, nil), (10_800, 10_800 - 400, .authenticatedEarlier), (10_800, 11_101, .authenticatedLater),
      (-10_800, -10_810, nil), (-10_800, -11_200, .authenticatedEarlier),
    ] as [(Int64, Int64, JWTFault?)]) func theTimeOfTheAuthenticationOnAnotherClock(
      _ difference: Int64, _ time: Int64, _ fault: JWTFault?
    ) throws
  {
    let credential = try Self.read(Self.token(Self.claims(["auth_time": Self.later(time)])))
    let demands = ConsentDemands(maxAge: .seconds(60))
    var found: OAuthError?
    do throws(OAuthError) {
      _ = try demands.areMet(by: credential, since: Fixture.now, clockAheadBy: .seconds(difference))
    } catch { found = error }
    #expect(found == fault.map { .idToken(.token, $0) })
  }

  /// 3.1.3.7 (12) and (13). The answer may leave out `acr`. Two clocks may differ by five minutes.
  @Test(
    arguments: [
      (["acr": "gold", "auth_time": signedIn], ["silver", "gold"], 100, true, nil),
      (["auth_time": signedIn], ["gold"], nil, false, nil), (["acr": "bronze"], [], nil, true, nil),
      (["acr": "bronze"], ["silver", "gold"], nil, nil, .authenticationContext("bronze")),
      (["auth_time": signedIn], [], 99, nil, .authenticatedEarlier),
      (["auth_time": later(300)], [], 0, true, nil), (["auth_time": later(301)], [], 99, nil, .authenticatedLater),
      (["auth_time": later(4_000_000)], [], 99, nil, .authenticatedLater),
      ([:], [], 0, nil, .missing(claim: "auth_time")), (["auth_time": "1"], [], 0, nil, .missing(claim: "auth_time")),
    ] as [(JSONValue, [String], Int64?, Bool?, JWTFault?)])
  func theAuthenticationOfTheLogin(
    _ claims: JSONValue, _ contexts: [String], _ maxAge: Int64?, _ isMet: Bool?, _ fault: JWTFault?
  ) throws {
    let demands = ConsentDemands(authenticationContexts: contexts, maxAge: maxAge.map { .seconds($0) })
    let credential = try Self.read(Self.token(Self.claims(claims)))
    var (met, found): (Bool?, OAuthError?) = (nil, nil)
    do throws(OAuthError) { met = try demands.areMet(by: credential, since: Fixture.now) } catch { found = error }
    #expect(met == isMet)
    #expect(found == fault.map { .idToken(.token, $0) })
    // Without an ID token, nothing is compared.
    #expect(try demands.areMet(by: Fixture.credential(), since: Fixture.now) == demands.isEmpty)
  }

  @Test func theImplicitGrant() throws {
    let client = try Fixture.client(
      "nonce: true", grant: "implicit",
      endpoints: "authorization: { url: 'https://provider.example/a', parameters: { response_type: id_token token } }")
    let request = try client.authorizationRequest(
      .implicit, redirectURI: "http://127.0.0.1:1/cb", scope: ["openid"], random: KnownRandom(), nonce: Fixture.nonce)
    let nonce = JSONValue.string(try #require(request.nonce))
    func read(_ claims: JSONValue?) throws -> Credential {
      var parameters: FormParameters = [("access_token", "t"), ("state", request.state)]
      if let claims { parameters.append("id_token", Self.token(claims)) }
      return try client.credential(client.authorizationResponse(parameters, to: request), now: Fixture.now)
    }
    let digest = HashAlgorithm.sha256.digest(Array("t".utf8))
    let hash = JSONValue.string(Base64.encodeURL(Array(digest.prefix(16))))
    #expect(try read(Self.claims(["nonce": nonce, "at_hash": hash])).idToken != nil)
    #expect(throws: OAuthError.idToken(.authorization, .accessTokenHash)) { try read(Self.claims(["nonce": nonce])) }
    #expect(throws: OAuthError.missingField(.authorization, .idToken)) { try read(nil) }
  }

  // MARK: The user

  @Test func theIdentityIsThatOfTheIDToken() throws {
    let client = try Self.client("account: [name, sub]")
    let credential = try Self.read(Self.token(Self.good), client)
    func name(_ json: String, _ credential: Credential?) throws -> String? {
      try client.identity(.json(json), of: credential).name
    }
    #expect(try name(#"{"sub": "ada", "name": "Ada"}"#, credential) == "Ada")
    #expect(throws: OAuthError.idToken(.identity, .subject)) { try name(#"{"sub": "eve", "name": "Ada"}"#, credential) }
    #expect(throws: OAuthError.idToken(.identity, .missing(claim: "sub"))) { try name(#"{"name": "Ada"}"#, credential) }
    #expect(throws: OAuthError.repeated(.identity, name: "sub")) {
      try name(#"{"sub": "eve", "sub": "ada", "name": "Ada"}"#, credential)
    }
    // Without an ID token, or at an endpoint that is not OpenID Connect's, nothing is compared.
    #expect(try name(#"{"sub": "eve", "name": "Ada"}"#, Fixture.credential()) == "Ada")
    let other = try Self.client("account: login")
    #expect(try other.identity(.json(#"{"login": "ada"}"#), of: credential).name == "ada")
    // A validation requires the user, unless the descriptor says that the API has another field for it.
    let keys = "issuer: https://login.example"
    func validity(_ more: String, _ json: String) throws -> Validity {
      let client = try Fixture.client(
        "account: name\n" + more,
        endpoints: "identity: https://provider.example/me\njwks: https://login.example/keys")
      return try client.validity(.json(json), .identity, of: credential)
    }
    #expect(try validity(keys, #"{"sub": "ada", "name": "Ada"}"#) == .active)
    #expect(throws: OAuthError.idToken(.identity, .missing(claim: "sub"))) { try validity(keys, #"{"name": "Ada"}"#) }
    #expect(try validity(keys + "\nsubject: id", #"{"name": "Ada"}"#) == .active)
  }
}
