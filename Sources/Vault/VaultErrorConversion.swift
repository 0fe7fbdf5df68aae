import Cryptography
import Platform
import SQLite
import Store

/// The error of this store.
package typealias VaultError = StoreError

extension VaultError {
  init(_ error: CryptographyError) {
    // Lengths and costs are this module's own: what is left is memory.
    self = .outOfMemory
  }

  init(_ error: SQLiteError, _ location: VaultLocation, _ connection: Connection?) {
    let path = location.file
    self =
      switch error.condition {
      case .busy: .busy(path: path)
      case .full: .full(path: path)
      case .readOnly, .needsRecovery, .cannotOpen:
        File.isOnReadOnlyFileSystem(path) ? .file(.readOnlyFileSystem(path: path)) : .readOnly(path: path)
      case .notADatabase: .notAVault(path: path)
      case .corrupt where (try? connection.map { try Vault.excess($0, location) }) ?? 0 < 0: .truncated(path: path)
      case .corrupt: .damaged(path: path, .structure)
      case .inputOutput: .inputOutput(path: path, code: error.extendedCode)
      case .outOfMemory: .outOfMemory
      case .other: .damaged(path: path, .schema)
      }
  }
}

/// Runs a body and makes this module's error out of the other module's.
func converting<Result>(
  _ location: VaultLocation, _ connection: Connection? = nil,
  _ body: () throws(SQLiteError) -> Result
) throws(VaultError) -> Result {
  do throws(SQLiteError) {
    return try body()
  } catch {
    throw VaultError(error, location, connection)
  }
}

func converting<Result>(_ body: () throws(CryptographyError) -> Result) throws(VaultError) -> Result {
  do throws(CryptographyError) {
    return try body()
  } catch {
    throw VaultError(error)
  }
}

func converting<Result>(_ body: () throws(POSIXError) -> Result) throws(VaultError) -> Result {
  do throws(POSIXError) {
    return try body()
  } catch {
    throw .file(error)
  }
}
