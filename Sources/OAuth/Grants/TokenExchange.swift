import CredmgrHTTP
import CredmgrText

/// Token exchange (RFC 8693): the token of another issuer, such as the ID token of a CI, becomes an access token.
enum TokenExchangeGrant: GrantFlow {
  static func begin(_ login: LoginContext) throws(OAuthError) -> Step {
    login.promptToGetToken { typed in login.exchange(typed) }
  }

  /// Builds the request (RFC 8693, 2.1). A refresh repeats it with the token that the machine has then.
  static func refreshRequest(
    _ credential: Credential, _ client: Client, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    guard let token = client.values(for: credential)("subject_token") else {
      throw .missingValue(.token, name: "subject_token")
    }
    var parameters: FormParameters = [
      ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"), ("subject_token", token),
      ("subject_token_type", "urn:ietf:params:oauth:token-type:jwt"),
    ]
    if !credential.requestedScope.isEmpty { parameters.append("scope", client.joined(credential.requestedScope)) }
    parameters.append(contentsOf: client.details(credential.requestedDetails))
    return try client.request(.token, parameters, credential: credential, nonce: nonce)
  }
}

/// The token of another issuer, which the provider trusts (RFC 8693, 1.1; RFC 7523, 2.1 and 2.2).
package enum SubjectToken {
  /// Returns the expiry of a JWT (RFC 7519, 4.1.4); `nil` if the text is not a JWT or does not expire.
  package static func expiry(of text: String) -> Moment? { JWTClaims.parse(text)?["exp"]?.moment }
}
