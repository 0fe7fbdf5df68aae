import CredmgrDescriptors
import CredmgrHTTP

/// The client credentials grant (RFC 6749, 4.4). It requests a new token instead of refreshing one (4.4.3).
enum ClientCredentialsGrant: GrantFlow {
  static func begin(_ login: LoginContext) throws(OAuthError) -> Step {
    let client = login.client
    let scope = client.sentScope(login.scope)
    return .send(
      Step.Exchange(kind: .clientCredentials) { nonce throws(OAuthError) in
        try client.clientCredentialsRequest(
          scope: scope, details: client.descriptor.authorizationDetails.requested, nonce: nonce)
      } read: { answer, now throws(OAuthError) in
        try client.end(
          client.outcome(answer, .clientCredentials, grant: .clientCredentials, scope: scope, now: now))
      })
  }

  static func refreshRequest(
    _ credential: Credential, _ client: Client, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    var client = client
    client.bindingKey = credential.proofKey
    return try client.clientCredentialsRequest(
      scope: credential.requestedScope, details: credential.requestedDetails, nonce: nonce)
  }
}

extension Client {
  /// The scope that the request has: the endpoint's own if its descriptor fixes or drops the parameter.
  fileprivate func sentScope(_ scope: [String]) -> [String] {
    guard let rule = descriptor.endpoints[.clientCredentials]?.parameters.last(where: { $0.name == "scope" }) else {
      return scope
    }
    guard let template = rule.value else { return [] }
    return template.literal?.split(separator: " ").map(String.init) ?? scope
  }

  /// Builds the token request (RFC 6749, 4.4.2).
  package func clientCredentialsRequest(
    scope: [String], details: AuthorizationDetails? = nil, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    var parameters: FormParameters = [("grant_type", "client_credentials")]
    if !scope.isEmpty { parameters.append("scope", joined(scope)) }
    parameters.append(contentsOf: self.details(details))
    return try request(.clientCredentials, parameters, exchange: ["scope": joined(scope)], nonce: nonce)
  }
}
