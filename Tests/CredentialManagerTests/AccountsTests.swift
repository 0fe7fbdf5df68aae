import CredmgrCryptography
import CredmgrOAuth
import Testing
import CredmgrStore

@testable import CredmgrCredentialManager

struct AccountsTests {
  private static func fixture(_ names: String...) throws -> Fixture {
    let fixture = try Fixture.added()
    for name in names { try fixture.store(Fixture.credential("token of " + name), name) }
    return fixture
  }

  private static func claim(of provider: String, username: String = "x") -> HostClaim {
    HostClaim(helper: .git, host: "git.example", provider: provider, username: username, ignoresUsername: false)
  }

  @Test func theNamedAccount() throws {
    let fixture = try Self.fixture("ana", "bob")
    let accounts = try fixture.source.accounts(.readWrite)
    try accounts.select("ana", provider: "example")
    #expect(try accounts.resolve("bob", provider: "example").credential.accessToken == Secret("token of bob"))
    #expect(throws: CredentialError.unknownAccount("Bob", provider: "example", known: ["ana", "bob"])) {
      try accounts.resolve("Bob", provider: "example")
    }
    #expect(throws: CredentialError.loginNeeded(provider: "other", account: "ana", .noCredential)) {
      try accounts.resolve("ana", provider: "other")
    }
  }

  /// git's user name matches an account's name or identity; a name takes precedence.
  @Test func byAUserName() throws {
    let fixture = try Self.fixture("octo", "ana")
    for (name, identity) in [("work", "Octo-Cat"), ("home", "octo-cat"), ("other", "ana")] {
      try fixture.store(Fixture.credential("token of " + name, identity: identity), name)
    }
    let accounts = try fixture.source.accounts(.readWrite)
    let (claim, another) = (Self.claim(of: "example"), Self.claim(of: "another"))
    #expect(try accounts.name(forUsername: "octo", of: claim) == "octo")
    #expect(try accounts.name(forUsername: "ana", of: claim) == "ana")
    #expect(try accounts.name(forUsername: "octo-cat", of: claim) == "home")
    try accounts.select("work", provider: "example")
    #expect(try accounts.name(forUsername: "octo-cat", of: claim) == "work")
    #expect(try accounts.name(forUsername: "eve", of: claim) == nil)
    #expect(try accounts.name(forUsername: "octo", of: another) == nil)
  }

  /// The user name of a user name and a password also names its account.
  @Test func byTheUserNameOfAPair() throws {
    let fixture = try Self.fixture()
    for name in ["work", "home"] {
      var credential = Credential(grant: .basic, accessToken: Secret("pw of " + name), obtainedAt: 0)
      credential.variables = ["username": name + "@corp"]
      try fixture.store(credential, name)
    }
    let accounts = try fixture.source.accounts(.readWrite)
    func claim(_ username: String) -> HostClaim { Self.claim(of: "example", username: username) }
    #expect(try accounts.name(forUsername: "Home@corp", of: claim("{username}")) == "home")
    #expect(try accounts.name(forUsername: "work", of: claim("{username}")) == "work")
    #expect(try accounts.name(forUsername: "eve", of: claim("{username}")) == nil)
    #expect(try accounts.name(forUsername: "home@corp", of: claim("fixed")) == nil)
  }

  @Test func theDefaultAccount() throws {
    let fixture = try Self.fixture("ana", "bob")
    let accounts = try fixture.source.accounts(.readWrite)
    #expect(throws: CredentialError.ambiguousAccount(provider: "example", known: ["ana", "bob"])) {
      try accounts.resolve(nil, provider: "example")
    }
    try accounts.select("bob", provider: "example")
    #expect(try fixture.another().accounts().resolve(nil, provider: "example").name == "bob")
    #expect(throws: CredentialError.unknownAccount("eve", provider: "example", known: ["ana", "bob"])) {
      try accounts.select("eve", provider: "example")
    }
    #expect(try accounts.selected(for: "example") == "bob")
    #expect(try accounts.selected(for: "other") == nil)
  }

  @Test func theOnlyAccount() throws {
    let fixture = try Self.fixture("ana")
    let accounts = try fixture.source.accounts()
    #expect(try accounts.resolve(nil, provider: "example").name == "ana")
    #expect(throws: CredentialError.loginNeeded(provider: "other", account: nil, .noCredential)) {
      try accounts.resolve(nil, provider: "other")
    }
  }

  /// No account replaces a default account that no longer exists.
  @Test func aDeletedDefaultAccount() throws {
    let fixture = try Self.fixture("ana", "bob")
    let accounts = try fixture.source.accounts(.readWrite)
    try accounts.select("bob", provider: "example")
    try accounts.store.apply([.remove(RecordIdentifier(.credential, of: AccountID("example", "bob")))])
    #expect(throws: CredentialError.unknownAccount("bob", provider: "example", known: ["ana"])) {
      try accounts.resolve(nil, provider: "example")
    }
  }

  /// An attacker without a key removes or changes a record, and credmgr still does not use another account's token.
  @Test(arguments: ["DELETE FROM record WHERE ", "UPDATE record SET sealed=zeroblob(99) WHERE "], [true, false])
  func aRecordThatWasTakenAway(_ change: String, _ isDefaultKnown: Bool) throws {
    let fixture = try Self.fixture("ana", "bob")
    let bob = RecordIdentifier(.credential, of: AccountID("example", "bob"))
    if isDefaultKnown { try fixture.source.accounts(.readWrite).select("bob", provider: "example") }
    let revision = try #require(try fixture.source.accounts().account(AccountID("example", "bob"))).revision
    try fixture.execute(change + "kind=1 AND revision=\(revision)")
    let accounts = try fixture.another().accounts()
    for name in [nil, "bob"] {
      #expect(throws: CredentialError.vault(.damagedRecord(bob))) { try accounts.resolve(name, provider: "example") }
    }
    #expect(try accounts.resolve("ana", provider: "example").name == "ana")
    #expect(try accounts.unreadable(of: nil) == [bob])
    #expect(try accounts.unreadable(of: "other").isEmpty)
    #expect(try accounts.accounts(of: nil).map(\.name) == ["ana"])
  }

  @Test func aDefaultRemovedMeanwhile() throws {
    let fixture = try Self.fixture("ana", "bob")
    try fixture.source.accounts(.readWrite).select("bob", provider: "example")
    try fixture.execute("DELETE FROM record WHERE kind=3")
    let accounts = try fixture.another().accounts(.readWrite)
    #expect(throws: CredentialError.vault(.damagedRecord(Accounts.selection("example")))) {
      try accounts.resolve(nil, provider: "example")
    }
    try accounts.select("bob", provider: "example")
    #expect(try accounts.resolve(nil, provider: "example").name == "bob")
    #expect(try fixture.source.accounts().verify() == [])
  }

  @Test func inOrder() throws {
    let fixture = try Self.fixture("bob", "ana")
    try fixture.store(Fixture.credential(), "zoe", "another")
    let accounts = try fixture.source.accounts()
    #expect(
      try accounts.accounts(of: nil).map { $0.provider + "/" + $0.name } == [
        "another/zoe", "example/ana", "example/bob",
      ])
    #expect(try accounts.accounts(of: "example").map(\.name) == ["ana", "bob"])
    #expect(try accounts.addedProviders() == ["example"])
  }

  @Test func aRecordWithoutACredential() throws {
    let fixture = try Self.fixture()
    let accounts = try fixture.source.accounts(.readWrite)
    try accounts.store.apply([
      .store(Secret("nonsense"), as: RecordIdentifier(.credential, of: AccountID("example", "ana")))
    ])
    #expect(throws: CredentialError.oauth(.malformedCredential, provider: "example")) {
      try accounts.account(AccountID("example", "ana"))
    }
    try accounts.store.apply([.store(Secret("nonsense"), as: Accounts.registration("example"))])
    #expect(throws: CredentialError.malformedRegistration(provider: "example")) {
      try accounts.registration(of: "example")
    }
  }

  @Test(
    arguments: [
      ("ana", true), ("ana@example.org", true), ("Ana Maria", true), ("é", true), ("", false), ("a\n", false),
      ("a\u{7F}", false), ("a\u{9B}", false), ("\0", false), (String(repeating: "a", count: 255), true),
      (String(repeating: "a", count: 256), false), (String(repeating: "é", count: 128), false),
    ])
  func names(_ text: String, _ isName: Bool) { #expect(Accounts.isName(text) == isName) }

  @Test func registration() throws {
    for registration in [
      Registration(clientIdentifier: "", clientSecret: nil, variables: [:]),
      Registration(clientIdentifier: "c \"1\"", clientSecret: Secret("-----BEGIN\n"), variables: ["a": "", "b": "é"]),
    ] {
      #expect(Registration(decoding: registration.encoded) == registration)
      var dumped = ""
      dump(registration, to: &dumped)
      #expect(!dumped.contains("BEGIN"))
    }
    for text in ["", "{}", "{\"client_id\":1}"] { #expect(Registration(decoding: Secret(text)) == nil) }
  }

  @Test(
    arguments: [
      ("", []), ("work", ["*=work"]), ("github=work", ["github=work"]), ("a=b,c=d", ["a=b", "c=d"]),
      ("a=b=c", ["a=b=c"]), ("a=b,c", ["*=a=b,c"]), ("A B=c", ["*=A B=c"]), ("a=", ["*=a="]), (",", ["*=,"]),
    ] as [(String, [String])])
  func accountsOfTheEnvironment(_ text: String, _ expected: [String]) {
    #expect(AccountChoice.named(in: text).map { ($0.provider ?? "*") + "=" + $0.name } == expected)
  }

  @Test(
    arguments: [
      ("", nil), ("work", nil), ("a=b,c=d", nil), ("A B=c", nil), ("a=b,", nil), ("dot=", "dot="), ("a=b,c", "c"),
      ("a=b,c=", "c="), ("a=b,a=c", "a=c second"), ("a=b,C=d", "C=d"),
    ] as [(String, String?)])
  func faultsOfTheEnvironment(_ text: String, _ expected: String?) {
    let fault = AccountChoice.fault(in: text)
    #expect(fault.map { $0.part + ($0.isSecond ? " second" : "") } == expected)
  }
}
