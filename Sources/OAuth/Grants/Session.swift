import CredmgrHTTP

/// Values that the user types, such as a user name and a password, which the leg `token` exchanges for a token.
enum SessionGrant: GrantFlow {
  static func begin(_ login: LoginContext) throws(OAuthError) -> Step {
    login.promptToGetToken { typed in login.exchange(typed) }
  }

  static func refreshRequest(
    _ credential: Credential, _ client: Client, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    try client.request(.token, [], credential: credential, nonce: nonce)
  }
}
