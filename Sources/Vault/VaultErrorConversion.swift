import CredmgrCryptography
import CredmgrPlatform
import CredmgrSQLite
import CredmgrStore
import Glibc

package typealias VaultError = StoreError

extension VaultError {
  /// - Parameter isTruncated: called if SQLite reports a damaged file.
  init(_ error: SQLiteError, path: String, isTruncated: @autoclosure () -> Bool = false) {
    self =
      switch error.condition {
      case .busy: .busy(path: path)
      case .full: .full(path: path)
      case .readOnly, .cannotOpen:
        if File.isOnReadOnlyFileSystem(path) {
          .file(.readOnlyFileSystem(path: path))
        } else if Self.mayWrite(path) {
          // If SQLite cannot open a file for writing, it opens the file for reading, whatever the reason, and loses
          // `errno`.
          .file(.system(call: "open", path: path, code: EMFILE))
        } else {
          .readOnly(path: path)
        }
      case .notADatabase: .notAVault(path: path)
      case .corrupt: isTruncated() ? .truncated(path: path) : .damaged(path: path, .structure)
      case .inputOutput: .inputOutput(path: path, code: error.extendedCode)
      case .outOfMemory: .outOfMemory
      case .other: .damaged(path: path, .schema)
      }
  }

  /// Whether this process has the permissions to write the database and its journal.
  private static func mayWrite(_ path: String) -> Bool {
    let journal = path + "-journal"
    return File.isWritable(path) && File.isWritable(Path.directory(of: path) ?? ".")
      && (!File.exists(journal) || File.isWritable(journal))
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
