import Platform
import Store

package struct VaultLocation: Sendable, Equatable {
  package let directory: String
  package let file: String
  package let keyFile: String

  /// The key file that replaces the other one when its slot is committed.
  var nextKeyFile: String { keyFile + ".new" }

  /// Syncs a change whose journal was removed without certainty that the removal is on disk.
  func confirm() throws(VaultError) {
    try wrapping({ (_: POSIXError) in VaultError.unconfirmed(path: file) }, File.synchronizeDirectory(directory))
  }

  /// A byte far beyond the file and SQLite's own locks in it (2^30 and the 511 bytes after it).
  private static let firstLock: Int64 = 1 << 62

  /// The lock for a ``Vault/lockName(provider:account:)``.
  package func lock(_ name: String) -> LockPlace {
    LockPlace(path: file, byte: Self.firstLock + (Int64(name.prefix(15), radix: 16) ?? 0))
  }

  /// The lock that lets only one process prompt for a passphrase.
  package var passphraseLock: LockPlace { LockPlace(path: file, byte: Self.firstLock - 1) }

  package var rulesLock: LockPlace { LockPlace(path: file, byte: Self.firstLock - 2) }
}

extension VaultLocation {
  package init(directory: String) {
    self.init(directory: directory, file: directory + "/vault.db", keyFile: directory + "/vault.key")
  }
}
