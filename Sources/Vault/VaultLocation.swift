import Platform
import Store

package struct VaultLocation: Sendable, Equatable {
  package let directory: String
  package let file: String
  package let keyFile: String

  /// The key file that takes the place of the other one with the commit of its slot.
  var nextKeyFile: String { keyFile + ".new" }

  /// Makes sure that a change is on the disk whose journal was removed without that being certain.
  func confirm() throws(VaultError) {
    try wrapping({ (_: POSIXError) in VaultError.unconfirmed(path: file) }, File.synchronizeDirectory(directory))
  }

  /// Far behind all that SQLite locks in the file (2^30 and the 511 bytes behind it), and all that it has.
  private static let firstLock: Int64 = 1 << 62

  /// For a ``Vault/lockName(provider:account:)``.
  package func lock(_ name: String) -> LockPlace {
    LockPlace(path: file, byte: Self.firstLock + (Int64(name.prefix(15), radix: 16) ?? 0))
  }

  /// Only one process at a time asks for a passphrase.
  package var passphraseLock: LockPlace { LockPlace(path: file, byte: Self.firstLock - 1) }

  package var rulesLock: LockPlace { LockPlace(path: file, byte: Self.firstLock - 2) }
}

extension VaultLocation {
  package init(directory: String) {
    self.init(directory: directory, file: directory + "/vault.db", keyFile: directory + "/vault.key")
  }
}
