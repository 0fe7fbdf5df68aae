import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth
import CredmgrPlatform
import CredmgrDescriptors
import Testing

@testable import CredmgrCredentialManager
import CredmgrText

/// An issuer's metadata becomes a descriptor, and clients are registered.
struct DiscoveryTests {
  private static let issuer = "https://login.example"

  private static func metadata(_ more: String = "", issuer: String = issuer) -> HTTPResponse {
    let usual = [
      ("issuer", "\"\(issuer)\""), ("authorization_endpoint", "\"\(issuer)/authorize\""),
      ("token_endpoint", "\"\(issuer)/token\""), ("response_types_supported", "[\"code\", \"id_token\"]"),
    ]
    // Those of the test take precedence.
    let own = (try? JSONValue.parse(Array("{\(more)}".utf8)))?.members?.map(\.name) ?? []
    let all = usual.filter { !own.contains($0.0) }.map { "\"\($0)\": \($1)" } + (more.isEmpty ? [] : [more])
    return HTTPResponse.json("{\(all.joined(separator: ", "))}")
  }

  static func discover(_ more: String, as name: String? = nil) throws -> Discovery {
    let fixture = try Fixture()
    fixture.http.then(HTTPResponse(status: 404), metadata(more))
    let discovery = try fixture.source.discover(issuer, as: name)
    #expect(fixture.http.isDone)
    #expect(!File.exists(fixture.home.userProviders))
    return discovery
  }

  /// A server may offer the endpoint and refuse it to public clients, so only a requirement turns it on.
  @Test(arguments: [("true", true), ("false", false)])
  func pushedRequests(_ requires: String, _ isUsed: Bool) throws {
    let discovery = try Self.discover(
      """
      "pushed_authorization_request_endpoint": "https://login.example/par",
      "require_pushed_authorization_requests": \(requires)
      """)
    let line = "pushed_authorization_request: https://login.example/par  # pushed_authorization_request_endpoint"
    #expect(discovery.text.contains("\n  \(line)\n") == isUsed)
    #expect(discovery.text.contains("\n  # \(line); optional (RFC 9126)\n") == !isUsed)
  }

  // MARK: PKCE

  /// A new provider is added with a warning, because credmgr sends the challenge in any case.
  @Test(arguments: [("[\"plain\"]", ["plain"]), ("[]", []), ("[\"plain\", \"S256\"]", nil), ("null", [])])
  func aServerWithoutS256(_ methods: String, _ others: [String]?) throws {
    #expect(try Self.discover("\"code_challenge_methods_supported\": \(methods)").otherProofKeys == others)
  }

  /// Metadata that announced S256 before, and no longer does, is not used.
  @Test(arguments: [("[\"plain\"]", ["plain"]), ("[]", []), ("null", [])] as [(String, [String]?)])
  func aServerThatDropsS256(_ methods: String, _ offered: [String]?) throws {
    let fixture = try Fixture()
    let announced = "\"code_challenge_methods_supported\": [\"S256\"]"
    fixture.http.then(HTTPResponse(status: 404), Self.metadata(announced))
    try fixture.add(fixture.source.discover(Self.issuer, as: "example").addition)
    let known = try #require(fixture.source.knownMetadata(of: "example"))
    fixture.http.then(HTTPResponse(status: 404), Self.metadata(announced))
    #expect(try fixture.source.discoverAgain(known, as: "example").text == known.text)
    fixture.http.then(
      HTTPResponse(status: 404), Self.metadata("\"code_challenge_methods_supported\": \(methods)"))
    let fault = MetadataError.lostProofKey(provider: "example", offered: offered)
    #expect(throws: CredentialError.discovery(fault, issuer: Self.issuer)) {
      try fixture.source.discoverAgain(known, as: "example")
    }
    // A server without logins in a browser needs no PKCE.
    fixture.http.then(
      HTTPResponse(status: 404), Self.metadata("\"grant_types_supported\": [\"client_credentials\"]"))
    #expect(try fixture.source.discoverAgain(known, as: "example").addition.descriptor.grants == [.clientCredentials])
  }

  // MARK: Moved endpoints

  private static func moved(_ token: String) -> HTTPResponse {
    HTTPResponse.json(
      """
      {"issuer": "\(issuer)", "authorization_endpoint": "\(issuer)/authorize", "token_endpoint": "\(token)",
       "response_types_supported": ["code"]}
      """)
  }

  /// Returns a fixture with an account whose refresh finds nothing at the token endpoint, and then the metadata.
  private static func refreshing(_ metadata: HTTPResponse?) throws -> (fixture: Fixture, file: String) {
    let fixture = try Fixture()
    fixture.http.then(HTTPResponse(status: 404), Self.metadata())
    try fixture.add(fixture.source.discover(issuer, as: "example").addition)
    let file = fixture.home.userProviders + "/example.yaml"
    let text = String(decoding: try File.read(file, limit: 1 << 16), as: UTF8.self)
    // The user's own change stays.
    try File.replace(file, Array((text + "# mine\n").utf8))
    var credential = Fixture.credential()
    credential.expiresAt = Fixture.now
    try fixture.store(credential)
    fixture.http.then(HTTPResponse(status: 404))
    fixture.http.then(HTTPResponse(status: 404))
    if let metadata { fixture.http.then(metadata) }
    return (fixture, file)
  }

  @Test func aMovedEndpointIsFound() throws {
    let (fixture, file) = try Self.refreshing(Self.moved("https://login.example/v2/token"))
    fixture.http.then(.json("{\"access_token\": \"token-2\", \"refresh_token\": \"r-2\", \"expires_in\": 3600}"))
    #expect(try fixture.fresh().credential.accessToken == Secret("token-2"))
    #expect(fixture.http.requests.suffix(4).map(\.uri.path).first == "/token")
    #expect(fixture.http.requests.last?.uri.path == "/v2/token")
    let text = String(decoding: try File.read(file, limit: 1 << 16), as: UTF8.self)
    #expect(text.contains("  token: https://login.example/v2/token  #") && text.hasSuffix("# mine\n"))
    // The next refresh knows the address.
    fixture.clock.advance(.hours(2))
    fixture.http.then(.json("{\"access_token\": \"token-3\", \"expires_in\": 3600}"))
    #expect(try fixture.fresh().credential.accessToken == Secret("token-3"))
    #expect(fixture.http.isDone)
  }

  /// Another server, another issuer, or the same address: the error stays, and so does the file.
  @Test(arguments: ["https://evil.example/token", "https://login.example/token", ""])
  func aMoveOutsideTheAgreementNeedsConsent(_ token: String) throws {
    let metadata = token.isEmpty ? Self.metadata(issuer: "https://evil.example") : Self.moved(token)
    let (fixture, file) = try Self.refreshing(metadata)
    // The address might be a resource's.
    if token.isEmpty { fixture.http.then(HTTPResponse(status: 404)) }
    let before = try File.read(file, limit: 1 << 16)
    let error = try #require(throws: CredentialError.self) { try fixture.fresh() }
    guard case .oauth(.refused(.refresh, let response), _) = error else { throw error }
    #expect(response.status == 404)
    #expect(try File.read(file, limit: 1 << 16) == before)
    #expect(try fixture.stored()?.refreshToken == Secret("refresh-1"))
    #expect(fixture.http.isDone && fixture.http.requests.allSatisfy { $0.uri.host == "login.example" })
  }

  /// Old metadata is read once after a refresh. Only addresses inside the agreement are taken.
  @Test(arguments: ["https://login.example/v2/token", "https://evil.example/token", nil])
  func oldMetadata(_ token: String?) throws {
    let fixture = try Fixture()
    fixture.http.then(HTTPResponse(status: 404), Self.metadata())
    try fixture.add(fixture.source.discover(Self.issuer, as: "example").addition)
    let file = fixture.home.userProviders + "/example.yaml"
    var credential = Fixture.credential()
    credential.expiresAt = Fixture.now
    try fixture.store(credential)
    func refresh() throws {
      fixture.clock.advance(.hours(2))
      fixture.http.then(.json("{\"access_token\": \"t\", \"refresh_token\": \"r\", \"expires_in\": 3600}"))
    }
    try File.setModified(file, Fixture.now)
    try refresh()
    _ = try fixture.fresh()
    #expect(fixture.http.isDone)
    try File.setModified(file, fixture.clock.now() - .days(7))
    try refresh()
    // No answer counts as well, and the refresh has its token.
    fixture.http.then(HTTPResponse(status: 404), token.map(Self.moved) ?? HTTPResponse(status: 500))
    #expect(try fixture.fresh().credential.accessToken == Secret("t"))
    #expect(fixture.http.requests.suffix(3).map(\.uri.path).first == "/token")
    let text = String(decoding: try File.read(file, limit: 1 << 16), as: UTF8.self)
    #expect(text.contains("  token: https://login.example/v2/token  #") == (token?.contains("v2") == true))
    try refresh()
    _ = try fixture.fresh()
    #expect(fixture.http.requests.last?.uri.path == (token?.contains("v2") == true ? "/v2/token" : "/token"))
    #expect(fixture.http.isDone)
  }

  @Test func requiredPushedRequestsNeedTheirEndpoint() throws {
    let missing = MetadataError.missing("pushed_authorization_request_endpoint")
    #expect(throws: CredentialError.discovery(missing, issuer: Self.issuer)) {
      try Self.discover(#""require_pushed_authorization_requests": true"#)
    }
  }

  private static let fapi2 = """
    "pushed_authorization_request_endpoint": "https://login.example/par",
    "require_pushed_authorization_requests": true, "code_challenge_methods_supported": ["S256"],
    "authorization_response_iss_parameter_supported": true
    """

  /// Metadata that demands everything in the profile names it.
  @Test func theProfileOfTheMetadata() throws {
    let discovery = try Self.discover(
      Self.fapi2 + """
        , "token_endpoint_auth_methods_supported": ["private_key_jwt"], "dpop_signing_alg_values_supported": ["ES256"]
        """)
    #expect(discovery.text.contains("\nprofile: fapi2  #"))
    #expect(discovery.text.contains("\ntoken_binding: dpop  # dpop_signing_alg_values_supported\n"))
    let descriptor = discovery.addition.descriptor
    #expect(descriptor.profile == .fapi2 && descriptor.tokenBinding == .dpop && descriptor.issuerResponse == .required)
    // A server that also accepts other clients gets no profile, and binding stays the user's choice.
    let open = try Self.discover(
      Self.fapi2 + """
        , "token_endpoint_auth_methods_supported": ["private_key_jwt", "none"],
        "dpop_signing_alg_values_supported": ["ES256"]
        """)
    #expect(open.addition.descriptor.profile == nil && open.addition.descriptor.tokenBinding == .none)
    #expect(open.text.contains("\n# token_binding: dpop  # dpop_signing_alg_values_supported\n"))
  }

  @Test func metadataThatDemandsSignedMessages() throws {
    let signed = """
      , "token_endpoint_auth_methods_supported": ["private_key_jwt"], "dpop_signing_alg_values_supported": ["ES256"],
      "require_signed_request_object": true, "jwks_uri": "https://login.example/keys"
      """
    let whole = try Self.discover(Self.fapi2 + signed + #", "response_modes_supported": ["jwt"]"#).addition.descriptor
    #expect(whole.profile == .fapi2MessageSigning && whole.signsRequests && whole.getsSignedAnswers)
    let plain = try Self.discover(Self.fapi2 + signed).addition.descriptor
    #expect(plain.profile == .fapi2 && plain.signsRequests && !plain.getsSignedAnswers)
  }

  /// A server that does not verify the usual algorithm names others (RFC 8414, 2).
  @Test(
    arguments: [
      ("private_key_jwt", ["ES256", "PS256"], .ps256), ("private_key_jwt", ["RS256", "ES256"], nil),
      ("private_key_jwt", ["ES512", "EdDSA"], .edDSA),
      ("client_secret_jwt", ["HS512", "RS256"], .hs512), ("client_secret_jwt", ["HS256"], nil),
      ("client_secret_basic", ["ES256"], nil),
    ] as [(String, [String], AssertionAlgorithm?)])
  func algorithmsOfAssertions(_ method: String, _ offered: [String], _ expected: AssertionAlgorithm?) throws {
    let list = offered.map { "\"\($0)\"" }.joined(separator: ", ")
    let descriptor = try Self.discover(
      """
      "token_endpoint_auth_methods_supported": ["\(method)"],
      "token_endpoint_auth_signing_alg_values_supported": [\(list)]
      """
    ).addition.descriptor
    #expect(descriptor.assertion?.algorithm == expected)
  }

  /// A client cannot log in with an algorithm that the server does not verify.
  @Test func noAlgorithmForAssertions() throws {
    let list = "\"token_endpoint_auth_signing_alg_values_supported\": [\"none\", \"HS256\"]"
    let methods = "\"token_endpoint_auth_methods_supported\": "
    let fault = MetadataError.noAlgorithm(
      in: "token_endpoint_auth_signing_alg_values_supported", offered: ["none", "HS256"])
    #expect(throws: CredentialError.discovery(fault, issuer: Self.issuer)) {
      try Self.discover("\(methods)[\"private_key_jwt\"], \(list)")
    }
    // Another method needs none.
    let other = try Self.discover("\(methods)[\"private_key_jwt\", \"tls_client_auth\"], \(list)")
    #expect(other.addition.descriptor.client.authentication == .tlsClientAuth)
  }

  /// RFC 8705, 5: these addresses are agreed to as all others are.
  @Test(arguments: [("tls_client_auth", true), ("client_secret_basic", false)])
  func aliasesOfClientsWithACertificate(_ method: String, _ isCertified: Bool) throws {
    let discovery = try Self.discover(
      """
      "token_endpoint_auth_methods_supported": ["\(method)"], "tls_client_certificate_bound_access_tokens": true,
      "jwks_uri": "https://login.example/keys", "mtls_endpoint_aliases": {
        "token_endpoint": "https://mtls.login.example/token", "jwks_uri": "https://mtls.login.example/keys", "x": 1
      }
      """)
    let token = isCertified ? "https://mtls.login.example/token" : "https://login.example/token"
    #expect(discovery.addition.descriptor.endpoints[.token]?.url.template.text == token)
    // A user who turns the binding on finds the address.
    let line = "  # With mutual_tls: https://mtls.login.example/token  # mtls_endpoint_aliases.token_endpoint\n"
    #expect(discovery.text.contains(line) == !isCertified)
    // No certificate is presented to get keys.
    #expect(discovery.addition.descriptor.endpoints[.keySet]?.url.template.text == "https://login.example/keys")
    #expect(!discovery.text.contains("https://mtls.login.example/keys"))
    #expect(discovery.addition.descriptor.tokenBinding == (isCertified ? .mutualTLS : .none))
  }

  /// The profile switches the binding on, so the client presents a certificate although it authenticates otherwise.
  @Test func aliasesOfAClientOfTheProfile() throws {
    let discovery = try Self.discover(
      """
      "token_endpoint_auth_methods_supported": ["private_key_jwt"], "tls_client_certificate_bound_access_tokens": true,
      "token_endpoint_auth_signing_alg_values_supported": ["ES256"], "code_challenge_methods_supported": ["S256"],
      "pushed_authorization_request_endpoint": "https://login.example/par",
      "require_pushed_authorization_requests": true, "authorization_response_iss_parameter_supported": true,
      "mtls_endpoint_aliases": {"token_endpoint": "https://mtls.login.example/token"}
      """)
    let descriptor = discovery.addition.descriptor
    #expect(descriptor.profile == .fapi2)
    #expect(descriptor.tokenBinding == .mutualTLS)
    #expect(descriptor.endpoints[.token]?.url.template.text == "https://mtls.login.example/token")
  }

  @Test(arguments: [
    #"{"token_endpoint": "http://login.example/token"}"#, #"{"token_endpoint": "https://127.0.0.1/token"}"#,
    #"{"token_endpoint": 7}"#, "[]",
  ])
  func badAliases(_ aliases: String) throws {
    #expect(throws: CredentialError.self) { try Self.discover("\"mtls_endpoint_aliases\": \(aliases)") }
  }

  @Test func theFileSaysWhereEachValueIsFrom() throws {
    let discovery = try Self.discover(
      """
      "device_authorization_endpoint": "https://login.example/device", "userinfo_endpoint": "https://api.example/me",
      "revocation_endpoint": "https://login.example/revoke", "introspection_endpoint": "https://login.example/check",
      "introspection_endpoint_auth_methods_supported": ["client_secret_post"],
      "registration_endpoint": "https://login.example/register", "code_challenge_methods_supported": ["plain", "S256"],
      "grant_types_supported": ["authorization_code", "client_credentials", "urn:x"],
      "token_endpoint_auth_methods_supported": ["tls_client_auth", "client_secret_post", "client_secret_basic"],
      "scopes_supported": ["openid", "email", "admin", "offline_access"], "service_documentation": "https://d.example/x",
      "authorization_response_iss_parameter_supported": true
      """)
    #expect(
      discovery.text == """
        # Made from the metadata of https://login.example at
        # https://login.example/.well-known/openid-configuration (OpenID Connect Discovery 1.0, 4).
        # Each comment after a value names its source in the metadata.
        provider: login.example
        title: login.example
        grant: [authorization_code, device_code, client_credentials]

        variables:
          # Any port (RFC 8252, 7.3). If the provider compares the whole URI, set a port: http://127.0.0.1:8417/callback/login.example
          redirect_uri:
            default: http://127.0.0.1/callback/login.example
            format: redirect
            help: the redirect URI exactly as registered

        endpoints:
          authorization:
            url: https://login.example/authorize  # authorization_endpoint
            parameters: { prompt: consent }  # demanded with offline_access (OpenID Connect Core 1.0, 11)
          token: https://login.example/token  # token_endpoint
          device_authorization: https://login.example/device  # device_authorization_endpoint
          introspection:
            url: https://login.example/check  # introspection_endpoint
            authentication: client_secret_post  # introspection_endpoint_auth_methods_supported
          revocation: https://login.example/revoke  # revocation_endpoint
          identity: https://api.example/me  # userinfo_endpoint, on a different host than the issuer
          registration: https://login.example/register  # registration_endpoint

        # Compared with the "iss" of a redirect (RFC 9207).
        issuer: https://login.example
        iss: required  # authorization_response_iss_parameter_supported
        redirect: "{redirect_uri}"
        pkce: S256  # code_challenge_methods_supported

        client:
          authentication: client_secret_basic  # token_endpoint_auth_methods_supported
          register: https://d.example/x  # service_documentation

        # scopes_supported:
        #   openid email admin offline_access
        scope: [openid, email, offline_access]
        account: [preferred_username, email, sub]  # OpenID Connect Core 1.0, 5.1

        # The hosts that receive the token. Add the hosts of the API.
        hosts: [login.example, api.example]

        """)
    #expect(discovery.foreignEndpoints.map(\.name) == ["userinfo_endpoint"])
    #expect(discovery.foreignEndpoints.map(\.host) == ["api.example"])
    #expect(discovery.addition.warnings.isEmpty)
    let descriptor = discovery.addition.descriptor
    #expect(descriptor.grants == [.authorizationCode, .deviceCode, .clientCredentials])
    #expect(descriptor.endpoints[.introspection]?.authentication == .clientSecretPost)
    #expect(descriptor.issuer?.literal == "https://login.example")
    #expect(descriptor.issuerResponse == .required)
    #expect(descriptor.hosts.map(\.literal) == ["login.example", "api.example"])
  }

  @Test func aServerWithoutThePromptForConsent() throws {
    let text = try Self.discover(
      "\"scopes_supported\": [\"offline_access\"], \"prompt_values_supported\": [\"none\", \"login\"]"
    ).text
    #expect(text.contains("scope: [offline_access]") && !text.contains("prompt"))
  }

  @Test func littleMetadataIsALittleFile() throws {
    let descriptor = try Self.discover("", as: "mine").addition.descriptor
    #expect(descriptor.identifier == "mine")
    #expect(descriptor.grants == [.authorizationCode])
    #expect(descriptor.pkce == .s256)
    #expect(descriptor.scope.requested == [])
    #expect(descriptor.account == [])
    #expect(descriptor.nonce == nil)
    #expect(descriptor.issuerResponse == .optional)
  }

  static let mapped: [(String, String, String)] = [
    // Metadata cannot disable a protection.
    ("\"code_challenge_methods_supported\": [\"plain\"]", "pkce: S256", "plain"),
    ("\"code_challenge_methods_supported\": []", "pkce: S256", "none"),
    ("\"code_challenge_methods_supported\": [\"S256\", \"plain\"]", "pkce: S256", "without S256"),
    ("\"token_endpoint_auth_methods_supported\": [\"none\"]", "authentication: none", ""),
    ("\"token_endpoint_auth_methods_supported\": [\"private_key_jwt\"]", "authentication: private_key_jwt", ""),
    ("\"userinfo_endpoint\": \"https://login.example/me\"", "scope: [openid]", "# scopes_supported"),
    ("\"scopes_supported\": [\"a\"]", "scope: []", "nonce"),
    // Braces are literal text, not variables.
    (#""revocation_endpoint": "https://login.example/r?a={x}""#, #"revocation: "https://login.example/r?a={{x}}""#, ""),
    ("\"revocation_endpoint\": \"https://login.example/r?a=:\"", "revocation: \"https://login.example/r?a=:\"", ""),
    ("\"service_documentation\": \"javascript:x\"", "client:", "register:"),
    (#""response_types_supported": ["token"], "grant_types_supported": ["implicit"]"#, "grant: [implicit]", "device"),
  ]

  @Test(arguments: mapped) func mapping(_ member: String, _ line: String, _ absent: String) throws {
    let text = try Self.discover(member).text
    #expect(text.contains(line + "\n") || text.contains(line + "  #"), "\(text)")
    if !absent.isEmpty { #expect(!text.contains(absent)) }
  }

  @Test func bracesAreSentAsTheyAre() throws {
    let descriptor = try Self.discover("\"revocation_endpoint\": \"https://login.example/r?a={host}\"").addition
      .descriptor
    #expect(try descriptor.endpoints[.revocation]?.url.filled { _ in nil }.text == "https://login.example/r?a={host}")
  }

  static let refused: [(String, MetadataError)] = [
    (#""token_endpoint_auth_methods_supported": ["x"]"#, .noAuthentication(offered: ["x"])),
    ("\"grant_types_supported\": [\"password\"]", .noGrant(offered: ["password"])),
    ("\"authorization_endpoint\": null", .missing("authorization_endpoint")),
    ("\"token_endpoint\": null", .missing("token_endpoint")),
    ("\"token_endpoint\": \"http://login.example/t\"", .insecure("token_endpoint", text: "http://login.example/t")),
  ]

  @Test(arguments: refused) func invalidValuesAreRefused(_ member: String, _ error: MetadataError) {
    #expect(throws: CredentialError.discovery(error, issuer: Self.issuer)) { try Self.discover(member) }
  }

  /// The decoder's own findings are reported, and nothing is stored.
  @Test func anEndpointCannotSetProtectingParameters() {
    #expect(throws: CredentialError.self) {
      try Self.discover("\"authorization_endpoint\": \"https://login.example/a?state=x\"")
    }
  }

  // MARK: Places

  @Test func pagesAndRedirectsAreSkipped() throws {
    let fixture = try Fixture()
    fixture.http.then(HTTPResponse(status: 200))
    fixture.http.then(HTTPResponse(status: 302, fields: ["Location": "https://elsewhere.example/"]))
    fixture.http.then(HTTPResponse(status: 200, fields: ["Content-Type": "text/html"], body: Array("<p>".utf8)))
    fixture.http.then(Self.metadata(issuer: Self.issuer + "/a"))
    let discovery = try fixture.source.discover(Self.issuer + "/a", as: nil)
    #expect(discovery.addition.identifier == "login.example-a")
    #expect(
      fixture.http.requests.map(\.uri.text) == [
        "https://login.example/a", "https://login.example/a/.well-known/openid-configuration",
        "https://login.example/.well-known/oauth-authorization-server/a",
        "https://login.example/.well-known/openid-configuration/a",
      ])
    #expect(
      fixture.http.requests.allSatisfy { $0.method == "GET" && $0.body.isEmpty && $0.fields["Authorization"] == nil })
  }

  @Test func noMetadataAnywhere() throws {
    let fixture = try Fixture()
    fixture.http.then(
      HTTPResponse(status: 404), HTTPResponse(status: 301, fields: ["Location": "https://elsewhere.example/"]),
      HTTPResponse(status: 404), HTTPResponse(status: 404))
    let error = try #require(throws: CredentialError.self) { try fixture.source.discover(Self.issuer, as: nil) }
    guard case .discovery(.absent(let attempts), _) = error else { throw error }
    #expect(attempts.map(\.status) == [301, 404])
    #expect(attempts.map(\.location) == ["https://elsewhere.example/", nil])
  }

  @Test(arguments: [429, 500, 503]) func aServerThatCannotAnswer(_ status: Int) throws {
    let fixture = try Fixture()
    fixture.http.then(HTTPResponse(status: 404), HTTPResponse(status: status))
    let error = try #require(throws: CredentialError.self) { try fixture.source.discover(Self.issuer, as: nil) }
    guard case .discovery(.unavailable(let attempt), _) = error else { throw error }
    #expect(attempt.status == status)
    #expect(fixture.http.isDone)
  }

  @Test func anotherIssuerEndsTheDiscovery() throws {
    let fixture = try Fixture()
    fixture.http.then(
      HTTPResponse(status: 404), Self.metadata(issuer: "https://evil.example"), HTTPResponse(status: 404))
    let other = MetadataError.otherIssuer(found: "https://evil.example")
    #expect(throws: CredentialError.discovery(other, issuer: Self.issuer)) {
      try fixture.source.discover(Self.issuer, as: nil)
    }
  }

  @Test func unneededQuestionsAreNotAsked() throws {
    let fixture = try Fixture()
    for text in ["http://login.example", "https://login.example?x=y", "https://", "https://a b"] {
      #expect(throws: CredentialError.self) { try fixture.source.discover(text, as: nil) }
    }
    #expect(throws: CredentialError.provider(.malformedIdentifier("../x"))) {
      try fixture.source.discover(Self.issuer, as: "../x")
    }
    #expect(throws: CredentialError.networkNeeded) { try Fixture().another().discover(Self.issuer, as: nil) }
  }

  // MARK: YAML

  @Test(arguments: [
    "null", "~", "true", "no", "On", "", " ", "a: b", "a #b", "- a", "[a]", "{a: b}", "&a", "*a", "!a", "|", ">", "'a'",
    "\"a\"", "%a", "@a", "`a", "? a", "a\nprovider: evil", "a\r\nb", "\u{1b}[2J", "\u{202e}", "\u{2028}", "\u{feff}a",
    "17", "1e3", "0x1", "https://a.example:", "https://a.example/#f", "https://a.example/a b", "https://a.example/: b",
    "a.example:443", "login.example", "urn:x", "https://a.example/x?a=b&c=%20", "\u{85}", "\\", "\t", "---", "...", "=",
    "<<",
  ]) func everyTextIsReadAsItself(_ text: String) throws {
    let yaml =
      "provider: a\ngrant: client_credentials\nendpoints: { token: https://a.example }\nscope: { default: ["
      + Scalar.written(text) + "] }\nclient: { register: " + Scalar.written(text) + " }\n"
    let library = DescriptorLibrary(directories: []) { _ in nil }
    let descriptor = try library.load(Array(yaml.utf8), name: "a.yaml").descriptor
    #expect(descriptor.client.register == text)
    #expect(descriptor.scope.requested == text.split(separator: " ").map(String.init))
  }
}

/// Tests client registration (RFC 7591) in `add-provider`.
struct RegistrationTests {
  private static let text = """
    grant: authorization_code
    variables: { redirect_uri: { default: "http://127.0.0.1/callback", format: redirect } }
    endpoints:
      authorization: https://provider.example/authorize
      token: https://provider.example/token
      registration: https://provider.example/register
    redirect: "{redirect_uri}"
    """

  private static let answer = HTTPResponse.json(
    """
    {"client_id": "c1", "client_secret": "s1", "token_endpoint_auth_method": "client_secret_post",
     "registration_access_token": "r1", "registration_client_uri": "https://provider.example/register/c1"}
    """, status: 201)

  private let fixture: Fixture

  init() throws { fixture = try Fixture() }

  private func add(
    id: String? = nil, secret: String? = nil, variables: [String: String] = [:],
    token: String? = nil, replaces: Bool = false
  ) throws -> Registration? {
    try fixture.add(
      fixture.file(Self.text), id: id, secret: secret, variables: variables, token: token, replaces: replaces,
      confirms: { _, _, _ in true })
  }

  @Test func aClientIsRegisteredAndKept() throws {
    fixture.http.then(Self.answer)
    let registration = try #require(try add(token: "initial-1"))
    #expect(fixture.http.requests.map(\.uri.text) == ["https://provider.example/register"])
    #expect(fixture.http.requests.first?.fields["Authorization"] == "Bearer initial-1")
    #expect(registration.clientIdentifier == "c1")
    #expect(
      registration.registered
        == Registration.Registered(
          place: "https://provider.example/register", redirectURI: "http://127.0.0.1/callback",
          authentication: .clientSecretPost, accessToken: Secret("r1"), uri: "https://provider.example/register/c1"))
    #expect(try fixture.registration() == registration)
    let client = try fixture.another().client("example")
    #expect(client.identifier == "c1")
    #expect(client.secret == Secret("s1"))
    // The provider's answer for this client.
    #expect(client.descriptor.client.authentication == .clientSecretPost)
    let descriptor = try fixture.source.home.library.load("example").descriptor
    let planned = try fixture.another().plannedLogin(descriptor, LoginOptions(), hasToken: false).planned
    let token = try #require(planned.requests.first { $0.kind == .token })
    #expect(!token.fields.contains { $0.name == "Authorization" })
    guard case .form(let pairs) = token.body else { throw CredentialError.interrupted }
    #expect(pairs.contains { $0.name == "client_secret" })
  }

  @Test func anExistingClientIsNotRegisteredAgain() throws {
    #expect(try add(id: "mine", secret: "s") == nil)
    #expect(try add(replaces: true) == nil)
    #expect(try fixture.registration()?.clientIdentifier == "mine")
    #expect(try fixture.registration()?.clientSecret == Secret("s"))
  }

  @Test func aSecretWithoutAClientIsAMistake() throws {
    let needs = ClientNeeds(needsIdentifier: true, needsSecret: false, register: nil)
    #expect(throws: CredentialError.clientIdentifierMissing(provider: "example", needs)) {
      try add(secret: "s")
    }
  }

  @Test func aRegisteredClientStaysWhileItFits() throws {
    fixture.http.then(Self.answer)
    _ = try add()
    #expect(try add(replaces: true) == nil)
    #expect(try fixture.registration()?.registered != nil)
    // Another redirect.
    fixture.http.then(
      HTTPResponse.json(#"{"client_id": "c2", "client_secret": "s2", "client_secret_expires_at": 1700000600}"#))
    _ = try add(variables: ["redirect_uri": "http://127.0.0.1:8417/callback"], replaces: true)
    #expect(try fixture.registration()?.clientIdentifier == "c2")
    #expect(try fixture.registration()?.clientSecret == Secret("s2"))
    #expect(try fixture.registration()?.variables == ["redirect_uri": "http://127.0.0.1:8417/callback"])
    #expect(try add(replaces: true) == nil)
    // The secret has expired.
    fixture.clock.advance(.seconds(600))
    fixture.http.then(HTTPResponse.json(#"{"client_id": "c3"}"#))
    _ = try add(replaces: true)
    #expect(try fixture.registration()?.clientIdentifier == "c3")
    #expect(try fixture.registration()?.clientSecret == nil)
    // A user's own client takes precedence.
    #expect(try add(id: "mine", replaces: true) == nil)
    #expect(try fixture.registration()?.registered == nil)
  }

  /// Otherwise, the provider would delete the client and its secret would stay here.
  @Test func aVaultThatCannotBeChangedKeepsTheClient() throws {
    fixture.http.then(Self.answer)
    _ = try add()
    try fixture.damageVault()
    #expect(throws: CredentialError.self) { try fixture.source.remove("example", keepsRemote: false) }
    #expect(fixture.http.requests.count == 1)
  }

  @Test func aRefusalChangesNothing() throws {
    fixture.http.then(
      HTTPResponse.json(#"{"error": "invalid_token", "error_description": "who is initial-1?"}"#, status: 401))
    let error = try #require(throws: CredentialError.self) { try add(token: "initial-1") }
    guard case .oauth(.refused(.registration, let refusal), provider: "example") = error else { throw error }
    #expect(refusal.words == "who is …?")
    #expect(!File.exists(fixture.home.userProviders))
    #expect(try fixture.registration() == nil)
  }

  @Test func withoutANetworkNothingIsDone() throws {
    let file = try fixture.file(Self.text)
    #expect(throws: CredentialError.networkNeeded) {
      try fixture.another().add(
        file, clientIdentifier: nil, clientSecret: nil, variables: [:], replaces: false, confirms: { _, _, _ in true })
    }
    #expect(!File.exists(fixture.home.vault))
  }
}
