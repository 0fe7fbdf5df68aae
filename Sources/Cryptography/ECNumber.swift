import CredmgrCNettle
import CredmgrCSodium

/// A number between 0 and the order of P-256: a private key, or the nonce of a signature (FIPS 186-5, A.2.2 and A.3.2).
/// It signs with libnettle, which signs in a static program without most of OpenSSL
/// (docs/decisions/0076-libnettle-signs-in-the-static-program.md).
struct ECNumber: Sendable {
  private static let byteCount = 32

  private let bytes: Secret

  init?(_ bytes: Secret) {
    let isInRange = bytes.withBytes { bytes in
      let order = Self.order.span
      guard bytes.count == Self.byteCount, let first = bytes.indices.first(where: { bytes[$0] != order[$0] }) else {
        return false
      }
      return bytes[first] < order[first] && bytes.indices.contains { bytes[$0] != 0 }
    }
    guard isInRange else { return nil }
    self.bytes = bytes
  }

  init(random: some RandomSource) {
    // A number outside of the range is very unlikely, and another one replaces it.
    while true {
      var bytes = random.bytes(Self.byteCount)
      defer { unsafe sodium_memzero(&bytes, bytes.count) }
      if let number = Self(Secret(bytes: bytes)) {
        self = number
        return
      }
    }
  }

  /// The order of the base point (SEC 2, 2.4.2).
  private static let order: [UInt8] = [
    0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xBC, 0xE6, 0xFA,
    0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
  ]

  // MARK: The form of a private key (RFC 5915, 3 and 4)

  private static let beginning = "-----BEGIN EC PRIVATE KEY-----\n"
  private static let end = "\n-----END EC PRIVATE KEY-----\n"
  /// A sequence of the version and a string of 32 bytes.
  private static let prefix: [UInt8] = [0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x20]
  /// The name of the curve.
  private static let suffix: [UInt8] = [0xA0, 0x0A, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]

  var pem: Secret {
    let text = Base64.encode(Self.prefix + bytes.revealBytes() + Self.suffix)
    return Secret("\(Self.beginning)\(text.prefix(64))\n\(text.dropFirst(64))\(Self.end)")
  }

  /// Reads the form that `pem` writes; `nil` for other forms, and in a program without libnettle.
  init?(pem: Secret) {
    let (start, end) = (Self.beginning.utf8.count, pem.count - Self.end.utf8.count)
    guard cnettle_is_linked() != 0, start < end, pem[0..<start] == Secret(Self.beginning),
      pem[end..<pem.count] == Secret(Self.end), let encoded = Base64.decode(pem[start..<end])
    else { return nil }
    let (first, last) = (Self.prefix.count, encoded.count - Self.suffix.count)
    guard first < last, encoded[0..<first] == Secret(bytes: Self.prefix),
      encoded[last..<encoded.count] == Secret(bytes: Self.suffix)
    else { return nil }
    self.init(encoded[first..<last])
  }

  // MARK: The curve

  /// The coordinates of the public key, 32 bytes each.
  var publicKey: [UInt8] {
    unsafe withPointer { key in
      var coordinates = [UInt8](repeating: 0, count: 2 * Self.byteCount)
      unsafe cnettle_public_key(key, &coordinates)
      return coordinates
    }
  }

  /// Signs with ECDSA and SHA-256; returns R and S, 32 bytes each. A nonce signs once.
  func signature(for message: [UInt8], nonce: ECNumber) -> [UInt8] {
    let digest = HashAlgorithm.sha256.digest(message)
    return unsafe withPointer { key in
      unsafe nonce.withPointer { nonce in
        var signature = [UInt8](repeating: 0, count: 2 * Self.byteCount)
        unsafe cnettle_sign(key, nonce, digest, &signature)
        return signature
      }
    }
  }

  private func withPointer(_ body: (UnsafePointer<UInt8>) -> [UInt8]) -> [UInt8] {
    bytes.withBytes { bytes in
      unsafe bytes.withUnsafeBufferPointer { bytes in unsafe bytes.baseAddress.map(body) ?? [] }
    }
  }
}
