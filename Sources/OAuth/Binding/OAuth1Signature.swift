import Cryptography
import HTTP
import Descriptors

/// RFC 5849, 3.4, for who signs and for who verifies.
package enum OAuth1Signature {
  /// RFC 5849, 3.4.1, of the protocol parameters without `oauth_signature` and `realm`.
  package static func baseString(_ request: HTTPRequest, _ parameters: FormParameters) -> String {
    var all = parameters
    all.append(contentsOf: request.uri.queryParameters)
    // RFC 5849, 3.4.1.3.1: a body takes part only when it is a single-part form.
    if request.hasForm {
      all.append(contentsOf: FormParameters(decoding: String(decoding: request.body, as: UTF8.self)))
    }
    return [request.method.uppercased(), baseStringURI(request.uri), normalized(all)]
      .map(PercentEncoding.encode).joined(separator: "&")
  }

  /// RFC 5849, 3.4.1.2
  package static func baseStringURI(_ uri: URI) -> String { uri.origin + (uri.path.isEmpty ? "/" : uri.path) }

  /// RFC 5849, 3.4.1.3.2
  package static func normalized(_ parameters: FormParameters) -> String {
    parameters.pairs
      .map { (name: PercentEncoding.encode($0.name), value: PercentEncoding.encode($0.value)) }
      .sorted { ($0.name, $0.value) < ($1.name, $1.value) }
      .map { $0.name + "=" + $0.value }
      .joined(separator: "&")
  }

  /// The key of an HMAC, and the whole of a PLAINTEXT signature (RFC 5849, 3.4.2 and 3.4.4).
  package static func key(clientSecret: String, tokenSecret: String) -> String {
    PercentEncoding.encode(clientSecret) + "&" + PercentEncoding.encode(tokenSecret)
  }

  /// For RSA, the client secret is the private key as PEM.
  package static func sign(
    _ baseString: String, _ method: SignatureMethod, clientSecret: Secret, tokenSecret: Secret
  ) throws(OAuthError) -> String {
    let text = Array(baseString.utf8)
    let key = key(clientSecret: clientSecret.reveal(), tokenSecret: tokenSecret.reveal())
    guard let hash = method.hash else {
      guard !clientSecret.reveal().hasPrivateKey else { throw .privateKeyIsNotSent }
      return key
    }
    guard method.isRSA else { return Base64.encode(hash.authenticationCode(for: text, key: Array(key.utf8))) }
    do {
      return Base64.encode(try RSAPrivateKey(pem: clientSecret).signature(for: text, hash))
    } catch {
      throw error == .noSignatures ? .noSignatures : .clientKeyMalformed
    }
  }
}

extension SignatureMethod {
  /// `nil`: the key is the signature.
  var hash: HashAlgorithm? {
    switch self {
    case .hmacSHA1, .rsaSHA1: .sha1
    case .hmacSHA256, .rsaSHA256: .sha256
    case .hmacSHA512, .rsaSHA512: .sha512
    case .plaintext: nil
    }
  }
}
