import Descriptors
import HTTP

/// The client credentials grant (RFC 6749, 4.4): nobody is asked, and a token is obtained anew instead of refreshed
/// (4.4.3: such an answer has no refresh token).
enum ClientCredentialsGrant: GrantFlow {
  static func begin(_ login: LoginContext) throws(OAuthError) -> Step {
    let (client, scope) = (login.client, login.scope)
    return .send(
      Step.Exchange(kind: .clientCredentials) { nonce throws(OAuthError) in
        try client.clientCredentialsRequest(scope: scope, nonce: nonce)
      } read: { answer, now throws(OAuthError) in
        try client.end(
          client.outcome(answer, .clientCredentials, grant: .clientCredentials, scope: scope, now: now))
      })
  }

  static func refreshRequest(
    _ credential: Credential, _ client: Client, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    try client.clientCredentialsRequest(scope: credential.requestedScope, nonce: nonce)
  }
}

extension Client {
  /// RFC 6749, 4.4.2
  package func clientCredentialsRequest(scope: [String], nonce: RequestNonce) throws(OAuthError) -> HTTPRequest {
    var parameters: FormParameters = [("grant_type", "client_credentials")]
    let joined = scope.joined(separator: descriptor.scope.separator)
    if !scope.isEmpty { parameters.append("scope", joined) }
    return try request(.clientCredentials, parameters, exchange: ["scope": joined], nonce: nonce)
  }
}
