import CredmgrText
import Glibc
import Testing

@testable import CredmgrPlatform

/// A directory for one test, removed with the value.
final class TemporaryFolder {
  let path: String

  init() throws {
    var template = Array("/tmp/posix-tests.XXXXXX".utf8CString)
    let made = unsafe template.withUnsafeMutableBufferPointer {
      guard let base = $0.baseAddress else { return false }
      return unsafe mkdtemp(base) != nil
    }
    try #require(made)
    path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  deinit { _ = try? Launcher.run("rm", ["-rf", path]) }

  /// The path of a name in the directory.
  func callAsFunction(_ name: String) -> String { Path.joining(path, name) }

  func write(_ name: String, _ text: String, mode: UInt32 = 0o600) throws {
    try File.replace(self(name), Array(text.utf8))
    try #require(unsafe chmod(self(name), mode) == 0)
  }

  func text(_ name: String) throws -> String {
    String(decoding: try File.read(self(name), limit: 1 << 20), as: UTF8.self)
  }

  /// Waits for a file that another process creates.
  func awaitFile(_ name: String) throws {
    let clock = SystemClock()
    let end = clock.monotonic() + .seconds(300)
    while !File.exists(self(name)) {
      try #require(clock.monotonic() < end, "\(name) is not there after 5 minutes")
      try clock.sleep(for: .milliseconds(5))
    }
  }
}

func permissions(_ path: String) throws -> UInt32 {
  try #require(try FileStatus(path: path, following: false)).permissions
}

/// A second thread, for tests in which both sides of a terminal must act.
struct Background {
  private final class Body {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  private let thread: pthread_t

  init(_ run: @escaping @Sendable () -> Void) throws {
    var thread = pthread_t()
    let body = unsafe Unmanaged.passRetained(Body(run)).toOpaque()
    let code = unsafe pthread_create(
      &thread, nil,
      { body in
        guard let body = unsafe body else { return nil }
        unsafe Unmanaged<Body>.fromOpaque(body).takeRetainedValue().run()
        return nil
      }, body)
    try #require(code == 0)
    self.thread = thread
  }

  func join() { _ = pthread_join(thread, nil) }
}
