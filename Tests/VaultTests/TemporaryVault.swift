import CredmgrCryptography
import Glibc
import CredmgrPlatform
import CredmgrSQLite
import CredmgrStore
import Testing

@testable import CredmgrVault

/// A vault in its own directory, which is removed with the value.
final class TemporaryVault {
  let location: VaultLocation

  init() throws {
    let path = "/tmp/credmgr-vault-" + Hexadecimal.encode(SystemRandomSource().bytes(8))
    try #require(unsafe mkdir(path, 0o700) == 0)
    location = VaultLocation(directory: path)
  }

  deinit {
    let directory = location.directory
    for name in (try? File.names(in: directory)) ?? [] {
      unsafe unlink(directory + "/" + name)
      unsafe rmdir(directory + "/" + name)
    }
    unsafe rmdir(directory)
  }

  func open(
    _ access: StoreAccess = .readWrite, busyTimeout: Duration = .seconds(20), holders: [KeyHolder] = [.keyFile]
  ) throws(VaultError) -> Vault {
    try location.open(access, busyTimeout: busyTimeout, holders: holders)
  }

  /// Runs SQL on the file, like an attacker without a key.
  func tamper(_ sql: String) throws { try Connection(path: location.file, .readWrite, busyTimeout: .zero).execute(sql) }

  /// Extends the file without closing it, which would drop this process's locks on it.
  func append(_ bytes: [UInt8]) throws {
    let descriptor = unsafe Glibc.open(location.file, O_WRONLY | O_APPEND)
    try #require(unsafe Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
  }

  static func read(_ path: String) -> [UInt8] { (try? File.read(path, limit: 1 << 30)) ?? [] }

  static func write(_ path: String, _ bytes: [UInt8], mode: mode_t = 0o600) {
    unsafe unlink(path)
    let descriptor = unsafe Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode)
    _ = unsafe Glibc.write(descriptor, bytes, bytes.count)
    fchmod(descriptor, mode)
    close(descriptor)
  }
}

extension VaultLocation {
  func open(
    _ access: StoreAccess = .readWrite, busyTimeout: Duration = .seconds(20), holders: [KeyHolder] = [.keyFile]
  ) throws(VaultError) -> Vault {
    try Vault.open(
      self, access, random: SystemRandomSource(), now: 1_700_000_000, busyTimeout: busyTimeout, holders: holders)
  }

  /// Opens a vault in memory with this vault's key file.
  func backup(
    _ image: [UInt8], keyFile: String? = nil, _ holders: [KeyHolder] = [.keyFile]
  ) throws(VaultError) -> Vault {
    try Vault.open(
      image: image, path: "/backup", keyFiles: [keyFile ?? self.keyFile], random: SystemRandomSource(), holders: holders
    )
  }
}

/// Runs the bodies concurrently; they stand for processes.
func concurrently(_ bodies: [@Sendable () throws -> Void]) async throws {
  try await withThrowingTaskGroup(of: Void.self) { group in
    for body in bodies { group.addTask { try body() } }
    try await group.waitForAll()
  }
}

extension Vault {
  @discardableResult func store(
    _ payload: Secret, as identifier: RecordIdentifier, if precondition: Precondition = .any
  ) throws(VaultError) -> Int64 { try apply([.store(payload, as: identifier, if: precondition)]) }

  func remove(_ identifier: RecordIdentifier, if precondition: Precondition = .any) throws(VaultError) {
    try apply([.remove(identifier, if: precondition)])
  }
}

extension RecordIdentifier {
  static func credential(_ provider: String, _ account: String) -> RecordIdentifier {
    RecordIdentifier(kind: .credential, provider: provider, account: account)
  }
}
