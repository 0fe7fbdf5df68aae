import Cryptography
import HTTP
import JSON
import Descriptors
import Text

extension Simulation {
  /// How the client has to show who it is at an endpoint.
  func expectedAuthentication(_ endpoint: Endpoint) -> ClientAuthentication {
    endpoint.authentication ?? descriptor.client.authentication ?? .clientSecretBasic
  }

  /// Checks a request to an endpoint that is not for browsers: what the descriptor adds and drops, the headers, and
  /// that the client shows who it is exactly as declared.
  ///
  /// - Throws: `Refusal`.
  func checkClient(
    _ request: HTTPRequest, _ endpoint: Endpoint, _ parameters: EndpointParameters, kept: [String: String] = [:]
  ) throws(Refusal) {
    try parameters.checkRules(knowledge(kept))
    try checkHeaders(request, endpoint.headers, knowledge(kept))
    let expected = expectedAuthentication(endpoint)
    // A header that the descriptor writes itself, as the check of the headers has seen it, is what it wants.
    let isWritten = endpoint.headers.contains { $0.name.lowercased() == "authorization" }
    let isBasic = expected == .clientSecretBasic || !isWritten
    let basic = isBasic ? request.fields["Authorization"].flatMap(Self.basic) : nil
    let secret = parameters.isSet("client_secret") ? nil : try parameters.optional("client_secret")
    if basic != nil, secret != nil { throw .client(.twoClientAuthentications) }
    switch expected {
    case .clientSecretBasic:
      guard let basic else { throw .client(.wrongClientAuthentication(expected: expected)) }
      guard isClient(basic.identifier), isSecret(basic.secret) else { throw .client(.unknownClient) }
      if !parameters.isSet("client_id"), let identifier = try parameters.optional("client_id") {
        guard isClient(identifier) else { throw .client(.unknownClient) }
      }
    case .clientSecretPost:
      guard basic == nil else { throw .client(.wrongClientAuthentication(expected: expected)) }
      try checkIdentifier(parameters)
      if !parameters.isSet("client_secret"), !parameters.isDropped("client_secret") {
        guard let secret else { throw .client(.wrongClientAuthentication(expected: expected)) }
        guard isSecret(secret) else { throw .client(.unknownClient) }
      }
    case .privateKeyJWT, .clientSecretJWT:
      guard basic == nil, secret == nil, try parameters.needed("client_assertion_type") == Self.assertionType else {
        throw .client(.wrongClientAuthentication(expected: expected))
      }
      guard try isAssertion(parameters.needed("client_assertion"), expected) else { throw .client(.unknownClient) }
    case .none:
      guard basic == nil, secret == nil else { throw .client(.wrongClientAuthentication(expected: expected)) }
      try checkIdentifier(parameters)
    case .accessToken:
      guard basic == nil, secret == nil else { throw .client(.wrongClientAuthentication(expected: expected)) }
    }
  }

  private static let assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

  /// RFC 7523, 3: signed by the client, in time. Claims that the descriptor sets are whatever it says.
  private func isAssertion(_ text: String, _ method: ClientAuthentication) -> Bool {
    let pieces = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard pieces.count == 3, let signature = Base64.decodeURL(pieces[2]),
      let header = Base64.decodeURL(pieces[0]).flatMap({ try? JSONValue.parse($0) }),
      let claims = Base64.decodeURL(pieces[1]).flatMap({ try? JSONValue.parse($0) })
    else { return false }
    let rules = descriptor.assertion ?? AssertionRules()
    let algorithm = rules.algorithm ?? (method == .clientSecretJWT ? .hs256 : .rs256)
    guard header["alg"]?.text == algorithm.rawValue else { return false }
    let changed = Set(rules.claims.map(\.name))
    if !changed.contains("sub") {
      guard claims["sub"]?.text.map(isClient) == true else { return false }
    }
    if let expiry = claims["exp"]?.integer, expiry < now / 1000 { return false }
    // Another key than the client's secret is not known here.
    guard rules.key.names == ["client_secret"] else { return true }
    return isSignature(signature, of: Array((pieces[0] + "." + pieces[1]).utf8), algorithm)
  }

  private func isSignature(_ signature: [UInt8], of text: [UInt8], _ algorithm: AssertionAlgorithm) -> Bool {
    let key = clientSecret.revealBytes()
    func rsa(_ hash: HashAlgorithm) -> Bool {
      (try? RSAPrivateKey(pem: Secret(bytes: key)))?.isValid(signature: signature, for: text, hash) == true
    }
    func hmac(_ hash: HashAlgorithm) -> Bool {
      Secret(bytes: hash.authenticationCode(for: text, key: key)) == Secret(bytes: signature)
    }
    return switch algorithm {
    case .rs256: rsa(.sha256)
    case .rs384: rsa(.sha384)
    case .rs512: rsa(.sha512)
    case .es256: (try? ECPrivateKey(pem: Secret(bytes: key)))?.isValid(signature: signature, for: text) == true
    case .hs256: hmac(.sha256)
    case .hs384: hmac(.sha384)
    case .hs512: hmac(.sha512)
    }
  }

  private func checkIdentifier(_ parameters: EndpointParameters) throws(Refusal) {
    if parameters.isSet("client_id") || parameters.isDropped("client_id") { return }
    guard isClient(try parameters.needed("client_id")) else { throw .client(.unknownClient) }
  }

  func isClient(_ identifier: String) -> Bool {
    constantTimeEqual(identifier, SimulatedProvider.clientIdentifier)
  }

  private func isSecret(_ secret: String) -> Bool { Secret(secret) == clientSecret }

  /// Checks that every header that the descriptor adds is there with its value.
  ///
  /// - Throws: `Refusal` at the first one that is not.
  func checkHeaders(
    _ request: HTTPRequest, _ headers: [HeaderTemplate], _ knowledge: (String) -> Knowledge
  ) throws(Refusal) {
    for header in headers {
      let pattern = TemplatePattern(header.value, knowledge)
      let values = request.fields.values(header.name)
      if values.isEmpty, pattern.isOptional { continue }
      guard let value = values.first else { throw .request(.missingHeader(header.name)) }
      guard values.count == 1, pattern.matches(value) else { throw .request(.wrongHeader(header.name)) }
    }
  }

  /// RFC 6749, 2.3.1: identifier and secret, each form-encoded, joined by a colon, in Base64.
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

  /// The scopes of a request, which have to be joined as the descriptor says.
  ///
  /// - Throws: `Refusal` when they are joined otherwise.
  func scopes(_ text: String?) throws(Refusal) -> [String] {
    guard let text else { return [] }
    let separator = descriptor.scope.separator
    let scopes = text.pieces(separatedBy: separator).filter { !$0.isEmpty }.map(String.init)
    // A comma can be part of a scope; where it is not part of any known one, it was meant to separate.
    let otherSeparator: Character = separator.contains(" ") ? "," : " "
    let isPart = descriptor.scope.requested.contains { $0.contains(otherSeparator) }
    if !isPart, scopes.contains(where: { $0.contains(otherSeparator) }), !separator.contains(otherSeparator) {
      throw Refusal("invalid_scope", .wrongScopeSeparator(expected: separator))
    }
    return scopes
  }
}
