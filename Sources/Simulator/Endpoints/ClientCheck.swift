import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

extension Simulation {
  func authentication(_ endpoint: Endpoint) -> ClientAuthentication { endpoint.authentication ?? clientAuthentication }

  /// Checks a request that does not come from a browser: the parameters that the descriptor adds and drops, the
  /// headers, and the client authentication.
  mutating func checkClient(_ parameters: EndpointParameters, kept: [String: String] = [:]) throws(Refusal) {
    try parameters.checkRulesAndHeaders(knowledge(kept))
    let endpoint = parameters.endpoint
    let expected = authentication(endpoint)
    let wrong = Refusal.wrongClientAuthentication(expected: expected)
    // The header check has already accepted a header that the descriptor defines.
    let isWritten = endpoint.headers.contains { $0.name.lowercased() == "authorization" }
    let isBasic = expected == .clientSecretBasic || !isWritten
    let basic = isBasic ? parameters.request.fields["Authorization"].flatMap(Self.basic) : nil
    let secret = parameters.isSet("client_secret") ? nil : try parameters.optional("client_secret")
    if basic != nil, secret != nil { throw .twoClientAuthentications }
    guard (basic != nil) == (expected == .clientSecretBasic), secret == nil || expected == .clientSecretPost else {
      throw wrong
    }
    switch expected {
    case .clientSecretBasic:
      guard let basic, isClient(basic.identifier), Secret(basic.secret) == clientSecret.shared else {
        throw .unknownClient
      }
      let other = parameters.isSet("client_id") ? nil : try parameters.optional("client_id")
      guard other.map(isClient) ?? true else { throw .unknownClient }
    case .clientSecretPost, .none, .tlsClientAuth, .selfSignedTLSClientAuth:
      if hasClient, !parameters.isSet("client_id"), !parameters.isDropped("client_id") {
        guard isClient(try parameters.needed("client_id")) else { throw .unknownClient }
      }
      if expected.usesCertificate { return try checkCertificate(expected) }
      if expected != .clientSecretPost || parameters.isSet("client_secret") || parameters.isDropped("client_secret") {
        return
      }
      guard let secret else { throw wrong }
      guard Secret(secret) == clientSecret.shared else { throw .unknownClient }
    case .privateKeyJWT, .clientSecretJWT:
      let type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
      guard try parameters.needed("client_assertion_type") == type else { throw wrong }
      try checkAssertion(parameters.needed("client_assertion"), of: expected, parameters, kept: kept)
    case .accessToken: break
    }
  }

  /// Returns the header and the claims of a JWT, and its signature with the signed text. The simulator knows no
  /// extension that `crit` may demand, so it must refuse each (RFC 7515, 4.1.11).
  static func parts(
    ofJWT text: String
  ) -> (header: JSONValue, claims: JSONValue, signature: (bytes: [UInt8], text: String))? {
    let pieces = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    let decoded = pieces.map { Base64.decodeURL($0) ?? [] }
    guard pieces.count == 3, let header = try? JSONValue.parse(decoded[0]),
      header["crit"] == nil, let claims = try? JSONValue.parse(decoded[1])
    else { return nil }
    return (header, claims, (decoded[2], pieces[0] + "." + pieces[1]))
  }

  /// A signature algorithm, independent of any standard's name for it.
  enum SignatureScheme {
    case hmac(HashAlgorithm)
    case rsa(HashAlgorithm)
    case pss(HashAlgorithm)
    case ecdsa
    case eddsa
  }

  func isSignature(_ signature: [UInt8], of text: String, _ scheme: SignatureScheme, key: Secret) -> Bool {
    let text = Array(text.utf8)
    switch scheme {
    case .hmac(let hash):
      return constantTimeEqual(hash.authenticationCode(for: text, key: key.shared.revealBytes()), signature)
    case .rsa(let hash):
      return (try? RSAPrivateKey(pem: key))?.isValid(signature: signature, for: text, hash) == true
    case .pss(let hash):
      return (try? RSAPrivateKey(pem: key))?.isValid(pssSignature: signature, for: text, hash) == true
    case .eddsa: return (try? EdPrivateKey(pem: key))?.isValid(signature: signature, for: text) == true
    case .ecdsa: return (try? ECPrivateKey(pem: key))?.isValid(signature: signature, for: text) == true
    }
  }

  func isClient(_ identifier: String) -> Bool {
    constantTimeEqual(identifier, Self.clientIdentifier) || isStandard && state.documents[identifier] != nil
  }

  /// Decodes Basic credentials: identifier and secret, each form-encoded (RFC 6749, 2.3.1).
  private static func basic(_ header: String) -> (identifier: String, secret: String)? {
    let scheme = "Basic "
    guard header.lowercased().hasPrefix(scheme.lowercased()),
      let bytes = Base64.decode(String(header.dropFirst(scheme.count))),
      let pair = String(validating: bytes, as: UTF8.self), let colon = pair.firstIndex(of: ":"),
      let identifier = PercentEncoding.decode(pair[..<colon], plusAsSpace: true),
      let secret = PercentEncoding.decode(pair[pair.index(after: colon)...], plusAsSpace: true)
    else { return nil }
    return (identifier, secret)
  }

  /// Returns the authorization details of a request (RFC 9396, 5); `nil` if it has none.
  func details(_ parameters: EndpointParameters) throws(Refusal) -> JSONValue? {
    guard let text = try parameters.optional("authorization_details") else { return nil }
    let known = descriptor.authorizationDetails.types
    guard let value = try? JSONValue.parse(Array(text.utf8)), let elements = value.elements, !elements.isEmpty,
      elements.allSatisfy({ element in
        element["type"]?.text.map { known.isEmpty || known.contains($0) } ?? false
      })
    else { throw .wrongDetails }
    return value
  }

  /// Returns the scopes of a request, which must be joined as the descriptor says. Without any, returns the
  /// descriptor's scopes.
  func scope(_ parameters: EndpointParameters) throws(Refusal) -> [String] {
    let separator = descriptor.scope.separator
    let text = try parameters.optional("scope") ?? ""
    let scope = text.pieces(separatedBy: separator).filter { !$0.isEmpty }.map(String.init)
    // A comma can be part of a scope. If no known scope contains one, it must be a wrong separator.
    let otherSeparator: Character = separator.contains(" ") ? "," : " "
    let isPart = descriptor.scope.requested.contains { $0.contains(otherSeparator) }
    if !isPart, scope.contains(where: { $0.contains(otherSeparator) }), !separator.contains(otherSeparator) {
      throw .wrongScopeSeparator(expected: separator)
    }
    return scope.isEmpty ? descriptor.scope.requested : scope
  }
}

extension AssertionAlgorithm {
  var scheme: Simulation.SignatureScheme {
    switch self {
    case .rs256: .rsa(.sha256)
    case .rs384: .rsa(.sha384)
    case .rs512: .rsa(.sha512)
    case .ps256: .pss(.sha256)
    case .ps384: .pss(.sha384)
    case .ps512: .pss(.sha512)
    case .es256: .ecdsa
    case .edDSA: .eddsa
    case .hs256: .hmac(.sha256)
    case .hs384: .hmac(.sha384)
    case .hs512: .hmac(.sha512)
    }
  }
}
