import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText

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
    _ = try certificate()
    var request = request
    request.clientCertificate = secret?.pem.revealBytes()
    return request
  }

  /// Returns the client's certificate; `nil` if this program cannot read it. Throws unless the client's secret contains
  /// a certificate and its private key.
  private func certificate() throws(OAuthError) -> ClientCertificate? {
    guard let secret, case let text = secret.reveal(), text.firstPlace(of: "-----BEGIN CERTIFICATE-----") != nil else {
      throw .clientCertificateMissing
    }
    try text.checkFormOfKey()
    do throws(CryptographyError) { return try ClientCertificate(pem: secret) } catch {
      switch error {
      case .noSignatures: return nil
      case .otherCertificate: throw .clientCertificate(.otherKey)
      case .notAPrivateKey: throw .clientCertificate(.noKey)
      default: throw .clientCertificate(.unreadable)
      }
    }
  }

  /// When the certificate of a client that needs one expires; `nil` if it is unreadable.
  package var certificateEnd: Moment? {
    guard usesCertificate, let certificate = try? certificate() else { return nil }
    return Moment(secondsSince1970: certificate.endsAt)
  }

  /// Returns why servers may refuse the client's certificate at a moment; `nil` if it is valid or unreadable.
  package func certificateFault(at now: Moment) -> CertificateFault? {
    guard let certificate = try? certificate() else { return nil }
    let (begin, end) = (Moment(secondsSince1970: certificate.beginsAt), Moment(secondsSince1970: certificate.endsAt))
    if end < now { return .expired(end) }
    return begin > now + IDToken.leeway ? .notYetValid(begin) : nil
  }

  /// Throws if the client's secret cannot be the key or the certificate that the descriptor requires.
  package func checkSecret() throws(OAuthError) {
    guard secret?.isEmpty == false, !computing.isOnlyShown else { return }
    let methods = Set(descriptor.endpoints.values.map(authentication))
    if usesCertificate {
      _ = try certificate()
      let isShared = descriptor.endpoints.contains { kind, endpoint in
        kind.leg.issuesToken && authentication(for: endpoint).sharesSecret
      }
      if isShared, secret?.isBesideKey != true { throw .clientSecretBesideCertificateMissing }
    }
    let rules = descriptor.assertion ?? AssertionRules()
    let algorithm = rules.algorithm ?? .rs256
    guard methods.contains(.privateKeyJWT) || descriptor.signsRequests, !algorithm.isSymmetric,
      let key = try? rules.key.filled(signingValues(for: nil, [:]))
    else { return }
    try key.checkFormOfKey()
    do throws(OAuthError) { _ = try Self.sign([], algorithm, key: key) } catch {
      if error != .noSignatures { throw error }
    }
  }

  /// Whether the client authenticates with a certificate, or tokens are bound to it.
  package var usesCertificate: Bool {
    descriptor.tokenBinding == .mutualTLS
      || descriptor.endpoints.values.contains { authentication(for: $0).usesCertificate }
  }
}

extension String {
  /// Throws if the text contains a private key in a form that credmgr does not read.
  fileprivate func checkFormOfKey() throws(OAuthError) {
    if firstPlace(of: "-----BEGIN OPENSSH PRIVATE KEY-----") != nil { throw .clientKeyOpenSSH }
    // The two forms of a key with a passphrase: RFC 5958, 3, and RFC 1421, 4.6.
    if firstPlace(of: "-----BEGIN ENCRYPTED ") != nil || firstPlace(of: "Proc-Type: 4,ENCRYPTED") != nil {
      throw .clientKeyEncrypted
    }
  }
}

/// Why a client's certificate is of no use.
package enum CertificateFault: Sendable, Equatable {
  case unreadable
  case noKey
  case otherKey  // It is for another private key.
  case expired(Moment)
  case notYetValid(Moment)
}
