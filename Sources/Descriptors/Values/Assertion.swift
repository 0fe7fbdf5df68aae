/// How a JWT is signed (RFC 7518, 3.1).
package enum AssertionAlgorithm: String, Sendable, CaseIterable {
  /// RSASSA-PKCS1-v1_5 with SHA-256.
  case rs256 = "RS256"
  /// RSASSA-PKCS1-v1_5 with SHA-384.
  case rs384 = "RS384"
  /// RSASSA-PKCS1-v1_5 with SHA-512.
  case rs512 = "RS512"
  /// ECDSA on P-256 with SHA-256.
  case es256 = "ES256"
  /// HMAC with SHA-256.
  case hs256 = "HS256"
  /// HMAC with SHA-384.
  case hs384 = "HS384"
  /// HMAC with SHA-512.
  case hs512 = "HS512"
}

/// The JWT that the client signs (RFC 7523): to show who it is, or for a grant.
package struct AssertionRules: Sendable, Equatable {
  /// How it is signed; `nil`: by the client's way of authentication.
  package var algorithm: AssertionAlgorithm?
  /// The key: PEM, or the secret of an HMAC.
  package var key: Template
  /// Members of the header besides `alg` and `typ` (RFC 7515, 4.1).
  package var header: [ParameterRule] = []
  /// Claims that are added, or dropped (RFC 7519, 4.1).
  package var claims: [ParameterRule] = []
  /// Seconds from `iat` to `exp`.
  package var lifetime: Int64 = 300

  /// What RFC 7523, 3 asks for.
  package init() {
    key = (try? Template(parsing: "{client_secret}")) ?? Template(literal: "")
  }
}
