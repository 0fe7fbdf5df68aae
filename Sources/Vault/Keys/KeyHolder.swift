import Cryptography
import Store

/// Somebody who may have a key to the vault.
package enum KeyHolder {
  /// The key file beside the vault.
  case keyFile
  /// Somebody who keeps the keys of an opened vault; `nil` when he has none of this vault.
  ///
  /// - vault: the name of the vault and of its present keys.
  case opened((_ vault: String) -> Secret?)
  /// The Secret Service.
  ///
  /// - item: the name under which the key was kept.
  case secretService((_ item: String) throws(VaultError) -> Secret)
  /// A person, or who answers in his place.
  ///
  /// - attempt: 1, and one more each time that the answer was wrong; who does not want to be asked again throws
  ///   `.wrongPassphrase`.
  case passphrase((_ attempt: Int) throws(VaultError) -> Secret)
}
