import CredmgrCryptography
import CredmgrPlatform
import CredmgrSQLite
import CredmgrStore

package typealias VaultError = StoreError

extension VaultError {
  /// - Parameter isTruncated: called if SQLite reports a damaged file.
  init(_ error: SQLiteError, path: String, isTruncated: @autoclosure () -> Bool = false) {
    self =
      switch error.condition {
      case .busy: .busy(path: path)
      case .full: .full(path: path)
      case .readOnly, .cannotOpen:
        File.isOnReadOnlyFileSystem(path) ? .file(.readOnlyFileSystem(path: path)) : .readOnly(path: path)
      case .notADatabase: .notAVault(path: path)
      case .corrupt: isTruncated() ? .truncated(path: path) : .damaged(path: path, .structure)
      case .inputOutput: .inputOutput(path: path, code: error.extendedCode)
      case .outOfMemory: .outOfMemory
      case .other: .damaged(path: path, .schema)
      }
  }

  init(_ error: POSIXError, at location: VaultLocation) {
    self = error.isDiskFull ? .full(path: location.file) : .file(error)
  }
}

func converting<Result>(path: String, _ body: () throws(SQLiteError) -> Result) throws(VaultError) -> Result {
  do throws(SQLiteError) { return try body() } catch { throw VaultError(error, path: path) }
}

/// Runs a step whose only possible failure is missing memory, because this module chooses lengths and costs.
func converting<Result>(_ step: @autoclosure () throws(CryptographyError) -> Result) throws(VaultError) -> Result {
  do throws(CryptographyError) { return try step() } catch { throw .outOfMemory }
}
