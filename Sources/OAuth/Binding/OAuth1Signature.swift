import CredmgrCryptography
import CredmgrHTTP
import CredmgrDescriptors

/// The signature of OAuth 1.0a (RFC 5849, 3.4), which clients make and servers verify.
package enum OAuth1Signature {
  /// Returns the signature base string (RFC 5849, 3.4.1). The parameters omit `oauth_signature` and `realm`.
  package static func baseString(_ request: HTTPRequest, _ parameters: FormParameters) -> String {
    var all = parameters
    all.append(contentsOf: request.uri.queryParameters)
    // Only a single-part form in the body takes part (RFC 5849, 3.4.1.3.1).
    if request.hasForm {
      all.append(contentsOf: FormParameters(decoding: String(decoding: request.body, as: UTF8.self)))
    }
    return [request.method.uppercased(), baseStringURI(request.uri), all.normalized]
      .map(PercentEncoding.encode).joined(separator: "&")
  }

  /// Returns the base string URI (RFC 5849, 3.4.1.2).
  package static func baseStringURI(_ uri: URI) -> String { uri.origin + (uri.path.isEmpty ? "/" : uri.path) }

  /// Returns the HMAC key, which is also the complete PLAINTEXT signature (RFC 5849, 3.4.2 and 3.4.4).
  package static func key(clientSecret: String, tokenSecret: String) -> String {
    PercentEncoding.encode(clientSecret) + "&" + PercentEncoding.encode(tokenSecret)
  }

  /// Signs the base string. For RSA, the client secret is the private key as PEM.
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
  /// The hash function; `nil` for PLAINTEXT, whose signature is the key itself.
  var hash: HashAlgorithm? {
    switch self {
    case .hmacSHA1, .rsaSHA1: .sha1
    case .hmacSHA256, .rsaSHA256: .sha256
    case .hmacSHA512, .rsaSHA512: .sha512
    case .plaintext: nil
    }
  }
}
