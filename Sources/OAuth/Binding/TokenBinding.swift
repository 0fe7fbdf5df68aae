import Descriptors
import HTTP

/// How a token is shown in a request, and what it is worth by itself.
package protocol TokenBinding: Sendable {
  /// Whether whoever has the token and nothing else can use it, whatever the request.
  var isUsableAlone: Bool { get }
  /// Whether a request with the token on it shows who the client is as well, so that nothing else has to.
  var authenticatesClient: Bool { get }
  var fieldNames: Set<String> { get }  // In lower case.
  /// Whether what it adds to a request depends on the body.
  func signsBody(of request: HTTPRequest) -> Bool
  /// The request with the token on it. A field or a parameter that it has already stays.
  func sign(_ request: HTTPRequest, with credential: Credential, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest
  /// The request for a token, with the proof of what the token will be bound to.
  func prove(_ request: HTTPRequest, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest
  /// The nonce that the answer demands another try with, if it did nothing yet; `nil`: the answer counts.
  func nonce(demandedBy response: HTTPResponse, after nonce: RequestNonce) -> RequestNonce?
}

extension TokenBinding {
  package func prove(_ request: HTTPRequest, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest { request }

  package func nonce(demandedBy response: HTTPResponse, after nonce: RequestNonce) -> RequestNonce? { nil }
}

extension Client {
  package func binding(of grant: Grant) -> any TokenBinding {
    switch (grant.traits.binding, descriptor.headerStyle.location) {
    case (.signature, .none): OAuth1Binding(client: self)
    default: BearerBinding(client: self)
    }
  }
}
