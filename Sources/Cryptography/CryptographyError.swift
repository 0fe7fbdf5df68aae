/// A failure of a cryptographic operation. No case holds a key, a plaintext or a text that might contain one.
package enum CryptographyError: Error, Equatable, Sendable {
  case wrongLength(expected: Int, actual: Int)
  case notAuthentic
  case notAnRSAKey
  case notAnECKey
  case notAnEdKey
  case notAPublicKey
  case notAPrivateKey
  case notACertificate
  case otherCertificate  // The certificate is for another private key.
  case noSignatures  // A fully static program has no public-key cryptography; another program must sign.
  case cannotSign  // The key is too short for this digest.
  case costsOutOfRange
  case outOfMemory
}
