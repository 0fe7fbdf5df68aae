import Glibc
import HTTP
import OAuth
import Platform
import Descriptors
import Testing
import Store

@testable import CredentialManager
@testable import Commands

/// What a hint says to run is what helps.
@Suite struct HintTests {
  private static let failures: [CredentialError] = [
    .http(.unreachable(host: "notes.example", reason: .nameNotResolved), provider: "notes"),
    .http(.unreachable(host: "notes.example", reason: .connectionRefused), provider: "notes"),
    .http(.unreachable(host: "notes.example", reason: .timedOut), provider: "notes"),
    .http(.unreachable(host: "notes.example", reason: .tls(detail: "no")), provider: "notes"),
    .http(.unreachable(host: "notes.example", reason: .proxy), provider: "notes"),
    .http(.unreachable(host: "notes.example", reason: .broken), provider: "notes"),
    .http(.bodyTooLarge(limit: 1 << 20), provider: "notes"),
    .oauth(.unreadable(.token, expected: .json, mediaType: nil), provider: "notes"),
    .oauth(.missingField(.token, .accessToken), provider: "notes"),
    .oauth(.malformedField(.deviceAuthorization, .expiresIn), provider: "notes"),
  ]

  @Test(arguments: failures) func whoIsNotReachedIsExamined(_ error: CredentialError) {
    #expect(error.message.hints.first == "\(credmgr: "doctor", "notes")")
  }

  // MARK: All of them

  private static let record = RecordIdentifier(kind: .credential, provider: "notes", account: "it's me")
  private static let needs = ClientNeeds(needsIdentifier: true, needsSecret: true, register: nil)
  private static let file = "/home/ada/my files/vault.db"
  private static let refusals = [
    "invalid_client", "access_denied", "invalid_scope", "http_404", "redirect_uri_mismatch", "server_says_no",
  ]

  private static let own: [CredentialError] = [
    .noHome, .relativeHome("~/box"), .notAdded(provider: "notes", needs), .alreadyAdded(provider: "notes"),
    .clientIdentifierMissing(provider: "notes", needs),
    .loginNeeded(provider: "notes", account: "it's me", .expired),
    .unknownAccount("ad", provider: "notes", known: ["ada"]),
    .ambiguousAccount(provider: "notes", known: ["it's me", "bob"]),
    .identityMismatch(account: "ada", expected: "ada", found: "bob"),
    .nameNeeded(provider: "notes", account: "it's me"),
    .grantNotOffered(.implicit, offered: [.deviceCode]), .pasteNeeded(provider: "notes", isCode: false),
    .timedOut(seconds: 300), .lockTimedOut(provider: "notes", account: nil),
    .uncommitted(provider: "notes", account: "it's me", isKept: false, .full(path: file)), .noLoginWaits,
    .networkNeeded, .destinationChange(provider: "notes", accounts: ["ada"], hosts: []),
    .descriptorChanged(provider: "notes", file: file, hosts: []),
    .accountsRemain(provider: "notes", accounts: ["ada"]), .extended(provider: "notes", by: ["mine"]),
    .malformedRegistration(provider: "notes"), .tokenRefused(provider: "notes", words: nil),
    .newPassphraseUnavailable(.noTerminal), .exportPassphraseUnavailable(.noTerminal), .alreadyThere([record]),
    .http(.portUnavailable(port: 8417), provider: "notes"),
  ]

  private static let protocolErrors: [OAuthError] = [
    .noEndpoint(.refresh), .missingValue(.token, name: "tenant"),
    .unavailable(.token, status: 503, words: nil, retryAfter: nil), .redirected(.token, status: 302), .stateMismatch,
    .stateMissing, .unknownAuthentication("x"), .notARedirect, .foreignRedirect(expected: "http://127.0.0.1/"),
    .tokenMismatch, .callbackNotConfirmed, .deviceCodeExpired, .clientSecretMissing, .clientKeyMalformed,
    .notRefreshable, .foreignHost("other.example"), .presentedInQuery, .credentialHeader("Authorization"),
    .signatureNeedsURL, .malformedCredential,
  ]

  private static let vaultErrors: [StoreError] = [
    .absent(path: file), .keyFileMissing(path: file), .keyFileInvalid(path: file), .keyFileOfAnotherVault(path: file),
    .locked([]), .wrongPassphrase, .passphraseUnavailable(.endOfInput), .passphraseCommandFailed(status: 1),
    .lastSlot(.keyFile), .otherSlots,
    .notAVault(path: file), .truncated(path: file), .newerFormat(path: file, found: 2, supported: 1),
    .damaged(path: file, .slots), .damagedRecord(record), .conflict(record, actual: nil), .busy(path: file),
    .full(path: file), .readOnly(path: file), .inputOutput(path: file, code: 1), .unconfirmed(path: file),
    .file(.symbolicLink(path: file)), .file(.readableByOthers(path: file, mode: 0o644)), .secretService(.noBus),
    .secretService(.noService), .secretService(.locked), .secretService(.noKey), .secretService(.timedOut),
    .secretService(.notInstalled), .secretService(.failed),
  ]

  private static let systemErrors: [POSIXError] = [
    .folderNotFound(path: file), .notRegularFile(path: file), .notDirectory(path: file), .otherOwner(path: file),
    .readableByOthers(path: file, mode: 0o644), .writableByOthers(path: file, mode: 0o666),
    .permissionDenied(path: file), .readOnlyFileSystem(path: file), .system(call: "write", path: file, code: 28),
    .system(call: "write", path: file, code: 122), .system(call: "mkdir", path: file, code: 13),
  ]

  private static var all: [CredentialError] {
    var all = own + failures
    for error in protocolErrors { all.append(.oauth(error, provider: "notes")) }
    for code in refusals {
      all.append(.oauth(.refused(.token, ErrorResponse(code: code, words: nil, status: 400)), provider: "notes"))
    }
    for error in vaultErrors { all.append(.vault(error)) }
    for error in systemErrors { all.append(.system(error)) }
    return all
  }

  @Test(arguments: all) func whatIsWrongComesWithAHint(_ error: CredentialError) {
    #expect(!error.message.hints.isEmpty, "\(error.message.text)")
  }

  @Test(arguments: all) func aShellTakesItAsItIs(_ error: CredentialError) throws {
    for remedy in error.message.hints { try expectWhole(remedy) }
  }

  /// An issuer that is being added is no provider yet.
  @Test func anIssuerIsNoProvider() {
    let error = CredentialError.http(
      .unreachable(host: "notes.example", reason: .proxy), provider: "https://notes.example/")
    #expect(error.message.hints.first?.commands == [["credmgr", "doctor"]])
  }

  @Test(arguments: [
    (["credmgr", "tken", "github"], "tken", "token", "credmgr token github"),
    (["credmgr", "token", "github", "--account=ad"], "ad", "ada", "credmgr token github --account=ada"),
    (["credmgr", "exec", "gitlb:ad=A", "--", "gitlb"], "gitlb", "gitlab", "credmgr exec gitlab:ad=A -- gitlb"),
    (["credmgr", "exec", "gitlab:ad=A", "--", "ad"], "ad", "ada", "credmgr exec gitlab:ada=A -- ad"),
    (
      ["credmgr", "token", "githb", "--account", "it's me"], "githb", "github",
      "credmgr token github --account 'it'\\''s me'"
    ),
  ])
  func aCommandIsCorrected(_ arguments: [String], _ wrong: String, _ meant: String, _ command: String) {
    let remedies = [Remedy].correcting(wrong, to: meant)
    #expect(remedies.map { $0.sentence(after: CommandLine(arguments)) } == ["run \"\(command)\""])
  }

  /// Neither another program's command nor what may be a secret is repeated.
  @Test(arguments: [
    ["credmgr", "request", "githb", "https://a.example", "-d", "password=1"],
    ["credmgr", "exec", "gitlab", "--", "githb"], ["credmgr", "login", "githb", "--set=a=b"],
    ["credmgr", "exec", "githb", "--", String(repeating: "x", count: 200)],
  ])
  func whatIsNotRepeated(_ arguments: [String]) {
    for remedy in [Remedy].correcting("githb", to: "github") {
      #expect(remedy.sentence(after: CommandLine(arguments)) == nil)
    }
  }

  // MARK: What is to be added

  private static let completions: [(arguments: [String], remedy: Remedy, sentence: String)] = [
    (
      ["credmgr", "token", "notes"], "\(add: "--account", "ada") for now",
      "run \"credmgr token notes --account ada\" for now"
    ),
    (
      ["credmgr", "login", "notes", "--account", "ada", "--paste"], "\(add: "--account", "it's me")",
      "run \"credmgr login notes --paste --account 'it'\\''s me'\""
    ),
    (
      ["credmgr", "login", "notes", "--account=ada"], "\(add: "--account", "bob")",
      "run \"credmgr login notes --account bob\""
    ),
    (["credmgr", "token", "notes"], "\(add: "--trace") to see", "run \"credmgr token notes --trace\" to see"),
    (["credmgr", "token", "notes", "--trace"], "\(add: "--trace")", "run \"credmgr token notes --trace\""),
    // A secret is not repeated, nor is what no line could hold.
    (["credmgr", "login", "notes", "--set", "a=b"], "\(add: "--account", "ada")", "add \"--account ada\""),
    (
      ["credmgr", "token", String(repeating: "x", count: 150)], "\(add: "--account", "ada")",
      "add \"--account ada\""
    ),
    // No such option.
    (["credmgr", "token", "notes"], "\(add: "--replace")", "add \"--replace\""),
    (["credmgr", "token", "notes"], "\(credmgr: "login", "notes")", "run \"credmgr login notes\""),
    // A login is the one that failed.
    (
      ["credmgr", "login", "notes", "--paste", "--timeout=1m", "--with-token"], "\(credmgr: "login", "notes") again",
      "run \"credmgr login notes --timeout 1m --paste\" again"
    ),
    (
      ["credmgr", "login", "--timeout", "1m", "notes"], "\(credmgr: "login", "notes", "--timeout", "2m")",
      "run \"credmgr login notes --timeout 2m\""
    ),
    (["credmgr", "login", "other", "--paste"], "\(credmgr: "login", "notes")", "run \"credmgr login notes\""),
  ]

  @Test func whatIsToBeDoneIsAWholeCommand() {
    for (arguments, remedy, sentence) in Self.completions {
      #expect(remedy.sentence(after: CommandLine(arguments)) == sentence)
    }
  }

  /// What names the account of one command names nobody in another.
  @Test func anAccountIsNamedWhereItCanBe() {
    let hints = CredentialError.ambiguousAccount(provider: "notes", known: ["ada", "bob"]).message.hints
    let line = CommandLine(["credmgr", "exec", "notes", "--", "tool"])
    #expect(
      hints.compactMap { $0.sentence(after: line) } == ["run \"credmgr use notes ada\" to make one the default"])
  }

  // MARK: Files

  /// What keeps a person from a file of the person's own is opened, be it a folder above.
  @Test func whatIsClosedIsOpened() throws {
    let folder = try TemporaryFolder()
    try File.createDirectory(folder.path + "/above")
    let file = folder.path + "/above/file"
    try PrivateFile.create(file, [])
    #expect(!POSIXError.permissionDenied(path: file).message.hints.flatMap(\.commands).contains { $0[0] == "chmod" })
    #expect(unsafe chmod(file, 0o000) == 0)
    #expect(POSIXError.permissionDenied(path: file).message.hints == ["\(run: "chmod", "u+rwX", file)"])
    #expect(unsafe chmod(file, 0o600) == 0)
    #expect(unsafe chmod(folder.path + "/above", 0o500) == 0)
    #expect(
      POSIXError.permissionDenied(path: file + "/none").message.hints
        == ["\(run: "chmod", "u+rwX", folder.path + "/above")"])
    #expect(unsafe chmod(folder.path + "/above", 0o700) == 0)
  }

  /// What a command looks at is there.
  @Test func aFileThatIsNotThereIsNotLookedAt() throws {
    let folder = try TemporaryFolder()
    let none = folder.path + "/none/at/all"
    for error: POSIXError in [
      .readOnlyFileSystem(path: none), .system(call: "write", path: none, code: 28), .otherOwner(path: none),
    ] {
      let command = try #require(error.message.hints.first?.commands.first)
      #expect(command.last == folder.path, "\(command)")
    }
  }
}

/// What stands for something that the person alone can know: what a provider gave him, and what he wants.
private let ofThePerson = ["ID", "FILE", "NAME", "SCOPE", "URL", "ACCOUNT", "@FILE", "VALUE"]

/// A remedy has nothing in it that a shell takes for something else, its commands of ours are such as the program takes, and
/// no command stands in its words alone.
func expectWhole(_ remedy: Remedy) throws {
  // The command that failed, with another word in it, needs that command.
  guard let sentence = remedy.sentence() else { return }
  for command in sentence.matches(of: /run "([^"]+)"/).map({ String($0.output.1) }) {
    #expect(try Launcher.run("/bin/bash", ["-n", "-c", command]).status == 0, "\(command)")
  }
  for part in remedy.parts {
    guard case .words(let words) = part else { continue }
    #expect(words.firstMatch(of: #/"(credmgr|chmod|mv|rm|sudo) /#) == nil, "\(sentence)")
  }
  for command in remedy.commands where command.first == "credmgr" && command.count > 1 {
    let known = try #require(Command.named(command[1]), "\(sentence)")
    #expect(throws: Never.self, "\(sentence)") { try Invocation(known, command.dropFirst(2)) }
  }
  for (index, word) in remedy.commands.flatMap({ $0 }).enumerated()
  where index > 0 && !word.hasPrefix("-") && word == word.uppercased() {
    #expect(!word.contains { $0.isLetter } || ofThePerson.contains(word) || word.contains("_"), "\(sentence)")
  }
}

/// A folder that is removed with everything in it.
private final class TemporaryFolder {
  let path = "/tmp/credmgr-hints.\(UInt64.random(in: 0 ... .max))"

  init() throws { try File.createDirectory(path) }

  deinit { _ = try? Launcher.run("/bin/sh", ["-c", "chmod -R u+rwX \"$0\"; rm -rf \"$0\"", path]) }
}
