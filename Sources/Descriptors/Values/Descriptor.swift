import CredmgrText

package struct Descriptor: Sendable, Equatable {
  package var identifier = ""
  package var title = ""
  package var aliases: [String] = []  // Other names that users type, such as products of the provider.
  package var verified: Verification?  // `nil` if the file does not say, which counts as unverified.
  package var group: ProviderGroup?
  package var grants: [Grant] = []  // The preferred one first.
  package var variables: [Variable] = []
  package var endpoints: [EndpointKind: Endpoint] = [:]
  package var headerStyle = HeaderStyle()
  package var extraHeaders: [HeaderTemplate] = []
  package var extraQuery: [ParameterRule] = []  // Headers of every request to the API.
  /// The environment variables that programs of this provider read, by field: `access_token` or one of the login.
  package var environment: [String: [String]] = [:]
  package var scope = ScopeRules()
  package var scopeSets: [ScopeSet] = []
  package var authorizationDetails = AuthorizationDetailsRules()
  package var ownRedirect: URLTemplate?
  /// The redirect if the descriptor has none; `nil` means the redirect with the provider's identifier.
  package var standardRedirect: String?
  package var state = StateRule.required
  package var pkce = PKCEMethod.s256
  package var issuer: Template?
  package var resource: Template?  // Where the token will be used (RFC 8707, 2); `nil` sends no `resource`.
  package var issuerResponse = StateRule.optional
  package var nonce: Bool?  // `nil` means that a login with the scope `openid` sends one.
  package var signsRequests = false  // Whether the authorization request is a signed request object (RFC 9101).
  package var idTokenAlgorithm: AssertionAlgorithm?  // `nil` means RS256, PS256, ES256 and EdDSA.
  package var client = ClientRules()
  package var key: TypedKeyRules?
  package var expiry = ExpiryRules()
  package var assertion: AssertionRules?
  package var device = DeviceRules()
  package var oauth1 = OAuth1Rules()
  package var profile: SecurityProfile?
  package var tokenBinding = TokenBindingRule.none
  package var aws4: AWS4Rules?  // `nil` if requests are not signed this way.
  /// Paths of the account's name in the identity endpoint's response or else the kept fields; the first found counts.
  package var account: [FieldPath] = []
  /// Paths of the user's durable identifier in the identity endpoint's response, which stays if the name changes.
  package var subject = [FieldPath("sub")]
  package var hosts: [Template] = []
  package var git: GitRules?
  package var docker: DockerRules?
  package var kubectl: KubectlRules?

  package init() {}

  /// Whether the answer to an authorization request is a signed JWT (JARM, 2.3): the page's `response_mode` says so.
  package var getsSignedAnswers: Bool {
    let mode = endpoints[.authorization]?.parameters.last { $0.name == "response_mode" }?.value?.literal
    return mode.map { ["jwt", "query.jwt", "fragment.jwt", "form_post.jwt"].contains($0) } ?? false
  }

  /// Whether a login with these scopes sends a `nonce`, which its ID token must repeat (OpenID Connect Core 1.0,
  /// 3.1.3.7, 11).
  package func sendsNonce(with scope: [String]) -> Bool { nonce ?? scope.contains("openid") }

  package var redirect: URLTemplate {
    ownRedirect ?? URLTemplate(Template(literal: standardRedirect ?? Self.standardRedirect(of: identifier)))
  }

  /// The provider's own redirect, so that a response from one provider cannot pass for another's (RFC 9700, 4.4.2).
  package static func standardRedirect(of identifier: String) -> String { sharedRedirect + "/" + identifier }

  /// The provider's own redirect with a port, for servers that compare the whole URI against RFC 8252, 7.3, as many of
  /// MCP do. The port depends on the provider and is not one that Linux gives to other programs (ip(7)).
  package static func redirectWithPort(of identifier: String) -> String {
    // FNV-1a
    let hash = identifier.utf8.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
    return standardRedirect(of: identifier).exchanging("127.0.0.1/", for: "127.0.0.1:\(61_000 + hash % 4_500)/")
  }

  /// The redirect of all providers in earlier versions.
  package static let sharedRedirect = "http://127.0.0.1/callback"

  package func isInKeyFile(_ variable: Variable) -> Bool { key?.file.contains { $0.variable == variable.name } == true }

  package func variable(_ name: String) -> Variable? { variables.first { $0.name == name } }

  /// Whether exchanges read a token of another issuer again, so that a refusal concerns only this one.
  package var readsAtExchange: Bool { variables.contains(where: \.isAtExchange) }

  /// How requests present a credential of the grant.
  package func headerStyle(of grant: Grant) -> HeaderStyle {
    guard grant.traits.binding == .pair, !headerStyle.isPair else { return headerStyle }
    return headerStyle == HeaderStyle() ? .pair : headerStyle.isDigest ? .digestPair : headerStyle
  }
}

package struct HeaderStyle: Sendable, Equatable {
  package enum Location: Sendable, Equatable {
    case header(name: String, scheme: String)
    case query(name: String)
    case path(Template)  // Before the path of the request.
    case body(name: String)  // A member of the request's JSON, or a parameter of its form.
    case none  // Extra headers contain it, or the request is signed.
  }

  var scheme: String?
  var header: String?
  var query: String?
  package var path: Template?
  var body: String?
  package var username: Template?  // The user name of a pair (RFC 7617), whose password is the token.
  package var password: Template?  // The password of a pair, whose user name is the token.
  /// Further parts of the header as `name="value"`, separated by commas (OCLC), or of the query (WeChat).
  package var parameters: [HeaderTemplate] = []
  package var tokenTypes: [String] = []

  /// Whether a token of this `token_type`, regardless of case, is presented this way (RFC 6749, 7.1).
  package func presents(tokenType: String) -> Bool {
    (["bearer"] + tokenTypes).contains { $0.lowercased() == tokenType.lowercased() }
  }

  package var location: Location {
    if let query { return .query(name: query) }
    if let path { return .path(path) }
    if let body { return .body(name: body) }
    // A provider's own header contains the bare token unless a scheme is set.
    if let header { return .header(name: header, scheme: scheme ?? "") }
    let standard = username == nil && password == nil ? "Bearer" : "Basic"
    return scheme == "none" ? .none : .header(name: "Authorization", scheme: scheme ?? standard)
  }

  /// Whether the token is one half of a user name and a password.
  package var isPair: Bool { username != nil || password != nil }

  /// Whether requests answer a challenge with a hash of a user name and a password (RFC 7616).
  package var isDigest: Bool {
    if case .header("Authorization", let scheme) = location { scheme.lowercased() == Self.digest } else { false }
  }

  private static let digest = "digest"

  /// The styles of a password and the user name of the login.
  package static let pair = pair(scheme: nil)
  fileprivate static let digestPair = pair(scheme: digest)

  private static func pair(scheme: String?) -> HeaderStyle {
    var style = HeaderStyle()
    style.scheme = scheme
    style.username = Template([.place([.name("username")])])
    return style
  }
}

package struct ScopeRules: Sendable, Equatable {
  package var requested: [String] = []
  package var separator = " "
  package var grantedSeparator = " "
  package var requiredHeader: String?  // Lists scopes in a refusal; any of them is enough.
}

/// The scopes for a purpose of the user, such as `git`.
package struct ScopeSet: Sendable, Equatable {
  package let name: String
  package let scopes: [String]
}

/// The key or certificate that the provider binds tokens to, so that a stolen token is of no use.
package enum TokenBindingRule: String, Sendable, CaseIterable {
  case none
  case dpop  // A key of the account (RFC 9449).
  case mutualTLS = "mutual_tls"  // The client's certificate (RFC 8705, 3).

  /// Whether each account has a key to which the provider binds its tokens.
  package var needsKey: Bool { self == .dpop }
}

/// Whether the provider returns `state` (RFC 6749, 10.12) or identifies itself in `iss` (RFC 9207, 2).
package enum StateRule: String, Sendable, CaseIterable {
  case required
  case optional  // Compared if it is returned.
}

/// The method of the proof key for code exchange (RFC 7636, 4.2).
package enum PKCEMethod: String, Sendable, CaseIterable {
  case s256 = "S256"
  case s256Hexadecimal = "S256-hex"  // The challenge in hexadecimal (TikTok).
  case plain
  case none
}

package struct ClientRules: Sendable, Equatable {
  package var authentication: ClientAuthentication?  // `nil` means Basic with a secret, and none without one.
  package var identifier: String?
  package var register: String?
  package var identifierPattern: String?  // Must match every identifier that the provider may issue.
  package var secretPattern: String?
  package var otherShapes: [OtherShape] = []
  package var takesDocument = false  // Whether an identifier can be the URL of a document with the client's metadata.
  package var hasSecret: Bool { authentication != ClientAuthentication.none }
}

/// A text that users confuse with the identifier or the secret of their client.
package struct OtherShape: Sendable, Equatable {
  package var pattern: String
  package var meaning: String
}

/// A key or an access token that the user makes at the provider and pastes.
package struct TypedKeyRules: Sendable, Equatable {
  package var page: String?  // Where to make one.
  package var pattern: String?  // Must match every key that the provider may issue.
  package var lifetime: Duration?  // `nil` if a key does not expire, or if its user chooses.
  package var file: [KeyFileField] = []  // Empty if the key is not in a file.
}

/// A variable of the login whose value is in the file with the user's private key.
package struct KeyFileField: Sendable, Equatable {
  package var variable: String
  package var path: FieldPath?  // The member of a JSON file; `nil` for the private key of a PEM file.
}

package struct ExpiryRules: Sendable, Equatable {
  package var lifetime: Duration?  // `nil` means until the provider refuses the token.
  package var margin = Duration.seconds(60)  // The time before expiry.
}

package struct DeviceRules: Sendable, Equatable {
  package enum SlowDown: Sendable, Equatable {
    case add(Duration)  // RFC 8628, 3.5: 5 s.
    case multiply(Int64)  // In hundredths (L2P's clients: 120).
  }

  package var verificationURIComplete: URLTemplate?
  package var hosts: [Template] = []  // Hosts of the page in addition to those of the endpoints.
  package var interval = Duration.seconds(5)  // RFC 8628, 3.2
  package var slowDown = SlowDown.add(.seconds(5))
}

package struct GitRules: Sendable, Equatable {
  package var hosts: [Template]
  package var username = Template(literal: "oauth2")
  package var ignoresUsername = false
  package var realms: [String] = []  // RFC 9110, 11.5

  package init(hosts: [Template]) { self.hosts = hosts }
}

package struct DockerRules: Sendable, Equatable {
  package var hosts: [Template] = []
  package var username = Template(literal: "oauth2")
}

package struct KubectlRules: Sendable, Equatable { package var hosts: [Template] = [] }

/// The algorithm that signs a JWT (RFC 7518, 3.1).
package enum AssertionAlgorithm: String, Sendable, CaseIterable {
  case rs256 = "RS256"
  case rs384 = "RS384"
  case rs512 = "RS512"
  case ps256 = "PS256"
  case ps384 = "PS384"
  case ps512 = "PS512"
  case es256 = "ES256"
  case edDSA = "EdDSA"  // With Ed25519 (RFC 8037, 3.1).
  case hs256 = "HS256"
  case hs384 = "HS384"
  case hs512 = "HS512"

  /// Whether the key is a secret that the signer and the verifier share.
  package var isSymmetric: Bool { keyKind == .shared }

  package enum KeyKind: Sendable { case rsa, ellipticCurve, edwards, shared }

  package var keyKind: KeyKind {
    switch self {
    case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512: .rsa
    case .es256: .ellipticCurve
    case .edDSA: .edwards
    case .hs256, .hs384, .hs512: .shared
    }
  }
}

/// The JWT that the client signs (RFC 7523) as authentication or for a grant.
package struct AssertionRules: Sendable, Equatable {
  package var algorithm: AssertionAlgorithm?  // `nil` means the client's way of authentication decides.
  package var key: Template  // A PEM key, or the secret of an HMAC.
  package var header: [ParameterRule] = []  // In addition to `alg` and `typ` (RFC 7515, 4.1).
  package var claims: [ParameterRule] = []  // RFC 7519, 4.1
  package var lifetime = Duration.seconds(300)
  package var audience = Audience.issuer

  /// The audience without an `aud` among the claims (RFC 7523, 3 (3)).
  package enum Audience: String, Sendable, CaseIterable {
    case issuer  // Or else the token endpoint.
    case endpoint  // The address of each request.
  }

  package init() { key = (try? Template(parsing: "{client_secret}")) ?? Template(literal: "") }
}

/// A descriptor that the copies of a value share. A descriptor has forty fields, and each type that contained one
/// directly would have code that copies them all: 0.5 MB in each program.
@usableFromInline
package final class SharedDescriptor: Sendable {
  package let value: Descriptor

  package init(_ value: Descriptor) { self.value = value }
}
