import CredmgrCPOSIX
import Glibc
import CredmgrText

package enum Terminal {
  package static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

  /// The columns of standard error, otherwise of standard output, or 80 if neither is a terminal.
  package static var width: Int { errorColumns ?? outputColumns ?? 80 }

  /// Replaces closed standard streams with null(4). Call this before opening any file.
  package static func openStandardStreams() { credmgr_open_standard_streams() }

  /// The columns of standard output, or `nil` if it is not a terminal or does not report them.
  package static var outputColumns: Int? { columns(of: STDOUT_FILENO) }

  /// The columns of standard error, or `nil` if it is not a terminal or does not report them.
  package static var errorColumns: Int? { columns(of: STDERR_FILENO) }

  private static func columns(of descriptor: Int32) -> Int? {
    let columns = Int(credmgr_columns(descriptor))
    return columns > 0 ? columns : nil
  }

  package static func writeAll(_ descriptor: Int32, _ bytes: [UInt8]) throws(POSIXError) {
    try Descriptor.writeAll(bytes, to: descriptor, nil)
  }

  package static func writeOutput(_ text: String) throws(POSIXError) { try writeAll(STDOUT_FILENO, Array(text.utf8)) }

  package static func writeError(_ text: String) { try? writeAll(STDERR_FILENO, Array(text.utf8)) }

  /// Discards what was typed before now, so that only an answer to a question that the user has seen counts.
  package static func discardInput(_ descriptor: Int32 = STDIN_FILENO) { tcflush(descriptor, TCIFLUSH) }

  /// Reads one line byte by byte, so that the rest remains for the next reader.
  ///
  /// - Parameter end: the moment of a monotonic clock at which to stop waiting; `nil` to wait without limit.
  /// - Returns: the line without its end (LF or CR LF), or `nil` at the end of the input.
  package static func readLine(
    _ descriptor: Int32, limit: Int = 64 * 1024, until end: (moment: MonotonicMoment, clock: any WallClock)? = nil
  ) throws(POSIXError) -> String? {
    var line: [UInt8] = []
    while true {
      try wait(descriptor, until: end)
      var byte: UInt8 = 0
      let count = unsafe read(descriptor, &byte, 1)
      if count < 0 {
        if errno == EINTR { continue }
        throw Descriptor.failure("read", nil)
      }
      if count == 0, line.isEmpty { return nil }
      if count == 0 || byte == UInt8(ascii: "\n") { break }
      if line.count == limit { throw .tooLarge(path: "-", limit: limit) }
      line.append(byte)
    }
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    guard let text = String(validating: line, as: UTF8.self) else { throw .notText(path: "-") }
    return text
  }

  private static func wait(
    _ descriptor: Int32, until end: (moment: MonotonicMoment, clock: any WallClock)?
  ) throws(POSIXError) {
    while true {
      // A signal before the call interrupts nothing, so this checks for signals several times a second.
      if Signals.isInterrupted { throw .interrupted }
      let rest = end.map { $0.moment - $0.clock.monotonic() } ?? .seconds(1)
      var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let count = unsafe poll(&waiting, 1, min(max(rest, .zero), .milliseconds(200)).millisecondsRoundedUp)
      if count > 0 { return }
      if count < 0, errno != EINTR { throw Descriptor.failure("poll", nil) }
      if rest <= .zero { throw .timedOut }
    }
  }

  /// Prompts for a password at `/dev/tty` without echo.
  ///
  /// - Throws: `interrupted` after Control-C or a signal, once the terminal is restored; `endOfInput` after Control-D
  ///   on an empty line.
  package static func readPassword(prompt: String, limit: Int = 1024) throws(POSIXError) -> [UInt8] {
    guard let terminal = ControllingTerminal() else { throw .noTerminal }
    return try readPassword(terminal.number, prompt: prompt, limit: limit)
  }

  /// Hides typed text while it exists, and discards unread input at its end. A signal does not end the program
  /// meanwhile; check ``Signals/isInterrupted``.
  package final class Silence {
    private let terminal: ControllingTerminal
    private var before = termios()

    package init() throws(POSIXError) {
      guard let terminal = ControllingTerminal() else { throw .noTerminal }
      self.terminal = terminal
      Signals.installInterruptFlag()
      if unsafe tcgetattr(terminal.number, &before) != 0 { throw .noTerminal }
      var quiet = before
      quiet.c_lflag &= ~tcflag_t(ECHO | ECHONL)
      if unsafe tcsetattr(terminal.number, TCSANOW, &quiet) != 0 { throw .noTerminal }
    }

    deinit { unsafe tcsetattr(terminal.number, TCSAFLUSH, &before) }
  }

  /// Reads a password key by key, with Control-C as an ordinary key, so that no key can end the program while echo is
  /// off. Signals from elsewhere are checked for.
  static func readPassword(_ terminal: Int32, prompt: String, limit: Int) throws(POSIXError) -> [UInt8] {
    var before = termios()
    if unsafe tcgetattr(terminal, &before) != 0 { throw .noTerminal }
    return try Signals.deferring { () throws(POSIXError) -> [UInt8] in
      var raw = before
      raw.c_lflag &= ~tcflag_t(ECHO | ECHONL | ICANON | ISIG | IEXTEN)
      raw.c_iflag &= ~tcflag_t(IXON)
      // tcsetattr(3) succeeds if it made any of the changes; the echo is the important one.
      var now = termios()
      if unsafe tcsetattr(terminal, TCSAFLUSH, &raw) != 0 { throw Descriptor.failure("tcsetattr", nil) }
      // The line end appears after the terminal is restored, so a user who sees it can press Control-C.
      var isAsked = false
      defer { if isAsked { try? writeAll(terminal, [UInt8(ascii: "\n")]) } }
      defer { unsafe tcsetattr(terminal, TCSAFLUSH, &before) }
      if unsafe tcgetattr(terminal, &now) != 0 || now.c_lflag & tcflag_t(ECHO) != 0 { throw .noTerminal }
      try writeAll(terminal, Array(prompt.utf8))
      isAsked = true
      return try readKeys(terminal, limit: limit)
    }
  }

  private static func readKeys(_ terminal: Int32, limit: Int) throws(POSIXError) -> [UInt8] {
    var typed: [UInt8] = []
    typed.reserveCapacity(limit)
    while true {
      switch try readKey(terminal) {
      case 0x03: throw .interrupted
      case 0x04 where typed.isEmpty: throw .endOfInput
      case 0x04: return typed
      case 0x0A, 0x0D:
        if hasMoreText(terminal) { throw .severalLines }
        return typed
      case 0x08, 0x7F:
        // Deletes one character: the continuation bytes of UTF-8 and the byte before them.
        while let last = typed.popLast(), last & 0xC0 == 0x80 {}
      case 0x15: typed.removeAll(keepingCapacity: true)
      case let byte:
        if typed.count == limit { throw .tooLarge(path: "-", limit: limit) }
        typed.append(byte)
      }
    }
  }

  /// Whether text follows the end of a line immediately, because the user pasted several lines.
  private static func hasMoreText(_ terminal: Int32) -> Bool {
    var waiting = pollfd(fd: terminal, events: Int16(POLLIN), revents: 0)
    guard unsafe poll(&waiting, 1, 10) > 0 else { return false }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = unsafe Glibc.read(terminal, &bytes, bytes.count)
    return bytes.prefix(max(count, 0)).contains { $0 > UInt8(ascii: " ") }
  }

  private static func readKey(_ terminal: Int32) throws(POSIXError) -> UInt8 {
    while true {
      if Signals.isWaiting || Signals.isInterrupted { throw .interrupted }
      var waiting = pollfd(fd: terminal, events: Int16(POLLIN), revents: 0)
      let count = unsafe poll(&waiting, 1, 200)
      if count < 0, errno != EINTR { throw Descriptor.failure("poll", nil) }
      guard count > 0 else { continue }
      var byte: UInt8 = 0
      let read = unsafe Glibc.read(terminal, &byte, 1)
      if read == 1 { return byte }
      if read == 0 { throw .endOfInput }
      // A terminal whose other end is closed returns EIO.
      if errno == EIO { throw .endOfInput }
      if errno != EINTR { throw Descriptor.failure("read", nil) }
    }
  }
}

/// The controlling terminal of the process, independent of its streams (`/dev/tty`, tty(4)).
package final class ControllingTerminal {
  private let descriptor: Descriptor

  /// Opens the terminal, or returns `nil` without one, as in a service.
  package init?() {
    guard let descriptor = try? Descriptor(opening: "/dev/tty", O_RDWR) else { return nil }
    self.descriptor = descriptor
  }

  /// The file descriptor, valid while this object exists.
  package var number: Int32 { descriptor.number }
}
