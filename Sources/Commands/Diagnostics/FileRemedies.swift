import Descriptors
import Platform
import Text
import Store

extension Remedy {
  /// A home that everybody can make, and that stays when the machine starts anew (hier(7)).
  static let anotherHome: Remedy =
    "\(shell: "export CREDMGR_HOME=/var/tmp/credmgr-$(id -u)"), or set it to another folder in which you can write"

  /// Puts something out of the way, from where it can be had back.
  static func settingAside(_ path: String) -> Remedy { "\(run: "mv", path, path + ".old")" }

  /// Lets a person into a file or folder. Where it is the system's, everybody is to read it.
  static func opening(_ path: String) -> Remedy {
    "\(run: (File.isOwn(path) == true ? ["chmod", "u+rwX"] : ["sudo", "chmod", "a+rX"]) + [path])"
  }

  /// Puts what a link leads to in its place; takes the link away where there is nothing to put there.
  static func replacingLink(_ link: String, by target: String?) -> Remedy {
    // A folder that stands for a file is none of ours.
    let isFile = link.hasSuffix(".db") || link.hasSuffix(".key")
    guard let target, !isFile || !File.isDirectory(target) else { return "\(run: "rm", link)" }
    return "\(all: [["rm", link], ["mv", target, link]]) to put there what it leads to"
  }

  /// Makes a vault of all that can be read in a damaged one, which stays beside it.
  ///
  /// - Parameter folder: that of the vault.
  static func rescuing(_ folder: String) -> Remedy {
    let file = "credmgr-rescued.json"
    let commands = [
      ["credmgr", "vault", "export", file], ["mv", folder, folder + ".old"], ["credmgr", "vault", "import", file],
    ]
    return "put it back with \(command: "credmgr", "vault", "restore", "FILE"), "
      + "or \(all: commands) to keep all that can be read, under a passphrase meanwhile"
  }

  /// Puts a vault in the place of one that cannot be mended.
  ///
  /// - Parameter folder: that of the vault.
  static func restoring(_ folder: String) -> Remedy {
    "put it back with \(command: "credmgr", "vault", "restore", "FILE"), "
      + "or \(settingAside(folder)) to begin with an empty one"
  }
}

func sudo(_ needsRoot: Bool) -> [String] { needsRoot ? ["sudo"] : [] }

extension UserEntry {
  /// What chown(1) takes for who runs the program.
  static var ownName: String { current(elsewhere: false)?.name ?? "\(identifier)" }
}

extension POSIXError {
  /// What gives a file or folder of ours the permissions that it is to have.
  func remedies(needsRoot: Bool = false) -> [Remedy] {
    let sudo = sudo(needsRoot)
    return switch self {
    case .readableByOthers(let path, _): ["\(run: sudo + ["chmod", "go=", path])"]
    case .writableByOthers(let path, _): ["\(run: sudo + ["chmod", "go-w", path])"]
    case .permissionDenied(let path): ["\(run: sudo + ["chmod", "u+rwX", File.closedPlace(path) ?? path])"]
    case .symbolicLink(let path): [.replacingLink(path, by: Path.resolved(path))]
    case .notDirectory(let path) where path == Environment.value("CREDMGR_HOME"): ["\(run: "unset", "CREDMGR_HOME")"]
    case .notRegularFile(let path), .notDirectory(let path): ["\(run: sudo + ["mv", path, path + ".old"])"]
    case .otherOwner(let path): ["\(run: "sudo", "chown", "-R", UserEntry.ownName, path)"]
    default: message.hints
    }
  }
}

extension StoreError {
  /// What lets the vault be used again, or one in its place.
  func remedies(_ folder: String, opensOtherwise: Bool = false) -> [Remedy] {
    switch self {
    case .keyFileMissing, .keyFileInvalid, .keyFileOfAnotherVault:
      return opensOtherwise
        ? ["\(credmgr: "vault", "protect", "key-file") to make a new one"]
        : ["put the key file back from a backup, or \(Remedy.settingAside(folder)) to begin with an empty vault"]
    case .notAVault, .truncated, .damaged, .damagedRecord, .inputOutput: return [.restoring(folder)]
    case .wrongPassphrase: return [Message.askingForPassphrase ?? Message.mendingPassphraseFile]
    case .file(let error): return error.remedies()
    case .readOnly(let path): return POSIXError.permissionDenied(path: path).remedies()
    default: return message.hints
    }
  }
}

extension SecretServiceFault {
  /// What makes the service give the key, or does without it where the vault opens otherwise.
  ///
  /// - Parameter bus: the socket of a bus that is there, and that the environment does not name.
  func remedy(unnamedBus bus: String? = nil) -> Remedy {
    let otherwise: Remedy = "\(credmgr: "vault", "protect", "secret-service", "--remove") to do without"
    return switch self {
    case .noBus:
      bus.map { "\(export: "DBUS_SESSION_BUS_ADDRESS", "unix:path=" + $0)" }
        ?? "come here through the desktop's session, or \(otherwise)"
    case .noService: "\(run: "sudo", "apt-get", "install", "gnome-keyring"), and log in to the desktop anew"
    case .locked: "unlock it on the desktop, or \(otherwise)"
    case .noKey: "\(credmgr: "vault", "protect", "secret-service") to give it a new one"
    case .timedOut, .failed: "mend the keyring of the desktop, or \(otherwise)"
    case .notInstalled: "\(run: "sudo", "apt-get", "install", "libsecret-tools")"
    }
  }
}

extension Finding {
  /// Whether the file itself is at fault, and not what stands in it.
  var isUnreadable: Bool {
    if case .unreadable = problem { true } else { false }
  }

  /// The file that is to be mended.
  var file: String {
    if case .unreadable(let path, _) = problem { path } else { place.source.name }
  }
}
