import CredmgrCryptography
import Testing

@Suite("P-256") struct ECKeyTests {
  /// Verifies another implementation's signature, whose R begins with a zero.
  @Test func verifiesAnotherImplementationsSignature() throws {
    let key = try ECPrivateKey(pem: Secret(Self.privateKey))
    let signature = try #require(
      Hexadecimal.decode(
        "00f5d55a58b9845c0b05f19296554c71b05ca1bee0e69f7cd8a9a771d04ddaf1"
          + "dfc93ed4b3ead3d46a0e2e568825849cbe46b0ab27c7e690ca9685fc9871767e"))
    let message = Array("message".utf8)
    #expect(key.isValid(signature: signature, for: message))
    #expect(!key.isValid(signature: signature, for: Array("Message".utf8)))
    var other = signature
    other[63] ^= 1
    #expect(!key.isValid(signature: other, for: message))
    #expect(!key.isValid(signature: Array(signature.dropLast()), for: message))
    #expect(!key.isValid(signature: [], for: message))
  }

  /// Repeats signing until some numbers have leading zeros.
  @Test func signaturesAreValid() throws {
    let key = try ECPrivateKey(pem: Secret(Self.privateKey))
    for number in 0..<600 {
      let message = Array("message \(number)".utf8)
      let signature = try key.signature(for: message)
      #expect(signature.count == 64)
      #expect(key.isValid(signature: signature, for: message))
    }
  }

  /// Uses the key of RFC 7517, A.2.
  @Test func derivesThePublicKey() throws {
    let key = try #require(try ECPrivateKey(pem: Secret(Self.example)).publicKey)
    #expect(Base64.encodeURL(key.x) == "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4")
    #expect(Base64.encodeURL(key.y) == "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM")
  }

  @Test func rejectsOtherKeys() {
    for pem in [Self.otherCurve, Self.publicKey, ""] {
      #expect(throws: CryptographyError.notAnECKey) { try ECPrivateKey(pem: Secret(pem)) }
    }
    #expect(throws: CryptographyError.notAnRSAKey) { try RSAPrivateKey(pem: Secret(Self.privateKey)) }
  }

  private static let publicKey = """
    -----BEGIN PUBLIC KEY-----
    MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEvEp54IAf8bEsrumtU+syWCCXEbqz
    oEfk3Efi/K5EQjIy9/ag0nWaPN5C+a+JRT5qbcYSFlLsFK/oTgzwsD9EwQ==
    -----END PUBLIC KEY-----

    """

  /// A key on secp256k1, which has 256 bits as well.
  private static let otherCurve = """
    -----BEGIN PRIVATE KEY-----
    MIGEAgEAMBAGByqGSM49AgEGBSuBBAAKBG0wawIBAQQgCo9CW+giAmIyTs1qhiCC
    o7Vjau7geWGNPIC5NUP0uwyhRANCAAT+iZDqJ/dvqKu8lJt6JgwvEmPnjwF88MwX
    z+3JTpAUaeV0OZ5xxR90qBFHclyhJeiZYXWtKXjvB2MZZ/E11fDg
    -----END PRIVATE KEY-----

    """

  private static let example = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg870MB6gfuTJ4HtUn
    UvYMyJpr5eUZNP4Bk43bVdj3eAGhRANCAAQwoEJM0hwpRIOKLXXJKzfnbqINnwCJ
    OjtO7oo8Cq/sPuBLZekkVtmIi1Kzeb371R7oae8fD8ZbZllpW2zOCBcj
    -----END PRIVATE KEY-----

    """

  /// A key only for tests.
  static let privateKey = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg+EHBrDCnG3nsUVlI
    41sYhwwXUIwQ+zRPiEeyzFGep3ShRANCAAQcehVNrFyMoMy3DZtoBhvzKL3D1jj4
    ctDDf6C2LxgBod6X6NbyAtNim94EzhrQBiqKgGxK6J/S+NtNJTm0b6bi
    -----END PRIVATE KEY-----

    """
}
