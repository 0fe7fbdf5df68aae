import Glibc
import CredmgrText

/// A private file and the older one that precedes it. Processes append one at a time; a power cut can take the last
/// entries.
package struct LogFile: ~Copyable {
  private let file: Descriptor
  private let path: String
  /// The last bytes before the next entry, which may be in the older file.
  package let tail: [UInt8]

  /// The time to wait for other processes. Each writes one piece, so only a stopped process takes longer.
  private static let patience = Duration.seconds(2)

  /// Opens the file for this process alone, until the value ends.
  ///
  /// A file of `limit` bytes becomes the older one, whose name ends in `.1`, and replaces the previous one. Together
  /// they never exceed about twice `limit`.
  package static func open(_ path: String, limit: Int, tail count: Int) throws(POSIXError) -> LogFile {
    // One attempt for each time another process replaces the file meanwhile, which is rare.
    for _ in 0..<16 {
      let file = try Descriptor(opening: path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode: 0o600)
      try lock(file, path)
      let status = try file.status(path)
      try PrivateFile.check(status, path)
      if status.links == 0 { continue }
      if status.size >= limit {
        if try FileStatus(path: path, following: false)?.identity == status.identity {
          unsafe rename(path, path + ".1")
        }
        continue
      }
      let tail =
        status.size > 0
        ? try file.readSome(path, atMost: count, at: max(status.size - count, 0))
        : ((try? content(path + ".1")) ?? []).suffix(count)
      return LogFile(file: file, path: path, tail: Array(tail))
    }
    throw .timedOut
  }

  package func append(_ bytes: [UInt8]) throws(POSIXError) { try file.writeAll(bytes, path) }

  /// Replaces both files with new content.
  package func replace(with bytes: [UInt8]) throws(POSIXError) {
    try PrivateFile.replace(path, bytes)
    try File.remove(path + ".1")
  }

  /// The content of both files; empty if a file does not exist.
  package static func read(_ path: String) throws(POSIXError) -> (older: [UInt8], current: [UInt8]) {
    let name = path + ".1"
    while true {
      let before = try FileStatus(path: name, following: false)?.identity
      let content = (older: try content(name), current: try content(path))
      if try FileStatus(path: name, following: false)?.identity == before { return content }
    }
  }

  private static func content(_ path: String) throws(POSIXError) -> [UInt8] {
    do throws(POSIXError) {
      return try PrivateFile.read(path, limit: 64 << 20)
    } catch .notFound {
      return []
    }
  }

  private static func lock(_ file: borrowing Descriptor, _ path: String) throws(POSIXError) {
    var end: MonotonicMoment?
    let clock = SystemClock()
    while flock(file.number, LOCK_EX | LOCK_NB) != 0 {
      guard errno == EWOULDBLOCK || errno == EINTR else { throw Descriptor.failure("flock", path) }
      let now = clock.monotonic()
      if now > end ?? now { throw .timedOut }
      end = end ?? now + patience
      try clock.sleep(for: .microseconds(200))
    }
  }
}
