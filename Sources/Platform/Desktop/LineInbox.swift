import Glibc
import CredmgrText

/// A named pipe in a private directory through which another process of the same user sends lines.
package struct LineInbox: ~Copyable {
  /// A line without its end, never empty.
  package enum Line: Sendable, Equatable {
    case handed(String)
    case typed(String)
  }

  /// The longest line in bytes: less than the capacity of a pipe (pipe(7)), so that senders need not wait.
  package static let limit = 60 * 1024

  package let path: String
  private let pipe: Descriptor
  private var handed: [UInt8] = []
  private var typed: [UInt8] = []

  package init(_ path: String) throws(POSIXError) {
    if unsafe mkfifo(path, 0o600) != 0 { throw Descriptor.failure("mkfifo", path) }
    do throws(POSIXError) {
      // fifo(7): a pipe open for reading and writing has no end of file when the last writer leaves.
      pipe = try Descriptor(opening: path, O_RDWR | O_NONBLOCK | O_NOFOLLOW)
    } catch {
      unsafe unlink(path)
      throw error
    }
    self.path = path
  }

  deinit { unsafe unlink(path) }

  /// Sends a line to the process that waits at `path`; returns `false` if none does or the line is too long.
  package static func hand(_ line: String, to path: String) -> Bool {
    guard line.utf8.count < limit, let pipe = writer(path) else { return false }
    do throws(POSIXError) {
      try pipe.writeAll(Array(line.utf8) + [UInt8(ascii: "\n")], path)
      return true
    } catch {
      return false
    }
  }

  package static func isAwaited(_ path: String) -> Bool { writer(path) != nil }

  /// fifo(7): opening for writing only fails immediately without a reader.
  private static func writer(_ path: String) -> Descriptor? {
    guard let pipe = try? Descriptor(opening: path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW),
      (try? pipe.status(path))?.kind == S_IFIFO
    else { return nil }
    return pipe
  }

  /// Waits for a line, which the user may instead type at `descriptor`; the end of that input does not stop the wait.
  /// `isCancelled` is called several times a second.
  package mutating func line(
    within time: Duration, alsoReading descriptor: Int32?, isCancelled: () -> Bool
  ) throws(POSIXError) -> Line {
    let end = MonotonicMoment.now() + time
    var input = descriptor
    while true {
      if isCancelled() { throw .interrupted }
      if let line = Self.nextLine(&handed) { return .handed(line) }
      if let line = Self.nextLine(&typed) { return .typed(line) }
      if .now() >= end { throw .timedOut }
      // poll(2) ignores negative descriptors.
      var watched = [
        pollfd(fd: pipe.number, events: Int16(POLLIN), revents: 0),
        pollfd(fd: input ?? -1, events: Int16(POLLIN), revents: 0),
      ]
      let count = unsafe poll(&watched, 2, 200)
      if count < 0, errno != EINTR { throw Descriptor.failure("poll", nil) }
      guard count > 0 else { continue }
      if watched[0].revents != 0 {
        handed += try pipe.readSome(path, atMost: Self.limit)
        // No sender writes such a line, so its end would not be a line either.
        if handed.count > 2 * Self.limit { handed = [] }
      }
      if let open = input, watched[1].revents != 0 {
        let bytes = try Descriptor.readSome(open, nil, atMost: 4096)
        typed += bytes
        if bytes.isEmpty { input = nil }
        if typed.count > Self.limit { typed = [] }
        // Text without a line end counts as a line.
        if input == nil, !typed.isEmpty { typed.append(UInt8(ascii: "\n")) }
      }
    }
  }

  private static func nextLine(_ bytes: inout [UInt8]) -> String? {
    let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
    while let end = bytes.firstIndex(of: UInt8(ascii: "\n")) {
      let text = bytes[..<end].drop(while: isBlank)
      bytes.removeSubrange(...end)
      if let last = text.lastIndex(where: { !isBlank($0) }) { return String(decoding: text[...last], as: UTF8.self) }
    }
    return nil
  }
}
