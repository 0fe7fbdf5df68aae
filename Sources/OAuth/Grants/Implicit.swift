import CredmgrDescriptors

/// The implicit grant (RFC 6749, 4.2), whose redirect carries the token.
enum ImplicitGrant: GrantFlow {
  static func callback(_ client: Client) -> CallbackPart? { .fragment }

  static func begin(_ login: LoginContext) throws(OAuthError) -> Step {
    let client = login.client
    let request = try client.authorizationRequest(
      .implicit, redirectURI: login.redirectURI, scope: login.scope, demanding: login.demands, choosing: login.person,
      random: login.random, nonce: login.nonce)
    return .browse(
      client.page(request, at: request.uri, login) { parameters, now throws(OAuthError) in
        let response = try client.authorizationResponse(parameters, to: request)
        return try client.end(.issued(client.credential(response, now: now), unreadable: []))
      })
  }
}
