/// One HTTP exchange of a grant. The raw values are the keys under `endpoints`.
package enum EndpointKind: String, Sendable, CaseIterable {
  case authorization  // RFC 6749, 3.1; the page of RFC 5849, 2.2
  case pushedAuthorizationRequest = "pushed_authorization_request"  // RFC 9126, 2
  case token  // RFC 6749, 3.2; RFC 5849, 2.3
  case refresh  // RFC 6749, 6; OAuth Session 1.0
  case clientCredentials = "client_credentials"  // RFC 6749, 4.4
  case deviceAuthorization = "device_authorization"  // RFC 8628, 3.1
  case deviceToken = "device_token"  // RFC 8628, 3.4
  case backchannelAuthentication = "backchannel_authentication"  // CIBA Core 1.0, 7
  case backchannelToken = "backchannel_token"  // CIBA Core 1.0, 10.1
  case temporaryCredentials = "temporary_credentials"  // RFC 5849, 2.1, also called request token
  case introspection  // RFC 7662, 2.1
  case tokenExchange = "token_exchange"  // RFC 8693, 2.1: follows the token of a login
  case revocation  // RFC 7009, 2.1
  case identity  // OpenID Connect Core 1.0, 5.3, or the provider's own
  case registration  // RFC 7591, 3, or the provider's own
  case endSession = "end_session"  // The page that ends the browser's session (OpenID Connect RP-Initiated Logout, 2).
  case keySet = "jwks"  // The keys that sign ID tokens (RFC 7517, 5; OpenID Connect Discovery 1.0, 3, `jwks_uri`).

  /// The name in metadata (RFC 8414, 2; RFC 8628, 4; RFC 9126, 5; OpenID Connect Discovery 1.0, 3;
  /// CIBA Core 1.0, 4), or `nil`.
  package var metadataName: String? {
    switch self {
    case .authorization, .pushedAuthorizationRequest, .token, .deviceAuthorization, .backchannelAuthentication,
      .introspection, .revocation, .registration:
      rawValue + "_endpoint"
    case .identity: "userinfo_endpoint"
    case .endSession: "end_session_endpoint"
    case .keySet: "jwks_uri"
    case .refresh, .clientCredentials, .deviceToken, .backchannelToken, .temporaryCredentials, .tokenExchange: nil
    }
  }

  /// Whether its parameters direct the response of a consent, so that no descriptor may set them.
  package var asksForConsent: Bool { self == .authorization || self == .pushedAuthorizationRequest }

  /// Whether the response may contain a token, which would be lost if it were not stored.
  package var issuesToken: Bool {
    switch self {
    case .token, .refresh, .clientCredentials, .deviceToken, .backchannelToken, .tokenExchange: true
    default: false
    }
  }

  /// Whether the response may contain credentials: a token, or temporary ones (RFC 5849, 2.1).
  package var issuesCredentials: Bool { issuesToken || self == .temporaryCredentials }

  /// The endpoints that receive the result of the user's consent on this page; none if it is not such a page.
  package var receivers: [EndpointKind] {
    switch self {
    case .authorization: [.token, .refresh]
    case .deviceAuthorization: [.deviceToken, .refresh]
    case .backchannelAuthentication: [.backchannelToken, .refresh]
    default: []
    }
  }

  /// Whether a login with consent uses it, so that its server must not be another provider's (RFC 9700, 4.4).
  package var takesPartInConsent: Bool {
    switch self {
    case .authorization, .pushedAuthorizationRequest, .token, .refresh, .deviceAuthorization, .deviceToken,
      .backchannelAuthentication, .backchannelToken, .temporaryCredentials:
      true
    default: false
    }
  }

  /// Whether the client authenticates with its secret.
  package var authenticatesClient: Bool {
    switch self {
    case .authorization, .identity, .registration, .temporaryCredentials, .keySet, .endSession: false
    default: true
    }
  }

  /// Whether its requests carry no secret, so that its server needs less trust.
  package var isPublic: Bool { self == .keySet }

  /// Whether leaving it out makes a login or its token less secure. Without an exchange, the token has more rights.
  /// Without a pushed request, the browser can read and change the request.
  package var protects: Bool { self == .tokenExchange || self == .pushedAuthorizationRequest }

  /// The endpoint whose description this one inherits, except `parameters`, because an addition to one exchange rarely
  /// belongs to another.
  package var base: EndpointKind? {
    switch self {
    case .refresh, .clientCredentials, .deviceToken, .backchannelToken: .token
    default: nil
    }
  }
}

package enum ParameterPlacement: String, Sendable, CaseIterable {
  case query
  case form
  case json
  case fragment  // After the fragment's own `?`: a page whose routes begin with `#`.
}

extension ClientAuthentication {
  /// Whether the client authenticates with its certificate (RFC 8705, 2).
  package var usesCertificate: Bool { self == .tlsClientAuth || self == .selfSignedTLSClientAuth }
}

/// The client's authentication (RFC 6749, 2.3; OpenID Connect Core 1.0, 9).
package enum ClientAuthentication: String, Sendable, CaseIterable {
  /// HTTP Basic with percent-encoded identifier and secret (RFC 6749, 2.3.1).
  case clientSecretBasic = "client_secret_basic"
  case clientSecretPost = "client_secret_post"
  case privateKeyJWT = "private_key_jwt"  // RFC 7523, 2.2, under OpenID Connect's name
  case clientSecretJWT = "client_secret_jwt"
  case tlsClientAuth = "tls_client_auth"  // A certificate of an authority (RFC 8705, 2.1).
  case selfSignedTLSClientAuth = "self_signed_tls_client_auth"  // A registered certificate (RFC 8705, 2.2).
  case none  // `client_id` alone (a public client).
  case accessToken = "access_token"  // The access token of the request, presented as to the API.
}

package struct HeaderTemplate: Sendable, Equatable {
  package var name: String
  package var value: Template  // A header is left out if a name in its template has no value.
}

package struct ParameterRule: Sendable, Equatable {
  package var name: String
  package var value: Template?  // `nil` drops the parameter.
}

package struct Endpoint: Sendable, Equatable {
  package var url = URLTemplate(Template(literal: ""))
  package var method: String
  package var send: ParameterPlacement
  package var inQuery: [String] = []  // Sent in the query although the others are in a body.
  /// Parameters whose value is sent unchanged: not percent-encoded in a query, and JSON in a JSON body.
  package var verbatim: [String] = []
  package var parameters: [ParameterRule] = []
  package var choosing: [ParameterRule] = []  // Parameters that make the provider ask which user logs in.
  package var rename: [String: String] = [:]
  package var authentication: ClientAuthentication?  // `nil` means the descriptor's `client` decides.
  package var headers: [HeaderTemplate] = []
  package var response = ResponseRules()
  package var tokens = [ResponseField.accessToken]  // One request each.
  /// The exchanges after which this one runs: a login, a login of the client itself, or each refresh (Bullhorn).
  package var followed = [EndpointKind.token]

  /// Whether the descriptor has a value of its own for a parameter.
  package func sets(_ name: String) -> Bool { parameters.contains { $0.name == name && $0.value != nil } }

  package var followsRefresh: Bool { followed.contains(.refresh) }
}
