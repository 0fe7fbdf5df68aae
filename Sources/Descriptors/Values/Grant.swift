/// How a credential is obtained. What others than its own file have to know of a grant stands in the table of `traits`.
package enum Grant: String, Sendable, CaseIterable {
  /// RFC 6749, 4.1
  case authorizationCode = "authorization_code"
  /// RFC 6749, 4.2
  case implicit
  /// RFC 8628
  case deviceCode = "device_code"
  /// RFC 6749, 4.4
  case clientCredentials = "client_credentials"
  /// RFC 5849
  case oauth1

  /// What a grant needs, and how others call it.
  package struct Traits: Sendable {
    /// The endpoints without which the grant is not possible.
    package var requiredEndpoints: [EndpointKind]
    /// Whether a client has to be registered before.
    package var needsClient = true
    /// Whether a person consents; otherwise the client gets a token of its own.
    package var needsPerson = true
    /// Whether the consent comes back to a redirect URI, and so needs a browser that can reach this machine.
    package var redirects = false
    /// What a credential is renewed with.
    package var renewal = Renewal.refreshToken
    /// What a request shows of a token.
    package var binding = Binding.bearer
    /// The token in the answer of a token endpoint.
    package var tokenField = ResponseField.accessToken
    /// RFC 7591, 2, `grant_types`; `nil` for what is no grant of OAuth 2.
    package var registeredName: String?
    /// RFC 7591, 2, `response_types`.
    package var responseType: String?
  }

  /// What a request shows of a token.
  package enum Binding: Sendable {
    /// The token itself (RFC 6750).
    case bearer
    /// A signature with the token's secret (RFC 5849, 3.4).
    case signature
  }

  /// What a credential is renewed with.
  package enum Renewal: Sendable {
    /// RFC 6749, 6
    case refreshToken
    /// OAuth Session 1.0
    case sessionHandle
    /// Nothing that is used up: a token is obtained anew, by the request of a login.
    case login
  }

  /// The table.
  package var traits: Traits {
    switch self {
    case .authorizationCode:
      Traits(
        requiredEndpoints: [.authorization, .token], redirects: true, registeredName: rawValue, responseType: "code")
    case .implicit:
      Traits(requiredEndpoints: [.authorization], redirects: true, registeredName: rawValue, responseType: "token")
    case .deviceCode:
      Traits(
        requiredEndpoints: [.deviceAuthorization, .deviceToken],
        registeredName: "urn:ietf:params:oauth:grant-type:device_code")
    case .clientCredentials:
      Traits(requiredEndpoints: [.clientCredentials], needsPerson: false, renewal: .login, registeredName: rawValue)
    case .oauth1:
      Traits(
        requiredEndpoints: [.temporaryCredentials, .authorization, .token], redirects: true, renewal: .sessionHandle,
        binding: .signature, tokenField: .oauthToken)
    }
  }

  /// The endpoint that renews a credential.
  package var refreshEndpoint: EndpointKind { traits.renewal == .login ? traits.requiredEndpoints[0] : .refresh }
}
