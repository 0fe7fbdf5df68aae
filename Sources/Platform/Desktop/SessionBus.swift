package enum SessionBus {
  /// Where the D-Bus of the session listens; `nil` if there is none.
  ///
  /// Without an address libdbus and GDBus start a bus of their own ("autolaunch"): that one would outlive us, and
  /// nobody else would be on it.
  package static func address(environment: (String) -> String?) -> String? {
    if let address = environment("DBUS_SESSION_BUS_ADDRESS"), !address.isEmpty {
      return address.hasPrefix("autolaunch:") ? nil : address
    }
    guard let folder = environment("XDG_RUNTIME_DIR"), folder.hasPrefix("/"), File.exists(folder + "/bus") else {
      return nil
    }
    return "unix:path=" + folder + "/bus"
  }
}
