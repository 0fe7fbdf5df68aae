import CredmgrDescriptors
import CredmgrHTTP

/// The authorization code grant (RFC 6749, 4.1).
enum AuthorizationCodeGrant: GrantFlow {
  static func callback(_ client: Client) -> CallbackPart? {
    client.descriptor.endpoints[.authorization]?.response.format == .fragment ? .fragment : .query
  }

  static func begin(_ login: LoginContext) throws(OAuthError) -> Step {
    let client = login.client
    let request = try client.authorizationRequest(
      .authorizationCode, redirectURI: login.redirectURI, scope: login.scope, choosing: login.person,
      random: login.random,
      nonce: login.nonce)
    return .browse(
      client.page(request, login) { parameters, _ throws(OAuthError) in
        let response = try client.authorizationResponse(parameters, to: request)
        return .send(
          Step.Exchange(kind: .token) { nonce throws(OAuthError) in
            try client.tokenRequest(response, nonce: nonce)
          } read: { answer, now throws(OAuthError) in
            try client.end(client.outcome(answer, after: response, now: now))
          })
      })
  }
}

extension Client {
  /// Builds the request that redeems the code (RFC 6749, 4.1.3; RFC 7636, 4.5).
  package func tokenRequest(_ response: AuthorizationResponse, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest {
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
    exchange["scope"] = joined(request.scope)
    return try self.request(.token, parameters, exchange: exchange, nonce: nonce)
  }
}
