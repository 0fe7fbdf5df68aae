import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON

extension Simulation {
  /// Registers a client (RFC 7591, 3.2.1). Every caller gets the same client.
  func registration(_ parameters: EndpointParameters, _ answer: inout AnswerContent) throws(Refusal) {
    try parameters.checkRulesAndHeaders(knowledge())
    if let redirects = try parameters.required("redirect_uris"), !areURLs(redirects) {
      throw .redirectMismatch.with(code: "invalid_redirect_uri")
    }
    answer.status = 201
    answer.set(.clientID, .string(Self.clientIdentifier))
    if clientAuthentication != .none {
      answer.set(.clientSecret, .string(clientSecret.reveal()))
      answer.set(.clientSecretExpiresAt, .integer(0))
    }
    answer.set(.tokenEndpointAuthMethod, .string(clientAuthentication.rawValue))
  }

  /// Whether the redirects to register, one or a list, are valid.
  private func areURLs(_ text: String) -> Bool {
    let list = (try? JSONValue.parse(Array(text.utf8)))?.elements?.map { $0.text ?? "" }
    let redirects = list ?? [text]
    return !redirects.isEmpty && redirects.allSatisfy { Descriptor.isOutOfBand($0) || (try? URI(parsing: $0)) != nil }
  }

  // MARK: The standard authorization server

  /// The beginning of the tokens and pages of the standard server.
  static let standardMark = "standard-"

  /// The path of the endpoints of the standard server.
  static let standardPath = "/oauth.example/"

  private static let standardText = """
    provider: simulator
    grant: authorization_code
    endpoints:
      authorization: https://oauth.example/authorize
      token: https://oauth.example/token
      registration: https://oauth.example/register
    client: { authentication: none }
    """

  /// The standard server for a provider whose own requests no client could learn from metadata, such as one that
  /// registers no clients; `nil` if the metadata describes the provider itself, or if it has no login in a browser.
  var standardServer: Descriptor? {
    let isOwn =
      (descriptor.usesCertificates || descriptor.tokenBinding.needsKey
        || descriptor.endpoints[.registration]?.send == .json) && isOwnMetadata
    guard !isOAuth1, !isOwn, descriptor.grants.contains(where: \.traits.redirects) else { return nil }
    let library = DescriptorLibrary(directories: []) { _ in nil }
    var server = try? library.load(Array(Self.standardText.utf8), name: "").descriptor
    server?.scope.requested = descriptor.scope.requested.filter { $0 != "openid" }
    return server
  }

  /// Answers a request to the standard server, or one with its token; `nil` for any other request.
  mutating func standardAnswer(_ request: HTTPRequest) -> LoopbackServer.Answer? {
    guard var server = standard.first, isForStandardServer(request) else { return nil }
    server.state = state
    let answer = server.answer(request, certificate: state.certificate)
    state = server.state
    return answer
  }

  private func isForStandardServer(_ request: HTTPRequest) -> Bool {
    let path = request.uri.path
    let isMetadata = Self.metadataPaths.contains(path) || path == Self.resourceMetadataPath + Self.resourcePath
    if isMetadata || path.hasPrefix(Self.standardPath) { return true }
    if path == Self.controlPrefix + "consent" {
      let form = FormParameters(decoding: String(decoding: request.body, as: UTF8.self))
      return form[first: "request"]?.hasPrefix(Self.standardMark) == true
    }
    guard path == Self.resourcePath else { return false }
    return request.fields["Authorization"]?.hasPrefix("Bearer " + Self.standardMark) == true
  }

  // MARK: Metadata

  private static let metadataPaths = [
    "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server",
  ]

  /// Whether the metadata at this address can describe the provider itself.
  private var isOwnMetadata: Bool { (issuer ?? origin) == origin && !isOAuth1 }

  private static let resourceMetadataPath = "/.well-known/oauth-protected-resource"

  /// Whether `credmgr setup` can log in to the address of the resource.
  var registersClients: Bool { !standard.isEmpty || descriptor.endpoints[.registration] != nil && isOwnMetadata }

  /// The address that replaces the provider's API.
  private static let resourcePath = controlPrefix + "resource"

  /// Returns the address of the metadata for a client without a token (RFC 9728, 5.1); `nil` without metadata. It is on
  /// the server of the request, because a client believes no other server (7.3).
  func resourceMetadataURL(at server: String) -> String? {
    !standard.isEmpty || isOwnMetadata ? server + Self.resourceMetadataPath + Self.resourcePath : nil
  }

  /// Returns the metadata of the resource (RFC 9728, 3); `nil` for another address.
  func resourceMetadata(_ request: HTTPRequest) -> HTTPResponse? {
    let server = request.uri.origin
    guard request.method == "GET", server + request.uri.path == resourceMetadataURL(at: server) else { return nil }
    let members: [JSONValue.Member] = [
      .init("resource", .string(server + Self.resourcePath)), .init("authorization_servers", [.string(origin)]),
      .init("scopes_supported", .array(descriptor.scope.requested.map(JSONValue.string))),
      .init("bearer_methods_supported", ["header"]),
    ]
    return .json(200, .object(members + proofMetadata(isResource: true)))
  }

  /// Returns the metadata (RFC 8414, 3; OpenID Connect Discovery 1.0, 4); `nil` if the issuer is elsewhere.
  func metadata(_ request: HTTPRequest) -> HTTPResponse? {
    guard request.method == "GET", Self.metadataPaths.contains(request.uri.path), isOwnMetadata else {
      return nil
    }
    let endpoints = EndpointKind.allCases.compactMap { kind -> (kind: EndpointKind, member: JSONValue.Member)? in
      guard let name = kind.leg.metadataName, let url = try? descriptor.endpoints[kind]?.url.filled(value) else {
        return nil
      }
      return (kind, .init(name, .string(url.text)))
    }
    var members: [JSONValue.Member] = [.init("issuer", .string(origin))] + endpoints.map(\.member)
    for demand in endpoints.compactMap(\.kind.leg.demand) { members.append(.init(demand.name, .boolean(true))) }
    let traits = descriptor.grants.map(\.traits)
    let method = descriptor.pkce == .s256Hexadecimal ? nil : descriptor.pkce.wireName
    let lists = [
      ("grant_types_supported", traits.compactMap(\.registeredName)),
      ("response_types_supported", traits.compactMap(\.responseType)),
      ("token_endpoint_auth_methods_supported", [clientAuthentication.rawValue]),
      ("code_challenge_methods_supported", method.map { [$0] } ?? []),
      ("scopes_supported", descriptor.scope.requested),
      (
        "backchannel_token_delivery_modes_supported",
        descriptor.endpoints[.backchannelAuthentication] == nil ? [] : ["poll"]
      ),
      ("authorization_details_types_supported", descriptor.authorizationDetails.types),
    ]
    for (name, texts) in lists where !texts.isEmpty || name == "response_types_supported" {
      members.append(.init(name, .array(texts.map(JSONValue.string))))
    }
    members.append(.init("authorization_response_iss_parameter_supported", .boolean(issuer != nil)))
    members += proofMetadata() + certificateMetadata(endpoints)
    if isStandard { members.append(.init("client_id_metadata_document_supported", .boolean(true))) }
    return .json(200, .object(members))
  }
}
