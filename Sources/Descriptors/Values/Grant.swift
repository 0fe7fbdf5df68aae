/// A grant. The table `traits` contains everything that other files need to know about it.
package enum Grant: String, Sendable, CaseIterable {
  case authorizationCode = "authorization_code"  // RFC 6749, 4.1
  case implicit  // RFC 6749, 4.2
  case deviceCode = "device_code"  // RFC 8628
  case ciba  // CIBA Core 1.0: the user confirms on another device, to which the provider sends the question.
  case clientCredentials = "client_credentials"  // RFC 6749, 4.4
  case oauth1  // RFC 5849
  case apiKey = "api_key"  // A key that the user makes at the provider.
  case basic  // A user name and a password (RFC 7617).
  case secrets  // Values with names, which the descriptor lists.
  case session  // Values that the user types, which the provider exchanges for a token.
  case jwtBearer = "jwt_bearer"  // RFC 7523, 2.1: a JWT that the user's private key signs, or that another issuer made.
  case tokenExchange = "token_exchange"  // RFC 8693: the token of another issuer, such as the ID token of a CI.

  package struct Traits: Sendable {
    package var requiredEndpoints: [EndpointKind]
    package var optionalEndpoints: [EndpointKind] = []
    package var needsClient = true
    package var needsPerson = true
    /// The consent returns to a redirect URI, so it needs a browser that can reach this machine.
    package var redirects = false
    package var renewal = Renewal.refreshToken
    package var binding = Binding.bearer
    package var tokenField = ResponseField.accessToken
    package var registeredName: String?  // RFC 7591, 2, `grant_types`; `nil` if not a grant of OAuth 2.
    package var responseType: String?  // RFC 7591, 2, `response_types`
    package var rulesKey: String?  // The key of the rules that this grant alone reads; `nil` if it has none.
    /// The words for a credential that the user types; `nil` if the provider issues it during the login.
    package var typed: String?
    /// The words for what the user brings to get tokens with; `nil` if it is the credential itself, or nothing.
    package var brought: String?
    package var signsJWT = false  // Whether the user's private key signs a JWT for the token, or as the token.
    package var kind = "OAuth"  // The words for the credential in lists.
    package var isInVariables = false  // Whether the first secret variable of a login is the credential.
    package var isKey = false  // One secret that the user makes at the provider, and that is used like a token.
    package var alwaysHasSecret = false  // Whether every client has a secret.
    package var hasOAuth2Defaults = true  // Whether the defaults of the descriptor language are those of the grant.
    package var tokenSecretField: ResponseField?  // The secret that belongs to the token; `nil` if it has none.
    package var variables: [Variable] = []  // The variables of each login in addition to the descriptor's.

    package var endpoints: [EndpointKind] { requiredEndpoints + optionalEndpoints }
    /// Whether the provider asks the user to consent, in one of the ways of OAuth 2.0.
    package var asksForConsent: Bool { hasOAuth2Defaults && requiredEndpoints.contains { !$0.leg.receivers.isEmpty } }
    /// The words for what each login prompts for; `nil` if the provider asks the user.
    package var asked: String? { typed ?? brought }
  }

  package enum Binding: Sendable, Equatable {
    case bearer  // RFC 6750
    case signature  // RFC 5849, 3.4
    case pair  // RFC 7617, unless the descriptor has a `header_style`.
    case aws4(AWS4Rules)  // The key `aws4`, with any grant.
    case bound(TokenBindingRule)  // The key `token_binding`, with any grant that gets its token from an endpoint.
    case digest  // RFC 7616: the scheme `Digest`, with any grant.

    /// Whether a request needs only the token. Other programs cannot use a token that needs a key as well.
    package var isUsableAlone: Bool {
      switch self {
      case .bearer, .pair: true
      case .signature, .aws4, .bound, .digest: false
      }
    }

    /// The templates of a signature by a key that is never sent, whose values each request carries.
    package var templates: [Template] { if case .aws4(let rules) = self { rules.templates } else { [] } }

    /// The key or certificate that the provider binds tokens to.
    package var rule: TokenBindingRule { if case .bound(let rule) = self { rule } else { .none } }
  }

  package enum Renewal: Sendable {
    case refreshToken  // RFC 6749, 6
    case sessionHandle  // OAuth Session 1.0
    case login
    case none
  }

  package var traits: Traits {
    switch self {
    case .authorizationCode:
      Traits(
        requiredEndpoints: [.authorization, .token], optionalEndpoints: [.pushedAuthorizationRequest], redirects: true,
        registeredName: rawValue, responseType: "code")
    case .implicit:
      Traits(requiredEndpoints: [.authorization], redirects: true, registeredName: rawValue, responseType: "token")
    case .deviceCode:
      Traits(
        requiredEndpoints: [.deviceAuthorization, .deviceToken],
        registeredName: "urn:ietf:params:oauth:grant-type:device_code", rulesKey: "device")
    case .ciba:
      Traits(
        requiredEndpoints: [.backchannelAuthentication, .backchannelToken],
        registeredName: "urn:openid:params:grant-type:ciba",
        variables: [Variable(name: "login_hint", help: "user name at the provider", isAtLogin: true)])
    case .clientCredentials:
      Traits(requiredEndpoints: [.clientCredentials], needsPerson: false, renewal: .login, registeredName: rawValue)
    case .oauth1:
      Traits(
        requiredEndpoints: [.temporaryCredentials, .authorization, .token], redirects: true, renewal: .sessionHandle,
        binding: .signature, tokenField: .oauthToken, rulesKey: rawValue, kind: "OAuth 1.0a", alwaysHasSecret: true,
        hasOAuth2Defaults: false, tokenSecretField: .oauthTokenSecret)
    case .apiKey:
      Traits(
        requiredEndpoints: [], needsClient: false, renewal: .none, typed: "API key", kind: "API key", isKey: true)
    case .basic:
      Traits(
        requiredEndpoints: [], needsClient: false, renewal: .none, binding: .pair, typed: "password",
        kind: "user name and password",
        variables: [Variable(name: "username", pattern: "[^:]*", help: "user name", isAtLogin: true)])
    case .secrets:
      Traits(
        requiredEndpoints: [], needsClient: false, renewal: .none, typed: "secrets", kind: "secrets",
        isInVariables: true)
    case .session:
      Traits(requiredEndpoints: [.token], needsClient: false, renewal: .login, brought: "secrets", kind: "session")
    case .jwtBearer:
      Traits(
        requiredEndpoints: [], optionalEndpoints: [.token], needsClient: false, renewal: .login, brought: "key file",
        signsJWT: true, kind: "private key")
    case .tokenExchange:
      Traits(
        requiredEndpoints: [.token], needsClient: false, needsPerson: false, renewal: .login,
        registeredName: "urn:ietf:params:oauth:grant-type:token-exchange", brought: "subject token",
        kind: "token exchange",
        variables: [
          Variable(
            name: "subject_token", help: "token of the machine", isSecret: true, isAtLogin: true, isAtExchange: true)
        ])
    }
  }

  package var refreshEndpoint: EndpointKind { traits.renewal == .login ? traits.endpoints[0] : .refresh }
}

extension Descriptor {
  /// How a request presents a token of this grant.
  package func binding(of grant: Grant) -> Grant.Binding {
    if let aws4 { return .aws4(aws4) }
    if headerStyle.isDigest { return .digest }
    let binding = grant.traits.binding
    let hasEndpoint = grant.traits.endpoints.contains { $0.leg.issuesToken && endpoints[$0] != nil }
    if tokenBinding != .none, grant.traits.hasOAuth2Defaults, hasEndpoint { return .bound(tokenBinding) }
    return binding == .signature && headerStyle.location != .none ? .bearer : binding
  }

  /// The templates of signatures by a key that is never sent; empty if the provider gets the key itself.
  package var signatureTemplates: [Template] { grants.flatMap { binding(of: $0).templates } }
}
