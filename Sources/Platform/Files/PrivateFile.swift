import CredmgrCPOSIX
import Glibc

/// Files that only their owner may read. Files that other users could have read or written are rejected.
package enum PrivateFile {
  package static func read(_ path: String, limit: Int) throws(POSIXError) -> [UInt8] {
    let file = try Descriptor(opening: path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    let status = try file.status(path)
    try check(status, path)
    if status.size > limit { throw .tooLarge(path: path, limit: limit) }
    return try file.readAll(path, limit: limit, expecting: status.size)
  }

  /// Checks that the path is a regular file, not a link, that we own it, and that group and others have no rights.
  ///
  /// This does not open the file, because closing it would drop this process's locks on it (fcntl(2)).
  package static func check(_ path: String) throws(POSIXError) {
    guard let status = try FileStatus(path: path, following: false) else { throw .notFound(path: path) }
    if status.isSymbolicLink { throw .symbolicLink(path: path) }
    try check(status, path)
  }

  /// The permissions of a file that others can read, or `nil` if the file or a parent directory keeps them out.
  package static func modeForOthers(_ path: String) -> UInt32? {
    guard let status = File.status(path), status.isRegularFile, status.permissions & 0o044 != 0 else { return nil }
    let isClosed = Path.ancestors(of: Path.resolved(path) ?? path)
      .contains { File.status($0).map { $0.permissions & 0o011 == 0 } ?? false }
    return isClosed ? nil : status.permissions
  }

  /// Checks a directory like ``createDirectory(_:)``, but creates nothing.
  package static func checkDirectory(_ path: String) throws(POSIXError) {
    guard let status = try FileStatus(path: path, following: false) else { throw .notFound(path: path) }
    try checkParents(of: path)
    try checkDirectory(status, path)
  }

  /// Checks all existing directories and links on the way to a path and to the links' targets.
  package static func checkParents(of path: String) throws(POSIXError) {
    var rest = Array(path.split(separator: "/").reversed())
    var place = path.hasPrefix("/") ? "/" : "."
    var folder = try FileStatus(path: place, following: true)
    var links = 0
    while let name = rest.popLast() {
      if let folder { try checkUnchangeable(folder, place) }
      if name == "..", let parent = Path.directory(of: place) {
        // This was checked on the way down: no name in this path is a link.
        (place, folder) = (parent, nil)
        continue
      }
      let next = Path.joining(place, String(name))
      guard let status = try FileStatus(path: next, following: false) else { return }
      if status.isSymbolicLink {
        if !isTrusted(status.owner) { throw .otherOwner(path: next) }
        links += 1
        // The kernel follows the same number of links (path_resolution(7)).
        if links > 40 { throw .system(call: "stat", path: path, code: ELOOP) }
        let target = try Path.target(ofLink: next)
        if target.hasPrefix("/") { (place, folder) = ("/", nil) }
        rest += target.split(separator: "/").reversed()
      } else if status.isDirectory || rest.isEmpty {
        (place, folder) = (next, status)
      } else {
        throw .notDirectory(path: next)
      }
    }
  }

  private static func checkDirectory(_ status: FileStatus, _ path: String) throws(POSIXError) {
    if status.isSymbolicLink { throw .symbolicLink(path: path) }
    if !status.isDirectory { throw .notDirectory(path: path) }
    try checkOwner(status, path)
  }

  /// Checks that no other user can change or replace a file, here or at a link's target.
  package static func checkOurs(_ path: String) throws(POSIXError) {
    try checkUnchangeable(path)
    try checkParents(of: path)
  }

  static func check(_ status: FileStatus, _ path: String) throws(POSIXError) {
    if !status.isRegularFile { throw .notRegularFile(path: path) }
    try checkOwner(status, path)
  }

  private static func checkOwner(_ status: FileStatus, _ path: String) throws(POSIXError) {
    if status.owner != geteuid() { throw .otherOwner(path: path) }
    if status.permissions & 0o077 != 0 { throw .readableByOthers(path: path, mode: status.permissions) }
  }

  /// Checks that no other user may read a file or the target of a link. Its owner may be another user, as that of a
  /// file that a service manager provides is.
  package static func checkUnreadable(_ path: String) throws(POSIXError) {
    let status = try Descriptor(opening: path, O_RDONLY | O_NONBLOCK).status(path)
    if status.isRegularFile, status.permissions & 0o077 != 0 {
      throw .readableByOthers(path: path, mode: status.permissions)
    }
  }

  /// Creates a new file with mode 0600. A power cut leaves the whole file or none.
  package static func create(_ path: String, _ bytes: [UInt8]) throws(POSIXError) {
    try DurableFile.create(path, bytes, mode: 0o600)
  }

  /// Replaces any file or link, otherwise like `create`. A power cut leaves the whole old or new file.
  package static func replace(_ path: String, _ bytes: [UInt8]) throws(POSIXError) {
    try DurableFile.replace(path, bytes, mode: 0o600)
  }

  /// Creates a directory with mode 0700 and its parents, or checks the existing one.
  ///
  /// - Throws: `otherOwner` or `readableByOthers` if others may use an existing directory; `writableByOthers` or
  ///   `otherOwner` if another user could replace it through a parent directory.
  package static func createDirectory(_ path: String) throws(POSIXError) {
    try checkParents(of: path)
    try makeParents(of: path)
    if unsafe mkdir(path, 0o700) == 0 {
      // The umask may have removed even the owner's rights.
      if unsafe chmod(path, 0o700) != 0 { throw Descriptor.failure("chmod", path) }
      return
    }
    // A read-only file system may report EROFS instead of EEXIST.
    let code = errno
    guard let status = try FileStatus(path: path, following: false) else {
      throw .system(call: "mkdir", path: path, code: code)
    }
    try checkDirectory(status, path)
  }

  /// The reason why the path is not a directory, or `nil` if it is one or does not exist.
  package static func inPlaceOfDirectory(_ path: String) -> POSIXError? {
    guard let status = try? FileStatus(path: path, following: false), !status.isDirectory else { return nil }
    return status.isSymbolicLink ? .symbolicLink(path: path) : .notDirectory(path: path)
  }

  private static func makeParents(of path: String) throws(POSIXError) {
    guard let parent = Path.directory(of: path), parent != path else { return }
    try makeParents(of: parent)
    if unsafe mkdir(parent, 0o700) == 0 { return }
    let code = errno
    guard let status = try FileStatus(path: parent, following: true) else {
      throw .system(call: "mkdir", path: parent, code: code)
    }
    if !status.isDirectory { throw .notDirectory(path: parent) }
  }

  private static func isTrusted(_ owner: UInt32) -> Bool {
    if [geteuid(), 0].contains(owner) { return true }
    // 65534 stands for all users unknown to a container's user namespace, including the outer root. In the namespace
    // that knows all users it is an ordinary user (user_namespaces(7)).
    guard owner == 65534, let map = try? File.read("/proc/self/uid_map", limit: 1 << 16) else { return false }
    return String(decoding: map, as: UTF8.self).split(whereSeparator: \.isWhitespace) != ["0", "0", "4294967295"]
  }

  /// Checks that only we and the administrator can change or replace a file or a directory.
  package static func checkUnchangeable(_ path: String) throws(POSIXError) {
    guard let status = try FileStatus(path: path, following: true) else { throw .notFound(path: path) }
    try checkUnchangeable(status, path)
  }

  private static func checkUnchangeable(_ status: FileStatus, _ path: String) throws(POSIXError) {
    if !isTrusted(status.owner) { throw .otherOwner(path: path) }
    // In a sticky directory such as /tmp users cannot replace each other's files. A group with only this user is usual
    // where the umask is 002.
    let forbidden: UInt32 = status.group == getegid() ? 0o002 : 0o022
    if status.permissions & forbidden != 0, status.permissions & S_ISVTX == 0 {
      throw .writableByOthers(path: path, mode: status.permissions)
    }
  }
}

private struct TemporaryFile: ~Copyable {
  let path: String
  let file: Descriptor
}

enum DurableFile {
  static func create(_ path: String, _ bytes: [UInt8], mode: UInt32) throws(POSIXError) {
    let temporary = try write(besides: path, bytes, mode: mode)
    var code = unsafe credmgr_rename_new(temporary.path, path) == 0 ? 0 : errno
    if [EINVAL, ENOSYS, ENOTSUP].contains(code) {
      // Some file systems and kernels lack this. A process killed between the two calls leaves the file with two names.
      code = unsafe link(temporary.path, path) == 0 ? 0 : errno
    }
    unsafe unlink(temporary.path)
    if code == EEXIST { throw .exists(path: path) }
    if code != 0 { throw .system(call: "rename", path: path, code: code) }
    try synchronizeDirectory(of: path)
  }

  static func replace(_ path: String, _ bytes: [UInt8], mode: UInt32) throws(POSIXError) {
    let temporary = try write(besides: path, bytes, mode: mode)
    if unsafe rename(temporary.path, path) != 0 {
      let error = Descriptor.failure("rename", path)
      unsafe unlink(temporary.path)
      throw error
    }
    try synchronizeDirectory(of: path)
  }

  /// Writes a file with a random name into the same directory and waits until it is on disk.
  ///
  /// The file stays locked while the result exists, so that other processes do not take it for an abandoned one.
  private static func write(besides path: String, _ bytes: [UInt8], mode: UInt32) throws(POSIXError) -> TemporaryFile {
    let folder = Path.directory(of: path) ?? "."
    removeAbandoned(in: folder)
    let temporary = Path.joining(folder, temporaryName())
    let file: Descriptor
    do throws(POSIXError) {
      file = try Descriptor(opening: temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: mode)
    } catch {
      throw error.making(in: folder)
    }
    // A process that checks the file between the two calls removes it; then this makes another attempt.
    flock(file.number, LOCK_EX)
    if try file.status(temporary).links == 0 { return try write(besides: path, bytes, mode: mode) }
    do throws(POSIXError) {
      // A umask of 0277 would leave a file that its owner cannot read.
      if mode == 0o600, fchmod(file.number, mode) != 0 { throw Descriptor.failure("fchmod", temporary) }
      try file.writeAll(bytes, temporary)
      try file.synchronize(temporary)
    } catch {
      unsafe unlink(temporary)
      throw error.making(in: folder)
    }
    return TemporaryFile(path: temporary, file: file)
  }

  /// A unique file name: 64 random bits in base 36.
  private static func temporaryName() -> String {
    let digits = String(UInt64.random(in: 0 ... .max), radix: 36)
    return ".credmgr-" + String(repeating: "0", count: 13 - digits.count) + digits + ".tmp"
  }

  private static func isTemporaryName(_ name: String) -> Bool {
    name.utf8.count == 26 && name.hasPrefix(".credmgr-") && name.hasSuffix(".tmp")
      && name.utf8.dropFirst(9).prefix(13).allSatisfy { (48...57).contains($0) || (97...122).contains($0) }
  }

  /// Removes unlocked temporary files, whose writers were killed.
  private static func removeAbandoned(in folder: String) {
    guard let names = try? File.names(in: folder) else { return }
    for name in names where isTemporaryName(name) {
      let left = Path.joining(folder, name)
      guard let found = try? FileStatus(path: left, following: false), found.isRegularFile, found.owner == geteuid()
      else { continue }
      // This is another name of a finished file, possibly the vault: closing it would drop this process's locks on it
      // (fcntl(2)).
      if found.links > 1 {
        unsafe unlink(left)
        continue
      }
      guard let file = try? Descriptor(opening: left, O_RDONLY | O_NOFOLLOW | O_NONBLOCK),
        flock(file.number, LOCK_EX | LOCK_NB) == 0
      else { continue }
      unsafe unlink(left)
    }
  }

  /// Waits until the new name is on disk as well.
  private static func synchronizeDirectory(of path: String) throws(POSIXError) {
    try File.synchronizeDirectory(Path.directory(of: path) ?? ".")
  }
}
