/// How a provider behaves: a file, read and checked.
package struct Descriptor: Sendable, Equatable {
  /// The provider's identifier: the name of the file without `.yaml`.
  package var identifier = ""
  /// The provider's name for people.
  package var title = ""
  /// The grants that the provider offers, the preferred one first.
  package var grants: [Grant] = []
  /// What the descriptor leaves open.
  package var variables: [Variable] = []
  /// The endpoints that the provider has.
  package var endpoints: [EndpointKind: Endpoint] = [:]
  /// How a token is presented to the API.
  package var headerStyle = HeaderStyle()
  /// Headers that go with every request to the API.
  package var extraHeaders: [HeaderTemplate] = []
  /// How scopes are written.
  package var scope = ScopeRules()
  /// The redirect URI (RFC 6749, 3.1.2).
  package var redirect = URLTemplate(Template(literal: "http://127.0.0.1/callback"))
  /// Whether the provider gives `state` back.
  package var state = StateRule.required
  /// Proof key for code exchange (RFC 7636).
  package var pkce = PKCEMethod.s256
  /// The issuer, where it is known: compared with the `iss` of RFC 9207.
  package var issuer: Template?
  /// Whether an `iss` has to come back (RFC 9207, 2.4).
  package var issuerResponse = StateRule.optional
  /// Whether a `nonce` is sent, and compared with that of the ID token (OpenID Connect Core 1.0, 3.1.2.1).
  package var sendsNonce = false
  /// How the client is registered.
  package var client = ClientRules()
  /// Lifetimes.
  package var expiry = ExpiryRules()
  /// The JWT that the client signs (RFC 7523), where there is one.
  package var assertion: AssertionRules?
  /// The device flow.
  package var device = DeviceRules()
  /// OAuth 1.0a.
  package var oauth1 = OAuth1Rules()
  /// Where the account's name stands: in the answer of the identity endpoint, or without one among what was kept. The
  /// first of these that is there counts.
  package var account: [FieldPath] = []
  /// The hosts that the credential is presented to.
  package var hosts: [Template] = []
  /// The git hosts, where there are any.
  package var git: GitRules?
  /// The container registries, where there are any.
  package var docker: DockerRules?

  /// The variable with this name.
  package func variable(_ name: String) -> Variable? { variables.first { $0.name == name } }
}

/// How a token is presented to the API.
package struct HeaderStyle: Sendable, Equatable {
  /// Where the token goes.
  package enum Location: Sendable, Equatable {
    /// A header, with a scheme before the token unless it is empty: `Authorization: Bearer …`.
    case header(name: String, scheme: String)
    /// A parameter of the query (RFC 6750, 2.3, and L2P).
    case query(name: String)
    /// Nowhere by itself: the extra headers carry it, or the request is signed.
    case none
  }

  /// What stands before the token in a header; `none`: the token is in no header of its own.
  var scheme: String?
  /// The header with the token, where it is not `Authorization`.
  var header: String?
  /// The parameter of the query with the token.
  var query: String?
  /// Parameters behind the token: in the same header as `name="value"`, separated by commas (OCLC), or in the same
  /// query (WeChat).
  package var parameters: [HeaderTemplate] = []

  /// Where the token goes.
  package var location: Location {
    if let query { return .query(name: query) }
    // A header of the provider's own carries the bare token, unless a scheme is asked for.
    if let header { return .header(name: header, scheme: scheme ?? "") }
    return scheme == "none" ? .none : .header(name: "Authorization", scheme: scheme ?? "Bearer")
  }
}

/// How scopes are written.
package struct ScopeRules: Sendable, Equatable {
  /// What is asked for when the person names none.
  package var requested: [String] = []
  /// Between scopes in a request.
  package var separator = " "
  /// Between scopes in an answer.
  package var grantedSeparator = " "
}

/// Whether the provider gives `state` back (RFC 6749, 10.12), or names itself in `iss` (RFC 9207, 2).
package enum StateRule: String, Sendable, CaseIterable {
  /// An answer without it is refused.
  case required
  /// It is compared when it is there; an answer without it is taken.
  case optional
}

/// Proof key for code exchange (RFC 7636, 4.2).
package enum PKCEMethod: String, Sendable, CaseIterable {
  /// The challenge is the SHA-256 of the verifier, in base64url.
  case s256 = "S256"
  /// As `S256`, but the challenge is in hexadecimal (TikTok).
  case s256Hexadecimal = "S256-hex"
  /// The challenge is the verifier.
  case plain
  /// The provider cannot do it.
  case none
}

/// How the client is registered.
package struct ClientRules: Sendable, Equatable {
  /// How it shows who it is; `nil`: Basic with a secret, none without.
  package var authentication: ClientAuthentication?
  /// A client identifier that the provider gives to everybody.
  package var identifier: String?
  /// The page where a person registers a client.
  package var register: String?
  /// Whether this provider's client has a secret.
  package var hasSecret: Bool { authentication != ClientAuthentication.none }
}

/// Lifetimes.
package struct ExpiryRules: Sendable, Equatable {
  /// Seconds that a token lives when the answer does not say; `nil`: until the provider refuses it.
  package var lifetime: Int64?
  /// Seconds before its expiry from which on a token is refreshed.
  package var margin: Int64 = 60
}

/// The device flow.
package struct DeviceRules: Sendable, Equatable {
  /// What `slow_down` does to the interval.
  package enum SlowDown: Sendable, Equatable {
    /// Seconds more (RFC 8628, 3.5: 5).
    case add(Int64)
    /// Times this, in hundredths (L2P's clients: 120).
    case multiply(Int64)
  }

  /// The page where the person confirms, when the provider does not give it whole (RFC 8628, 3.2,
  /// `verification_uri_complete`).
  package var verificationURIComplete: Template?
  /// Seconds between two questions when the answer does not say (RFC 8628, 3.2: 5).
  package var interval: Int64 = 5
  /// What `slow_down` does to the interval.
  package var slowDown = SlowDown.add(5)
}

/// How requests are signed (RFC 5849, 3.4).
package enum SignatureMethod: String, Sendable, CaseIterable {
  /// RFC 5849, 3.4.2
  case hmacSHA1 = "HMAC-SHA1"
  /// As HMAC-SHA1, with SHA-256.
  case hmacSHA256 = "HMAC-SHA256"
  /// As HMAC-SHA1, with SHA-512.
  case hmacSHA512 = "HMAC-SHA512"
  /// RFC 5849, 3.4.3
  case rsaSHA1 = "RSA-SHA1"
  /// As RSA-SHA1, with SHA-256.
  case rsaSHA256 = "RSA-SHA256"
  /// RFC 5849, 3.4.4
  case plaintext = "PLAINTEXT"
}

/// Where the protocol parameters go (RFC 5849, 3.5).
package enum SignatureTransport: String, Sendable, CaseIterable {
  /// RFC 5849, 3.5.1
  case header
  /// RFC 5849, 3.5.2
  case body
  /// RFC 5849, 3.5.3
  case query
}

/// OAuth 1.0a.
package struct OAuth1Rules: Sendable, Equatable {
  /// How requests are signed, one of `SignatureMethod`.
  package var signatureMethod = Template(literal: SignatureMethod.hmacSHA1.rawValue)
  /// Where the protocol parameters go, one of `SignatureTransport`.
  package var transport = Template(literal: SignatureTransport.header.rawValue)
  /// The realm of the header (RFC 5849, 3.5.1).
  package var realm: Template?
  /// Whether `oauth_version` is sent (RFC 5849, 3.1).
  package var sendsVersion = true
  /// Whether `oauth_callback_confirmed` has to be there (RFC 5849, 2.1).
  package var requiresCallbackConfirmed = true
  /// Whether a verifier has to be there (RFC 5849, 2.2); 1.0 without "a" has none.
  package var requiresVerifier = true
  /// The endpoint that the callback is sent with: `temporaryCredentials` (RFC 5849, 2.1), or `authorization` as 1.0 had
  /// it.
  package var callback = EndpointKind.temporaryCredentials
}

/// The git hosts of a provider.
package struct GitRules: Sendable, Equatable {
  /// The hosts, with a port where it is not the ordinary one.
  package var hosts: [Template]
  /// The user name that goes with a token.
  package var username = Template(literal: "oauth2")
  /// Whether the user name in a remote's URL says nothing about the account.
  package var ignoresUsername = false
  /// The realms (RFC 9110, 11.5) by which a host is recognised as one of this kind.
  package var realms: [String] = []

  /// The rules for these hosts where nothing else is said.
  package init(hosts: [Template]) { self.hosts = hosts }
}

/// The container registries of a provider.
package struct DockerRules: Sendable, Equatable {
  /// The hosts, with a port where it is not the ordinary one.
  package var hosts: [Template] = []
  /// The user name that goes with a token.
  package var username = Template(literal: "oauth2")
}
