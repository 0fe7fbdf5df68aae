import CredmgrPlatform
import CredmgrStore

package struct VaultLocation: Sendable, Equatable {
  package let directory: String
  package let file: String
  package let keyFile: String

  /// The key file that replaces the other one when its slot is committed.
  var nextKeyFile: String { keyFile + ".new" }

  /// Copies the key file, so that backups made before a rotation still open.
  ///
  /// - Returns: `nil` if the key file does not exist.
  package func keepKeyFile() throws(StoreError) -> String? {
    do throws(POSIXError) {
      let bytes = try PrivateFile.read(keyFile, limit: 4096)
      let path = keptKeyFile((keptNumbers.max() ?? 0) + 1)
      try PrivateFile.create(path, bytes)
      return path
    } catch .notFound {
      return nil
    } catch {
      throw .file(error)
    }
  }

  /// The copies that rotations made, newest first.
  package var keptKeyFiles: [String] { keptNumbers.sorted(by: >).map(keptKeyFile) }

  /// The user may have deleted some of the copies.
  private var keptNumbers: [Int] {
    let names = (try? File.names(in: directory)) ?? []
    return names.compactMap { name in
      let path = directory + "/" + name
      guard path.hasPrefix(keyFile + "."), let number = Int(path.dropFirst(keyFile.count + 1)), number > 0 else {
        return nil
      }
      return keptKeyFile(number) == path ? number : nil
    }
  }

  private func keptKeyFile(_ number: Int) -> String { "\(keyFile).\(number)" }

  /// Syncs a change whose journal was removed without certainty that the removal is on disk.
  func confirm() throws(VaultError) {
    try wrapping({ (_: POSIXError) in VaultError.unconfirmed(path: file) }, File.synchronizeDirectory(directory))
  }

  /// A byte far beyond the file and SQLite's own locks in it (2^30 and the 511 bytes after it).
  private static let firstLock: Int64 = 1 << 62

  /// The lock for a ``Vault/hiddenName(of:)``.
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
