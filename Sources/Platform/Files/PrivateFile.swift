import CPOSIX
import Glibc

/// Files that only their owner may read. What others could have read or written is refused.
package enum PrivateFile {
  package static func read(_ path: String, limit: Int) throws(POSIXError) -> [UInt8] {
    let file = try Descriptor(opening: path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    let status = try file.status(path)
    try check(status, path)
    if status.size > limit { throw .tooLarge(path: path, limit: limit) }
    return try file.readAll(path, limit: limit, expecting: status.size)
  }

  /// Checks that the path is a regular file and no link, is owned by us, and gives nothing to group and others.
  ///
  /// The file is not opened: closing it would drop every lock that this process holds on it (fcntl(2)).
  package static func check(_ path: String) throws(POSIXError) {
    guard let status = try FileStatus(path: path, following: false) else { throw .notFound(path: path) }
    if status.isSymbolicLink { throw .symbolicLink(path: path) }
    try check(status, path)
  }

  /// `nil` if other users cannot read the file, also because a folder on the way is closed to them.
  package static func modeForOthers(_ path: String) -> UInt32? {
    guard let status = File.status(path), status.isRegularFile, status.permissions & 0o044 != 0 else { return nil }
    let isClosed = Path.ancestors(of: Path.resolved(path) ?? path)
      .contains { File.status($0).map { $0.permissions & 0o011 == 0 } ?? false }
    return isClosed ? nil : status.permissions
  }

  /// Checks a folder as ``createDirectory(_:)`` does, and makes nothing.
  package static func checkDirectory(_ path: String) throws(POSIXError) {
    guard let status = try FileStatus(path: path, following: false) else { throw .notFound(path: path) }
    try checkParents(of: path)
    try checkDirectory(status, path)
  }

  /// Checks the existing folders and links on the way to a path, and on the way to where the links lead.
  package static func checkParents(of path: String) throws(POSIXError) {
    var rest = Array(path.split(separator: "/").reversed())
    var place = path.hasPrefix("/") ? "/" : "."
    var folder = try FileStatus(path: place, following: true)
    var links = 0
    while let name = rest.popLast() {
      if let folder { try checkUnchangeable(folder, place) }
      if name == "..", let parent = Path.directory(of: place) {
        // Looked at on the way down: no name in the place is a link.
        (place, folder) = (parent, nil)
        continue
      }
      let next = Path.joining(place, String(name))
      guard let status = try FileStatus(path: next, following: false) else { return }
      if status.isSymbolicLink {
        if !isTrusted(status.owner) { throw .otherOwner(path: next) }
        links += 1
        // As many as the kernel follows (path_resolution(7)).
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

  /// Checks that nobody else can change a file or put another one in its place, here or where a link leads to.
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

  /// Makes a new file of mode 0600. After a power cut there is the whole file or none.
  package static func create(_ path: String, _ bytes: [UInt8]) throws(POSIXError) {
    try DurableFile.create(path, bytes, mode: 0o600)
  }

  /// Like `create`, in the place of any file or link. After a power cut there is the whole old file or the new one.
  package static func replace(_ path: String, _ bytes: [UInt8]) throws(POSIXError) {
    try DurableFile.replace(path, bytes, mode: 0o600)
  }

  /// Makes a folder of mode 0700 with its parents, or checks the existing one.
  ///
  /// - Throws: `otherOwner` or `readableByOthers` for an existing folder that is not ours alone, `writableByOthers` and
  /// `otherOwner` for a parent in which another user could put a folder of their own in its place.
  package static func createDirectory(_ path: String) throws(POSIXError) {
    try checkParents(of: path)
    try makeParents(of: path)
    if unsafe mkdir(path, 0o700) == 0 {
      // The umask may have taken even our own rights away.
      if unsafe chmod(path, 0o700) != 0 { throw Descriptor.failure("chmod", path) }
      return
    }
    // Where a file system cannot be written, EROFS may come before EEXIST.
    let code = errno
    guard let status = try FileStatus(path: path, following: false) else {
      throw .system(call: "mkdir", path: path, code: code)
    }
    try checkDirectory(status, path)
  }

  /// Why the path is not a folder; `nil` if it is one, or nothing is there.
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
    // 65534 stands for all users that the user namespace of a container does not know, the outer root among them. In
    // the namespace that knows all (user_namespaces(7)) it is an ordinary user.
    guard owner == 65534, let map = try? File.read("/proc/self/uid_map", limit: 1 << 16) else { return false }
    return String(decoding: map, as: UTF8.self).split(whereSeparator: \.isWhitespace) != ["0", "0", "4294967295"]
  }

  /// Checks that only we and the administrator can change a file or a folder, or put another in its place.
  package static func checkUnchangeable(_ path: String) throws(POSIXError) {
    guard let status = try FileStatus(path: path, following: true) else { throw .notFound(path: path) }
    try checkUnchangeable(status, path)
  }

  private static func checkUnchangeable(_ status: FileStatus, _ path: String) throws(POSIXError) {
    if !isTrusted(status.owner) { throw .otherOwner(path: path) }
    // In a sticky folder such as /tmp nobody can replace what is another's. A group that is ours alone is usual where
    // the umask is 002.
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
      // Not every file system and kernel can. Who is killed between the two leaves the file with two names.
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

  /// Writes a file of a random name into the same folder, and waits until it is on the disk.
  ///
  /// It stays locked while the result lives, so that nobody takes it for one that a killed process left behind.
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
    // Who looks at it between the two calls removes it: then there is another one to be made.
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

  /// A name that nobody else gives to a file: 64 bits in the base 36.
  private static func temporaryName() -> String {
    let digits = String(UInt64.random(in: 0 ... .max), radix: 36)
    return ".credmgr-" + String(repeating: "0", count: 13 - digits.count) + digits + ".tmp"
  }

  private static func isTemporaryName(_ name: String) -> Bool {
    name.utf8.count == 26 && name.hasPrefix(".credmgr-") && name.hasSuffix(".tmp")
      && name.utf8.dropFirst(9).prefix(13).allSatisfy { (48...57).contains($0) || (97...122).contains($0) }
  }

  /// Removes unlocked temporary files: their writers were killed.
  private static func removeAbandoned(in folder: String) {
    guard let names = try? File.names(in: folder) else { return }
    for name in names where isTemporaryName(name) {
      let left = Path.joining(folder, name)
      guard let found = try? FileStatus(path: left, following: false), found.isRegularFile, found.owner == geteuid()
      else { continue }
      // Another name of a file that is done, which may be the vault: to close it would drop the locks of this process
      // on it (fcntl(2)).
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

  /// The new name, too, is on the disk only after this.
  private static func synchronizeDirectory(of path: String) throws(POSIXError) {
    try File.synchronizeDirectory(Path.directory(of: path) ?? ".")
  }
}
