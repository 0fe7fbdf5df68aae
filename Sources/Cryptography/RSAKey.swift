/// An RSA private key (RFC 8017) that signs with RSASSA-PKCS1-v1_5, as OAuth 1.0a's `RSA-SHA1` and JWT's
/// `RS256` do.
package struct RSAPrivateKey: Sendable {
  private let key: PublicKeyHandle

  /// Reads a key in PEM, of PKCS #1 or of PKCS #8, without a passphrase.
  ///
  /// - Throws: `.notAnRSAKey` for anything else.
  package init(pem: Secret) throws(CryptographyError) {
    key = try PublicKeyHandle(pem, of: .privateKey, type: .rsa)
  }

  /// RSASSA-PKCS1-v1_5 (RFC 8017, section 8.2) over the digest of the message.
  ///
  /// - Throws: `.cannotSign` if the key is too short for the digest.
  package func signature(
    for message: [UInt8], _ algorithm: HashAlgorithm
  ) throws(CryptographyError) -> [UInt8] {
    guard let signature = key.sign(message, algorithm) else { throw .cannotSign }
    return signature
  }

  /// The public half.
  package var publicKey: RSAPublicKey { RSAPublicKey(key) }
}

/// An RSA public key (RFC 8017).
package struct RSAPublicKey: Sendable {
  private let key: PublicKeyHandle

  /// Reads a key in PEM (`BEGIN PUBLIC KEY`).
  ///
  /// - Throws: `.notAnRSAKey` for anything else.
  package init(pem: String) throws(CryptographyError) {
    key = try PublicKeyHandle(Secret(pem), of: .publicKey, type: .rsa)
  }

  fileprivate init(_ key: PublicKeyHandle) { self.key = key }

  /// Whether the signature is that of the private half over the message.
  package func isValid(signature: [UInt8], for message: [UInt8], _ algorithm: HashAlgorithm) -> Bool {
    key.verify(signature, message, algorithm)
  }
}
