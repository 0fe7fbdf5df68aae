import Cryptography
import HTTP
import Descriptors

extension Client {
  /// The request that turns a code into tokens (RFC 6749, 4.1.3; RFC 7636, 4.5).
  ///
  /// - Throws: `OAuthError` when the descriptor has no token endpoint or a secret is missing.
  public func tokenRequest(_ response: AuthorizationResponse) throws(OAuthError) -> HTTPRequest {
    let code = response.answer.text(.code) ?? ""
    let request = response.request
    var parameters: FormParameters = [
      ("grant_type", "authorization_code"), ("code", code), ("redirect_uri", request.redirectURI),
    ]
    if let verifier = request.codeVerifier { parameters.append("code_verifier", verifier.text) }
    var exchange = response.answer.kept
    exchange["redirect_uri"] = request.redirectURI
    exchange["code"] = code
    exchange["state"] = request.state
    exchange["scope"] = request.scope.joined(separator: descriptor.scope.separator)
    return try self.request(.token, parameters, exchange: exchange)
  }

  /// The request that turns the token of a login into another (RFC 8693, 2.1); `nil` where the provider has no such endpoint.
  ///
  /// - Throws: `OAuthError` when the request does not come about.
  public func tokenExchangeRequest(_ credential: Credential) throws(OAuthError) -> HTTPRequest? {
    guard descriptor.endpoints[.tokenExchange] != nil else { return nil }
    return try request(.tokenExchange, exchangeParameters(credential), credential: credential)
  }

  /// The same behind a refresh: where the descriptor says so, and where a credential is obtained anew, as by a login; `nil`
  /// otherwise.
  ///
  /// - Throws: `OAuthError` when the request does not come about.
  public func tokenExchangeRequest(afterRefresh credential: Credential) throws(OAuthError) -> HTTPRequest? {
    guard let endpoint = descriptor.endpoints[.tokenExchange] else { return nil }
    guard endpoint.followsRefresh || credential.grant == .clientCredentials else { return nil }
    return try tokenExchangeRequest(credential)
  }

  private func exchangeParameters(_ credential: Credential) -> FormParameters {
    [
      ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
      ("subject_token", credential.accessToken.reveal()),
      ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token"),
    ]
  }

  /// The client credentials grant (RFC 6749, 4.4.2).
  ///
  /// - Throws: `OAuthError` when the descriptor has no such endpoint or a secret is missing.
  public func clientCredentialsRequest(scope: [String]) throws(OAuthError) -> HTTPRequest {
    var parameters: FormParameters = [("grant_type", "client_credentials")]
    let joined = scope.joined(separator: descriptor.scope.separator)
    if !scope.isEmpty { parameters.append("scope", joined) }
    return try request(.clientCredentials, parameters, exchange: ["scope": joined])
  }

  /// The refresh of a credential (RFC 6749, 6). A credential of the client credentials grant is obtained anew
  /// (4.4.3: such an answer has no refresh token).
  ///
  /// - Throws: `OAuthError.notRefreshable` without a refresh token.
  public func refreshRequest(_ credential: Credential) throws(OAuthError) -> HTTPRequest {
    if credential.grant == .clientCredentials {
      return try clientCredentialsRequest(scope: credential.requestedScope)
    }
    guard let refreshToken = credential.refreshToken else { throw .notRefreshable }
    let parameters: FormParameters = [("grant_type", "refresh_token"), ("refresh_token", refreshToken.reveal())]
    return try request(.refresh, parameters, credential: credential)
  }
}
