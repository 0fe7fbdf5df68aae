import Glibc
import Testing

@testable import CredmgrPlatform
import CredmgrText

/// A terminal with the test as its keyboard.
private final class PseudoTerminal: Sendable {
  let keyboard: Int32
  let terminal: Int32

  init() throws {
    keyboard = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY)
    try #require(keyboard >= 0)
    // ioctl_tty(2): TIOCSPTLCK unlocks the other end, and TIOCGPTN returns its number.
    var number: Int32 = 0
    try #require(unsafe ioctl(keyboard, 0x4004_5431, &number) == 0)
    try #require(unsafe ioctl(keyboard, 0x8004_5430, &number) == 0)
    terminal = unsafe open("/dev/pts/\(number)", O_RDWR | O_NOCTTY)
    try #require(terminal >= 0)
  }

  deinit {
    close(keyboard)
    close(terminal)
  }

  var hasEcho: Bool {
    var settings = termios()
    unsafe tcgetattr(terminal, &settings)
    return settings.c_lflag & tcflag_t(ECHO) != 0
  }

  func type(_ bytes: [UInt8]) { try? Terminal.writeAll(keyboard, bytes) }

  /// The visible text up to the end of the line, which the kernel delivers in its own time.
  func shownLine() -> String {
    var shown = ""
    while !shown.utf8.contains(UInt8(ascii: "\n")) {
      var bytes = [UInt8](repeating: 0, count: 4096)
      var waiting = pollfd(fd: keyboard, events: Int16(POLLIN), revents: 0)
      guard unsafe poll(&waiting, 1, 300_000) == 1 else { break }
      let count = unsafe read(keyboard, &bytes, bytes.count)
      shown += String(decoding: bytes[..<max(0, count)], as: UTF8.self)
    }
    return shown
  }
}

struct TerminalTests {
  private func password(typing bytes: [UInt8], limit: Int = 100) throws -> (Result<[UInt8], POSIXError>, String) {
    let pseudo = try PseudoTerminal()
    #expect(pseudo.hasEcho)
    // The user types after the echo is off, because earlier input is discarded.
    let person = try Background {
      while pseudo.hasEcho { sched_yield() }
      pseudo.type(bytes)
    }
    let result = Result { () throws(POSIXError) -> [UInt8] in
      try Terminal.readPassword(pseudo.terminal, prompt: "Passphrase: ", limit: limit)
    }
    person.join()
    #expect(pseudo.hasEcho)
    return (result, pseudo.shownLine())
  }

  @Test(arguments: [
    ("pässword\n", "pässword"), ("a b\r", "a b"), ("\n", ""), ("abc\u{7F}\u{8}d\n", "ad"),
    ("xé\u{7F}y\n", "xy"),
    ("\u{7F}a\n", "a"), ("wrong\u{15}right\n", "right"), ("a\u{4}", "a"), ("a\r\n \n", "a"),
  ]) func readsWithoutEcho(typed: String, expected: String) throws {
    let (result, shown) = try password(typing: Array(typed.utf8))
    #expect(result == .success(Array(expected.utf8)))
    #expect(shown == "Passphrase: \r\n")
  }

  @Test(
    arguments: [
      ([UInt8(3)], .interrupted), ([97, 3], .interrupted), ([4], .endOfInput), ([97, 10, 98], .severalLines),
      ([97, 97, 97, 97], .tooLarge(path: "-", limit: 3)),
    ] as [([UInt8], POSIXError)]) func readsInterruptionsAndEnds(typed: [UInt8], error: POSIXError) throws
  { #expect(try password(typing: typed, limit: 3).0 == .failure(error)) }

  @Test func needsATerminal() throws {
    let null = try Descriptor(opening: "/dev/null", O_RDWR)
    let number = null.number
    #expect(throws: POSIXError.noTerminal) { try Terminal.readPassword(number, prompt: "", limit: 9) }
    #expect(!Terminal.isTerminal(number))
    let pseudo = try PseudoTerminal()
    #expect(Terminal.isTerminal(pseudo.terminal))
    #expect(Terminal.width > 0)
    _ = consume null
  }

  @Test func readsLines() throws {
    var ends: [Int32] = [-1, -1]
    try #require(unsafe pipe(&ends) == 0)
    let input = Descriptor(owning: ends[0])
    let number = input.number
    try Terminal.writeAll(ends[1], Array("one\r\n\nlong line\nend".utf8))
    close(ends[1])
    #expect(try Terminal.readLine(number) == "one")
    #expect(try Terminal.readLine(number) == "")
    #expect(throws: POSIXError.tooLarge(path: "-", limit: 4)) { try Terminal.readLine(number, limit: 4) }
    #expect(try Terminal.readLine(number) == "line")
    #expect(try Terminal.readLine(number) == "end")
    #expect(try Terminal.readLine(number) == nil)
    _ = consume input
  }

  @Test func reportsWhyWritingFails() throws {
    Signals.ignoreFailedWrites()
    var ends: [Int32] = [-1, -1]
    try #require(unsafe pipe(&ends) == 0)
    close(ends[0])
    #expect(throws: POSIXError.brokenPipe) { try Terminal.writeAll(ends[1], [1]) }
    close(ends[1])
    let full = try Descriptor(opening: "/dev/full", O_WRONLY)
    let number = full.number
    #expect(throws: POSIXError.system(call: "write", path: nil, code: ENOSPC)) { try Terminal.writeAll(number, [1]) }
    _ = consume full
  }
}

struct SignalsTests {
  @Test func signalsWait() {
    var received: Int32 = 0
    Signals.deferring {
      #expect(!Signals.isWaiting)
      _ = pthread_kill(pthread_self(), SIGTERM)
      #expect(Signals.isWaiting)
      // Consumes the signal, so that it does not end the tests.
      var set = sigset_t()
      unsafe sigemptyset(&set)
      unsafe sigaddset(&set, SIGTERM)
      _ = unsafe sigwait(&set, &received)
    }
    #expect(received == SIGTERM)
    #expect(!Signals.isWaiting)
  }

  @Test func passesResultsAndErrors() {
    #expect(Signals.deferring { 5 } == 5)
    #expect(throws: POSIXError.timedOut) { try Signals.deferring { () throws(POSIXError) -> Int in throw .timedOut } }
  }

  @Test func clock() throws {
    let clock = SystemClock()
    let (earliest, now, latest) = (Int64(time(nil)), clock.now().secondsSince1970, Int64(time(nil)))
    #expect((earliest - 1...latest + 1).contains(now))
    let before = clock.monotonic()
    try clock.sleep(for: .zero)
    try clock.sleep(for: .seconds(-1))
    #expect(clock.monotonic() >= before)
  }

  @Test func noCoreDumps() throws {
    let before = ProcessProtection.apply()
    let limits = String(decoding: try File.read("/proc/self/limits", limit: 1 << 16), as: UTF8.self)
    let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
    #expect(line.split(separator: " ")[4] == "0")
    if let before { ProcessProtection.lift(coreLimit: before) }
  }

  private static let hasKeyring = (try? KernelKeyring.store("posix-tests", [0], for: .seconds(5))) != nil

  @Test(.enabled(if: hasKeyring)) func kernelKeyring() throws {
    let name = "posix-tests-\(UInt64.random(in: 0 ... .max))"
    #expect(try KernelKeyring.read(name) == nil)
    try KernelKeyring.store(name, [1, 2, 3], for: .seconds(60))
    try KernelKeyring.store(name, [4, 5], for: .seconds(60))
    #expect(try KernelKeyring.read(name) == [4, 5])
    #expect(try KernelKeyring.remove(name))
    #expect(try KernelKeyring.read(name) == nil)
    #expect(try !KernelKeyring.remove(name))
  }
}
