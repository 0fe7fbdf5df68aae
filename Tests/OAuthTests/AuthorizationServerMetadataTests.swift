import CredmgrHTTP
import CredmgrJSON
import Testing

@testable import CredmgrOAuth

/// Tests metadata (RFC 8414, OpenID Connect Discovery 1.0).
struct AuthorizationServerMetadataTests {
  @Test(arguments: [
    ("https://a.example", ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"]),
    ("https://a.example/", ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"]),
    (
      "https://a.example:8443/realms/x",
      [
        "/realms/x/.well-known/openid-configuration", "/.well-known/oauth-authorization-server/realms/x",
        "/.well-known/openid-configuration/realms/x",
      ]
    ),
    (
      "https://a.example/x/",
      [
        "/x/.well-known/openid-configuration", "/.well-known/oauth-authorization-server/x",
        "/.well-known/openid-configuration/x",
      ]
    ),
  ]) func places(_ text: String, _ paths: [String]) throws {
    let issuer = try Issuer(text)
    #expect(issuer.text == text)
    #expect(MetadataLocation.all(for: issuer).map(\.uri.path) == paths)
    #expect(MetadataLocation.all(for: issuer).allSatisfy { $0.uri.origin == issuer.uri.origin })
  }

  @Test(arguments: [
    ("https://a.example/.well-known/openid-configuration", "https://a.example"),
    ("https://a.example/x/.well-known/openid-configuration", "https://a.example/x"),
    ("https://a.example/.well-known/oauth-authorization-server", "https://a.example"),
    ("https://a.example/.well-known/oauth-authorization-server/x/y", "https://a.example/x/y"),
  ]) func theAddressOfMetadataHasItsIssuer(_ text: String, _ issuer: String) throws {
    #expect(try Issuer(text).text == issuer)
  }

  @Test(arguments: [
    "https://a.example?x", "https://a.example/?", "https://a.example/#", "https://u@a.example", "https:///x",
    "https://a.example/\r\nX: y", "https://a.example/{x}", "https://0x7f.1/", "https://a example",
  ]) func invalidIssuersAreRefused(_ text: String) { #expect(throws: HTTPError.self) { try Issuer(text) } }

  @Test func onlyThisMachineIsAskedWithoutTLS() throws {
    #expect(try Issuer("http://127.0.0.1:8000").isSecure)
    #expect(try Issuer("https://a.example").isSecure)
    #expect(try !Issuer("http://a.example").isSecure)
    #expect(try !Issuer("http://127.0.0.1.a.example").isSecure)
  }

  // MARK: Reading

  static let issuer = "https://a.example"

  private static func read(_ body: String, _ issuer: String = issuer) throws -> AuthorizationServerMetadata {
    let issuer = try Issuer(issuer)
    let location = try #require(MetadataLocation.all(for: issuer).first)
    return try AuthorizationServerMetadata(.json(body), of: issuer, at: location)
  }

  private static func read(member: String, _ issuer: String = issuer) throws -> AuthorizationServerMetadata {
    try read("{\"issuer\": \"\(issuer)\", \(member)}", issuer)
  }

  @Test func missingFieldsHaveDefaults() throws {
    let metadata = try Self.read(
      member: "\"jwks\": {}, \"scopes_supported\": null, \"signed_metadata\": \"e30.e30.\"")
    #expect(metadata.endpoints == [:])
    #expect(metadata.grantTypes == ["authorization_code", "implicit"])
    #expect(metadata.authenticationMethods == ["client_secret_basic"])
    #expect(metadata.scopes == nil)
    #expect(metadata.codeChallengeMethods == nil)
    #expect(!metadata.namesIssuer)
  }

  @Test func endpointsMayBeElsewhere() throws {
    let metadata = try Self.read(member: "\"token_endpoint\": \"https://b.example/t?x=%7B\"")
    #expect(metadata.endpoints[.token]?.text == "https://b.example/t?x=%7B")
  }

  @Test(arguments: [
    "https://a.example/", "https://A.example", "https://a.example:443", "http://a.example", "https://b.example", "",
  ]) func theIssuerIsTheSameToTheLetter(_ found: String) {
    #expect(throws: MetadataError.otherIssuer(found: found)) { try Self.read("{\"issuer\": \"\(found)\"}") }
  }

  @Test func aLongIssuerIsCut() {
    let found = String(repeating: "x", count: 5000)
    #expect(throws: MetadataError.otherIssuer(found: String(found.prefix(200)) + "…")) {
      try Self.read("{\"issuer\": \"\(found)\"}")
    }
  }

  static let refused: [(String, MetadataError)] = [
    ("\"token_endpoint\": 5", .malformed("token_endpoint")),
    (
      "\"jwks_uri\": \"https://a.example/k\", \"jwks_uri\": \"https://a.example/k\"",
      .repeated("jwks_uri")
    ),
    ("\"scopes_supported\": [], \"scopes_supported\": [\"a\"]", .repeated("scopes_supported")),
    ("\"token_endpoint\": [\"https://a.example\"]", .malformed("token_endpoint")),
    ("\"token_endpoint\": \"\"", .invalidURL("token_endpoint", text: "")),
    ("\"token_endpoint\": \"/t\"", .invalidURL("token_endpoint", text: "/t")),
    ("\"token_endpoint\": \"https://a.example/#f\"", .invalidURL("token_endpoint", text: "https://a.example/#f")),
    ("\"token_endpoint\": \"https://u:p@a.example/\"", .invalidURL("token_endpoint", text: "https://u:p@a.example/")),
    (
      "\"token_endpoint\": \"https://a.example/\\r\\nX: y\"",
      .invalidURL("token_endpoint", text: "https://a.example/\r\nX: y")
    ),
    (
      "\"token_endpoint\": \"https://a.example/{host}\"",
      .invalidURL("token_endpoint", text: "https://a.example/{host}")
    ), ("\"token_endpoint\": \"https://{x}/\"", .invalidURL("token_endpoint", text: "https://{x}/")),
    ("\"token_endpoint\": \"http://a.example/t\"", .insecure("token_endpoint", text: "http://a.example/t")),
    ("\"userinfo_endpoint\": \"ftp://a.example/t\"", .insecure("userinfo_endpoint", text: "ftp://a.example/t")),
    (
      "\"authorization_endpoint\": \"javascript:alert(1)\"",
      .insecure("authorization_endpoint", text: "javascript:alert(1)")
    ),
    ("\"token_endpoint\": \"http://127.0.0.1:631/\"", .inwardAddress("token_endpoint", text: "http://127.0.0.1:631/")),
    (
      "\"token_endpoint\": \"https://169.254.169.254/\"",
      .inwardAddress("token_endpoint", text: "https://169.254.169.254/")
    ),
    (
      "\"registration_endpoint\": \"https://[fe80::1]/\"",
      .inwardAddress("registration_endpoint", text: "https://[fe80::1]/")
    ), ("\"scopes_supported\": \"openid\"", .malformed("scopes_supported")),
    ("\"scopes_supported\": [\"a\", 1]", .malformed("scopes_supported")),
    ("\"scopes_supported\": [\"a\\nprovider: evil\"]", .malformed("scopes_supported")),
    ("\"scopes_supported\": [\"\\u001b[2J\"]", .malformed("scopes_supported")),
    ("\"scopes_supported\": [\"\\u202e\"]", .malformed("scopes_supported")),
    ("\"grant_types_supported\": {}", .malformed("grant_types_supported")),
    (
      "\"authorization_response_iss_parameter_supported\": \"true\"",
      .malformed("authorization_response_iss_parameter_supported")
    ), ("\"token_endpoint_auth_methods_supported\": [\"\"]", .malformed("token_endpoint_auth_methods_supported")),
  ]

  @Test(arguments: refused) func invalidValuesAreRefused(_ member: String, _ error: MetadataError) {
    #expect(throws: error) { try Self.read(member: member) }
  }

  @Test(arguments: ["", "[]", "\"x\"", "<html>", "{", "{\"issuer\": \"https://a.example\"} x"])
  func onlyAnObjectIsRead(_ body: String) { #expect(throws: MetadataError.notJSON) { try Self.read(body) } }

  @Test func aMissingOrInvalidIssuer() {
    #expect(throws: MetadataError.missing("issuer")) { try Self.read("{}") }
    #expect(throws: MetadataError.malformed("issuer")) { try Self.read("{\"issuer\": [\"https://a.example\"]}") }
    #expect(throws: MetadataError.repeated("issuer")) {
      try Self.read("{\"issuer\": \"https://b.example\", \"issuer\": \"https://a.example\"}")
    }
  }

  @Test func longListsAreRejected() {
    let scopes = Array(repeating: "\"s\"", count: 1001).joined(separator: ",")
    #expect(throws: MetadataError.malformed("scopes_supported")) {
      try Self.read(member: "\"scopes_supported\": [\(scopes)]")
    }
  }

  @Test func anIssuerOnThisMachineHasItsEndpointsThere() throws {
    let issuer = "http://127.0.0.1:8000"
    let metadata = try Self.read(member: "\"token_endpoint\": \"http://127.0.0.1:9000/t\"", issuer)
    #expect(metadata.endpoints[.token]?.port == 9000)
    #expect(throws: MetadataError.self) { try Self.read(member: "\"token_endpoint\": \"https://10.0.0.1/t\"", issuer) }
  }

  // MARK: Addresses

  @Test(arguments: [
    "0.0.0.0", "10.1.2.3", "127.1.2.3", "169.254.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
    "localhost", "a.localhost", "[::]", "[::1]", "[::ffff:10.0.0.1]", "[fd00::1]", "[fe80::1]", "[febf::1]",
    "[0:0:0:0:0:0:0:1]", "[0000::1]", "[00:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[0::0:1]",
    "[0000:0:0:0:0:ffff:10.0.0.1]", "[::ffff:a00:1]", "[::FFFF:7f00:1]", "[::127.0.0.1]", "[::a00:1]",
    "[0::ffff:0:a00:1]", "[64:ff9b::a00:1]", "[64:ff9b::10.0.0.1]", "[0064:FF9B::169.254.169.254]",
    "[64:ff9b:1::808:808]", "[2002:a00:1::]", "[2002:7f00:1::1]", "[2002:c0a8:101::]", "[2001::1]",
    "[2001:0:808:808::]", "[fec0::1]", "[feff::1]", "[ff02::1]", "[ff0e::1]", "[fc00::1]", "[100::1]", "localhost.",
    "foo.localhost.", "LOCALHOST", "192.0.0.192", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
  ]) func inward(_ host: String) throws { #expect(try URI(parsing: "https://\(host)/").isInward) }

  @Test(arguments: [
    "a.example", "9.255.255.255", "11.0.0.1", "172.15.0.1", "172.32.0.1", "192.169.0.1", "169.253.0.1", "100.63.0.1",
    "100.128.0.1", "[2001:db8::1]", "10.example", "localhost.example", "notlocalhost.", "192.0.2.1", "223.255.255.255",
    "198.17.255.255", "198.20.0.0", "[64:ff9b::808:808]", "[::ffff:8.8.8.8]", "[2002:808:808::1]", "[2606:4700::1111]",
    "[2001:4860:4860::8888]", "[fe00::1]", "[1:0:0:1::1]",
  ]) func outward(_ host: String) throws { #expect(try !URI(parsing: "https://\(host)/").isInward) }
}
