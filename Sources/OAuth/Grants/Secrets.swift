/// Several values, each secret or not: the variables of the login. The first secret one is the token.
enum SecretsGrant: GrantFlow {
  static func begin(_ login: LoginContext) throws(OAuthError) -> Step { login.prompt(for: nil) }
}
