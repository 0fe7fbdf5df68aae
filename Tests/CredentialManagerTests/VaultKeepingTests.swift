import CredmgrCryptography
import Glibc
import CredmgrJSON
import CredmgrPlatform
import Testing
import CredmgrStore
import CredmgrVault

@testable import CredmgrCredentialManager
import CredmgrText

@Suite struct VaultKeepingTests {
  private let fixture: Fixture

  init() throws { fixture = try Fixture.added(credential: Fixture.credential()) }

  /// Returns a source for another process that gets the passphrase from `answer`.
  private func source(
    _ answer: String?, asked: Asked = Asked(), environment: [String: String] = [:]
  ) -> CredentialSource {
    let keys = KeySources(environment: { environment[$0] }, lock: fixture.home.passphraseLock) {
      question throws(POSIXError) in
      asked.questions.append(question)
      guard let answer else { throw .noTerminal }
      return Secret(answer)
    }
    return CredentialSource(
      home: fixture.home, http: nil, clock: fixture.clock, random: SystemRandomSource(), keys: keys)
  }

  private func protect(_ passphrase: String) throws {
    let source = source(passphrase)
    #expect(try source.protect(with: .passphrase) == [.keyFile])
    try source.unprotect(.keyFile)
  }

  private func token(_ source: CredentialSource) throws -> String? {
    try source.accounts().account(AccountID("example", "ana"))?.credential.accessToken.reveal()
  }

  @Test func oneProcessPromptsOnce() throws {
    try protect("p")
    let asked = Asked()
    let source = source("p", asked: asked)
    #expect(try token(source) == "token-1")
    _ = try source.accounts(.readWrite)
    #expect(asked.questions == [.vault(attempt: 1)])
  }

  /// The kernel may keep the key longer than its deadline.
  @Test func keysAreNotUsedAfterTheirDeadline() throws {
    try protect("p")
    // The vaults of other tests have the same key, which they remove from the kernel.
    try source("p").rotateVault()
    // The kernel's own time does not end during the test.
    do { _ = try source("p").unlock(for: .hours(8)) } catch CredentialError.vault(.kernelKeyring) { return }
    defer { _ = try? source(nil).lock() }
    #expect(try token(source(nil)) == "token-1")
    fixture.clock.advance(.hours(8))
    #expect(throws: CredentialError.vault(.passphraseUnavailable(.noTerminal))) { try token(source(nil)) }
    #expect(try source(nil).vaultStatus().unlockedUntil == nil)
    #expect(try source(nil).lock().wasUnlocked)
  }

  @Test func aBackupPromptsForItsOwnPassphrase() throws {
    try protect("p")
    let path = fixture.root + "/backup.db"
    _ = try source("p").backUpVault(to: path)
    try source("p").rotateVault()
    let asked = Asked()
    _ = try source("p", asked: asked).restoreVault(from: path, keyFile: nil)
    #expect(asked.questions == [.backup(attempt: 1)])
  }

  @Test func aUserHasThreeAttempts() throws {
    try protect("p")
    let asked = Asked()
    #expect(throws: CredentialError.vault(.wrongPassphrase)) { try token(source("q", asked: asked)) }
    #expect(asked.questions == [.vault(attempt: 1), .vault(attempt: 2), .vault(attempt: 3)])
  }

  @Test func aFileOrACommandAnswersFirstAndOnce() throws {
    try protect("p")
    let path = fixture.root + "/passphrase"
    let cases: [(String, [String: String], StoreError?)] = [
      ("p\r\n", ["CREDMGR_PASSPHRASE_FILE": path, "CREDMGR_PASSPHRASE_COMMAND": "false"], nil),
      ("p", ["CREDMGR_PASSPHRASE_COMMAND": "cat '\(path)'"], nil),
      ("q\n", ["CREDMGR_PASSPHRASE_FILE": path], .wrongPassphrase),
      ("\n", ["CREDMGR_PASSPHRASE_FILE": path], .passphraseUnavailable(.endOfInput)),
      ("p", ["CREDMGR_PASSPHRASE_COMMAND": "false"], .passphraseCommandFailed(status: 1)),
      ("p", ["CREDMGR_PASSPHRASE_FILE": path + "x"], .passphraseUnavailable(.notFound(path: path + "x"))),
    ]
    for (text, environment, error) in cases {
      try PrivateFile.replace(path, Array(text.utf8))
      let asked = Asked()
      let source = source("p", asked: asked, environment: environment)
      if let error {
        #expect(throws: CredentialError.vault(error), "\(text)") { try token(source) }
      } else {
        #expect(try token(source) == "token-1", "\(text)")
      }
      #expect(asked.questions.isEmpty)
    }
    // An empty variable counts as unset.
    #expect(try token(source("p", environment: ["CREDMGR_PASSPHRASE_FILE": ""])) == "token-1")
  }

  @Test func aRotationNeedsThePassphrase() throws {
    try protect("p")
    let before = try source("p").vault().openedKeys.vault
    #expect(throws: CredentialError.vault(.passphraseUnavailable(.noTerminal))) {
      let opened = source("p")
      _ = try token(opened)
      try source(nil).rotateVault()
    }
    try source("p").rotateVault()
    let after = source("p")
    #expect(try token(after) == "token-1")
    #expect(try after.vault().openedKeys.vault != before)
    #expect(try after.accounts().verify() == [])
    #expect(throws: CredentialError.vault(.wrongPassphrase)) { try token(source("q")) }
  }

  /// A saved answer is encrypted with the old key.
  @Test func rotationCommitsSavedAnswers() throws {
    try fixture.store(Fixture.credential("old"))
    let kept = KeptAnswer(Fixture.credential("new"), after: Secret("old"))
    try fixture.leave(ExchangeNote(.refresh, startedAt: 1), kept)
    try fixture.another().rotateVault()
    #expect(try fixture.stored()?.accessToken == Secret("new"))
    try fixture.expectNothingLeft()
  }

  /// The output and status of `secret-tool` when credmgr gets a key.
  @Test(
    arguments: [
      ("exit 0", SecretServiceFault.noKey), ("echo label = x; echo Cannot get secret of a locked object >&2", .locked),
      ("echo secret-tool: Could not connect: No such file or directory >&2; exit 1", .noBus),
      ("echo The name org.freedesktop.secrets was not provided by any .service files >&2; exit 1", .noService),
      ("echo secret = no-hexadecimal", .failed), ("exit 139", .noService), ("", nil),
    ] as [(String, SecretServiceFault?)])
  func everyFailureOfTheSecretServiceHasAName(script: String, fault: SecretServiceFault?) throws {
    let client = try secretService(script)
    if fault == nil { _ = try File.remove(fixture.root + "/secret-tool") }
    #expect(throws: StoreError.secretService(fault ?? .notInstalled)) { try client.lookup("00") }
  }

  @Test(arguments: [[:], ["DBUS_SESSION_BUS_ADDRESS": "autolaunch:"], ["XDG_RUNTIME_DIR": "/nonexistent"]])
  func withoutASessionBusNothingIsStarted(environment: [String: String]) {
    let keys = KeySources(environment: { environment[$0] })
    let source = CredentialSource(
      home: fixture.home, http: nil, clock: fixture.clock, random: SystemRandomSource(), keys: keys)
    #expect(throws: CredentialError.vault(.secretService(.noBus))) { try source.protect(with: .secretService) }
  }

  @Test func aKeyIsStoredThroughStandardInput() throws {
    let kept = fixture.root + "/kept"
    let client = try secretService(
      """
      case $1 in
      search) test ! -e \(kept) || sed 's/^/secret = /' \(kept);;
      store) echo "$@" >\(kept).arguments; cat >\(kept); echo "$DBUS_SESSION_BUS_ADDRESS" >\(kept).bus;;
      clear) rm \(kept);;
      esac
      """)
    let item = try #require(try SlotDraft.secretService(random: SystemRandomSource()).item)
    try client.store(item)
    let line = Hexadecimal.encode(item.key.revealBytes())
    #expect(try File.read(kept, limit: 99) == Array(line.utf8))
    #expect(
      try File.read(kept + ".arguments", limit: 999)
        == Array("store --label=credmgr vault xdg:schema net.credmgr.VaultKey vault-key \(item.name)\n".utf8))
    #expect(try File.read(kept + ".bus", limit: 99) == Array("unix:path=/x\n".utf8))
    #expect(try client.lookup(item.name) == item.key)
    try client.remove(item.name)
    try client.remove(item.name)
    #expect(throws: StoreError.secretService(.noKey)) { try client.lookup(item.name) }
  }

  @Test(arguments: [
    ("echo secret-tool: Cannot create an item in a locked collection", SecretServiceFault.locked),
    ("echo secret-tool: Object does not exist at path x", .locked), ("echo secret-tool: no", .failed),
  ]) func aKeyThatIsNotStored(says: String, fault: SecretServiceFault) throws {
    let client = try secretService("test $1 != store || { \(says) >&2; exit 1; }")
    let item = try #require(try SlotDraft.secretService(random: SystemRandomSource()).item)
    #expect(throws: StoreError.secretService(fault)) { try client.store(item) }
    // This program claims to have stored the key.
    let liar = try secretService("exit 0")
    #expect(throws: StoreError.secretService(.noKey)) { try liar.store(item) }
  }

  /// Returns a client whose `secret-tool` is a script.
  private func secretService(_ script: String) throws -> SecretServiceClient {
    let program = fixture.root + "/secret-tool"
    // Another process writes it: a program that a test beside this one starts could inherit our open file, and the
    // system runs no file that is open for writing.
    let write = "printf '#!/bin/sh\\n%s\\n' \"$0\" > \"$1\" && chmod 755 \"$1\""
    _ = try Launcher.run("/bin/sh", ["-c", write, script, program])
    let variables = ["PATH": fixture.root, "DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"]
    return SecretServiceClient(environment: { variables[$0] })
  }

  @Test func aBackupReplacesNoFile() throws {
    let path = fixture.root + "/backup.db"
    #expect(try fixture.source.backUpVault(to: path) == [.keyFile])
    let bytes = try PrivateFile.read(path, limit: 1 << 24)
    #expect(throws: CredentialError.system(.exists(path: path))) { try fixture.source.backUpVault(to: path) }
    #expect(try PrivateFile.read(path, limit: 1 << 24) == bytes)
  }

  @Test func aSourceContinuesWithTheRestoredVault() throws {
    let path = fixture.root + "/backup.db"
    _ = try fixture.source.backUpVault(to: path)
    try fixture.store(Fixture.credential("token-2"))
    #expect(try token(fixture.source) == "token-2")
    let kept = try fixture.source.restoreVault(from: path, keyFile: nil)
    #expect(kept.replaced == [fixture.home.vaultLocation.file + ".replaced"])
    #expect(try token(fixture.source) == "token-1")
    #expect(try fixture.source.accounts().verify() == [])
  }

  @Test func aBackupHasTheDescriptorsAndTheRules() throws {
    let (path, source) = (fixture.root + "/backup.db", fixture.source)
    let descriptor = fixture.home.userProviders + "/mine.yaml"
    let text = Array("provider: mine\ngrant: api_key\n".utf8)
    try File.createDirectory(fixture.home.userProviders)
    try File.replace(descriptor, text)
    try File.replace(fixture.home.accountRules, Array("rules\n".utf8))
    _ = try source.backUpVault(to: path)
    try File.remove(descriptor)
    try File.replace(fixture.home.accountRules, Array("other rules\n".utf8))
    let restoration = try source.restoreVault(from: path, keyFile: nil)
    #expect(restoration.files == [descriptor])
    #expect(restoration.different == [fixture.home.accountRules])
    #expect(try File.read(descriptor, limit: 1 << 20) == text)
    // A later backup does not have what no longer exists.
    try File.remove(descriptor)
    try File.remove(fixture.home.accountRules)
    _ = try source.backUpVault(to: path + ".2")
    #expect(try source.restoreVault(from: path + ".2", keyFile: nil).files.isEmpty)
  }

  @Test func aKeyFileNeedsNoUnlocking() throws {
    #expect(try fixture.source.unlock(for: .seconds(60)) == .opensByItself)
    #expect(try fixture.source.lock() == (false, true))
  }
}

@Suite struct VaultExportTests {
  private let fixture: Fixture

  init() throws {
    fixture = try Fixture.added(credential: Fixture.credential())
    try fixture.source.accounts(.readWrite).select("ana", provider: "example")
    var login = HostLogin(username: "u", password: Secret("p"))
    login.path = "\"x\""
    try fixture.source.store(login, for: "https://host.example")
  }

  @Test func everyRecordThatAnotherMachineCanUse() throws {
    let (json, parts) = try fixture.source.exportVault(isPlain: true)
    #expect(parts == TransferredParts(records: 4))
    let other = try Fixture()
    try other.ship(Fixture.endpoints)
    #expect(try other.source.importVault(Array(json.encoded.utf8), acceptsPlain: true, replaces: false).records == 4)
    #expect(try other.stored() == fixture.stored())
    #expect(try other.another().accounts().selected(for: "example") == "ana")
    #expect(
      try other.another().hostLogin(HostLoginPattern(origin: "https://host.example"))
        == fixture.source.hostLogin(HostLoginPattern(origin: "https://host.example")))
    #expect(try other.another().exportVault(isPlain: true).json == json)
    // Importing again changes nothing.
    #expect(try other.source.importVault(Array(json.encoded.utf8), acceptsPlain: true, replaces: false).isEmpty)
  }

  @Test(arguments: ["true", "12", "\"quoted\"", "{}", "null", "a b"])
  func anAccountNameThatLooksLikeJSON(_ name: String) throws {
    try fixture.store(Fixture.credential(), name)
    try fixture.another().accounts(.readWrite).select(name, provider: "example")
    let other = try Fixture()
    _ = try other.source.importVault(
      Array(fixture.another().exportVault(isPlain: true).json.encoded.utf8), acceptsPlain: true, replaces: false)
    #expect(try other.another().accounts().selected(for: "example") == name)
  }

  @Test func theEncryptedFormShowsNothingAndOpensWithItsPassphrase() throws {
    let export = try VaultExport(fixture.source.accounts().store)
    let cheap = PassphraseCosts(operations: 1, memory: 8192)
    let text = try export.encrypted(Secret("p"), costs: cheap, random: SystemRandomSource()).encoded
    // The three letters may occur by chance in the encrypted text.
    for secret in ["token-1", "refresh-1", "example", "\"ana\"", "secret-1"] { #expect(!text.contains(secret)) }
    var attempts: [Int] = []
    let opened = try VaultExport(Array(text.utf8)) { attempt throws(StoreError) in
      attempts.append(attempt)
      return Secret(attempt < 3 ? "wrong" : "p")
    }
    #expect(attempts == [1, 2, 3])
    #expect(opened.plain == export.plain)
    // Changing any byte of the encrypted part causes an error.
    let value = try JSONValue.parse(Array(text.utf8))
    let sealed = try #require(value["sealed"]?.text.flatMap(Base64.decode))
    for index in stride(from: 0, to: sealed.count, by: 101) {
      var altered = sealed
      altered[index] ^= 1
      let members = try #require(value.members).map {
        $0.name == "sealed" ? JSONValue.Member("sealed", .string(Base64.encode(altered))) : $0
      }
      #expect(throws: CredentialError.wrongExportPassphrase) {
        try VaultExport(Array(JSONValue.object(members).encoded.utf8)) { attempt throws(StoreError) in
          guard attempt == 1 else { throw .wrongPassphrase }
          return Secret("p")
        }
      }
    }
  }

  @Test func existingDataIsReplacedOnlyOnRequest() throws {
    let json = try Array(fixture.source.exportVault(isPlain: true).json.encoded.utf8)
    try fixture.store(Fixture.credential("token-2"))
    let identifier = RecordIdentifier(.credential, of: AccountID("example", "ana"))
    #expect(throws: CredentialError.alreadyThere([identifier], files: [])) {
      try fixture.another().importVault(json, acceptsPlain: true, replaces: false)
    }
    #expect(try fixture.stored()?.accessToken == Secret("token-2"))
    #expect(try fixture.another().importVault(json, acceptsPlain: true, replaces: true).records == 1)
    #expect(try fixture.stored()?.accessToken == Secret("token-1"))
  }

  @Test(arguments: [
    "", "[]", "{}", "nonsense", #"{"format":"credmgr-export-2","records":[]}"#, #"{"format":"credmgr-export-1"}"#,
    #"{"format":"credmgr-export-1","records":[1]}"#,
    #"{"format":"credmgr-export-1","records":[{"kind":"event","provider":"a","account":"b","value":"x"}]}"#,
    #"{"format":"credmgr-export-1","records":[{"kind":"credential","provider":"../x","account":"b","value":{}}]}"#,
    #"{"format":"credmgr-export-1","records":[{"kind":"credential","provider":"x","account":"","value":{}}]}"#,
    #"{"format":"credmgr-export-1","records":[{"kind":"selection","provider":"x","account":"y","value":"z"}]}"#,
    #"{"format":"credmgr-export-1","records":[{"kind":"registration","provider":"x","account":"","value":"z"}]}"#,
    #"{"format":"credmgr-export-encrypted-1","operations":1,"memory":1,"salt":"","nonce":"","sealed":""}"#,
    #"{"format":"credmgr-export-encrypted-1","operations":1,"memory":99999999999999,"salt":"AAAAAAAAAAAAAAAAAAAAAA==","nonce":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","sealed":""}"#,
  ]) func invalidExportsAreRefused(_ text: String) throws {
    #expect(throws: CredentialError.malformedExport) {
      try fixture.source.importVault(Array(text.utf8), passphrase: Secret("p"), acceptsPlain: false, replaces: true)
    }
  }
}

/// Tests that an export contains descriptors and rules, and keeps agreements.
@Suite struct TransferTests {
  private static func exporting() throws -> Fixture {
    let fixture = try Fixture()
    try fixture.add(fixture.file(Fixture.endpoints), secret: "secret-1")
    try File.replace(fixture.home.accountRules, Array("rules: []\n".utf8))
    try fixture.store(Fixture.credential())
    return fixture
  }

  static func plain(_ fixture: Fixture) throws -> [UInt8] {
    try Array(fixture.another().exportVault(isPlain: true).json.encoded.utf8)
  }

  @Test func anExportHasDescriptorsAndRules() throws {
    let fixture = try Self.exporting()
    let (json, parts) = try fixture.another().exportVault(isPlain: true)
    #expect(parts == TransferredParts(records: 2, descriptors: 1, hasRules: true))
    let other = try Fixture()
    // A shipped descriptor with the same name does not inherit the agreement.
    try other.ship(Fixture.endpoints.replacing("provider.example", with: "shipped.example"))
    let bytes = Array(json.encoded.utf8)
    let imported = try other.source.importVault(bytes, acceptsPlain: true, replaces: false)
    var expected = parts
    expected.replacesShipped = ["example"]
    #expect(imported == expected)
    let own = Array("provider: example\n\(Fixture.endpoints)\n".utf8)
    #expect(try File.read(other.home.userProviders + "/example.yaml", limit: 1 << 20) == own)
    _ = try other.another().client("example")
    #expect(try other.another().importVault(bytes, acceptsPlain: true, replaces: false).isEmpty)
    try File.replace(other.home.accountRules, Array("rules:\n".utf8))
    #expect(throws: CredentialError.alreadyThere([], files: [other.home.accountRules])) {
      try other.another().importVault(bytes, acceptsPlain: true, replaces: false)
    }
    #expect(try other.another().importVault(bytes, acceptsPlain: true, replaces: true).hasRules)
  }

  /// The user's files may be symbolic links, for example into a dotfiles repository.
  @Test func aLinkToADescriptorStays() throws {
    let fixture = try Self.exporting()
    let bytes = try Self.plain(fixture)
    let path = fixture.home.userProviders + "/example.yaml"
    let target = fixture.home.configuration + "/real.yaml"
    try File.replace(target, Array("provider: example\n\(Fixture.endpoints)\ntitle: Changed\n".utf8))
    try File.remove(path)
    try #require(unsafe symlink(target, path) == 0)
    #expect(try fixture.another().importVault(bytes, acceptsPlain: true, replaces: true).descriptors == 1)
    #expect(File.isLink(path))
    #expect(try File.read(target, limit: 1 << 20) == Array("provider: example\n\(Fixture.endpoints)\n".utf8))
    try fixture.add(fixture.file(Fixture.endpoints + "\ntitle: New"), replaces: true)
    #expect(File.isLink(path))
    #expect(try fixture.another().descriptor("example").descriptor.title == "New")
  }

  /// Exports of earlier versions have no descriptors; another descriptor with the same name gets nothing.
  @Test func anImportedRegistrationKeepsItsAgreement() throws {
    let fixture = try Self.exporting()
    let value = try JSONValue.parse(Self.plain(fixture))
    let old = JSONValue.object(try #require(value.members).filter { !["descriptors", "rules"].contains($0.name) })
    let other = try Fixture()
    try other.ship(Fixture.endpoints.replacing("provider.example", with: "evil.example"))
    func take() throws -> TransferredParts {
      try other.another().importVault(Array(old.encoded.utf8), acceptsPlain: true, replaces: false)
    }
    #expect(throws: CredentialError.self) { try take() }
    // The opposite case: the agreed descriptor.
    try other.ship(Fixture.endpoints)
    #expect(try take() == TransferredParts(records: 2))
    _ = try other.another().client("example")
  }

  /// The writer of a file could invent its agreement, so the descriptor decides.
  @Test(arguments: [
    (
      #""https://provider.example":["https://provider.example"]"#,
      #""https://provider.example":["https://provider.example","https://evil.example"]"#
    ),
    (#""claims":[]"#, #""claims":[{"helper":"git","host":"evil.example","provider":"example","username":"x"}]"#),
    (#""pkce":["S256-hex","S256"]"#, #""pkce":["S256-hex","S256","plain","none"]"#),
    (#""bounds":{"#, #""bounds":{"evil":".*""#),
  ]) func anImportedAgreementIsNotTrusted(_ old: String, _ new: String) throws {
    let fixture = try Self.exporting()
    let text = String(decoding: try Self.plain(fixture), as: UTF8.self)
    #expect(text.contains(old))
    let other = try Fixture()
    _ = try other.source.importVault(Array(text.replacing(old, with: new).utf8), acceptsPlain: true, replaces: false)
    #expect(try other.registration() == fixture.registration())
    #expect(try other.another().hostClaims().isEmpty)
    #expect(throws: CredentialError.malformedExport) {
      let evil = text.replacing("http://127.0.0.1/callback/example\"", with: "https://evil.example/\"")
      return try Fixture().source.importVault(Array(evil.utf8), acceptsPlain: true, replaces: false)
    }
  }

  private static func withoutDescriptor(_ fixture: Fixture) throws -> String {
    String(decoding: try plain(fixture), as: UTF8.self)
      .replacing(#""descriptors":{"example""#, with: #""descriptors":{"other""#)
  }

  /// Without a descriptor, the user has agreed to nothing, so credmgr asks about the first one that appears.
  @Test func anAgreementWithoutADescriptor() throws {
    let fixture = try Self.exporting()
    let text = try Self.withoutDescriptor(fixture)
      .replacing(#""places":{"#, with: #""places":{"helpers":{"x":["https://evil.example"]},"#)
    let other = try Fixture()
    var added: [String] = []
    _ = try other.source.importVault(Array(text.utf8), acceptsPlain: true, replaces: false, adds: { added.append($0) })
    try other.ship(Fixture.endpoints)
    #expect(throws: CredentialError.self) { try other.another().permit(.refresh, "example") }
    // credmgr also asks about a descriptor from another import.
    var asked: [String] = []
    #expect(throws: CredentialError.self) {
      try other.another().importVault(Self.plain(fixture), acceptsPlain: true, replaces: true) { _, places in
        asked += places.map(\.name)
        return false
      }
    }
    #expect(asked == ["api.provider.example", "provider.example"])
    #expect(added.isEmpty)
    _ = try other.another().importVault(Self.plain(fixture), acceptsPlain: true, replaces: true) { _, _ in true }
    _ = try other.another().permit(.refresh, "example")
    #expect(try other.registration()?.agreement?.texts(.helpers) == [])
    _ = try Fixture().source.importVault(
      Self.plain(fixture), acceptsPlain: true, replaces: false, adds: { added.append($0) })
    #expect(added == ["example"])
  }

  /// If the file's descriptor cannot be read, the user's earlier agreement stays.
  @Test func anUnreadableDescriptorIsNotAnAgreement() throws {
    let fixture = try Self.exporting()
    let before = try #require(try fixture.registration()?.agreement)
    let broken = try Self.withoutDescriptor(fixture)
      .replacing(#""descriptors":{"other":""#, with: #""descriptors":{"example":"grant: telepathy\n"#)
      .replacing(#""pkce":["S256-hex","S256"]"#, with: #""pkce":["S256-hex","S256","plain","none"]"#)
    var asked: [String] = []
    func take(_ text: String, _ agrees: Bool = true) throws {
      _ = try fixture.another().importVault(Array(text.utf8), acceptsPlain: true, replaces: true) { _, places in
        asked += places.map(\.name)
        return agrees
      }
    }
    try take(broken)
    #expect(asked.isEmpty)
    let after = try #require(try fixture.registration()?.agreement)
    #expect(after.settings == before.settings && after.places == before.places && after.written == before.written)
    try fixture.edit(Fixture.endpoints + "\npkce: none")
    #expect(throws: CredentialError.self) { try fixture.another().permit(.refresh, "example") }
    try fixture.edit(Fixture.endpoints)
    _ = try fixture.another().permit(.refresh, "example")
    try fixture.edit("grant: telepathy")
    #expect(throws: CredentialError.self) {
      try take(broken.replacing(#""client_id":"client-1""#, with: #""client_id":"theirs""#), false)
    }
    #expect(asked == ["theirs"])
  }

  /// The import asks the same as adding the provider.
  @Test(arguments: [
    "issuer: https://honest.example", "device: { hosts: [evil.example] }", "redirect: https://evil.example/cb",
  ]) func anImportAsksAboutWhatIsUnusual(_ more: String) throws {
    let fixture = try Fixture()
    try fixture.addOwn(Fixture.endpoints + "\n" + more) { _ in true }
    let bytes = try Self.plain(fixture)
    let other = try Fixture()
    var asked: [NewPlace] = []
    func take(_ agrees: Bool) throws {
      _ = try other.another().importVault(
        bytes, acceptsPlain: true, replaces: false,
        agrees: { _, places in
          asked += places
          return agrees
        })
    }
    #expect(throws: CredentialError.self) { try take(false) }
    #expect(try asked.count == 1 && other.another().accountsIfAny()?.registration(of: "example") == nil)
    #expect(!File.exists(other.home.userProviders + "/example.yaml"))
    try take(true)
    asked = []
    try take(false)
    #expect(asked.isEmpty)
  }

  @Test func anImportDoesNotWidenTheAgreement() throws {
    let fixture = try Self.exporting()
    let text = String(decoding: try Self.plain(fixture), as: UTF8.self)
    let forged = Array(text.replacing("\"https://provider.example\"", with: "\"https://evil.example\"").utf8)
    let before = try fixture.registration()
    var asked: [String] = []
    let error = #expect(throws: CredentialError.self) {
      try fixture.another().importVault(forged, acceptsPlain: true, replaces: true) { provider, places in
        asked.append(provider + " " + places.map(\.name).joined(separator: ","))
        return false
      }
    }
    if case .importWidens("example", _)? = error {} else { Issue.record("\(String(describing: error))") }
    #expect(asked == ["example evil.example"])
    #expect(try fixture.registration() == before)
    _ = try fixture.another().importVault(forged, acceptsPlain: true, replaces: true) { _, _ in true }
  }

  /// Each part of an agreement is compared, and an incomplete one does not count.
  @Test(
    arguments: [
      (
        #""claims":[]"#,
        #""claims":[{"helper":"git","host":"evil.example","provider":"example","username":"x"}]"#,
        "evil.example"
      ), (#""places":{"#, #""places":{"clusters":{"evil.example":["https://evil.example"]},"#, "evil.example"),
      (#""places":{"#, #""places":{"issuer":{"x":["https://evil.example"]},"#, nil),
      (#""redirect":{"#, #""redirect":{"x":["app:/callback"],"#, "app:/callback"),
      (#""is_of_earlier_version":false"#, #""is_of_earlier_version":true"#, "any host"),
      (#""agreement":"#, #""nothing":"#, "any host"),
    ] as [(String, String, String?)])
  func anImportAsksAboutEachPart(_ old: String, _ new: String, _ place: String?) throws {
    let fixture = try Self.exporting()
    let text = String(decoding: try Self.plain(fixture), as: UTF8.self)
    #expect(text.contains(old))
    var asked: [String] = []
    _ = try? fixture.another().importVault(
      Array(text.replacing(old, with: new).utf8), acceptsPlain: true, replaces: true
    ) { _, places in
      asked += places.map(\.name)
      return false
    }
    #expect(asked == [place].compactMap { $0 })
  }

  /// An account's variables decide where the stored client secret goes.
  @Test(arguments: [("127.0.0.1:7302", ["127.0.0.1:7302"]), ("provider.example", [])])
  func anImportAsksAboutAnAccountsVariables(_ host: String, _ places: [String]) throws {
    let text =
      Fixture.endpoints.replacing("https://provider.example/token", with: "https://{host}/token")
      + "\nvariables: { host: { default: provider.example } }"
    let (fixture, other) = (try Fixture(), try Fixture())
    for each in [fixture, other] { try each.add(each.file(text), secret: "secret-1") }
    var credential = Fixture.credential()
    credential.variables = ["host": host]
    try other.store(credential, "zed")
    var asked: [String] = []
    func take(_ agrees: Bool) throws {
      _ = try fixture.another().importVault(Self.plain(other), acceptsPlain: true, replaces: false) { _, places in
        asked += places.map(\.name)
        return agrees
      }
    }
    try? take(false)
    #expect(asked == places)
    #expect(try (fixture.stored("zed") == nil) == !places.isEmpty)
    try take(true)
    #expect(try fixture.stored("zed") != nil)
  }

  @Test func aPlainFileInsteadOfAnEncryptedOne() throws {
    let bytes = try Self.plain(try Self.exporting())
    for passphrase in [Secret("p"), nil] {
      #expect(throws: CredentialError.plainExport) {
        try Fixture().source.importVault(bytes, passphrase: passphrase, acceptsPlain: false, replaces: false)
      }
    }
  }

  /// A backup restored in another home contains its agreements.
  @Test func aRestoredVaultKeepsItsAgreements() throws {
    let fixture = try Self.exporting()
    let copy = fixture.root + "/copy"
    _ = try fixture.source.backUpVault(to: copy)
    let other = try Fixture()
    try other.ship(Fixture.endpoints.replacing("provider.example", with: "evil.example"))
    let restoration = try other.source.restoreVault(from: copy, keyFile: fixture.home.vaultLocation.keyFile)
    _ = try other.another().permit(.refresh, "example")
    // Without the restored descriptor, the shipped one is used.
    for file in restoration.files { try File.remove(file) }
    for route in [Route.validate, .refresh, .logout] {
      #expect(throws: CredentialError.self) { try other.another().permit(route, "example") }
    }
    try other.ship(Fixture.endpoints)
    _ = try other.another().permit(.refresh, "example")
  }
}

@Suite struct LogTests {
  private let fixture: Fixture

  init() throws { fixture = try Fixture.added() }

  private func log() throws -> [String] {
    try fixture.another().log().events.map { event in
      [event.action.rawValue, event.provider, event.account, event.detail].compactMap { $0 }.joined(separator: " ")
    }
  }

  @Test func changesAreLogged() throws {
    fixture.consent(.token("token-1", refresh: "refresh-1"), .identity("ana"))
    _ = try fixture.login()
    fixture.http.then(.token("token-2", refresh: "refresh-2"))
    let account = try fixture.source.freshAccount("ana", of: "example", RefreshPolicy(always: true))
    fixture.source.noteHandOut(account, to: "git example.org")
    try fixture.source.reject(Secret("token-2"), account: nil, of: "example")
    _ = try fixture.source.logout("ana", of: "example", keepsRemote: true)
    try fixture.source.rotateVault()
    _ = try fixture.source.exportVault(isPlain: true)
    #expect(
      try Set(log()) == [
        "add-provider example", "login example ana authorization_code", "refresh example ana",
        "hand-out example ana git example.org", "refused example ana", "logout example ana forgotten", "rotate",
        "export plain",
      ])
    #expect(try fixture.another().log().lost == 0)
    let all = try fixture.another().log().events
    #expect(all.map(\.time) == all.map(\.time).sorted())
  }

  @Test func failedActionsAreNotLogged() throws {
    fixture.consent(.json("{}", status: 400))
    #expect(throws: CredentialError.self) { try fixture.login() }
    #expect(try log() == ["add-provider example"])
  }

  @Test func aLongTextIsCut() throws {
    let event = LogEvent(
      time: 1, action: .handOut, provider: nil, account: nil, detail: String(repeating: "ü", count: 5000))
    let decoded = try #require(LogEvent(decoding: event.encoded))
    #expect(decoded.detail == String(repeating: "ü", count: 255))
    #expect(event.encoded.count <= 2048)
  }

  /// A planted file is reported to callers that get a token and to readers of the log.
  @Test func tokenUsesThatCannotBeLogged() throws {
    try fixture.store(Fixture.credential())
    let path = fixture.home.vault + "/vault.log"
    try File.remove(path)
    try File.createDirectory(path)
    let source = fixture.another()
    var notices: [Notice] = []
    source.notice = { notices.append($0) }
    source.noteHandOut(try source.freshAccount("ana", of: "example"), to: "token")
    #expect(notices == [.handOutNotNoted(.notRegularFile(path: path))])
    #expect(throws: CredentialError.vault(.file(.notRegularFile(path: path)))) { try source.log() }
  }

  @Test func tokenUsesThatCannotBeRead() throws {
    try fixture.store(Fixture.credential())
    let source = fixture.another()
    source.noteHandOut(try source.freshAccount("ana", of: "example"), to: "token")
    let path = fixture.home.vault + "/vault.log"
    try PrivateFile.replace(path, try PrivateFile.read(path, limit: 4096) + Array("nonsense\n".utf8))
    #expect(try fixture.another().log().lost == 1)
    #expect(try log() == ["add-provider example", "hand-out example ana token"])
  }

  @Test func aReadOnlyVaultStillReturnsTokens() throws {
    try fixture.store(Fixture.credential())
    try fixture.damageVault()
    let account = try fixture.another().freshAccount("ana", of: "example")
    fixture.another().noteHandOut(account, to: "token")
    #expect(account.credential.accessToken == Secret("token-1"))
  }
}

final class Asked { var questions: [PassphraseQuestion] = [] }
