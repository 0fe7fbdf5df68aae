import CredmgrCryptography
import CredmgrHTTP
import CredmgrDescriptors
import Testing

@testable import CredmgrOAuth

/// Tests client authentication, and the places of parameters.
struct EndpointRequestTests {
  private static func refresh(
    _ more: String = "", token: String = "", id: String = "client-1", secret: String? = "secret-1"
  ) throws -> HTTPRequest {
    let client = try Fixture.client(
      more, endpoints: token.isEmpty ? "" : "token:\n  url: https://provider.example/token?v=1\n" + token, id: id,
      secret: secret)
    var credential = Fixture.credential()
    credential.refreshToken = Secret("r 1")
    return try client.refreshRequest(credential, nonce: Fixture.nonce)
  }

  /// RFC 6749, 2.3.1: identifier and secret are form-encoded, because a colon would end the identifier.
  @Test(
    arguments: [
      ("client-1", "secret-1", "client-1:secret-1"), ("a:b", "c:d", "a%3Ab:c%3Ad"),
      ("é", "p%w+d /", "%C3%A9:p%25w%2Bd%20%2F"),
      ("1PpG.~_-", "UYnwZbmvf3fAXCEa0JryLQ==", "1PpG.~_-:UYnwZbmvf3fAXCEa0JryLQ%3D%3D"),
    ])
  func basic(_ id: String, _ secret: String, _ pair: String) throws {
    let request = try Self.refresh(id: id, secret: secret)
    #expect(request.fields["Authorization"] == "Basic " + Base64.encode(Array(pair.utf8)))
    #expect(request.form == "grant_type=refresh_token&refresh_token=r%201")
  }

  @Test func post() throws {
    let request = try Self.refresh("client: { authentication: client_secret_post }", secret: "s&1")
    #expect(request.fields["Authorization"] == nil)
    #expect(request.form == "grant_type=refresh_token&refresh_token=r%201&client_id=client-1&client_secret=s%261")
  }

  @Test(arguments: ["client: { authentication: none }", ""]) func publicClient(_ more: String) throws {
    for secret in more.isEmpty ? [nil, ""] : [nil] as [String?] {
      let request = try Self.refresh(more, secret: secret)
      #expect(request.fields["Authorization"] == nil)
      #expect(request.form == "grant_type=refresh_token&refresh_token=r%201&client_id=client-1")
    }
  }

  @Test func legThatNeedsASecret() {
    for method in ["client_secret_basic", "client_secret_post"] {
      #expect(throws: OAuthError.clientSecretMissing) {
        try Self.refresh(token: "  authentication: \(method)", secret: nil)
      }
    }
  }

  private static let key =
    "-----BEGIN PRIVATE KEY-----\n\(String(repeating: "x", count: 64))\n-----END PRIVATE KEY-----\n"

  /// A private key signs but is never sent, whatever the descriptor says.
  @Test(arguments: [
    ("client: { authentication: client_secret_post }", ""), ("", ""),
    ("client: { authentication: none }", "  parameters: { x: \"a{client_secret}\", y: \"{k}\", z: \"{base64(k)}\" }"),
    ("client: { authentication: none }", "  headers: { X: \"{base64(client_secret)}\" }"),
    (
      "client: { authentication: client_secret_jwt }\nassertion: { claims: { x: \"{client_secret}\", y: \"{k}\" } }",
      ""
    ),
  ]) func aPrivateKeyIsNotSent(_ more: String, _ token: String) throws {
    let more = more + "\nvariables: { k: { secret: true, default: \"\(Self.key.replacing("\n", with: "\\n"))\" } }"
    let wire: String
    do {
      let request = try Self.refresh(more, token: token, secret: Self.key)
      wire = request.form + request.fields.map(\.value).joined(separator: " ")
    } catch OAuthError.privateKeyIsNotSent {
      return
    }
    let pieces = wire.split { "&= ".contains($0) }.map { PercentEncoding.decode(String($0), plusAsSpace: true) ?? "" }
    let claims = pieces.flatMap { $0.split(separator: ".") }.compactMap { Base64.decodeURL(String($0)) }
    let decoded =
      pieces + (claims + pieces.compactMap { Base64.decode($0) }).map { String(decoding: $0, as: UTF8.self) }
    #expect(decoded.allSatisfy { !$0.contains("PRIVATE KEY") })
  }

  @Test func aPrivateKeyIsNotAPlaintextSignature() {
    #expect(throws: OAuthError.privateKeyIsNotSent) {
      try OAuth1Signature.sign("text", .plaintext, clientSecret: Secret(Self.key), tokenSecret: Secret(""))
    }
  }

  @Test func withTheTokenItself() throws {
    let client = try Fixture.client(
      endpoints: """
        revocation:
          url: https://provider.example/tokens/{access_token}
          method: DELETE
          tokens: [access_token]
          authentication: access_token
          parameters: { token: null, token_type_hint: null }
        """)
    let requests = try client.revocationRequests(Fixture.credential("a/b"), nonce: Fixture.nonce)
    #expect(
      requests.map(\.wire) == [
        "DELETE https://provider.example/tokens/a%2Fb\nAuthorization: Bearer a/b\nAccept: application/json\n"
      ])
  }

  @Test func inTheQuery() throws {
    let request = try Self.refresh(token: "  send: query")
    #expect(request.uri.text == "https://provider.example/token?v=1&grant_type=refresh_token&refresh_token=r%201")
    #expect(request.body.isEmpty)
    #expect(request.fields["Content-Type"] == nil)
  }

  @Test func byGet() throws {
    let request = try Self.refresh(token: "  method: GET")
    #expect(request.method == "GET")
    #expect(request.uri.query == "v=1&grant_type=refresh_token&refresh_token=r%201")
  }

  @Test func asJSON() throws {
    let request = try Self.refresh(
      "client: { authentication: client_secret_post }", token: "  send: json", secret: "\"")
    #expect(request.fields["Content-Type"] == "application/json")
    #expect(
      request.form
        == "{\"grant_type\":\"refresh_token\",\"refresh_token\":\"r 1\",\"client_id\":\"client-1\",\"client_secret\":\"\\\"\"}"
    )
  }

  @Test func someInTheQueryAndRenamed() throws {
    let request = try Self.refresh(
      "client: { authentication: client_secret_post }",
      token: "  in_query: [client_id]\n  rename: { client_id: app, client_secret: key, refresh_token: token }")
    #expect(request.uri.query == "v=1&app=client-1")
    #expect(request.form == "grant_type=refresh_token&token=r%201&key=secret-1")
  }

  /// A refresh inherits everything from the token endpoint except its parameters, unless it has its own values.
  @Test func aRefreshInheritsFromTheTokenEndpoint() throws {
    let request = try Self.refresh(
      token: """
          method: PUT
          headers: { X-Who: "{client_id}", X-Not: "{user_code}" }
          parameters: { audience: a }
          response: { format: form }
        """.split(separator: "\n").map { "  " + $0.drop { $0 == " " } }.joined(separator: "\n"))
    #expect(
      request.wire == """
        PUT https://provider.example/token?v=1
        Authorization: Basic Y2xpZW50LTE6c2VjcmV0LTE=
        X-Who: client-1
        Content-Type: application/x-www-form-urlencoded

        grant_type=refresh_token&refresh_token=r%201

        """)
  }

  @Test func parametersOfTheRefresh() throws {
    let client = try Fixture.client(
      "response: { keep: [realm] }",
      endpoints: """
        refresh:
          url: https://provider.example/refresh
          parameters:
            grant_type: again
            scope: "{scope}"
            redirect_uri: "{redirect_uri}"
            realm: "{realm}"
            secret: "{client_secret}"
            left_out: "{code}"
        """)
    var credential = Fixture.credential()
    credential.refreshToken = Secret("r")
    credential.requestedScope = ["a", "b"]
    credential.redirectURI = "http://127.0.0.1:1/"
    credential.kept["realm"] = "R"
    #expect(
      try client.refreshRequest(credential, nonce: Fixture.nonce).form
        == "grant_type=again&refresh_token=r&scope=a%20b&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2F&realm=R&secret=secret-1"
    )
  }

  @Test func clientCredentials() throws {
    let client = try Fixture.client("scope: { separator: \",\" }", grant: "client_credentials")
    #expect(
      try client.clientCredentialsRequest(scope: [], nonce: Fixture.nonce).form == "grant_type=client_credentials")
    #expect(
      try client.clientCredentialsRequest(scope: ["a", "b"], nonce: Fixture.nonce).form
        == "grant_type=client_credentials&scope=a%2Cb")
    var credential = Fixture.credential(grant: .clientCredentials)
    credential.requestedScope = ["a"]
    #expect(try client.refreshRequest(credential, nonce: Fixture.nonce).form == "grant_type=client_credentials&scope=a")
  }

  @Test func aURLFromAnAnswer() throws {
    let client = try Fixture.client(
      "response: { keep: [instance_url] }", endpoints: "identity: \"{instance_url}/userinfo\"")
    var credential = Fixture.credential()
    #expect(throws: OAuthError.missingValue(.identity, name: "instance_url")) {
      try client.identityRequest(credential, nonce: Fixture.nonce)
    }
    credential.kept["instance_url"] = "https://na1.example/"
    #expect(try client.identityRequest(credential, nonce: Fixture.nonce).uri.text == "https://na1.example/userinfo")
    credential.kept["instance_url"] = "http://na1.example"
    #expect(throws: OAuthError.self) { try client.identityRequest(credential, nonce: Fixture.nonce) }
  }

  @Test func nothingToRefreshWith() throws {
    #expect(throws: OAuthError.notRefreshable) {
      try Fixture.client().refreshRequest(Fixture.credential(), nonce: Fixture.nonce)
    }
  }

  @Test func legThatTheProviderDoesNotHave() throws {
    #expect(throws: OAuthError.noEndpoint(.deviceAuthorization)) {
      try Fixture.client().deviceAuthorizationRequest(scope: [], nonce: Fixture.nonce)
    }
  }

  // MARK: The client's variables

  @Test func variables() throws {
    let rules = """
      variables:
        host: { default: a.example, format: hostname }
        tenant: {}
        note: { optional: true }
        kind: { choices: [x, y], default: x }
      """
    func values(_ given: [String: String]) throws -> [String: String] {
      try Fixture.client(rules + "\nhosts: [\"{host}\", \"{tenant}.{kind}.{note}\"]", variables: given).variables
    }
    #expect(try values(["tenant": "t"]) == ["host": "a.example", "tenant": "t", "kind": "x"])
    #expect(try values(["tenant": "t", "note": "n", "host": "b.example:8443"])["host"] == "b.example:8443")
    #expect(throws: ProviderError.self) { try values([:]) }
    #expect(throws: ProviderError.self) { try values(["tenant": ""]) }
    #expect(throws: ProviderError.self) { try values(["tenant": "a\nb"]) }
    #expect(throws: ProviderError.self) { try values(["tenant": "t", "kind": "z"]) }
    #expect(throws: ProviderError.self) { try values(["tenant": "t", "host": "evil.example/path"]) }
    #expect(throws: ProviderError.unknownVariable("tenent", known: ["host", "tenant", "note", "kind"])) {
      try values(["tenent": "t"])
    }
  }
}
