import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON

/// Proves with each request that this machine has the key of the account (RFC 9449). The token alone is of no use.
struct DPoPBinding: TokenBinding {
  let client: Client
  let key: Secret  // A private key on P-256 as PEM.
  var nonces: [String: String] = [:]  // The last nonce of each server, by origin.

  var authenticatesClient: Bool { false }
  var fieldNames: Set<String> { ["authorization", "dpop"] }
  var tokenType: String? { Self.scheme }

  private static let scheme = "DPoP"

  func signsBody(of request: HTTPRequest) -> Bool { false }

  /// Adds the token and a proof that names its hash (RFC 9449, 7.1).
  func sign(
    _ request: HTTPRequest, with credential: Credential, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    let token = credential.accessToken.reveal()
    var request = try proven(request, token: token, nonce: nonce)
    let value = Self.scheme + " " + token
    guard HTTPFields.isValid(value: value) else { throw .malformedHeader(name: "Authorization") }
    request.fields.set("Authorization", value)
    return request
  }

  func prove(_ request: HTTPRequest, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest {
    try proven(request, token: nil, nonce: nonce)
  }

  private func proven(_ request: HTTPRequest, token: String?, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest {
    // A request without a token may contain a client assertion, which needs an identifier of its own.
    let proof = DPoPProof(
      method: request.method, uri: request.uri, identifier: token == nil ? nonce.text(for: "proof") : nonce.text,
      issuedAt: nonce.timestamp.secondsSince1970, token: token, nonce: nonce.demanded)
    var request = request
    request.fields.set(
      "DPoP", try client.computing.signature("dpop_proof") { () throws(OAuthError) in try proof.signed(by: key) })
    return request
  }

  // MARK: Nonces of servers (RFC 9449, 8 and 9)

  func serverNonce(in response: HTTPResponse) -> String? {
    let values = response.fields.values("DPoP-Nonce")
    guard values.count == 1, let value = values.first, (1...Self.longestNonce).contains(value.utf8.count),
      value.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") })
    else { return nil }
    return value
  }

  func lastNonce(of server: String) -> String? { nonces[server] }

  private static let longestNonce = 1024

  func nonce(demandedBy response: HTTPResponse, after nonce: RequestNonce) -> RequestNonce? {
    guard [400, 401].contains(response.status), let next = serverNonce(in: response), next != nonce.demanded else {
      return nil
    }
    // The token endpoint answers in JSON (RFC 9449, 8), and an API with a challenge (9).
    let code = (try? JSONValue.parse(response.body))?["error"]?.text
    guard code == DPoPProof.nonceDemanded || response.demandsNonce else { return nil }
    // A proof is valid once, so the next one needs another identifier (RFC 9449, 4.2).
    var repeated = RequestNonce(timestamp: nonce.timestamp, text: nonce.text(for: next))
    repeated.demanded = next
    return repeated
  }
}

extension HTTPResponse {
  /// The error about a proof in the challenge of an API (RFC 9449, 7.1 and 9); `nil` if the refusal is about the token
  /// or something else.
  package var proofFault: String? {
    let codes = challenges.filter { $0.scheme == "dpop" }.compactMap { $0["error"] }
    return codes.first { [DPoPProof.nonceDemanded, DPoPProof.invalid].contains($0) }
  }

  /// Whether the API refused a proof only because it wants another nonce in it (RFC 9449, 9).
  package var demandsNonce: Bool { proofFault == DPoPProof.nonceDemanded }

  /// Whether the API accepts only tokens that are bound to a key (RFC 9449, 7.1).
  package var demandsProof: Bool {
    let schemes = challenges.map(\.scheme)
    return schemes.contains("dpop") && !schemes.contains("bearer")
  }
}

extension HTTPResponse {
  /// Whether a refusal is about the proof instead of the token: a wrong one, or the missing one of a bearer account.
  package func concernsProof(of credential: Credential) -> Bool {
    status == 401 && (credential.proofKey == nil ? demandsProof : proofFault != nil)
  }
}

extension OAuthError {
  /// Whether a token endpoint refused a request because of its proof, or because it has none (RFC 9449, 5 and 8).
  package var demandsProof: Bool {
    guard case .refused(_, let response) = self else { return false }
    return response.concernsProof
  }
}

extension ErrorResponse {
  /// Whether a token endpoint refused a proof, and not the grant.
  var concernsProof: Bool { [DPoPProof.nonceDemanded, DPoPProof.invalid].contains(code) }
}

extension Client {
  /// Returns the parameters that bind the code of an authorization request to the account's key (RFC 9449, 10); none
  /// without a key.
  func bindingParameters() throws(OAuthError) -> FormParameters {
    guard let bindingKey else { return [] }
    let name = "dpop_jkt"
    return [
      (name, try computing.signature(name) { () throws(OAuthError) in try DPoPProof.thumbprint(of: bindingKey) })
    ]
  }
}

/// A proof of possession for one request (RFC 9449, 4.2).
struct DPoPProof {
  static let nonceDemanded = "use_dpop_nonce"
  static let invalid = "invalid_dpop_proof"

  let method: String
  let uri: URI
  let identifier: String
  let issuedAt: Int64
  let token: String?  // `nil` at a token endpoint.
  let nonce: String?  // The server's; `nil` if it has not demanded one.

  func signed(by key: Secret) throws(OAuthError) -> String {
    let pair = try Self.pair(key)
    let header: JSONValue = ["typ": "dpop+jwt", "alg": "ES256", "jwk": Self.publicKey(try Self.point(of: pair))]
    var claims: [JSONValue.Member] = [
      .init("jti", .string(identifier)), .init("htm", .string(method)),
      .init("htu", .string(uri.withoutQueryAndFragment.text)), .init("iat", .integer(issuedAt)),
    ]
    if let token {
      claims.append(.init("ath", .string(Base64.encodeURL(HashAlgorithm.sha256.digest(Array(token.utf8))))))
    }
    if let nonce { claims.append(.init("nonce", .string(nonce))) }
    let text = [header, .object(claims)].map { Base64.encodeURL(Array($0.encoded.utf8)) }.joined(separator: ".")
    do { return text + "." + Base64.encodeURL(try pair.signature(for: Array(text.utf8))) } catch {
      throw .malformedCredential
    }
  }

  /// Returns the thumbprint of the public key (RFC 7638, 3), which binds the code to the key (RFC 9449, 10).
  static func thumbprint(of key: Secret) throws(OAuthError) -> String { thumbprint(of: try point(of: pair(key))) }

  static func thumbprint(of point: Point) -> String {
    Base64.encodeURL(HashAlgorithm.sha256.digest(Array(publicKey(point).encoded.utf8)))
  }

  typealias Point = (x: [UInt8], y: [UInt8])

  /// Returns the public key (RFC 7518, 6.2.1) with its members in the order of RFC 7638, 3.
  private static func publicKey(_ point: Point) -> JSONValue {
    [
      "crv": "P-256", "kty": "EC", "x": .string(Base64.encodeURL(point.x)), "y": .string(Base64.encodeURL(point.y)),
    ]
  }

  private static func point(of pair: ECPrivateKey) throws(OAuthError) -> Point {
    guard let point = pair.publicKey else { throw .malformedCredential }
    return point
  }

  private static func pair(_ key: Secret) throws(OAuthError) -> ECPrivateKey {
    do { return try ECPrivateKey(pem: key) } catch {
      throw error == .noSignatures ? .noSignatures : .malformedCredential
    }
  }
}
