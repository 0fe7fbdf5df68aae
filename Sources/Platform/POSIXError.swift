import Glibc

/// What the operating system refused, as data; the sentences are made elsewhere.
package enum POSIXError: Error, Equatable, Sendable {
  /// Or a part of the path is not a folder.
  case notFound(path: String)
  /// There is no folder in which a file could be made.
  case folderNotFound(path: String)
  /// A folder, a pipe or a device where a file is expected.
  case notRegularFile(path: String)
  case notDirectory(path: String)
  case symbolicLink(path: String)
  case otherOwner(path: String)
  /// Group or others may read or write the file; `mode` is its permission bits.
  case readableByOthers(path: String, mode: UInt32)
  /// Others may write to a folder on the way to a private file; `mode` is its permission bits.
  case writableByOthers(path: String, mode: UInt32)
  case tooLarge(path: String, limit: Int)
  case exists(path: String)
  case permissionDenied(path: String)
  case readOnlyFileSystem(path: String)
  case timedOut
  /// By a signal or the person.
  case interrupted
  case noTerminal
  case endOfInput
  /// The reader of our output has closed it.
  case brokenPipe
  /// It is not UTF-8.
  case notText(path: String)
  case commandNotFound(String)
  /// `code` is the `errno` of the call.
  case system(call: String, path: String?, code: Int32)

  /// Whether there was no room on the disk, in the quota, or within the greatest length of a file.
  package var isDiskFull: Bool {
    guard case .system(_, _, let code) = self else { return false }
    return [ENOSPC, EDQUOT, EFBIG].contains(code)
  }

  /// The same about the folder in which a file could not be made.
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

/// An error of one module as that of another.
package func wrapping<Failure: Error, Wrapped: Error, Result: ~Copyable>(
  _ wrap: (Failure) -> Wrapped, _ step: @autoclosure () throws(Failure) -> Result
) throws(Wrapped) -> Result {
  do throws(Failure) { return try step() } catch { throw wrap(error) }
}
