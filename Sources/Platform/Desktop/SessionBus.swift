package enum SessionBus {
  /// The address of the session's D-Bus, or `nil` if it has no address.
  ///
  /// Without an address libdbus and GDBus start their own bus ("autolaunch"), which would outlive credmgr without any
  /// other user.
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
