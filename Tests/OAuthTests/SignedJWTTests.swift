import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrPlatform
import CredmgrText
import Testing

@testable import CredmgrOAuth

/// Tests the signatures of ID tokens (OpenID Connect Core 1.0, 3.1.3.7) and key sets (RFC 7517).
struct SignedJWTTests {
  private static let vectors: JSONValue = {
    let path = String(#filePath.dropLast("SignedJWTTests.swift".count)) + "Vectors/id-tokens.json"
    return (try? JSONValue.parse(File.read(path, limit: 1 << 20))) ?? .null
  }()

  private static var keys: [JSONValue] { vectors["jwks"]?["keys"]?.elements ?? [] }

  private static func set(_ keys: [JSONValue]) throws -> KeySet { try #require(KeySet(["keys": .array(keys)])) }

  private static func token(_ algorithm: String) throws -> String {
    try #require(vectors["tokens"]?[algorithm]?.text)
  }

  private static func client(_ more: String = "") throws -> Client {
    try Fixture.client("issuer: https://provider.example\n" + more, endpoints: "jwks: https://provider.example/keys")
  }

  private static func verify(_ token: String, _ keys: KeySet?, _ client: Client? = nil) throws -> Bool {
    var credential = Fixture.credential()
    credential.idToken = Secret(token)
    return try (client ?? Self.client()).verified(credential, with: keys).isIDTokenVerified
  }

  private static func fault(_ token: String, _ keys: KeySet?, _ client: Client? = nil) throws -> JWTFault? {
    do { _ = try verify(token, keys, client) } catch let OAuthError.idToken(_, fault) { return fault }
    return nil
  }

  /// Returns the token with another header or other claims, and the old signature.
  private static func changed(_ token: String, header: JSONValue? = nil, claims: JSONValue? = nil) -> String {
    var pieces = token.split(separator: ".").map(String.init)
    for (place, value) in [header, claims].enumerated() {
      if let value { pieces[place] = Base64.encodeURL(Array(value.encoded.utf8)) }
    }
    return pieces.joined(separator: ".")
  }

  /// PyJWT signed them.
  @Test(arguments: ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "EdDSA"])
  func signaturesOfAnotherImplementation(_ algorithm: String) throws {
    let token = try Self.token(algorithm)
    let keys = try Self.set(Self.keys)
    let usual = ["RS256", "PS256", "ES256", "EdDSA"].contains(algorithm)
    let client = usual ? nil : try Self.client("id_token_signed_response_alg: \(algorithm)")
    #expect(try Self.verify(token, keys, client))
    // Others count only if the descriptor names them.
    if !usual { #expect(try Self.fault(token, keys) == .algorithm(algorithm)) }
    // The vault keeps only the members that credmgr reads.
    #expect(KeySet(keys.value) == keys)
    let claims = Self.changed(token, claims: ["iss": "https://provider.example", "sub": "eve", "aud": "client-1"])
    #expect(try Self.fault(claims, keys, client) == .signature)
    #expect(try Self.fault(String(token.dropLast(2)) + "AA", keys, client) == .signature)
    #expect(try Self.fault(token, Self.set([]), client) == .keyUnknown)
    #expect(try Self.fault(token, nil, client) == .keyUnknown)
    let other = algorithm == "ES256" ? "RS256" : "ES256"
    #expect(
      try Self.fault(token, keys, Self.client("id_token_signed_response_alg: \(other)")) == .algorithm(algorithm))
  }

  /// RFC 8725, 2.1: a program with the public key could otherwise sign.
  @Test func aMACWithThePublicKeyIsRefused() throws {
    let header: JSONValue = ["alg": "HS256", "kid": "rsa"]
    let text = Self.changed(try Self.token("RS256"), header: header)
    let signed = text.split(separator: ".").prefix(2).joined(separator: ".")
    let keys = Self.keys.map { Array($0.encoded.utf8) } + [Array("secret-1".utf8)]
    for key in keys {
      let mark = Base64.encodeURL(HashAlgorithm.sha256.authenticationCode(for: Array(signed.utf8), key: key))
      #expect(try Self.fault(signed + "." + mark, Self.set(Self.keys)) == .algorithm("HS256"))
      // At its issue, too.
      #expect(throws: OAuthError.idToken(.token, .algorithm("HS256"))) { try Self.read(signed + "." + mark) }
    }
    // With a descriptor that says so, the client secret signs.
    let mark = Base64.encodeURL(HashAlgorithm.sha256.authenticationCode(for: Array(signed.utf8), key: keys[3]))
    let declared = try Self.client("id_token_signed_response_alg: HS256")
    #expect(try Self.verify(signed + "." + mark, nil, declared))
    #expect(try Self.fault(signed + ".AAAA", nil, declared) == .signature)
    #expect(try Self.fault(Self.token("RS256"), Self.set(Self.keys), declared) == .algorithm("RS256"))
  }

  private static func read(_ token: String) throws -> Credential {
    try client().outcome(
      .json("{\"access_token\": \"t\", \"id_token\": \"\(token)\"}"), .token, grant: .authorizationCode, scope: [],
      now: Fixture.now
    ).issued().credential
  }

  /// Each is refused at its issue and again before its signature counts.
  @Test(
    arguments: [
      (["alg": "none"], .unsigned), (["alg": "ES256", "crit": ["b64"], "b64": false], .critical),
      (["alg": "ES256", "crit": []], .critical), (["alg": "ES256", "cty": "JWT"], .nested),
      (["alg": "ES256", "cty": "application/jwt"], .nested), (["alg": "ES256", "typ": "at+jwt"], .type("at+jwt")),
      (["alg": "ES256", "typ": "application/logout+jwt"], .type("logout+jwt")),
      (["alg": "ES256", "typ": 7], .type("")),
      (["alg": "ES384"], .algorithm("ES384")), (["alg": "RSA1_5"], .algorithm("RSA1_5")),
      (["alg": "es256"], .algorithm("es256")), (["alg": "HS512"], .algorithm("HS512")),
    ] as [(JSONValue, JWTFault)])
  func headersThatAreRefused(_ header: JSONValue, _ fault: JWTFault) throws {
    let token = Self.changed(try Self.token("ES256"), header: header)
    #expect(throws: OAuthError.idToken(.token, fault)) { try Self.read(token) }
    #expect(try Self.fault(token, Self.set(Self.keys)) == fault)
  }

  @Test(arguments: ["JWT", "jwt", "application/JWT"]) func typesOfIDTokens(_ type: String) throws {
    let token = Self.changed(try Self.token("ES256"), header: ["alg": "ES256", "kid": "ec", "typ": .string(type)])
    #expect(try Self.read(token).idToken == Secret(token))
  }

  @Test func anEncryptedIDToken() throws {
    #expect(throws: OAuthError.idToken(.token, .encrypted)) {
      try Self.read("eyJhbGciOiJSU0EtT0FFUCJ9.a.b.c.d")
    }
  }

  @Test func repeatedHeaderMembers() throws {
    for name in ["typ", "kid", "crit", "cty"] {
      let header = JSONValue.object([.init("alg", "ES256"), .init(name, "JWT"), .init(name, "JWT")])
      let token = Self.changed(try Self.token("ES256"), header: header)
      #expect(throws: OAuthError.idToken(.token, .repeated(claim: name))) { try Self.read(token) }
    }
  }

  /// FAPI 2.0, 5.4.1 (1)
  @Test func theProfileAllowsThreeAlgorithms() throws {
    let client = try Fixture.client(
      "issuer: https://provider.example\nprofile: fapi2",
      endpoints: """
        jwks: https://provider.example/keys
        pushed_authorization_request: https://provider.example/par
        """)
    for algorithm in ["RS256", "RS512", "PS384"] {
      #expect(try Self.fault(Self.token(algorithm), Self.set(Self.keys), client) == .algorithm(algorithm))
    }
    for algorithm in ["PS256", "ES256", "EdDSA"] {
      #expect(try Self.verify(Self.token(algorithm), Self.set(Self.keys), client))
    }
  }

  @Test func anIDTokenForAnotherClientIsNotVerified() throws {
    let other = try Fixture.client(
      "issuer: https://provider.example", endpoints: "jwks: https://provider.example/keys", id: "client-2")
    #expect(try Self.fault(Self.token("ES256"), Self.set(Self.keys), other) == .audience)
  }

  // MARK: Keys

  private static func key(_ index: Int, _ changes: JSONValue) -> JSONValue {
    let changed = changes.members ?? []
    let kept = (keys[index].members ?? []).filter { member in !changed.contains { $0.name == member.name } }
    return .object(kept + changed.filter { $0.value != .null })
  }

  @Test(
    arguments: [
      (["kid": "other"], .keyUnknown), (["kid": .null], .keyUnknown), (["kid": 7], .keyUnknown),
      (["alg": "RS384"], .keyUnknown), (["use": "enc"], .keyUnusable), (["key_ops": ["sign"]], .keyUnusable),
      (["kty": "oct", "k": "AAAA"], .keyUnusable), (["kty": "X"], .keyUnusable), (["n": "AQAB"], .keyUnusable),
      (["n": "!"], .keyUnusable), (["e": "AQ"], .keyUnusable), (["e": "Ag"], .keyUnusable),
      (["e": .null], .keyUnusable),
      (["alg": "RS256", "key_ops": ["verify"], "use": .null, "x5t": "ignored"], nil),
    ] as [(JSONValue, JWTFault?)])
  func keysWithOtherMembers(_ changes: JSONValue, _ fault: JWTFault?) throws {
    let set = try Self.set([Self.key(0, changes), Self.keys[1], ["kty": "unknown"], 7, "x"])
    #expect(try Self.fault(Self.token("RS256"), set) == fault)
  }

  @Test func repeatedKeys() throws {
    let token = try Self.token("RS256")
    #expect(try Self.verify(token, Self.set(Self.keys + Self.keys)))
    // Two keys with one name.
    let other = try #require(Self.keys[0]["n"]?.text)
    #expect(
      try Self.fault(token, Self.set(Self.keys + [Self.key(0, ["n": .string("q" + other.dropFirst())])]))
        == .keyAmbiguous)
    let repeated = JSONValue.object((Self.keys[0].members ?? []) + [.init("n", "AQAB")])
    #expect(try Self.fault(token, Self.set([repeated])) == .keyUnusable)
    // Without a name, several keys would be a guess (OpenID Connect Core 1.0, 10.1).
    let unnamed = try SignedJWT(#require(Self.vectors["tokens"]?["ES256"]?.text))
    #expect(unnamed != nil)
    #expect(throws: JWTFault.keyAmbiguous) {
      try Self.set([Self.keys[0], Self.key(0, ["n": .string("q" + other.dropFirst()), "kid": "b"])])
        .key(named: nil, for: .rs256)
    }
    #expect(throws: Never.self) { try Self.set(Self.keys).key(named: nil, for: .rs256) }
  }

  /// FAPI 2.0, 5.4.3
  @Test func keysOfOtherTypesWithTheSameName() throws {
    let other = JSONValue.string("q" + (try #require(Self.keys[0]["n"]?.text)).dropFirst())
    let keys = try Self.set([
      Self.key(0, ["n": other, "use": "enc"]), Self.key(0, ["n": other, "alg": "PS512"]),
      Self.key(1, ["kid": "rsa"]), Self.key(2, ["kid": "rsa"]), Self.keys[0],
    ])
    #expect(try Self.verify(Self.token("RS256"), keys))
  }

  /// A server may have thousands of keys, of which only the first ones are read.
  @Test func moreKeysThanAreRead() throws {
    let others = (0..<100).map { Self.key(0, ["kid": .string("k\($0)")]) }
    let token = try Self.token("RS256")
    #expect(try Self.fault(token, Self.set(others + [Self.keys[0]])) == .keyOmitted(read: 100))
    #expect(try Self.verify(token, Self.set(others.dropLast() + [Self.keys[0]])))
  }

  @Test(
    arguments: [
      ("{}", .noKeys), ("[]", .noKeys), ("{\"keys\": 1}", .noKeys), ("{\"keys\": null}", .noKeys),
      ("{\"keys\": [], \"keys\": []}", .repeated(.keySet, name: "keys")),
      ("x", .unreadable(.keySet, expected: .json, mediaType: "application/json")),
      ("", .unreadable(.keySet, expected: .json, mediaType: "application/json")),
    ] as [(String, OAuthError)])
  func answersThatAreNoKeySet(_ text: String, _ error: OAuthError) throws {
    #expect(throws: error) { try Self.client().keySet(.json(text)) }
  }

  @Test func aPointOutsideTheCurve() throws {
    let x = try #require(Self.keys[1]["y"]?.text)
    #expect(try Self.fault(Self.token("ES256"), Self.set([Self.key(1, ["x": .string(x)])])) == .signature)
  }

  /// The request for keys carries nothing about the client or the user.
  @Test func theRequestForKeys() throws {
    let request = try Self.client().keySetRequest(nonce: Fixture.nonce)
    #expect(request.method == "GET")
    #expect(request.uri.text == "https://provider.example/keys")
    #expect(request.body.isEmpty)
    #expect(request.fields.map(\.name) == ["Accept"])
    #expect(throws: (any Error).self) {
      try Fixture.client(endpoints: "jwks: { url: https://provider.example/keys, headers: { X: \"{client_secret}\" } }")
    }
    // The server of the keys gets no token.
    let elsewhere = try Fixture.client(endpoints: "jwks: https://keys.example/keys")
    #expect(Set(elsewhere.hosts(for: Fixture.credential())) == ["provider.example"])
  }
}
