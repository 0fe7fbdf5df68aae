/// RSASSA-PKCS1-v1_5 (RFC 8017, 8.2), as in OAuth 1.0a's `RSA-SHA1` and JWT's `RS256`.
package struct RSAPrivateKey: Sendable {
  private let key: PublicKeyHandle

  /// A key in PEM, of PKCS #1 or of PKCS #8, without a passphrase.
  package init(pem: Secret) throws(CryptographyError) { key = try PublicKeyHandle(pem, of: .privateKey, type: .rsa) }

  package func signature(for message: [UInt8], _ algorithm: HashAlgorithm) throws(CryptographyError) -> [UInt8] {
    guard let signature = key.sign(message, algorithm) else { throw .cannotSign }
    return signature
  }

  package var publicKey: RSAPublicKey { RSAPublicKey(key) }
}

package struct RSAPublicKey: Sendable {
  private let key: PublicKeyHandle

  package init(pem: String) throws(CryptographyError) {
    key = try PublicKeyHandle(Secret(pem), of: .publicKey, type: .rsa)
  }

  fileprivate init(_ key: PublicKeyHandle) { self.key = key }

  package func isValid(signature: [UInt8], for message: [UInt8], _ algorithm: HashAlgorithm) -> Bool {
    key.verify(signature, message, algorithm)
  }
}
