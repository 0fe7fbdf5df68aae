import Cryptography
import HTTP
import JSON
import Descriptors
import Text

extension Client {
  /// RFC 7523, 3; `nil` where the endpoint needs none.
  func assertion(
    at kind: EndpointKind, authenticates: Bool, _ credential: Credential?, exchange: [String: String],
    nonce: RequestNonce
  ) throws(OAuthError) -> String? {
    let endpoint = try endpoint(kind)
    let method = authentication(for: endpoint)
    let isAuthentication = authenticates && (method == .privateKeyJWT || method == .clientSecretJWT)
    let templates = endpoint.parameters.compactMap(\.value) + endpoint.headers.map(\.value)
    guard isAuthentication || templates.contains(where: { $0.names.contains("assertion") }) else { return nil }
    try requireAudience(at: endpoint, kind, credential, exchange: exchange, nonce: nonce)
    return try computing.signature("assertion") { () throws(OAuthError) in
      try assertion(method, credential, exchange, nonce)
    }
  }

  /// An assertion goes to the origin of the token endpoint, or to the one that the descriptor names as its audience:
  /// another server could use it at the one that it is for.
  private func requireAudience(
    at endpoint: Endpoint, _ kind: EndpointKind, _ credential: Credential?, exchange: [String: String],
    nonce: RequestNonce
  ) throws(OAuthError) {
    let values = values(for: credential, exchange)
    let calculate = calculator(nonce)
    // The assertion itself may stand in the path.
    let filled = try? endpoint.url.filled({ $0 == "assertion" ? $0 : values($0) }, calculate: calculate)
    guard let destination = filled else { return }
    let claim = descriptor.assertion?.claims.last { $0.name == "aud" }?.value
    let audience = claim.flatMap { try? $0.filled(values, calculate: calculate) }.flatMap { try? URI(parsing: $0) }
    let token = tokenEndpoint.flatMap { try? $0.url.filled(values, calculate: calculate) }
    guard [token, audience].contains(where: { $0?.origin == destination.origin }) else {
      throw .foreignAssertion(kind, origin: destination.origin)
    }
  }

  /// The endpoint whose URL says whom an assertion is for; a descriptor of one grant may have it under another name.
  private var tokenEndpoint: Endpoint? {
    [.token, .clientCredentials, .deviceToken, .refresh].lazy.compactMap { descriptor.endpoints[$0] }.first
  }

  private func assertion(
    _ method: ClientAuthentication, _ credential: Credential?, _ exchange: [String: String], _ nonce: RequestNonce
  ) throws(OAuthError) -> String {
    let calculate = calculator(nonce)
    let rules = descriptor.assertion ?? AssertionRules()
    let algorithm = rules.algorithm ?? (method == .clientSecretJWT ? .hs256 : .rs256)
    let values = values(for: credential, exchange)
    guard let key = try? rules.key.filled(values, calculate: calculate) else { throw .clientSecretMissing }
    func members(_ standard: [JSONValue.Member], _ changes: [ParameterRule]) -> JSONValue {
      var members = standard
      for change in changes {
        let text = change.value.flatMap { try? $0.filled(values, calculate: calculate) }
        let place = members.firstIndex { $0.name == change.name }
        guard let text else {
          if let place { members.remove(at: place) }
          continue
        }
        // RFC 7519, 2: these are numbers.
        let isMoment = ["iat", "exp", "nbf"].contains(change.name) && Int64(text) != nil
        let member = JSONValue.Member(change.name, isMoment ? .number(text) : .string(text))
        if let place { members[place] = member } else { members.append(member) }
      }
      return .object(members)
    }
    let header = members([.init("alg", .string(algorithm.rawValue)), .init("typ", "JWT")], rules.header)
    // RFC 7523, 3 (3). The issuer is the one name that no other server has.
    let issuer = descriptor.issuer.flatMap { try? $0.filled(self.values()) }
    let audience = issuer ?? tokenEndpoint.flatMap { try? $0.url.filled(values) }?.withoutQueryAndFragment.text
    let claims = members(
      [
        .init("iss", .string(identifier)), .init("sub", .string(identifier)),
        .init("aud", .string(audience ?? "")), .init("jti", .string(nonce.text)),
        .init("iat", .moment(nonce.timestamp)), .init("exp", .moment(nonce.timestamp + rules.lifetime)),
      ], rules.claims)
    let text = [header, claims].map { Base64.encodeURL(Array($0.encoded.utf8)) }.joined(separator: ".")
    return text + "." + Base64.encodeURL(try Self.sign(Array(text.utf8), algorithm, key))
  }

  private static func sign(
    _ text: [UInt8], _ algorithm: AssertionAlgorithm, _ key: String
  ) throws(OAuthError) -> [UInt8] {
    let bytes = Array(key.utf8)
    guard !bytes.isEmpty else { throw .clientKeyMalformed }
    let secret = Secret(bytes: bytes)
    do {
      return switch algorithm {
      case .rs256: try RSAPrivateKey(pem: secret).signature(for: text, .sha256)
      case .rs384: try RSAPrivateKey(pem: secret).signature(for: text, .sha384)
      case .rs512: try RSAPrivateKey(pem: secret).signature(for: text, .sha512)
      case .es256: try ECPrivateKey(pem: secret).signature(for: text)
      case .hs256: HashAlgorithm.sha256.authenticationCode(for: text, key: bytes)
      case .hs384: HashAlgorithm.sha384.authenticationCode(for: text, key: bytes)
      case .hs512: HashAlgorithm.sha512.authenticationCode(for: text, key: bytes)
      }
    } catch {
      throw error == .noSignatures ? .noSignatures : .clientKeyMalformed
    }
  }
}

/// The claims of a JWT that somebody gave us over a connection that says who it is. The signature is not looked at, so
/// that nothing in it may be believed that the one who gave it could not say as well (OpenID Connect Core 1.0, 3.1.3.7,
/// 6).
enum JWTClaims {
  static func parse(_ token: String) -> JSONValue? {
    let pieces = token.split(separator: ".", omittingEmptySubsequences: false)
    guard pieces.count == 3, let bytes = Base64.decodeURL(String(pieces[1])) else { return nil }
    return try? JSONValue.parse(bytes)
  }
}
