/// How a provider behaves: a file, read and checked.
public struct Descriptor: Sendable, Equatable {
  /// The provider's identifier: the name of the file without `.yaml`.
  public var identifier = ""
  /// The provider's name for people.
  public var title = ""
  /// The grants that the provider offers, the preferred one first.
  public var grants: [Grant] = []
  /// What the descriptor leaves open.
  public var variables: [Variable] = []
  /// The endpoints that the provider has.
  public var endpoints: [EndpointKind: Endpoint] = [:]
  /// How a token is presented to the API.
  public var headerStyle = HeaderStyle()
  /// Headers that go with every request to the API.
  public var extraHeaders: [HeaderTemplate] = []
  /// How scopes are written.
  public var scope = ScopeRules()
  /// The redirect URI (RFC 6749, 3.1.2).
  public var redirect = URLTemplate(Template(literal: "http://127.0.0.1/callback"))
  /// Whether the provider gives `state` back.
  public var state = StateRule.required
  /// Proof key for code exchange (RFC 7636).
  public var pkce = PKCEMethod.s256
  /// The issuer, where it is known: compared with the `iss` of RFC 9207.
  public var issuer: Template?
  /// Whether an `iss` has to come back (RFC 9207, 2.4).
  public var issuerResponse = StateRule.optional
  /// Whether a `nonce` is sent, and compared with that of the ID token (OpenID Connect Core 1.0, 3.1.2.1).
  public var sendsNonce = false
  /// How the client is registered.
  public var client = ClientRules()
  /// Lifetimes.
  public var expiry = ExpiryRules()
  /// The JWT that the client signs (RFC 7523), where there is one.
  public var assertion: AssertionRules?
  /// The device flow.
  public var device = DeviceRules()
  /// OAuth 1.0a.
  public var oauth1 = OAuth1Rules()
  /// Where the account's name stands: in the answer of the identity endpoint, or without one among what was kept. The
  /// first of these that is there counts.
  public var account: [FieldPath] = []
  /// The hosts that the credential is presented to.
  public var hosts: [Template] = []
  /// The git hosts, where there are any.
  public var git: GitRules?
  /// The container registries, where there are any.
  public var docker: DockerRules?

  /// The variable with this name.
  public func variable(_ name: String) -> Variable? { variables.first { $0.name == name } }
}

/// How a token is presented to the API.
public struct HeaderStyle: Sendable, Equatable {
  /// Where the token goes.
  public enum Location: Sendable, Equatable {
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
  public var parameters: [HeaderTemplate] = []

  /// Where the token goes.
  public var location: Location {
    if let query { return .query(name: query) }
    // A header of the provider's own carries the bare token, unless a scheme is asked for.
    if let header { return .header(name: header, scheme: scheme ?? "") }
    return scheme == "none" ? .none : .header(name: "Authorization", scheme: scheme ?? "Bearer")
  }
}

/// How scopes are written.
public struct ScopeRules: Sendable, Equatable {
  /// What is asked for when the person names none.
  public var requested: [String] = []
  /// Between scopes in a request.
  public var separator = " "
  /// Between scopes in an answer.
  public var grantedSeparator = " "
}

/// Whether the provider gives `state` back (RFC 6749, 10.12), or names itself in `iss` (RFC 9207, 2).
public enum StateRule: String, Sendable, CaseIterable {
  /// An answer without it is refused.
  case required
  /// It is compared when it is there; an answer without it is taken.
  case optional
}

/// Proof key for code exchange (RFC 7636, 4.2).
public enum PKCEMethod: String, Sendable, CaseIterable {
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
public struct ClientRules: Sendable, Equatable {
  /// How it shows who it is; `nil`: Basic with a secret, none without.
  public var authentication: ClientAuthentication?
  /// A client identifier that the provider gives to everybody.
  public var identifier: String?
  /// The page where a person registers a client.
  public var register: String?
  /// Whether this provider's client has a secret.
  public var hasSecret: Bool { authentication != ClientAuthentication.none }
}

/// Lifetimes.
public struct ExpiryRules: Sendable, Equatable {
  /// Seconds that a token lives when the answer does not say; `nil`: until the provider refuses it.
  public var lifetime: Int64?
  /// Seconds before its expiry from which on a token is refreshed.
  public var margin: Int64 = 60
}

/// The device flow.
public struct DeviceRules: Sendable, Equatable {
  /// What `slow_down` does to the interval.
  public enum SlowDown: Sendable, Equatable {
    /// Seconds more (RFC 8628, 3.5: 5).
    case add(Int64)
    /// Times this, in hundredths (L2P's clients: 120).
    case multiply(Int64)
  }

  /// The page where the person confirms, when the provider does not give it whole (RFC 8628, 3.2,
  /// `verification_uri_complete`).
  public var verificationURIComplete: Template?
  /// Seconds between two questions when the answer does not say (RFC 8628, 3.2: 5).
  public var interval: Int64 = 5
  /// What `slow_down` does to the interval.
  public var slowDown = SlowDown.add(5)
}

/// How requests are signed (RFC 5849, 3.4).
public enum SignatureMethod: String, Sendable, CaseIterable {
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
public enum SignatureTransport: String, Sendable, CaseIterable {
  /// RFC 5849, 3.5.1
  case header
  /// RFC 5849, 3.5.2
  case body
  /// RFC 5849, 3.5.3
  case query
}

/// OAuth 1.0a.
public struct OAuth1Rules: Sendable, Equatable {
  /// How requests are signed, one of `SignatureMethod`.
  public var signatureMethod = Template(literal: SignatureMethod.hmacSHA1.rawValue)
  /// Where the protocol parameters go, one of `SignatureTransport`.
  public var transport = Template(literal: SignatureTransport.header.rawValue)
  /// The realm of the header (RFC 5849, 3.5.1).
  public var realm: Template?
  /// Whether `oauth_version` is sent (RFC 5849, 3.1).
  public var sendsVersion = true
  /// Whether `oauth_callback_confirmed` has to be there (RFC 5849, 2.1).
  public var requiresCallbackConfirmed = true
  /// Whether a verifier has to be there (RFC 5849, 2.2); 1.0 without "a" has none.
  public var requiresVerifier = true
  /// The endpoint that the callback is sent with: `temporaryCredentials` (RFC 5849, 2.1), or `authorization` as 1.0 had
  /// it.
  public var callback = EndpointKind.temporaryCredentials
}

/// The git hosts of a provider.
public struct GitRules: Sendable, Equatable {
  /// The hosts, with a port where it is not the ordinary one.
  public var hosts: [Template]
  /// The user name that goes with a token.
  public var username = Template(literal: "oauth2")
  /// Whether the user name in a remote's URL says nothing about the account.
  public var ignoresUsername = false
  /// The realms (RFC 9110, 11.5) by which a host is recognised as one of this kind.
  public var realms: [String] = []

  /// The rules for these hosts where nothing else is said.
  public init(hosts: [Template]) { self.hosts = hosts }
}

/// The container registries of a provider.
public struct DockerRules: Sendable, Equatable {
  /// The hosts, with a port where it is not the ordinary one.
  public var hosts: [Template] = []
  /// The user name that goes with a token.
  public var username = Template(literal: "oauth2")
}
