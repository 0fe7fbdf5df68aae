import HTTP
import Platform
import Testing
import Store

@testable import Commands
@testable import CredentialManager

/// What mends what the doctor finds. Each check is tried with set-ups that are broken on purpose
/// (Judge/test_doctor.py).
@Suite struct DiagnosticTests {
  private static let folder = "/home/ada/.local/share/credmgr"
  private static let file = folder + "/vault.db"
  private static let record = RecordIdentifier(kind: .credential, provider: "notes", account: "ada lovelace")

  private static let vaultErrors: [StoreError] = [
    .keyFileMissing(path: file), .keyFileInvalid(path: file), .keyFileOfAnotherVault(path: file), .wrongPassphrase,
    .notAVault(path: file), .truncated(path: file), .damaged(path: file, .structure), .damagedRecord(record),
    .file(.readableByOthers(path: file, mode: 0o644)), .file(.notRegularFile(path: file)),
    .file(.notDirectory(path: folder)), .file(.permissionDenied(path: file)), .file(.otherOwner(path: file)),
    .file(.symbolicLink(path: file)), .readOnly(path: file), .inputOutput(path: file, code: 10),
    .locked([.passphrase]),
  ]

  private static let remedies: [Remedy] =
    vaultErrors.flatMap { error in
      [true, false].flatMap { error.remedies("/home/ada/my vault", opensOtherwise: $0) }
    }
    + [SecretServiceFault.noBus, .noService, .locked, .noKey, .timedOut, .notInstalled, .failed].flatMap {
      [$0.remedy(), $0.remedy(unnamedBus: "/run/user/1000/bus")]
    }
    + [Interruption.Exchange.refresh, .login, .logout].map {
      Interruption(provider: "notes", account: "it's me", exchange: $0, startedAt: 0).remedy
    } + [
      .rescuing("/home/ada/my vault"), .replacingLink(file, by: nil), .replacingLink(folder, by: "/data/vault"),
      .reinstalling("/src/credmgr/.build/debug/credmgr"), .reinstalling("/usr/local/bin/credmgr"), .anotherHome,
      .opening(folder), record.remedy(),
      RecordIdentifier(kind: .selection, provider: "notes", account: "").remedy(account: "it's me"),
    ] + entries.flatMap { [$0.removal, $0.removalOfAll].compactMap { $0 } }

  private static let entries = ["store", "!f() { echo password=x; }; f", "", "cache --timeout 60"].map {
    GitHelperEntry(scope: "global", origin: "/home/ada/my files/config", key: "credential.helper", value: $0)
  }

  @Test func eachHasACommandThatAShellTakesAsItIs() throws {
    for remedy in Self.remedies {
      try expectWhole(remedy)
      let sentence = try #require(remedy.sentence())
      #expect(sentence.matches(of: /run "/).count == 1, "\(sentence)")
    }
  }

  @Test func whatIsOnACommandLineCannotBeTakenOut() {
    let entry = GitHelperEntry(scope: "command", origin: "command line:", key: "credential.helper", value: "store")
    #expect(entry.removal == nil && entry.removalOfAll == nil)
  }

  /// A value that may be a password is neither shown nor named.
  @Test func aHelperOfAShellIsTakenOutByItsBeginning() {
    #expect(Self.entries[1].shown == "!f() …")
    #expect(Self.entries[1].removal?.commands.first?.last == "^!f[(][)]")
  }

  @Test func aMistakeInGitsConfigurationIsNamedByItsLine() {
    let message = Doctor.gitFailure("fatal: bad config line 3 in file /home/ada/my config\n")
    #expect(message?.text == "git cannot read its configuration: bad config line 3 in file /home/ada/my config")
    #expect(message?.hints.first?.commands == [["sed", "-i.old", "3s/^/# /", "/home/ada/my config"]])
    #expect(Doctor.gitFailure("fatal: unable to access 'x'") == nil)
  }
}
