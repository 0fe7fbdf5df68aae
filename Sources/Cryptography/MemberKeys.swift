import CredmgrCSodium

/// A pair of keys that signs with Ed25519 (RFC 8032), made of 32 secret bytes.
package struct SigningKey: Sendable {
  package static let signatureByteCount = 64

  private let secret: Secret
  package let publicKey: [UInt8]

  package init(seed: Secret) throws(CryptographyError) {
    guard seed.count == 32 else { throw .wrongLength(expected: 32, actual: seed.count) }
    var publicKey = [UInt8](repeating: 0, count: 32)
    secret = unsafe Secret(unsafeCapacity: 64) { pair in
      seed.withBytes { seed in
        unsafe seed.withUnsafeBufferPointer { seed in
          guard let pair = pair.baseAddress, let seed = seed.baseAddress else { return }
          _ = unsafe crypto_sign_seed_keypair(&publicKey, pair, seed)
        }
      }
      return 64
    }
    self.publicKey = publicKey
  }

  package func signature(for message: [UInt8]) -> [UInt8] {
    secret.withBytes { secret in
      unsafe secret.withUnsafeBufferPointer { secret in
        var signature = [UInt8](repeating: 0, count: Self.signatureByteCount)
        if let secret = secret.baseAddress {
          unsafe crypto_sign_detached(&signature, nil, message, UInt64(message.count), secret)
        }
        return signature
      }
    }
  }

  package static func isValid(_ signature: [UInt8], for message: [UInt8], by publicKey: [UInt8]) -> Bool {
    guard signature.count == signatureByteCount, publicKey.count == 32 else { return false }
    return unsafe crypto_sign_verify_detached(signature, message, UInt64(message.count), publicKey) == 0
  }
}

/// A pair of keys on the curve X25519 (RFC 7748) to which others seal secrets (libsodium's sealed boxes).
package struct BoxKey: Sendable {
  private let secret: Secret
  package let publicKey: [UInt8]

  package init(secret: Secret) throws(CryptographyError) {
    guard secret.count == 32 else { throw .wrongLength(expected: 32, actual: secret.count) }
    self.secret = secret
    publicKey = secret.withBytes { secret in
      unsafe secret.withUnsafeBufferPointer { secret in
        var key = [UInt8](repeating: 0, count: 32)
        if let secret = secret.baseAddress { _ = unsafe crypto_scalarmult_base(&key, secret) }
        return key
      }
    }
  }

  /// Seals for the owner of a public key; `nil` if the bytes are not a public key.
  package static func seal(_ plaintext: Secret, for publicKey: [UInt8]) -> [UInt8]? {
    guard publicKey.count == 32 else { return nil }
    return plaintext.withBytes { plaintext in
      unsafe plaintext.withUnsafeBufferPointer { plaintext in
        var sealed = [UInt8](repeating: 0, count: plaintext.count + 48)
        let status = unsafe crypto_box_seal(&sealed, plaintext.baseAddress, UInt64(plaintext.count), publicKey)
        return status == 0 ? sealed : nil
      }
    }
  }

  package func opened(_ sealed: [UInt8]) -> Secret? {
    guard sealed.count >= 48 else { return nil }
    var status: Int32 = -1
    let plaintext = unsafe Secret(unsafeCapacity: sealed.count - 48) { plaintext in
      status = secret.withBytes { secret in
        unsafe secret.withUnsafeBufferPointer { secret in
          guard let secret = secret.baseAddress else { return -1 }
          return unsafe crypto_box_seal_open(
            plaintext.baseAddress, sealed, UInt64(sealed.count), publicKey, secret)
        }
      }
      return status == 0 ? plaintext.count : 0
    }
    return status == 0 ? plaintext : nil
  }
}

/// The BLAKE2b hash of the bytes (RFC 7693), 32 bytes.
package func blake2b(_ bytes: [UInt8]) -> [UInt8] {
  var hash = [UInt8](repeating: 0, count: 32)
  unsafe crypto_generichash(&hash, 32, bytes, UInt64(bytes.count), nil, 0)
  return hash
}
