/// Where a person sits, as far as it decides how a browser can be shown.
package enum SessionKind: Sendable, Equatable {
  case desktop
  /// A browser started here would not be seen, or only through X.
  case ssh
  /// A container, a server's console, a job without a person.
  case headless

  /// `BROWSER` says how a browser is shown, wherever that is: remote editors set it. SSH comes before a display, which
  /// may be forwarded from the person's machine; a loopback address is not.
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

  /// Whether the person came by SSH. A command in `BROWSER` may then show a browser of the person's own machine.
  package static func isRemote(_ environment: (String) -> String?) -> Bool {
    ["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"].contains { environment($0)?.isEmpty == false }
  }
}
