import Glibc
import CredmgrPlatform
import CredmgrText

extension POSIXError {
  package var message: Message {
    switch self {
    case .notFound(let path) where !path.contains { "/.".contains($0) } && mayBeKey(path):
      .usage("the file does not exist")
    case .notFound(let path): .usage("file \(quoted(path)) not found")
    case .folderNotFound(let path): .usage("directory \(quoted(path)) not found").hint("\(run: "mkdir", "-p", path)")
    case .notRegularFile(let path): .usage("\(Self.name(path)) is not a regular file").hint(.mending(self, at: path))
    case .notDirectory(let path): .usage("\(quoted(path)) is not a directory").hint(.mending(self, at: path))
    case .symbolicLink(let path):
      .usage("cannot use \(quoted(path)): it is a symbolic link").hint(.mending(self, at: path))
    case .otherOwner(let path): .usage("\(quoted(path)) belongs to another user").hint(.mending(self, at: path))
    case .readableByOthers(let path, let mode):
      .usage("other users can read \(quoted(path)) (mode \(Self.octal(mode)))").hint(.mending(self, at: path))
    case .writableByOthers(let path, let mode):
      .usage("other users can change \(quoted(path)) (mode \(Self.octal(mode)))").hint(.mending(self, at: path))
    case .tooLarge(let path, let limit): .usage("\(Self.name(path)) is larger than \(limit) bytes")
    case .exists(let path): .usage("file \(quoted(path)) already exists")
    case .permissionDenied(let path):
      .usage("cannot use \(quoted(path)): permission denied").hint(.mending(self, at: path))
    case .readOnlyFileSystem(let path):
      .usage("cannot write \(quoted(path)): the file system is read-only").hint(.mending(self, at: path))
    case .timedOut: .unexpected("timed out")
    case .keyFileMissing: .usage("the key file does not exist").hint("name the file that contains the key")
    case .severalLines: .usage("the pasted text has several lines").hint("copy it again, without line ends")
    case .noWriter(let path): .usage("cannot read \(quoted(path)): no program writes to this pipe")
    case .interrupted: Message("interrupted", status: .interrupted)
    case .noTerminal: .usage("cannot prompt: no terminal")
    case .endOfInput: .usage("unexpected end of input")
    case .brokenPipe: .unexpected("cannot write the output: the reading program ended")
    case .notText(let path): .usage("\(quoted(path)) is not UTF-8")
    case .commandNotFound(let command): .usage("command \(quoted(command)) not found")
    case .system(_, .some(let path), ENOSPC):
      .unexpected("cannot write \(quoted(path)): the disk is full").hint(.mending(self, at: path))
    case .system(_, .some(let path), EDQUOT):
      .unexpected("cannot write \(quoted(path)): the disk quota is used up").hint(.mending(self, at: path))
    case .system("mkdir", .some(let path), let code):
      .usage("cannot create directory \(quoted(path)): \(systemWords(code))")
        .hint(code == EACCES ? .mending(self, at: path) : .anotherHome)
    case .system("write", nil, let code): .unexpected("cannot write standard output: \(systemWords(code))")
    case .system(let call, let path, let code):
      .unexpected(
        "system call \(call) failed" + (path.map { " for \(quoted($0))" } ?? "") + ": \(systemWords(code))")
    }
  }

  /// The name of a file that the user gave as an argument.
  private static func name(_ path: String) -> String { path == "-" ? "standard input" : quoted(path) }

  private static func octal(_ mode: UInt32) -> String { String(mode & 0o7777, radix: 8) }
}

extension Remedy {
  /// A home that every user can create, and that survives a restart (hier(7)).
  package static let anotherHome: Remedy =
    "\(shell: "export CREDMGR_HOME=/var/tmp/credmgr-$(id -u)") to use another directory"

  package static func makingRoom(in place: String) -> Remedy {
    "free some space and run the command again; \(command: "df", "-h", place) shows how much is left"
  }

  package static func settingAside(_ path: String) -> Remedy { "\(run: "mv", path, path + ".old")" }
}

/// Returns words for Linux's most common error numbers (errno(3)).
package func systemWords(_ code: Int32) -> String {
  let words = [
    EPERM: "operation not permitted", ENOENT: "no such file or directory", EIO: "input/output error",
    EBADF: "it is closed", ENOMEM: "out of memory", EACCES: "permission denied",
    EEXIST: "the name already exists", ENOTDIR: "a part of the path is not a directory",
    EISDIR: "it is a directory", ENFILE: "too many open files", EMFILE: "too many open files",
    EFBIG: "the file is too large", ENOSPC: "no space left on the disk", EROFS: "the file system is read-only",
    ENAMETOOLONG: "the name is too long", ELOOP: "too many symbolic links", EDQUOT: "the disk quota is exceeded",
  ]
  return words[code] ?? "error \(code)"
}
