import Platform
import Descriptors

/// Where everything lies: one folder with `CREDMGR_HOME`, else the folders of the XDG base directory specification.
package struct Home: Sendable, Equatable {
  package let configuration: String
  package let vault: String
  /// Computed when asked for: with a valid token, none of them is needed.
  package var systemProviders: [String] { [Self.systemFolder] + Self.shippedProviders(executable) }
  static let systemFolder = "/etc/credmgr/providers"
  package let person: String?  // `nil` where neither `HOME` nor the system says it.
  /// Where processes of a login meet, and what processes were given last. Empty after a restart, if the system can.
  let runtime: String
  let desktop: SchemeHandler.Desktop?
  let executable: String

  /// The shipped descriptors are looked for beside `executable`. `ownHome` is what the system says where `HOME` does
  /// not; its argument tells whether nothing goes without.
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
    // proc(5): nobody makes a file there.
    (configuration, vault, runtime) = ("/proc/credmgr/config", "/proc/credmgr/vault", "/proc/credmgr/run")
    (person, desktop) = (nil, nil)
    self.executable = executable
  }

  /// For a program in `PREFIX/bin` or `PREFIX/libexec/credmgr`, or just built, in a `.build` folder beside `providers`.
  private static func shippedProviders(_ executable: String) -> [String] {
    var components = executable.split(separator: "/").dropLast()
    if let build = components.firstIndex(of: ".build") {
      return [components[..<build].map { "/" + $0 }.joined() + "/providers"]
    }
    if components.last == "credmgr" { components = components.dropLast() }
    return [components.dropLast().map { "/" + $0 }.joined() + "/share/credmgr/providers"]
  }

  /// A program that lies beside another one, or in `libexec/credmgr` of the same prefix; `nil` if there is none.
  package static func sibling(_ name: String, of executable: String) -> String? {
    let folder = Path.directory(of: executable) ?? "/"
    return [folder + "/" + name, (Path.directory(of: folder) ?? "") + "/libexec/credmgr/" + name].first {
      File.isExecutable($0)
    }
  }

  package var userProviders: String { configuration + "/providers" }

  package var accountRules: String { configuration + "/accounts.yaml" }

  /// What a process was given; a few processes share a file, so that they do not become many.
  func repeatedRequest(_ process: Int32) -> String { runtime + "/asked-\(process % 64)" }

  package var library: DescriptorLibrary {
    DescriptorLibrary(directories: [userProviders] + systemProviders, read: readDescriptor)
  }

  /// The same, with some files as they are about to be.
  func library(replacing files: [String: [UInt8]]) -> DescriptorLibrary {
    DescriptorLibrary(directories: library.directories) { name throws(UnreadableDescriptor) in
      if let bytes = files[name] { return bytes }
      return try readDescriptor(name)
    }
  }

  /// The descriptors that came with the program or the system.
  var shippedLibrary: DescriptorLibrary { DescriptorLibrary(directories: systemProviders, read: Self.descriptor) }

  /// As `descriptor(at:)`; a file that another user can change is refused, as the vault is.
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

  /// `nil` when there is no such file; an error for what stands in its place and cannot be read.
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

  /// Whether a link on the way to a path leads to nothing: the file may be absent only for now.
  private static func leadsNowhere(_ path: String) -> Bool {
    var path = path
    while !File.isLink(path) {
      guard let folder = Path.directory(of: path), folder != path, !File.exists(folder) else { return false }
      path = folder
    }
    return true
  }
}
