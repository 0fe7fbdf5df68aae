import Cryptography
import Testing

@Suite("RSA") struct RSAKeyTests {
  @Test("a PKCS #1 key: the published key of an OAuth library over the base string of RFC 5849, section 3.4.1.1")
  func first() throws {
    try check(
      Self.firstKey,
      "POST&http%3A%2F%2Fexample.com%2Frequest&a2%3Dr%2520b%26a3%3D2%2520q%26a3%3Da%26b"
        + "5%3D%253D%25253D%26c%2540%3D%26c2%3D%26oauth_consumer_key%3D9djdj82h48djs9d2%26o"
        + "auth_nonce%3D7d8f3e4a%26oauth_signature_method%3DHMAC-SHA1%26oauth_timestamp%3D1"
        + "37131201%26oauth_token%3Dkkk9d7dh3k39sjv7",
      "mFY2KOEnlYWsTvUA+5kxuBIcvBYXu+ljw9ttVJQxKduMueGSVPCB1tK1PlqVLK738HK0t19ecBJfb6rM"
        + "xUwrriw+MlBO+jpojkZIWccw1J4cAb4qu4M81DbpUAq4j/1w/QyTR4TWCODlEfN7Zfgy8+pf+TjiXfIw" + "RC1jEWbuL1E=")
  }

  @Test("a PKCS #8 key: OAuth Core 1.0 test cases, section 9.3") func second() throws {
    try check(
      Self.secondKey,
      "GET&http%3A%2F%2Fphotos.example.net%2Fphotos&file%3Dvacaction.jpg%26oauth_consum"
        + "er_key%3Ddpf43f3p2l4k3l03%26oauth_nonce%3D13917289812797014437%26oauth_signature"
        + "_method%3DRSA-SHA1%26oauth_timestamp%3D1196666512%26oauth_version%3D1.0%26size%3" + "Doriginal",
      "jvTp/wX1TYtByB1m+Pbyo0lnCOLIsyGCH7wke8AUs3BpnwZJtAuEJkvQL2/9n4s5wUmUl4aCI4BwpraN"
        + "x4RtEXMe5qg5T1LVTGliMRpKasKsW//e+RinhejgCuzoH26dyF8iY2ZZ/5D1ilgeijhV/vBka5twt399" + "mXwaYdCwFYE=")
  }

  private func check(_ pem: String, _ message: String, _ expected: String) throws {
    let key = try RSAPrivateKey(pem: Secret(pem))
    let message = Array(message.utf8)
    let signature = try key.signature(for: message, .sha1)
    #expect(Base64.encode(signature) == expected)
    #expect(key.isValid(signature: signature, for: message, .sha1))
    #expect(!key.isValid(signature: signature, for: message + [0], .sha1))
    #expect(!key.isValid(signature: signature, for: message, .sha256))
    #expect(!key.isValid(signature: [], for: message, .sha1))
  }

  @Test(
    "signs and checks with every digest that fits into the key", arguments: [HashAlgorithm.sha256, .sha384, .sha512])
  func digests(_ algorithm: HashAlgorithm) throws {
    let key = try RSAPrivateKey(pem: Secret(Self.firstKey))
    let signature = try key.signature(for: [1, 2, 3], algorithm)
    #expect(signature.count == 128)
    #expect(key.isValid(signature: signature, for: [1, 2, 3], algorithm))
    let other = try RSAPrivateKey(pem: Secret(Self.secondKey))
    #expect(!other.isValid(signature: signature, for: [1, 2, 3], algorithm))
  }

  @Test(
    "refuses what is no RSA key, and asks nobody for a passphrase",
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

  private static let secondKey = """
    -----BEGIN PRIVATE KEY-----
    MIICdgIBADANBgkqhkiG9w0BAQEFAASCAmAwggJcAgEAAoGBALRiMLAh9iimur8V
    A7qVvdqxevEuUkW4K+2KdMXmnQbG9Aa7k7eBjK1S+0LYmVjPKlJGNXHDGuy5Fw/d
    7rjVJ0BLB+ubPK8iA/Tw3hLQgXMRRGRXXCn8ikfuQfjUS1uZSatdLB81mydBETlJ
    hI6GH4twrbDJCR2Bwy/XWXgqgGRzAgMBAAECgYBYWVtleUzavkbrPjy0T5FMou8H
    X9u2AC2ry8vD/l7cqedtwMPp9k7TubgNFo+NGvKsl2ynyprOZR1xjQ7WgrgVB+mm
    uScOM/5HVceFuGRDhYTCObE+y1kxRloNYXnx3ei1zbeYLPCHdhxRYW7T0qcynNmw
    rn05/KO2RLjgQNalsQJBANeA3Q4Nugqy4QBUCEC09SqylT2K9FrrItqL2QKc9v0Z
    zO2uwllCbg0dwpVuYPYXYvikNHHg+aCWF+VXsb9rpPsCQQDWR9TT4ORdzoj+Nccn
    qkMsDmzt0EfNaAOwHOmVJ2RVBspPcxt5iN4HI7HNeG6U5YsFBb+/GZbgfBT3kpNG
    WPTpAkBI+gFhjfJvRw38n3g/+UeAkwMI2TJQS4n8+hid0uus3/zOjDySH3XHCUno
    cn1xOJAyZODBo47E+67R4jV1/gzbAkEAklJaspRPXP877NssM5nAZMU0/O/NGCZ+
    3jPgDUno6WbJn5cqm8MqWhW1xGkImgRk+fkDBquiq4gPiT898jusgQJAd5Zrr6Q8
    AO/0isr/3aa6O6NLQxISLKcPDk2NOccAfS/xOtfOz4sJYM3+Bs4Io9+dZGSDCA54
    Lw03eHTNQghS0A==
    -----END PRIVATE KEY-----

    """

  private static let firstPublicKey = """
    -----BEGIN PUBLIC KEY-----
    MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDk1/bxyS8Q8jiheHeYYp/4rEKJ
    opeQRRKKpZI4s5i+UPwVpupGAlwXWfzXwSMaKPAoKJNdu7tqKRniqst5uoHXw98g
    j0x7zamu0Ck1LtQ4c7pFMVah5IYGhBi2E9ycNS329W27nJPWNCbESTu7snVlG8V8
    mfvGGg3xNjTMO7IdrwIDAQAB
    -----END PUBLIC KEY-----

    """

  /// A key of 512 bits under the passphrase "test".
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
