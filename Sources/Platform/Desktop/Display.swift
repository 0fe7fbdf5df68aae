package enum Display {
  /// The variable that names an unreachable display of this machine; `nil` if it is reachable or credmgr cannot tell.
  package static func unreachable(environment: (String) -> String?) -> String? {
    func value(_ name: String) -> String? { Environment.text(name, environment) }
    if value("WSL_DISTRO_NAME") != nil { return nil }
    if let wayland = value("WAYLAND_DISPLAY") {
      let folder = value("XDG_RUNTIME_DIR") ?? ""
      if File.exists(Path.joining(folder, wayland)) { return nil }
      if value("DISPLAY") == nil { return "WAYLAND_DISPLAY" }
    }
    // Every display name contains a colon (X(7)).
    if let display = value("DISPLAY"), !display.contains(":") { return "DISPLAY" }
    guard let display = value("DISPLAY"), let socket = socket(of: display) else { return nil }
    if File.exists(socket) { return nil }
    // Abstract sockets have no name in the file system (unix(7)).
    let sockets = (try? File.read("/proc/net/unix", limit: 64 << 20)) ?? []
    return sockets.split(separator: UInt8(ascii: "\n")).contains {
      $0.suffix(socket.utf8.count + 1).elementsEqual(("@" + socket).utf8)
    } ? nil : "DISPLAY"
  }

  /// The socket of `:0` or `unix:0.0` (X(7)), or `nil` for a display of another machine.
  private static func socket(of display: String) -> String? {
    let parts = display.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, ["", "unix"].contains(parts[0]) else { return nil }
    let number = parts[1].prefix { $0 != "." }
    return number.isEmpty || !number.allSatisfy(\.isNumber) ? nil : "/tmp/.X11-unix/X" + number
  }
}
