import CredentialManager
import Descriptors
import HTTP
import Platform
import Text
import Store

extension SetUpFinding {
  /// What mends it, a line each. A command stands in `run "…"`, and a shell takes it as it is.
  var hints: [Remedy] {
    switch self {
    case .homeUnusable(let error): return error.message.hints
    case .foreignFiles(_, let remedy), .unwritable(_, _, let remedy), .readOnlyHome(_, let remedy): return [remedy.hint]
    case .blockedHome(let path, let remedy): return [remedy?.hint ?? Self.settingAside(path)]
    case .closedFolder(let path, let isOwn): return [Self.opening(path, isOwn: isOwn)]
    case .homeFault(let error, let needsRoot): return error.mending(needsRoot: needsRoot)
    case .linkedHome(let path, let target):
      // A folder that stands for a file is none of ours.
      let isFile = path.hasSuffix(".db") || path.hasSuffix(".key")
      guard let target, !isFile || !File.isDirectory(target) else { return ["\(run: "rm", path)"] }
      return ["\(all: [["rm", path], ["mv", target, path]]) to put there what it leads to"]
    case .fullDisk(let path): return ["make room there; \(command: "df", "-h", path) shows how much there is"]
    case .noVault: return ["\(credmgr: "providers") to see which there are"]
    case .lockedVault: return ["\(credmgr: "vault", "unlock")"]
    case .vault(let error, let folder, let opensOtherwise):
      return error.mending(folder, opensOtherwise: opensOtherwise)
    case .damagedRecord(_, let record), .moreDamage(_, let record): return [record.remedy()]
    case .damage(_, let folder): return [Self.rescuing(folder)]
    case .readablePassphrase(let path, _): return ["\(run: "chmod", "go=", path)"]
    case .passphraseFile:
      return [Message.mendingPassphraseFile]
    case .accounts(let error, let folder):
      if case .vault(let error) = error { return error.mending(folder, opensOtherwise: false) }
      return error.message.hints
    case .expired(let provider, let account), .moreExpired(_, let provider, let account),
      .ruleWithoutAccount(_, _, let provider, let account):
      return ["\(credmgr: "login", provider, "--account", account)"]
    case .interrupted(let interruption, _): return [interruption.remedy]
    case .unknownAccount: return ["\(run: "unset", "CREDMGR_ACCOUNT")"]
    case .lateClock, .differentClock: return ["\(run: "sudo", "timedatectl", "set-ntp", "true")"]
    case .overSSH, .noDisplay, .noKernelKeyring, .sharedHost: return []
    case .unknownDisplay(let variable, _): return ["\(run: "unset", variable)"]
    case .unknownBrowser: return ["\(run: "unset", "BROWSER")"]
    case .noBrowser:
      return [
        "\(run: "sudo", "apt-get", "install", "xdg-utils"), or set BROWSER",
        "\(credmgr: "login", "ID", "--no-browser"), which prints an address",
      ]
    case .deadLogin(let entry, _): return ["\(run: "rm", entry)"]
    case .secretService(let fault, let bus): return [fault.mending(bus)]
    case .noOnlineProgram(let installation),
      .noShippedDescriptors(_, let installation):
      return [installation]
    case .gitFile(let path, let fault), .dockerFile(let path, let fault):
      switch fault {
      case .notFile: return [Self.settingAside(path)]
      case .danglingLink: return ["\(run: "rm", path)"]
      case .unreadable: return [Self.opening(path, isOwn: true)]
      case .nowhere(let variable): return ["\(run: "unset", variable)"]
      case .unwritable(let folder): return [Self.opening(folder, isOwn: true)]
      }
    case .gitFails(_, let file, let line):
      guard let file, let line else {
        return ["\(run: "git", "config", "--list", "--show-origin"), and mend what it names"]
      }
      return [
        "correct line \(line), or \(run: "sed", "-i.old", "\(line)s/^/# /", file) to do without it"
      ]
    case .gitHelperSentAway(_, let removal), .gitAsksFirst(_, _, _, let removal), .gitTells(_, _, let removal),
      .gitAsksNobody(_, let removal), .gitAsksOwn(_, _, _, let removal):
      return [removal ?? Self.forgettingGitCommandLine]
    case .gitAsksAnother, .gitDoesNotAsk: return ["\(credmgr: "git-setup")"]
    case .gitProgramMissing(_, _, let removal, let program), .gitOtherProgram(_, let program, let removal):
      return [removal ?? Self.forgettingGitCommandLine, "\(run: program, "git-setup")"]
    case .dockerUnreadable(let path): return ["correct it, or \(Self.settingAside(path))"]
    case .dockerDoesNotAsk: return ["\(credmgr: "docker-credential", "setup")"]
    case .dockerPasswords(_, let hosts):
      return hosts.prefix(5).map { "\(run: "docker", "logout", $0)" }
    case .dockerProgramMissing(let program, let link, let needsRoot):
      return ["\(run: sudo(needsRoot) + ["ln", "-s", program, link])"]
    case .dockerOtherProgram(let file, let program, let needsRoot):
      return ["\(run: sudo(needsRoot) + ["ln", "-sf", program, file])"]
    case .dockerHelperMissing(_, let hosts):
      let setup = ["docker-credential", "setup"] + (hosts.isEmpty ? ["--all"] : hosts)
      return ["install it, or \(credmgr: setup) to let docker ask credmgr instead"]
    case .hidingDescriptor(let path): return ["\(Self.settingAside(path)) to take the shipped one"]
    case .invalidDescriptor(let error, let path, let isOwn):
      guard case .invalid(let findings) = error, isOwn else { return ["\(credmgr: "check", path)"] }
      // Where it cannot be read there is nothing to correct in it.
      let seeing: [Remedy] =
        findings.contains(where: \.isUnreadable) ? [] : ["\(credmgr: "check", path), and correct it"]
      return seeing + ["to do without it, \(Self.settingAside(path))"]
    case .lostDescriptor(let provider, let hasAccounts):
      let logout = hasAccounts ? [["credmgr", "logout", provider, "--all", "--keep-remote"]] : []
      return [
        "put it back with \(command: "credmgr", "add-provider", "FILE", "--as", provider, "--replace"), "
          + "or \(all: logout + [["credmgr", "remove-provider", provider]]) to forget the provider"
      ]
    case .changedDescriptor(let provider, let file, let hosts):
      return CredentialError.descriptorChanged(provider: provider, file: file, hosts: hosts).message.hints
    case .unfitRegistration(let provider, let error):
      guard case .provider(.missingVariable(let variable)) = error else {
        return ["\(credmgr: "add-provider", provider, "--replace")"]
      }
      let value = variable.isSecret ? "@FILE" : "VALUE"
      return ["\(credmgr: "add-provider", provider, "--replace", "--set", "\(variable.name)=\(value)")"]
    case .malformedRules(_, let path):
      return ["correct it, or \(Self.settingAside(path)) to do without rules"]
    case .unreadableRules(_, let path): return ["\(Self.settingAside(path)) to do without rules"]
    case .ruleWithoutProvider(let line, let path, let provider, let suggestion):
      guard let suggestion else { return ["correct it, or \(Self.settingAside(path)) to do without rules"] }
      return ["\(run: "sed", "-i.old", "\(line)s/\(provider)/\(suggestion)/", path)"]
    case .certificateFolder: return ["\(run: "unset", "SSL_CERT_DIR")"]
    case .certificateFile, .emptyCertificateFile: return ["\(run: "unset", "SSL_CERT_FILE")"]
    case .noCertificates:
      return ["\(run: "sudo", "apt-get", "install", "ca-certificates"), or set SSL_CERT_FILE to a file of them"]
    case .unknownProxy(let variable, _): return ["\(run: "unset", variable)"]
    case .unreachable(let error, let host, let provider, let proxies): return [error.mending(host, provider, proxies)]
    }
  }

  /// Puts something out of the way, from where it can be had back.
  static func settingAside(_ path: String) -> Remedy {
    "\(run: "mv", path, path + ".old")"
  }

  /// What lets a person into a folder.
  static func opening(_ folder: String, isOwn: Bool) -> Remedy {
    // Where it is the system's, everybody is to read it.
    "\(run: (isOwn ? ["chmod", "u+rwX"] : ["sudo", "chmod", "a+rX"]) + [folder])"
  }

  static func opening(_ folder: String) -> Remedy { opening(folder, isOwn: File.isOwn(folder) == true) }

  /// What makes a vault of all that can be read in a damaged one, which stays beside it.
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

  /// What puts a vault in the place of one that cannot be mended.
  ///
  /// - Parameter folder: that of the vault.
  static func restoring(_ folder: String) -> Remedy {
    "put it back with \(command: "credmgr", "vault", "restore", "FILE"), "
      + "or \(settingAside(folder)) to begin with an empty one"
  }

  /// What git was told for this time alone stands in variables (git(1)).
  private static let forgettingGitCommandLine: Remedy =
    "\(run: "unset", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS")"
}

extension SetUpFinding.HomeRemedy {
  fileprivate var hint: Remedy {
    switch self {
    case .unset(let variable): "\(run: "unset", variable)"
    case .anotherHome: .anotherHome
    case .export(let variable, let value): "\(export: variable, value)"
    case .changeOwner(let paths, let user, let needsRoot):
      "\(run: sudo(needsRoot) + ["chown", "-R", user] + paths)"
    case .allowWriting(let path): "\(run: "chmod", "u+rwX", path)"
    }
  }
}

private func sudo(_ needsRoot: Bool) -> [String] { needsRoot ? ["sudo"] : [] }

extension POSIXError {
  /// What gives a file or folder of ours the permissions that it is to have.
  func mending(needsRoot: Bool) -> [Remedy] {
    let sudo = sudo(needsRoot)
    return switch self {
    case .readableByOthers(let path, _): ["\(run: sudo + ["chmod", "go=", path])"]
    case .writableByOthers(let path, _): ["\(run: sudo + ["chmod", "go-w", path])"]
    case .permissionDenied(let path):
      ["\(run: sudo + ["chmod", "u+rwX", File.closedPlace(path) ?? path])"]
    case .symbolicLink(let path): SetUpFinding.linkedHome(path, target: Path.resolved(path)).hints
    case .notDirectory(let path) where path == Environment.value("CREDMGR_HOME"): ["\(run: "unset", "CREDMGR_HOME")"]
    case .notRegularFile(let path), .notDirectory(let path):
      ["\(run: sudo + ["mv", path, path + ".old"])"]
    case .otherOwner(let path):
      [
        "\(run: "sudo", "chown", "-R", UserEntry.current(elsewhere: false)?.name ?? "\(UserEntry.identifier)", path)"
      ]
    default: message.hints
    }
  }
}

extension StoreError {
  /// What lets the vault be used again, or one in its place.
  func mending(_ folder: String, opensOtherwise: Bool) -> [Remedy] {
    switch self {
    case .keyFileMissing, .keyFileInvalid, .keyFileOfAnotherVault:
      return opensOtherwise
        ? ["\(credmgr: "vault", "protect", "key-file") to make a new one"]
        : [
          "put the key file back from a backup, "
            + "or \(run: "mv", folder, folder + ".old") to begin with an empty vault"
        ]
    case .notAVault, .truncated, .damaged, .damagedRecord, .inputOutput: return [SetUpFinding.restoring(folder)]
    case .wrongPassphrase:
      return [Message.askingForPassphrase ?? Message.mendingPassphraseFile]
    case .file(let error): return error.mending(needsRoot: false)
    case .readOnly(let path): return POSIXError.permissionDenied(path: path).mending(needsRoot: false)
    case .secretService(let fault): return [fault.mending(nil)]
    default: return message.hints
    }
  }
}

extension SecretServiceFault {
  /// What makes the service give the key, or does without it where the vault opens otherwise.
  ///
  /// - Parameter bus: the socket of a bus that is there, and that the environment does not name.
  func mending(_ bus: String?) -> Remedy {
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

extension HTTPError {
  fileprivate func mending(_ host: String, _ provider: String, _ proxies: [String]) -> Remedy {
    if !proxies.isEmpty {
      switch self {
      case .unreachable(_, .proxy), .unreachable(_, .connectionRefused), .unreachable(_, .nameNotResolved),
        .unreachable(_, .timedOut):
        return "correct the proxy, or \(run: ["unset"] + proxies) to do without it"
      default: break
      }
    }
    switch self {
    case .unreachable(_, .tls):
      return "\(run: "sudo", "apt-get", "install", "--reinstall", "ca-certificates"), or see "
        + "\(command: "curl", "-v", "https://\(host)/")"
    case .unreachable(_, .nameNotResolved):
      return "connect this machine; \(command: "getent", "hosts", host) shows when the name is known"
    default: return comparing(provider)
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
