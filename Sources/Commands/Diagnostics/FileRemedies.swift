import Glibc
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

/// Remedies that depend on files and the environment, which `Messages` never reads.
extension Context {
  /// Replaces each remedy that depends on a file with a command.
  func resolved(_ remedies: [Remedy]) -> [Remedy] {
    remedies.compactMap { remedy in
      if case .mending(let fault, let path) = remedy.parts.first { mending(fault, path) } else { remedy }
    }
  }

  private func mending(_ fault: POSIXError, _ path: String) -> Remedy? {
    let sudo = File.isOwn(path) == false ? sudo : []
    switch fault {
    case .readableByOthers: return "\(run: sudo + ["chmod", "go=", path])"
    case .writableByOthers: return "\(run: sudo + ["chmod", "go-w", path])"
    case .system(_, _, ENOSPC), .system(_, _, EDQUOT): return .makingRoom(in: File.existing(path))
    case .symbolicLink: return isOurs(path) ? replacingLink(path) : nil
    case .notDirectory where path == environment("CREDMGR_HOME"): return "\(run: "unset", "CREDMGR_HOME")"
    // A directory that contains the user's own files is never in the way.
    case .notRegularFile where !isInside(path): return nil
    case .notRegularFile, .notDirectory: return isOurs(path) ? .settingAside(path) : .mending(fault, at: path)
    case .otherOwner: return isOurs(path) ? ownership([path]) : .mending(fault, at: path)
    default: break
    }
    let place = File.existing(path)
    if fault == .readOnlyFileSystem(path: path) || File.isOnReadOnlyFileSystem(place) {
      return isOurs(path) ? usableHome : "\(run: "findmnt", "-T", place) to see how it is mounted"
    }
    if let closed = File.closedPlace(path) { return "\(run: "chmod", "u+rwX", closed)" }
    // Nothing works in another user's home.
    if let person = home.person, File.isOwn(person) == false, path.hasPrefix(person + "/") { return usableHome }
    if case .system = fault { return .anotherHome }
    return isOurs(path) ? ownership([path]) : .mending(fault, at: place)
  }

  private func isInside(_ path: String) -> Bool {
    [home.configuration, home.vault].contains { path.hasPrefix($0 + "/") }
  }

  private func isOurs(_ path: String) -> Bool {
    [home.configuration, home.vault].contains { place in
      path == "/" || path == place || path.hasPrefix(place + "/") || place.hasPrefix(path + "/")
    }
  }

  /// Replaces a link with its target if the user owns the target and it has the right kind.
  private func replacingLink(_ link: String) -> Remedy {
    let isFile = link.hasSuffix(".db") || link.hasSuffix(".key")
    guard let target = Path.resolved(link), File.isOwn(target) == true, File.isDirectory(target) != isFile else {
      return "\(run: "rm", link)"
    }
    return "\(all: [["rm", link], ["mv", target, link]]) to replace the link with its target"
  }

  /// Returns a remedy for files of another user. In the user's own home, that changes the owner; otherwise, the home is
  /// wrong.
  func ownership(_ paths: [String]) -> Remedy {
    let own = [environment("CREDMGR_HOME"), home.person].compactMap { $0 }
    let isOurs = paths.allSatisfy { path in own.contains { path.hasPrefix($0 + "/") && File.isOwn($0) == true } }
    guard isOurs else { return usableHome }
    let tops = paths.filter { path in !paths.contains { path.hasPrefix($0 + "/") } }
    let owner = UserEntry.current(elsewhere: false)?.name ?? "\(UserEntry.identifier)"
    return "\(run: sudo + ["chown", "-R", owner] + tops)"
  }

  private var usableHome: Remedy {
    func isUsable(_ home: String) -> Bool { File.isOwn(home) == true && File.isWritable(home) }
    if Environment.text("CREDMGR_HOME", environment) != nil, let person = home.person, isUsable(person) {
      return "\(run: "unset", "CREDMGR_HOME")"
    }
    if let own = UserEntry.current(elsewhere: true)?.home, own != home.person, isUsable(own) {
      return "\(export: "HOME", own)"
    }
    return .anotherHome
  }

  var sudo: [String] { UserEntry.identifier == 0 ? [] : ["sudo"] }

  var passphraseSource: PassphraseSource {
    if let path = Environment.text("CREDMGR_PASSPHRASE_FILE", environment) { return .file(path) }
    return Environment.text("CREDMGR_PASSPHRASE_COMMAND", environment) == nil ? .person : .command
  }

  /// Returns why another program cannot replace its configuration file; `nil` if it can.
  func obstacle(to path: String) -> FileFault? {
    if File.isDirectory(path) { return .notFile(path) }
    if File.isLink(path), !File.exists(path) {
      return FileFault(words: "it is a broken link", remedy: "\(run: "rm", path) to remove the link")
    }
    let folder = Path.directory(of: Path.resolved(path) ?? path) ?? "."
    if !File.exists(folder) {
      let words = "directory \(quoted(folder)) not found"
      return FileFault(words: words, remedy: "\(run: "mkdir", "-p", folder)", isOfFolder: true)
    }
    if File.exists(path + ".lock") {
      let remedy: Remedy = "if no other git is running, \(run: "rm", path + ".lock")"
      return FileFault(words: "another program is changing it", remedy: remedy)
    }
    for place in [path, folder] where File.isOwn(place) == true && !File.isWritable(place) {
      let remedy = resolved([.mending(.permissionDenied(path: place), at: place)])[0]
      return FileFault(words: "cannot write in \(quoted(place))", remedy: remedy, isOfFolder: true)
    }
    return nil
  }
}

/// Why another program's configuration cannot be used.
struct FileFault {
  let words: String
  let remedy: Remedy
  /// Whether only the directory is read-only, which matters only for writing.
  var isOfFolder = false

  static func notFile(_ path: String) -> FileFault {
    FileFault(words: "it is not a regular file", remedy: .settingAside(path))
  }
}
