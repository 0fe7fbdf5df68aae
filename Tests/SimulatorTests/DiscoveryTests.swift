import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth
import CredmgrDescriptors
import Testing

@testable import CredmgrSimulator

/// Tests the metadata of a simulated provider, and registering a client there.
struct DiscoveryTests {
  private static let text = """
    provider: odd
    grant: [authorization_code, device_code]
    endpoints:
      authorization: https://odd.example/authorize
      token: https://odd.example/token
      device_authorization: https://odd.example/device
      registration: https://odd.example/register
    scope: [read]
    client: { authentication: client_secret_post }
    """

  private static func play(_ text: String = text) throws -> Play {
    let library = DescriptorLibrary(directories: []) { _ in nil }
    return try Play(library.load(Array(text.utf8), name: "odd.yaml").descriptor, secret: Secret("s3cret"))
  }

  @Test func metadataIsThatOfTheDescriptor() throws {
    let play = try Self.play()
    let issuer = try Issuer(Play.origin)
    for location in MetadataLocation.all(for: issuer) {
      let metadata = try AuthorizationServerMetadata(play.send(location.request), of: issuer, at: location)
      #expect(metadata.endpoints[.token] == (try play.client.descriptor.endpoints[.token]?.url.filled { _ in nil }))
      #expect(metadata.grantTypes == ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"])
      #expect(metadata.authenticationMethods == ["client_secret_post"])
      #expect(metadata.scopes == ["read"])
      #expect(metadata.codeChallengeMethods == ["S256"])
    }
  }

  /// The address of the resource leads to the authorization server (RFC 9728).
  @Test func theResourceHasMetadata() throws {
    let play = try Self.play()
    let address = try Issuer(Play.origin + "/simulator/resource")
    let refusal = play.send(HTTPRequest(method: "GET", uri: address.uri))
    #expect(refusal.status == 401)
    let location = try #require(
      try ProtectedResourceMetadata.location(in: refusal.challenges, of: address))
    let metadata = try ProtectedResourceMetadata(
      play.send(ProtectedResourceMetadata.request(at: location)), of: address, at: location)
    #expect(metadata.authorizationServers.map(\.text) == [Play.origin])
    #expect(metadata.scopes == ["read"])
    #expect(metadata.resource == address.text)
  }

  @Test func aProviderWithoutALoginInABrowserHasNoStandardServer() throws {
    let play = try Self.play("provider: odd\ngrant: api_key\nendpoints: {}\nissuer: https://odd.example")
    let location = try #require(MetadataLocation.all(for: Issuer(Play.origin)).first)
    #expect(play.send(location.request).status == 404)
  }

  /// Beside providers that register no clients, or have requests of their own, a standard server serves `setup`.
  @Test(arguments: [
    "endpoints: { authorization: https://odd.example/a, token: { url: https://odd.example/t, send: json } }",
    text.replacing("/register", with: "/register }")
      .replacing("registration: ", with: "registration: { send: form, url: "),
    text + "\nissuer: https://odd.example\nheader_style: token",
  ])
  func anyProviderRegistersAClient(text: String) throws {
    let head = text.hasPrefix("endpoints") ? "provider: odd\ngrant: authorization_code\nscope: [read]\n" : ""
    let play = try Self.play(head + text)
    let address = try Issuer(Play.origin + "/simulator/resource")
    let refusal = try play.get(address.text)
    let resource = try #require(try ProtectedResourceMetadata.location(in: refusal.challenges, of: address))
    let server = try ProtectedResourceMetadata(
      play.send(ProtectedResourceMetadata.request(at: resource)), of: address, at: resource
    ).authorizationServers[0]
    let location = try #require(MetadataLocation.all(for: server).first)
    let metadata = try AuthorizationServerMetadata(play.send(location.request), of: server, at: location)
    #expect(metadata.scopes == ["read"])
    func url(_ kind: EndpointKind) throws -> String { try #require(metadata.endpoints[kind]).text }
    let body: JSONValue = [
      "redirect_uris": ["http://127.0.0.1/callback"], "token_endpoint_auth_method": "none",
    ]
    let registered = play.send(
      HTTPRequest(
        method: "POST", uri: try URI(parsing: url(.registration)), fields: ["Content-Type": "application/json"],
        body: Array(body.encoded.utf8)))
    #expect(registered.status == 201)
    let client = try #require(try JSONValue.parse(registered.body)["client_id"]?.text)
    let verifier = String(repeating: "v", count: 43)
    let challenge = Base64.encodeURL(HashAlgorithm.sha256.digest(Array(verifier.utf8)))
    let question: FormParameters = [
      ("response_type", "code"), ("client_id", client), ("redirect_uri", "http://127.0.0.1:50000/callback"),
      ("state", "s"), ("code_challenge", challenge), ("code_challenge_method", "S256"), ("scope", "read"),
    ]
    let target = try play.decide(URI(parsing: url(.authorization)).adding(query: question))
    let code = try #require(target.queryParameters[first: "code"])
    let path = String(try url(.token).dropFirst(Play.origin.count))
    let answer = try play.post(
      path,
      [
        ("grant_type", "authorization_code"), ("code", code), ("client_id", client), ("code_verifier", verifier),
        ("redirect_uri", "http://127.0.0.1:50000/callback"),
      ])
    let token = try #require(try JSONValue.parse(answer.body)["access_token"]?.text)
    let request = HTTPRequest(method: "GET", uri: address.uri, fields: ["Authorization": "Bearer \(token)"])
    #expect(play.send(request).status == 200)
    let other = HTTPRequest(method: "GET", uri: address.uri, fields: ["Authorization": "Bearer x"])
    #expect(play.send(other).status == 401)
  }

  // MARK: Clients with a document (draft-ietf-oauth-client-id-metadata-document-01)

  private static let document = "https://127.0.0.1:8443/credmgr.json"

  /// Returns a standard server that finds one document.
  private static func play(document: JSONValue, status: Int = 200) throws -> Play {
    let library = DescriptorLibrary(directories: []) { _ in nil }
    let text = text.replacing("/register", with: "/register }")
      .replacing("registration: ", with: "registration: { send: form, url: ")
    return try Play(library.load(Array(text.utf8), name: "odd.yaml").descriptor) { uri in
      uri.text == Self.document ? .json(status, document) : nil
    }
  }

  private static func client(_ changes: JSONValue.Member...) -> JSONValue {
    let members: [JSONValue.Member] = [
      .init("client_id", .string(document)), .init("redirect_uris", ["http://127.0.0.1/callback/odd"]),
      .init("token_endpoint_auth_method", "none"),
    ]
    return .object(members.filter { member in !changes.contains { $0.name == member.name } } + changes)
  }

  private static let challenge = Base64.encodeURL(HashAlgorithm.sha256.digest(Array(repeating: 0x76, count: 43)))

  private static func page(_ client: String, redirect: String = "http://127.0.0.1:50000/callback/odd") throws -> URI {
    try URI(parsing: Play.origin + "/oauth.example/authorize").adding(
      query: [
        ("response_type", "code"), ("client_id", client), ("redirect_uri", redirect), ("state", "s"),
        ("code_challenge", challenge), ("code_challenge_method", "S256"),
      ])
  }

  @Test func aClientWithADocument() throws {
    let play = try Self.play(document: Self.client())
    let location = try #require(MetadataLocation.all(for: Issuer(Play.origin)).first)
    let metadata = try AuthorizationServerMetadata(play.send(location.request), of: Issuer(Play.origin), at: location)
    #expect(metadata.takesDocuments)
    #expect(try play.get(Self.page(Self.document).text).text.contains(Self.document))
    func grant(_ client: String, _ more: FormParameters) throws -> JSONValue {
      var form = more
      form.append("client_id", client)
      return try play.post("/oauth.example/token", form).json()
    }
    func login() throws -> FormParameters {
      let target = try play.decide(Self.page(Self.document))
      let code = try #require(target.queryParameters[first: "code"])
      return [
        ("grant_type", "authorization_code"), ("code", code), ("code_verifier", String(repeating: "v", count: 43)),
        ("redirect_uri", "http://127.0.0.1:50000/callback/odd"),
      ]
    }
    let answer = try grant(Self.document, login())
    let refresh: FormParameters = [
      ("grant_type", "refresh_token"), ("refresh_token", answer["refresh_token"]?.text ?? ""),
    ]
    #expect(try grant(Self.document, refresh)["access_token"] != nil)
    // Another client gets nothing for them.
    #expect(try grant(Simulation.clientIdentifier, login())["error"]?.text == "invalid_grant")
    #expect(try grant(Simulation.clientIdentifier, refresh)["error"]?.text == "invalid_grant")
  }

  @Test(arguments: [
    (client(.init("client_id", "https://127.0.0.1:8443/other.json")), 200),
    (client(.init("token_endpoint_auth_method", "client_secret_basic")), 200),
    (client(.init("client_secret", "s")), 200), (client(.init("redirect_uris", .null)), 200), (client(), 404),
  ])
  func aDocumentIsChecked(_ document: JSONValue, _ status: Int) throws {
    let play = try Self.play(document: document, status: status)
    #expect(try play.get(Self.page(Self.document).text).status == 400)
    #expect(try play.lastRefusal()?.contains("the document of the client") == true)
  }

  @Test(arguments: ["https://app.example/credmgr.json", "https://10.0.0.1/credmgr.json", "https://["])
  func noDocumentIsReadFromElsewhere(_ client: String) throws {
    let play = try Self.play(document: Self.client())
    #expect(try play.get(Self.page(client).text).status == 400)
    #expect(try play.lastRefusal()?.contains("of this machine") == true)
  }

  @Test func onlyTheListedRedirects() throws {
    let play = try Self.play(document: Self.client())
    #expect(try play.get(Self.page(Self.document, redirect: "http://127.0.0.1/callback").text).status == 400)
    #expect(try play.lastRefusal()?.contains("redirect URI") == true)
  }

  @Test func aClientIsRegistered() throws {
    let play = try Self.play()
    let request = try play.client.registrationRequest(
      redirectURI: "http://127.0.0.1/callback", initialAccessToken: nil, nonce: play.nonce())
    let registration = try play.client.clientRegistration(play.send(request))
    #expect(registration.identifier == play.client.identifier)
    #expect(registration.secret == Secret("s3cret"))
    #expect(registration.authentication == .clientSecretPost)
    let nowhere = try play.client.registrationRequest(redirectURI: nil, initialAccessToken: nil, nonce: play.nonce())
    #expect(throws: OAuthError.self) { try play.client.clientRegistration(play.send(nowhere)) }
    let bad = try play.client.registrationRequest(
      redirectURI: "not a url", initialAccessToken: nil, nonce: play.nonce())
    let error = try #require(throws: OAuthError.self) { try play.client.clientRegistration(play.send(bad)) }
    guard case .refused(.registration, let refusal) = error else { throw error }
    #expect(refusal.code == "invalid_redirect_uri")
  }
}
