import Testing
import CredmgrMessages

@testable import CredmgrCommands

/// Tests that credmgr refuses options for secrets without repeating the secret.
@Suite struct SecretOptionTests {
  private static func message(_ line: String) -> String? {
    let words = line.split(separator: " ").map(String.init)
    guard let command = Command.named(words[1]) else {
      return CommandError.unknownCommand(words[1], Array(words.dropFirst())).message?.lines(after: CommandLine(words))
    }
    do {
      _ = try Invocation(command, words.dropFirst(2))
      return nil
    } catch {
      #expect(error.message?.status == .usage)
      return error.message?.lines(after: CommandLine(words))
    }
  }

  @Test(arguments: [
    (
      "credmgr add-provider linkedin --client-id x --client-secret S3CRET",
      "credmgr add-provider linkedin --client-id x --client-secret-file -"
    ),
    (
      "credmgr add-provider linkedin --client-secret=S3CRET --client-id x",
      "credmgr add-provider linkedin --client-id x --client-secret-file -"
    ),
    (
      "credmgr add-provider linkedin --initial-access-token S3CRET",
      "credmgr add-provider linkedin --initial-access-token-file -"
    ), ("credmgr login github --account work --token S3CRET", "credmgr login github --account work --with-token"),
    ("credmgr login github --pasword S3CRET", "credmgr login github --with-token"),
    ("credmgr vault export copy --passphrase S3CRET", "credmgr vault export copy"),
    ("credmgr token github --api-key=S3CRET", "credmgr token github"),
  ]) func theHintIsTheWholeCommandWithoutTheValue(_ line: String, _ meant: String) throws {
    let lines = try #require(Self.message(line))
    #expect(!lines.contains("S3CRET"))
    #expect(lines.contains("hint: run \"\(meant)\""))
  }

  @Test(arguments: [
    "credmgr login github -p S3CRET", "credmgr login github -pS3CRET", "credmgr login --token S3CRET",
    "credmgr add-provider linkedin --client-secret S3CRET --token S3CRET",
    "credmgr add-provider linkedin --client-secret S3CRET horse battery",
    "credmgr --token S3CRET login github", "credmgr --token=S3CRET login github", "credmgr tokn github --token S3CRET",
    "credmgr add-provider linkedin --clinet-id x --client-secret S3CRET",
    "credmgr request notes https://h/ --client-secretS3CRET", "credmgr token --tokenS3CRET",
    "credmgr vault protect --passphraseS3CRET", "credmgr token notes --api-keyS3CRET",
    "credmgr token notes --keyS3CRET",
    "credmgr login github --xS3CRET", "credmgr login github --client_secret=S3CRET",
    "credmgr login github --toknS3CRET",
    "credmgr login github --accountS3CRET", "credmgr login github --Set:S3CRET", "credmgr login github --user S3CRET",
    "credmgr login github -with-token S3CRET", "credmgr add-provider notes -pass S3CRET", "credmgr --tokenS3CRET",
    "credmgr --client-secretS3CRET login github", "credmgr login github --acount work --xS3CRET",
    "credmgr vaultS3CRET export", "credmgr vault export https://h/#access_token=S3CRET --x",
    "credmgr login –token=S3CRET", "credmgr login token=S3CRET", "credmgr request —api-keyS3CRET https://h/",
  ]) func nothingRepeatsTheValue(_ line: String) throws {
    let lines = try #require(Self.message(line))
    #expect(!lines.contains("S3CRET"))
  }

  /// A key with dots is not looked up as a host.
  @Test(arguments: [
    ("login.example", true), ("login.example:8443/realms/a", true), ("git.corp.test", true),
    ("SG.abcdefgh.ijklmnop", false),
    ("eyjhbg.eyjzdw.x1", false), ("a..b", false), ("key.", false),
  ]) func aKeyIsNoHost(_ word: String, _ isHost: Bool) { #expect(SetupChoice.isHost(word) == isHost) }

  /// A text that is certainly a name stays.
  @Test(arguments: [
    ("--verbose", "--verbose"), ("--dry", "--dry"), ("--tokenS3CRET", "--token…"), ("--tokenhorse", "--token…"),
    ("--api-keyhorse", "--api-key…"), ("--client_secret=S3CRET", "--client_secret"),
    ("--client-secrets", "--client-secret…"),
    ("--accountS3CRET", "--account…"), ("--acount", "--acount"), ("--xS3CRET", "--…"), ("--xS3secret", "--…"),
    ("--xhunter", "--…"), ("--with-token", "--with-token"), ("--nope", "--nope"),
    ("-pS3CRET", "-p"), ("--typed-by-mistake-77aa", "--…"), ("--a-secret-of-mine", "--a-secret…"),
    ("list2horses", "list…"),
  ]) func namesAreShown(_ word: String, _ shown: String) {
    #expect(SecretOption.shown(word, among: ["--account", "--json", "list"]) == shown)
  }

  /// Values that are not secret appear as usual.
  @Test(arguments: [
    ("credmgr add-provider linkedin --client-secret-fle secret.txt", "--client-secret-file secret.txt"),
    ("credmgr login github --acount work", "login github --account work"),
    ("credmgr tokn github --account work", "token github --account work"),
    ("credmgr add-provider x --client-secret-file s.txt --clinet-id ID", "--client-secret-file s.txt --client-id ID"),
  ]) func aMistypedNameIsCorrected(_ line: String, _ meant: String) throws {
    #expect(try #require(Self.message(line)).contains(meant))
  }

  @Test(arguments: [
    ("\"https://octo:S3CRET@forge.example/x\" is none", "\"https://octo:…@forge.example/x\" is none"),
    ("at https://0123456789abcdef0123@forge.example/", "at https://…@forge.example/"),
    ("at https://octo@forge.example/ and https://:S3CRET@b", "at https://octo@forge.example/ and https://:…@b"),
    ("\"ada@example.org\" at https://forge.example/@ada", "\"ada@example.org\" at https://forge.example/@ada"),
    (
      "logged in to https://forge.example as \"ada@b.example\"",
      "logged in to https://forge.example as \"ada@b.example\""
    ),
  ]) func passwordsOfURLsAreNotShown(_ text: String, _ shown: String) { #expect(Message.visible(text) == shown) }
}
