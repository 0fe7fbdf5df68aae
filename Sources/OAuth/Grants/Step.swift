import Cryptography
import Descriptors
import HTTP
import Text

/// What comes next in a login, without I/O and clock: a login and its dry run go through the same steps.
package enum Step {
  case send(Exchange)
  case browse(Page)
  case showCode(DeviceAuthorization, poll: Exchange)
  case done(Credential, unreadable: [ResponseField])  // The fields are those of the answers that cannot be read.

  package struct Exchange {
    package let kind: EndpointKind
    package var pause: DevicePolling?
    package let request: (RequestNonce) throws(OAuthError) -> HTTPRequest
    /// The step after an answer, which came at `now`.
    package let read: (_ response: HTTPResponse, _ now: Moment) throws(OAuthError) -> Step
    package var onTimeout: (() -> Step)?  // `nil`: the login fails.
  }

  package struct Page {
    package var uri: URI
    /// What the answer has to have in it, because the page was given it.
    let expected: [(field: ResponseField, value: String)]
    let brings: ResponseField
    let login: LoginContext
    /// `OAuthError.isStray` says whether the parameters are no answer to this login at all, so that the wait goes on.
    package let read: (_ parameters: FormParameters, _ now: Moment) throws(OAuthError) -> Step

    /// Whether the answer has a token in it, and no code that is of use to the client alone.
    package var bringsToken: Bool { brings == .accessToken }

    func parameters(bringing text: String) -> FormParameters {
      let rules = login.client.descriptor.endpoints[.authorization]?.response ?? ResponseRules()
      return FormParameters(
        (expected + [(brings, text)]).map { field, value in
          .init(name: rules.source(of: field).paths.first?.text ?? field.rawValue, value: value)
        })
    }

    /// The parameters in a pasted line: an address, or a code that the provider shows. A code without a redirect has no
    /// `state` to compare: it was the person who brought it.
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

/// All that a grant knows of a login.
package struct LoginContext {
  let grant: Grant
  let client: Client
  let scope: [String]
  let redirectURI: String
  let person: PersonChoice?
  let random: any RandomSource
  let nonce: RequestNonce

  /// The redirect URI has the port that is listened on, and is empty for a grant without a callback.
  package init(
    _ grant: Grant, _ client: Client, scope: [String], redirectURI: String, choosing person: PersonChoice? = nil,
    random: any RandomSource, nonce: RequestNonce
  ) {
    self.grant = grant
    self.client = client
    self.scope = scope
    self.redirectURI = redirectURI
    self.person = person
    self.random = random
    self.nonce = nonce
  }

  package func begin() throws(OAuthError) -> Step { try grant.flow.begin(self) }
}

package enum CallbackPart: Sendable {
  case query
  case fragment
}

/// A grant: one file with all of it.
protocol GrantFlow {
  /// `nil` for a grant without a redirect.
  static func callback(_ client: Client) -> CallbackPart?
  static func begin(_ login: LoginContext) throws(OAuthError) -> Step
  static func refreshRequest(
    _ credential: Credential, _ client: Client, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest
}

extension GrantFlow {
  static func callback(_ client: Client) -> CallbackPart? { nil }

  /// RFC 6749, 6.
  static func refreshRequest(
    _ credential: Credential, _ client: Client, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    guard let refreshToken = credential.refreshToken else { throw .notRefreshable }
    let parameters: FormParameters = [("grant_type", "refresh_token"), ("refresh_token", refreshToken.reveal())]
    return try client.request(.refresh, parameters, credential: credential, nonce: nonce)
  }
}

extension Grant {
  /// What is not in this list cannot be logged in with.
  var flow: any GrantFlow.Type {
    switch self {
    case .authorizationCode: AuthorizationCodeGrant.self
    case .implicit: ImplicitGrant.self
    case .deviceCode: DeviceCodeGrant.self
    case .clientCredentials: ClientCredentialsGrant.self
    case .oauth1: OAuth1Grant.self
    }
  }

  package func callback(_ client: Client) -> CallbackPart? { flow.callback(client) }
}

extension OAuthError {
  /// Whether what came back from a page was no answer to this login, however it came out.
  package var isStray: Bool {
    switch self {
    case .stateMissing, .stateMismatch, .tokenMismatch, .notARedirect, .foreignRedirect: true
    default: false
    }
  }
}
