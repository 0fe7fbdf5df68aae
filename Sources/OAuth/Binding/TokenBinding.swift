import CredmgrDescriptors
import CredmgrHTTP

/// How a request presents a token (`Descriptor.binding(of:)`).
package protocol TokenBinding: Sendable {
  /// Whether the token also authenticates the client, so that the request needs no other proof.
  var authenticatesClient: Bool { get }
  var fieldNames: Set<String> { get }  // In lowercase.
  /// Whether the fields added to a request depend on its body.
  func signsBody(of request: HTTPRequest) -> Bool
  /// Adds the token to the request. Keeps the fields and parameters that the request already has.
  func sign(_ request: HTTPRequest, with credential: Credential, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest
  /// Returns the fields that present the token on any request; `nil` if they depend on the request.
  func fields(presenting credential: Credential, nonce: RequestNonce) throws(OAuthError) -> HTTPFields?
  /// Adds a proof of the key to a token request. The token will be bound to that key.
  func prove(_ request: HTTPRequest, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest
  /// Returns the nonce for another try if the provider demands one and has done nothing yet; otherwise `nil`.
  func nonce(demandedBy response: HTTPResponse, after nonce: RequestNonce) -> RequestNonce?
}

extension TokenBinding {
  package func fields(presenting credential: Credential, nonce: RequestNonce) throws(OAuthError) -> HTTPFields? { nil }

  package func prove(_ request: HTTPRequest, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest { request }

  package func nonce(demandedBy response: HTTPResponse, after nonce: RequestNonce) -> RequestNonce? { nil }
}

extension Client {
  package func binding(of grant: Grant) -> any TokenBinding {
    switch descriptor.binding(of: grant) {
    case .aws4(let rules): AWS4Binding(client: self, rules: rules)
    case .signature: OAuth1Binding(client: self)
    case .bearer, .pair: BearerBinding(client: self, style: descriptor.headerStyle(of: grant))
    }
  }
}
