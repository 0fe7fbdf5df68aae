import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

/// Proofs of possession (RFC 9449), checked with code of its own, so that it does not share a fault with the client.
extension Simulation {
  /// The scheme of a request with a token, and the type of the token; `nil` if it needs no proof.
  var proofScheme: String? { descriptor.tokenBinding.needsKey ? "DPoP" : nil }

  /// How far the times of two machines may differ (RFC 9449, 11.1).
  private static let proofLifetime = Duration.minutes(1)

  /// Whether an endpoint issues bound tokens, so that its requests need a proof (RFC 9449, 5).
  func needsProof(at kind: EndpointKind) -> Bool { proofScheme != nil && kind.leg.issuesToken }

  /// Checks the proof of a request (RFC 9449, 4.3), and returns the thumbprint of its key (RFC 7638). `token` is the
  /// token of a request to the API.
  mutating func provenKey(_ request: HTTPRequest, token: String? = nil) throws(Refusal) -> String {
    let values = request.fields.values("DPoP")
    guard values.count == 1 else { throw values.isEmpty ? .proofMissing : .proof("it occurs more than once") }
    guard let (header, claims, signature) = Self.parts(ofJWT: values[0]) else {
      throw .proof("it is not a JWT, or its \"crit\" demands an extension")
    }
    guard header["typ"]?.text == "dpop+jwt" else { throw .proof("its \"typ\" is not dpop+jwt") }
    guard header["alg"]?.text == "ES256" else { throw .proof("its \"alg\" is not ES256") }
    guard let jwk = header["jwk"], jwk["kty"]?.text == "EC", jwk["crv"]?.text == "P-256",
      let x = jwk["x"]?.text, let y = jwk["y"]?.text, let xBytes = Base64.decodeURL(x),
      let yBytes = Base64.decodeURL(y), xBytes.count == 32, yBytes.count == 32
    else { throw .proof("its \"jwk\" is not a key on P-256") }
    if jwk["d"] != nil { throw .proof("it contains the private key") }
    let isSigned = try? PublicKey.p256(x: xBytes, y: yBytes)
      .isValid(signature: signature.bytes, for: Array(signature.text.utf8), .ecdsa)
    guard isSigned == true else { throw .proof("its signature does not match its key") }
    guard claims["htm"]?.text == request.method else { throw .proof("\"htm\" is another method") }
    let htu = claims["htu"]?.text.flatMap { try? URI(parsing: $0) }
    guard let htu, htu.query == nil, htu.fragment == nil, htu.origin == request.uri.origin, htu.path == request.uri.path
    else { throw .proof("\"htu\" is another URL, or has a query") }
    guard let time = claims["iat"]?.integer,
      ((.zero - Self.proofLifetime)...Self.proofLifetime).contains(now - Duration.seconds(time))
    else { throw .proof("\"iat\" is missing or differs too much from the current time") }
    let hash = token.map { Base64.encodeURL(HashAlgorithm.sha256.digest(Array($0.utf8))) }
    guard claims["ath"]?.text == hash else { throw .proof("\"ath\" does not belong to the token") }
    guard let identifier = claims["jti"]?.text, identifier.utf8.count >= 2 else { throw .proof("it has no \"jti\"") }
    try checkServerNonce(claims["nonce"]?.text)
    guard state.proofs.insert(identifier).inserted else { throw .proof("its \"jti\" was already used") }
    let thumbprint = #"{"crv":"P-256","kty":"EC","x":"\#(x)","y":"\#(y)"}"#
    return Base64.encodeURL(HashAlgorithm.sha256.digest(Array(thumbprint.utf8)))
  }

  /// Checks the server's nonce (RFC 9449, 8). The fault demands one, and another one after each use.
  private mutating func checkServerNonce(_ nonce: String?) throws(Refusal) {
    guard hasFault(.proofNonce) else { return }
    let expected = state.serverNonce
    let isRight = nonce != nil && nonce == expected
    state.serverNonce = randomText("nonce-")
    if !isRight { throw .proofNonceNeeded }
  }

  /// Adds the nonce for the next proof (RFC 9449, 8.2), and a challenge to refusals of an API (7.1).
  func addServerNonce(to response: inout HTTPResponse) {
    if let nonce = state.serverNonce { response.fields.set("DPoP-Nonce", nonce) }
  }

  /// The members of metadata for proofs (RFC 9449, 5.1; RFC 9728, 2).
  func proofMetadata(isResource: Bool = false) -> [JSONValue.Member] {
    guard descriptor.tokenBinding.needsKey else { return [] }
    return [.init("dpop_signing_alg_values_supported", ["ES256"])]
      + (isResource ? [.init("dpop_bound_access_tokens_required", .boolean(true))] : [])
  }

  /// Returns the token of a request to the API, which must be presented with a proof of its key (RFC 9449, 7.1).
  mutating func boundToken(_ request: HTTPRequest) throws(Refusal) -> String {
    let values = request.fields.values("Authorization")
    guard values.count == 1, let value = values.first, value.hasPrefix("DPoP ") else {
      throw values.count > 1 ? .presentedTwice : .notPresented(expected: "Authorization: DPoP TOKEN")
    }
    let token = String(value.dropFirst("DPoP ".count))
    guard let issued = state.tokens[token] else { throw .tokenUnknown }
    guard try provenKey(request, token: token) == issued.key else { throw .foreignKey.with(code: "invalid_token") }
    return token
  }
}

extension Refusal {
  static func proof(_ reason: String) -> Refusal {
    Refusal("the DPoP proof is invalid: \(reason)", code: "invalid_dpop_proof")
  }
  static let proofMissing = Refusal("the DPoP proof is missing", code: "invalid_dpop_proof")
  static let proofNonceNeeded = Refusal("the DPoP proof must contain the nonce of this answer", code: "use_dpop_nonce")
  static let foreignKey = Refusal("the DPoP proof is made with another key", code: "invalid_grant")
}
