import CredmgrDescriptors
import CredmgrHTTP

extension Client {
  /// The parameter with authorization details (RFC 9396, 4, 5 and 6).
  func details(_ details: AuthorizationDetails?) -> FormParameters {
    details.map { [("authorization_details", $0.text)] } ?? []
  }

  /// Builds the token exchange request (RFC 8693, 2.1).
  package func tokenExchangeRequest(_ credential: Credential, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest {
    let parameters: FormParameters = [
      ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
      ("subject_token", credential.accessToken.reveal()),
      ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token"),
    ]
    return try request(.tokenExchange, parameters, credential: credential, nonce: nonce)
  }

  package func exchangesToken(afterRefreshOf credential: Credential) -> Bool {
    guard let endpoint = descriptor.endpoints[.tokenExchange] else { return false }
    return endpoint.followsRefresh || credential.grant.traits.renewal == .login
  }

  package func refreshRequest(_ credential: Credential, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest {
    try credential.grant.flow.refreshRequest(credential, self, nonce: nonce)
  }

  /// Returns the credential with a new token if it needs no request; otherwise `nil`.
  package func renewed(_ credential: Credential, nonce: RequestNonce) throws(OAuthError) -> Credential? {
    try credential.grant.flow.renewed(credential, self, nonce: nonce)
  }

  /// Whether the client makes the tokens of a grant itself.
  package func makesTokens(of grant: Grant) -> Bool {
    grant.traits.signsJWT && descriptor.endpoints[.token] == nil
  }

  /// Returns the step after a login's token: done, or an exchange for another token.
  func end(_ outcome: TokenOutcome) throws(OAuthError) -> Step {
    let (credential, unreadable) = try outcome.issued()
    guard descriptor.endpoints[.tokenExchange] != nil else { return .done(credential, unreadable: unreadable) }
    return .send(
      Step.Exchange(kind: .tokenExchange) { nonce throws(OAuthError) in
        try tokenExchangeRequest(credential, nonce: nonce)
      } read: { answer, now throws(OAuthError) in
        func done(_ element: Int) throws(OAuthError) -> Step {
          let exchanged = try self.outcome(answer, .tokenExchange, refreshing: credential, element: element, now: now)
            .issued()
          return .done(exchanged.credential, unreadable: unreadable + exchanged.unreadable)
        }
        guard let list = try elements(in: answer, .tokenExchange, for: credential) else { return try done(0) }
        return .choose(Step.Choice(list: list, read: done))
      })
  }
}
