/// A signature with a key pair.
package enum SignatureScheme: Sendable, Equatable {
  case rsa(HashAlgorithm)  // RSASSA-PKCS1-v1_5 (RFC 8017, 8.2)
  case pss(HashAlgorithm)  // RSASSA-PSS with a salt as long as the hash (RFC 8017, 8.1; RFC 7518, 3.5)
  case ecdsa  // ECDSA on P-256 with SHA-256; R and S, 32 bytes each (RFC 7518, 3.4)
  case eddsa  // Ed25519 (RFC 8037, 3.1)
}

/// A public key that verifies signatures, from the numbers of a JSON Web Key (RFC 7518, 6; RFC 8037, 2).
package enum PublicKey: Sendable, Equatable {
  case rsa(modulus: [UInt8], exponent: [UInt8])
  case p256(x: [UInt8], y: [UInt8])
  case ed25519([UInt8])

  /// Whether the key has a size that a verifier accepts: RSA from 2048 (RFC 7518, 3.3) to 8192 bits, so that no key
  /// makes a verification slow.
  package var isAcceptable: Bool {
    switch self {
    case .rsa(let modulus, let exponent):
      (256...1024).contains(modulus.drop { $0 == 0 }.count) && (1...8).contains(exponent.drop { $0 == 0 }.count)
        && exponent.last.map { $0 & 1 == 1 && (exponent.count > 1 || $0 > 1) } == true
    case .p256(let x, let y): x.count == 32 && y.count == 32
    case .ed25519(let x): x.count == 32
    }
  }

  /// Whether the key made the signature. Throws if this program has no public-key cryptography.
  package func isValid(
    signature: [UInt8], for message: [UInt8], _ scheme: SignatureScheme
  ) throws(CryptographyError) -> Bool {
    guard isAcceptable else { return false }
    var signature = signature
    switch (self, scheme) {
    case (.rsa, .rsa), (.rsa, .pss), (.ed25519, .eddsa): break
    case (.p256, .ecdsa):
      guard let encoded = DERSignature.encoded(signature) else { return false }
      signature = encoded
    default: return false
    }
    let handle: KeyHandle
    do { handle = try KeyHandle(publicBytes: encoded) } catch {
      if error == .noSignatures { throw error }
      return false
    }
    return handle.isValid(signature, for: message, scheme)
  }

  /// The key as a SubjectPublicKeyInfo (RFC 5280, 4.1; RFC 3279, 2.3; RFC 5480, 2; RFC 8410, 4).
  var encoded: [UInt8] {
    let (algorithm, key): ([UInt8], [UInt8]) =
      switch self {
      case .rsa(let modulus, let exponent):
        (
          [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05, 0x00],
          DER.element(0x30, DER.integer(modulus) + DER.integer(exponent))
        )
      case .p256(let x, let y):
        (
          [
            0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01,
            0x07,
          ], [4] + x + y
        )
      case .ed25519(let x): ([0x06, 0x03, 0x2B, 0x65, 0x70], x)
      }
    return DER.element(0x30, DER.element(0x30, algorithm) + DER.element(0x03, [0] + key))
  }
}

/// Writes ASN.1 values in DER (ITU-T X.690, 8 and 10).
package enum DER {
  package static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    let count = content.count
    let length: [UInt8] =
      count < 0x80
      ? [UInt8(count)] : count < 0x100 ? [0x81, UInt8(count)] : [0x82, UInt8(count >> 8), UInt8(count & 0xFF)]
    return [tag] + length + content
  }

  /// Returns a positive number from its bytes, the highest first.
  package static func integer(_ bytes: [UInt8]) -> [UInt8] {
    let digits = Array(bytes.drop { $0 == 0 })
    // A set highest bit would make the number negative.
    return element(0x02, (digits.first ?? 0x80) >= 0x80 ? [0] + digits : digits)
  }
}
