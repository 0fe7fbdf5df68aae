import Testing

@testable import CredmgrCredentialManager

struct HomeTests {
  private static func home(_ environment: [String: String], _ executable: String = "/usr/bin/credmgr") throws -> Home {
    try Home(environment: { environment[$0] }, executable: executable, ownHome: { _ in nil })
  }

  @Test(arguments: ["/box", "/box/"]) func oneFolder(_ path: String) throws {
    let home = try Self.home(["CREDMGR_HOME": path, "HOME": "/home/ana", "XDG_CONFIG_HOME": "/x"])
    #expect(home.configuration == "/box/config")
    #expect(home.vault == "/box/vault")
    #expect(home.userProviders == "/box/config/providers")
    #expect(home.vaultLocation.file.hasPrefix("/box/vault/"))
  }

  /// XDG Base Directory Specification
  @Test func baseDirectories() throws {
    let standard = try Self.home(["HOME": "/home/ana", "CREDMGR_HOME": ""])
    #expect(standard.configuration == "/home/ana/.config/credmgr")
    #expect(standard.vault == "/home/ana/.local/share/credmgr")
    let own = try Self.home([
      "HOME": "/home/ana", "XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d/", "XDG_RUNTIME_DIR": "/run/user/1000",
    ])
    #expect(own.configuration == "/c/credmgr")
    #expect(own.vault == "/d/credmgr")
    // The same vault implies the same locks.
    var elsewhere = ["HOME": "/home/ana"]
    let lock = try Self.home(elsewhere).vaultLocation.lock("0123456789abcdef0123456789abcdef")
    elsewhere["XDG_RUNTIME_DIR"] = "/run/user/1000"
    #expect(try Self.home(elsewhere).vaultLocation.lock("0123456789abcdef0123456789abcdef") == lock)
    // The specification says to ignore relative paths.
    let relative = try Self.home(["HOME": "/home/ana", "XDG_CONFIG_HOME": "c", "XDG_DATA_HOME": ""])
    #expect(relative == standard)
  }

  @Test func withoutAHomeDirectory() throws {
    #expect(throws: CredentialError.noHome) { try Self.home([:]) }
    #expect(throws: CredentialError.noHome) { try Self.home(["HOME": "ana"]) }
    // The configuration directory does not determine the data directory, or the reverse.
    #expect(throws: CredentialError.noHome) { try Self.home(["XDG_CONFIG_HOME": "/c"]) }
    #expect(throws: CredentialError.noHome) { try Self.home(["XDG_DATA_HOME": "/d"]) }
    #expect(try Self.home(["XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d"]).vault == "/d/credmgr")
    #expect(throws: CredentialError.relativeHome("box")) {
      try Self.home(["CREDMGR_HOME": "box", "HOME": "/home/ana"])
    }
  }

  /// Without `HOME`, the system's answer counts; otherwise, the system is not asked.
  @Test func homeOfTheSystem() throws {
    func home(_ environment: [String: String]) throws -> (home: Home, asked: [Bool]) {
      var asked: [Bool] = []
      let home = try Home(environment: { environment[$0] }, executable: "/usr/bin/credmgr") { isNeeded in
        asked.append(isNeeded)
        return "/home/ana"
      }
      return (home, asked)
    }
    let without = try home([:])
    #expect(without.home == (try Self.home(["HOME": "/home/ana"])))
    #expect(without.asked == [true])
    #expect(try home(["HOME": ""]).home == without.home)
    #expect(try home(["HOME": "/home/ada"]).asked == [])
    let own = try home(["CREDMGR_HOME": "/box"])
    #expect(own.home.person == "/home/ana")
    #expect(own.asked == [false])
  }

  @Test func withoutFolders() throws {
    let home = Home(withoutFolders: "/usr/bin/credmgr")
    #expect(home.library.directories.suffix(2) == ["/etc/credmgr/providers", "/usr/share/credmgr/providers"])
    let fault = CredentialSource(home: home, http: nil, clock: ManualClock(), random: KnownRandom())
    #expect(try fault.accountsIfAny() == nil)
  }

  @Test(
    arguments: [
      ("/usr/bin/credmgr", "/usr/share/credmgr/providers"),
      ("/usr/local/bin/credmgr", "/usr/local/share/credmgr/providers"),
      ("/opt/x/libexec/credmgr/credmgr-online", "/opt/x/share/credmgr/providers"),
      ("/src/.build/x86_64-unknown-linux-gnu/release/credmgr", "/src/providers"),
    ])
  func shippedDescriptors(_ executable: String, _ folder: String) throws {
    let home = try Self.home(["HOME": "/home/ana"], executable)
    #expect(home.systemProviders == ["/etc/credmgr/providers", folder])
    // The user's own directory comes first.
    #expect(home.library.directories == ["/home/ana/.config/credmgr/providers", "/etc/credmgr/providers", folder])
  }
}
