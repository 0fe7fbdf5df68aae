/// A user name and a password (RFC 7617).
enum BasicGrant: GrantFlow {
  static func begin(_ login: LoginContext) throws(OAuthError) -> Step {
    login.prompt(for: login.client.field(typed: "password", as: .password))
  }
}
