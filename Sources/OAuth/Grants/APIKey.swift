/// A key that the user makes on a page of the provider.
enum APIKeyGrant: GrantFlow {
  static func begin(_ login: LoginContext) throws(OAuthError) -> Step {
    login.prompt(for: login.client.field(typed: "API key", as: .key))
  }
}
