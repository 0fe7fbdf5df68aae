import CredmgrCryptography
import CredmgrDescriptors
import CredmgrTLS

/// The keys of the simulator and its client. They are for practice: everyone has them.
extension Simulation {
  var practiceKey: Secret { Self.practiceKey(descriptor.assertion?.algorithm ?? .rs256) }

  static func practiceKey(_ algorithm: AssertionAlgorithm) -> Secret {
    switch algorithm {
    case .es256: Secret(ellipticKey)
    case .edDSA: Secret(edwardsKey)
    default: Secret(rsaKey)
    }
  }

  /// Returns the private key that a client of this provider needs, with its certificate if the client needs one, and
  /// after a secret if the client needs both; `nil` if any text can be its secret. The authority signs the certificate
  /// unless the provider registers self-signed ones.
  static func practiceSecret(
    ofClientOf descriptor: Descriptor, _ authority: CertificateAuthority?
  ) throws(CryptographyError) -> Secret? {
    let methods = descriptor.clientMethods
    let signs = methods.contains(.privateKeyJWT) || descriptor.signsRequests
    let algorithm = descriptor.assertion?.algorithm ?? (signs ? .rs256 : nil)
    let method = descriptor.oauth1.signatureMethod.literal.flatMap(SignatureMethod.init)
    let isKey = algorithm?.isSymmetric == false || method?.isRSA == true
    guard authority != nil || isKey else { return nil }
    let key = practiceKey(algorithm ?? .rs256)
    let certificate =
      methods.contains(.selfSignedTLSClientAuth)
      ? try CertificateAuthority.selfSigned(clientIdentifier, key: key)
      : try authority?.certificate(of: clientIdentifier, key: key, .client)
    let pem = key.reveal() + "\n" + (certificate?.pem ?? "")
    guard authority != nil, descriptor.sharesSecret else { return Secret(pem) }
    return Secret(Base64.encodeURL(SystemRandomSource().bytes(32)) + "\n" + pem)
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

  private static let edwardsKey = """
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEID2BUoX35XWCBv/nBaQZYEb98kvqcrDIhg+h0f9RrNCp
    -----END PRIVATE KEY-----
    """

  private static let ellipticKey = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg5ko3eTz5y8clVQys
    pxrytx69+x+6x36J9gkKG0FzAZ2hRANCAAReJnELWstu32+jLAkBvnG96RoxpTjx
    HHvynlcD2nfj2TyB2ITPrc7sG+bAdFI4bG29Y+V7O9+I89k4PyNAXEPk
    -----END PRIVATE KEY-----
    """
}
