import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON

/// Why a signed JWT is refused (RFC 7515; RFC 8725; OpenID Connect Core 1.0, 3.1.3.7).
package enum JWTFault: Error, Sendable, Equatable {
  case unsigned  // `alg` is `none`, or the signature is missing (RFC 7515, A.5).
  case encrypted  // Five parts (RFC 7516, 7.1). The client has no key to decrypt.
  case nested  // `cty` is `JWT` (RFC 7519, 5.2).
  case critical  // `crit` names an extension (RFC 7515, 4.1.11).
  case type(String)  // `typ` names another kind of token (RFC 8725, 3.11).
  case algorithm(String)
  case keyUnusable  // The key is too short, for another use, or of a kind that credmgr does not verify.
  case keyOmitted(read: Int)  // The provider publishes more keys than those that were read.
  case keyUnknown  // The key set has no key with this `kid` for this algorithm.
  case keyAmbiguous  // The key set has several keys with this `kid`, or the token does not name one of several.
  case signature
  case missing(claim: String)
  case repeated(claim: String)
  case issuer(expected: String, found: String)
  case audience
  case authorizedParty
  case expired
  case issuedLater
  case nonce
  case accessTokenHash
  case authenticationContext(String)  // `acr` is none of those that the login demanded (3.1.3.7, 12).
  case authenticatedLater  // `auth_time` is in the future.
  case authenticatedEarlier  // `auth_time` is longer ago than the login allowed (3.1.3.7, 13).
  case subject  // The identity endpoint or the previous ID token names another user (5.3.2 and 12.2).
  case noSignatures  // This program has no public-key cryptography; another program must verify.
}

/// A JWT with a signature in the compact form (RFC 7515, 3.1).
struct SignedJWT {
  let header: JSONValue
  let claims: JSONValue
  private let message: String  // The signed text.
  private let mark: String  // The signature.

  /// Parses the text; `nil` if it does not have three parts, of which two are JSON objects.
  init?(_ text: String) {
    let pieces = text.split(separator: ".", omittingEmptySubsequences: false)
    guard pieces.count == 3, let first = Base64.decodeURL(String(pieces[0])),
      let header = try? JSONValue.parse(first), header.members != nil, let claims = JWTClaims.parse(text),
      claims.members != nil
    else { return nil }
    (self.header, self.claims) = (header, claims)
    message = String(pieces[0]) + "." + pieces[1]
    mark = String(pieces[2])
  }

  /// Whether the text has the five parts of an encrypted JWT (RFC 7516, 7.1).
  static func isEncrypted(_ text: String) -> Bool { text.utf8.count { $0 == UInt8(ascii: ".") } == 4 }

  /// The name in `alg`, shortened; `nil` if it is missing, repeated or not a text.
  var algorithmName: String? {
    guard !header.repeats("alg"), let name = header["alg"]?.text else { return nil }
    return String(name.unicodeScalars.prefix(20))
  }

  /// The algorithm; `nil` if credmgr does not know it.
  private var algorithm: AssertionAlgorithm? {
    // RFC 9864, 2.2: the new name of the same algorithm.
    algorithmName.flatMap { $0 == "Ed25519" ? .edDSA : AssertionAlgorithm(rawValue: $0) }
  }

  /// Throws unless the JWT is signed, is not nested, has one of these types if any, and requires no extension.
  func checkHeader(types: Set<String>) throws(JWTFault) {
    guard let algorithmName, algorithmName.lowercased() != "none", !mark.isEmpty else { throw .unsigned }
    for name in ["typ", "cty", "crit", "kid"] where header.repeats(name) { throw .repeated(claim: name) }
    if header["crit"] != nil { throw .critical }
    if header["cty"].map(Self.type) == "jwt" { throw .nested }
    if let type = header["typ"].map(Self.type), !types.contains(type) { throw .type(String(type.prefix(40))) }
  }

  /// RFC 7515, 4.1.9: without a slash, the type is below `application/`; media types ignore case.
  private static func type(_ value: JSONValue) -> String {
    let text = (value.text ?? "").lowercased()
    return text.hasPrefix("application/") ? String(text.dropFirst("application/".count)) : text
  }

  @discardableResult func checkAlgorithm(_ allowed: Set<AssertionAlgorithm>) throws(JWTFault) -> AssertionAlgorithm {
    guard let algorithm, allowed.contains(algorithm) else { throw .algorithm(algorithmName ?? "") }
    return algorithm
  }

  /// Throws unless a key of the set made the signature or, if an HMAC is allowed, the secret did.
  func verify(with keys: KeySet?, _ allowed: Set<AssertionAlgorithm>, secret: Secret?) throws(JWTFault) {
    let algorithm = try checkAlgorithm(allowed)
    guard let signature = Base64.decodeURL(mark) else { throw .signature }
    let message = Array(message.utf8)
    guard let scheme = algorithm.scheme else {
      guard let secret, !secret.isEmpty else { throw .keyUnknown }
      let code = algorithm.hash.authenticationCode(for: message, key: secret.revealBytes())
      guard constantTimeEqual(code, signature) else { throw .signature }
      return
    }
    guard let keys else { throw .keyUnknown }
    let key = try keys.key(named: header["kid"], for: algorithm)
    let isValid: Bool
    do { isValid = try key.isValid(signature: signature, for: message, scheme) } catch { throw .noSignatures }
    guard isValid else { throw .signature }
  }
}

extension AssertionAlgorithm {
  /// The signature with a key pair; `nil` for an HMAC.
  var scheme: SignatureScheme? {
    switch self {
    case .rs256, .rs384, .rs512: .rsa(hash)
    case .ps256, .ps384, .ps512: .pss(hash)
    case .es256: .ecdsa
    case .edDSA: .eddsa
    case .hs256, .hs384, .hs512: nil
    }
  }

  var hash: HashAlgorithm { IDToken.hash(rawValue) ?? .sha256 }
}

/// The public keys with which a provider signs (RFC 7517, 5).
package struct KeySet: Sendable, Equatable {
  private struct Key: Equatable {
    var identifier: String?  // `kid`
    var algorithm: String?  // `alg`
    var key: PublicKey
  }

  private var keys: [Key] = []
  private var unusable: [String?] = []  // The names of the keys that were ignored.
  private var isCut = false  // Whether the provider publishes more keys than were read.

  /// Whether both have the same keys to verify with, which are all that the vault keeps.
  package static func == (one: KeySet, other: KeySet) -> Bool { one.keys == other.keys }

  // The key sets of real providers stay below this limit.
  private static let mostKeys = 100

  /// Reads a key set; `nil` if it is not an object with `keys`. Ignores keys of other types and for other uses, as
  /// RFC 7517, 5 says, and keys whose members are repeated or malformed.
  package init?(_ value: JSONValue) {
    guard !value.repeats("keys"), let elements = value["keys"]?.elements else { return nil }
    isCut = elements.count > Self.mostKeys
    for element in elements.prefix(Self.mostKeys) {
      let identifier = element["kid"]?.text
      guard element.repeatedNames.isEmpty, element["use"].map({ $0.text == "sig" }) ?? true,
        element["key_ops"].map({ $0.elements?.contains("verify") == true }) ?? true,
        let key = PublicKey(element), key.isAcceptable
      else {
        unusable.append(identifier)
        continue
      }
      keys.append(Key(identifier: identifier, algorithm: element["alg"]?.text, key: key))
    }
  }

  /// The members that credmgr reads, for the vault.
  package var value: JSONValue {
    [
      "keys": .array(
        keys.map { key in
          .object(
            key.key.members + [
              .init("kid", .optional(key.identifier)), .init("alg", .optional(key.algorithm)),
            ])
        })
    ]
  }

  /// Returns the key for a signature. Without a name, there must be only one key for the algorithm (OpenID Connect
  /// Core 1.0, 10.1).
  func key(named name: JSONValue?, for algorithm: AssertionAlgorithm) throws(JWTFault) -> PublicKey {
    let fitting = keys.filter { key in
      key.key.signs(algorithm) && (key.algorithm ?? algorithm.rawValue) == algorithm.rawValue
        && (name == nil || key.identifier != nil && key.identifier == name?.text)
    }
    guard let first = fitting.first else {
      let isThere = name == nil ? keys.isEmpty && !unusable.isEmpty : unusable.contains(name?.text)
      throw isThere ? .keyUnusable : isCut ? .keyOmitted(read: Self.mostKeys) : .keyUnknown
    }
    // A provider may list one key several times, for several algorithms.
    guard fitting.allSatisfy({ $0.key == first.key }) else { throw .keyAmbiguous }
    return first.key
  }
}

extension PublicKey {
  /// Reads a JSON Web Key (RFC 7518, 6; RFC 8037, 2); `nil` for other types and curves.
  fileprivate init?(_ value: JSONValue) {
    func bytes(_ name: String) -> [UInt8]? { value[name]?.text.flatMap(Base64.decodeURL) }
    switch (value["kty"]?.text, value["crv"]?.text) {
    case ("RSA", _):
      guard let modulus = bytes("n"), let exponent = bytes("e") else { return nil }
      self = .rsa(modulus: modulus, exponent: exponent)
    case ("EC", "P-256"):
      guard let x = bytes("x"), let y = bytes("y") else { return nil }
      self = .p256(x: x, y: y)
    case ("OKP", "Ed25519"):
      guard let x = bytes("x") else { return nil }
      self = .ed25519(x)
    default: return nil
    }
  }

  fileprivate var members: [JSONValue.Member] {
    func member(_ name: String, _ bytes: [UInt8]) -> JSONValue.Member { .init(name, .string(Base64.encodeURL(bytes))) }
    return switch self {
    case .rsa(let modulus, let exponent): [.init("kty", "RSA"), member("n", modulus), member("e", exponent)]
    case .p256(let x, let y): [.init("kty", "EC"), .init("crv", "P-256"), member("x", x), member("y", y)]
    case .ed25519(let x): [.init("kty", "OKP"), .init("crv", "Ed25519"), member("x", x)]
    }
  }

  fileprivate func signs(_ algorithm: AssertionAlgorithm) -> Bool {
    switch (self, algorithm.scheme) {
    case (.rsa, .rsa), (.rsa, .pss), (.p256, .ecdsa), (.ed25519, .eddsa): true
    default: false
    }
  }
}

extension Client {
  /// Whether credmgr can verify ID tokens: the provider publishes its keys, or signs with the client's secret. Without
  /// a known issuer, a server that shares the keys could sign for another one (OpenID Connect Core 1.0, 3.1.3.7, 2).
  package var verifiesIDTokens: Bool {
    issuer != nil && (descriptor.endpoints[.keySet] != nil || descriptor.idTokenAlgorithm?.isSymmetric == true)
  }

  /// The algorithms that count for tokens of the provider: the declared one, or else the usual one and those that FAPI
  /// 2.0 allows (5.4.1). With an undeclared HMAC, everyone with the public key could sign (RFC 8725, 2.1).
  var signatureAlgorithms: Set<AssertionAlgorithm> {
    if let declared = descriptor.idTokenAlgorithm { return [declared] }
    return descriptor.profile != nil ? SecurityProfile.algorithms : SecurityProfile.algorithms.union([.rs256])
  }

  /// Whether a verification needs the provider's keys.
  package var needsKeySet: Bool { descriptor.idTokenAlgorithm?.isSymmetric != true }

  /// Builds the request for the provider's keys, which carries nothing secret.
  package func keySetRequest(nonce: RequestNonce) throws(OAuthError) -> HTTPRequest {
    try request(.keySet, [], nonce: nonce)
  }

  package func keySet(_ response: HTTPResponse) throws(OAuthError) -> KeySet {
    let value = try? JSONValue.parse(response.body)
    do throws(OAuthError) {
      _ = try Answer(response, of: .keySet, by: endpoint(.keySet).response, allowsRepeated: true)
    } catch {
      if case .unreadable = error, value != nil { throw .noKeys }
      throw error
    }
    if value?.repeats("keys") == true { throw .repeated(.keySet, name: "keys") }
    guard let keys = value.flatMap({ KeySet($0) }) else { throw .noKeys }
    return keys
  }
}
