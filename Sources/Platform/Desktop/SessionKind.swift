/// The kind of session, which decides how credmgr can show a browser.
package enum SessionKind: Sendable, Equatable {
  case desktop
  /// A remote session: a browser started here would be invisible, or visible only through X.
  case ssh
  /// A container, a server's console, or a job without a user.
  case headless

  /// Detects the kind of session. `BROWSER` comes first because remote editors set it everywhere. SSH comes before a
  /// display, which may be forwarded from the user's machine, unlike a loopback address.
  package init(environment: (String) -> String?) {
    func isSet(_ name: String) -> Bool { environment(name)?.isEmpty == false }
    if isSet("BROWSER") {
      self = .desktop
    } else if Self.isRemote(environment) {
      self = .ssh
    } else {
      self = ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"].contains(where: isSet) ? .desktop : .headless
    }
  }

  /// Whether there is a terminal or a browser, so that someone can read what a login shows.
  package static func hasReader(_ environment: (String) -> String?) -> Bool {
    Terminal.isTerminal(0) || Terminal.isTerminal(2) || SessionKind(environment: environment) == .desktop
  }

  /// Whether the user is connected by SSH. A command in `BROWSER` may then show a browser of the user's own machine.
  package static func isRemote(_ environment: (String) -> String?) -> Bool {
    ["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"].contains { environment($0)?.isEmpty == false }
  }
}
