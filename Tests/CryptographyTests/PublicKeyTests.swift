import CredmgrCryptography
import Testing

/// Tests the verification of signatures with the examples of RFC 7515 and RFC 8037.
struct PublicKeyTests {
  private static func bytes(_ text: String) throws -> [UInt8] { try #require(Base64.decodeURL(text)) }

  private static let message =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0"
    + "cnVlfQ"

  /// RFC 7515, A.3
  @Test func anECDSASignature() throws {
    let key = PublicKey.p256(
      x: try Self.bytes("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
      y: try Self.bytes("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"))
    let mark = try Self.bytes(
      "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q")
    let message = Array(("eyJhbGciOiJFUzI1NiJ9." + Self.message).utf8)
    #expect(try key.isValid(signature: mark, for: message, .ecdsa))
    #expect(try !key.isValid(signature: mark, for: message + [0], .ecdsa))
    #expect(try !key.isValid(signature: mark, for: message, .rsa(.sha256)))
    #expect(try !key.isValid(signature: mark.dropLast(), for: message, .ecdsa))
  }

  /// RFC 7515, A.2
  @Test func anRSASignature() throws {
    let modulus = try Self.bytes(
      "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS"
        + "-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2"
        + "R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAc"
        + "DTW9gb54h4FRWyuXpoQ")
    let key = PublicKey.rsa(modulus: modulus, exponent: [1, 0, 1])
    let mark = try Self.bytes(
      "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUA"
        + "r7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_d"
        + "O--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0i"
        + "gcN_IoypGlUPQGe77Rw")
    let message = Array(("eyJhbGciOiJSUzI1NiJ9." + Self.message).utf8)
    #expect(try key.isValid(signature: mark, for: message, .rsa(.sha256)))
    #expect(try !key.isValid(signature: mark, for: message, .pss(.sha256)))
    #expect(try !key.isValid(signature: mark, for: message, .rsa(.sha512)))
  }

  /// RFC 8037, A.4
  @Test func anEdDSASignature() throws {
    let key = PublicKey.ed25519(try Self.bytes("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"))
    let mark = try Self.bytes(
      "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg")
    let message = Array("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc".utf8)
    #expect(try key.isValid(signature: mark, for: message, .eddsa))
    #expect(try !key.isValid(signature: mark, for: Array(message.dropLast()), .eddsa))
  }

  /// RFC 8037, A.1 as PKCS #8. Ed25519 signatures are deterministic.
  @Test func anEdDSAKeySigns() throws {
    let seed = try Self.bytes("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
    let encoded = Base64.encode(
      [0x30, 0x2E, 0x02, 0x01, 0, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20] + seed)
    let key = try EdPrivateKey(
      pem: Secret("-----BEGIN PRIVATE KEY-----\n\(encoded)\n-----END PRIVATE KEY-----\n"))
    #expect(Base64.encodeURL(Array(key.publicBytes.suffix(32))) == "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
    let message = Array("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc".utf8)
    #expect(
      Base64.encodeURL(try key.signature(for: message))
        == "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg")
    #expect(throws: CryptographyError.notAnRSAKey) {
      try RSAPrivateKey(pem: Secret("-----BEGIN PRIVATE KEY-----\n\(encoded)\n-----END PRIVATE KEY-----\n"))
    }
  }

  @Test func keysThatNobodyShouldTrust() throws {
    for (modulus, exponent) in [(255, [1, 0, 1]), (1025, [1, 0, 1]), (256, [1]), (256, [2]), (256, [])]
      as [(Int, [UInt8])]
    {
      let key = PublicKey.rsa(modulus: Array(repeating: 0xFF, count: modulus), exponent: exponent)
      #expect(!key.isAcceptable)
      #expect(try !key.isValid(signature: [1], for: [1], .rsa(.sha256)))
    }
    #expect(!PublicKey.p256(x: [1], y: [2]).isAcceptable)
    #expect(!PublicKey.ed25519([]).isAcceptable)
  }
}
