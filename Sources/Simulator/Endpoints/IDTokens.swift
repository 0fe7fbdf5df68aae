import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

/// Signs ID tokens (OpenID Connect Core 1.0, 2), and publishes the key (RFC 7517).
extension Simulation {
  /// The algorithm of ID tokens. Without a declared one, any with a key pair is right.
  private var signingAlgorithm: AssertionAlgorithm { descriptor.idTokenAlgorithm ?? .es256 }

  private var keyIdentifier: String { "practice-" + signingAlgorithm.rawValue }

  /// - Parameter isLogin: whether the user signed in for this token, rather than for an earlier one.
  func idToken(
    _ consent: ConsentID, for accessToken: String, isLogin: Bool, terms: AuthorizationTerms? = nil
  ) -> String {
    var claims: [JSONValue.Member] = [
      .init("iss", .string(issuer ?? origin)), .init("sub", .string(state.consents[consent].account)),
      .init("aud", .string(state.consents[consent].client ?? Self.clientIdentifier)), .init("iat", .duration(now)),
      .init("exp", .duration(now + lifetime)),
    ]
    if isLogin { claims.append(.init("auth_time", .duration(now))) }
    for (name, value) in [("nonce", terms?.nonce), ("acr", state.consents[consent].context)] {
      if let value { claims.append(.init(name, .string(value))) }
    }
    // 3.1.3.6: the left half of a hash with the length of the signature's. Ed25519 has 512 bits.
    let hashes: [Character: HashAlgorithm] = ["6": .sha256, "4": .sha384, "2": .sha512, "A": .sha512]
    if let hash = signingAlgorithm.rawValue.last.flatMap({ hashes[$0] }) {
      let digest = hash.digest(Array(accessToken.utf8))
      claims.append(.init("at_hash", .string(Base64.encodeURL(Array(digest.prefix(digest.count / 2))))))
    }
    return signed(.object(claims))
  }

  /// Returns a JWT with these claims, signed with the key of ID tokens (RFC 7515, 3.1).
  func signed(_ claims: JSONValue) -> String {
    let algorithm = signingAlgorithm
    let name: [JSONValue.Member] = algorithm.isSymmetric ? [] : [.init("kid", .string(keyIdentifier))]
    let text = Self.jwt(.object([.init("alg", .string(algorithm.rawValue)), .init("typ", "JWT")] + name), claims)
    let message = Array(text.utf8)
    let key = Self.practiceKey(algorithm)
    // The practice keys fit the algorithms. Without a signature, the client would refuse the token.
    let mark: [UInt8]? =
      switch algorithm.scheme {
      case .hmac(let hash): hash.authenticationCode(for: message, key: clientSecret.shared.revealBytes())
      case .rsa(let hash): try? RSAPrivateKey(pem: key).signature(for: message, hash)
      case .pss(let hash): try? RSAPrivateKey(pem: key).pssSignature(for: message, hash)
      case .ecdsa: try? ECPrivateKey(pem: key).signature(for: message)
      case .eddsa: try? EdPrivateKey(pem: key).signature(for: message)
      }
    return text + "." + Base64.encodeURL(mark ?? [])
  }

  /// Ends the session of the user whom the ID token names (OpenID Connect RP-Initiated Logout 1.0, 2). An expired ID
  /// token is fine (4).
  func endSession(_ parameters: EndpointParameters) throws(Refusal) -> HTTPResponse {
    let hint = try parameters.needed("id_token_hint")
    let algorithm = signingAlgorithm
    let key = algorithm.isSymmetric ? clientSecret : Self.practiceKey(algorithm)
    guard let (_, claims, signature) = Self.parts(ofJWT: hint),
      isSignature(signature.bytes, of: signature.text, algorithm.scheme, key: key),
      claims["iss"]?.text == issuer ?? origin, claims["aud"]?.text == Self.clientIdentifier,
      let user = claims["sub"]?.text
    else { throw .tokenUnknown }
    if let client = try parameters.optional("client_id"), !isClient(client) { throw .unknownClient }
    return .page(200, title: "Signed out", body: "<p>The session of \(user.htmlEscaped) has ended.</p>")
  }

  /// Answers with the key set, as everyone may read it. A client that sends a credential here gives it away.
  func keySet(_ parameters: EndpointParameters) throws(Refusal) -> HTTPResponse {
    let request = parameters.request
    guard request.fields["Authorization"] == nil, request.fields["Cookie"] == nil, request.body.isEmpty else {
      throw .unwanted("Authorization")
    }
    let algorithm = signingAlgorithm
    let name: JSONValue = .string(keyIdentifier)
    return .json(
      200,
      [
        "keys": .array(
          members(algorithm).map { members in
            .object([.init("kid", name), .init("alg", .string(algorithm.rawValue)), .init("use", "sig")] + members)
          })
      ])
  }

  /// The numbers of the public key (RFC 7518, 6; RFC 8037, 2); none for a shared secret.
  private func members(_ algorithm: AssertionAlgorithm) -> [[JSONValue.Member]] {
    func member(_ name: String, _ bytes: some Sequence<UInt8>) -> JSONValue.Member {
      .init(name, .string(Base64.encodeURL(Array(bytes))))
    }
    let key = Self.practiceKey(algorithm)
    switch algorithm.scheme {
    case .hmac: return []
    case .rsa, .pss:
      // A SubjectPublicKeyInfo with 2048 bits begins with 33 bytes, and ends with the exponent 65537.
      guard let bytes = try? RSAPrivateKey(pem: key).publicBytes else { return [] }
      return [[.init("kty", "RSA"), member("n", bytes.dropFirst(33).prefix(256)), member("e", bytes.suffix(3))]]
    case .ecdsa:
      guard let point = try? ECPrivateKey(pem: key).publicKey else { return [] }
      return [[.init("kty", "EC"), .init("crv", "P-256"), member("x", point.x), member("y", point.y)]]
    case .eddsa:
      guard let bytes = try? EdPrivateKey(pem: key).publicBytes else { return [] }
      return [[.init("kty", "OKP"), .init("crv", "Ed25519"), member("x", bytes.suffix(32))]]
    }
  }
}
