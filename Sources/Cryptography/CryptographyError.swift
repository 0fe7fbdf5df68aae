/// What can go wrong in this module. No case carries a key, a plaintext or a text that might hold one.
package enum CryptographyError: Error, Equatable, Sendable {
  /// Bytes of the wrong number: a key, a nonce, a salt or a context.
  case wrongLength(expected: Int, actual: Int)
  /// The sealed bytes, the associated data, the nonce or the key are not those of the sealing.
  case notAuthentic
  /// The PEM text holds no RSA key that can be read without a passphrase.
  case notAnRSAKey
  /// The PEM text holds no key on P-256 that can be read without a passphrase.
  case notAnECKey
  /// This program is fully static, and has no public-key cryptography: another program has to do it.
  case noSignatures
  /// The key cannot make a signature with this digest (it is too short).
  case cannotSign
  /// The costs of a passphrase derivation are outside of what this program accepts.
  case costsOutOfRange
  /// The system has not enough memory for the key or for the derivation.
  case outOfMemory
}
