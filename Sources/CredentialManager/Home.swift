import CredmgrPlatform
import CredmgrDescriptors

/// The paths of all files: one directory with `CREDMGR_HOME`, otherwise the XDG base directories.
package struct Home: Sendable, Equatable {
  package let configuration: String
  package let vault: String
  /// Computed on demand, because returning a valid token requires no descriptors.
  package var systemProviders: [String] { [Self.systemFolder] + Self.shippedProviders(executable) }
  static let systemFolder = "/etc/credmgr/providers"
  package let person: String?  // `nil` if neither `HOME` nor the system has it.
  /// Holds the inboxes of logins and the latest requests. Cleared at a restart if the system supports that.
  let runtime: String
  let desktop: SchemeHandler.Desktop?
  let executable: String

  /// Finds the shipped descriptors next to `executable`. `ownHome` returns the system's home directory if `HOME` is
  /// unset; its argument says whether credmgr requires one.
  package init(
    environment: (String) -> String?, executable: String,
    ownHome: (_ isNeeded: Bool) -> String? = { UserEntry.current(elsewhere: $0)?.home }
  ) throws(CredentialError) {
    func absolute(_ name: String) -> String? {
      guard let path = environment(name), path.hasPrefix("/") else { return nil }
      return path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    }
    let own = Environment.text("CREDMGR_HOME", environment)
    person = absolute("HOME") ?? ownHome(own == nil)
    let choices = absolute("XDG_CONFIG_HOME") ?? person.map { $0 + "/.config" }
    let data = absolute("XDG_DATA_HOME") ?? person.map { $0 + "/.local/share" }
    if let home = own {
      guard let home = absolute("CREDMGR_HOME") else { throw .relativeHome(home) }
      (configuration, vault, runtime) = (home + "/config", home + "/vault", home + "/run")
    } else {
      guard let choices, let data else { throw .noHome }
      configuration = choices + "/credmgr"
      vault = data + "/credmgr"
      runtime = absolute("XDG_RUNTIME_DIR").map { $0 + "/credmgr" } ?? vault + "/run"
    }
    if let data, let choices {
      desktop = SchemeHandler.Desktop(entries: data + "/applications", choices: choices + "/mimeapps.list")
    } else {
      desktop = nil
    }
    self.executable = executable
  }

  package init(withoutFolders executable: String) {
    // No process can create files in proc(5).
    (configuration, vault, runtime) = ("/proc/credmgr/config", "/proc/credmgr/vault", "/proc/credmgr/run")
    (person, desktop) = (nil, nil)
    self.executable = executable
  }

  /// Supports `PREFIX/bin`, `PREFIX/libexec/credmgr`, and a `.build` directory next to `providers`.
  private static func shippedProviders(_ executable: String) -> [String] {
    var components = executable.split(separator: "/").dropLast()
    if let build = components.firstIndex(of: ".build") {
      return [components[..<build].map { "/" + $0 }.joined() + "/providers"]
    }
    if components.last == "credmgr" { components = components.dropLast() }
    return [components.dropLast().map { "/" + $0 }.joined() + "/share/credmgr/providers"]
  }

  /// Returns a program next to another, or in `libexec/credmgr` of the same prefix; `nil` if it does not exist.
  package static func sibling(_ name: String, of executable: String) -> String? {
    let folder = Path.directory(of: executable) ?? "/"
    return [folder + "/" + name, (Path.directory(of: folder) ?? "") + "/libexec/credmgr/" + name].first {
      File.isExecutable($0)
    }
  }

  package var userProviders: String { configuration + "/providers" }

  package var accountRules: String { configuration + "/accounts.yaml" }

  /// The latest request of a process. A few processes share a file, which limits the number of files.
  func repeatedRequest(_ process: Int32) -> String { runtime + "/asked-\(process % 64)" }

  package var library: DescriptorLibrary {
    DescriptorLibrary(directories: [userProviders] + systemProviders, read: readDescriptor)
  }

  /// Returns the library with the new contents of some files.
  func library(replacing files: [String: [UInt8]]) -> DescriptorLibrary {
    DescriptorLibrary(directories: library.directories) { name throws(UnreadableDescriptor) in
      if let bytes = files[name] { return bytes }
      return try readDescriptor(name)
    }
  }

  /// The descriptors shipped with the program, and the administrator's.
  var installedLibrary: DescriptorLibrary { DescriptorLibrary(directories: systemProviders, read: Self.descriptor) }

  /// The descriptors shipped with the program, without the administrator's.
  package var shippedLibrary: DescriptorLibrary {
    DescriptorLibrary(directories: Self.shippedProviders(executable), read: Self.descriptor)
  }

  /// Reads a descriptor as `descriptor(at:)` does, but refuses a file that another user can change.
  @Sendable func readDescriptor(_ path: String) throws(UnreadableDescriptor) -> [UInt8]? {
    let bytes = try Self.descriptor(at: path)
    guard bytes != nil else { return nil }
    do throws(POSIXError) { try PrivateFile.checkOurs(path) } catch {
      switch error {
      case .otherOwner(let path): throw .otherOwner(path)
      case .writableByOthers(let path, let mode): throw .writableByOthers(path, mode: mode)
      default: throw .failed
      }
    }
    return bytes
  }

  /// Reads a descriptor; `nil` if the file does not exist. Throws if anything at the path cannot be read.
  @Sendable package static func descriptor(at path: String) throws(UnreadableDescriptor) -> [UInt8]? {
    do throws(POSIXError) {
      return try File.read(path, limit: 1 << 20, ordinary: true)
    } catch .notFound {
      if leadsNowhere(path) { throw .danglingLink }
      return nil
    } catch .permissionDenied {
      throw File.closedFolder(above: path).map(UnreadableDescriptor.closedFolder) ?? .permissionDenied
    } catch .notRegularFile {
      throw .notRegularFile
    } catch .tooLarge {
      throw .tooLarge
    } catch {
      throw .failed
    }
  }

  /// Whether a broken link is on the way to a path. The file may be absent only temporarily.
  private static func leadsNowhere(_ path: String) -> Bool {
    var path = path
    while !File.isLink(path) {
      guard let folder = Path.directory(of: path), folder != path, !File.exists(folder) else { return false }
      path = folder
    }
    return true
  }
}
