import Cryptography
import Testing

@Suite("P-256")
struct ECKeyTests {
  /// Another implementation's signature, whose R begins with a zero.
  @Test func signatureOfAnother() throws {
    let key = try ECPublicKey(pem: Self.publicKey)
    let signature = try #require(
      Hexadecimal.decode(
        "00ad6fd5c737d9d3544cb9c56c85eb4cf05f4353f8d2551d69b012c48459fe26"
          + "3da227e3324100dbf0a37bfb359b5202b2d436bba0ef4e2019fa68504400b9c6"))
    let message = Array("message".utf8)
    #expect(key.isValid(signature: signature, for: message))
    #expect(!key.isValid(signature: signature, for: Array("Message".utf8)))
    var other = signature
    other[63] ^= 1
    #expect(!key.isValid(signature: other, for: message))
    #expect(!key.isValid(signature: Array(signature.dropLast()), for: message))
    #expect(!key.isValid(signature: [], for: message))
  }

  /// Often enough that numbers with leading zeros are among them.
  @Test func whatIsSignedIsValid() throws {
    let key = try ECPrivateKey(pem: Secret(Self.privateKey))
    for number in 0..<600 {
      let message = Array("message \(number)".utf8)
      let signature = try key.signature(for: message)
      #expect(signature.count == 64)
      #expect(key.publicKey.isValid(signature: signature, for: message))
    }
  }

  @Test func otherKeysAreRefused() {
    #expect(throws: CryptographyError.notAnECKey) { try ECPublicKey(pem: Self.otherCurve) }
    #expect(throws: CryptographyError.notAnECKey) { try ECPublicKey(pem: "") }
    #expect(throws: CryptographyError.notAnECKey) { try ECPrivateKey(pem: Secret(Self.publicKey)) }
    #expect(throws: CryptographyError.notAnRSAKey) { try RSAPrivateKey(pem: Secret(Self.privateKey)) }
  }

  private static let publicKey = """
    -----BEGIN PUBLIC KEY-----
    MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEvEp54IAf8bEsrumtU+syWCCXEbqz
    oEfk3Efi/K5EQjIy9/ag0nWaPN5C+a+JRT5qbcYSFlLsFK/oTgzwsD9EwQ==
    -----END PUBLIC KEY-----

    """

  /// On secp256k1, which has as many bits.
  private static let otherCurve = """
    -----BEGIN PUBLIC KEY-----
    MFYwEAYHKoZIzj0CAQYFK4EEAAoDQgAEVIvuz+Ju/3B1cRvd37G0tkRFUNI0jvda
    ZtAAAzLPVUnK+5CQgVYlTjxKZO1Scv71dumyTHDaIgs85/pKuJ22hQ==
    -----END PUBLIC KEY-----

    """

  /// For tests alone.
  private static let privateKey = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg+EHBrDCnG3nsUVlI
    41sYhwwXUIwQ+zRPiEeyzFGep3ShRANCAAQcehVNrFyMoMy3DZtoBhvzKL3D1jj4
    ctDDf6C2LxgBod6X6NbyAtNim94EzhrQBiqKgGxK6J/S+NtNJTm0b6bi
    -----END PRIVATE KEY-----

    """
}
