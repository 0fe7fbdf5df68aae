import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import Testing

@testable import CredmgrCredentialManager

/// The address of a protected resource (RFC 9728), such as an MCP server, becomes a descriptor.
struct ResourceDiscoveryTests {
  private static let resource = "https://mcp.example/mcp"
  private static let location = "https://mcp.example/.well-known/oauth-protected-resource/mcp"
  private static let root = "https://mcp.example/.well-known/oauth-protected-resource"

  private static func refusal(_ challenge: String = "Bearer resource_metadata=\"\(location)\"") -> HTTPResponse {
    HTTPResponse(status: 401, fields: challenge.isEmpty ? [:] : ["WWW-Authenticate": challenge])
  }

  private static func about(
    _ resource: String = resource, servers: String = "\"https://id.example\"", more: String = ""
  ) -> HTTPResponse {
    HTTPResponse.json("{\"resource\": \"\(resource)\", \"authorization_servers\": [\(servers)]\(more)}")
  }

  private static func issuer(
    _ issuer: String = "https://id.example", pkce: String? = "\"S256\"", _ more: String = ""
  ) -> HTTPResponse {
    let methods = pkce.map { ", \"code_challenge_methods_supported\": [\($0)]" } ?? ""
    return HTTPResponse.json(
      """
      {"issuer": "\(issuer)", "authorization_endpoint": "\(issuer)/authorize", "token_endpoint": "\(issuer)/token",
       "registration_endpoint": "\(issuer)/register", "response_types_supported": ["code"],
       "token_endpoint_auth_methods_supported": ["none"]\(methods)\(more)}
      """)
  }

  private let fixture: Fixture

  init() throws { fixture = try Fixture() }

  private func discover(
    _ responses: HTTPResponse..., address: String = resource, from server: String? = nil
  ) throws -> Discovery {
    for response in responses { fixture.http.then(response) }
    let discovery = try fixture.source.discover(address, as: nil, from: server)
    #expect(fixture.http.isDone)
    return discovery
  }

  private func error(_ responses: HTTPResponse..., address: String = resource) throws -> MetadataError {
    for response in responses { fixture.http.then(response) }
    let error = try #require(throws: CredentialError.self) { try fixture.source.discover(address, as: nil) }
    #expect(fixture.http.isDone)
    #expect(!File.exists(fixture.home.userProviders))
    guard case .discovery(let found, _) = error else { throw error }
    return found
  }

  /// The address of the metadata stands for the resource. RFC 9728, 2.2 lets clients ignore `signed_metadata`.
  @Test func theAddressOfTheMetadata() throws {
    let discovery = try discover(
      HTTPResponse(status: 404), Self.about(more: ", \"signed_metadata\": \"e30.e30.\""), Self.issuer(),
      address: Self.location)
    #expect(fixture.http.requests.map(\.uri.text).prefix(2) == [Self.resource, Self.location])
    #expect(discovery.addition.descriptor.identifier == "mcp.example-mcp")
    #expect(discovery.addition.descriptor.resource?.literal == Self.resource)
  }

  @Test func theRefusalLeadsToTheAuthorizationServer() throws {
    let discovery = try discover(
      Self.refusal("Bearer scope=\"files:read\", resource_metadata=\"\(Self.location)\""),
      Self.about(more: ",\"scopes_supported\": [\"files:read\", \"files:write\"]"),
      Self.issuer("https://id.example", pkce: "\"S256\"", #", "scopes_supported": ["openid", "offline_access"]"#))
    #expect(
      fixture.http.requests.map(\.uri.text) == [
        Self.resource, Self.location, "https://id.example/.well-known/openid-configuration",
      ])
    #expect(fixture.http.requests.allSatisfy { $0.method == "GET" && $0.fields["Authorization"] == nil })
    #expect(
      discovery.text == """
        # Made from the metadata of the resource https://mcp.example/mcp at
        # https://mcp.example/.well-known/oauth-protected-resource/mcp (RFC 9728, 3),
        # and from that of its authorization server https://id.example at
        # https://id.example/.well-known/openid-configuration (OpenID Connect Discovery 1.0, 4).
        # Each comment after a value names its source in the metadata.
        provider: mcp.example-mcp
        title: mcp.example
        grant: [authorization_code]

        variables:
          # Many MCP servers compare the whole URI, so it has a port, despite RFC 8252, 7.3.
          redirect_uri:
            default: \(Descriptor.redirectWithPort(of: "mcp.example-mcp"))
            format: redirect
            help: the redirect URI exactly as registered

        endpoints:
          authorization:
            url: https://id.example/authorize  # authorization_endpoint
            parameters: { prompt: consent }  # demanded with offline_access (OpenID Connect Core 1.0, 11)
          token: https://id.example/token  # token_endpoint
          registration: https://id.example/register  # registration_endpoint

        # Compared with the "iss" of a redirect (RFC 9207).
        issuer: https://id.example
        resource: https://mcp.example/mcp  # resource
        redirect: "{redirect_uri}"
        pkce: S256  # code_challenge_methods_supported

        client:
          authentication: none  # token_endpoint_auth_methods_supported

        # scopes_supported:
        #   files:read files:write
        scope: ["files:read", offline_access]  # scope of the refusal without a token

        # The hosts that receive the token.
        hosts: [mcp.example]

        """)
    #expect(discovery.authorizationServer == "https://id.example")
    #expect(discovery.foreignEndpoints.isEmpty)
    #expect(discovery.addition.warnings.isEmpty)
    let descriptor = discovery.addition.descriptor
    #expect(descriptor.resource?.literal == Self.resource)
    #expect(descriptor.scope.requested == ["files:read", "offline_access"])
  }

  /// Without a location in the refusal: first the metadata of the address, then that of the whole server.
  @Test func wellKnownLocations() throws {
    let discovery = try discover(
      Self.refusal("Bearer realm=\"x\""), HTTPResponse(status: 404), Self.about(more: ",\"scopes_supported\": [\"a\"]"),
      Self.issuer())
    #expect(fixture.http.requests.map(\.uri.text).prefix(3) == [Self.resource, Self.location, Self.root])
    #expect(discovery.addition.descriptor.scope.requested == ["a"])
    #expect(!discovery.text.contains("refusal"))
  }

  /// RFC 9728, 2
  @Test(arguments: [true, false]) func aResourceThatRequiresBoundTokens(_ isRequired: Bool) throws {
    let about = Self.about(more: ", \"dpop_bound_access_tokens_required\": \(isRequired)")
    let discovery = try discover(Self.refusal(), about, Self.issuer())
    #expect(discovery.addition.descriptor.tokenBinding == (isRequired ? .dpop : .none))
  }

  @Test(arguments: [true, false]) func aResourceThatRequiresOtherProofs(_ isOfResource: Bool) throws {
    let list = ", \"dpop_signing_alg_values_supported\": [\"RS256\"]"
    let about = Self.about(more: ", \"dpop_bound_access_tokens_required\": true" + (isOfResource ? list : ""))
    let found = try error(Self.refusal(), about, Self.issuer(pkce: "\"S256\"", isOfResource ? "" : list))
    #expect(found == .noAlgorithm(in: "dpop_signing_alg_values_supported", offered: ["RS256"]))
  }

  /// A server that looks at the token only for other methods.
  @Test func aResourceThatDoesNotRefuse() throws {
    let none = HTTPResponse(status: 404)
    let discovery = try discover(HTTPResponse(status: 405), none, none, none, Self.about(), Self.issuer())
    #expect(discovery.addition.descriptor.resource?.literal == Self.resource)
  }

  /// An MCP server that needs no token.
  @Test func anOpenResource() throws {
    let none = HTTPResponse(status: 404)
    let found = try error(HTTPResponse(status: 200), none, none, none, none, none)
    guard case .open = found else { throw found }
  }

  @Test(arguments: [
    "https://mcp.example/mcp", "https://mcp.example", "https://mcp.example/", "https://mcp.example/mcp/",
  ])
  func theResourceOrOneAboveIt(_ name: String) throws {
    let discovery = try discover(Self.refusal(), Self.about(name), Self.issuer())
    #expect(discovery.addition.descriptor.resource?.literal == name)
    #expect(discovery.addition.descriptor.hosts.map(\.literal) == ["mcp.example"])
  }

  @Test(arguments: [
    "https://other.example/mcp", "https://mcp.example/other", "https://mcp.example/mc", "https://mcp.example:8443/mcp",
    "http://mcp.example/mcp", "https://mcp.example/mcp?x=y", "https://mcp.example/mcp/deeper", "mcp",
  ]) func anotherResource(_ name: String) throws {
    #expect(try error(Self.refusal(), Self.about(name)) == .otherResource(found: name))
  }

  @Test(arguments: [
    "https://evil.example/.well-known/oauth-protected-resource/mcp", "http://mcp.example/m", "https://10.0.0.1/m",
    "https://mcp.example:8443/m",
  ]) func metadataElsewhere(_ location: String) throws {
    #expect(try error(Self.refusal("Bearer resource_metadata=\"\(location)\"")) == .foreignMetadata(location))
  }

  @Test(arguments: ["/m", "m", "https://mcp.example/m#f"]) func metadataWithoutAnAddress(_ location: String) throws {
    let found = try error(Self.refusal("Bearer resource_metadata=\"\(location)\""))
    #expect(found == .invalidURL("resource_metadata", text: location))
  }

  static let refused: [(String, MetadataError)] = [
    ("\"https://10.0.0.1\"", .inwardAddress("authorization_servers", text: "https://10.0.0.1")),
    ("\"http://id.example\"", .insecure("authorization_servers", text: "http://id.example")),
    ("\"https://id.example?x\"", .invalidURL("authorization_servers", text: "https://id.example?x")),
    ("", .missing("authorization_servers")), ("17", .malformed("authorization_servers")),
  ]

  @Test(arguments: refused) func serversThatAreRefused(_ servers: String, _ expected: MetadataError) throws {
    #expect(try error(Self.refusal(), Self.about(servers: servers)) == expected)
  }

  @Test func brokenMetadata() throws {
    #expect(try error(Self.refusal(), HTTPResponse(status: 200, body: Array("<p>".utf8))) == .notJSON)
    #expect(try error(Self.refusal(), HTTPResponse.json("{}")) == .missing("resource"))
    let answers = [Self.refusal(), HTTPResponse(status: 302, fields: ["Location": "https://evil.example/"])]
    guard case .absent(let attempts) = try error(answers[0], answers[1]) else { throw CredentialError.interrupted }
    #expect(attempts.map(\.location) == ["https://evil.example/"])
  }

  /// Without PKCE, another program could use the code. The metadata of an issuer alone is less strict.
  @Test(arguments: [nil, "", "\"plain\""] as [String?]) func aServerWithoutPKCE(_ methods: String?) throws {
    let offered: [String]? = methods.map { $0.isEmpty ? [] : ["plain"] }
    #expect(try error(Self.refusal(), Self.about(), Self.issuer(pkce: methods)) == .noProofKey(offered: offered))
  }

  @Test func severalServers() throws {
    let both = "\"https://a.example\", \"https://b.example\""
    let texts = ["https://a.example", "https://b.example"]
    #expect(try error(Self.refusal(), Self.about(servers: both)) == .severalServers(texts))
    let discovery = try discover(
      Self.refusal(), Self.about(servers: both), Self.issuer("https://b.example"), from: "https://b.example")
    #expect(discovery.authorizationServer == "https://b.example")
    fixture.http.then(Self.refusal(), Self.about(servers: both))
    let unknown = MetadataError.unknownServer("https://c.example", offered: texts)
    #expect(throws: CredentialError.discovery(unknown, issuer: Self.resource)) {
      try fixture.source.discover(Self.resource, as: nil, from: "https://c.example")
    }
  }

  /// The MCP SDK for Python writes the root of the authorization server with a slash into the resource's metadata only.
  @Test(arguments: [nil, "https://a.example", "https://a.example/"]) func rootWithASlash(_ name: String?) throws {
    let metadata = Self.issuer("https://a.example")
    let discovery = try discover(
      Self.refusal(), Self.about(servers: "\"https://a.example/\""), metadata, metadata, from: name)
    #expect(discovery.authorizationServer == "https://a.example")
    let other = try error(
      Self.refusal(), Self.about(servers: "\"https://a.example/b/\""), Self.issuer("https://a.example/b"))
    #expect(other == .otherIssuer(found: "https://a.example/b"))
  }

  // MARK: MCP 2025-03-26

  private static let absent = HTTPResponse(status: 404)

  @Test func anEarlierServerWithMetadataAtItsOrigin() throws {
    // The address's own metadata may be about the origin's issuer, with a slash.
    let metadata = Self.issuer("https://mcp.example/", pkce: nil)
    let discovery = try discover(
      Self.refusal(""), Self.absent, Self.absent, Self.absent, metadata, metadata, metadata)
    #expect(discovery.authorizationServer == "https://mcp.example/")
    #expect(discovery.addition.descriptor.resource == nil)
    #expect(discovery.addition.descriptor.hosts.map(\.literal) == ["mcp.example"])
  }

  /// The frameworks of MCP servers redirect to the mounted application. A redirect to another place stays one.
  @Test func anAddressWithoutItsSlash() throws {
    let none = Self.absent
    func moved(_ location: String) -> HTTPResponse { HTTPResponse(status: 307, fields: ["Location": location]) }
    let discovery = try discover(
      moved("http://mcp.example/mcp/"), none, none, none, none, none, Self.refusal("Bearer"), none, none, none, none,
      none, Self.issuer("https://mcp.example"))
    #expect(fixture.http.requests.map(\.uri.text)[6] == Self.resource + "/")
    #expect(discovery.text.contains("# Made for the resource https://mcp.example/mcp/,"))
    #expect(discovery.addition.descriptor.identifier == "mcp.example-mcp")
    for location in ["https://other.example/mcp/", "/login", "/mcp"] {
      guard case .absent = try error(moved(location), none, none, none, none, none) else {
        Issue.record("followed \(location)")
        return
      }
    }
  }

  @Test func anEarlierServerWithoutMetadata() throws {
    let none = Self.absent
    let discovery = try discover(
      Self.refusal("Bearer error=\"invalid_token\""), none, none, none, none, none, none, none)
    let descriptor = discovery.addition.descriptor
    #expect(
      [.authorization, .token, .registration].map { descriptor.endpoints[$0]?.url.template.literal } == [
        "https://mcp.example/authorize", "https://mcp.example/token", "https://mcp.example/register",
      ])
    #expect(descriptor.pkce == .s256)
    #expect(descriptor.resource == nil)
    #expect(discovery.text.contains("(endpoints that MCP 2025-03-26 assumes without metadata)"))
  }

  @Test func aPasswordIsNotOAuth() throws {
    let none = Self.absent
    guard case .absent = try error(Self.refusal("Basic realm=\"x\""), none, none, none, none, none) else {
      throw CredentialError.interrupted
    }
  }

  // MARK: The issuer that a client and a session belong to

  private func add(_ discovery: Discovery, client: String? = nil, replaces: Bool = false) throws -> Registration? {
    try fixture.source.add(
      discovery.addition, clientIdentifier: client, clientSecret: nil, variables: [:], replaces: replaces,
      confirms: { _, _, _ in true }, agrees: { _ in true })
  }

  private func found(_ server: String, _ more: String = "") throws -> Discovery {
    try discover(
      Self.refusal(), Self.about(servers: "\"\(server)\""), Self.issuer(server, pkce: "\"S256\"", more))
  }

  private func discovery(_ text: String) throws -> Discovery {
    Discovery(
      addition: try fixture.source.addition(Array(text.utf8), named: "x.yaml", as: nil), text: text, location: "",
      authorizationServer: nil, foreignEndpoints: [])
  }

  private func registration() throws -> Registration? {
    try fixture.source.accountsIfAny()?.registration(of: "mcp.example-mcp")
  }

  /// Also if the user brought the first client: it is not lost, but the new issuer does not know it.
  @Test(arguments: [nil, "mine"]) func anotherIssuerGetsAnotherClient(_ own: String?) throws {
    let first = try found("https://a.example")
    if own == nil { fixture.http.then(HTTPResponse.json(#"{"client_id": "c1"}"#, status: 201)) }
    _ = try add(first, client: own)
    #expect(try registration()?.clientIdentifier == own ?? "c1")
    // Its registration endpoint stays the same.
    let moved = try discovery(first.text.exchangingIssuer("https://b.example"))
    fixture.http.then(HTTPResponse.json(#"{"client_id": "c2"}"#, status: 201))
    #expect(try add(moved, replaces: true)?.clientIdentifier == "c2")
    #expect(try registration()?.clientIdentifier == "c2")
    #expect(fixture.http.isDone)
  }

  @Test func aClientOfTheUserIsNotSentToAnotherIssuer() throws {
    let first = try found("https://a.example").text.exchanging(
      "  registration: https://a.example/register  # registration_endpoint\n", for: "")
    _ = try add(discovery(first), client: "mine")
    let moved = try discovery(first.exchangingIssuer("https://b.example"))
    #expect(throws: CredentialError.self) { try add(moved, replaces: true) }
    _ = try add(moved, client: "other", replaces: true)
    #expect(try registration()?.clientIdentifier == "other")
  }
}

extension String {
  fileprivate func exchangingIssuer(_ issuer: String) -> String {
    exchanging("issuer: https://a.example\n", for: "issuer: \(issuer)\n")
  }
}
