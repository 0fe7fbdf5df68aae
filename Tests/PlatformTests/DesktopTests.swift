import Testing

@testable import CredmgrPlatform

struct UserEntryTests {
  /// Lines in the format of passwd(5).
  @Test(
    arguments: [
      (1000, "/home/ada"), (0, "/root"), (7, nil), (1001, nil), (1002, nil), (100, nil), (1003, "/second"),
    ] as [(UInt32, String?)])
  func usersHomes(_ identifier: UInt32, _ home: String?) {
    let lines = """
      root:x:0:0:root:/root:/bin/bash
      ada:x:1000:1000:Ada, the first:/home/ada:/bin/bash
      relative:x:1001:1001::home/grace:/bin/sh
      short:x:1002:1002:/home/short
      none:x:1003:1003:::/bin/sh
      again:x:1003:1003::/second:/bin/sh
      """
    #expect(UserEntry.entry(of: identifier, in: Array(lines.utf8))?.home == home)
  }
}

struct DisplayTests {
  @Test(
    arguments: [
      ([:], nil), (["DISPLAY": ":4711"], "DISPLAY"), (["DISPLAY": "unix:4711.0"], "DISPLAY"),
      (["DISPLAY": "elsewhere.example:0"], nil), (["DISPLAY": "localhost:10.0"], nil), (["DISPLAY": ":"], nil),
      (["DISPLAY": "::1"], nil), (["DISPLAY": ":x"], nil), (["DISPLAY": ":4711", "WSL_DISTRO_NAME": "Debian"], nil),
      (["WAYLAND_DISPLAY": "wayland-4711", "XDG_RUNTIME_DIR": "/nowhere"], "WAYLAND_DISPLAY"),
      (["WAYLAND_DISPLAY": "null", "XDG_RUNTIME_DIR": "/dev"], nil), (["WAYLAND_DISPLAY": "/dev/null"], nil),
      (["WAYLAND_DISPLAY": "/dev/null", "DISPLAY": ":4711"], nil),
      (["WAYLAND_DISPLAY": "/nowhere", "DISPLAY": ":4711"], "DISPLAY"),
    ] as [([String: String], String?)])
  func unreachableDisplays(_ environment: [String: String], _ variable: String?) {
    #expect(Display.unreachable { environment[$0] } == variable)
  }
}

struct SessionKindTests {
  @Test(
    arguments: [
      ([:], .headless), (["DISPLAY": ""], .headless), (["DISPLAY": ":0"], .desktop),
      (["WAYLAND_DISPLAY": "wayland-0"], .desktop), (["WSL_DISTRO_NAME": "Debian"], .desktop),
      (["SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22"], .ssh),
      (["SSH_TTY": "/dev/pts/1", "DISPLAY": "localhost:10"], .ssh),
      // A remote editor shows pages on the user's own machine.
      (["SSH_TTY": "/dev/pts/1", "BROWSER": "open-there"], .desktop), (["BROWSER": "lynx"], .desktop),
    ] as [([String: String], SessionKind)]) func sessionKinds(_ environment: [String: String], _ expected: SessionKind)
  { #expect(SessionKind { environment[$0] } == expected) }
}

@Suite struct LineInboxTests {
  @Test func linesArriveInOrder() throws {
    let folder = try TemporaryFolder()
    let path = folder("inbox")
    do {
      var inbox = try LineInbox(path)
      #expect(LineInbox.isAwaited(path))
      #expect(LineInbox.hand("one", to: path))
      #expect(LineInbox.hand("two", to: path))
      #expect(try inbox.line(within: .seconds(5), alsoReading: nil) { false } == .handed("one"))
      #expect(try inbox.line(within: .seconds(5), alsoReading: nil) { false } == .handed("two"))
      #expect(throws: POSIXError.timedOut) { try inbox.line(within: .zero, alsoReading: nil) { false } }
      #expect(throws: POSIXError.interrupted) { try inbox.line(within: .seconds(5), alsoReading: nil) { true } }
      #expect(throws: POSIXError.exists(path: path)) { _ = try LineInbox(path) }
    }
    #expect(!File.exists(path))
    #expect(!LineInbox.hand("late", to: path))
    _ = folder
  }

  @Test func doesNotWriteToAFile() throws {
    let folder = try TemporaryFolder()
    let path = folder("inbox")
    try File.replace(path, [])
    #expect(!LineInbox.hand("one", to: path))
    #expect(try File.read(path, limit: 10) == [])
  }

  @Test func overlongLinesAreNotSent() throws {
    let folder = try TemporaryFolder()
    let path = folder("inbox")
    let inbox = try LineInbox(path)
    #expect(!LineInbox.hand(String(repeating: "x", count: LineInbox.limit), to: path))
    #expect(LineInbox.isAwaited(inbox.path))
  }
}
