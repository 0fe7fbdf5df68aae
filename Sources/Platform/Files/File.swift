import CredmgrText
import Glibc

package enum File {
  /// Reads a regular file, a pipe or a device to its end.
  ///
  /// - Parameters:
  ///   - ordinary: whether to read only a regular file; a named pipe would block until a process writes to it.
  ///   - patience: the time to wait for a pipe, which a process has to open within 5 seconds; `nil` to wait without
  ///     limit.
  package static func read(
    _ path: String, limit: Int, ordinary: Bool = false, patience: Duration? = nil
  ) throws(POSIXError) -> [UInt8] {
    let file = try Descriptor(opening: path, O_RDONLY | (ordinary || patience != nil ? O_NONBLOCK : 0))
    let status = try file.status(path)
    if status.isDirectory || (ordinary && !status.isRegularFile) { throw .notRegularFile(path: path) }
    if let patience, !status.isRegularFile {
      return try file.readAll(path, limit: limit, isPipe: status.isPipe, patience: patience)
    }
    if status.isRegularFile, status.size > limit { throw .tooLarge(path: path, limit: limit) }
    return try file.readAll(path, limit: limit, expecting: status.size)
  }

  /// Whether the path stands for an inherited stream, such as a shell's `<(…)`, which may be a pipe.
  package static func isGivenStream(_ path: String) -> Bool {
    path == "/dev/stdin" || ["/dev/fd/", "/proc/self/fd/"].contains { path.hasPrefix($0) }
  }

  /// Reads standard input to its end; errors have the path `-`.
  package static func readStandardInput(limit: Int) throws(POSIXError) -> [UInt8] {
    try Descriptor.standardInput().readAll("-", limit: limit)
  }

  /// The names in a directory without `.` and `..`, sorted by their bytes.
  package static func names(in path: String) throws(POSIXError) -> [String] {
    guard let directory = unsafe opendir(path) else { throw Descriptor.failure("opendir", path) }
    defer { unsafe closedir(directory) }
    var names: [String] = []
    while true {
      // readdir(3) distinguishes the end from an error only through errno, so it must be zero before the call.
      errno = 0
      guard let entry = unsafe readdir(directory) else { break }
      // The name extends beyond its declared length, so this uses the pointer to the entry instead of a copy.
      let offset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 0
      let name = unsafe String(
        cString: UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: CChar.self))
      if name != ".", name != ".." { names.append(name) }
    }
    if errno != 0 { throw Descriptor.failure("readdir", path) }
    return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  package static func isOnReadOnlyFileSystem(_ path: String) -> Bool {
    unsafe access(path, W_OK) != 0 && errno == EROFS
  }

  /// Whether the path exists, following links.
  package static func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

  package static func isReadable(_ path: String) -> Bool { unsafe access(path, R_OK) == 0 }

  package static func isWritable(_ path: String) -> Bool { unsafe access(path, W_OK) == 0 }

  package static func isExecutable(_ path: String) -> Bool {
    unsafe access(path, X_OK) == 0 && status(path)?.isRegularFile ?? false
  }

  package static func isLink(_ path: String) -> Bool {
    (try? FileStatus(path: path, following: false))?.isSymbolicLink ?? false
  }

  /// Whether the path is a directory, following links.
  package static func isDirectory(_ path: String) -> Bool { status(path)?.isDirectory ?? false }

  /// Whether this process's user owns the file, following links; `nil` if it does not exist.
  package static func isOwn(_ path: String) -> Bool? { status(path).map { $0.owner == geteuid() } }

  /// The moment of a file's last change, following links; `nil` if it does not exist.
  package static func modified(_ path: String) -> Moment? { status(path)?.modified }

  /// Sets the moment of a file's last change.
  package static func setModified(_ path: String, _ moment: Moment) throws(POSIXError) {
    let time = timespec(tv_sec: Int(moment.secondsSince1970), tv_nsec: 0)
    if unsafe utimensat(AT_FDCWD, path, [time, time], 0) != 0 { throw Descriptor.failure("utimensat", path) }
  }

  static func status(_ path: String) -> FileStatus? { try? FileStatus(path: path, following: true) }

  /// The first directory on the way to a path that this process may not pass through.
  package static func closedFolder(above path: String) -> String? {
    // Everything below a closed directory also looks closed.
    Path.ancestors(of: path).filter { unsafe access($0, X_OK) != 0 && errno == EACCES && isDirectory($0) }.last
  }

  /// The first of the path and its parent directories that the user owns and whose permissions deny access.
  package static func closedPlace(_ path: String) -> String? {
    ([path] + Path.ancestors(of: path)).first { place in
      guard let status = status(place), status.owner == geteuid() else { return false }
      let needed: UInt32 = status.isDirectory ? 0o700 : 0o600
      return status.permissions & needed != needed
    }
  }

  package static func existing(_ path: String) -> String {
    ([path] + Path.ancestors(of: path)).first(where: exists) ?? (path.hasPrefix("/") ? "/" : ".")
  }

  /// The bytes that this process can still write there, or `nil` if the system does not tell.
  package static func freeBytes(at path: String) -> UInt64? {
    var status = statvfs()
    guard unsafe statvfs(path, &status) == 0 else { return nil }
    let blocks = geteuid() == 0 ? status.f_bfree : status.f_bavail
    return UInt64(blocks) * UInt64(status.f_frsize)
  }

  /// Removes a file; returns `false` if it does not exist.
  @discardableResult package static func remove(_ path: String) throws(POSIXError) -> Bool {
    if unsafe unlink(path) == 0 { return true }
    if errno == ENOENT { return false }
    throw Descriptor.failure("unlink", path)
  }

  /// Removes a directory, unless it contains anything.
  package static func removeDirectory(_ path: String) { _ = unsafe rmdir(path) }

  /// Waits until the names in a directory are on disk.
  package static func synchronizeDirectory(_ path: String) throws(POSIXError) {
    try Descriptor(opening: path, O_RDONLY | O_DIRECTORY).synchronize(path)
  }

  /// Replaces a file that others may read as far as the umask allows. A power cut leaves the whole old or new file.
  package static func replace(_ path: String, _ bytes: [UInt8]) throws(POSIXError) {
    try DurableFile.replace(path, bytes, mode: 0o644)
  }

  /// Creates a directory that only the user may write, with its parents; an existing one is left unchanged.
  package static func createDirectory(_ path: String) throws(POSIXError) {
    if isDirectory(path) { return }
    if let parent = Path.directory(of: path) { try createDirectory(parent) }
    if unsafe mkdir(path, 0o755) != 0, errno != EEXIST { throw Descriptor.failure("mkdir", path) }
    if !isDirectory(path) { throw .notDirectory(path: path) }
  }
}
