/// A private key on the curve P-256 (FIPS 186-4) that signs like JWT's `ES256` (RFC 7518, 3.4).
package struct ECPrivateKey: Sendable {
  private enum Signer {
    case libcrypto(KeyHandle)
    case libnettle(ECNumber)
  }

  private let signer: Signer

  /// Reads a PEM key in the form of SEC 1 or PKCS #8 without a passphrase.
  package init(pem: Secret) throws(CryptographyError) {
    signer = if let number = ECNumber(pem: pem) { .libnettle(number) } else { .libcrypto(try KeyHandle(pem, .p256)) }
  }

  /// Returns a new key as PEM (RFC 5915, 3 and 4), made of random bytes.
  package static func pem(random: some RandomSource) -> Secret { ECNumber(random: random).pem }

  /// The public key as a SubjectPublicKeyInfo (RFC 5280, 4.1).
  package var publicBytes: [UInt8] { verifier?.encoded ?? [] }

  /// The coordinates of the public key, 32 bytes each (RFC 7518, 6.2.1).
  package var publicKey: (x: [UInt8], y: [UInt8])? {
    let coordinates: [UInt8]? =
      switch signer {
      case .libcrypto(let key): key.publicPoint().map { Array($0.dropFirst()) }
      case .libnettle(let number): number.publicKey
      }
    return coordinates.map { (x: Array($0.prefix(32)), y: Array($0.suffix(32))) }
  }

  private var verifier: PublicKey? { publicKey.map { .p256(x: $0.x, y: $0.y) } }

  /// Signs with ECDSA and SHA-256; returns R and S, 32 bytes each.
  package func signature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    switch signer {
    case .libcrypto(let key):
      guard let encoded = key.sign(message, .ecdsa), let numbers = DERSignature.numbers(encoded) else {
        throw .cannotSign
      }
      return numbers
    case .libnettle(let number): return number.signature(for: message, nonce: ECNumber(random: SystemRandomSource()))
    }
  }

  package func isValid(signature: [UInt8], for message: [UInt8]) -> Bool {
    (try? verifier?.isValid(signature: signature, for: message, .ecdsa)) == true
  }
}

/// Converts OpenSSL's form of a signature (a DER sequence of two integers; RFC 3279, 2.2.3) to JWT's form.
package enum DERSignature {
  private static let length = 32

  static func numbers(_ encoded: [UInt8]) -> [UInt8]? {
    var rest = encoded[...]
    guard rest.popFirst() == 0x30, let count = rest.popFirst(), Int(count) == rest.count else { return nil }
    guard let r = number(&rest), let s = number(&rest), rest.isEmpty else { return nil }
    return r + s
  }

  private static func number(_ rest: inout ArraySlice<UInt8>) -> [UInt8]? {
    guard rest.popFirst() == 0x02, let count = rest.popFirst(), Int(count) <= rest.count else { return nil }
    let bytes = rest.prefix(Int(count)).drop { $0 == 0 }
    rest = rest.dropFirst(Int(count))
    guard bytes.count <= length else { return nil }
    return [UInt8](repeating: 0, count: length - bytes.count) + bytes
  }

  package static func encoded(_ numbers: [UInt8]) -> [UInt8]? {
    guard numbers.count == 2 * length else { return nil }
    return DER.element(
      0x30, DER.integer(Array(numbers.prefix(length))) + DER.integer(Array(numbers.suffix(length))))
  }
}
