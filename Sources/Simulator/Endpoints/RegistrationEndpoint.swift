import HTTP
import JSON
import Descriptors

extension Simulation {
  /// Registers a client (RFC 7591, 3.2.1). There is only one, and whoever asks gets it.
  mutating func registration(_ request: HTTPRequest, _ endpoint: Endpoint) -> HTTPResponse {
    do throws(Refusal) {
      let parameters = try EndpointParameters(request, endpoint)
      try parameters.checkRules(knowledge())
      try checkHeaders(request, endpoint.headers, knowledge())
      let redirect = try parameters.required("redirect_uris")
      if let redirect, !isRegistered(redirect) {
        throw Refusal("invalid_redirect_uri", .redirectMismatch)
      }
      var content = AnswerContent(endpoint.response)
      content.setSuccess()
      content.set(.clientID, .string(SimulatedProvider.clientIdentifier))
      let method = descriptor.client.authentication ?? .clientSecretBasic
      if method != .none {
        content.set(.clientSecret, .string(clientSecret.reveal()))
        content.set(.clientSecretExpiresAt, .integer(0))
      }
      content.set(.tokenEndpointAuthMethod, .string(method.rawValue))
      return content.response(201)
    } catch {
      state.log.refused(at: EndpointKind.registration.rawValue, error)
      return response(error, endpoint.response)
    }
  }

  /// Whether redirects that are to be registered, one or a list, are URLs.
  private func isRegistered(_ text: String) -> Bool {
    let list = (try? JSONValue.parse(Array(text.utf8)))?.elements?.map { $0.text ?? "" }
    let redirects = list ?? [text]
    return !redirects.isEmpty && redirects.allSatisfy { Descriptor.isOutOfBand($0) || (try? URI(parsing: $0)) != nil }
  }

  /// The path of the metadata (RFC 8414, 3; OpenID Connect Discovery 1.0, 4).
  static let metadataPaths = ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"]

  /// What the provider says of itself. One whose issuer is elsewhere is not found here.
  mutating func metadata(_ request: HTTPRequest) -> HTTPResponse? {
    guard request.method == "GET", Self.metadataPaths.contains(request.uri.path), issuer.map({ $0 == origin }) ?? true,
      !isOAuth1
    else { return nil }
    let names: [(EndpointKind, String)] = [
      (.authorization, "authorization_endpoint"), (.token, "token_endpoint"),
      (.deviceAuthorization, "device_authorization_endpoint"), (.revocation, "revocation_endpoint"),
      (.introspection, "introspection_endpoint"), (.identity, "userinfo_endpoint"),
      (.registration, "registration_endpoint"),
    ]
    var members: [JSONValue.Member] = [.init("issuer", .string(origin))]
    for (kind, name) in names {
      guard let url = descriptor.endpoints[kind].flatMap({ try? $0.url.filled(value) }) else { continue }
      members.append(.init(name, .string(url.text)))
    }
    func list(_ name: String, _ texts: [String]) {
      members.append(.init(name, .array(texts.map(JSONValue.string))))
    }
    let grants = descriptor.grants.map { grant in
      grant == .deviceCode ? "urn:ietf:params:oauth:grant-type:device_code" : grant.rawValue
    }
    list("grant_types_supported", grants)
    list(
      "response_types_supported",
      (descriptor.grants.contains(.authorizationCode) ? ["code"] : [])
        + (descriptor.grants.contains(.implicit) ? ["token"] : []))
    list("token_endpoint_auth_methods_supported", [(descriptor.client.authentication ?? .clientSecretBasic).rawValue])
    if let method = descriptor.pkce.standardName { list("code_challenge_methods_supported", [method]) }
    if !descriptor.scope.requested.isEmpty { list("scopes_supported", descriptor.scope.requested) }
    members.append(.init("authorization_response_iss_parameter_supported", .boolean(issuer != nil)))
    return .json(200, .object(members))
  }
}

extension PKCEMethod {
  /// The name in metadata (RFC 8414, 2); `nil` for what has none.
  fileprivate var standardName: String? {
    switch self {
    case .s256, .plain: rawValue
    case .s256Hexadecimal, .none: nil
    }
  }
}
