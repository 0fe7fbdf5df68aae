import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP

/// How a request presents a token (`Descriptor.binding(of:)`).
package protocol TokenBinding: Sendable {
  /// Whether the token also authenticates the client, so that the request needs no other proof.
  var authenticatesClient: Bool { get }
  var fieldNames: Set<String> { get }  // In lowercase.
  /// The `token_type` that the provider must give the token; `nil` if the descriptor decides.
  var tokenType: String? { get }
  /// Whether the fields added to a request depend on its body.
  func signsBody(of request: HTTPRequest) -> Bool
  /// Adds the token to the request. Keeps the fields and parameters that the request already has.
  func sign(_ request: HTTPRequest, with credential: Credential, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest
  /// Whether a signed request presents the token. One that answers a challenge is not in a request without a challenge.
  func isPresented(in request: HTTPRequest) -> Bool
  /// Returns the fields that present the token on any request; `nil` if they depend on the request.
  func fields(presenting credential: Credential, nonce: RequestNonce) throws(OAuthError) -> HTTPFields?
  /// Adds a proof of the key to a token request. The token will be bound to that key.
  func prove(_ request: HTTPRequest, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest
  /// Returns the nonce for another try if the provider demands one and has done nothing yet; otherwise `nil`.
  func nonce(demandedBy response: HTTPResponse, after nonce: RequestNonce) -> RequestNonce?
  /// Returns the nonce for the next request to the same server; `nil` if the response names none.
  func serverNonce(in response: HTTPResponse) -> String?
  /// Returns the nonce of a server that is stored with the account; `nil` if none is stored.
  func lastNonce(of server: String) -> String?
}

extension TokenBinding {
  package var tokenType: String? { nil }

  package func isPresented(in request: HTTPRequest) -> Bool { true }

  package func fields(presenting credential: Credential, nonce: RequestNonce) throws(OAuthError) -> HTTPFields? { nil }

  package func prove(_ request: HTTPRequest, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest { request }

  package func nonce(demandedBy response: HTTPResponse, after nonce: RequestNonce) -> RequestNonce? { nil }

  package func serverNonce(in response: HTTPResponse) -> String? { nil }

  package func lastNonce(of server: String) -> String? { nil }
}

extension Client {
  /// Returns the binding of an account's token. The account decides, not the descriptor: a token stays what it was when
  /// it was issued.
  package func binding(of credential: Credential) -> any TokenBinding {
    let binding = descriptor.binding(of: credential.grant)
    let isUnbound = !credential.isBound && binding.rule != .none
    return self.binding(
      isUnbound ? .bearer : credential.isCertificateBound ? .bound(.mutualTLS) : binding, of: credential.grant,
      key: credential.proofKey, nonces: credential.serverNonces)
  }

  /// Whether requests with an account's token need nothing else, such as a signature. A token without a key is from a
  /// login before the descriptor required one.
  package func isUsableAlone(_ credential: Credential) -> Bool {
    let binding = descriptor.binding(of: credential.grant)
    return !credential.isBound && (binding.isUsableAlone || binding.rule != .none)
  }

  /// Returns the binding of the token that a login with this grant gets.
  package func binding(of grant: Grant) -> any TokenBinding {
    binding(descriptor.binding(of: grant), of: grant, key: bindingKey)
  }

  /// Returns the binding of the token that a request to this endpoint gets: a new one, or the next one of an account.
  func binding(of credential: Credential?, gettingTokenAt kind: EndpointKind) -> any TokenBinding {
    let grant =
      credential?.grant ?? descriptor.grants.first { $0.traits.endpoints.contains(kind) } ?? .authorizationCode
    if let credential, !credential.accessToken.isEmpty, grant.traits.renewal != .login {
      return binding(of: credential)
    }
    return binding(descriptor.binding(of: grant), of: grant, key: credential?.proofKey ?? bindingKey)
  }

  private func binding(
    _ binding: Grant.Binding, of grant: Grant, key: Secret?, nonces: [String: String] = [:]
  ) -> any TokenBinding {
    if let key { return DPoPBinding(client: self, key: key, nonces: nonces) }
    let bearer = BearerBinding(client: self, style: descriptor.headerStyle(of: grant))
    return switch binding {
    case .aws4(let rules): AWS4Binding(client: self, rules: rules)
    case .digest: DigestBinding(client: self, style: descriptor.headerStyle(of: grant))
    case .signature: OAuth1Binding(client: self)
    case .bound(.mutualTLS): MutualTLSBinding(client: self, bearer: bearer)
    case .bearer, .pair, .bound: bearer
    }
  }

  /// Returns a new key for the account of a login; `nil` if its token is not bound to a key.
  package func newBindingKey(of grant: Grant, random: some RandomSource) -> Secret? {
    descriptor.binding(of: grant).rule.needsKey ? ECPrivateKey.pem(random: random) : nil
  }
}
