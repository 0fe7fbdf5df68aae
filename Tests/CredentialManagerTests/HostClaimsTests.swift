import CredmgrCryptography
import CredmgrDescriptors
import CredmgrOAuth
import Glibc
import CredmgrPlatform
import Testing
import CredmgrStore

@testable import CredmgrCredentialManager

struct HostClaimsTests {
  private let fixture: Fixture

  init() throws { fixture = try Fixture() }

  /// Returns the provider and user name as another process finds them.
  private func found(_ host: String, _ helper: HostClaim.Helper = .git) throws -> [String] {
    try fixture.another().claims(of: host, for: helper).flatMap { [$0.provider, $0.username] }
  }

  private func write(_ text: String, _ name: String = "example") throws {
    try fixture.edit(Fixture.endpoints + "\n" + text, name)
  }

  private func replace(_ name: String = "example", variables: [String: String] = [:]) throws {
    try fixture.add(
      fixture.source.addition(shipped: name, as: nil), variables: variables, replaces: true,
      confirms: { _, _, _ in true })
  }

  /// Changes the vault to an earlier version's, whose registrations have no hosts.
  private func makeOld(destinations: [String]? = ["git.example", "provider.example"]) throws {
    let vault = try fixture.another().vault(.readWrite)
    for record in try vault.records(.host, provider: nil) { try vault.apply([.remove(record.identifier)]) }
    for record in try vault.records(.registration, provider: nil) {
      let list = destinations.map { "\"destinations\":[\($0.map { "\"\($0)\"" }.joined(separator: ","))]" }
      let members = ["\"client_id\":\"client-1\"", list].compactMap(\.self).joined(separator: ",")
      try vault.apply([.store(Secret("{\(members)}"), as: record.identifier)])
    }
  }

  @Test func git() throws {
    #expect(try fixture.source.claims(of: "git.example", for: .git).isEmpty)
    let rules = Fixture.endpoints + "\nvariables: { host: { default: Git.example } }\n"
    try fixture.add(rules + "git: { hosts: [\"{host}\", \"gist.{host}\"], username: x-access-token }")
    try fixture.add(Fixture.endpoints + "\ngit: { hosts: [\"code.example:443\"] }", "other")
    #expect(try found("git.example") == ["example", "x-access-token"])
    #expect(try found("GIST.git.example") == ["example", "x-access-token"])
    #expect(try found("code.example") == ["other", "oauth2"])
    #expect(try found("git.example", .docker) == [])
    #expect(try found("example") == [])
    #expect(try found("") == [])
    // Replaces the first host with another one.
    try replace(variables: ["host": "mine.example:8443"])
    #expect(try found("git.example") == [])
    #expect(try found("mine.example:8443") == ["example", "x-access-token"])
    #expect(try found("code.example") == ["other", "oauth2"])
  }

  /// Each account of a user name and a password has its own.
  @Test func aVariableOfTheLogin() throws {
    try fixture.add(
      """
      grant: basic
      endpoints: {}
      hosts: [hub.example]
      docker: { hosts: [hub.example], username: "{username}" }
      """)
    let claim = try #require(try fixture.another().claims(of: "hub.example", for: .docker).first)
    var credential = Credential(grant: .basic, accessToken: Secret("pw"), obtainedAt: 0)
    credential.variables = ["username": "bob"]
    let account = Account(provider: "example", name: "work", credential: credential, revision: 1)
    #expect(claim.username(of: account) == "bob")
    #expect(claim.namesAccount)
    #expect(claim.isName("bob", of: account) && claim.isName("Work", of: account) && !claim.isName("eve", of: account))
  }

  /// Docker Hub has several names, and a provider of any of them serves all.
  @Test(arguments: ["docker.io", "index.docker.io", "registry-1.docker.io"]) func dockerHub(_ claimed: String) throws {
    try fixture.add(Fixture.endpoints + "\ndocker: { hosts: [\(claimed), docker.io, ghcr.io] }")
    for name in ["docker.io", "Index.docker.io", "registry-1.docker.io"] {
      #expect(try found(name, .docker) == ["example", "oauth2"])
    }
    for name in ["auth.docker.io", "docker.io:8443", "registry-2.docker.io", "docker.io.evil.example"] {
      #expect(try found(name, .docker) == [])
    }
    #expect(try found("docker.io", .git) == [])
  }

  /// git asks for `https://host:port`, and SSH may use another port and another name.
  @Test(arguments: [
    ("https://git.example:8443/acme", false), ("http://git.example:8443/acme", false), ("git.example/acme", false),
    ("ssh://git@git.example:22/acme", false), ("git@ssh.git.example:acme", false),
    ("https://git.example:9999/acme", true), ("https://git.example/acme", true), ("https://other.example", true),
  ]) func aRuleForAnotherPort(_ remote: String, _ isElsewhere: Bool) throws {
    try fixture.add(Fixture.endpoints + "\ngit: { hosts: [\"git.example:8443\"] }")
    let hosts = try fixture.source.hostsElsewhere(RemoteAddress(remote), of: "example")
    #expect(hosts == (isElsewhere ? ["git.example:8443"] : nil))
  }

  @Test func aRegistrationClaimsForItsOwnProviderAlone() throws {
    try fixture.add()
    try fixture.add(Fixture.endpoints + "\ngit: { hosts: [code.example] }", "other")
    let vault = try fixture.another().vault(.readWrite)
    for record in try vault.records(.host, provider: nil) { try vault.apply([.remove(record.identifier)]) }
    for record in try vault.records(.registration, provider: "other") {
      let text = record.payload.reveal().replacing("\"provider\":\"other\"", with: "\"provider\":\"example\"")
      #expect(text.contains("\"provider\":\"example\""))
      try vault.apply([.store(Secret(text), as: record.identifier)])
    }
    #expect(try found("code.example") == [])
  }

  @Test func severalProvidersHaveTheHost() throws {
    for name in ["b", "a", "c"] {
      try fixture.add(Fixture.endpoints + "\ngit: { hosts: [git.example], username: of-\(name) }", name)
    }
    #expect(try found("git.example") == ["a", "of-a", "b", "of-b", "c", "of-c"])
    #expect(try fixture.another().hostClaims().map(\.provider) == ["a", "b", "c"])
    _ = try fixture.source.remove("a", keepsRemote: true)
    #expect(try found("git.example") == ["b", "of-b", "c", "of-c"])
    for name in ["b", "c"] { _ = try fixture.source.remove(name, keepsRemote: true) }
    #expect(try found("git.example") == [])
  }

  @Test func anEditCountsOnlyAfterAddingAgain() throws {
    try fixture.add(Fixture.endpoints + "\ngit: { hosts: [git.example] }")
    try write("git: { hosts: [new.example], username: x }")
    #expect(try found("git.example") == ["example", "oauth2"])
    #expect(try found("new.example") == [])
    try replace()
    #expect(try found("git.example") == [])
    #expect(try found("new.example") == ["example", "x"])
  }

  @Test func anExtendingDescriptorFollowsItsBase() throws {
    try write("git: { hosts: [git.example] }", "base")
    try replace("base")
    try File.replace(fixture.home.userProviders + "/child.yaml", Array("provider: child\nextends: base\n".utf8))
    try replace("child")
    let edited = try fixture.file(Fixture.endpoints + "\ngit: { hosts: [new.example] }", "base")
    try fixture.add(edited, id: nil, replaces: true, confirms: { _, _, _ in true })
    #expect(try fixture.another().hostClaims().map(\.host) == ["new.example", "new.example"])
    #expect(try found("git.example") == [])
  }

  @Test func aRemovedRecordIsDetected() throws {
    try fixture.add(Fixture.endpoints + "\ngit: { hosts: [git.example] }")
    let identifier = RecordIdentifier(kind: .host, provider: "git.example", account: "git")
    try fixture.execute("DELETE FROM record WHERE kind=7")
    #expect(throws: CredentialError.vault(.damagedRecord(identifier))) { try found("git.example") }
    // Adding the provider again repairs it.
    try replace()
    #expect(try found("git.example") == ["example", "oauth2"])
  }

  // MARK: Vaults of earlier versions

  /// Earlier records contain only the first provider of each host.
  @Test func aRecordOfOneClaimIsCompletedAtTheNextRegistration() throws {
    for name in ["a", "b"] { try fixture.add(Fixture.endpoints + "\ngit: { hosts: [git.example] }", name) }
    let first = try #require(try fixture.another().claims(of: "git.example", for: .git).first)
    let identifier = RecordIdentifier(kind: .host, provider: "git.example", account: "git")
    try fixture.another().vault(.readWrite).apply([.store(Secret(first.value.encoded), as: identifier)])
    #expect(try found("git.example") == ["a", "oauth2", "b", "oauth2"])
    #expect(try fixture.another().accounts().record(identifier)?.payload == Secret(first.value.encoded))
    try fixture.add(Fixture.endpoints, "c")
    #expect(try fixture.another().accounts().record(identifier)?.payload != Secret(first.value.encoded))
    #expect(try found("git.example") == ["a", "oauth2", "b", "oauth2"])
  }

  @Test(arguments: [nil, ["git.example", "provider.example"]])
  func anOldVaultIsCompletedWhenItIsOpenedForWriting(_ destinations: [String]?) throws {
    try fixture.add(Fixture.endpoints + "\ngit: { hosts: [git.example], username: x }")
    try makeOld(destinations: destinations)
    #expect(try found("other.example") == [])
    #expect(try fixture.another().accounts().store.records(.host, provider: nil).isEmpty)
    // From now on the agreement is stored, so the descriptor is not needed.
    _ = try fixture.another().accounts(.readWrite)
    try fixture.ship("nothing: right")
    #expect(try found("git.example") == ["example", "x"])
    #expect(try found("other.example") == [])
  }

  @Test func aReadOnlyOldVaultAnswers() throws {
    try fixture.add(Fixture.endpoints + "\ngit: { hosts: [git.example] }")
    try makeOld()
    let source = fixture.another()
    #expect(try source.claims(source.accounts()).claims.map(\.host) == ["git.example"])
    #expect(try source.accounts().store.records(.host, provider: nil).isEmpty)
  }

  @Test func anEditedHostWithoutConsentIsNotCompleted() throws {
    try write("git: { hosts: [git.example] }")
    try replace()
    try makeOld()
    try write("git: { hosts: [git.example, evil.example] }")
    #expect(try found("evil.example") == [])
    #expect(try found("git.example") == ["example", "oauth2"])
    #expect(try fixture.registration()?.agreement?.origins == ["git.example", "provider.example"])
  }

  @Test func aCorrectedDescriptorIsReadAgain() throws {
    try fixture.add(Fixture.endpoints + "\ngit: { hosts: [git.example] }")
    try fixture.add(Fixture.endpoints + "\ngit: { hosts: [code.example] }", "other")
    try makeOld(destinations: nil)
    try fixture.ship("nothing: right")
    #expect(try found("git.example") == [])
    #expect(try found("code.example") == ["other", "oauth2"])
    try fixture.ship(Fixture.endpoints + "\ngit: { hosts: [git.example] }")
    #expect(try found("git.example") == ["example", "oauth2"])
  }

  // MARK: Files that other users can write

  /// The directory, the descriptor directory, a descriptor and the rules are public in turn, then private.
  @Test(arguments: ["", "/providers", "/providers/example.yaml", "/accounts.yaml"])
  func configurationThatOthersCanWrite(_ name: String) throws {
    let path = try configured(name)
    try use()
    let mode: UInt32 = File.isDirectory(path) ? 0o755 : 0o644
    try #require(unsafe chmod(path, mode | 0o022) == 0)
    let error = #expect(throws: CredentialError.self) { try use() }
    switch error {
    case .system(.writableByOthers(path, _))?: break
    case .provider(.invalid(let findings))?:
      let expected = UnreadableDescriptor.writableByOthers(path, mode: mode | 0o022)
      #expect(findings.contains { if case .unreadable(_, expected) = $0.problem { true } else { false } })
    default: Issue.record("\(String(describing: error))")
    }
    try #require(unsafe chmod(path, mode) == 0)
    try use()
  }

  @Test(.enabled(if: getuid() == 0), arguments: ["/providers/example.yaml", "/accounts.yaml"])
  func configurationOfAnotherUser(_ name: String) throws {
    try #require(unsafe chown(configured(name), 4242, 4242) == 0)
    #expect(throws: CredentialError.self) { try use() }
  }

  private func configured(_ name: String) throws -> String {
    try fixture.add(fixture.file(Fixture.endpoints))
    try File.replace(fixture.home.accountRules, Array("rules: []\n".utf8))
    return fixture.home.configuration + name
  }

  private func use() throws {
    _ = try fixture.another().client("example")
    _ = try fixture.another().accountRules()
  }
}
