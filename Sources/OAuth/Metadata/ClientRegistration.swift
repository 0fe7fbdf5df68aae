import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrDescriptors
import CredmgrText

/// A client that a provider registered for a program (RFC 7591, 3.2.1).
package struct ClientRegistration: Sendable, Equatable {
  package var identifier: String
  package var secret: Secret?
  package var secretExpiresAt: Moment?  // `nil` if it never expires.
  package var authentication: ClientAuthentication?
  package var accessToken: Secret?
  package var uri: String?
}

extension ClientRegistration {
  /// Builds the request that deletes a registration (RFC 7592, 2.3).
  package static func deletion(at uri: URI, _ accessToken: Secret) throws(OAuthError) -> HTTPRequest {
    var request = HTTPRequest(method: "DELETE", uri: uri)
    try request.authorize(bearer: accessToken)
    request.fields.set("Accept", "application/json")
    return request
  }

  package static func isDeleted(_ response: HTTPResponse) throws(OAuthError) -> Bool {
    switch response.status {
    case 200..<300, 404, 410: return true
    case 405, 501: return false
    default:
      _ = try Answer(response, of: .registration, by: ResponseRules())
      return false
    }
  }
}

extension Client {
  /// Builds the registration request (RFC 7591, 3.1). It ignores this client's own identifier.
  package func registrationRequest(
    redirectURI: String?, initialAccessToken: Secret?, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    let isJSON = try endpoint(.registration).send == .json
    var parameters = FormParameters()
    for member in metadata(
      of: descriptor.grants, redirectURIs: redirectURI.map { [$0] } ?? [],
      authentication: descriptor.client.authentication ?? .clientSecretBasic)
    {
      let list = member.value.elements?.compactMap(\.text).joined(separator: " ")
      parameters.append(member.name, (isJSON ? nil : list) ?? member.value.text ?? member.value.encoded)
    }
    let scope = joined(descriptor.scope.requested)
    var request = try request(
      .registration, parameters, exchange: ["redirect_uri": redirectURI ?? "", "scope": scope],
      lists: Self.listsOfRegistration, nonce: nonce)
    if let initialAccessToken { try request.authorize(bearer: initialAccessToken) }
    return request
  }

  /// The values that are lists (RFC 7591, 2; OpenID Connect Dynamic Client Registration 1.0, 2; OpenID Connect
  /// RP-Initiated Logout 1.0, 3.1).
  private static let listsOfRegistration: Set = [
    "redirect_uris", "grant_types", "response_types", "contacts", "request_uris", "default_acr_values",
    "post_logout_redirect_uris",
  ]

  /// Returns the metadata of this client (RFC 7591, 2).
  func metadata(
    of grants: [Grant], redirectURIs: [String], authentication: ClientAuthentication
  ) -> [JSONValue.Member] {
    func list(_ texts: [String]) -> JSONValue { .array(texts.map(JSONValue.string)) }
    let names = grants.compactMap(\.traits.registeredName)
    let refreshes = descriptor.endpoints[.refresh] != nil && grants.contains { $0.traits.renewal != .login }
    // Clients of other types may not redirect to loopback (OpenID Connect Dynamic Client Registration 1.0, 2).
    var members: [JSONValue.Member] = [.init("client_name", "credmgr"), .init("application_type", "native")]
    if !redirectURIs.isEmpty { members.append(.init("redirect_uris", list(redirectURIs))) }
    members.append(.init("grant_types", list(names + (refreshes ? ["refresh_token"] : []))))
    members.append(.init("response_types", list(grants.compactMap(\.traits.responseType))))
    members.append(.init("token_endpoint_auth_method", .string(authentication.rawValue)))
    let scope = joined(descriptor.scope.requested)
    if !scope.isEmpty { members.append(.init("scope", .string(scope))) }
    return members
  }

  /// Reads the registration response (RFC 7591, 3.2).
  package func clientRegistration(_ response: HTTPResponse) throws(OAuthError) -> ClientRegistration {
    let kind = EndpointKind.registration
    let answer = try Answer(response, of: kind, by: endpoint(kind).response)
    guard let identifier = answer.text(.clientID) else { throw .missingField(kind, .clientID) }
    // RFC 6749, A.1 limits identifiers to printable ASCII.
    guard identifier.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else { throw .malformedField(kind, .clientID) }
    let secret = try answer.secret(.clientSecret)
    var authentication: ClientAuthentication?
    if let method = answer.text(.tokenEndpointAuthMethod) {
      authentication = ClientAuthentication(rawValue: method)
      guard let authentication, authentication != .accessToken, authentication != .privateKeyJWT,
        !authentication.usesCertificate,
        authentication == ClientAuthentication.none || secret != nil
      else { throw .unknownAuthentication(method) }
    }
    let expiresAt = answer.integer(.clientSecretExpiresAt)
    let uri = answer.text(.registrationClientURI).flatMap { try? URI(parsing: $0) }
    return ClientRegistration(
      identifier: identifier, secret: secret,
      secretExpiresAt: expiresAt.flatMap { $0 > 0 ? Moment(secondsSince1970: $0) : nil },
      authentication: authentication, accessToken: try answer.secret(.registrationAccessToken), uri: uri?.text)
  }
}

extension HTTPRequest {
  fileprivate mutating func authorize(bearer token: Secret) throws(OAuthError) {
    let value = "Bearer " + token.reveal()
    guard HTTPFields.isValid(value: value) else { throw .malformedHeader(name: "Authorization") }
    fields.set("Authorization", value)
  }
}
