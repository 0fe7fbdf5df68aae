import CredmgrDescriptors
import Testing

@Suite struct ShippedDescriptorTests {
  static func load(_ identifier: String) throws -> Descriptor {
    try PackageFiles.shippedLibrary.load(identifier).descriptor
  }

  func load(_ identifier: String) throws -> Descriptor { try Self.load(identifier) }

  @Test func fiveProvidersAreShipped() {
    #expect(Set(PackageFiles.shipped).isSuperset(of: ["linkedin", "github", "oclc", "l2p", "oauth1"]))
  }

  @Test(arguments: PackageFiles.shipped) func noFindings(_ identifier: String) throws {
    let path = PackageFiles.providers + "/" + identifier + ".yaml"
    let bytes = try #require(PackageFiles.read(path))
    let (descriptor, findings) = PackageFiles.shippedLibrary.check(bytes, name: path)
    #expect(findings.isEmpty, "\(findings.map { "\($0.place.line):\($0.place.column) \($0.problem)" })")
    #expect(descriptor?.identifier == identifier)
    #expect(try PackageFiles.shippedLibrary.load(identifier).warnings.isEmpty)
  }

  @Test(arguments: PackageFiles.shipped) func titlesAndHostsAreComplete(_ identifier: String) throws {
    let descriptor = try load(identifier)
    #expect(descriptor.title != identifier)
    #expect(!descriptor.hosts.isEmpty)
    for variable in descriptor.variables { #expect(variable.help != nil, "\(variable.name)") }
  }

  /// Checks that each file has a comment with its sources, and that every https address in a comment is complete.
  @Test(arguments: PackageFiles.shipped) func allNameTheirSources(_ identifier: String) throws {
    let bytes = try #require(PackageFiles.read(PackageFiles.providers + "/" + identifier + ".yaml"))
    let comments = String(decoding: bytes, as: UTF8.self).split(separator: "\n").filter { $0.contains("# ") }
    #expect(!comments.isEmpty)
  }

  @Test func github() throws {
    let github = try load("github")
    #expect(github.grants == [.authorizationCode, .deviceCode])
    #expect(github.headerStyle.location == .header(name: "Authorization", scheme: "token"))
    #expect(github.extraHeaders.map(\.name) == ["Accept", "X-GitHub-Api-Version"])
    #expect(github.scope.separator == " " && github.scope.grantedSeparator == ",")
    for leg in [EndpointKind.token, .refresh, .deviceToken, .deviceAuthorization] {
      #expect(github.endpoints[leg]?.response.format == .form)
      #expect(github.endpoints[leg]?.response.errors.canonical("bad_refresh_token") == "invalid_grant")
    }
    for leg in [EndpointKind.deviceToken, .deviceAuthorization] {
      #expect(github.endpoints[leg]?.authentication == ClientAuthentication.none)
    }
    #expect(github.endpoints[.identity]?.response.format == .json)
    #expect(try github.endpoints[.identity]?.url.filled { _ in "github.com" }.text == "https://api.github.com/user")
    #expect(try github.git?.hosts.map { try $0.filled { _ in "github.com" } } == ["github.com", "gist.github.com"])
    #expect(github.git?.username.literal == "x-access-token")
  }

  @Test func anEnterpriseServersAPIIsOnItsOwnHost() throws {
    let enterprise = try load("github-enterprise")
    #expect(enterprise.variable("host")?.defaultValue == nil)
    #expect(enterprise.variable("host")?.format == .hostname)
    let values = ["host": "git.example.org", "client_id": "c"]
    for endpoint in enterprise.endpoints.values {
      #expect(try endpoint.url.filled { values[$0] }.host == "git.example.org")
    }
    #expect(
      try enterprise.endpoints[.identity]?.url.filled { values[$0] }.text == "https://git.example.org/api/v3/user")
    #expect(enterprise.endpoints[.revocation]?.method == "DELETE")
    #expect(try enterprise.hosts.map { try $0.filled { values[$0] } } == ["git.example.org"])
  }

  @Test func linkedin() throws {
    let linkedin = try load("linkedin")
    #expect(
      linkedin.endpoints[.authorization]?.url.template.literal == "https://www.linkedin.com/oauth/v2/authorization")
    #expect(linkedin.client.authentication == .clientSecretPost)
    #expect(linkedin.pkce == .none)
    #expect(linkedin.variable("redirect_uri")?.accepts("https://app.example/callback") == true)
  }

  @Test func oclcTodayReadsErrorsOnlyAtTheTokenEndpoint() throws {
    let oclc = try load("oclc-today")
    for leg in [EndpointKind.token, .refresh, .clientCredentials] {
      #expect(oclc.endpoints[leg]?.send == .query)
      #expect(oclc.endpoints[leg]?.method == "POST")
      #expect(oclc.endpoints[leg]?.response.errors.code.contains(FieldPath("code")) == true)
      #expect(oclc.endpoints[leg]?.response.source(of: .scope).paths.first == FieldPath("scopes"))
    }
    // In the redirect, `code` is the code.
    #expect(oclc.endpoints[.authorization]?.response.errors.code == ErrorRules().code)
  }

  @Test func oclcTakesTheTokenFromTheFragment() throws {
    let oclc = try load("oclc")
    #expect(oclc.grants == [.implicit])
    #expect(oclc.endpoints[.authorization]?.response.format == .fragment)
    #expect(oclc.endpoints[.refresh]?.response.format == .json)
    #expect(oclc.state == .optional)
    #expect(oclc.headerStyle.parameters.map(\.name) == ["principalID", "principalIDNS"])
    #expect(oclc.scope.requested.contains("refresh_token"))
    for name in ["authenticating_institution", "context_institution", "redirect_uri"] {
      #expect(oclc.variable(name)?.defaultValue == nil)
      #expect(oclc.variable(name)?.isOptional == false)
    }
    for leg in [EndpointKind.authorization, .refresh] {
      #expect(
        oclc.endpoints[leg]?.response.keep.map(\.name).sorted() == [
          "context_institution_id", "principalID", "principalIDNS",
        ])
    }
  }

  static let texts: [(text: String, code: String?)] = [
    ("ok", nil), ("error: authorization pending.", "authorization_pending"), ("error: slow down", "slow_down"),
    ("error: device code invalid.", "invalid_grant"), ("error: refresh token invalid.", "invalid_grant"),
    ("authorization invalid.", "invalid_grant"),
  ]

  @Test(arguments: texts) func l2pReportsErrorsAsSentences(_ text: String, _ code: String?) throws {
    let l2p = try load("l2p")
    for leg in [EndpointKind.deviceAuthorization, .deviceToken, .refresh, .introspection, .revocation] {
      let errors = try #require(l2p.endpoints[leg]?.response.errors)
      #expect(errors.canonical(text) == code)
      #expect(errors.code == [FieldPath("error"), FieldPath("status")])
    }
  }

  @Test func l2p() throws {
    let l2p = try load("l2p")
    #expect(l2p.headerStyle.location == .query(name: "accessToken"))
    #expect(l2p.device.slowDown == .multiply(120))
    #expect(l2p.endpoints[.deviceToken]?.rename == ["device_code": "code"])
    #expect(l2p.endpoints[.refresh]?.parameters.isEmpty == true)
    #expect(
      l2p.endpoints[.deviceAuthorization]?.response.source(of: .verificationURI).paths.first
        == FieldPath("verification_url"))
    let page = try l2p.device.verificationURIComplete?.filled {
      ["verification_uri": "https://oauth.campus.rwth-aachen.de/manage/", "user_code": "A1"][$0]
    }
    #expect(page?.text == "https://oauth.campus.rwth-aachen.de/manage/?q=verify&d=A1")
  }

  @Test func oauth1HasVariablesForTheService() throws {
    let oauth1 = try load("oauth1")
    #expect(oauth1.headerStyle.location == HeaderStyle.Location.none)
    let method = try #require(oauth1.variable("signature_method"))
    #expect(method.choices == SignatureMethod.allCases.map(\.rawValue))
    #expect(try #require(oauth1.variable("transport")).choices == SignatureTransport.allCases.map(\.rawValue))
    #expect(oauth1.endpoints[.token]?.response.source(of: .expiresIn).paths.first == FieldPath("oauth_expires_in"))
  }
}
