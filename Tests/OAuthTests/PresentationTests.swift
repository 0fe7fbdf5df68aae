import CredmgrCryptography
import CredmgrHTTP
import CredmgrDescriptors
import Testing

@testable import CredmgrOAuth

struct PresentationTests {
  private static let api = "https://api.provider.example/resource"

  private static func client(_ more: String, variables: [String: String] = [:]) throws -> Client {
    try Fixture.client("hosts: [api.provider.example]\n" + more, variables: variables)
  }

  private static func present(
    _ more: String, _ credential: Credential = Fixture.credential(), fields: HTTPFields = [:], url: String = api
  ) throws -> HTTPRequest {
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: url), fields: fields)
    return try client(more).presenting(credential, on: request, nonce: Fixture.nonce)
  }

  @Test(
    arguments: [
      ("", "Authorization: Bearer token-1"), ("header_style: token", "Authorization: token token-1"),
      ("header_style: { scheme: OAuth }", "Authorization: OAuth token-1"),
      ("header_style: { header: PRIVATE-TOKEN }", "PRIVATE-TOKEN: token-1"),
      ("header_style: { header: X-Auth, scheme: Key }", "X-Auth: Key token-1"),
      ("header_style: { header: Authorization, scheme: \"\" }", "Authorization: token-1"),
      (
        "header_style: none\nextra_headers: { Authorization: \"Basic {access_token}\" }", "Authorization: Basic token-1"
      ),
    ])
  func header(_ style: String, _ line: String) throws {
    #expect(try Self.present(style).wire == "GET \(Self.api)\n\(line)\n")
    let fields = try Self.client(style).headerFields(presenting: Fixture.credential(), on: nil, nonce: Fixture.nonce)
    #expect(fields.map { "\($0.name): \($0.value)" } == [line])
  }

  @Test func query() throws {
    let style = "header_style: { query: accessToken }"
    let credential = Fixture.credential("a+/= b")
    #expect(
      try Self.present(style, credential, url: Self.api + "?x=1&x=2#f").uri.text
        == Self.api + "?x=1&x=2&accessToken=a%2B%2F%3D%20b#f")
    #expect(try Self.present(style, credential).fields == [:])
    #expect(throws: OAuthError.presentedInQuery) {
      try Self.client(style).headerFields(presenting: credential, on: nil, nonce: Fixture.nonce)
    }
  }

  @Test func parametersNextToTheTokenInAQuery() throws {
    let style = """
      response: { keep: [openid] }
      header_style: { query: access_token, parameters: { openid: "{openid}", v: "5", key: "{client_id}" } }
      """
    var credential = Fixture.credential("t")
    credential.kept = ["openid": "o 1"]
    #expect(
      try Self.present(style, credential, url: Self.api + "?x=1&v=6").uri.query
        == "x=1&v=6&access_token=t&openid=o%201&key=client-1")
    credential.kept = [:]
    #expect(try Self.present(style, credential).uri.query == "access_token=t&v=5&key=client-1")
  }

  @Test(arguments: [
    ("/getMe", "/bot1:a-b/getMe"), ("/", "/bot1:a-b/"), ("", "/bot1:a-b"), ("/x?y=1#f", "/bot1:a-b/x?y=1#f"),
    ("/bot1:a-b/getMe", "/bot1:a-b/getMe"), ("/bot1%3Aa-b/getMe", "/bot1%3Aa-b/getMe"),
    ("/bot1:a-bc/x", "/bot1:a-b/bot1:a-bc/x"),
  ]) func path(_ target: String, _ presented: String) throws {
    let style = "header_style: { path: \"/bot{access_token}\" }"
    let base = "https://api.provider.example"
    let request = try Self.present(style, Fixture.credential("1:a-b"), url: base + target)
    #expect(request.uri.text == base + presented)
    #expect(request.fields == [:])
    #expect(throws: OAuthError.presentedInQuery) {
      try Self.client(style).headerFields(presenting: Fixture.credential(), on: nil, nonce: Fixture.nonce)
    }
  }

  /// A token cannot change the path, and the path never changes the host.
  @Test func tokensArePiecesOfAPath() throws {
    let style = "header_style: { path: \"/{access_token}\" }"
    for (token, path) in [
      ("a/../b", "/a%2F..%2Fb/resource"), ("a?b#c", "/a%3Fb%23c/resource"), ("@h", "/%40h/resource"),
    ] {
      let request = try Self.present(style, Fixture.credential(token))
      #expect(request.uri.path == path)
      #expect(request.uri.host == "api.provider.example")
    }
    for token in [".", ".."] {
      #expect(throws: OAuthError.malformedPath) { try Self.present(style, Fixture.credential(token)) }
    }
  }

  @Test(arguments: [
    ("", nil, #"{"key":"token-1"}"#), (#"{"a":1.50}"#, MediaType.json, #"{"key":"token-1","a":1.50}"#),
    ("a=b", MediaType.form, "a=b&key=token-1"), (#"{"key":"own"}"#, MediaType.json, #"{"key":"own"}"#),
  ]) func body(_ text: String, _ type: String?, _ presented: String) throws {
    let client = try Self.client("header_style: { body: key }")
    var request = HTTPRequest(method: "POST", uri: try URI(parsing: Self.api), body: Array(text.utf8))
    if let type { request.fields.set("Content-Type", type) }
    #expect(client.signsBody(of: request, with: Fixture.credential()))
    let made = try client.presenting(Fixture.credential(), on: request, nonce: Fixture.nonce)
    #expect(String(decoding: made.body, as: UTF8.self) == presented)
    #expect(made.fields["Content-Type"] == type ?? MediaType.json)
    #expect(made.uri == request.uri)
  }

  @Test(arguments: [("GET", ""), ("POST", "text"), ("POST", "[1]")])
  func aBodyThatCannotCarryTheToken(_ method: String, _ text: String) throws {
    let request = HTTPRequest(method: method, uri: try URI(parsing: Self.api), body: Array(text.utf8))
    #expect(throws: OAuthError.bodyNeeded) {
      try Self.client("header_style: { body: key }").presenting(Fixture.credential(), on: request, nonce: Fixture.nonce)
    }
  }

  @Test func parametersBesideAHeader() throws {
    let more = """
      response: { keep: [shop] }
      extra_query: { shop_domain: "{shop}", v: "5" }
      """
    var credential = Fixture.credential()
    #expect(try Self.present(more, credential).wire == "GET \(Self.api)?v=5\nAuthorization: Bearer token-1\n")
    credential.kept = ["shop": "a b"]
    #expect(try Self.present(more, credential, url: Self.api + "?v=6").uri.query == "v=6&shop_domain=a%20b")
    // A header does not carry them.
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: Self.api))
    let fields = try Self.client(more).headerFields(presenting: credential, on: request, nonce: Fixture.nonce)
    #expect(fields.map(\.name) == ["Authorization"])
  }

  private static let oclc = """
    response: { keep: [principalID, principalIDNS] }
    header_style: { scheme: bearer, parameters: { principalID: "{principalID}", principalIDNS: "{principalIDNS}" } }
    """

  @Test func parametersAfterTheToken() throws {
    var credential = Fixture.credential("tk_1")
    credential.kept = ["principalID": "8eaa9f92", "principalIDNS": "urn:oclc:wms:da"]
    #expect(
      try Self.present(Self.oclc, credential).fields["Authorization"]
        == "bearer tk_1, principalID=\"8eaa9f92\", principalIDNS=\"urn:oclc:wms:da\"")
    // Parameters without a value are left out.
    credential.kept = ["principalIDNS": "n"]
    #expect(try Self.present(Self.oclc, credential).fields["Authorization"] == "bearer tk_1, principalIDNS=\"n\"")
    credential.kept = [:]
    #expect(try Self.present(Self.oclc, credential).fields["Authorization"] == "bearer tk_1")
  }

  @Test(arguments: ["a\"b", "a\\b"]) func parameterThatEndsTheQuotes(_ value: String) throws {
    var credential = Fixture.credential()
    credential.kept = ["principalID": value]
    #expect(throws: OAuthError.malformedHeader(name: "principalID")) { try Self.present(Self.oclc, credential) }
  }

  @Test func lineBreaksNeverReachAHeader() throws {
    #expect(throws: OAuthError.malformedHeader(name: "Authorization")) {
      try Self.present("", Fixture.credential("a\r\nX-Evil: yes"))
    }
    var credential = Fixture.credential()
    credential.kept = ["institution": "a\nb"]
    #expect(throws: OAuthError.malformedHeader(name: "X-Institution")) {
      try Self.present(
        "response: { keep: [institution] }\nextra_headers: { X-Institution: \"{institution}\" }", credential)
    }
  }

  @Test func extraHeaders() throws {
    let more = """
      response: { keep: [institution] }
      extra_headers:
        Accept: application/vnd.example+json
        X-Client: "{client_id}"
        X-Institution: "{institution}"
      """
    var credential = Fixture.credential()
    #expect(
      try Self.present(more, credential).wire == """
        GET \(Self.api)
        Authorization: Bearer token-1
        Accept: application/vnd.example+json
        X-Client: client-1

        """)
    credential.kept["institution"] = "91475"
    #expect(try Self.present(more, credential).fields["X-Institution"] == "91475")
    // The caller's own headers stay, whatever their case.
    let own = try Self.present(more, credential, fields: ["accept": "text/html"])
    #expect(own.fields.values("Accept") == ["text/html"])
  }

  /// Two credentials on one request would be ambiguous, and silently dropping one would be confusing.
  @Test(
    arguments: [
      ("", "authorization"), ("header_style: { header: PRIVATE-TOKEN }", "Private-Token"),
      ("header_style: { scheme: none }\nextra_headers: { X-Key: \"k={access_token}\" }", "x-key"),
    ])
  func aCallersOwnCredentialIsRefused(_ style: String, _ name: String) throws {
    #expect(throws: OAuthError.credentialHeader(name)) { try Self.present(style, fields: [name: "another"]) }
  }

  /// This header may have the caller's own value, because the credential uses another header.
  @Test func aCallersAuthorizationBesideAnotherHeader() throws {
    let request = try Self.present("header_style: { header: PRIVATE-TOKEN }", fields: ["Authorization": "Basic eA=="])
    #expect(request.fields["Authorization"] == "Basic eA==")
    #expect(request.fields["PRIVATE-TOKEN"] == "token-1")
  }

  /// Headers cannot carry a signature that belongs in the URL or body.
  @Test(arguments: ["query", "body"]) func aSignatureOutsideTheHeaders(_ transport: String) throws {
    let client = try Fixture.client(
      "oauth1: { transport: \(transport) }", grant: "oauth1",
      endpoints: "temporary_credentials: https://provider.example/initiate")
    var request = HTTPRequest(method: "POST", uri: try URI(parsing: "https://provider.example/api"))
    request.fields.set("Content-Type", "application/x-www-form-urlencoded")
    request.body = Array("a=b".utf8)
    #expect(throws: OAuthError.presentedInQuery) {
      try client.headerFields(presenting: Fixture.credential(grant: .oauth1), on: request, nonce: Fixture.nonce)
    }
  }

  // MARK: Hosts

  @Test(
    arguments: [
      ("api.example.com", "https://api.example.com/", true), ("api.example.com", "https://API.Example.com:443/", true),
      ("API.example.com", "https://api.example.com/", true),
      ("api.example.com", "https://api.example.com:8443/", false),
      ("api.example.com", "http://api.example.com/", false), ("api.example.com", "http://api.example.com:443/", false),
      ("api.example.com", "https://evil-api.example.com/", false), ("api.example.com", "https://example.com/", false),
      ("api.example.com", "https://api.example.com.evil.example/", false),
      ("api.example.com", "ftp://api.example.com/", false),
      ("api.example.com:8443", "https://api.example.com:8443/", true),
      ("api.example.com:8443", "https://api.example.com/", false), ("*.example.com", "https://a.example.com/", true),
      ("*.example.com", "https://a.b.example.com/", true), ("*.example.com", "https://example.com/", false),
      ("*.example.com", "https://evilexample.com/", false), ("*.example.com", "https://a.example.com:8443/", false),
      ("*.example.com:8443", "https://a.example.com:8443/", true), ("127.0.0.1:8080", "http://127.0.0.1:8080/", true),
      ("127.0.0.1:8080", "http://127.0.0.1:8081/", false), ("127.0.0.1:8080", "http://localhost:8080/", false),
      ("127.0.0.1", "http://127.0.0.1/", true), ("127.0.0.1", "http://127.0.0.1:8080/", false),
      ("localhost:8080", "http://localhost:8080/", true),
    ])
  func hosts(_ pattern: String, _ url: String, _ isPresented: Bool) throws {
    let client = try Fixture.client("hosts: [\"\(pattern)\"]")
    let uri = try URI(parsing: url)
    #expect(client.presents(Fixture.credential(), to: uri) == isPresented)
    let request = HTTPRequest(method: "GET", uri: uri)
    if isPresented {
      _ = try client.presenting(Fixture.credential(), on: request, nonce: Fixture.nonce)
    } else {
      #expect(throws: OAuthError.foreignHost(HostPattern.authority(uri) ?? "")) {
        try client.presenting(Fixture.credential(), on: request, nonce: Fixture.nonce)
      }
      #expect(throws: OAuthError.self) {
        try client.headerFields(presenting: Fixture.credential(), on: request, nonce: Fixture.nonce)
      }
    }
  }

  /// Without hosts, a credential may go to its endpoints' hosts.
  @Test func hostsOfTheEndpoints() throws {
    let client = try Fixture.client(endpoints: "identity: https://me.example:8443/me")
    let credential = Fixture.credential()
    #expect(Set(client.hosts(for: credential)) == ["provider.example", "me.example:8443"])
    #expect(client.presents(credential, to: try URI(parsing: "https://me.example:8443/other")))
    #expect(!client.presents(credential, to: try URI(parsing: "https://me.example/other")))
  }

  @Test func hostsFromVariablesAndFromAnswers() throws {
    let client = try Fixture.client(
      "variables: { tenant: {} }\nresponse: { keep: [instance_url] }\nhosts: [\"{tenant}.example\", \"{instance_url}\"]",
      variables: ["tenant": "one"])
    var credential = Fixture.credential()
    #expect(client.hosts(for: credential) == ["one.example"])
    // A provider cannot allow subdomains in an answer.
    credential.kept["instance_url"] = "*.example"
    #expect(client.hosts(for: credential) == ["one.example"])
    credential.kept["instance_url"] = "https://na1.force.example/base"
    credential.variables = ["tenant": "two"]
    #expect(client.presents(credential, to: try URI(parsing: "https://two.example/")))
    #expect(client.presents(credential, to: try URI(parsing: "https://na1.force.example/")))
    #expect(!client.presents(credential, to: try URI(parsing: "https://one.example/")))
  }

  @Test func signedRequestsNeedAURL() throws {
    let client = try Fixture.client(
      grant: "oauth1", endpoints: "temporary_credentials: https://provider.example/initiate")
    #expect(throws: OAuthError.signatureNeedsURL) {
      try client.headerFields(presenting: Fixture.credential(grant: .oauth1), on: nil, nonce: Fixture.nonce)
    }
  }
}
