/// Where a person sits, as far as it decides how a browser can be shown.
package enum SessionKind: Sendable, Equatable {
  /// A browser can be started here.
  case desktop
  /// The person is on another machine, and a browser started here would not be seen, or only through X.
  case ssh
  /// There is no desktop: a container, a server's console, a job without a person.
  case headless

  /// Looks at the environment.
  ///
  /// Whoever sets `BROWSER` has said how a browser is shown, wherever that is: remote editors do so. A login by SSH
  /// comes before a display, since that may be one forwarded from the person's machine, and a loopback address is not.
  /// In WSL the browser is that of Windows.
  ///
  /// - Parameter environment: the value of a variable; nil if it is not set.
  package init(environment: (String) -> String?) {
    func isSet(_ names: String...) -> Bool { names.contains { environment($0)?.isEmpty == false } }
    if isSet("BROWSER") {
      self = .desktop
    } else if isSet("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY") {
      self = .ssh
    } else {
      self = isSet("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME") ? .desktop : .headless
    }
  }
}
