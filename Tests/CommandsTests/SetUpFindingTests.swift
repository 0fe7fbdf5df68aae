@testable import Commands
import HTTP
import Platform
import Descriptors
import Testing
import Store
import YAML

@testable import CredentialManager

/// All that `credmgr doctor` can tell. What does not work comes with a command that mends it.
struct SetUpFindingTests {
  /// One name a case. A case that is new has to get one, and a place in the list.
  private enum Kind: CaseIterable {
    case homeUnusable, foreignFiles, homeFault, linkedHome, unwritable, blockedHome, closedFolder, readOnlyHome,
      fullDisk, noVault,
      lockedVault, vault, damagedRecord, moreDamage, damage, readablePassphrase, passphraseFile, accounts, expired,
      moreExpired, interrupted, unknownAccount, lateClock, differentClock, overSSH, noDisplay, unknownDisplay,
      unknownBrowser, noBrowser, deadLogin, noKernelKeyring, secretService, noOnlineProgram,
      noShippedDescriptors, gitFile, dockerFile, gitFails, gitHelperSentAway, gitAsksFirst, gitTells, gitAsksNobody,
      gitAsksAnother,
      gitAsksOwn,
      gitDoesNotAsk, gitProgramMissing, gitOtherProgram, dockerUnreadable, dockerDoesNotAsk, dockerPasswords,
      dockerProgramMissing, dockerOtherProgram, dockerHelperMissing, hidingDescriptor, invalidDescriptor,
      lostDescriptor,
      changedDescriptor, unfitRegistration, sharedHost, malformedRules, unreadableRules, ruleWithoutAccount,
      ruleWithoutProvider,
      certificateFolder, certificateFile, emptyCertificateFile, noCertificates, unknownProxy, unreachable
  }

  private static func kind(_ finding: SetUpFinding) -> Kind {
    switch finding {
    case .homeUnusable: .homeUnusable
    case .foreignFiles: .foreignFiles
    case .homeFault: .homeFault
    case .linkedHome: .linkedHome
    case .unwritable: .unwritable
    case .blockedHome: .blockedHome
    case .closedFolder: .closedFolder
    case .readOnlyHome: .readOnlyHome
    case .fullDisk: .fullDisk
    case .noVault: .noVault
    case .lockedVault: .lockedVault
    case .vault: .vault
    case .damagedRecord: .damagedRecord
    case .moreDamage: .moreDamage
    case .damage: .damage
    case .readablePassphrase: .readablePassphrase
    case .passphraseFile: .passphraseFile
    case .accounts: .accounts
    case .expired: .expired
    case .moreExpired: .moreExpired
    case .interrupted: .interrupted
    case .unknownAccount: .unknownAccount
    case .lateClock: .lateClock
    case .differentClock: .differentClock
    case .overSSH: .overSSH
    case .noDisplay: .noDisplay
    case .unknownDisplay: .unknownDisplay
    case .unknownBrowser: .unknownBrowser
    case .noBrowser: .noBrowser
    case .deadLogin: .deadLogin
    case .noKernelKeyring: .noKernelKeyring
    case .secretService: .secretService
    case .noOnlineProgram: .noOnlineProgram
    case .noShippedDescriptors: .noShippedDescriptors
    case .gitFile: .gitFile
    case .dockerFile: .dockerFile
    case .gitFails: .gitFails
    case .gitHelperSentAway: .gitHelperSentAway
    case .gitAsksFirst: .gitAsksFirst
    case .gitTells: .gitTells
    case .gitAsksNobody: .gitAsksNobody
    case .gitAsksAnother: .gitAsksAnother
    case .gitAsksOwn: .gitAsksOwn
    case .gitDoesNotAsk: .gitDoesNotAsk
    case .gitProgramMissing: .gitProgramMissing
    case .gitOtherProgram: .gitOtherProgram
    case .dockerUnreadable: .dockerUnreadable
    case .dockerDoesNotAsk: .dockerDoesNotAsk
    case .dockerPasswords: .dockerPasswords
    case .dockerProgramMissing: .dockerProgramMissing
    case .dockerOtherProgram: .dockerOtherProgram
    case .dockerHelperMissing: .dockerHelperMissing
    case .hidingDescriptor: .hidingDescriptor
    case .invalidDescriptor: .invalidDescriptor
    case .lostDescriptor: .lostDescriptor
    case .changedDescriptor: .changedDescriptor
    case .unfitRegistration: .unfitRegistration
    case .sharedHost: .sharedHost
    case .malformedRules: .malformedRules
    case .unreadableRules: .unreadableRules
    case .ruleWithoutAccount: .ruleWithoutAccount
    case .ruleWithoutProvider: .ruleWithoutProvider
    case .certificateFolder: .certificateFolder
    case .certificateFile: .certificateFile
    case .emptyCertificateFile: .emptyCertificateFile
    case .noCertificates: .noCertificates
    case .unknownProxy: .unknownProxy
    case .unreachable: .unreachable
    }
  }

  private static let folder = "/home/ada/.local/share/credmgr"
  private static let file = folder + "/vault.db"
  private static let record = RecordIdentifier(kind: .credential, provider: "notes", account: "ada lovelace")
  private static let finding = Finding(
    .unknownKey("rulez", suggestion: "rules"),
    at: Place(source: Source(name: "accounts.yaml", text: ""), line: 1, column: 1))

  /// What no command on this machine mends, and why.
  private static func isOutOfReach(_ finding: SetUpFinding) -> Bool {
    switch finding {
    // Only the person knows what can be thrown away.
    case .fullDisk: true
    // The descriptor came with the program or the system, and is mended where it comes from.
    case .invalidDescriptor(_, _, let isOwn): !isOwn
    // git does not say what file it is.
    case .gitFails(_, let file, _): file == nil
    // Somebody else's server, or the way there.
    case .unreachable(.unreachable(_, .tls), _, _, _): false
    case .unreachable(_, _, _, let proxies): proxies.isEmpty
    // Either it is over when the command is run again, or a newer program has to come.
    case .vault(let error, _, _):
      switch error {
      case .busy, .full, .newerFormat, .outOfMemory, .otherSlots, .noSlot, .lastSlot, .conflict, .tooLarge: true
      default: false
      }
    default: false
    }
  }

  private static let vaultErrors: [StoreError] = [
    .keyFileMissing(path: file), .keyFileInvalid(path: file), .keyFileOfAnotherVault(path: file), .wrongPassphrase,
    .notAVault(path: file), .truncated(path: file),
    .newerFormat(path: file, found: 9, supported: 1), .damaged(path: file, .structure), .damagedRecord(record),
    .file(.readableByOthers(path: file, mode: 0o644)), .file(.notRegularFile(path: file)),
    .file(.notDirectory(path: folder)), .file(.permissionDenied(path: file)), .busy(path: file), .full(path: file),
    .readOnly(path: file), .inputOutput(path: file, code: 10), .outOfMemory, .locked([.passphrase]),
  ]

  private static let secretServiceFaults: [SecretServiceFault] = [
    .noBus, .noService, .locked, .noKey, .timedOut, .notInstalled, .failed,
  ]

  static let findings: [SetUpFinding] =
    [
      .homeUnusable(.noHome), .homeUnusable(.relativeHome("~/box")), .homeUnusable(.relativeHome("my box")),
      .foreignFiles([folder, "/home/ada/.config/credmgr"], .unset("CREDMGR_HOME")),
      .foreignFiles([folder], .export("HOME", "/home/ada")),
      .foreignFiles([folder], .changeOwner([folder], user: "ada", needsRoot: true)),
      .homeFault(.readableByOthers(path: folder, mode: 0o755), needsRoot: false),
      .homeFault(.writableByOthers(path: "/home/ada/my files", mode: 0o777), needsRoot: true),
      .homeFault(.notDirectory(path: folder), needsRoot: false), .linkedHome(folder, target: "/data/vault"),
      .linkedHome(folder, target: nil), .unwritable(folder, place: "/home", .anotherHome),
      .unwritable(folder, place: folder, .allowWriting(folder)), .blockedHome(folder, .unset("CREDMGR_HOME")),
      .blockedHome(folder, nil), .readOnlyHome(folder, .anotherHome), .fullDisk(folder),
      .closedFolder(folder, isOwn: true), .closedFolder("/usr/share/credmgr/providers", isOwn: false), .noVault,
      .lockedVault(["passphrase", "Secret Service"]), .damagedRecord(.record(record, .altered), record),
      .moreDamage(3, record), .damage([.header, .schema], folder: folder),
      .readablePassphrase("/run/passphrase", mode: 0o644),
      .passphraseFile(.notFound(path: "/run/passphrase"), path: "/run/passphrase"),
      .accounts(.vault(.damagedRecord(record)), folder: folder), .expired(provider: "notes", account: "ada lovelace"),
      .moreExpired(2, provider: "notes", account: "ada"), .unknownAccount("nobody"), .lateClock(86_400),
      .differentClock(-3600, host: "notes.example"), .overSSH, .noDisplay,
      .unknownDisplay(variable: "DISPLAY", value: ":5"),
      .unknownBrowser("netscape"), .noBrowser,
      .deadLogin(entry: "/home/ada/.local/share/applications/credmgr-login-x.desktop", schemes: ["notes"]),
      .noKernelKeyring, .secretService(.noBus, bus: "/run/user/1000/bus"),
      .noOnlineProgram(.reinstalling("/src/credmgr/.build/debug/credmgr")),
      .noShippedDescriptors(
        "/usr/local/share/credmgr/providers", .reinstalling("/usr/local/bin/credmgr")),
      .gitFails(words: "bad config line 3 in file /home/ada/.gitconfig", file: "/home/ada/.gitconfig", line: 3),
      .gitFails(words: "", file: nil, line: nil),
      .gitHelperSentAway(origin: "x", removal: "\(run: "git", "config", "x")"),
      .gitAsksFirst("store", host: nil, origin: "x", removal: nil),
      .gitTells("store", origin: "x", removal: "\(run: "git", "config", "x")"),
      .gitAsksNobody(["notes.example"], removal: nil),
      .gitAsksAnother("store", ["notes.example", "code.example"], origin: "x"),
      .gitAsksOwn("store", ["notes.example"], origin: "x", removal: "\(run: "git", "config", "x")"), .gitDoesNotAsk([]),
      .gitProgramMissing("/opt/credmgr", origin: "x", removal: nil, program: "/usr/bin/credmgr"),
      .gitOtherProgram("/opt/credmgr", program: "/usr/bin/credmgr", removal: nil),
      .dockerUnreadable("/home/ada/.docker/config.json"), .dockerDoesNotAsk(["ghcr.io", "registry.example"]),
      .dockerPasswords("/home/ada/.docker/config.json", ["registry.example"]),
      .dockerProgramMissing(program: "/usr/bin/credmgr", link: "/usr/bin/docker-credential-credmgr", needsRoot: true),
      .dockerOtherProgram("/opt/docker-credential-credmgr", program: "/usr/bin/credmgr", needsRoot: false),
      .dockerHelperMissing("desktop", []), .dockerHelperMissing("desktop", ["ghcr.io"]),
      .hidingDescriptor("/home/ada/.config/credmgr/providers/notes.yaml"),
      .invalidDescriptor(.invalid([finding]), path: "/home/ada/notes.yaml", isOwn: true),
      .invalidDescriptor(.invalid([finding]), path: "/etc/credmgr/providers/notes.yaml", isOwn: false),
      .lostDescriptor("notes", hasAccounts: true), .lostDescriptor("notes", hasAccounts: false),
      .changedDescriptor(provider: "notes", file: "/home/ada/notes.yaml", hosts: []),
      .unfitRegistration("notes", .provider(.unknownVariable("port", known: []))),
      .sharedHost("notes.example", taken: "notes", other: "code"),
      .malformedRules([finding, finding], path: "/home/ada/.config/credmgr/accounts.yaml"),
      .unreadableRules(.system(.notRegularFile(path: "/home/ada/.config/credmgr/accounts.yaml")), path: "/x"),
      .ruleWithoutAccount(line: 3, path: "/home/ada/accounts.yaml", provider: "notes", account: "ada"),
      .ruleWithoutProvider(line: 3, path: "/home/ada/accounts.yaml", provider: "githb", suggestion: "github"),
      .ruleWithoutProvider(line: 3, path: "/home/ada/my accounts.yaml", provider: "x", suggestion: nil),
      .gitFile("/home/ada/.gitconfig", .notFile), .gitFile("/home/ada/.gitconfig", .danglingLink),
      .gitFile("/nowhere/config", .nowhere(variable: "GIT_CONFIG_GLOBAL")),
      .gitFile("/home/ada/.gitconfig", .unwritable(folder: "/home/ada")),
      .dockerFile("/home/ada/.docker/config.json", .unreadable),
      .certificateFolder("/nowhere"), .certificateFile("/nowhere"), .emptyCertificateFile("/nowhere"), .noCertificates,
      .unknownProxy(variable: "all_proxy", shown: "gopher://proxy.example"),
      .unreachable(
        .unreachable(host: "notes.example", reason: .proxy), host: "notes.example", provider: "notes",
        proxies: ["https_proxy", "all_proxy"]),
      .unreachable(
        .unreachable(host: "notes.example", reason: .tls(detail: "expired")), host: "notes.example", provider: "notes",
        proxies: []),
      .unreachable(
        .unreachable(host: "notes.example", reason: .nameNotResolved), host: "notes.example", provider: "notes",
        proxies: []),
    ]
    + vaultErrors.flatMap { error in
      [true, false].map { .vault(error, folder: folder, opensOtherwise: $0) }
    } + secretServiceFaults.map { .secretService($0, bus: nil) }
    + [Interruption.Exchange.refresh, .login, .logout].map {
      .interrupted(Interruption(provider: "notes", account: "ada", exchange: $0, startedAt: 0), now: 0)
    }

  @Test func allAreInTheList() {
    let there = Set(Self.findings.map(Self.kind))
    for kind in Kind.allCases { #expect(there.contains(kind), "\(kind)") }
  }

  /// The commands in hints, as a person who copies them finds them.
  private static func commands(_ finding: SetUpFinding) -> [String] {
    finding.message.hints.compactMap { $0.sentence() }.flatMap { hint in
      hint.matches(of: /run "([^"]+)"/).map { String($0.output.1) }
    }
  }

  /// What looks, and changes nothing.
  private static let looking = [
    "ls", "df", "cat", "env", "curl", "getent", "findmnt", "git config --list", "git config --get", "ps",
    "credmgr check", "credmgr providers", "credmgr vault verify", "credmgr vault status", "credmgr status",
    "credmgr log ",
    "credmgr help",
  ]

  @Test(arguments: findings)
  func whatDoesNotWorkComesWithACommandThatMendsIt(_ finding: SetUpFinding) {
    let mending = Self.commands(finding).filter { command in !Self.looking.contains { command.hasPrefix($0) } }
    guard finding.state == .problem, !Self.isOutOfReach(finding) else { return }
    #expect(!mending.isEmpty, "\(finding.message.text): \(finding.message.hints)")
  }

  /// Without anything in it that a person has to think of first; where only a person knows it, the hint says what.
  @Test(arguments: findings)
  func commandsAreTakenByAShellAsTheyAre(_ finding: SetUpFinding) throws {
    for command in Self.commands(finding) {
      let checked = try Launcher.run("/bin/bash", ["-n", "-c", command])
      #expect(checked.status == 0, "\(command)")
      #expect(command.firstMatch(of: /[ =](FILE|VALUE|NAME|ACCOUNT)( |$)/) == nil, "\(command)")
    }
  }

  /// Whoever can do something about a note is told how.
  @Test(arguments: findings)
  func notesComeWithACommandWhereSomethingCanBeDone(_ finding: SetUpFinding) {
    guard finding.state == .note else { return }
    switch finding {
    case .overSSH, .noDisplay, .noKernelKeyring, .sharedHost: #expect(finding.message.hints.isEmpty)
    default: #expect(!Self.commands(finding).isEmpty, "\(finding.message.text)")
    }
  }

  @Test func oneHintIsOneCommand() {
    for finding in Self.findings {
      for hint in finding.message.hints.compactMap({ $0.sentence() }) {
        #expect(hint.matches(of: /run "/).count <= 1, "\(hint)")
      }
    }
  }
}
