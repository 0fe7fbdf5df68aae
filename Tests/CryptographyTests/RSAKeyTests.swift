import CredmgrCryptography
import Testing

@Suite("RSA") struct RSAKeyTests {
  /// OAuth1SignatureTests verifies other implementations' signatures with keys of PKCS #1 and PKCS #8.
  @Test("signs and verifies with every digest", arguments: HashAlgorithm.allCases)
  func digests(_ algorithm: HashAlgorithm) throws {
    let key = try RSAPrivateKey(pem: Secret(Self.firstKey))
    let signature = try key.signature(for: [1, 2, 3], algorithm)
    #expect(signature.count == 128)
    #expect(key.isValid(signature: signature, for: [1, 2, 3], algorithm))
    #expect(!key.isValid(signature: signature, for: [1, 2, 3, 0], algorithm))
    #expect(!key.isValid(signature: signature, for: [1, 2, 3], algorithm == .sha1 ? .sha256 : .sha1))
    #expect(!key.isValid(signature: [], for: [1, 2, 3], algorithm))
  }

  @Test(
    "rejects other keys without a prompt for a passphrase",
    arguments: [
      "", "key", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n", ECKeyTests.privateKey, encryptedKey,
      firstPublicKey,
    ])
  func refuses(_ pem: String) { #expect(throws: CryptographyError.notAnRSAKey) { try RSAPrivateKey(pem: Secret(pem)) } }

  private static let firstKey = """
    -----BEGIN RSA PRIVATE KEY-----
    MIICXgIBAAKBgQDk1/bxyS8Q8jiheHeYYp/4rEKJopeQRRKKpZI4s5i+UPwVpupG
    AlwXWfzXwSMaKPAoKJNdu7tqKRniqst5uoHXw98gj0x7zamu0Ck1LtQ4c7pFMVah
    5IYGhBi2E9ycNS329W27nJPWNCbESTu7snVlG8V8mfvGGg3xNjTMO7IdrwIDAQAB
    AoGBAOQ2KuH8S5+OrsL4K+wfjoCi6MfxCUyqVU9GxocdM1m30WyWRFMEz2nKJ8fR
    p3vTD4w8yplTOhcoXdQZl0kRoaDzrcYkm2VvJtQRrX7dKFT8dR8D/Tr7dNQLOXfC
    DY6xveQczE7qt7Vk7lp4FqmxBsaaEuokt78pOOjywZoInjZhAkEA9wz3zoZNT0/i
    rf6qv2qTIeieUB035N3dyw6f1BGSWYaXSuerDCD/J1qZbAPKKhyHZbVawFt3UMhe
    542UftBaxQJBAO0iJy1I8GQjGnS7B3yvyH3CcLYGy296+XO/2xKp/d/ty1OIeovx
    C60pLNwuFNF3z9d2GVQAdoQ89hUkOtjZLeMCQQD0JO6oPHUeUjYT+T7ImAv7UKVT
    Suy30sKjLzqoGw1kR+wv7C5PeDRvscs4wa4CW9s6mjSrMDkDrmCLuJDtmf55AkEA
    kmaMg2PNrjUR51F0zOEFycaaqXbGcFwe1/xx9zLmHzMDXd4bsnwt9kk+fe0hQzVS
    JzatanQit3+feev1PN3QewJAWv4RZeavEUhKv+kLe95Yd0su7lTLVduVgh4v5yLT
    Ga6FHdjGPcfajt+nrpB1n8UQBEH9ZxniokR/IPvdMlxqXA==
    -----END RSA PRIVATE KEY-----

    """

  private static let firstPublicKey = """
    -----BEGIN PUBLIC KEY-----
    MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDk1/bxyS8Q8jiheHeYYp/4rEKJ
    opeQRRKKpZI4s5i+UPwVpupGAlwXWfzXwSMaKPAoKJNdu7tqKRniqst5uoHXw98g
    j0x7zamu0Ck1LtQ4c7pFMVah5IYGhBi2E9ycNS329W27nJPWNCbESTu7snVlG8V8
    mfvGGg3xNjTMO7IdrwIDAQAB
    -----END PUBLIC KEY-----

    """

  /// A key of 512 bits encrypted with the passphrase "test".
  private static let encryptedKey = """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIIBvTBXBgkqhkiG9w0BBQ0wSjApBgkqhkiG9w0BBQwwHAQIuBr0aEpXneICAggA
    MAwGCCqGSIb3DQIJBQAwHQYJYIZIAWUDBAEqBBAuREzuXxoB9PUUHthMeDyVBIIB
    YOisF0mZxmqrOhir1uI+DnYllPoLBjELWwqZ1JZa0QydU1mXGifyiTW+S4/Z6bor
    Hq/+U8tsV96O7BrJmRJfILV5j+yy3BZP1gYkkOVPwPlSLTp1QBzMLOGP8ewSMzme
    FobQ+HTArlkL/kuGzD3yR1+5eBeRQJdy6dpcATnCAiOeyCvQNYf4GhPqSGXmiIXA
    bri8yNqO6m1F9br4aWYN+s51hxD+DN6XlK74paT8XNzklb1X6P37VAd5+zGzOD8U
    U+SK04bdJXM+USoB1khK7I4kgimBaVyJWW6hUXhwXMUwYfeoPE9Eodg3BGAOF/6j
    nArjrPbVX5v5M27k2LRjquahBX7YLAtgUdZFcYMhI+S4hG8Kb5wc7uf9K1uImkUr
    UwwJd9BB06PJlk2HkuSuSMqXDOF8FLZA+B0aIutELcqEJwMNgA5eJ13uF9ItcmvY
    hLuVlSIHark/nOpdZnZmlbk=
    -----END ENCRYPTED PRIVATE KEY-----

    """
}
