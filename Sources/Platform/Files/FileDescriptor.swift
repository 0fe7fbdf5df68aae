import CredmgrCPOSIX
import CredmgrText
import Glibc

/// The owner of an open file, which it closes.
struct Descriptor: ~Copyable {
  let number: Int32

  init(owning number: Int32) { self.number = number }

  /// Opens with `O_CLOEXEC` and `O_NOCTTY` added to `flags`.
  init(opening path: String, _ flags: Int32, mode: UInt32 = 0) throws(POSIXError) {
    // C would read the path only up to the zero byte, and would open another file.
    if path.utf8.contains(0) { throw .system(call: "open", path: path, code: EINVAL) }
    let number = unsafe credmgr_open(path, flags, mode)
    if number < 0 { throw Self.failure("open", path) }
    self.number = number
  }

  static func standardInput() throws(POSIXError) -> Descriptor {
    let copy = Descriptor(owning: dup(STDIN_FILENO))
    if copy.number < 0 { throw failure("dup", "-") }
    return copy
  }

  /// Creates a file in memory, positioned at its beginning.
  static func inMemory(_ bytes: [UInt8]) throws(POSIXError) -> Descriptor {
    let memory = Descriptor(owning: credmgr_memory_file())
    if memory.number < 0 { throw failure("memfd_create", nil) }
    try memory.writeAll(bytes, nil)
    lseek(memory.number, 0, SEEK_SET)
    return memory
  }

  /// Gives the file to a caller, and no longer closes it.
  consuming func released() -> Int32 {
    let number = self.number
    discard self
    return number
  }

  deinit {
    // close(2): even an interrupted call closes the descriptor, which must not be closed twice.
    close(number)
  }

  /// The error for `errno`, which must belong to the last call.
  static func failure(_ call: String, _ path: String?) -> POSIXError {
    let code = errno
    if let path {
      switch code {
      case ENOENT, ENOTDIR: return .notFound(path: path)
      case EEXIST: return .exists(path: path)
      case ELOOP: return .symbolicLink(path: path)
      case EISDIR, ENXIO: return .notRegularFile(path: path)
      case EACCES, EPERM: return .permissionDenied(path: path)
      case EROFS: return .readOnlyFileSystem(path: path)
      default: break
      }
    }
    switch code {
    case EINTR: return .interrupted
    case EPIPE: return .brokenPipe
    default: return .system(call: call, path: path, code: code)
    }
  }

  func status(_ path: String) throws(POSIXError) -> FileStatus {
    var status = stat()
    if unsafe fstat(number, &status) != 0 { throw Self.failure("fstat", path) }
    return FileStatus(status)
  }

  /// Reads to the end; more than `limit` bytes are an error.
  func readAll(_ path: String, limit: Int, expecting size: Int = 0) throws(POSIXError) -> [UInt8] {
    let step = 64 * 1024
    // Reads everything with one call, so that nothing is copied.
    var result = size > 0 ? try readSome(path, atMost: Swift.min(size, limit) + 1) : []
    if result.count > limit { throw .tooLarge(path: path, limit: limit) }
    while true {
      let piece = try readSome(path, atMost: Swift.min(step, limit - result.count + 1))
      if piece.isEmpty { return result }
      if result.count + piece.count > limit { throw .tooLarge(path: path, limit: limit) }
      result.append(contentsOf: piece)
    }
  }

  /// Reads a pipe or a device to its end with a time limit; the descriptor must be non-blocking.
  func readAll(_ path: String, limit: Int, isPipe: Bool, patience: Duration) throws(POSIXError) -> [UInt8] {
    let clock = SystemClock()
    let end = clock.monotonic() + patience
    let deadline = clock.monotonic() + min(patience, .seconds(5))
    var hasWriter = false
    var result: [UInt8] = []
    while true {
      do throws(POSIXError) {
        let piece = try readSome(path, atMost: 64 * 1024)
        result += piece
        if result.count > limit { throw .tooLarge(path: path, limit: limit) }
        // The end of a pipe counts only after a writer has opened it.
        if piece.isEmpty, hasWriter || !isPipe { return result }
        if !piece.isEmpty {
          hasWriter = true
          continue
        }
        if clock.monotonic() >= deadline { throw .noWriter(path: path) }
      } catch .system(_, _, EAGAIN) {
        hasWriter = true
      }
      if Signals.isInterrupted { throw .interrupted }
      let rest = end - clock.monotonic()
      if rest <= .zero { throw .timedOut }
      try clock.sleep(for: min(rest, .milliseconds(20)))
    }
  }

  /// The result of one read(2), or of pread(2) at an offset; empty at the end.
  func readSome(_ path: String?, atMost count: Int, at offset: Int? = nil) throws(POSIXError) -> [UInt8] {
    try Self.readSome(number, path, atMost: count, at: offset)
  }

  static func readSome(
    _ number: Int32, _ path: String?, atMost count: Int, at offset: Int? = nil
  ) throws(POSIXError) -> [UInt8] {
    var code = 0
    let piece = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      repeat {
        code =
          if let offset { unsafe pread(number, buffer.baseAddress, count, offset) } else {
            unsafe read(number, buffer.baseAddress, count)
          }
      } while code < 0 && errno == EINTR
      initialized = Swift.max(code, 0)
    }
    if code < 0 { throw failure("read", path) }
    return piece
  }

  func writeAll(_ bytes: [UInt8], _ path: String?) throws(POSIXError) { try Self.writeAll(bytes, to: number, path) }

  static func writeAll(_ bytes: [UInt8], to number: Int32, _ path: String?) throws(POSIXError) {
    var done = 0
    while done < bytes.count {
      let count = unsafe bytes.withUnsafeBytes { buffer in
        unsafe write(number, buffer.baseAddress?.advanced(by: done), buffer.count - done)
      }
      if count >= 0 {
        done += count
      } else if errno == EAGAIN {
        // The program that opened the descriptor made it non-blocking.
        var waiting = pollfd(fd: number, events: Int16(POLLOUT), revents: 0)
        _ = unsafe poll(&waiting, 1, -1)
      } else if errno != EINTR {
        throw failure("write", path)
      }
    }
  }

  func synchronize(_ path: String) throws(POSIXError) {
    // fsync(2): EINVAL means that the file system does not support it, for example for directories.
    if fsync(number) != 0, errno != EINVAL { throw Self.failure("fsync", path) }
  }
}

struct FileStatus {
  let kind: UInt32
  let permissions: UInt32
  let owner: UInt32
  let group: UInt32
  let size: Int
  /// The number of names; 0 after the file was removed.
  let links: UInt64
  let identity: [UInt64]
  let modified: Moment

  init(_ status: stat) {
    kind = status.st_mode & S_IFMT
    permissions = status.st_mode & 0o7777
    owner = status.st_uid
    group = status.st_gid
    size = Int(status.st_size)
    links = UInt64(status.st_nlink)
    identity = [UInt64(status.st_dev), UInt64(status.st_ino)]
    modified = Moment(secondsSince1970: Int64(status.st_mtim.tv_sec))
  }

  /// The status of a path, or `nil` if it does not exist.
  init?(path: String, following: Bool) throws(POSIXError) {
    if path.utf8.contains(0) { throw .system(call: "stat", path: path, code: EINVAL) }
    var status = stat()
    let code = unsafe following ? stat(path, &status) : lstat(path, &status)
    if code != 0 {
      if errno == ENOENT { return nil }
      throw Descriptor.failure("stat", path)
    }
    self.init(status)
  }

  var isRegularFile: Bool { kind == S_IFREG }
  var isPipe: Bool { kind == S_IFIFO }
  var isDirectory: Bool { kind == S_IFDIR }
  var isSymbolicLink: Bool { kind == S_IFLNK }
}
