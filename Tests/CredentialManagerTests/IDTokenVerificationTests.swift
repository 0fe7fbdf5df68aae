import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import Testing

@testable import CredmgrCredentialManager
import CredmgrText

/// Tests when the signature of an ID token is verified, and what happens to the account if it is wrong or unknown.
struct IDTokenVerificationTests {
  private static let descriptor =
    Fixture.endpoints.replacing("  identity:", with: "  jwks: https://keys.example/set\n  identity:")
    + "\nissuer: https://provider.example\nkubectl: { hosts: [cluster.example] }\n"

  /// PyJWT signed it. Its user is ada, and it is valid for an hour from `Fixture.now`.
  private static let token =
    "eyJhbGciOiJFUzI1NiIsImtpZCI6ImVjIiwidHlwIjoiSldUIn0.eyJpc3MiOiJodHRwczovL3Byb3ZpZGVyLmV4YW1wbGUi"
    + "LCJzdWIiOiJhZGEiLCJhdWQiOiJjbGllbnQtMSIsImlhdCI6MTcwMDAwMDAwMCwiZXhwIjoxNzAwMDAzNjAwfQ.dIJ2mxKQE"
    + "ZisjT8Mn2SvJPO2WfM_gqmHZP9gyWLJNPF0pYPFKm8ruGeXJrStVuoBm5qLEMGN9k-7BuvoVIgriA"

  private static let keys = HTTPResponse.json(
    """
    {"keys": [{"kty": "EC", "crv": "P-256", "kid": "ec", "use": "sig",
      "x": "PoX-Nh8LL7eD77VyRXdbu3YTuqWmVC2IOu6x_PzAhHI", "y": "vZMDWW8-0CSBUsxzMBC-KzTKGRGh67ny3C7ulddGk3U"}]}
    """)
  private static let noKeys = HTTPResponse.json("{\"keys\": []}")
  private static let identity = HTTPResponse.json("{\"login\": \"ada\", \"sub\": \"ada\"}")

  private static func answer(_ idToken: String = token, _ access: String = "token-1", refresh: String = "r-1")
    -> HTTPResponse
  {
    .json("{\"access_token\": \"\(access)\", \"refresh_token\": \"\(refresh)\", \"id_token\": \"\(idToken)\"}")
  }

  private static let wrong = CredentialError.oauth(.idToken(.token, .signature), provider: "example")
  private static var forged: String { String(token.dropLast(4)) + "AAAA" }

  @Test func aLoginVerifiesWithTheKeysOfTheProvider() throws {
    let fixture = try Fixture.added(Self.descriptor)
    fixture.consent(Self.answer(), Self.keys, Self.identity)
    let account = try fixture.login()
    #expect(account.credential.isIDTokenVerified)
    #expect(try fixture.stored("ada")?.isIDTokenVerified == true)
    #expect(fixture.notices == [])
    let request = try #require(fixture.http.requests.first { $0.uri.host == "keys.example" })
    #expect(request.fields.map(\.name) == ["Accept"])
    // The vault keeps the keys for a day; kubectl needs no network.
    #expect(try fixture.another().withVerifiedIDToken(account, for: .kubectl).credential.isIDTokenVerified)
    // The provider's clock says that the old ID token is still valid.
    var answer = Self.answer()
    answer.fields.set("Date", "Tue, 14 Nov 2023 22:13:20 GMT")
    fixture.clock.advance(.hours(25))
    fixture.consent(answer, Self.keys, Self.identity)
    #expect(try fixture.login().credential.isIDTokenVerified)
  }

  /// The new tokens may be of the same user as those of an account that works, and many providers revoke all tokens of
  /// a user together.
  @Test(arguments: ["works", "refreshable", "ended"]) func aWrongSignatureFailsTheLogin(_ state: String) throws {
    var credential = Fixture.credential(refresh: state == "ended" ? nil : "r-0", identity: "ana")
    if state != "works" { credential.expiresAt = Fixture.now }
    let fixture = try Fixture.added(Self.descriptor, credential: credential)
    let before = try fixture.stored()
    fixture.consent(Self.answer(Self.forged), Self.keys)
    if state == "ended" { fixture.http.then(HTTPResponse(status: 200), HTTPResponse(status: 200)) }
    #expect(throws: Self.wrong) { try fixture.login { $0.account = "ana" } }
    let revoked = fixture.http.requests.filter { $0.uri.path == "/revoke" }.map { $0.parameters[first: "token"] }
    #expect(revoked == (state == "ended" ? ["r-1", "token-1"] : []))
    #expect(fixture.notices.contains(.tokensLeft(provider: "example", nil)) == (state != "ended"))
    // The account is as it was.
    #expect(try fixture.stored() == before)
    #expect(try fixture.stored("ada") == nil)
    try fixture.expectNothingLeft()
  }

  @Test(
    arguments: [
      .failure(.unreachable(host: "keys.example", reason: .timedOut)), .failure(.bodyTooLarge(limit: 1 << 20)),
      .success(HTTPResponse(status: 503)), .success(HTTPResponse(status: 404)), .success(.json("{}")),
      .success(HTTPResponse(status: 302, fields: ["Location": "https://evil.example/"])),
    ] as [Result<HTTPResponse, HTTPError>])
  func keysThatCannotBeReadCostNoCredential(_ answer: Result<HTTPResponse, HTTPError>) throws {
    let fixture = try Fixture.added(Self.descriptor)
    fixture.consent(Self.answer())
    switch answer {
    case .success(let response): fixture.http.then(response)
    case .failure(let error): fixture.http.then(error)
    }
    fixture.http.then(Self.identity)
    let account = try fixture.login()
    #expect(account.credential.accessToken == Secret("token-1"))
    #expect(!account.credential.isIDTokenVerified)
    #expect(fixture.notices.contains { if case .idTokenUnverified("example", _) = $0 { true } else { false } })
    // kubectl verifies later, and keeps the result.
    #expect(throws: CredentialError.networkNeeded) { try fixture.another().withVerifiedIDToken(account, for: .kubectl) }
    fixture.http.then(HTTPResponse(status: 503))
    let later = try #require(throws: CredentialError.self) {
      try fixture.source.withVerifiedIDToken(account, for: .kubectl)
    }
    guard case .oauth(.unavailable(.keySet, _, _, _), _) = later else { throw later }
    fixture.http.then(Self.keys)
    #expect(try fixture.source.withVerifiedIDToken(account, for: .kubectl).credential.isIDTokenVerified)
    #expect(try fixture.stored("ada")?.isIDTokenVerified == true)
  }

  /// The provider changed its keys: an unknown name leads to one more request, and only fresh keys are believed.
  @Test func anUnknownKeyIsFetchedOnce() throws {
    let fixture = try Fixture.added(Self.descriptor)
    fixture.consent(Self.answer(), Self.noKeys, HTTPResponse(status: 200), HTTPResponse(status: 200))
    #expect(throws: CredentialError.oauth(.idToken(.token, .keyUnknown), provider: "example")) { try fixture.login() }
    fixture.consent(Self.answer(), Self.keys, Self.identity)
    #expect(try fixture.login().credential.isIDTokenVerified)
    fixture.consent(Self.answer(), Self.identity)
    #expect(try fixture.login().credential.isIDTokenVerified)
  }

  /// 5.3.2. An answer about another user says nothing about the account.
  @Test func aValidationNamesTheSameUser() throws {
    let fixture = try Fixture.added(Self.descriptor)
    fixture.consent(Self.answer(), Self.keys, Self.identity)
    _ = try fixture.login()
    fixture.http.then(Self.identity, .json(#"{"sub": "eve", "name": "ada"}"#))
    #expect(try fixture.source.validate(nil, of: "example").validity == .active)
    let other = CredentialError.oauth(.idToken(.identity, .subject), provider: "example")
    #expect(throws: other) { try fixture.source.validate(nil, of: "example") }
  }

  @Test func withoutKeysTheLoginSaysSo() throws {
    let fixture = try Fixture.added(Self.descriptor.replacing("  jwks: https://keys.example/set\n", with: ""))
    fixture.consent(Self.answer(), Self.identity)
    let account = try fixture.login()
    let missing = CredentialError.oauth(.noEndpoint(.keySet), provider: "example")
    #expect(fixture.notices == [.idTokenUnverified(provider: "example", missing)])
    #expect(throws: missing) { try fixture.source.withVerifiedIDToken(account, for: .kubectl) }
    let token = try #require(try fixture.source.idToken(of: account))
    #expect(!token.isVerified)
    #expect(token.claims["sub"]?.text == "ada")
    #expect(token.doubt == missing)
  }

  /// Keys that several issuers share would sign for each of them.
  @Test func withoutAnIssuerNothingIsVerified() throws {
    let fixture = try Fixture.added(Self.descriptor.replacing("issuer: https://provider.example\n", with: ""))
    fixture.consent(Self.answer(), Self.identity)
    let account = try fixture.login()
    let missing = CredentialError.oauth(.noIssuer, provider: "example")
    #expect(fixture.notices == [.idTokenUnverified(provider: "example", missing)])
    #expect(throws: missing) { try fixture.source.withVerifiedIDToken(account, for: .kubectl) }
    #expect(try fixture.source.idToken(of: account)?.doubt == missing)
  }

  /// The claims are wrong, so the tokens were never saved. They are revoked as well.
  @Test func aTokenOfAnotherIssuerIsRevoked() throws {
    let fixture = try Fixture.added(
      Self.descriptor.replacing("issuer: https://provider.example", with: "issuer: https://other.example"))
    fixture.consent(Self.answer(), HTTPResponse(status: 200), HTTPResponse(status: 200))
    #expect(throws: CredentialError.self) { try fixture.login() }
    let tokens = fixture.http.requests.suffix(2).map { $0.parameters[first: "token"] }
    #expect(tokens == ["r-1", "token-1"])
    #expect(fixture.notices == [])
    try fixture.expectNothingLeft()
  }

  /// Without an endpoint that revokes them, the tokens stay valid, and the login says so.
  @Test func tokensThatCannotBeRevoked() throws {
    let text = Self.descriptor.replacing("https://provider.example\n", with: "https://other.example\n")
      .replacing("  revocation: https://provider.example/revoke\n", with: "")
    let fixture = try Fixture.added(text)
    fixture.consent(Self.answer())
    #expect(throws: CredentialError.self) { try fixture.login() }
    #expect(fixture.notices == [.tokensLeft(provider: "example", nil)])
  }

  /// The provider ignored the demands of the login. Its tokens are revoked.
  @Test func aLoginThatDemandedAnotherAuthentication() throws {
    let fixture = try Fixture.added(Self.descriptor)
    fixture.consent(Self.answer(), HTTPResponse(status: 200), HTTPResponse(status: 200))
    let error = CredentialError.oauth(.idToken(.token, .missing(claim: "auth_time")), provider: "example")
    #expect(throws: error) { try fixture.login { $0.demands.maxAge = .seconds(60) } }
    #expect(fixture.http.requests.suffix(2).map(\.uri.path) == ["/revoke", "/revoke"])
    #expect(try fixture.stored("ada") == nil)
    try fixture.expectNothingLeft()
  }

  /// Without the claims, only the provider's API knows whether the user authenticated as demanded.
  @Test func aProviderThatDoesNotConfirmTheAuthentication() throws {
    let fixture = try Fixture.added(Self.descriptor)
    fixture.consent(Self.answer(), Self.keys, Self.identity)
    _ = try fixture.login { $0.demands.authenticationContexts = ["gold"] }
    #expect(fixture.notices == [.authenticationUnconfirmed(provider: "example")])
  }

  /// OpenID Connect Core 1.0, 12.2. A wrong signature costs the answer, but not its refresh token.
  @Test func aRefreshVerifiesAsWell() throws {
    var credential = Fixture.credential()
    credential.expiresAt = Fixture.now
    for (idToken, isRight) in [(Self.token, true), (Self.forged, false)] {
      let fixture = try Fixture.added(Self.descriptor, credential: credential)
      fixture.http.then(Self.answer(idToken, "token-2", refresh: "r-2"))
      fixture.http.then(Self.keys)
      if isRight {
        #expect(try fixture.fresh().credential.isIDTokenVerified)
      } else {
        #expect(throws: Self.wrong) { try fixture.fresh() }
      }
      let stored = try #require(try fixture.stored())
      #expect(stored.accessToken == Secret(isRight ? "token-2" : "token-1"))
      #expect(stored.refreshToken == Secret("r-2"))
      #expect(stored.isIDTokenVerified == isRight)
      try fixture.expectNothingLeft()
    }
  }

  // MARK: The agreement

  /// Another address for keys needs consent, and the keys' server gets no secret.
  @Test func theAddressOfKeysIsAgreedTo() throws {
    let fixture = try Fixture.added(Self.descriptor)
    let client = try fixture.source.client("example")
    let agreement = Agreement(client)
    #expect(agreement.texts(.keys) == ["https://keys.example"])
    #expect(!agreement.texts(.endpoints).contains("https://keys.example"))
    try fixture.ship(Self.descriptor.replacing("keys.example", with: "evil.example"))
    let error = try #require(throws: CredentialError.self) { try fixture.source.permit(.login, "example") }
    guard case .descriptorChanged(_, _, _, let places) = error else { throw error }
    #expect(places.map(\.kind) == [.keys])
    #expect(places.map(\.name) == ["https://evil.example"])
    // A first address only adds a check.
    let other = try Fixture.added(Fixture.endpoints)
    try other.ship(Fixture.endpoints.replacing("  identity:", with: "  jwks: https://keys.example/set\n  identity:"))
    #expect(throws: Never.self) { try other.source.permit(.login, "example") }
  }

  /// The provider was added before its descriptor had keys.
  @Test func theFirstKeysOfAProviderAreFetched() throws {
    let fixture = try Fixture.added(Self.descriptor.replacing("  jwks: https://keys.example/set\n", with: ""))
    try fixture.ship(Self.descriptor)
    fixture.consent(Self.answer(), Self.keys, Self.identity)
    #expect(try fixture.login().credential.isIDTokenVerified)
  }

  /// Anyone could have written the mark into an export.
  @Test func anImportVerifiesAgain() throws {
    let (fixture, other) = (try Fixture.added(Self.descriptor), try Fixture.added(Self.descriptor))
    other.consent(Self.answer(), Self.keys, Self.identity)
    #expect(try other.login().credential.isIDTokenVerified)
    let bytes = try TransferTests.plain(other)
    _ = try fixture.source.importVault(bytes, acceptsPlain: true, replaces: true) { _, _ in true }
    #expect(try fixture.stored("ada")?.isIDTokenVerified == false)
    // The same file a second time changes nothing.
    #expect(throws: Never.self) {
      try fixture.source.importVault(bytes, acceptsPlain: true, replaces: false) { _, _ in false }
    }
  }

  @Test func anIDTokenThatCannotBeReadIsNotVerified() throws {
    let fixture = try Fixture.added(Self.descriptor)
    var credential = Fixture.credential()
    credential.idToken = Secret("no.token")
    let client = try fixture.source.client("example")
    #expect(throws: OAuthError.idToken(.token, .signature)) { try client.verified(credential, with: nil) }
  }
}
