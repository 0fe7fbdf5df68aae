import CredmgrCryptography
import CredmgrDescriptors

/// The keys and certificates of the simulator and its client. They are for practice: everyone has them.
extension Simulation {
  var practiceKey: Secret { Self.practiceKey(descriptor.assertion?.algorithm ?? .rs256) }

  static func practiceKey(_ algorithm: AssertionAlgorithm) -> Secret { Secret(practicePair(algorithm).key) }

  private static func practicePair(_ algorithm: AssertionAlgorithm) -> (key: String, certificate: String) {
    switch algorithm {
    case .es256: (ellipticKey, ellipticCertificate)
    case .edDSA: (edwardsKey, edwardsCertificate)
    default: (rsaKey, rsaCertificate)
    }
  }

  /// Returns the private key that a client of this provider needs, with its certificate if the client needs one; `nil`
  /// if any text can be its secret.
  static func practiceSecret(ofClientOf descriptor: Descriptor) -> Secret? {
    let methods = [descriptor.client.authentication] + descriptor.endpoints.values.map(\.authentication)
    let isCertified = descriptor.tokenBinding == .mutualTLS || methods.contains { $0?.usesCertificate == true }
    let signs = methods.contains(.privateKeyJWT) || descriptor.signsRequests
    let algorithm = descriptor.assertion?.algorithm ?? (signs ? .rs256 : nil)
    let method = descriptor.oauth1.signatureMethod.literal.flatMap(SignatureMethod.init)
    let isKey = algorithm?.isSymmetric == false || method?.isRSA == true
    guard isCertified || isKey else { return nil }
    let pair = practicePair(algorithm ?? .rs256)
    return Secret(pair.key + "\n" + (isCertified ? pair.certificate + "\n" : ""))
  }

  private static let rsaKey = """
    -----BEGIN PRIVATE KEY-----
    MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDOWKVbvT7FQW2C
    ljLwxEbBxkCDWReo8lZYOfmRtv/cWoqxaYZAYtu3C3y3WoCWF2BJjFd7PocTX2G1
    2kD95INhaBS1kFc03KYLZQ2K1kq+6UTu9bDfM0YSfwg+ime+VcfadK79y5hJ9BSD
    T+Gd5rCoa6rQEXMXZ/kxQ3q42gRYIqSB7516b3jPEqWGkBffLKvEbxjGBI6LUqUO
    3EsLqoO/E+dfZHBV5il0wUheISXzcFVac9/we9s2gmfanHTu1oJ18/PW6SpBgExy
    C7rBrHpcGPDvhYYa00/L8V/WjmJfKv8NC7w77gQqkEAmNt99VR0DIaVyS5LZgO97
    Xqt8ByHRAgMBAAECggEAALD9gthtj/8iCmHi8067tvVUAiynqTkApDneKx28GeVS
    xCPon37FTNsfae+GG+/28mAjleXgfCaMaa3SHGz/f1wi1PXnbjr+sm3o/59Wr5uR
    T89Sbk5aFytGSuFaAM0BnFWE6umboxnL13cfzXs4TyQnNccX2zWjDoYdmztzGsbS
    EIBPgdoKXmhRO8XhuragruJ4fZhYDiJ/UClofvJ/A/dflFtR0yzK2tJS08Iu29S2
    Njzxty2mT6V/8kn7gjNbm1vr3efim4hjc4n5b22b4/uSO4NVwQKvSTxd9t7JUEAb
    YqFAh2A6cuB1GPlyJkKU4BqCzel+a3d709QI+dWkvQKBgQDmdy/sJ9Sou4Fyt94y
    IbUnkJLrTR0tWjcDQTj08SXQwlFvi9p4TVIzE/jS+Csmjn00YDNTAX3Qr1GOdulW
    Lz1KusPLKZIALWgxTypoAUBQu7Bf03CG8zT6CbS+8cAItce/o4agxzfCVlDUWuQa
    r1+TRXnpBPiAP+kMn5tZ9mzqvQKBgQDlNVnEwi2+W6HwWJ2vzlgP5S45P5TqTO4H
    0tIT6oig9eTneqnqPnVr5feZWLxxb7+vRODogPoq05RrqF+DL6zfdQKfNjpLTbX/
    0tCkklHyuZ2nQnnrax1blV4bhDwEUVytZ84tFfqQ++YRz++f7/wuTDcMR6t79eeZ
    C+rL/YuOpQKBgEqUV1W8rfzMcN+G0Mi4T7818dVjZwW+I/9Ro/Tf9LTRrTjDsTct
    DmSpGeRrmssnYS0J1JIP8X8OvP21TV0ufE8qkSG1miGkkAsk6zws63s0wabA7bE+
    Eu63JV6FLPekm7dQW8i7rzecZxvRLe/UwMEPwpu9mA0ooWoMXGGIdUahAoGBAKxT
    rTdSasP47sreRUgdknX48ATYueRijH/TUGDq72hdF4m13rQf23aRAtQHND7xLqPe
    3F3SQsQaKTe78nuWR5oFxj/frHpbZd9+J6Hj5LriNRbA0xtdgEgQCB4WEG2Komw5
    ZHjfUnDZAsQXmuibrPU+FhEkfViIrGST4icWbGuFAoGABcRtFZJsJWiuM7qqk3CY
    NviUgy5jPKfWcR+SFTKgJKMzupZ0nHzJuVFpkt59U2eCwi9EEy4oZKgLezNLCdIr
    vqSdlipHjNZ7q+dlIix40TTFCo3dMN1EoKsErOiyI0CI38HqH3nr3W/sbhscosIn
    W4jjdXYd8asZUomagmfgJWw=
    -----END PRIVATE KEY-----
    """

  private static let rsaCertificate = """
    -----BEGIN CERTIFICATE-----
    MIICsTCCAZmgAwIBAgIBATANBgkqhkiG9w0BAQsFADAbMRkwFwYDVQQDDBBzaW11
    bGF0b3ItY2xpZW50MCAXDTI1MDEwMTAwMDAwMFoYDzIxMjQxMjMxMDAwMDAwWjAb
    MRkwFwYDVQQDDBBzaW11bGF0b3ItY2xpZW50MIIBIjANBgkqhkiG9w0BAQEFAAOC
    AQ8AMIIBCgKCAQEAzlilW70+xUFtgpYy8MRGwcZAg1kXqPJWWDn5kbb/3FqKsWmG
    QGLbtwt8t1qAlhdgSYxXez6HE19htdpA/eSDYWgUtZBXNNymC2UNitZKvulE7vWw
    3zNGEn8IPopnvlXH2nSu/cuYSfQUg0/hneawqGuq0BFzF2f5MUN6uNoEWCKkge+d
    em94zxKlhpAX3yyrxG8YxgSOi1KlDtxLC6qDvxPnX2RwVeYpdMFIXiEl83BVWnPf
    8HvbNoJn2px07taCdfPz1ukqQYBMcgu6wax6XBjw74WGGtNPy/Ff1o5iXyr/DQu8
    O+4EKpBAJjbffVUdAyGlckuS2YDve16rfAch0QIDAQABMA0GCSqGSIb3DQEBCwUA
    A4IBAQC3RSlIQ4YAePExy+KfiULjAQCYWb8pp7ELlAnaC3xI75fbEsNEPvcrK9w/
    i7m/l3CJDb8mMp4RYN2x/+i20+WHSATtmOCPN8O/KOvbeRabsRa/4dg8oU7yIXar
    qG3q0Xsz52sxIdiTxHVdjKMlRMVeIa4Be58qEIQdWJZ/RzEN41A95dE0CUkBjaLc
    mPx0pGWWJohWiYgSQrgWO8+nKwTYnrs0/4vxyXHT1N2dfrim/gVGiCvhDLaFDIAR
    +2Of6lyPVuoOGqWhqpQf8IGR3tg8z3ityo2S68DQXha1uHOqPtPys1KSee6nRu9u
    zG1VIGavvYLm/yNIfc11obP11neD
    -----END CERTIFICATE-----
    """

  private static let edwardsKey = """
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEID2BUoX35XWCBv/nBaQZYEb98kvqcrDIhg+h0f9RrNCp
    -----END PRIVATE KEY-----
    """

  private static let edwardsCertificate = """
    -----BEGIN CERTIFICATE-----
    MIHkMIGXoAMCAQICAQEwBQYDK2VwMBsxGTAXBgNVBAMMEHNpbXVsYXRvci1jbGll
    bnQwIBcNMjUwMTAxMDAwMDAwWhgPMjEyNDEyMzEwMDAwMDBaMBsxGTAXBgNVBAMM
    EHNpbXVsYXRvci1jbGllbnQwKjAFBgMrZXADIQDs2+FgC9HYGWQrEx4wI+DsMPRU
    aNE14ILCrNyE/DtnnjAFBgMrZXADQQAwNbz1DyY0mOlaZWUwnjOurdvU1+zZWXNz
    IwrziLnrv7zTVWyKMb0tBLStbWjOAg68kO1nr2iqCdpRHzSPA5wO
    -----END CERTIFICATE-----
    """

  private static let ellipticKey = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg5ko3eTz5y8clVQys
    pxrytx69+x+6x36J9gkKG0FzAZ2hRANCAAReJnELWstu32+jLAkBvnG96RoxpTjx
    HHvynlcD2nfj2TyB2ITPrc7sG+bAdFI4bG29Y+V7O9+I89k4PyNAXEPk
    -----END PRIVATE KEY-----
    """

  private static let ellipticCertificate = """
    -----BEGIN CERTIFICATE-----
    MIIBJTCBy6ADAgECAgEBMAoGCCqGSM49BAMCMBsxGTAXBgNVBAMMEHNpbXVsYXRv
    ci1jbGllbnQwIBcNMjUwMTAxMDAwMDAwWhgPMjEyNDEyMzEwMDAwMDBaMBsxGTAX
    BgNVBAMMEHNpbXVsYXRvci1jbGllbnQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
    AAReJnELWstu32+jLAkBvnG96RoxpTjxHHvynlcD2nfj2TyB2ITPrc7sG+bAdFI4
    bG29Y+V7O9+I89k4PyNAXEPkMAoGCCqGSM49BAMCA0kAMEYCIQCoKmnjNELWrfBU
    PPqRh2dub0lhALg5zzmmgW1+b5OyFgIhAK1pGQLs+yA/2UNx9QrG5uu8R+dYgPFa
    lCyyoJCmKDyc
    -----END CERTIFICATE-----
    """
}
