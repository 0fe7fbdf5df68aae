import Glibc

/// An error of the operating system as data, without a message.
package enum POSIXError: Error, Equatable, Sendable {
  /// Nothing exists at the path, or a part of the path is not a directory.
  case notFound(path: String)
  /// The directory for a new file does not exist.
  case folderNotFound(path: String)
  /// A directory, a pipe or a device where a file is expected.
  case notRegularFile(path: String)
  case notDirectory(path: String)
  case symbolicLink(path: String)
  case otherOwner(path: String)
  /// Group or others may read or write the file; `mode` is its permission bits.
  case readableByOthers(path: String, mode: UInt32)
  /// Others may write to a directory on the way to a private file; `mode` is its permission bits.
  case writableByOthers(path: String, mode: UInt32)
  case tooLarge(path: String, limit: Int)
  case exists(path: String)
  case permissionDenied(path: String)
  case readOnlyFileSystem(path: String)
  case timedOut
  case keyFileMissing  // Without its name, which may be the key itself.
  case severalLines  // The user pasted several lines at a prompt for one.
  case noWriter(path: String)  // No process has opened the pipe for writing.
  /// A signal or the user interrupted the operation.
  case interrupted
  case noTerminal
  case endOfInput
  /// The reader of our output has closed it.
  case brokenPipe
  /// The file is not UTF-8.
  case notText(path: String)
  case commandNotFound(String)
  /// Any other error; `code` is the `errno` of the call.
  case system(call: String, path: String?, code: Int32)

  /// Whether the disk, the quota or the maximum length of a file was exhausted.
  package var isDiskFull: Bool {
    guard case .system(_, _, let code) = self else { return false }
    return [ENOSPC, EDQUOT, EFBIG].contains(code)
  }

  /// The same error for the directory in which a file could not be created.
  func making(in folder: String) -> POSIXError {
    switch self {
    case .notFound: .folderNotFound(path: folder)
    case .permissionDenied: .permissionDenied(path: folder)
    case .readOnlyFileSystem: .readOnlyFileSystem(path: folder)
    case .system(let call, _, let code): .system(call: call, path: folder, code: code)
    default: self
    }
  }
}

/// Runs an operation and converts its error to another module's error.
package func wrapping<Failure: Error, Wrapped: Error, Result: ~Copyable>(
  _ wrap: (Failure) -> Wrapped, _ step: @autoclosure () throws(Failure) -> Result
) throws(Wrapped) -> Result {
  do throws(Failure) { return try step() } catch { throw wrap(error) }
}
