import Glibc

package enum File {
  /// Reads a regular file, a pipe or a device to its end.
  ///
  /// - Parameters:
  ///   - ordinary: whether only a regular file is read: a named pipe would be waited for until somebody writes.
  ///   - patience: for how long a pipe is waited for; `nil` for ever.
  package static func read(
    _ path: String, limit: Int, ordinary: Bool = false, patience: Duration? = nil
  ) throws(POSIXError) -> [UInt8] {
    let file = try Descriptor(opening: path, O_RDONLY | (ordinary || patience != nil ? O_NONBLOCK : 0))
    let status = try file.status(path)
    if status.isDirectory || (ordinary && !status.isRegularFile) { throw .notRegularFile(path: path) }
    if let patience, !status.isRegularFile { return try file.readAll(path, limit: limit, patience: patience) }
    if status.isRegularFile, status.size > limit { throw .tooLarge(path: path, limit: limit) }
    return try file.readAll(path, limit: limit, expecting: status.size)
  }

  /// Whether a path stands for a stream that was opened for us, such as a shell's `<(…)`: it may be a pipe.
  package static func isGivenStream(_ path: String) -> Bool {
    path == "/dev/stdin" || ["/dev/fd/", "/proc/self/fd/"].contains { path.hasPrefix($0) }
  }

  /// A failure has the path `-`.
  package static func readStandardInput(limit: Int) throws(POSIXError) -> [UInt8] {
    try Descriptor.standardInput().readAll("-", limit: limit)
  }

  /// The names in a folder, without `.` and `..`, sorted by their bytes.
  package static func names(in path: String) throws(POSIXError) -> [String] {
    guard let directory = unsafe opendir(path) else { throw Descriptor.failure("opendir", path) }
    defer { unsafe closedir(directory) }
    var names: [String] = []
    while true {
      // readdir(3): the end and an error differ in errno alone, so it is to be zero before.
      errno = 0
      guard let entry = unsafe readdir(directory) else { break }
      // The name reaches beyond its declared length, so the field is not copied, and the pointer is to the entry
      // itself.
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

  /// Links are followed.
  package static func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

  package static func isReadable(_ path: String) -> Bool { unsafe access(path, R_OK) == 0 }

  package static func isWritable(_ path: String) -> Bool { unsafe access(path, W_OK) == 0 }

  package static func isExecutable(_ path: String) -> Bool {
    unsafe access(path, X_OK) == 0 && status(path)?.isRegularFile ?? false
  }

  package static func isLink(_ path: String) -> Bool {
    (try? FileStatus(path: path, following: false))?.isSymbolicLink ?? false
  }

  /// Links are followed.
  package static func isDirectory(_ path: String) -> Bool { status(path)?.isDirectory ?? false }

  /// Whether the file is of this process's user; `nil` if there is none. Links are followed.
  package static func isOwn(_ path: String) -> Bool? { status(path).map { $0.owner == geteuid() } }

  static func status(_ path: String) -> FileStatus? { try? FileStatus(path: path, following: true) }

  /// The first folder on the way to a path that does not let this process through.
  package static func closedFolder(above path: String) -> String? {
    // Behind a closed folder everything looks closed.
    Path.ancestors(of: path).filter { unsafe access($0, X_OK) != 0 && errno == EACCES && isDirectory($0) }.last
  }

  /// The first of a path and the folders above it that is ours, and whose permissions keep us from it.
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

  /// The bytes that this process can still write there; `nil` if the system does not say.
  package static func freeBytes(at path: String) -> UInt64? {
    var status = statvfs()
    guard unsafe statvfs(path, &status) == 0 else { return nil }
    let blocks = geteuid() == 0 ? status.f_bfree : status.f_bavail
    return UInt64(blocks) * UInt64(status.f_frsize)
  }

  /// `false` if there was none.
  @discardableResult package static func remove(_ path: String) throws(POSIXError) -> Bool {
    if unsafe unlink(path) == 0 { return true }
    if errno == ENOENT { return false }
    throw Descriptor.failure("unlink", path)
  }

  /// A folder that is not empty stays.
  package static func removeDirectory(_ path: String) { _ = unsafe rmdir(path) }

  /// Waits until the names in a folder are on the disk.
  package static func synchronizeDirectory(_ path: String) throws(POSIXError) {
    try Descriptor(opening: path, O_RDONLY | O_DIRECTORY).synchronize(path)
  }

  /// Others may read the file as the umask allows. After a power cut there is the whole old file or the new one.
  package static func replace(_ path: String, _ bytes: [UInt8]) throws(POSIXError) {
    try DurableFile.replace(path, bytes, mode: 0o644)
  }

  /// Makes a folder with its parents, in which nobody else may write; an existing one stays as it is.
  package static func createDirectory(_ path: String) throws(POSIXError) {
    if isDirectory(path) { return }
    if let parent = Path.directory(of: path) { try createDirectory(parent) }
    if unsafe mkdir(path, 0o755) != 0, errno != EEXIST { throw Descriptor.failure("mkdir", path) }
    if !isDirectory(path) { throw .notDirectory(path: path) }
  }
}
