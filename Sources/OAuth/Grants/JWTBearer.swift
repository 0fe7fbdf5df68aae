import CredmgrCryptography
import CredmgrHTTP
import CredmgrText

/// A JWT that the user's private key signs (RFC 7523, 2.1). The leg `token` exchanges it for a token. Without that leg,
/// the JWT itself is the token.
enum JWTBearerGrant: GrantFlow {
  static func begin(_ login: LoginContext) throws(OAuthError) -> Step {
    login.promptToGetToken { typed throws(OAuthError) in
      // The user may have typed for minutes.
      let nonce = RequestNonce(timestamp: typed.obtainedAt, text: login.nonce.text)
      guard let credential = try renewed(typed, login.client, nonce: nonce) else { return login.exchange(typed) }
      return .done(credential, unreadable: [])
    }
  }

  static func refreshRequest(
    _ credential: Credential, _ client: Client, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    var parameters: FormParameters = [
      ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", ""),
    ]
    if !credential.requestedScope.isEmpty { parameters.append("scope", client.joined(credential.requestedScope)) }
    return try client.request(.token, parameters, credential: credential, nonce: nonce)
  }

  static func renewed(
    _ credential: Credential, _ client: Client, nonce: RequestNonce
  ) throws(OAuthError) -> Credential? {
    guard client.makesTokens(of: credential.grant) else { return nil }
    var renewed = credential
    renewed.accessToken = Secret(try client.ownToken(for: credential, nonce: nonce))
    renewed.obtainedAt = nonce.timestamp
    renewed.expiresAt = nonce.timestamp + client.assertionLifetime
    renewed.margin = client.descriptor.expiry.margin
    renewed.isRejected = false
    return renewed
  }
}
