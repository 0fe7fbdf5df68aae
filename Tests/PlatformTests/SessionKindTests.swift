import Testing

@testable import Platform

struct SessionKindTests {
  @Test(
    arguments: [
      ([:], .headless), (["DISPLAY": ""], .headless), (["DISPLAY": ":0"], .desktop),
      (["WAYLAND_DISPLAY": "wayland-0"], .desktop), (["WSL_DISTRO_NAME": "Debian"], .desktop),
      (["SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22"], .ssh),
      (["SSH_TTY": "/dev/pts/1", "DISPLAY": "localhost:10"], .ssh),
      // A remote editor shows pages on the person's own machine.
      (["SSH_TTY": "/dev/pts/1", "BROWSER": "open-there"], .desktop), (["BROWSER": "lynx"], .desktop),
    ] as [([String: String], SessionKind)])
  func aPlace(_ environment: [String: String], _ expected: SessionKind) {
    #expect(SessionKind { environment[$0] } == expected)
  }
}
