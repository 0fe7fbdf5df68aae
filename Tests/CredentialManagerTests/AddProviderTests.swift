import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrDescriptors
import CredmgrText
import Testing

@testable import CredmgrCredentialManager

struct AddProviderTests {
  private static func add(
    _ fixture: Fixture, _ addition: ProviderAddition, id: String? = "client-1", secret: String? = nil,
    variables: [String: String] = [:], replaces: Bool = false,
    confirms: ([String], [String]) -> Bool = { _, _ in
      Issue.record("asked")
      return false
    }
  ) throws {
    try fixture.add(addition, id: id, secret: secret, variables: variables, replaces: replaces) { _, accounts, hosts in
      confirms(accounts, hosts.map(\.name))
    }
  }

  /// Expects a refusal because of new hosts; returns their places in the descriptor as `line:column`.
  @discardableResult private static func expectNewHosts(
    _ accounts: [String], _ hosts: [String], sourceLocation: SourceLocation = #_sourceLocation,
    _ step: () throws -> Void
  ) -> [String] {
    let error = #expect(throws: CredentialError.self, sourceLocation: sourceLocation) { try step() }
    let found: [NewPlace]
    switch error {
    case .destinationChange("example", let names, let new)?:
      #expect(names == accounts, sourceLocation: sourceLocation)
      found = new
    case .descriptorChanged("example", _, _, let new)?: found = new
    default:
      Issue.record("\(String(describing: error))", sourceLocation: sourceLocation)
      return []
    }
    #expect(found.map(\.name) == hosts, sourceLocation: sourceLocation)
    return found.map { $0.place.map { "\($0.line):\($0.column)" } ?? "" }
  }

  private static func expectRegistration(_ fixture: Fixture, id: String, secret: String) throws {
    let registration = try #require(try fixture.registration())
    #expect(registration.clientIdentifier == id)
    #expect(registration.clientSecret == Secret(secret))
    #expect(registration.variables == [:])
    #expect(registration.agreement?.clientIdentifier == id)
    #expect(registration.agreement?.origins == ["https://api.provider.example", "https://provider.example"])
  }

  @Test func addingPrintsTheAgreedPlaces() throws {
    let fixture = try Fixture()
    let more =
      "redirect: https://app.example/cb\nissuer: https://login.example\ngit: { hosts: [git.example] }\nkubectl: { hosts: ['*.k8s.example'] }"
    try fixture.source.add(
      fixture.file(Fixture.endpoints + "\n" + more), clientIdentifier: "client-1", clientSecret: nil, variables: [:],
      replaces: false, confirms: { _, _, _ in false }, agrees: { _ in true })
    let places = try fixture.another().agreedPlaces(of: "example")
    #expect(
      Set(places.map { "\($0.kind) \($0.name)" }) == [
        "secrets api.provider.example", "secrets provider.example", "tokens git.example", "tokens *.k8s.example",
        "redirect https://app.example/cb", "issuer https://login.example",
      ])
    try fixture.add("issuer: https://provider.example\n" + Fixture.endpoints, "plain")
    let plain = try fixture.another().agreedPlaces(of: "plain")
    #expect(
      plain.map { "\($0.kind) \($0.name)" } == [
        "secrets api.provider.example", "secrets provider.example",
        "tokens a cluster whose user in your kubeconfig names this provider",
      ])
  }

  /// `setup` shows the places before the user types a secret.
  @Test func thePlacesAreKnownBeforeTheSecrets() throws {
    let fixture = try Fixture()
    let variables = "variables: { host: { format: hostname }, key: { secret: true } }\n"
    let more = "redirect: https://app.example/cb\nextra_headers: { X: \"{key}\" }\nissuer: https://{host}/x"
    let text = variables + Fixture.endpoints.replacing("provider.example", with: "{host}") + "\n" + more
    let addition = try fixture.file(text.replacing("[api.{host}]", with: "[\"api.{host}\"]"))
    let early = try fixture.source.places(adding: addition, variables: ["host": "h.example"])
    try fixture.add(addition, variables: ["host": "h.example", "key": "k"]) { _, _, places in
      #expect(places == early.unusual)
      return true
    }
    #expect(try fixture.another().agreedPlaces(of: "example").map(\.name) == early.all.map(\.name))
    #expect(early.all.map(\.name).contains("https://app.example/cb"))
  }

  /// The agreement does not say "token" for an API host that gets other secrets.
  @Test(arguments: [
    ("extra_headers: { X: \"{hex(k)}\" }", "secrets"),
    ("extra_headers: { X: \"{refresh_token}\" }", "secrets"),
    ("response: { fields: { access_token: refresh_token } }", "secrets"),
    ("response: { fields: { access_token: [id_token, body.rt], refresh_token: body.rt } }", "secrets"),
    ("response: { fields: { access_token: id_token } }", "tokens"), ("extra_headers: { X: \"{p}\" }", "tokens"),
  ]) func addingPrintsHostsWithSecrets(_ line: String, _ kind: String) throws {
    let fixture = try Fixture()
    let text = "\(Fixture.endpoints)\nvariables: { k: { secret: true }, p: { default: v } }\n\(line)"
    try fixture.add(
      text.replacing("hosts: [api.provider.example]", with: "hosts: [other.example]"), variables: ["k": "v"])
    let places = try fixture.another().agreedPlaces(of: "example").filter { $0.name == "other.example" }
    #expect(places.map { "\($0.kind)" } == [kind])
  }

  /// A new descriptor without clusters allows no more clusters than the previous one.
  @Test func clustersStayBounded() throws {
    let fixture = try Fixture.added(
      Fixture.endpoints + "\nkubectl: { hosts: [k.example] }", credential: Fixture.credential())
    let without = Fixture.endpoints.replacing("\nhosts: [api.provider.example]", with: "")
    try Self.add(fixture, fixture.file(without), replaces: true)
    let source = fixture.another()
    func gets(_ host: String) throws -> Bool {
      let server = try URI(parsing: "https://" + host)
      return (try? source.handOut(nil, of: "example", by: .kubectl, to: .server(server))) != nil
    }
    #expect(try gets("k.example") && !gets("evil.example"))
  }

  @Test func shipped() throws {
    let fixture = try Fixture()
    try fixture.ship(Fixture.endpoints)
    try Self.add(fixture, fixture.source.addition(shipped: "example", as: nil), secret: "secret-1")
    try Self.expectRegistration(fixture, id: "client-1", secret: "secret-1")
    // The descriptor is already in a provider directory.
    #expect(!File.exists(fixture.home.userProviders))
    let client = try fixture.another().client("example")
    #expect(client.identifier == "client-1")
    #expect(client.secret == Secret("secret-1"))
  }

  /// A certificate that is of no use never replaces one that works.
  @Test func onlyAUsableCertificateIsStored() throws {
    let fixture = try Fixture()
    let text = Fixture.endpoints + "\nclient: { authentication: tls_client_auth }"
    let good = Self.key + "\n" + Self.certificate
    try Self.add(fixture, fixture.file(text), secret: good)
    func refusal(_ secret: String) -> OAuthError? {
      do { try Self.add(fixture, fixture.file(text), secret: secret, replaces: true) } catch let error
        as CredentialError
      {
        if case .oauth(let error, "example") = error { return error }
      } catch {}
      return nil
    }
    #expect(refusal(Self.key) == .clientCertificateMissing)
    #expect(refusal(Self.certificate + "\n" + Self.certificate) == .clientCertificate(.noKey))
    #expect(try fixture.registration()?.clientSecret == Secret(good))
    let old = Self.key + "\n" + Self.oldCertificate
    try Self.add(fixture, fixture.file(text), secret: old, replaces: true)
    fixture.clock.advance(.days(100))
    let fault = CertificateFault.expired(try #require(Moment("2024-01-01T00:00:00Z")))
    #expect(refusal(old) == .clientCertificate(fault))
    // A server need not say why it ends the connection.
    let failure = HTTPError.unreachable(host: "provider.example", reason: .broken)
    fixture.consent()
    fixture.http.then(failure)
    #expect(throws: CredentialError.http(failure, provider: "example")) { try fixture.login() }
    #expect(fixture.notices == [.certificateRefused(provider: "example", fault)])
  }

  private static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgzSS2IqWFXOus35N1
    DRH43ab7xOY8Jw4C5PKmoZNT/bWhRANCAATBDGzytEsz2U1+qfyZlSG1u4OxO1cR
    JcaCwrpEA5PTmrNMIMXE7rz7+Zjr5ptf+p9RhWeBwBW4Lc+eikiAoOLl
    -----END PRIVATE KEY-----
    """

  private static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBDzCBt6ADAgECAgEBMAoGCCqGSM49BAMCMBExDzANBgNVBAMMBmNsaWVudDAg
    Fw0wMDAxMDEwMDAwMDBaGA8yMjAwMDEwMTAwMDAwMFowETEPMA0GA1UEAwwGY2xp
    ZW50MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEwQxs8rRLM9lNfqn8mZUhtbuD
    sTtXESXGgsK6RAOT05qzTCDFxO68+/mY6+abX/qfUYVngcAVuC3PnopIgKDi5TAK
    BggqhkjOPQQDAgNHADBEAiB8HtMIFrqdc79J1vgryDMkMaIppYUT/h8ruoDgdLBt
    CwIgYWXzXu99euE2W8cMmnXf8ds/Rt5UZElcY5qljxfUg6w=
    -----END CERTIFICATE-----
    """

  /// For the same key, but only until 2024.
  private static let oldCertificate = """
    -----BEGIN CERTIFICATE-----
    MIIBDjCBtaADAgECAgEBMAoGCCqGSM49BAMCMBExDzANBgNVBAMMBmNsaWVudDAe
    Fw0wMDAxMDEwMDAwMDBaFw0yNDAxMDEwMDAwMDBaMBExDzANBgNVBAMMBmNsaWVu
    dDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABMEMbPK0SzPZTX6p/JmVIbW7g7E7
    VxElxoLCukQDk9Oas0wgxcTuvPv5mOvmm1/6n1GFZ4HAFbgtz56KSICg4uUwCgYI
    KoZIzj0EAwIDSAAwRQIhALHeJAkGNYle0kn1jSasGR1p6ioOoutufc4PgHb2Ta+E
    AiBIDu6FSQoNKxx6YtTxbWVdMcHYtgZXUIYp0guQcelbgQ==
    -----END CERTIFICATE-----
    """

  @Test func unknown() throws {
    let fixture = try Fixture()
    try fixture.ship(Fixture.endpoints)
    #expect(throws: CredentialError.provider(.unknown(identifier: "exmple", suggestion: "example"))) {
      try fixture.source.addition(shipped: "exmple", as: nil)
    }
    #expect(throws: CredentialError.provider(.malformedIdentifier("../example"))) {
      try fixture.source.addition(shipped: "../example", as: nil)
    }
  }

  @Test func aFileIsInstalled() throws {
    let fixture = try Fixture()
    try Self.add(fixture, fixture.file(Fixture.endpoints))
    #expect(
      try File.read(fixture.home.userProviders + "/example.yaml", limit: 1 << 20)
        == Array("provider: example\n\(Fixture.endpoints)\n".utf8))
    _ = try fixture.another().client("example")
  }

  @Test func aFileWithAnError() throws {
    let fixture = try Fixture()
    #expect(throws: CredentialError.self) { try fixture.file("grant: telepathy") }
  }

  /// The other process may already have refresh tokens, which only its client can use.
  @Test func anotherProcessAddsTheProviderMeanwhile() throws {
    let fixture = try Fixture()
    let more = "redirect: https://app.example/cb\nissuer: https://login.example"
    let addition = try fixture.file(Fixture.endpoints + "\n" + more)
    func add(_ source: CredentialSource, _ client: String, _ meanwhile: () -> Void = {}) throws {
      try source.add(
        addition, clientIdentifier: client, clientSecret: nil, variables: [:], replaces: false,
        confirms: { _, _, _ in false },
        agrees: { _ in
          meanwhile()
          return true
        })
    }
    #expect(throws: CredentialError.alreadyAdded(provider: "example")) {
      try add(fixture.source, "client-1") {
        do { try add(fixture.another(), "client-2") } catch { Issue.record(error) }
      }
    }
    #expect(try fixture.registration()?.clientIdentifier == "client-2")
  }

  @Test func addingAgainRequiresReplace() throws {
    let fixture = try Fixture.added()
    let addition = try fixture.source.addition(shipped: "example", as: nil)
    #expect(throws: CredentialError.alreadyAdded(provider: "example")) {
      try Self.add(fixture, addition, id: "client-2")
    }
    #expect(try fixture.registration()?.clientIdentifier == "client-1")
    // Omitted values stay.
    try Self.add(fixture, addition, id: "client-2", replaces: true)
    try Self.expectRegistration(fixture, id: "client-2", secret: "secret-1")
    try Self.add(fixture, addition, id: nil, secret: "secret-2", replaces: true)
    try Self.expectRegistration(fixture, id: "client-2", secret: "secret-2")
  }

  @Test func clientIdentifier() throws {
    let fixture = try Fixture()
    let addition = try fixture.file(
      Fixture.endpoints + "\nclient: { register: \"https://provider.example/apps\" }")
    let needs = ClientNeeds(needsIdentifier: true, needsSecret: false, register: "https://provider.example/apps")
    #expect(throws: CredentialError.clientIdentifierMissing(provider: "example", needs)) {
      try Self.add(fixture, addition, id: nil)
    }
    #expect(!File.exists(fixture.home.userProviders))
    #expect(!File.exists(fixture.home.vault))
    try Self.add(fixture, fixture.file(Fixture.endpoints + "\nclient: { id: everybody }"), id: nil)
    #expect(try fixture.registration()?.clientIdentifier == "everybody")
  }

  @Test(arguments: [
    ("", true, false), ("client: { authentication: none }", true, false),
    ("client: { authentication: client_secret_post }", true, true), ("client: { id: everybody }", false, false),
  ]) func needsOfAnAddition(_ more: String, _ needsIdentifier: Bool, _ needsSecret: Bool) throws {
    let needs = ClientNeeds(try Fixture().file(Fixture.endpoints + "\n" + more).descriptor)
    #expect(needs == ClientNeeds(needsIdentifier: needsIdentifier, needsSecret: needsSecret, register: nil))
  }

  private static let variables = """
    grant: client_credentials
    variables: { tenant: { pattern: "[a-z]+" }, region: { default: eu } }
    endpoints: { client_credentials: "https://{tenant}.{region}.example/token" }
    """

  @Test func variables() throws {
    let fixture = try Fixture()
    let addition = try fixture.file(Self.variables)
    for given in [[:], ["tenant": "1"], ["tenant": "a", "reegion": "us"]] {
      #expect(throws: CredentialError.self) { try Self.add(fixture, addition, variables: given) }
    }
    #expect(!File.exists(fixture.home.userProviders))
    try Self.add(fixture, addition, variables: ["tenant": "a"])
    // Defaults are not stored, because they may change with the descriptor.
    #expect(try fixture.registration()?.variables == ["tenant": "a"])
    #expect(try fixture.source.client("example").variables == ["tenant": "a", "region": "eu"])
    try Self.add(fixture, addition, variables: ["region": "us"], replaces: true)
    #expect(try fixture.registration()?.variables == ["tenant": "a", "region": "us"])
    // A variable that the descriptor no longer has is removed.
    let other = try fixture.file(Self.variables.replacing("region", with: "place"))
    try Self.add(fixture, other, replaces: true) { _, _ in true }
    #expect(try fixture.registration()?.variables == ["tenant": "a"])
  }

  // MARK: Other names

  @Test func shippedUnderAnotherName() throws {
    let fixture = try Fixture()
    try fixture.ship(Fixture.endpoints)
    try Self.add(fixture, fixture.source.addition(shipped: "example", as: "work"))
    #expect(try fixture.source.client("work").descriptor.identifier == "work")
    #expect(
      try fixture.source.client("work").descriptor.endpoints[.token]?.url.text == "https://provider.example/token")
    #expect(try fixture.source.accounts().addedProviders() == ["work"])
    #expect(throws: CredentialError.provider(.malformedIdentifier("Work Two"))) {
      try fixture.source.addition(shipped: "example", as: "Work Two")
    }
  }

  @Test(
    arguments: [
      ("provider: example # example\ntitle: example\n", "provider: work # example\ntitle: example\n"),
      // The key contains the same letters.
      ("provider: ovid\n", "provider: work\n"), ("title: x\r\nprovider: 'id'\r\n", "title: x\r\nprovider: 'work'\r\n"),
      ("{ provider: p,\n", "{ provider: work,\n"), ("# é\nprovider:\n  r\n", "# é\nprovider:\n  work\n"),
    ])
  func aFileUnderAnotherName(_ start: String, _ renamed: String) throws {
    let fixture = try Fixture()
    let rest =
      start.hasPrefix("{")
      ? "grant: client_credentials, endpoints: { client_credentials: \"https://p.example/t\" } }\n"
      : "grant: client_credentials\nendpoints: { client_credentials: \"https://p.example/t\" }\n"
    let addition = try fixture.source.addition(Array((start + rest).utf8), named: "file.yaml", as: "work")
    #expect(addition.identifier == "work")
    #expect(addition.descriptor.identifier == "work")
    #expect(addition.file.map { String(decoding: $0, as: UTF8.self) } == renamed + rest)
  }

  // MARK: Where tokens would go

  private static let elsewhere = Fixture.endpoints.replacing("api.provider.example", with: "evil.example")

  @Test func newHostsAreAskedAbout() throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    let before = try fixture.registration()
    var asked: [[String]] = []
    let addition = try fixture.file(Self.elsewhere)
    Self.expectNewHosts(["ana"], ["evil.example"]) {
      try Self.add(fixture, addition, id: "client-2", replaces: true) { accounts, hosts in
        asked += [accounts, hosts]
        return false
      }
    }
    #expect(asked == [["ana"], ["evil.example"]])
    #expect(try fixture.registration() == before)
    #expect(!File.exists(fixture.home.userProviders))

    try Self.add(fixture, addition, replaces: true) { _, _ in true }
    #expect(try fixture.another().client("example").hosts(for: Fixture.credential()) == ["evil.example"])
  }

  @Test func aVariableMayBringNewHosts() throws {
    let fixture = try Fixture.added(Self.variables, variables: ["tenant": "a"], credential: Fixture.credential())
    let addition = try fixture.source.addition(shipped: "example", as: nil)
    Self.expectNewHosts(["ana"], ["b.eu.example"]) {
      try Self.add(fixture, addition, variables: ["tenant": "b"], replaces: true) { _, _ in false }
    }
    #expect(try fixture.registration()?.variables == ["tenant": "a"])
  }

  @Test func theSameOrFewerHostsAreNotAskedAbout() throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    try Self.add(fixture, fixture.file(Fixture.endpoints + "\nheader_style: token"), replaces: true)
    let fewer = Fixture.endpoints.replacing("  identity: https://api.provider.example/me\n", with: "")
    try Self.add(fixture, fixture.file(fewer), replaces: true)
  }

  @Test func withoutAccountsNoConsentIsNeeded() throws {
    let fixture = try Fixture()
    try fixture.addOwn(Fixture.endpoints)
    try fixture.addOwn(Self.elsewhere, replaces: true)
  }

  /// The client's secret would also go to the new host.
  @Test func aSecretThatStaysIsAskedAbout() throws {
    let fixture = try Fixture.added()
    let addition = try fixture.file(Self.elsewhere)
    Self.expectNewHosts([], ["evil.example"]) { try Self.add(fixture, addition, replaces: true) { _, _ in false } }
  }

  /// A formerly secret variable goes nowhere else without consent, even if the new descriptor shows it.
  @Test func aSecretVariableThatStaysIsAskedAbout() throws {
    let fixture = try Fixture()
    let variable = "\nextra_headers: { X-Key: \"{key}\" }\nvariables:\n  key: "
    try fixture.add(Fixture.endpoints + variable + "{ secret: true }", secret: nil, variables: ["key": "k"])
    let addition = try fixture.file(Self.elsewhere + variable + "{}")
    Self.expectNewHosts([], ["evil.example", "key"]) {
      try Self.add(fixture, addition, replaces: true) { _, _ in false }
    }
    // credmgr does not ask again, and the value stays hidden.
    try Self.add(fixture, addition, replaces: true) { _, _ in true }
    #expect(try fixture.source.client("example").descriptor.variable("key")?.isSecret == true)
    // The user enters a new value for the new place.
    try Self.add(fixture, addition, variables: ["key": "new"], replaces: true)
    #expect(try fixture.source.client("example").descriptor.variable("key")?.isSecret == false)
  }

  /// Hosts for git get no client secret, but endpoints do, even if a host is both.
  @Test func aSecretGoesToEndpointsAlone() throws {
    let fixture = try Fixture()
    try fixture.addOwn(Fixture.endpoints)
    let git = "\ngit: { hosts: [evil.example] }"
    try Self.add(fixture, fixture.file(Fixture.endpoints + git), replaces: true) { _, _ in false }
    let both =
      Fixture.endpoints.replacing("provider.example/token", with: "other.example/token")
      + "\ngit: { hosts: [other.example] }"
    Self.expectNewHosts([], ["other.example"]) {
      try Self.add(fixture, fixture.file(both), replaces: true) { _, _ in false }
    }
  }

  @Test func anOldDescriptorThatCannotBeRead() throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    try fixture.ship("grant: telepathy")
    // The agreement is stored.
    #expect(throws: CredentialError.self) {
      try Self.add(fixture, fixture.file(Self.elsewhere), replaces: true) { _, hosts in
        #expect(hosts == ["evil.example"])
        return false
      }
    }
    try Self.add(fixture, fixture.file(Fixture.endpoints), replaces: true)
  }

  /// Reports the place of a new host: the line of its template, or of the variable's default.
  @Test(
    arguments: [
      ("https://api.provider.example/me", "https://evil.example/me", "evil.example", "8:13"),
      ("https://provider.example/token", "{ url: \"https://evil.example/token\" }", "evil.example", "5:17"),
      ("hosts: [api.provider.example]", "hosts: [api.provider.example, evil.example]", "evil.example", "10:31"),
      ("account: login", "git: { hosts: [\n  x.example] }", "x.example", "10:3"),
      ("account: login", "docker: { hosts: x.example }", "x.example", "9:18"),
      (
        "hosts: [api.provider.example]", "hosts: [\"api.{tld}\"]\nvariables:\n  tld: { default: evil.example }",
        "api.evil.example", "12:19"
      ),
    ])
  func theNewHostHasAPlace(_ old: String, _ new: String, _ host: String, _ place: String) throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    let text = Fixture.endpoints.replacing(old, with: new)
    let addition = try fixture.file(text)
    let places = Self.expectNewHosts(["ana"], [host]) {
      try Self.add(fixture, addition, replaces: true) { _, _ in false }
    }
    #expect(places == [place])
    // `credmgr check` already reports the same place.
    let checked = try fixture.source.newPlaces(
      of: "example", Array("provider: example\n\(text)\n".utf8), named: "notes.yaml")
    #expect(checked.map(\.name) == [host])
    #expect(checked.map { $0.place?.source.name } == ["notes.yaml"])
    try fixture.edit(text)
    #expect(Self.expectNewHosts([], [host]) { _ = try fixture.another().client("example") } == [place])
  }

  @Test func nothingIsNewWithoutAnAccount() throws {
    let fixture = try Fixture()
    let text = Array("provider: example\n\(Self.elsewhere)\n".utf8)
    #expect(try fixture.source.newPlaces(of: "example", text, named: "example.yaml") == [])
    try fixture.add(secret: nil)
    #expect(try fixture.another().newPlaces(of: "example", text, named: "example.yaml") == [])
    try fixture.store(Fixture.credential())
    #expect(try fixture.another().newPlaces(of: "example", text, named: "example.yaml").map(\.name) == ["evil.example"])
    let same = Array("provider: example\n\(Fixture.endpoints)\n".utf8)
    #expect(try fixture.another().newPlaces(of: "example", same, named: "example.yaml") == [])
  }

  /// The user's own file may replace the base of a shipped descriptor.
  @Test func aUserFileWithAShippedName() throws {
    let fixture = try Fixture()
    try fixture.ship(Fixture.endpoints, "base")
    try fixture.add("extends: base")
    try fixture.store(Fixture.credential())
    try fixture.edit(Self.elsewhere, "base")
    #expect(Self.expectNewHosts([], ["evil.example"]) { _ = try fixture.another().client("example") } == ["8:13"])
  }

  @Test func editedInPlaceForTheSameHosts() throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    try fixture.edit(Fixture.endpoints.replacing("/token", with: "/v2/token") + "\nheader_style: token")
    _ = try fixture.source.client("example")
  }

  /// Even if the provider has no account and no secret.
  @Test func aBaseOfAnAddedProviderIsAskedAbout() throws {
    let fixture = try Fixture()
    try fixture.ship(Fixture.endpoints, "base")
    try fixture.add("extends: base", secret: nil)
    let before = try fixture.registration()?.agreement
    let base = try fixture.file(Self.elsewhere, "base")
    Self.expectNewHosts([], ["evil.example"]) { try Self.add(fixture, base) { _, _ in false } }
    #expect(try fixture.registration()?.agreement == before)
  }

  /// The base's own registration keeps no secret, but the other provider has a login.
  @Test func aWeakerBaseIsAskedAbout() throws {
    let fixture = try Fixture()
    try fixture.addOwn(Fixture.endpoints, "base")
    try fixture.addOwn("extends: base")
    try fixture.store(Fixture.credential())
    let before = try fixture.registration()
    let addition = try fixture.file(Fixture.endpoints + "\npkce: none", "base")
    var asked: [NewPlace.Kind] = []
    #expect(throws: CredentialError.self) {
      try fixture.source.add(
        addition, clientIdentifier: nil, clientSecret: nil, variables: [:], replaces: true,
        confirms: { provider, _, places in
          if provider == "example" { asked += places.map(\.kind) }
          return provider != "example"
        })
    }
    #expect(try asked == [.setting("pkce")] && fixture.registration() == before)
  }

  /// The agreed descriptor does not put an account's own variable into a host, but the new one does.
  @Test func anAccountsVariableInANewPlace() throws {
    let fixture = try Fixture()
    let text = "variables: { x: { default: provider.example } }\n" + Fixture.endpoints
    try fixture.addOwn(text)
    var credential = Fixture.credential()
    credential.variables = ["x": "evil.example"]
    try fixture.store(credential)
    let after = text.replacing("https://provider.example/token", with: "https://{x}/token")
    var asked: [String] = []
    #expect(throws: CredentialError.self) {
      try fixture.source.add(
        fixture.file(after), clientIdentifier: "client-1", clientSecret: Secret("mine"), variables: [:], replaces: true,
        confirms: { _, _, places in
          asked += places.map(\.name)
          return false
        })
    }
    #expect(asked == ["evil.example"])
  }

  /// The token of an interrupted login counts like an account's token.
  @Test func anInterruptedLoginIsAskedAbout() throws {
    let fixture = try Fixture()
    try fixture.add(secret: nil)
    let elsewhere = try fixture.file(Self.elsewhere)
    try fixture.leave(ExchangeNote(.login, startedAt: Fixture.now), nil, "")
    let other = try fixture.file(Fixture.endpoints.replacing("provider.example/token", with: "other.example/token"))
    try Self.add(fixture, other, replaces: true) { _, _ in true }
    try fixture.leave(
      ExchangeNote(.login, startedAt: Fixture.now), KeptAnswer(Fixture.credential(), after: nil), "")
    Self.expectNewHosts([], ["evil.example"]) { try Self.add(fixture, elsewhere, replaces: true) { _, _ in false } }
  }

  /// A file can replace the base of another descriptor.
  @Test func anExtendingDescriptorMovesWithItsBase() throws {
    let fixture = try Fixture()
    try fixture.ship(Fixture.endpoints, "base")
    try fixture.add("extends: base")
    try fixture.store(Fixture.credential())
    let addition = try fixture.file(Self.elsewhere, "base")
    Self.expectNewHosts(["ana"], ["evil.example"]) { try Self.add(fixture, addition) { _, _ in false } }
    #expect(!File.exists(fixture.home.userProviders))
    #expect(try fixture.registration("base") == nil)
    try Self.add(fixture, addition) { _, _ in true }
    #expect(try fixture.registration("base") != nil)
    // credmgr does not ask again.
    _ = try fixture.another().client("example")
  }
}
