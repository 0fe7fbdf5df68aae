import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText

/// The next step of a login, without I/O or a clock, so that a dry run goes through the same steps.
package enum Step {
  case send(Exchange)
  case browse(Page)
  case showCode(DeviceAuthorization, poll: Exchange)
  case awaitConsent(BackchannelAuthentication, poll: Exchange)
  case prompt(Prompt)
  case choose(Choice)
  case done(Credential, unreadable: [ResponseField])  // `unreadable` lists the fields that could not be read.

  package struct Exchange {
    package let kind: EndpointKind
    package var pause: DevicePolling?
    package let request: (RequestNonce) throws(OAuthError) -> HTTPRequest
    /// Returns the step that follows an answer received at `now`.
    package let read: (_ response: HTTPResponse, _ now: Moment) throws(OAuthError) -> Step
    package var onTimeout: (() -> Step)?  // The step after a poll without an answer; `nil` if that fails the login.
  }

  /// Elements of an answer, of which the login uses one.
  package struct Choice {
    package let list: ElementList
    /// Returns the next step, with the element at `place`.
    package let read: (_ place: Int) throws(OAuthError) -> Step
  }

  package struct Page {
    package var uri: URI
    package var validFor: Duration?  // The time in which the user must open it; `nil` if unlimited.
    /// Parameters of the page request that the answer must repeat.
    let expected: [(field: ResponseField, value: String)]
    let brings: ResponseField
    let login: LoginContext
    /// Reads the callback. If the error `isStray`, the callback is not an answer to this login: keep waiting.
    package let read: (_ parameters: FormParameters, _ now: Moment) throws(OAuthError) -> Step

    /// Whether the callback carries a token, rather than a code that only the client can use.
    package var bringsToken: Bool { brings == .accessToken }

    func parameters(bringing text: String) -> FormParameters {
      let rules = login.client.descriptor.endpoints[.authorization]?.response ?? ResponseRules()
      return FormParameters(
        (expected + [(brings, text)]).map { field, value in
          .init(name: rules.source(of: field).paths.first?.text ?? field.rawValue, value: value)
        })
    }

    /// Reads the parameters in a pasted line, which is an address or a code shown by the provider. A code without a
    /// redirect has no `state` to compare, because the user supplied it.
    package func parameters(pasted line: String, isCode: Bool) throws(OAuthError) -> FormParameters {
      let line = line.unwrapped
      guard isCode else {
        return try login.client.redirectParameters(
          pasted: line, redirectURI: login.redirectURI, inFragment: login.grant.callback(login.client) == .fragment)
      }
      if let parameters = login.client.outOfBandParameters(pasted: line) { return parameters }
      guard !line.isEmpty else { throw .notARedirect }
      return parameters(bringing: line)
    }
  }
}

/// Everything that a grant knows about a login.
package struct LoginContext {
  let grant: Grant
  let client: Client
  let scope: [String]
  let demands: ConsentDemands
  let redirectURI: String
  let person: PersonChoice?
  let random: any RandomSource
  let nonce: RequestNonce

  /// The redirect URI includes the listening port. It is empty for a grant without a callback.
  package init(
    _ grant: Grant, _ client: Client, scope: [String], demanding demands: ConsentDemands = ConsentDemands(),
    redirectURI: String, choosing person: PersonChoice? = nil, random: any RandomSource, nonce: RequestNonce
  ) {
    self.grant = grant
    self.client = client
    self.scope = scope
    self.demands = demands
    self.redirectURI = redirectURI
    self.person = person
    self.random = random
    self.nonce = nonce
  }

  package func begin() throws(OAuthError) -> Step { try grant.flow.begin(self) }

  /// Begins with a refresh token that another tool got for the same client, which replaces the consent.
  package func begin(refreshing token: Secret, now: Moment) -> Step {
    let client = client
    var previous = Credential(grant: grant, accessToken: Secret(""), obtainedAt: now)
    (previous.refreshToken, previous.importedFrom) = (token, token)
    (previous.requestedScope, previous.issuer) = (scope, client.issuer)
    let imported = previous
    return .send(
      Step.Exchange(kind: .refresh) { nonce throws(OAuthError) in
        try client.refreshRequest(imported, nonce: nonce)
      } read: { answer, now throws(OAuthError) in
        try client.end(client.outcome(answer, .refresh, refreshing: imported, element: 0, now: now))
      })
  }
}

package enum CallbackPart: Sendable {
  case query
  case fragment
}

/// The complete implementation of one grant.
protocol GrantFlow {
  /// Returns the part of the redirect that carries the parameters; `nil` for a grant without a redirect.
  static func callback(_ client: Client) -> CallbackPart?
  static func begin(_ login: LoginContext) throws(OAuthError) -> Step
  static func refreshRequest(
    _ credential: Credential, _ client: Client, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest
  /// Returns the credential with a new token if the client makes its tokens itself; otherwise `nil`.
  static func renewed(_ credential: Credential, _ client: Client, nonce: RequestNonce) throws(OAuthError) -> Credential?
}

extension GrantFlow {
  static func renewed(
    _ credential: Credential, _ client: Client, nonce: RequestNonce
  ) throws(OAuthError) -> Credential? { nil }

  static func callback(_ client: Client) -> CallbackPart? { nil }

  /// Builds the refresh request (RFC 6749, 6).
  static func refreshRequest(
    _ credential: Credential, _ client: Client, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    guard let refreshToken = credential.refreshToken else { throw .notRefreshable }
    let parameters: FormParameters = [("grant_type", "refresh_token"), ("refresh_token", refreshToken.reveal())]
    return try client.request(.refresh, parameters, credential: credential, nonce: nonce)
  }
}

extension Grant {
  /// Users can log in only with a grant that has an entry here.
  var flow: any GrantFlow.Type {
    switch self {
    case .authorizationCode: AuthorizationCodeGrant.self
    case .implicit: ImplicitGrant.self
    case .deviceCode: DeviceCodeGrant.self
    case .ciba: CIBAGrant.self
    case .clientCredentials: ClientCredentialsGrant.self
    case .oauth1: OAuth1Grant.self
    case .apiKey: APIKeyGrant.self
    case .basic: BasicGrant.self
    case .secrets: SecretsGrant.self
    case .session: SessionGrant.self
    case .jwtBearer: JWTBearerGrant.self
    case .tokenExchange: TokenExchangeGrant.self
    }
  }

  package func callback(_ client: Client) -> CallbackPart? { flow.callback(client) }
}

extension OAuthError {
  /// Whether the callback that caused this error was not an answer to this login.
  package var isStray: Bool {
    switch self {
    case .stateMissing, .stateMismatch, .tokenMismatch, .notARedirect, .foreignRedirect: true
    default: false
    }
  }
}
