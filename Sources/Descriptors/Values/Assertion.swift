/// How a JWT is signed (RFC 7518, 3.1).
package enum AssertionAlgorithm: String, Sendable, CaseIterable {
  case rs256 = "RS256"
  case rs384 = "RS384"
  case rs512 = "RS512"
  case es256 = "ES256"
  case hs256 = "HS256"
  case hs384 = "HS384"
  case hs512 = "HS512"
}

/// The JWT that the client signs (RFC 7523): to show who it is, or for a grant.
package struct AssertionRules: Sendable, Equatable {
  /// How it is signed; `nil`: by the client's way of authentication.
  package var algorithm: AssertionAlgorithm?
  /// PEM, or the secret of an HMAC.
  package var key: Template
  /// Besides `alg` and `typ` (RFC 7515, 4.1).
  package var header: [ParameterRule] = []
  /// RFC 7519, 4.1
  package var claims: [ParameterRule] = []
  package var lifetime: Int64 = 300

  package init() { key = (try? Template(parsing: "{client_secret}")) ?? Template(literal: "") }
}
