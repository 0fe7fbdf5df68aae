import Descriptors
import HTTP

extension Client {
  /// The request that turns the token of a login into another (RFC 8693, 2.1); `nil` where the provider has no such endpoint.
  ///
  /// - Throws: `OAuthError` when the request does not come about.
  public func tokenExchangeRequest(_ credential: Credential) throws(OAuthError) -> HTTPRequest? {
    guard descriptor.endpoints[.tokenExchange] != nil else { return nil }
    let parameters: FormParameters = [
      ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
      ("subject_token", credential.accessToken.reveal()),
      ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token"),
    ]
    return try request(.tokenExchange, parameters, credential: credential)
  }

  /// The same behind a refresh: where the descriptor says so, and where a credential is obtained anew, as by a login; `nil`
  /// otherwise.
  ///
  /// - Throws: `OAuthError` when the request does not come about.
  public func tokenExchangeRequest(afterRefresh credential: Credential) throws(OAuthError) -> HTTPRequest? {
    guard let endpoint = descriptor.endpoints[.tokenExchange] else { return nil }
    guard endpoint.followsRefresh || credential.grant.traits.renewal == .login else { return nil }
    return try tokenExchangeRequest(credential)
  }

  /// The request that renews a credential, as its grant does it.
  ///
  /// - Throws: `OAuthError.notRefreshable` without anything to refresh it with.
  public func refreshRequest(_ credential: Credential) throws(OAuthError) -> HTTPRequest {
    try credential.grant.flow.refreshRequest(credential, self)
  }

  /// The step behind the token of a login: the end, or the exchange for another token.
  func end(_ credential: Credential, unreadable: [ResponseField]) throws(OAuthError) -> Step {
    guard let request = try tokenExchangeRequest(credential) else { return .done(credential, unreadable: unreadable) }
    return .send(
      Step.Exchange(.tokenExchange) { () throws(OAuthError) in
        request
      } read: { answer, now throws(OAuthError) in
        let exchanged = try self.credential(
          answer, .tokenExchange, grant: credential.grant, scope: credential.requestedScope, previous: credential,
          now: now)
        return .done(exchanged, unreadable: unreadable + unreadableFields(answer, .tokenExchange))
      })
  }

  /// The same of an answer.
  func end(_ credential: Credential, _ answer: HTTPResponse, _ kind: EndpointKind) throws(OAuthError) -> Step {
    try end(credential, unreadable: unreadableFields(answer, kind, grant: credential.grant))
  }
}
