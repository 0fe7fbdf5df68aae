import CredmgrDescriptors
import CredmgrHTTP

/// Presents a token over a connection with the client's certificate, to which the provider bound the token (RFC 8705,
/// 3). The token alone is of no use.
struct MutualTLSBinding: TokenBinding {
  let client: Client
  let bearer: BearerBinding

  var authenticatesClient: Bool { false }
  var fieldNames: Set<String> { bearer.fieldNames }

  func signsBody(of request: HTTPRequest) -> Bool { bearer.signsBody(of: request) }

  func sign(
    _ request: HTTPRequest, with credential: Credential, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    try client.certified(bearer.sign(request, with: credential, nonce: nonce))
  }

  func fields(presenting credential: Credential, nonce: RequestNonce) throws(OAuthError) -> HTTPFields? {
    try bearer.fields(presenting: credential, nonce: nonce)
  }

  /// The certificate of the token request is the one to which the token will be bound.
  func prove(_ request: HTTPRequest, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest {
    try client.certified(request)
  }
}

extension Client {
  /// Returns the request with the client's certificate and private key, which are together in the client's secret. TLS
  /// sends only the certificate and a signature.
  func certified(_ request: HTTPRequest) throws(OAuthError) -> HTTPRequest {
    if computing.isOnlyShown { return request }
    guard let secret, case let text = secret.reveal(), text.hasPrivateKey,
      text.firstPlace(of: "-----BEGIN CERTIFICATE-----") != nil
    else { throw .clientCertificateMissing }
    var request = request
    request.clientCertificate = secret.revealBytes()
    return request
  }
}
