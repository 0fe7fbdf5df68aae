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
}

/// One leg, with everything in which it differs from others. docs/architecture.md says what else a new leg needs.
package struct Leg: Sendable {
  /// The credentials in the response: a token, which would be lost if it were not stored, or those of RFC 5849, 2.1.
  package enum Issue: Sendable { case nothing, temporaryCredentials, token }

  /// The name in metadata (RFC 8414, 2; RFC 8628, 4; RFC 9126, 5; OpenID Connect Discovery 1.0, 3; CIBA Core 1.0, 4).
  package var metadataName: String?
  package var demand: (name: String, specification: String)?  // The member of metadata that makes a leg obligatory.
  var method = "POST"
  var send = ParameterPlacement.form
  package var issues = Issue.nothing
  var fields: [ResponseField] = []  // Those that are not read at every leg with tokens.
  /// The endpoint whose description this one inherits, except `parameters`, because an addition to one exchange rarely
  /// belongs to another.
  package var base: EndpointKind?
  /// Whether its parameters direct the response of a consent, so that no descriptor may set them.
  package var asksForConsent = false
  /// Whether a login with consent uses it, so that its server must not be another provider's (RFC 9700, 4.4).
  package var takesPartInConsent = false
  /// The endpoints that receive the result of the user's consent on this page; none if it is not such a page.
  package var receivers: [EndpointKind] = []
  package var authenticatesClient = true  // With its secret.
  package var isPublic = false  // Its requests carry no secret, so its server needs less trust.
  /// Whether leaving it out makes a login or its token less secure. Without an exchange, the token has more rights.
  /// Without a pushed request, the browser can read and change the request.
  package var protects = false
  package var grantType: String?
  package var parameter: String?  // Distinguishes it from other legs with the same URL.
  package var signedParameter: String?

  package var isPolled = false  // Whether the client repeats the request until the user has decided.

  package var issuesToken: Bool { issues == .token }
  package var issuesCredentials: Bool { issues != .nothing }
}

extension EndpointKind {
  package var leg: Leg {
    switch self {
    case .authorization:
      Leg(
        metadataName: "authorization_endpoint", method: "GET",
        fields: [.code, .state, .issuer, .oauthVerifier, .oauthToken, .oauthTokenSecret], asksForConsent: true,
        takesPartInConsent: true, receivers: [.token, .refresh], authenticatesClient: false,
        parameter: "response_type", signedParameter: "oauth_token")
    case .pushedAuthorizationRequest:
      Leg(
        metadataName: "pushed_authorization_request_endpoint",
        demand: ("require_pushed_authorization_requests", "RFC 9126"), fields: [.requestURI], asksForConsent: true,
        takesPartInConsent: true, protects: true, parameter: "response_type")
    case .token:
      Leg(
        metadataName: "token_endpoint", issues: .token, fields: [.oauthToken, .oauthTokenSecret, .oauthSessionHandle],
        takesPartInConsent: true, grantType: "authorization_code", parameter: "code", signedParameter: "oauth_verifier")
    case .refresh:
      Leg(
        issues: .token, fields: [.oauthToken, .oauthTokenSecret, .oauthSessionHandle], base: .token,
        takesPartInConsent: true, grantType: "refresh_token", parameter: "refresh_token",
        signedParameter: "oauth_session_handle")
    case .clientCredentials: Leg(issues: .token, base: .token, grantType: "client_credentials")
    case .deviceAuthorization:
      Leg(
        metadataName: "device_authorization_endpoint",
        fields: [.deviceCode, .userCode, .verificationURI, .verificationURIComplete, .interval],
        takesPartInConsent: true, receivers: [.deviceToken, .refresh])
    case .deviceToken:
      Leg(
        issues: .token, base: .token, takesPartInConsent: true,
        grantType: "urn:ietf:params:oauth:grant-type:device_code", parameter: "device_code", isPolled: true)
    case .backchannelAuthentication:
      Leg(
        metadataName: "backchannel_authentication_endpoint", fields: [.interval, .authReqID], takesPartInConsent: true,
        receivers: [.backchannelToken, .refresh], parameter: "login_hint")
    case .backchannelToken:
      Leg(
        issues: .token, base: .token, takesPartInConsent: true, grantType: "urn:openid:params:grant-type:ciba",
        parameter: "auth_req_id", isPolled: true)
    case .temporaryCredentials:
      Leg(
        issues: .temporaryCredentials, fields: [.oauthCallbackConfirmed, .oauthToken, .oauthTokenSecret],
        takesPartInConsent: true, authenticatesClient: false, signedParameter: "oauth_callback")
    case .introspection: Leg(metadataName: "introspection_endpoint", parameter: "token")
    case .tokenExchange:
      Leg(
        issues: .token, protects: true, grantType: "urn:ietf:params:oauth:grant-type:token-exchange",
        parameter: "subject_token")
    case .revocation: Leg(metadataName: "revocation_endpoint", parameter: "token")
    case .identity: Leg(metadataName: "userinfo_endpoint", method: "GET", authenticatesClient: false)
    case .registration:
      Leg(
        metadataName: "registration_endpoint", send: .json,
        fields: [
          .clientID, .clientSecret, .clientSecretExpiresAt, .tokenEndpointAuthMethod, .registrationAccessToken,
          .registrationClientURI,
        ], authenticatesClient: false, parameter: "redirect_uris")
    case .endSession: Leg(metadataName: "end_session_endpoint", method: "GET", authenticatesClient: false)
    case .keySet: Leg(metadataName: "jwks_uri", method: "GET", authenticatesClient: false, isPublic: true)
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

  /// Whether the provider knows the client's secret too (RFC 6749, 2.3.1; RFC 7523, 2.2).
  package var sharesSecret: Bool { self == .clientSecretBasic || self == .clientSecretPost || self == .clientSecretJWT }

  /// The algorithm of the client's JWT unless `assertion` names another; `nil` for methods without a JWT.
  package var usualAlgorithm: AssertionAlgorithm? {
    switch self {
    case .clientSecretJWT: .hs256
    case .privateKeyJWT: .rs256
    default: nil
    }
  }
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
