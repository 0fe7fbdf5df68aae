/// No case carries a key, a plaintext or a text that might hold one.
package enum CryptographyError: Error, Equatable, Sendable {
  case wrongLength(expected: Int, actual: Int)
  case notAuthentic
  case notAnRSAKey
  case notAnECKey
  case noSignatures  // This program is fully static, and has no public-key cryptography: another program has to do it.
  case cannotSign  // The key is too short for this digest.
  case costsOutOfRange
  case outOfMemory
}
