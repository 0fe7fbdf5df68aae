import CredentialManager
import Descriptors
import HTTP
import Platform
import Text
import Store

/// Something that `credmgr doctor` tells, because it does not work or is worth knowing.
enum SetUpFinding: Sendable, Equatable {
  /// What was looked at.
  enum Check: String, CaseIterable, Sendable {
    case home, vault, accounts, clock, browser, keyring, programs, git, docker, descriptors, hosts, rules, certificates
    case proxy, network
  }

  /// How it is.
  enum State: String, Sendable {
    /// As it should be.
    case well = "ok"
    /// Worth knowing; nothing has to be done.
    case note
    /// Something does not work, or will not.
    case problem
  }

  /// What gives a person a home that is writable.
  enum HomeRemedy: Sendable, Equatable {
    /// Takes a variable of the environment away.
    case unset(String)
    /// Sets one.
    case export(String, String)
    /// Takes a folder in which everybody can write.
    case anotherHome
    /// Gives the files to the person of this name or number; whether only the administrator can.
    case changeOwner([String], user: String, needsRoot: Bool)
    /// Lets the person write what is the person's own.
    case allowWriting(String)
  }

  /// Why another program's configuration cannot be used.
  enum FileFault: Sendable, Equatable {
    /// There is a folder, or whatever else is no file, in its place.
    case notFile
    /// It is a link to where nothing can be.
    case danglingLink
    /// We have no rights to it.
    case unreadable
    /// A variable of the environment names it, and there is no such folder.
    case nowhere(variable: String)
    /// The person's own folder, in which nothing can be written.
    case unwritable(folder: String)
  }

  // The home.

  /// There is none, or a relative one.
  case homeUnusable(CredentialError)
  /// Files that belong to other users.
  case foreignFiles([String], HomeRemedy)
  /// Something that others can read or write, or that is no folder; whether it is another's.
  case homeFault(POSIXError, needsRoot: Bool)
  /// A link in the place of the folder itself; what it leads to.
  case linkedHome(String, target: String?)
  /// A file or folder that cannot be made or written; where that ends.
  case unwritable(String, place: String, HomeRemedy)
  /// A file stands where a folder is to be.
  case blockedHome(String, HomeRemedy?)
  /// A folder that does not let the person through, or does not say what is in it; whether it is the person's own.
  case closedFolder(String, isOwn: Bool)
  /// The file system can only be read.
  case readOnlyHome(String, HomeRemedy)
  /// There is no room.
  case fullDisk(String)

  // The vault and what is in it.

  case noVault
  /// What opens it.
  case lockedVault([String])
  /// It cannot be used; where it is, and whether another way into it is open.
  case vault(StoreError, folder: String, opensOtherwise: Bool)
  /// A record that can be made anew.
  case damagedRecord(VaultFinding, RecordIdentifier)
  /// So many more of them.
  case moreDamage(Int, RecordIdentifier)
  /// What cannot be made anew.
  case damage([VaultFinding], folder: String)
  /// Other users can read the file of the passphrase.
  case readablePassphrase(String, mode: UInt32)
  /// The file of the passphrase is not there, or cannot be read.
  case passphraseFile(POSIXError, path: String)
  case accounts(CredentialError, folder: String)
  /// A token that has ended for good.
  case expired(provider: String, account: String)
  /// So many more of them, this one first.
  case moreExpired(Int, provider: String, account: String)
  case interrupted(Interruption, now: Int64)
  /// `CREDMGR_ACCOUNT` names nobody.
  case unknownAccount(String)

  // The machine.

  /// The clock is behind the moment of a token, by so many seconds.
  case lateClock(Int64)
  /// The clock is ahead of a server's, by so many seconds.
  case differentClock(Int64, host: String)
  case overSSH
  case noDisplay
  /// A variable names a display that is not there.
  case unknownDisplay(variable: String, value: String)
  case unknownBrowser(String)
  case noBrowser
  /// The desktop entry of a login that was killed; what it opens.
  case deadLogin(entry: String, schemes: [String])
  case noKernelKeyring
  /// The Secret Service does not have the key of the vault, or does not give it; the socket of a bus that is there all the same.
  case secretService(SecretServiceFault, bus: String?)
  case noOnlineProgram(Remedy)
  case noShippedDescriptors(String, Remedy)

  // git.

  /// The configuration into which git writes cannot be used.
  case gitFile(String, FileFault)
  /// git's own words, and the file and line that they name.
  case gitFails(words: String, file: String?, line: Int?)
  /// An empty helper sends ours away.
  case gitHelperSentAway(origin: String?, removal: Remedy?)
  case gitAsksFirst(String, host: String?, origin: String, removal: Remedy?)
  case gitTells(String, origin: String, removal: Remedy?)
  case gitAsksNobody([String], removal: Remedy?)
  /// A helper for all hosts is asked for these; ours is for others alone.
  case gitAsksAnother(String, [String], origin: String)
  /// A helper of these hosts alone.
  case gitAsksOwn(String, [String], origin: String, removal: Remedy?)
  case gitDoesNotAsk([String])
  case gitProgramMissing(String, origin: String, removal: Remedy?, program: String)
  case gitOtherProgram(String, program: String, removal: Remedy?)

  // docker.

  /// Its configuration cannot be used.
  case dockerFile(String, FileFault)
  case dockerUnreadable(String)
  case dockerDoesNotAsk([String])
  case dockerPasswords(String, [String])
  case dockerProgramMissing(program: String, link: String, needsRoot: Bool)
  case dockerOtherProgram(String, program: String, needsRoot: Bool)
  /// A helper of docker's that is not there, for these registries; for all where there are none.
  case dockerHelperMissing(String, [String])

  // Providers.

  case hidingDescriptor(String)
  case invalidDescriptor(ProviderError, path: String, isOwn: Bool)
  case lostDescriptor(String, hasAccounts: Bool)
  case changedDescriptor(provider: String, file: String, hosts: [NewHost])
  case unfitRegistration(String, CredentialError)
  case sharedHost(String, taken: String, other: String)
  case malformedRules([Finding], path: String)
  case unreadableRules(CredentialError, path: String)
  case ruleWithoutAccount(line: Int, path: String, provider: String, account: String)
  /// The provider that was probably meant.
  case ruleWithoutProvider(line: Int, path: String, provider: String, suggestion: String?)

  // The network.

  case certificateFolder(String)
  case certificateFile(String)
  case emptyCertificateFile(String)
  case noCertificates
  case unknownProxy(variable: String, shown: String)
  /// The variables of proxies that are set.
  case unreachable(HTTPError, host: String, provider: String, proxies: [String])
}

extension SetUpFinding {
  /// What was looked at.
  var check: Check {
    switch self {
    case .homeUnusable, .foreignFiles, .homeFault, .linkedHome, .unwritable, .blockedHome, .closedFolder, .readOnlyHome,
      .fullDisk:
      .home
    case .noVault, .lockedVault, .vault, .damagedRecord, .moreDamage, .damage, .readablePassphrase, .passphraseFile:
      .vault
    case .accounts, .expired, .moreExpired, .interrupted, .unknownAccount: .accounts
    case .lateClock, .differentClock: .clock
    case .overSSH, .noDisplay, .unknownDisplay, .unknownBrowser, .noBrowser, .deadLogin: .browser
    case .noKernelKeyring, .secretService: .keyring
    case .noOnlineProgram, .noShippedDescriptors: .programs
    case .gitFile, .gitFails, .gitHelperSentAway, .gitAsksFirst, .gitTells, .gitAsksNobody, .gitAsksAnother,
      .gitAsksOwn,
      .gitDoesNotAsk, .gitProgramMissing, .gitOtherProgram:
      .git
    case .dockerFile, .dockerUnreadable, .dockerDoesNotAsk, .dockerPasswords, .dockerProgramMissing,
      .dockerOtherProgram,
      .dockerHelperMissing:
      .docker
    case .hidingDescriptor, .invalidDescriptor, .lostDescriptor, .changedDescriptor, .unfitRegistration: .descriptors
    case .sharedHost: .hosts
    case .malformedRules, .unreadableRules, .ruleWithoutAccount, .ruleWithoutProvider: .rules
    case .certificateFolder, .certificateFile, .emptyCertificateFile, .noCertificates: .certificates
    case .unknownProxy: .proxy
    case .unreachable: .network
    }
  }

  /// Whether something does not work.
  var state: State {
    switch self {
    case .noVault, .lockedVault, .readablePassphrase, .interrupted, .overSSH, .noDisplay, .noKernelKeyring,
      .gitTells, .gitDoesNotAsk, .gitOtherProgram, .dockerDoesNotAsk, .dockerPasswords,
      .dockerOtherProgram, .hidingDescriptor, .sharedHost:
      .note
    default: .problem
    }
  }

  /// What a person is told, and the exit status of `credmgr doctor`.
  var message: Message {
    let status: ExitStatus =
      switch self {
      case .homeUnusable(let error), .accounts(let error, _): error.message.status
      case .vault, .damagedRecord, .moreDamage, .damage, .secretService: .vault
      case .expired, .moreExpired, .ruleWithoutAccount: .loginNeeded
      case .noOnlineProgram: .unexpected
      case .unreachable(let error, _, _, _): error.message().status
      default: .usage
      }
    return Message(sentence, hints: hints, status: status)
  }

  private var sentence: String {
    switch self {
    case .homeUnusable(let error): return error.message.text
    case .foreignFiles(let paths, _): return "\(some(paths)) \(paths.count == 1 ? "belongs" : "belong") to another user"
    case .homeFault(let error, _): return error.message.text
    case .linkedHome(let path, _): return POSIXError.symbolicLink(path: path).message.text
    case .unwritable(let path, let place, let remedy):
      let result = "\(quoted(path)) cannot be \(place == path ? "written" : "made"): "
      if case .allowWriting = remedy {
        return result + (place == path ? "its mode does not let you" : "the mode of \(quoted(place)) does not let you")
      }
      return result + (place == path ? "it" : quoted(place)) + " is not yours to write"
    case .closedFolder(let path, _): return POSIXError.permissionDenied(path: path).message.text
    case .blockedHome(let path, _): return "\(quoted(path)) is not a folder"
    case .readOnlyHome(let path, _): return POSIXError.readOnlyFileSystem(path: path).message.text
    case .fullDisk(let path): return "there is no room on the disk of \(quoted(path))"
    case .noVault: return "there is none yet; the first provider that you add makes one"
    case .lockedVault(let ways):
      return "it is locked, so that nothing in it was looked at; it opens with the "
        + ways.joined(separator: ", or the ")
    case .vault(let error, _, _): return error.message.text
    case .damagedRecord(let finding, _): return finding.sentence
    case .moreDamage(let count, _): return "\(count) more \(count == 1 ? "record is" : "records are") not as written"
    case .damage(let findings, _): return findings.map(\.sentence).joined(separator: "; ")
    case .readablePassphrase(let path, let mode):
      return "other users can read the passphrase in \(quoted(path)) (mode \(String(mode, radix: 8)))"
    case .passphraseFile(.endOfInput, let path):
      return "CREDMGR_PASSPHRASE_FILE names \(quoted(path)), in which there is no passphrase"
    case .passphraseFile(.notFound(let file), let path) where file == path:
      return "CREDMGR_PASSPHRASE_FILE names \(quoted(path)), and there is no such file"
    case .passphraseFile(let error, let path):
      return "CREDMGR_PASSPHRASE_FILE names \(quoted(path)): \(error.message.text)"
    case .accounts(let error, _): return error.message.text
    case .expired(let provider, let account):
      return "the token of \(quoted(account)) at \(quoted(provider)) has expired, and cannot be refreshed"
    case .moreExpired(let count, _, _): return "so it is with \(count) more \(count == 1 ? "account" : "accounts")"
    case .interrupted(let interruption, let now): return interruption.words(now: now)
    case .unknownAccount(let name): return "CREDMGR_ACCOUNT names \(quoted(name)), who is logged in nowhere"
    case .lateClock(let seconds):
      return "the clock is \(duration(seconds)) behind the moment at which a token was obtained"
    case .differentClock(let seconds, let host):
      return "the clock is \(duration(abs(seconds))) \(seconds < 0 ? "behind" : "ahead of") that of \(quoted(host))"
    case .overSSH:
      return "you are here by SSH: a login shows a code or an address for the browser on your own machine"
    case .noDisplay: return "there is no display: a login shows a code or an address for a browser elsewhere"
    case .unknownDisplay(let variable, let value):
      return "\(variable) is \(quoted(value)), and there is no such display, so that no browser can be shown"
    case .unknownBrowser(let command): return "BROWSER names \(quoted(command)), and there is no such command"
    case .noBrowser: return "there is no command that shows a browser"
    case .deadLogin(let entry, let schemes):
      return "a login that was killed still takes the addresses of \(some(schemes.map { $0 + ":" })) (\(entry))"
    case .noKernelKeyring: return "the kernel keeps no keys here, so that \"credmgr vault unlock\" does not work"
    case .secretService(let fault, _): return StoreError.secretService(fault).message.text
    case .noOnlineProgram: return CredentialError.networkNeeded.message.text
    case .noShippedDescriptors(let folder, _): return "there are no shipped descriptors in \(quoted(folder))"
    case .gitFile(let path, let fault): return "git cannot use \(quoted(path)): " + fault.words
    case .gitFails(let words, _, _): return "git cannot read its configuration" + (words.isEmpty ? "" : ": \(words)")
    case .gitHelperSentAway(let origin, _):
      return "an empty helper behind credmgr's sends it away" + (origin.map { " (\($0))" } ?? "")
    case .gitAsksFirst(let shown, let host, let origin, _):
      return "git asks the helper \(quoted(shown)) first" + (host.map { " for \(quoted($0))" } ?? "")
        + ", and tells it what credmgr answers (\(origin))"
    case .gitTells(let shown, let origin, _):
      return "git tells the helper \(quoted(shown)) what credmgr answers, for it to keep (\(origin))"
    case .gitAsksNobody(let hosts, _):
      return "git asks nobody for \(some(hosts)): its configuration sends all helpers away"
    case .gitAsksAnother(let shown, let hosts, let origin):
      return "git asks the helper \(quoted(shown)) for \(some(hosts)), and not credmgr (\(origin))"
    case .gitAsksOwn(let shown, let hosts, let origin, _):
      return "git asks the helper \(quoted(shown)) for \(some(hosts)), and not credmgr (\(origin))"
    case .gitDoesNotAsk(let hosts): return "git does not ask credmgr" + (hosts.isEmpty ? "" : " for " + some(hosts))
    case .gitProgramMissing(let file, let origin, _, _):
      return "git's configuration names \(quoted(file)), which is not there (\(origin))"
    case .gitOtherProgram(let file, let program, _):
      return "git asks \(quoted(file)), which is another credmgr than \(quoted(program))"
    case .dockerFile(let path, let fault): return "docker cannot use \(quoted(path)): " + fault.words
    case .dockerUnreadable(let path): return "\(quoted(path)) is no JSON object, and docker cannot read it, either"
    case .dockerDoesNotAsk(let hosts): return "docker does not ask credmgr for " + some(hosts)
    case .dockerPasswords(let path, let hosts):
      return "\(quoted(path)) has passwords that can be read, for " + some(hosts)
    case .dockerProgramMissing(_, let link, _):
      return "docker looks for \(quoted(Path.lastComponent(of: link))) in PATH, and there is none"
    case .dockerOtherProgram(let file, let program, _):
      return "docker asks \(quoted(file)), which is another credmgr than \(quoted(program))"
    case .dockerHelperMissing(let name, let hosts):
      return "docker looks for \(quoted("docker-credential-" + name)) in PATH"
        + (hosts.isEmpty ? "" : " for " + some(hosts)) + ", and there is none"
    case .hidingDescriptor(let path):
      return "\(quoted(path)) stands in the place of the shipped one, and takes nothing over from it"
    case .invalidDescriptor(.invalid(let findings), _, _): return listed(findings)
    case .invalidDescriptor(let error, _, _): return error.message.text
    case .lostDescriptor(let provider, _):
      return "the provider \(quoted(provider)) was added, and its descriptor is gone"
    case .changedDescriptor(let provider, let file, let hosts):
      return CredentialError.descriptorChanged(provider: provider, file: file, hosts: hosts).message.text
    case .unfitRegistration(let provider, let error):
      return "\(quoted(provider)) was added with other variables: " + error.message.text
    case .sharedHost(let host, let taken, let other):
      return "\(quoted(host)) is of \(quoted(taken)) and of \(quoted(other)); the first one is taken"
    case .malformedRules(let findings, _):
      return listed(findings)
    case .unreadableRules(let error, _): return error.message.text
    case .ruleWithoutAccount(let line, let path, _, let account):
      return "line \(line) of \(quoted(path)) names \(quoted(account)), who is not logged in"
    case .ruleWithoutProvider(let line, let path, let provider, let suggestion):
      return "line \(line) of \(quoted(path)) names the provider \(quoted(provider)), and there is none"
        + didYouMean(suggestion)
    case .certificateFolder(let path): return "SSL_CERT_DIR is \(quoted(path)), which is no folder"
    case .certificateFile(let path): return "SSL_CERT_FILE is \(quoted(path)), which cannot be read"
    case .emptyCertificateFile(let path): return "SSL_CERT_FILE is \(quoted(path)), in which there is no certificate"
    case .noCertificates: return "there are no certificates of authorities"
    case .unknownProxy(let variable, let shown):
      return "\(variable) is \(quoted(shown)), which is no proxy that is known"
    case .unreachable(let error, _, let provider, _): return error.message(provider: provider).text
    }
  }

  /// Each with its place.
  private func listed(_ findings: [Finding]) -> String {
    let shown = findings.prefix(Self.shownMistakes).map { finding in
      let place = finding.place
      return finding.isUnreadable
        ? finding.sentence : "\(place.source.name):\(place.line):\(place.column): \(finding.sentence)"
    }
    let rest = findings.count - shown.count
    return shown.joined(separator: "; ") + (rest > 0 ? "; and \(rest) more" : "")
  }

  private static let shownMistakes = 5
}

extension SetUpFinding.FileFault {
  fileprivate var words: String {
    switch self {
    case .notFile: "it is not an ordinary file"
    case .danglingLink: "it is a link to where nothing can be"
    case .unreadable: "permission denied"
    case .nowhere(let variable): "there is no such folder (\(variable))"
    case .unwritable(let folder): "nothing can be written in \(quoted(folder))"
    }
  }
}
