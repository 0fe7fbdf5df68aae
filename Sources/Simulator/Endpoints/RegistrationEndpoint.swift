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

  private static let resourceMetadataPath = "/.well-known/oauth-protected-resource"

  /// The address that replaces the provider's API.
  private var resourcePath: String { Self.controlPrefix + "resource" }

  /// The address of the metadata for a client without a token (RFC 9728, 5.1); `nil` without metadata.
  var resourceMetadataURL: String? {
    (issuer ?? origin) == origin && !isOAuth1 ? origin + Self.resourceMetadataPath + resourcePath : nil
  }

  /// Returns the metadata of the resource (RFC 9728, 3); `nil` for another address.
  func resourceMetadata(_ request: HTTPRequest) -> HTTPResponse? {
    guard request.method == "GET", origin + request.uri.path == resourceMetadataURL else { return nil }
    return .json(
      200,
      [
        "resource": .string(origin + resourcePath), "authorization_servers": [.string(origin)],
        "scopes_supported": .array(descriptor.scope.requested.map(JSONValue.string)),
        "bearer_methods_supported": ["header"],
      ])
  }

  /// Returns the metadata (RFC 8414, 3; OpenID Connect Discovery 1.0, 4); `nil` if the issuer is elsewhere.
  func metadata(_ request: HTTPRequest) -> HTTPResponse? {
    let paths = ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"]
    guard request.method == "GET", paths.contains(request.uri.path), issuer ?? origin == origin, !isOAuth1 else {
      return nil
    }
    var members: [JSONValue.Member] = [.init("issuer", .string(origin))]
    for kind in EndpointKind.allCases {
      guard let name = kind.metadataName, let url = try? descriptor.endpoints[kind]?.url.filled(value) else { continue }
      members.append(.init(name, .string(url.text)))
    }
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
    if descriptor.endpoints[.pushedAuthorizationRequest] != nil {
      members.append(.init("require_pushed_authorization_requests", .boolean(true)))
    }
    if bindsTokens { members.append(.init("dpop_signing_alg_values_supported", ["ES256"])) }
    return .json(200, .object(members))
  }
}
