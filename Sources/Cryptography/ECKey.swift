/// A private key on the curve P-256 (FIPS 186-4) that signs as JWT's `ES256` does (RFC 7518, 3.4).
package struct ECPrivateKey: Sendable {
  private let key: PublicKeyHandle

  /// A key in PEM, of SEC 1 or of PKCS #8, without a passphrase.
  package init(pem: Secret) throws(CryptographyError) { key = try PublicKeyHandle(pem, of: .privateKey, type: .p256) }

  /// ECDSA with SHA-256: R and S, 32 bytes each.
  package func signature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    guard let encoded = key.sign(message, .sha256), let numbers = DERSignature.numbers(encoded) else {
      throw .cannotSign
    }
    return numbers
  }

  package var publicKey: ECPublicKey { ECPublicKey(key) }
}

package struct ECPublicKey: Sendable {
  private let key: PublicKeyHandle

  package init(pem: String) throws(CryptographyError) {
    key = try PublicKeyHandle(Secret(pem), of: .publicKey, type: .p256)
  }

  fileprivate init(_ key: PublicKeyHandle) { self.key = key }

  package func isValid(signature: [UInt8], for message: [UInt8]) -> Bool {
    guard let encoded = DERSignature.encoded(signature) else { return false }
    return key.verify(encoded, message, .sha256)
  }
}

/// The form that OpenSSL gives a signature (RFC 3279, 2.2.3: a sequence of two integers in DER), and the one of JWT.
private enum DERSignature {
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

  static func encoded(_ numbers: [UInt8]) -> [UInt8]? {
    guard numbers.count == 2 * length else { return nil }
    let body = integer(numbers.prefix(length)) + integer(numbers.suffix(length))
    return [0x30, UInt8(body.count)] + body
  }

  private static func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    var digits = Array(bytes.drop { $0 == 0 })
    // A number with its highest bit set would be a negative one.
    if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
    return [0x02, UInt8(digits.count)] + digits
  }
}
