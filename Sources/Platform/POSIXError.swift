import Glibc

/// What the operating system refused, as data; the sentences are made elsewhere.
package enum POSIXError: Error, Equatable, Sendable {
  /// There is no such file or folder, or a part of the path is no folder.
  case notFound(path: String)
  /// There is no folder in which a file could be made.
  case folderNotFound(path: String)
  /// A folder, a pipe or a device stands where a file is expected.
  case notRegularFile(path: String)
  /// Something else stands where a folder is expected.
  case notDirectory(path: String)
  /// A symbolic link stands where the file itself is expected.
  case symbolicLink(path: String)
  /// The file belongs to another user.
  case otherOwner(path: String)
  /// Group or others may read or write the file; `mode` is its permission bits.
  case readableByOthers(path: String, mode: UInt32)
  /// Others may write to a folder on the way to a private file; `mode` is its permission bits.
  case writableByOthers(path: String, mode: UInt32)
  /// The file or the input is longer than `limit` bytes.
  case tooLarge(path: String, limit: Int)
  /// There is such a file already.
  case exists(path: String)
  /// No rights to the file or folder.
  case permissionDenied(path: String)
  /// The file system can only be read.
  case readOnlyFileSystem(path: String)
  /// The time limit passed.
  case timedOut
  /// A signal or the person ended the wait.
  case interrupted
  /// There is no terminal to ask at.
  case noTerminal
  /// The input ended before there was an answer.
  case endOfInput
  /// Whoever read our output has closed it.
  case brokenPipe
  /// The text is not UTF-8.
  case notText(path: String)
  /// No executable of this name along `PATH`.
  case commandNotFound(String)
  /// Another failure; `code` is the `errno` of the call.
  case system(call: String, path: String?, code: Int32)

  /// Whether there was no room: on the disk, in the quota, or within the greatest length of a file.
  package var isDiskFull: Bool {
    guard case .system(_, _, let code) = self else { return false }
    return [ENOSPC, EDQUOT, EFBIG].contains(code)
  }

  /// The same about the folder in which a file could not be made: nobody knows the file, and it is not there.
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
