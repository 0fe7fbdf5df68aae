import Glibc
import Platform
import Text

extension POSIXError {
  package var message: Message {
    switch self {
    case .notFound(let path): .usage("there is no file \(quoted(path))")
    case .folderNotFound(let path): .usage("there is no folder \(quoted(path))").hint("\(run: "mkdir", "-p", path)")
    case .notRegularFile(let path): .usage("\(quoted(path)) is not an ordinary file").hint(.mending(self, at: path))
    case .notDirectory(let path): .usage("\(quoted(path)) is not a folder").hint(.mending(self, at: path))
    case .symbolicLink(let path):
      .usage("\(quoted(path)) is a symbolic link, which is not followed here").hint(.mending(self, at: path))
    case .otherOwner(let path): .usage("\(quoted(path)) belongs to another user").hint(.mending(self, at: path))
    case .readableByOthers(let path, let mode):
      .usage("\(quoted(path)) is open to other users (mode \(Self.octal(mode)))").hint(.mending(self, at: path))
    case .writableByOthers(let path, let mode):
      .usage("\(quoted(path)) can be written by other users (mode \(Self.octal(mode)))").hint(.mending(self, at: path))
    case .tooLarge(let path, let limit): .usage("\(quoted(path)) is longer than \(limit) bytes")
    case .exists(let path): .usage("there is a file \(quoted(path)) already")
    case .permissionDenied(let path):
      .usage("\(quoted(path)) cannot be used: permission denied").hint(.mending(self, at: path))
    case .readOnlyFileSystem(let path):
      .usage("\(quoted(path)) cannot be written: the file system is read-only").hint(.mending(self, at: path))
    case .timedOut: .unexpected("it took too long")
    case .interrupted: Message("interrupted", status: .interrupted)
    case .noTerminal: .usage("there is no terminal to ask at")
    case .endOfInput: .usage("the input ended")
    case .brokenPipe: .unexpected("the reader of the output is gone")
    case .notText(let path): .usage("\(quoted(path)) is not UTF-8")
    case .commandNotFound(let command): .usage("there is no command \(quoted(command))")
    case .system(_, .some(let path), ENOSPC):
      .unexpected("the disk of \(quoted(path)) is full").hint(.mending(self, at: path))
    case .system(_, .some(let path), EDQUOT):
      .unexpected("the disk quota for \(quoted(path)) is used up").hint(.mending(self, at: path))
    case .system("mkdir", .some(let path), let code):
      .usage("the folder \(quoted(path)) cannot be made: \(systemWords(code))")
        .hint(code == EACCES ? .mending(self, at: path) : .anotherHome)
    case .system("write", nil, let code): .unexpected("standard output cannot be written: \(systemWords(code))")
    case .system(let call, let path, let code):
      .unexpected(
        "the system call \(call) failed" + (path.map { " for \(quoted($0))" } ?? "") + ": \(systemWords(code))")
    }
  }

  private static func octal(_ mode: UInt32) -> String { String(mode & 0o7777, radix: 8) }
}

extension Remedy {
  /// A home that everybody can make, and that stays when the machine starts anew (hier(7)).
  static let anotherHome: Remedy =
    "\(shell: "export CREDMGR_HOME=/var/tmp/credmgr-$(id -u)"), or set it to another folder in which you can write"

  static func makingRoom(in folder: String) -> Remedy {
    "make room there, and run the command again; \(command: "df", "-h", folder) shows how much there is"
  }

  static func settingAside(_ path: String) -> Remedy { "\(run: "mv", path, path + ".old")" }
}

/// What the commonest error numbers of Linux mean (errno(3)).
func systemWords(_ code: Int32) -> String {
  let words = [
    EPERM: "operation not permitted", ENOENT: "no such file or folder", EIO: "input/output error",
    EBADF: "it is closed", ENOMEM: "out of memory", EACCES: "permission denied",
    EEXIST: "there is something of that name", ENOTDIR: "a part of the path is not a folder",
    EISDIR: "it is a folder", ENFILE: "too many open files", EMFILE: "too many open files",
    EFBIG: "the file is too large", ENOSPC: "no space left on the disk", EROFS: "the file system is read-only",
    ENAMETOOLONG: "the name is too long", ELOOP: "too many symbolic links", EDQUOT: "the disk quota is exceeded",
  ]
  return words[code] ?? "error \(code)"
}
