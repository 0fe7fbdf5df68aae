import CredmgrCryptography

/// An authority that signs certificates for practice (RFC 5280, 4). Its key exists only in this process.
package struct CertificateAuthority {
  package let certificate: Certificate
  private let signer: Signer
  private let name: String

  /// The purpose of a certificate (RFC 5280, 4.2.1.3, 4.2.1.6 and 4.2.1.9).
  package enum Purpose {
    case authority
    case loopbackServer  // For 127.0.0.1 and localhost.
    case client
  }

  package init(name: String, random: some RandomSource) throws(CryptographyError) {
    self.name = name
    signer = try Signer(ECPrivateKey.pem(random: random))
    certificate = try Self.certificate(of: name, signer, .authority, issuer: name, signedBy: signer)
  }

  /// Returns a certificate for the private key, which is PEM.
  package func certificate(
    of subject: String, key: Secret, _ purpose: Purpose
  ) throws(CryptographyError) -> Certificate {
    try Self.certificate(of: subject, Signer(key), purpose, issuer: name, signedBy: signer)
  }

  /// Returns a certificate that the private key itself signs.
  package static func selfSigned(_ subject: String, key: Secret) throws(CryptographyError) -> Certificate {
    let signer = try Signer(key)
    return try certificate(of: subject, signer, .client, issuer: subject, signedBy: signer)
  }

  private static func certificate(
    of subject: String, _ key: Signer, _ purpose: Purpose, issuer: String, signedBy signer: Signer
  ) throws(CryptographyError) -> Certificate {
    let isAuthority = purpose == .authority
    var extensions = [
      // Basic constraints, and the usage of the key: signing certificates, or other signatures.
      element(0x30, oid(29, 19) + [0x01, 0x01, 0xFF] + octets(element(0x30, isAuthority ? [0x01, 0x01, 0xFF] : []))),
      element(0x30, oid(29, 15) + [0x01, 0x01, 0xFF] + octets(isAuthority ? [3, 2, 2, 4] : [3, 2, 7, 0x80])),
      // The identifiers of the keys of the subject and of the issuer.
      element(0x30, oid(29, 14) + octets(octets(key.identifier))),
      element(0x30, oid(29, 35) + octets(element(0x30, element(0x80, signer.identifier)))),
    ]
    if purpose == .loopbackServer {
      let names = element(0x87, [127, 0, 0, 1]) + element(0x82, Array("localhost".utf8))
      extensions.append(element(0x30, oid(29, 17) + octets(element(0x30, names))))
    }
    // The time is always the same, because the clock of a test may differ.
    let validity = element(0x17, Array("250101000000Z".utf8)) + element(0x18, Array("21241231000000Z".utf8))
    let signed = element(
      0x30,
      [0xA0, 3, 2, 1, 2] + DER.integer(key.identifier) + signer.algorithm + distinguished(issuer)
        + element(0x30, validity) + distinguished(subject) + key.publicBytes
        + element(0xA3, element(0x30, extensions.flatMap { $0 })))
    let signature = element(0x03, [0] + (try signer.sign(signed)))
    guard let certificate = Certificate(bytes: element(0x30, signed + signer.algorithm + signature)) else {
      throw .noSignatures
    }
    return certificate
  }

  private static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] { DER.element(tag, content) }
  private static func octets(_ content: [UInt8]) -> [UInt8] { element(0x04, content) }
  /// Returns the identifier of an attribute or an extension (ITU-T X.520, 2.5.4, and X.509, 2.5.29).
  private static func oid(_ arc: UInt8, _ number: UInt8) -> [UInt8] { element(0x06, [0x55, arc, number]) }

  private static func distinguished(_ name: String) -> [UInt8] {
    element(0x30, element(0x31, element(0x30, oid(4, 3) + element(0x0C, Array(name.utf8)))))
  }
}

/// A private key of any kind that signs certificates.
private struct Signer {
  private enum Key {
    case rsa(RSAPrivateKey)
    case edwards(EdPrivateKey)
    case elliptic(ECPrivateKey)
  }

  private let key: Key
  let publicBytes: [UInt8]  // A SubjectPublicKeyInfo.

  init(_ pem: Secret) throws(CryptographyError) {
    if let rsa = try? RSAPrivateKey(pem: pem) {
      (key, publicBytes) = (.rsa(rsa), rsa.publicBytes)
    } else if let edwards = try? EdPrivateKey(pem: pem) {
      (key, publicBytes) = (.edwards(edwards), edwards.publicBytes)
    } else {
      let elliptic = try ECPrivateKey(pem: pem)
      (key, publicBytes) = (.elliptic(elliptic), elliptic.publicBytes)
    }
  }

  /// A name for the key, which is also the number of its only certificate (RFC 5280, 4.1.2.2 and 4.2.1.2).
  var identifier: [UInt8] { Array(HashAlgorithm.sha256.digest(publicBytes).prefix(19)) }

  /// The identifier of the algorithm (RFC 4055, 5; RFC 5758, 3.2; RFC 8410, 3).
  var algorithm: [UInt8] {
    let (identifier, parameters): ([UInt8], [UInt8]) =
      switch key {
      case .rsa: ([0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0B], [0x05, 0x00])
      case .edwards: ([0x2B, 0x65, 0x70], [])
      case .elliptic: ([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02], [])
      }
    return DER.element(0x30, DER.element(0x06, identifier) + parameters)
  }

  func sign(_ message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    switch key {
    case .rsa(let key): return try key.signature(for: message, .sha256)
    case .edwards(let key): return try key.signature(for: message)
    case .elliptic(let key):
      guard let signature = DERSignature.encoded(try key.signature(for: message)) else { throw .cannotSign }
      return signature
    }
  }
}
