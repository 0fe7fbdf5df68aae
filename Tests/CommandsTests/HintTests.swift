import CredmgrCryptography
import Glibc
import CredmgrHTTP
import CredmgrMessages
import CredmgrOAuth
import CredmgrPlatform
import CredmgrDescriptors
import Testing
import CredmgrStore
import CredmgrYAML

@testable import CredmgrCredentialManager
@testable import CredmgrCommands

/// Tests that running the command in a hint helps.
@Suite struct HintTests {
  private static let failures: [CredentialError] =
    [HTTPError.Unreachable.nameNotResolved, .connectionRefused, .timedOut, .tls(detail: "no"), .proxy, .broken].map {
      .http(.unreachable(host: "notes.example", reason: $0), provider: "notes")
    } + [
      .http(.bodyTooLarge(limit: 1 << 20), provider: "notes"),
      .oauth(.unreadable(.token, expected: .json, mediaType: nil), provider: "notes"),
      .oauth(.missingField(.token, .accessToken), provider: "notes"),
      .oauth(.malformedField(.deviceAuthorization, .expiresIn), provider: "notes"),
    ]

  @Test(arguments: failures) func anUnreachableProviderSuggestsTheDoctor(_ error: CredentialError) {
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
    .clientIdentifierMissing(provider: "notes", needs), .loginNeeded(provider: "notes", account: "it's me", .expired),
    .unknownAccount("ad", provider: "notes", known: ["ada"]),
    .ambiguousAccount(provider: "notes", known: ["it's me", "bob"]),
    .identityMismatch(provider: "notes", account: "ada", expected: "ada", found: "bob", other: nil),
    .identityMismatch(provider: "notes", account: "ada", expected: "ada", found: "bob", other: "it's me"),
    .nameNeeded(provider: "notes", account: "it's me"), .grantNotOffered(.implicit, offered: [.deviceCode]),
    .pasteNeeded(provider: "notes", isCode: false), .pasteExposesToken(provider: "notes"),
    .schemeWithoutState(provider: "notes", redirect: "app:/cb"),
    .loginPageTaken(provider: "notes"), .timedOut(after: .seconds(300)), .lockTimedOut(provider: "notes", account: nil),
    .uncommitted(provider: "notes", account: "it's me", isKept: false, .full(path: file)), .noLoginWaits,
    .otherLoginFailed(provider: "notes"), .accountInLogin(provider: "notes", account: "ada", process: 4711),
    .networkNeeded, .destinationChange(provider: "notes", accounts: ["ada"], places: []),
    .descriptorChanged(provider: "notes", file: file, isOwn: true, places: []),
    .descriptorChanged(provider: "notes", file: file, isOwn: false, places: []),
    .notAgreed(provider: "notes", origin: "https://evil.example", .request),
    .notAgreed(provider: "notes", origin: "https://evil.example", .kubectl),
    .notUsableAlone(provider: "notes", .helper), .notUsableAlone(provider: "notes", .kubectl),
    .proofNeeded(provider: "notes", account: "it's me", isDescribed: true),
    .proofNeeded(provider: "notes", account: "it's me", isDescribed: false),
    .accountsRemain(provider: "notes", accounts: ["ada"]), .extended(provider: "notes", by: ["mine"]),
    .descriptorExists(file), .malformedRegistration(provider: "notes"), .tokenRefused(provider: "notes", words: nil),
    .newPassphraseUnavailable(.noTerminal), .exportPassphraseUnavailable(.noTerminal),
    .alreadyThere([record], files: [file]), .plainExport, .importWidens(provider: "notes", []),
    .http(.portUnavailable(port: 8417), provider: "notes"),
  ]

  private static let protocolErrors: [OAuthError] = [
    .noEndpoint(.refresh), .missingValue(.token, name: "tenant"),
    .unavailable(.token, status: 503, words: nil, retryAfter: nil), .redirected(.token, status: 302), .stateMismatch,
    .stateMissing, .unknownAuthentication("x"), .notARedirect, .foreignRedirect(expected: "http://127.0.0.1/"),
    .tokenMismatch, .callbackNotConfirmed, .deviceCodeExpired, .clientSecretMissing, .clientKeyMalformed,
    .clientKeyTooShort, .clientKeyEncrypted, .clientKeyOpenSSH, .clientCertificate(.otherKey),
    .privateKeyIsNotSent, .clientCertificateMissing, .clientSecretBesideCertificateMissing,
    .tokenNotBound(.token, "Bearer"),
    .notRefreshable, .foreignHost("other.example"), .presentedInQuery, .ambiguousQuery,
    .credentialHeader("Authorization"), .signatureNeedsURL, .malformedCredential,
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

  @Test(arguments: all) func everyErrorHasAHintWithAShellCommand(_ error: CredentialError) throws {
    #expect(!error.message.hints.isEmpty, "\(error.message.text)")
    for remedy in error.message.hints { try expectWhole(remedy) }
  }

  /// Each reason appears once, however many places it has.
  @Test func placesThatNeedConsentForOneReason() {
    func place(_ kind: NewPlace.Kind, _ name: String) -> NewPlace {
      NewPlace(kind: kind, name: name, before: [], place: nil)
    }
    let borrower = NewPlace.Kind.borrower(owner: "honest", page: "login.example")
    let places = [
      place(.devicePage, "a.example"), place(borrower, "b.example"), place(.devicePage, "c.example"),
      place(borrower, "d.example"), place(.othersDevicePage(owner: "honest"), "e.example"),
    ]
    #expect(
      places.peculiarities == [
        "its page for device codes \"a.example\", \"c.example\" is on a different server than its endpoints",
        "logins use \"login.example\", which belongs to \"honest\", and their tokens go to \"b.example\", "
          + "\"d.example\"",
        "its page for device codes \"e.example\" belongs to \"honest\"",
      ])
    // Many changed settings do not hide a place.
    let settings = (1...30).map { place(.value("key\($0)"), "x") }
    #expect((places + settings).peculiarities.count == 4)
    #expect((settings + [place(.tokens, "a.example")]).sentences().first == "it would send tokens to \"a.example\"")
  }

  /// Remedies that only the doctor shows.
  private static let remedies: [Remedy] =
    [Interruption.Exchange.refresh, .login, .logout].map {
      Interruption(provider: "notes", account: "it's me", exchange: $0, startedAt: 0).remedy
    } + entries.flatMap { [$0.removal, $0.removalOfAll] } + [
      .rescuing("/home/ada/my vault"), .restoring(vault: file), .anotherHome, record.remedy(),
      .reinstalling("/src/credmgr/.build/debug/credmgr"), .reinstalling("/usr/local/bin/credmgr"),
      RecordIdentifier(kind: .selection, provider: "notes", account: "").remedy(account: "it's me"),
      StoreError.keyFileMissing(path: file).message(opensOtherwise: true).hints[0],
      StoreError.wrongPassphrase.message(passphrase: .command).hints[0],
      StoreError.wrongPassphrase.message(passphrase: .file(file)).hints[0],
    ]

  private static let entries = ["store", "!f() { echo password=x; }; f", "", "cache --timeout 60"].map {
    GitHelperEntry(scope: "global", origin: "/home/ada/my files/config", key: "credential.helper", value: $0)
  }

  @Test func eachHasOneCommand() throws {
    for remedy in Self.remedies {
      try expectWhole(remedy)
      let sentence = try #require(remedy.sentence())
      #expect(sentence.matches(of: /run "/).count == 1, "\(sentence)")
    }
  }

  /// A value that may be a password does not appear.
  @Test func aShellHelperIsRemovedByItsPrefix() {
    #expect(Self.entries[1].shown == "!f() …")
    #expect(Self.entries[1].removal.commands.first?.last == "^!f[(][)]")
    let entry = GitHelperEntry(scope: "command", origin: "command line:", key: "credential.helper", value: "store")
    #expect(entry.removal.commands == [["unset", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"]])
  }

  @Test func anErrorInGitsConfigurationHasItsLine() {
    let message = Doctor.gitFailure("fatal: bad config line 3 in file /home/ada/my config\n")
    #expect(message?.text == "git cannot read its configuration: bad config line 3 in file /home/ada/my config")
    #expect(message?.hints.first?.commands == [["sed", "-i.old", "3s/^/# /", "/home/ada/my config"]])
    #expect(Doctor.gitFailure("fatal: unable to access 'x'") == nil)
  }

  /// A server's text may be as long as its answer.
  @Test func textsOfServersAreShort() {
    let long = String(repeating: "x", count: 5000)
    let errors: [OAuthError] = [
      .refused(.token, ErrorResponse(code: long, words: long, status: 400)), .tokenType(.token, long),
      .issuedTokenType(.token, long), .tokenNotBound(.token, long), .unknownAuthentication(long),
      .issuerMismatch(expected: "https://a.example", found: long), .foreignIssuer(found: long, host: "a.example"),
      .foreignPage(origin: long), .repeated(.token, name: long),
      .unreadable(.token, expected: .json, mediaType: long), .idToken(.token, .authenticationContext(long)),
    ]
    for error in errors { #expect(error.message(provider: "notes").text.count < 900, "\(error)") }
    let metadata: [MetadataError] = [
      .otherIssuer(found: long), .otherResource(found: long), .foreignMetadata(long), .noGrant(offered: [long]),
      .noAuthentication(offered: [long]), .noProofKey(offered: [long]), .lostProofKey(provider: "a", offered: [long]),
      .invalidURL("jwks_uri", text: long), .insecure("jwks_uri", text: long),
      .severalServers([long, "https://a.example"]),
    ]
    for error in metadata { #expect(error.message(issuer: "https://a.example").text.count < 900, "\(error)") }
  }

  /// The clock has nothing to do with a nonce that the server does not take.
  @Test func aNonceThatIsNeverRightHasNothingToDoWithTheClock() {
    func hints(_ code: String) -> [String?] {
      OAuthError.refused(.token, ErrorResponse(code: code, words: nil, status: 400)).message(provider: "notes").hints
        .map { $0.sentence() }
    }
    #expect(hints("invalid_dpop_proof").contains { $0?.contains("clock") == true })
    #expect(!hints("use_dpop_nonce").contains { $0?.contains("clock") == true })
    #expect(Command.proofHint(wantsNonce: false).sentence()?.contains("clock") == true)
    #expect(Command.proofHint(wantsNonce: true).sentence()?.contains("clock") != true)
  }

  /// The client is not replaced if the clock may be the reason.
  @Test(arguments: [(3700, "is 1 h 1 min behind"), (-400, "is 6 min ahead of")])
  func aRefusalNamesTheClock(_ seconds: Int, _ words: String) {
    var refusal = ErrorResponse(code: "invalid_client", words: "wrong", status: 401)
    refusal.clockDifference = .seconds(seconds)
    let error = OAuthError.refused(.token, refusal)
    let message = error.message(provider: "notes")
    #expect(message.text.hasSuffix(": wrong; the clock of this machine \(words) the provider's"))
    #expect(message.hints.first?.commands == [["credmgr", "doctor"]])
    #expect(!error.refusesClient)
  }

  /// An issuer being added is not yet a provider.
  @Test func anIssuerIsNotAProvider() {
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
  ]) func aCommandIsCorrected(_ arguments: [String], _ wrong: String, _ meant: String, _ command: String) {
    let remedies = [Remedy].correcting(wrong, to: meant)
    #expect(remedies.map { $0.sentence(after: CommandLine(arguments)) } == ["run \"\(command)\""])
  }

  /// Hints repeat neither other programs' commands nor possible secrets.
  @Test(arguments: [
    ["credmgr", "request", "githb", "https://a.example", "-d", "password=1"],
    ["credmgr", "exec", "gitlab", "--", "githb"], ["credmgr", "login", "githb", "--set=a=b"],
    ["credmgr", "exec", "githb", "--", String(repeating: "x", count: 200)],
  ]) func valuesThatHintsDoNotRepeat(_ arguments: [String]) {
    for remedy in [Remedy].correcting("githb", to: "github") {
      #expect(remedy.sentence(after: CommandLine(arguments)) == nil)
    }
  }

  @Test func aLogoutNamesTheLoginThatIsInProgress() {
    let message = CredentialError.accountInLogin(provider: "notes", account: "ada", process: 4711).message
    #expect(message.text.hasSuffix("a login is in progress (process 4711)"))
    #expect(message.hints.first?.commands == [["kill", "4711"]])
  }

  @Test func anInterruptedLoginIsRepeatedWithItsOptions() {
    var interruption = Interruption(provider: "notes", account: "it's me", exchange: .login, startedAt: 0)
    interruption.options = LoginNote(scope: ["read"], variables: ["org": "7"])
    let command = "credmgr login notes --account 'it'\\''s me' --scope read --set org=7"
    #expect(interruption.remedy.sentence() == "run \"\(command)\" again")
  }

  @Test func anAdditionNamesItsVariables() {
    let needs = ClientNeeds(needsIdentifier: true, needsSecret: false, register: nil, variables: ["port=VALUE"])
    #expect(needs.options == ["--client-id", "ID", "--set", "port=VALUE"])
  }

  // MARK: Added options

  private static let completions: [(typed: String, remedy: Remedy, sentence: String)] = [
    ("token notes", "\(add: "--account", "ada") for now", "run \"credmgr token notes --account ada\" for now"),
    (
      "login notes --account ada --paste", "\(add: "--account", "it's me")",
      "run \"credmgr login notes --paste --account 'it'\\''s me'\""
    ), ("login notes --account=ada", "\(add: "--account", "bob")", "run \"credmgr login notes --account bob\""),
    ("token notes", "\(add: "--trace") to see", "run \"credmgr token notes --trace\" to see"),
    ("token notes --trace", "\(add: "--trace")", "run \"credmgr token notes --trace\""),
    // Hints repeat neither a secret nor a text too long for a line.
    ("login notes --set a=b", "\(add: "--account", "ada")", "add \"--account ada\""),
    ("token " + String(repeating: "x", count: 150), "\(add: "--account", "ada")", "add \"--account ada\""),
    // The command has no such option.
    ("token notes", "\(add: "--replace")", "add \"--replace\""),
    ("token notes", "\(credmgr: "login", "notes")", "run \"credmgr login notes\""),
    // The login is the command that failed.
    (
      "login notes --paste --timeout=1m --with-token", "\(credmgr: "login", "notes") again",
      "run \"credmgr login notes --timeout 1m --paste\" again"
    ),
    (
      "login --timeout 1m notes", "\(credmgr: "login", "notes", "--timeout", "2m")",
      "run \"credmgr login notes --timeout 2m\""
    ), ("login other --paste", "\(credmgr: "login", "notes")", "run \"credmgr login notes\""),
  ]

  @Test func everyHintIsACompleteCommand() {
    for (typed, remedy, sentence) in Self.completions {
      // A program that was called by its path has the same name in all hints.
      let line = CommandLine(["/usr/local/bin/credmgr"] + typed.split(separator: " ").map(String.init))
      #expect(remedy.sentence(after: line) == sentence)
    }
  }

  /// An account option is useless in a command without one.
  @Test func anAccountOptionNeedsACommandThatHasIt() {
    let hints = CredentialError.ambiguousAccount(provider: "notes", known: ["ada", "bob"]).message.hints
    let line = CommandLine(["credmgr", "exec", "notes", "--", "tool"])
    #expect(
      hints.compactMap { $0.sentence(after: line) } == ["run \"credmgr use notes ada\" to set the default account"])
    let message = CredentialError.ambiguousAccount(provider: "notes", known: ["ada", "bob"]).message
    #expect(
      message.hint(after: CommandLine(["credmgr", "token", "notes"])) == "run \"credmgr token notes --account ada\"")
  }

  private static let issuer = "https://login.example.com/tenant"

  private static func metadataErrors() throws -> [CredentialError] {
    let places = MetadataLocation.all(for: try Issuer(issuer))
    let missing = places.map { MetadataError.Attempt($0, HTTPResponse(status: 404, fields: [:], body: [])) }
    let moved = HTTPResponse(status: 302, fields: ["Location": "https://www.example.com/login"], body: [])
    let errors: [MetadataError] = [
      .absent(missing), .absent(missing + [.init(places[0], moved)]), .unavailable(missing[0]), .notJSON,
      .otherIssuer(found: issuer + "/v2.0"), .missing("token_endpoint"),
      .invalidURL("token_endpoint", text: "https://169.254.169.254/[2J"),
      .insecure("token_endpoint", text: "http://www.example.com/"),
      .inwardAddress("token_endpoint", text: "https://10.0.0.1/token"), .noGrant(offered: ["password", "urn:other"]),
    ]
    return errors.map { .discovery($0, issuer: issuer) }
  }

  private static let places = [
    NewPlace(kind: .secrets, name: "login.evil.example", before: ["notes.example"], place: place),
    NewPlace(kind: .tokens, name: "api.evil.example", before: [], place: place),
    NewPlace(kind: .redirect, name: "http://127.0.0.1:8417/callback/notes", before: [], place: place),
    NewPlace(kind: .scheme(owner: "other"), name: "com.example.notes", before: [], place: nil),
    NewPlace(kind: .borrower(owner: "honest", page: "login.example"), name: "b.example", before: [], place: place),
    NewPlace(kind: .anyIssuer, name: "", before: [], place: place),
    NewPlace(kind: .value("endpoints.token.url"), name: "https://evil.example/token", before: [], place: place),
  ]
  private static let place = Place(source: Source(name: "/home/ada/notes.yaml", text: ""), line: 12, column: 18)

  private static let consents: [CredentialError] = [
    .destinationChange(provider: "notes", accounts: ["ada@notes.example", "work"], places: places),
    .descriptorChanged(provider: "notes", file: file, isOwn: true, places: places),
    .descriptorChanged(provider: "notes", file: file, isOwn: false, places: places),
    .peculiar(provider: "notes", places, isBeingAdded: true), .importWidens(provider: "notes", places),
  ]

  private static let notices: [Notice] =
    [Interruption.Exchange.refresh, .login, .logout].map {
      .interrupted(Interruption(provider: "notes", account: "ada@notes.example", exchange: $0, startedAt: 1))
    } + [
      .waiting(provider: "notes", account: "ada@notes.example", for: .seconds(2)),
      .unidentified(
        account: "default-2", beside: AccountID("notes", "ada@notes.example"),
        .http(.unreachable(host: "notes.example", reason: .timedOut), provider: "notes")),
      .unnameable(account: "default", provider: "notes"), .authenticationUnconfirmed(provider: "notes"),
      .tokensLeft(
        provider: "notes", .http(.unreachable(host: "notes.example", reason: .timedOut), provider: "notes")),
      .defaultNeedsLogin(provider: "notes", account: "ada@notes.example", other: "ada2@notes.example"),
      .sameIdentity(provider: "notes", account: "work", identity: "ada@notes.example", other: "ada@notes.example"),
      .notRefreshed(
        provider: "notes", account: "ada@notes.example", left: .seconds(600),
        .loginNeeded(provider: "notes", account: "ada@notes.example", .refreshRefused(nil))),
    ]

  /// A short wait is usual. Without a terminal, only a wait that may last as long as a lease is worth a line.
  @Test func waitsThatAreShown() {
    func isDue(_ seconds: Int, atTerminal: Bool) -> Bool {
      Notice.waiting(provider: "notes", account: nil, for: .seconds(seconds)).isDue(atTerminal: atTerminal)
    }
    #expect(!isDue(0, atTerminal: true) && isDue(1, atTerminal: true))
    #expect(!isDue(9, atTerminal: false) && isDue(10, atTerminal: false))
    #expect(Notice.unnameable(account: "default", provider: "notes").isDue(atTerminal: false))
  }

  /// Each sentence, each item of a list and each hint takes at most two lines of 80 columns.
  @Test func aMessageTakesTwoLines() throws {
    let errors = (Self.all + Self.consents + (try Self.metadataErrors())).map(\.message)
    for message in errors + Self.notices.map({ $0.message(now: 1_000_000) }) {
      let lines = message.lines(columns: 80).split(separator: "\n")
      let starts = lines.indices.filter { lines[$0].hasPrefix("credmgr: ") || !lines[$0].dropFirst(2).hasPrefix(" ") }
      #expect(zip(starts, starts.dropFirst() + [lines.count]).allSatisfy { $1 - $0 <= 2 }, "\(lines)")
      #expect(lines.count { $0.hasPrefix("credmgr: ") } <= 2, "\(lines)")
      // Several places belong in a list.
      #expect(message.sentence.utf8.count <= 160 - "credmgr: error: ".utf8.count, "\(message.sentence)")
    }
  }

  /// A list follows its sentence, and the hint follows the list.
  @Test func placesAreAList() {
    let error = CredentialError.peculiar(provider: "notes", Self.places, isBeingAdded: true)
    let lines = error.message.lines(columns: 80).split(separator: "\n")
    #expect(lines.first == "credmgr: error: \"notes\" requires your consent:")
    #expect(lines.last?.hasPrefix("credmgr: hint: ") == true)
    #expect(lines.dropFirst().dropLast().allSatisfy { $0.hasPrefix("  ") })
    #expect(error.message.text.hasPrefix("\"notes\" requires your consent: its "))
  }

  private static let findings: [Finding.Problem] = [
    .secretInAddress("refresh_token"), .foreignPage("https://login.example.com"), .keptVariable("subdomain"),
    .keptSubdomains("subdomain"), .unboundedHost("instance_url"), .unprotectedState(.scheme),
    .unprotectedState(.noProofKey), .unprotectedState(.implicit), .ownedParameter("code_challenge"),
    .fixedParameter("code_challenge"), .emptyList("hosts"), .sentByBrowser("authentication"),
    .withoutKey("iss", needed: "issuer"), .unusedAssertion, .assertionInRequest, .tokenOfElement,
    .unpromptedVariable("account_region"), .accountWithoutSource("account"),
    .malformedName("two words"), .shownSecret("user.token"), .subdomains("*.example.com"),
    .withoutGrant("pkce", [.authorizationCode, .implicit]), .bracketInPath("user[email]"),
    .newSetting("response.state", value: "optional", provider: "notes"), .newHost("api.example.com", provider: "notes"),
    .unknownValue("authorisation", allowed: Grant.allCases.map(\.rawValue), suggestion: nil),
  ]

  @Test func aFindingTakesTwoLines() {
    for problem in Self.findings {
      let finding = Finding(problem, at: Self.place)
      #expect(finding.sentence.utf8.count <= 160 - "notes.yaml:12:18: error: ".utf8.count, "\(finding.sentence)")
    }
  }

  // MARK: Files

  private static func context(_ home: String) throws -> Context {
    let environment = ["CREDMGR_HOME": home, "HOME": home]
    let home = try Home(environment: { environment[$0] }, executable: "/usr/bin/credmgr")
    let source = CredentialSource(home: home, http: nil, clock: SystemClock(), random: SystemRandomSource())
    return Context(
      source: source, homeFault: nil, clock: SystemClock(), executable: "/usr/bin/credmgr",
      environment: { environment[$0] }, coreLimit: nil, online: nil, line: CommandLine(["credmgr", "status"]))
  }

  /// The remedy opens the user's own file or a parent directory. For other users' files, it only shows them.
  @Test func remediesForFiles() throws {
    let folder = try TemporaryFolder()
    let context = try Self.context(folder.path + "/home")
    func mended(_ error: POSIXError) -> [[String]] { context.resolved(error.message.hints).flatMap(\.commands) }
    try File.createDirectory(folder.path + "/above")
    let file = folder.path + "/above/file"
    try PrivateFile.create(file, [])
    #expect(unsafe chmod(file, 0o000) == 0)
    #expect(mended(.permissionDenied(path: file)) == [["chmod", "u+rwX", file]])
    #expect(unsafe chmod(file, 0o600) == 0)
    #expect(unsafe chmod(folder.path + "/above", 0o500) == 0)
    #expect(mended(.permissionDenied(path: file + "/none")) == [["chmod", "u+rwX", folder.path + "/above"]])
    #expect(unsafe chmod(folder.path + "/above", 0o700) == 0)
    #expect(mended(.otherOwner(path: file)).isEmpty && mended(.notRegularFile(path: file)).isEmpty)
    let vault = folder.path + "/home/vault"
    #expect(mended(.notDirectory(path: vault)) == [["mv", vault, vault + ".old"]])
    #expect(mended(.notDirectory(path: folder.path + "/home")) == [["unset", "CREDMGR_HOME"]])
    #expect(mended(.symbolicLink(path: vault)) == [["rm", vault]])
    #expect(mended(.symbolicLink(path: file)).isEmpty)
    #expect(mended(.readableByOthers(path: vault, mode: 0o755)) == [["chmod", "go=", vault]])
    // The command examines an existing directory.
    #expect(mended(.readOnlyFileSystem(path: folder.path + "/none/at/all")) == [["findmnt", "-T", folder.path]])
  }

  /// The `Messages` directory never reads the disk or the environment; callers pass what a message depends on.
  @Test func messagesDoNoIO() throws {
    let folder = Path.joining(Path.directory(of: #filePath) ?? "", "../../Sources/Messages")
    let names = try File.names(in: folder)
    #expect(!names.isEmpty)
    for name in names {
      let text = String(decoding: try File.read(Path.joining(folder, name), limit: 1 << 20), as: UTF8.self)
      let asked = text.matches(
        of:
          /\b(File|PrivateFile|Environment|UserEntry|Launcher|Terminal|Browser)\.|Path\.(resolved|currentDirectory|executable)/
      )
      #expect(asked.isEmpty, "\(name): \(asked.map { text[$0.range] })")
    }
  }
}

/// Placeholders for values that only the user knows.
private let ofThePerson = ["ID", "FILE", "NEW", "PKCS8", "NAME", "SCOPE", "URL", "ACCOUNT", "@FILE", "VALUE"]

/// Checks a remedy: a shell changes nothing in it, credmgr accepts its own commands, and every command is a value, not
/// part of the words.
func expectWhole(_ remedy: Remedy) throws {
  // A correction requires the failed command.
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

/// A directory that is removed with its content.
private final class TemporaryFolder {
  let path = "/tmp/credmgr-hints.\(UInt64.random(in: 0 ... .max))"

  init() throws { try File.createDirectory(path) }

  deinit { _ = try? Launcher.run("/bin/sh", ["-c", "chmod -R u+rwX \"$0\"; rm -rf \"$0\"", path]) }
}
