import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrDescriptors
import CredmgrText

extension Client {
  /// Returns the signed assertion (RFC 7523, 3); `nil` if the endpoint requires none.
  func assertion(
    at kind: EndpointKind, isNeeded: Bool, authenticates: Bool, _ credential: Credential?, exchange: [String: String],
    nonce: RequestNonce
  ) throws(OAuthError) -> String? {
    let endpoint = try endpoint(kind)
    let method = authentication(for: endpoint)
    let isAuthentication = authenticates && (method == .privateKeyJWT || method == .clientSecretJWT)
    let templates = endpoint.parameters.compactMap(\.value) + endpoint.headers.map(\.value)
    let isNamed = templates.contains { $0.names.contains("assertion") }
    guard isNeeded || isAuthentication || isNamed else { return nil }
    let values = values(for: credential, exchange)
    let calculate = calculator(nonce)
    // The assertion itself may be part of the path; its destination is known without it.
    func uri(_ endpoint: Endpoint) -> URI? {
      try? endpoint.url.filled({ $0 == "assertion" ? $0 : values($0) }, calculate: calculate)
    }
    guard let destination = uri(endpoint) else { return nil }
    guard let token = tokenEndpoint.flatMap(uri) else { throw .foreignAssertion(kind, origin: destination.origin) }
    let claim = audienceRule.map { rule in
      rule.value.flatMap { try? $0.filled(values, calculate: calculate) } ?? ""
    }
    let audience = try audience(claim, token, at: kind, of: destination)
    return try computing.signature("assertion") { () throws(OAuthError) in
      try assertion(
        algorithm: method.usualAlgorithm ?? .rs256, audience: audience, values: values,
        key: signingValues(for: credential, exchange), nonce: nonce)
    }
  }

  /// Throws if a leg would get an assertion that is for another server, as far as the addresses are known before the
  /// login. A client without a secret counts as one with a secret.
  package func checkAssertions() throws(OAuthError) {
    let values = values()
    func uri(_ endpoint: Endpoint) -> URI? { try? endpoint.url.filled(values) }
    guard let token = tokenEndpoint.flatMap(uri) else { return }
    // Without its revocation, an account could not log out.
    let kinds = descriptor.grants.flatMap(\.traits.endpoints) + [.revocation, .introspection]
    for kind in EndpointKind.allCases where kinds.contains(kind) {
      guard let endpoint = descriptor.endpoints[kind], let destination = uri(endpoint), kind.leg.authenticatesClient,
        [.privateKeyJWT, .clientSecretJWT].contains(endpoint.authentication ?? descriptor.client.authentication)
      else { continue }
      let claim = audienceRule.map { rule in rule.value.map { try? $0.filled(values) } ?? "" }
      // The audience may depend on a value of the login.
      if case .some(nil) = claim { continue }
      _ = try audience(claim ?? nil, token, at: kind, of: destination)
    }
  }

  private var audienceRule: ParameterRule? { descriptor.assertion?.claims.last { $0.name == "aud" } }

  /// Whether the descriptor drops the audience, which only the assertions of the grant may lack (GitHub).
  private var hasNoAudience: Bool {
    audienceRule.map { $0.value == nil } == true && descriptor.grants.contains(where: \.traits.signsJWT)
  }

  package var assertionLifetime: Duration { (descriptor.assertion ?? AssertionRules()).lifetime }

  /// Returns the JWT that requests to the API present as the token (RFC 7519). Its audience is a host that receives the
  /// token, or a name that is not a server's.
  func ownToken(for credential: Credential, nonce: RequestNonce) throws(OAuthError) -> String {
    let (values, calculate) = (values(for: credential), calculator(nonce))
    let template = audienceRule.map(\.value) ?? descriptor.issuer
    let audience = template.flatMap { try? $0.filled(values, calculate: calculate) } ?? ""
    let isName = audience.utf8.allSatisfy { $0.isLetterOrDigit || "-_".utf8.contains($0) }
    if !isName, !computing.isOnlyShown {
      let uri = try? URI(parsing: audience.firstPlace(of: "://") == nil ? "https://" + audience : audience)
      guard let uri, presents(credential, to: uri) else { throw .foreignAudience(audience) }
    }
    return try computing.signature("access_token") { () throws(OAuthError) in
      try assertion(
        algorithm: .rs256, audience: audience, values: values, key: signingValues(for: credential, [:]), nonce: nonce)
    }
  }

  /// Returns the audience of an assertion for `destination`. Throws if that is neither the server of the token endpoint
  /// nor that of the audience, because it could use the assertion there.
  private func audience(
    _ claim: String?, _ token: URI, at kind: EndpointKind, of destination: URI
  ) throws(OAuthError) -> String {
    let isEndpoint = claim == nil && descriptor.assertion?.audience == .endpoint
    let audience =
      hasNoAudience
      ? (text: "", server: token)
      : isEndpoint
        ? (text: destination.withoutQueryAndFragment.text, server: token) : try audience(claim, token, for: destination)
    guard [token, audience.server].contains(where: { $0.origin == destination.origin }) else {
      throw .foreignAssertion(kind, origin: destination.origin)
    }
    return audience.text
  }

  /// Returns the audience (RFC 7523, 3 (3)): the token endpoint or a related server. Prefers the issuer, because no
  /// other server has that name.
  private func audience(
    _ claim: String?, _ token: URI, for destination: URI
  ) throws(OAuthError) -> (text: String, server: URI) {
    func server(_ text: String) -> URI? {
      try? URI(parsing: text.firstPlace(of: "://") == nil ? token.scheme + "://" + text : text)
    }
    if let claim {
      guard let server = server(claim), server.isRelated(to: token) else { throw .foreignAudience(claim) }
      return (claim, server)
    }
    if descriptor.profile != nil {
      // FAPI 2.0, 5.3.3.1 (5) allows only the issuer. The server of the token endpoint could use the assertion there,
      // so the agreement names the issuer.
      guard let issuer else { throw .foreignAudience("") }
      return (issuer, server(issuer) ?? token)
    }
    // The issuer's own server cannot misuse an assertion for itself.
    if let issuer, let server = server(issuer), server.isRelated(to: token) || server.origin == destination.origin {
      return (issuer, server)
    }
    return (token.withoutQueryAndFragment.text, token)
  }

  /// The endpoint whose URL is the default audience. Some descriptors define it under the kind of their only grant.
  private var tokenEndpoint: Endpoint? {
    [.token, .clientCredentials, .deviceToken, .backchannelToken, .refresh].lazy.compactMap { descriptor.endpoints[$0] }
      .first
  }

  private func assertion(
    algorithm standard: AssertionAlgorithm, audience: String, values: @escaping (String) -> String?,
    key keyValues: (String) -> String?, nonce: RequestNonce
  ) throws(OAuthError) -> String {
    let calculate = calculator(nonce)
    let rules = descriptor.assertion ?? AssertionRules()
    let algorithm = rules.algorithm ?? standard
    guard let key = try? rules.key.filled(keyValues, calculate: calculate) else { throw .clientSecretMissing }
    let names = (rules.header + rules.claims).flatMap { $0.value?.names ?? [] }
    let fingerprint = names.contains("key_fingerprint") ? try Self.fingerprint(algorithm, key: key) : nil
    let values = { (name: String) in name == "key_fingerprint" ? fingerprint : values(name) }
    func members(_ standard: [JSONValue.Member], _ changes: [ParameterRule]) -> JSONValue {
      var members = standard
      for change in changes {
        let text = change.value.flatMap { try? $0.filled(values, calculate: calculate) }
        let place = members.firstIndex { $0.name == change.name }
        guard let text else {
          if let place { members.remove(at: place) }
          continue
        }
        // RFC 7519, 2 requires these to be numbers.
        let isMoment = ["iat", "exp", "nbf"].contains(change.name) && Int64(text) != nil
        let member = JSONValue.Member(change.name, isMoment ? .number(text) : .string(text))
        if let place { members[place] = member } else { members.append(member) }
      }
      return .object(members)
    }
    let header = members([.init("alg", .string(algorithm.rawValue)), .init("typ", "JWT")], rules.header)
    // A service account has no client.
    let client: [JSONValue.Member] =
      identifier.isEmpty ? [] : [.init("iss", .string(identifier)), .init("sub", .string(identifier))]
    let server: [JSONValue.Member] = audience.isEmpty ? [] : [.init("aud", .string(audience))]
    let claims = members(
      client + server + [
        .init("jti", .string(nonce.text)), .init("iat", .moment(nonce.timestamp)),
        .init("exp", .moment(nonce.timestamp + rules.lifetime)),
      ], rules.claims)
    let text = [header, claims].map { Base64.encodeURL(Array($0.encoded.utf8)) }.joined(separator: ".")
    return text + "." + Base64.encodeURL(try Self.sign(Array(text.utf8), algorithm, key: key))
  }

  /// Returns the parameters of an authorization request as a signed request object (RFC 9101, 4). Its audience is the
  /// issuer (FAPI 2.0 Message Signing, 5.3.2), or else the page.
  func requestObject(
    _ parameters: FormParameters, for page: URI, nonce: RequestNonce
  ) throws(OAuthError) -> String {
    let rules = descriptor.assertion ?? AssertionRules()
    let algorithm = rules.algorithm ?? .rs256
    return try computing.signature("request") { () throws(OAuthError) in
      let calculate = calculator(nonce)
      guard let key = try? rules.key.filled(signingValues(for: nil, [:]), calculate: calculate) else {
        throw .clientSecretMissing
      }
      let values = values()
      var header: [JSONValue.Member] = [
        .init("alg", .string(algorithm.rawValue)), .init("typ", "oauth-authz-req+jwt"),
      ]
      for rule in rules.header where !header.contains(where: { $0.name == rule.name }) {
        let text = rule.value.flatMap { try? $0.filled(values, calculate: calculate) }
        if let text { header.append(.init(rule.name, .string(text))) }
      }
      // The values that are JSON elsewhere are JSON here as well (RFC 9101, 4; RFC 9396, 3).
      let structured: Set = ["claims", "authorization_details", "max_age"]
      let own = parameters.pairs.map { pair in
        let value = structured.contains(pair.name) ? (try? JSONValue.parse(Array(pair.value.utf8))) : nil
        return JSONValue.Member(pair.name, value ?? .string(pair.value))
      }
      let claims: [JSONValue.Member] = [
        .init("iss", .string(identifier)), .init("aud", .string(issuer ?? page.withoutQueryAndFragment.text)),
        .init("jti", .string(nonce.text(for: "request"))), .init("iat", .moment(nonce.timestamp)),
        .init("nbf", .moment(nonce.timestamp)), .init("exp", .moment(nonce.timestamp + rules.lifetime)),
      ]
      let parts = [JSONValue.object(header), .object(claims + own)]
      let text = parts.map { Base64.encodeURL(Array($0.encoded.utf8)) }.joined(separator: ".")
      return text + "." + Base64.encodeURL(try Self.sign(Array(text.utf8), algorithm, key: key))
    }
  }

  /// Returns the SHA-256 of the public key (RFC 5280, 4.1) in Base64, by which Snowflake knows a key.
  private static func fingerprint(_ algorithm: AssertionAlgorithm, key: String) throws(OAuthError) -> String {
    do {
      let secret = Secret(key)
      let bytes =
        switch algorithm {
        case .es256: try ECPrivateKey(pem: secret).publicBytes
        case .edDSA: try EdPrivateKey(pem: secret).publicBytes
        default: try RSAPrivateKey(pem: secret).publicBytes
        }
      return Base64.encode(HashAlgorithm.sha256.digest(bytes))
    } catch {
      throw error == .noSignatures ? .noSignatures : .clientKeyMalformed
    }
  }

  /// Whether a private key can sign with an algorithm.
  static func canSign(_ algorithm: AssertionAlgorithm, key: String) -> Bool {
    do throws(OAuthError) { return try !sign([], algorithm, key: key).isEmpty } catch { return error == .noSignatures }
  }

  static func sign(
    _ text: [UInt8], _ algorithm: AssertionAlgorithm, key: String
  ) throws(OAuthError) -> [UInt8] {
    let bytes = Array(key.utf8)
    guard !bytes.isEmpty else { throw .clientKeyMalformed }
    let (secret, hash) = (Secret(bytes: bytes), algorithm.hash)
    let signature: [UInt8]
    do {
      signature =
        switch algorithm {
        case .rs256, .rs384, .rs512: try RSAPrivateKey(pem: secret).signature(for: text, hash)
        case .ps256, .ps384, .ps512: try RSAPrivateKey(pem: secret).pssSignature(for: text, hash)
        case .edDSA: try EdPrivateKey(pem: secret).signature(for: text)
        case .es256: try ECPrivateKey(pem: secret).signature(for: text)
        case .hs256, .hs384, .hs512: hash.authenticationCode(for: text, key: secret.shared.revealBytes())
        }
    } catch {
      throw error == .noSignatures ? .noSignatures : .clientKeyMalformed
    }
    // The signature is as long as the key.
    if algorithm.keyKind == .rsa, signature.count < 2048 / 8 { throw .clientKeyTooShort }
    return signature
  }
}

/// Reads the claims of a JWT from a trusted connection. Does not verify the signature, so treat the claims only as the
/// sender's own statement (OpenID Connect Core 1.0, 3.1.3.7, 6).
enum JWTClaims {
  static func parse(_ token: String) -> JSONValue? {
    let pieces = token.split(separator: ".", omittingEmptySubsequences: false)
    guard pieces.count == 3, let bytes = Base64.decodeURL(String(pieces[1])) else { return nil }
    return try? JSONValue.parse(bytes)
  }
}
