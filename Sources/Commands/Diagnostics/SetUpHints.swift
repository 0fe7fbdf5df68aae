import CredentialManager
import Descriptors
import HTTP
import Platform
import Text
import Vault

extension SetUpFinding {
  /// What mends it, a line each. A command stands in `run "…"`, and a shell takes it as it is.
  var hints: [String] {
    switch self {
    case .homeUnusable(let error): return error.message.hints
    case .foreignFiles(_, let remedy), .unwritable(_, _, let remedy), .readOnlyHome(_, let remedy): return [remedy.hint]
    case .blockedHome(let path, let remedy): return [remedy?.hint ?? Self.settingAside(path)]
    case .closedFolder(let path, let isOwn): return [Self.opening(path, isOwn: isOwn)]
    case .homeFault(let error, let needsRoot): return error.mending(needsRoot: needsRoot)
    case .linkedHome(let path, let target):
      // A folder that stands for a file is none of ours.
      let isFile = path.hasSuffix(".db") || path.hasSuffix(".key")
      guard let target, !isFile || !File.isDirectory(target) else { return ["run \"rm \(argument(path))\""] }
      return ["run \"rm \(argument(path)) && mv \(argument(target)) \(argument(path))\" to put there what it leads to"]
    case .fullDisk(let path): return ["make room there; \"df -h \(argument(path))\" shows how much there is"]
    case .noVault: return ["run \"credmgr providers\" to see which there are"]
    case .lockedVault: return ["run \"credmgr vault unlock\""]
    case .vault(let error, let folder, let opensOtherwise):
      return error.mending(folder, opensOtherwise: opensOtherwise)
    case .damagedRecord(_, let record), .moreDamage(_, let record): return [Message.mending(record)]
    case .damage(_, let folder): return [Self.rescuing(folder)]
    case .readablePassphrase(let path, _): return ["run \"chmod go= \(argument(path))\""]
    case .passphraseFile:
      return [Message.mendingPassphraseFile]
    case .accounts(let error, let folder):
      if case .vault(let error) = error { return error.mending(folder, opensOtherwise: false) }
      return error.message.hints
    case .expired(let provider, let account), .moreExpired(_, let provider, let account),
      .ruleWithoutAccount(_, _, let provider, let account):
      return ["run \"credmgr login \(provider) --account \(argument(account))\""]
    case .interrupted(let interruption, _): return [interruption.hint]
    case .unknownAccount: return ["run \"unset CREDMGR_ACCOUNT\""]
    case .lateClock, .differentClock: return ["run \"sudo timedatectl set-ntp true\""]
    case .overSSH, .noDisplay, .noKernelKeyring, .sharedHost: return []
    case .unknownDisplay(let variable, _): return ["run \"unset \(variable)\""]
    case .unknownBrowser: return ["run \"unset BROWSER\""]
    case .noBrowser:
      return [
        "run \"sudo apt-get install xdg-utils\", or set BROWSER",
        "run \"credmgr login ID --no-browser\", which prints an address",
      ]
    case .deadLogin(let entry, _): return ["run \"rm \(argument(entry))\""]
    case .secretService(let fault, let bus): return [fault.mending(bus)]
    case .noOnlineProgram(let installation),
      .noShippedDescriptors(_, let installation):
      return [installation.hint]
    case .gitFile(let path, let fault), .dockerFile(let path, let fault):
      switch fault {
      case .notFile: return [Self.settingAside(path)]
      case .danglingLink: return ["run \"rm \(argument(path))\""]
      case .unreadable: return [Self.opening(path, isOwn: true)]
      case .nowhere(let variable): return ["run \"unset \(variable)\""]
      case .unwritable(let folder): return [Self.opening(folder, isOwn: true)]
      }
    case .gitFails(_, let file, let line):
      guard let file, let line else { return ["run \"git config --list --show-origin\", and mend what it names"] }
      return [
        "correct line \(line), or run \"sed -i.old '\(line)s/^/# /' \(argument(file))\" to do without it"
      ]
    case .gitHelperSentAway(_, let removal), .gitAsksFirst(_, _, _, let removal), .gitTells(_, _, let removal),
      .gitAsksNobody(_, let removal), .gitAsksOwn(_, _, _, let removal):
      return [removal ?? Self.forgettingGitCommandLine]
    case .gitAsksAnother, .gitDoesNotAsk: return ["run \"credmgr git-setup\""]
    case .gitProgramMissing(_, _, let removal, let program), .gitOtherProgram(_, let program, let removal):
      return [removal ?? Self.forgettingGitCommandLine, "run \"\(argument(program)) git-setup\""]
    case .dockerUnreadable(let path): return ["correct it, or " + Self.settingAside(path)]
    case .dockerDoesNotAsk: return ["run \"credmgr docker-credential setup\""]
    case .dockerPasswords(_, let hosts):
      return hosts.prefix(5).map { "run \"docker logout \(argument($0))\"" }
    case .dockerProgramMissing(let program, let link, let needsRoot):
      return ["run \"\(needsRoot ? "sudo " : "")ln -s \(argument(program)) \(argument(link))\""]
    case .dockerOtherProgram(let file, let program, let needsRoot):
      return ["run \"\(needsRoot ? "sudo " : "")ln -sf \(argument(program)) \(argument(file))\""]
    case .dockerHelperMissing(_, let hosts):
      let registries = hosts.isEmpty ? "--all" : hosts.map(argument).joined(separator: " ")
      return ["install it, or run \"credmgr docker-credential setup \(registries)\" to let docker ask credmgr instead"]
    case .hidingDescriptor(let path): return [Self.settingAside(path) + " to take the shipped one"]
    case .invalidDescriptor(let error, let path, let isOwn):
      guard case .invalid(let findings) = error, isOwn else { return ["run \"credmgr check \(argument(path))\""] }
      // Where it cannot be read there is nothing to correct in it.
      let seeing =
        findings.contains(where: \.isUnreadable) ? "" : "run \"credmgr check \(argument(path))\", and correct it"
      return [seeing, "to do without it, " + Self.settingAside(path)].filter { !$0.isEmpty }
    case .lostDescriptor(let provider, let hasAccounts):
      let logout = hasAccounts ? "credmgr logout \(provider) --all --keep-remote && " : ""
      return [
        "put it back with \"credmgr add-provider FILE --as \(provider) --replace\", "
          + "or run \"\(logout)credmgr remove-provider \(provider)\" to forget the provider"
      ]
    case .changedDescriptor(let provider, let file, let hosts):
      return CredentialError.descriptorChanged(provider: provider, file: file, hosts: hosts).message.hints
    case .unfitRegistration(let provider, let error):
      guard case .provider(.missingVariable(let variable)) = error else {
        return ["run \"credmgr add-provider \(provider) --replace\""]
      }
      let value = variable.isSecret ? "@FILE" : "VALUE"
      return ["run \"credmgr add-provider \(provider) --replace --set \(variable.name)=\(value)\""]
    case .malformedRules(_, let path):
      return ["correct it, or " + Self.settingAside(path) + " to do without rules"]
    case .unreadableRules(_, let path): return [Self.settingAside(path) + " to do without rules"]
    case .ruleWithoutProvider(let line, let path, let provider, let suggestion):
      guard let suggestion else { return ["correct it, or " + Self.settingAside(path) + " to do without rules"] }
      return ["run \"sed -i.old '\(line)s/\(provider)/\(suggestion)/' \(argument(path))\""]
    case .certificateFolder: return ["run \"unset SSL_CERT_DIR\""]
    case .certificateFile, .emptyCertificateFile: return ["run \"unset SSL_CERT_FILE\""]
    case .noCertificates:
      return ["run \"sudo apt-get install ca-certificates\", or set SSL_CERT_FILE to a file of them"]
    case .unknownProxy(let variable, _): return ["run \"unset \(variable)\""]
    case .unreachable(let error, let host, let provider, let proxies): return [error.mending(host, provider, proxies)]
    }
  }

  /// Puts something out of the way, from where it can be had back.
  static func settingAside(_ path: String) -> String {
    "run \"mv \(argument(path)) \(argument(path + ".old"))\""
  }

  /// What lets a person into a folder.
  static func opening(_ folder: String, isOwn: Bool) -> String {
    // Where it is the system's, everybody is to read it.
    "run \"\(isOwn ? "chmod u+rwX" : "sudo chmod a+rX") \(argument(folder))\""
  }

  static func opening(_ folder: String) -> String { opening(folder, isOwn: File.isOwn(folder) == true) }

  /// What makes a vault of all that can be read in a damaged one, which stays beside it.
  ///
  /// - Parameter folder: that of the vault.
  static func rescuing(_ folder: String) -> String {
    let (old, file) = (argument(folder + ".old"), "credmgr-rescued.json")
    return "put it back with \"credmgr vault restore FILE\", or run \"credmgr vault export \(file) "
      + "&& mv \(argument(folder)) \(old) && credmgr vault import \(file)\" to keep all that can be read, under a passphrase meanwhile"
  }

  /// What puts a vault in the place of one that cannot be mended.
  ///
  /// - Parameter folder: that of the vault.
  static func restoring(_ folder: String) -> String {
    "put it back with \"credmgr vault restore FILE\", or \(settingAside(folder)) to begin with an empty one"
  }

  /// What git was told for this time alone stands in variables (git(1)).
  private static let forgettingGitCommandLine = "run \"unset GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS\""
}

extension SetUpFinding.HomeRemedy {
  fileprivate var hint: String {
    switch self {
    case .unset(let variable): "run \"unset \(variable)\""
    case .anotherHome: Message.anotherHome
    case .export(let variable, let value): "run \"export \(variable)=\(argument(value))\""
    case .changeOwner(let paths, let user, let needsRoot):
      "run \"\(needsRoot ? "sudo " : "")chown -R \(argument(user)) \(paths.map(argument).joined(separator: " "))\""
    case .allowWriting(let path): "run \"chmod u+rwX \(argument(path))\""
    }
  }
}

extension SetUpFinding.Installation {
  /// What brings it whole.
  var hint: String {
    switch self {
    case .sources(let folder): "run \"swift build --package-path \(argument(folder))\""
    case .package(let file): "install the package again: run \"sudo dpkg -i \(file)\" where it is"
    case .archive(let file, let folder):
      "unpack the archive again: run \"tar -xf \(file) --strip-components=1 -C \(argument(folder))\" where it is"
    }
  }
}

extension POSIXError {
  /// What gives a file or folder of ours the permissions that it is to have.
  func mending(needsRoot: Bool) -> [String] {
    let sudo = needsRoot ? "sudo " : ""
    return switch self {
    case .readableByOthers(let path, _): ["run \"\(sudo)chmod go= \(argument(path))\""]
    case .writableByOthers(let path, _): ["run \"\(sudo)chmod go-w \(argument(path))\""]
    case .permissionDenied(let path):
      ["run \"\(sudo)chmod u+rwX \(argument(File.closedPlace(path) ?? path))\""]
    case .symbolicLink(let path): SetUpFinding.linkedHome(path, target: Path.resolved(path)).hints
    case .notDirectory(let path) where path == Environment.value("CREDMGR_HOME"): ["run \"unset CREDMGR_HOME\""]
    case .notRegularFile(let path), .notDirectory(let path):
      ["run \"\(sudo)mv \(argument(path)) \(argument(path + ".old"))\""]
    case .otherOwner(let path):
      [
        "run \"sudo chown -R \(argument(UserEntry.current(elsewhere: false)?.name ?? "\(UserEntry.identifier)")) \(argument(path))\""
      ]
    default: message.hints
    }
  }
}

extension VaultError {
  /// What lets the vault be used again, or one in its place.
  func mending(_ folder: String, opensOtherwise: Bool) -> [String] {
    switch self {
    case .keyFileMissing, .keyFileInvalid, .keyFileOfAnotherVault:
      return opensOtherwise
        ? ["run \"credmgr vault protect key-file\" to make a new one"]
        : [
          "put the key file back from a backup, "
            + "or run \"mv \(argument(folder)) \(argument(folder + ".old"))\" to begin with an empty vault"
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
  func mending(_ bus: String?) -> String {
    let otherwise = "run \"credmgr vault protect secret-service --remove\" to do without"
    return switch self {
    case .noBus:
      bus.map { "run \"export DBUS_SESSION_BUS_ADDRESS=unix:path=\(argument($0))\"" }
        ?? "come here through the desktop's session, or " + otherwise
    case .noService: "run \"sudo apt-get install gnome-keyring\", and log in to the desktop anew"
    case .locked: "unlock it on the desktop, or " + otherwise
    case .noKey: "run \"credmgr vault protect secret-service\" to give it a new one"
    case .timedOut, .failed: "mend the keyring of the desktop, or " + otherwise
    case .notInstalled: "run \"sudo apt-get install libsecret-tools\""
    }
  }
}

extension HTTPError {
  fileprivate func mending(_ host: String, _ provider: String, _ proxies: [String]) -> String {
    let name = argument(host)
    if !proxies.isEmpty {
      switch self {
      case .unreachable(_, .proxy), .unreachable(_, .connectionRefused), .unreachable(_, .nameNotResolved),
        .unreachable(_, .timedOut):
        return "correct the proxy, or run \"unset \(proxies.joined(separator: " "))\" to do without it"
      default: break
      }
    }
    switch self {
    case .unreachable(_, .tls):
      return "run \"sudo apt-get install --reinstall ca-certificates\", or see \"curl -v https://\(name)/\""
    case .unreachable(_, .nameNotResolved):
      return "connect this machine; \"getent hosts \(name)\" shows when the name is known"
    default: return "compare the addresses that \"credmgr providers \(provider)\" shows with the provider's own page"
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
