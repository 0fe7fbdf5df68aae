import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrTLS
import CredmgrText

/// The server for clients with a certificate. Browsers use the other one, because they would ask their users for a
/// certificate (RFC 8705, 5).
struct CertifiedServer: Sendable {
  let origin: String
  let registered: Certificate  // The certificate of the client.
  let authorities: [Certificate]  // Those that may sign another certificate of the client.
}

/// Certificates of clients (RFC 8705). TLS has proved that the client has the key, and everything else is checked here.
extension Simulation {
  var bindsToCertificates: Bool { descriptor.tokenBinding == .mutualTLS }

  /// Returns why `add-provider` would refuse the file of the client; `nil` if it would not.
  static func fault(of file: Secret, for descriptor: Descriptor, at now: Duration) -> String? {
    do throws(CryptographyError) {
      let certificate = try ClientCertificate(pem: file)
      if certificate.endsAt < now.wholeSeconds { return "the certificate has expired" }
      if certificate.beginsAt > now.wholeSeconds { return "the certificate is not valid yet" }
    } catch {
      switch error {
      case .noSignatures: break
      case .notAPrivateKey: return "the private key is missing or not valid"
      case .otherCertificate: return "the private key belongs to another certificate"
      default: return "the certificate is not valid"
      }
    }
    return descriptor.sharesSecret && !file.isBesideKey ? "its first line is not the client secret" : nil
  }

  /// Checks that the certificate authenticates the client: by its authority and subject (RFC 8705, 2.1), or by itself
  /// (2.2).
  func checkCertificate(_ method: ClientAuthentication) throws(Refusal) {
    let presented = try presentedCertificate()
    guard let registered = certified?.registered, let authorities = certified?.authorities else { throw .noSuchPath }
    if presented == registered { return }
    guard method == .tlsClientAuth else { throw .wrongCertificate }
    guard authorities.contains(where: presented.isIssued) else { throw .certificateOfAnotherAuthority }
    guard presented.subject == registered.subject else { throw .certificateOfAnotherSubject }
  }

  /// Returns the client's certificate, which must be valid now.
  private func presentedCertificate() throws(Refusal) -> Certificate {
    guard let certificate = state.certificate else { throw .certificateMissing }
    guard certificate.isValid(at: now.wholeSeconds) else { throw .certificateExpired }
    return certificate
  }

  /// Returns the hash of the certificate to which a new token will be bound (RFC 8705, 3.1).
  func certificateForTokens() throws(Refusal) -> String {
    do throws(Refusal) { return try presentedCertificate().thumbprint } catch {
      throw clientAuthentication.usesCertificate ? error : error.with(code: "invalid_request")
    }
  }

  /// Checks that the client presents the certificate to which the token is bound (RFC 8705, 3).
  func checkCertificate(of issued: IssuedToken) throws(Refusal) {
    guard bindsToCertificates, let key = issued.key else { return }
    do throws(Refusal) {
      if try presentedCertificate().thumbprint != key { throw .foreignCertificate }
    } catch { throw error.with(code: "invalid_token") }
  }

  /// Returns the key or certificate of a token (RFC 8705, 3.1; RFC 9449, 6.1); `nil` for a bearer token.
  func confirmation(of key: String?) -> JSONValue.Member? {
    key.map { .init(bindsToCertificates ? "x5t#S256" : "jkt", .string($0)) }
  }

  // MARK: Addresses

  /// Whether a client with a certificate has its own address for an endpoint.
  private static func isAliased(_ kind: EndpointKind) -> Bool { kind.leg.authenticatesClient || kind == .identity }

  /// Returns an address on the server for clients with a certificate.
  private func alias(_ text: String, _ server: CertifiedServer) -> String {
    server.origin + text.dropFirst(origin.count)
  }

  /// The descriptor with the addresses for clients with a certificate.
  var aliasedDescriptor: Descriptor {
    guard let certified else { return descriptor }
    var aliased = descriptor
    for (kind, endpoint) in descriptor.endpoints where Self.isAliased(kind) {
      if let template = try? Template(parsing: alias(endpoint.url.template.text, certified)) {
        aliased.endpoints[kind]?.url = URLTemplate(template)
      }
    }
    return aliased
  }

  /// The members of metadata for clients with a certificate (RFC 8705, 3.3 and 5). `endpoints` are the usual ones.
  func certificateMetadata(_ endpoints: [(kind: EndpointKind, member: JSONValue.Member)]) -> [JSONValue.Member] {
    guard let certified, !isStandard else { return [] }
    let aliases = endpoints.filter { Self.isAliased($0.kind) }.map { endpoint in
      JSONValue.Member(endpoint.member.name, .string(alias(endpoint.member.value.text ?? "", certified)))
    }
    return [
      .init("tls_client_certificate_bound_access_tokens", .boolean(bindsToCertificates)),
      .init("mtls_endpoint_aliases", .object(aliases)),
    ]
  }
}

extension Descriptor {
  /// The authentication methods of the client.
  var clientMethods: [ClientAuthentication] {
    ([client.authentication] + endpoints.values.map(\.authentication)).compactMap { $0 }
  }

  /// Whether the client needs a secret that the provider knows too.
  var sharesSecret: Bool {
    endpoints.contains { kind, endpoint in
      kind.leg.issuesToken && (endpoint.authentication ?? client.authentication ?? .clientSecretBasic).sharesSecret
    }
  }

  /// Whether the client needs a certificate.
  var usesCertificates: Bool { tokenBinding == .mutualTLS || clientMethods.contains(where: \.usesCertificate) }
}

extension Refusal {
  static let certificateMissing = Refusal("the client presents no certificate", code: "invalid_client")
  static let certificateExpired = Refusal("the certificate has expired or is not valid yet", code: "invalid_client")
  static let wrongCertificate = Refusal("the certificate is not the registered one", code: "invalid_client")
  static let certificateOfAnotherAuthority = Refusal(
    "the certificate is from an unknown authority", code: "invalid_client")
  static let certificateOfAnotherSubject = Refusal(
    "the certificate has another subject than the registered one", code: "invalid_client")
  static let foreignCertificate = Refusal("the token is bound to another certificate", code: "invalid_grant")
}
