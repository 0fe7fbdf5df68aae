import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import Testing

@testable import CredmgrCredentialManager

/// Tests that every route checks the agreement, by running each with a descriptor that names a new place. A route that
/// is missing from the table does not compile.
struct RouteTests {
  enum Way: Sendable, Hashable {
    case route(Route)
    case device, clientCredentials, dryRun, importing, exporting

    static let all = Route.allCases.map(Way.route) + [.device, .clientCredentials, .dryRun, .importing, .exporting]
  }

  /// How a descriptor gets a new place.
  enum Scenario: CaseIterable {
    case editedInPlace
    /// A shipped or system descriptor now names other places.
    case shippedAnew
    /// The user's own descriptor is missing, and another one has its name.
    case anotherOfTheSameName
    /// A host that gets tokens becomes one that gets the client's secret.
    case hostOfGitBecomesEndpoint, hostOfAPIBecomesEndpoint
    case optionalVariable
    case secretDropped
    case nameInOtherCase
    case weakerLogin

    var after: String {
      switch self {
      case .editedInPlace, .shippedAnew, .anotherOfTheSameName:
        RouteTests.good.replacing("provider.example", with: "evil.example")
          .replacing("git.example", with: "git.evil.example").replacing("docker.example", with: "docker.evil.example")
      case .hostOfGitBecomesEndpoint: Self.adding("refresh: https://git.example/refresh")
      case .hostOfAPIBecomesEndpoint: Self.adding("refresh: https://api.provider.example/refresh")
      case .optionalVariable:
        RouteTests.good.replacing("tenant: { default: common }", with: "tenant: { optional: true }")
          .replacing("https://provider.example/{tenant}/token", with: "https://evil.example/{tenant}/token")
      case .secretDropped:
        RouteTests.good.replacing("secret: true", with: "help: none")
          .replacing("hosts: [", with: "hosts: [\"{apikey}.evil.example\", ")
      case .nameInOtherCase:
        Self.adding("refresh: \"{Base}/refresh\"").replacing("keep: {", with: "keep: { Base: { path: other },")
      case .weakerLogin: RouteTests.good + "\npkce: none"
      }
    }

    var place: String {
      switch self {
      case .editedInPlace, .shippedAnew, .anotherOfTheSameName, .optionalVariable: "evil.example"
      case .hostOfGitBecomesEndpoint: "git.example"
      case .hostOfAPIBecomesEndpoint: "api.provider.example"
      case .secretDropped: "apikey"
      case .nameInOtherCase: "{Base}"
      case .weakerLogin: "none"
      }
    }

    private static func adding(_ endpoint: String) -> String {
      RouteTests.good.replacing("  revocation:", with: "  \(endpoint)\n  revocation:")
    }
  }

  private static let good = """
    grant: [authorization_code, device_code, client_credentials]
    variables: { tenant: { default: common }, apikey: { secret: true } }
    endpoints:
      authorization: https://provider.example/authorize
      token: https://provider.example/{tenant}/token
      device_authorization: https://provider.example/device
      revocation: https://provider.example/revoke
      identity: https://provider.example/me
    response: { keep: { base: { path: base, pattern: 'https://[a-z]+\\.provider\\.example' } } }
    extra_headers: { X-Key: "{apikey}" }
    hosts: [api.provider.example, "{base}"]
    git: { hosts: [git.example] }
    docker: { hosts: [docker.example] }
    """

  private static let key = "k3y-of-a-person"

  /// Runs a command with a token to refresh, or a request that the descriptor directs.
  private static func run(_ way: Way, _ source: CredentialSource, _ fixture: Fixture, _ after: String) throws {
    let always = RefreshPolicy(always: true)
    let url = try URI(parsing: "https://api.provider.example/me")
    func claim(_ host: String, _ helper: HostClaim.Helper) throws -> HostClaim {
      try #require(try source.claims(of: host, for: helper).first)
    }
    var options = LoginOptions()
    switch way {
    case .route(let route):
      switch route {
      case .login: _ = try source.login("example", options, token: Secret("given"))
      case .browser: _ = try source.login("example", options, user: fixture.user)
      case .refresh, .token, .exec, .library:
        _ = try source.handOut(nil, of: "example", by: route, to: .caller, always)
      case .validate: _ = try source.validate(nil, of: "example")
      case .logout: _ = try source.logout(nil, of: "example", keepsRemote: false)
      case .header: _ = try source.headerFields(nil, of: "example", for: HTTPRequest(method: "GET", uri: url))
      case .request:
        let request = HTTPRequest(method: "GET", uri: url)
        _ = try source.send(request, account: nil, of: "example", limits: .tokenEndpoint) { _ in true }
      case .helper:
        #expect(try source.claims(of: "git.evil.example", for: .git).isEmpty)
        #expect(try source.claims(of: "docker.evil.example", for: .docker).isEmpty)
        let docker = try claim("docker.example", .docker)
        _ = try source.handOut(nil, of: "example", by: .helper, to: .claimed(docker), always)
      case .kubectl: _ = try source.handOut(nil, of: "example", by: .kubectl, to: .server(url), always)
      case .registration:
        try source.add(
          fixture.file(after), clientIdentifier: nil, clientSecret: nil, variables: [:], replaces: true,
          confirms: { _, _, _ in false })
      }
    case .device, .clientCredentials:
      options.grant = way == .device ? .deviceCode : .clientCredentials
      _ = try source.login("example", options, user: fixture.user)
    case .dryRun:
      // A dry run sends nothing and shows no secret.
      let planned = try source.plannedLogin(source.descriptor("example").descriptor, options, hasToken: false)
      #expect(!String(describing: planned).contains(key))
      _ = try source.permit(.login, "example")
    case .importing:
      let other = try Fixture()
      try other.add(other.file(after), secret: "secret-1", variables: ["apikey": "another"])
      let bytes = Array(try other.another().exportVault(isPlain: true).json.encoded.utf8)
      _ = try source.importVault(bytes, acceptsPlain: true, replaces: true)
    case .exporting:
      // An exported agreement still applies on another machine.
      let other = try Fixture()
      try other.ship(after)
      let bytes = Array(try fixture.another().exportVault(isPlain: true).json.encoded.utf8)
      _ = try other.source.importVault(bytes, acceptsPlain: true, replaces: true)
    }
  }

  private static func source(_ fixture: Fixture) -> CredentialSource {
    CredentialSource(home: fixture.home, http: fixture.http, clock: fixture.clock, random: KnownRandom())
  }

  @Test(arguments: Way.all, Scenario.allCases) func aNewPlaceGetsNothing(_ way: Way, _ scenario: Scenario) throws {
    let fixture = try Fixture()
    let (after, variables) = (scenario.after, ["apikey": Self.key])
    if scenario == .anotherOfTheSameName {
      try fixture.ship(after)
      try fixture.add(fixture.file(Self.good), secret: "secret-1", variables: variables)
      _ = try File.remove(fixture.home.userProviders + "/example.yaml")
    } else {
      try fixture.add(Self.good, variables: variables)
      try scenario == .shippedAnew ? fixture.ship(after) : fixture.edit(after)
    }
    var credential = Fixture.credential()
    credential.variables = ["tenant": "contoso"]
    credential.kept = ["base": "https://x.provider.example", "Base": "https://evil.example"]
    try fixture.store(credential)
    let error = #expect(throws: CredentialError.self) { try Self.run(way, Self.source(fixture), fixture, after) }
    switch error {
    case .descriptorChanged("example", _, _, let places)?, .destinationChange("example", _, let places)?,
      .importWidens("example", let places)?:
      #expect(places.contains { $0.name == scenario.place }, "\(places.map(\.name))")
    default: Issue.record("\(String(describing: error))")
    }
    #expect(!String(describing: error).contains(Self.key))
    // Nothing was sent, and no browser opened.
    #expect(fixture.http.requests.isEmpty && fixture.user.opened.isEmpty)
  }

  /// The opposite case: with the agreed descriptor, an account with its own variable is refreshed.
  @Test func theAgreedPlacesGetWhatTheyNeed() throws {
    let fixture = try Fixture.added(Self.good, variables: ["apikey": Self.key])
    var credential = Fixture.credential()
    credential.variables = ["tenant": "contoso"]
    credential.kept = ["base": "https://x.provider.example"]
    try fixture.store(credential)
    fixture.http.then(.token("token-2"), HTTPResponse(status: 200), HTTPResponse(status: 200))
    let source = Self.source(fixture)
    _ = try source.handOut(nil, of: "example", by: .token, to: .caller, RefreshPolicy(always: true))
    for url in ["https://api.provider.example/", "https://x.provider.example/y"] {
      let request = HTTPRequest(method: "GET", uri: try URI(parsing: url))
      _ = try source.send(request, account: nil, of: "example", limits: .tokenEndpoint) { _ in true }
    }
    #expect(
      fixture.http.requests.map(\.uri.text) == [
        "https://provider.example/contoso/token", "https://api.provider.example/", "https://x.provider.example/y",
      ])
  }

  /// A discovered descriptor is an ordinary file, and discovery uses no credential.
  @Test func discoverySendsNoCredential() throws {
    let fixture = try Fixture.added(Self.good, variables: ["apikey": Self.key], credential: Fixture.credential())
    let metadata = """
      {"issuer": "https://evil.example", "authorization_endpoint": "https://evil.example/a",
       "token_endpoint": "https://evil.example/t", "response_types_supported": ["code"]}
      """
    var response = HTTPResponse(status: 200, body: Array(metadata.utf8))
    response.fields.set("Content-Type", "application/json")
    fixture.http.then(HTTPResponse(status: 404), response)
    let found = try fixture.source.discover("https://evil.example", as: "example")
    #expect(fixture.http.requests.allSatisfy { $0.fields["Authorization"] == nil && $0.body.isEmpty })
    #expect(throws: CredentialError.self) { try fixture.add(found.addition, id: nil, replaces: true) }
  }

  /// The token that manages a client goes only to the place of its registration.
  @Test(arguments: [("https://provider.example/register/1", true), ("https://api.provider.example/register/1", false)])
  func aClientIsDeletedWhereItWasRegistered(_ place: String, _ isDeleted: Bool) throws {
    let fixture = try Fixture.added(Self.good, variables: ["apikey": Self.key])
    var registration = try #require(try fixture.registration())
    registration.registered = Registration.Registered(
      place: "https://provider.example/register", accessToken: Secret("manager"), uri: place)
    try fixture.another().store(["example": registration], with: [])
    if isDeleted { fixture.http.then(HTTPResponse(status: 204)) }
    let removal = try Self.source(fixture).remove("example", keepsRemote: false)
    #expect(removal.client == (isDeleted ? .deleted(place) : .kept))
  }

  // MARK: The sources

  private static let sources = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined() + "/Sources"

  private static func files(_ folder: String) -> [String] {
    ((try? File.names(in: folder)) ?? []).sorted().flatMap { name -> [String] in
      let path = folder + "/" + name
      return File.isDirectory(path) ? files(path) : name.hasSuffix(".swift") ? [path] : []
    }
  }

  /// Returns the files that contain one of these words.
  private static func files(_ folder: String, saying words: String...) throws -> [String] {
    try files(folder, saying: words)
  }

  private static func files(_ folder: String, saying words: [String]) throws -> [String] {
    try files(sources + "/" + folder).filter { path in
      let text = String(decoding: try File.read(path, limit: 1 << 20), as: UTF8.self)
      return words.contains(where: text.contains)
    }.map { String($0.split(separator: "/").last ?? "") }
  }

  /// Few files may get a token without the agreement, create a permit, send requests, or reveal a token.
  @Test func onlyListedFilesReturnTokens() throws {
    let manager = "CredentialManager"
    #expect(
      try Self.files(manager, saying: "freshAccount(") == [
        "Agreement.swift", "AuthenticatedRequest.swift", "Refresh.swift",
      ])
    #expect(try Self.files(manager, saying: "package func freshAccount") == [])
    #expect(try Self.files(manager, saying: " Permit(") == ["Agreement.swift"])
    #expect(try Self.files(manager, saying: "network.send(", "network.stream(") == ["Sender.swift"])
    let words = ["accessToken", "idToken ", "refreshToken.", "refreshToken?", "tokenSecret"].map { "credential." + $0 }
    let handing = [
      "DockerHelper.swift", "GitHelper.swift", "HelperProtocol.swift", "HelperSession.swift", "KubectlCommand.swift",
      "CredentialFields.swift", "ExecCommand.swift", "TokenCommand.swift",
    ]
    #expect(try Self.files("Commands", saying: words) == handing)
    #expect(try Self.files("Credmgr", saying: words) == ["Credentials.swift"])
    // A new place that turns a secret into text needs a review, whatever it calls the credential.
    let revealing = try Self.counts(of: ".reveal()", in: "Commands", "Credmgr")
    let known = [
      "AddingProvider.swift": 1, "Context.swift": 1, "DockerHelper.swift": 1, "GitHelper.swift": 3,
      // The login reads the key file of a service account as a text.
      "ImportMove.swift": 1,
      "KubectlCommand.swift": 1, "Setup.swift": 1, "SharedVaultCommands.swift": 1, "Token.swift": 1,
      "TerminalUser.swift": 1, "TokenCommand.swift": 2,
    ]
    #expect(revealing == known)
    let unauthorized = [
      "ClientDocuments.swift": 1, "Discovery.swift": 1, "Examination.swift": 1, "PublishedDescriptor.swift": 1,
      // A login of docker is the registry's, not that of a provider with an agreement.
      "RegistryCheck.swift": 1, "ResourceDiscovery.swift": 2, "Sender.swift": 1,
    ]
    #expect(try Self.counts(of: "sendWithoutCredential(", in: manager, "Commands", "Credmgr") == unauthorized)
  }

  /// Returns how often each file contains a text.
  private static func counts(of text: String, in folders: String...) throws -> [String: Int] {
    var counts: [String: Int] = [:]
    for path in folders.flatMap({ files(sources + "/" + $0) }) {
      let content = String(decoding: try File.read(path, limit: 1 << 20), as: UTF8.self)
      let count = content.ranges(of: text).count
      if count > 0 { counts[String(path.split(separator: "/").last ?? "")] = count }
    }
    return counts
  }

  /// Only an account's own host gets its token.
  @Test func anAccountOfAnotherHost() throws {
    let fixture = try Fixture.added(
      """
      grant: device_code
      variables: { host: { default: a.example }, registry: { default: r.example } }
      endpoints: { device_authorization: "https://{host}/device", token: "https://{host}/token" }
      response: { keep: { dc: { path: dc } } }
      hosts: ["{host}"]
      git: { hosts: ["{host}"] }
      docker: { hosts: ["{registry}", all.example] }
      kubectl: { hosts: ["{host}", "{dc}.k8s.example"] }
      """)
    var credential = Fixture.credential()
    credential.kept = ["dc": "us"]
    try fixture.store(credential, "ana")
    credential.variables = ["host": "b.example"]
    try fixture.store(credential, "ben")
    let source = Self.source(fixture)
    let claim = try #require(try source.claims(of: "a.example", for: .git).first)
    func gets(_ account: String, _ route: Route, _ destination: Destination) -> Bool {
      (try? source.handOut(account, of: "example", by: route, to: destination)) != nil
    }
    func server(_ host: String) throws -> Destination { .server(try URI(parsing: "https://" + host)) }
    #expect(gets("ana", .helper, .claimed(claim)) && !gets("ben", .helper, .claimed(claim)))
    // A login would not help.
    credential.expiresAt = credential.obtainedAt
    credential.refreshToken = nil
    try fixture.store(credential, "old")
    let error = #expect(throws: CredentialError.self) {
      try source.handOut("old", of: "example", by: .helper, to: .claimed(claim))
    }
    guard case .notAgreed? = error else { throw CredentialError.interrupted }
    credential = Fixture.credential()
    (credential.kept, credential.variables) = (["dc": "us"], ["host": "b.example"])
    // An account elsewhere must name its own registry, unless all accounts share one.
    let registry = try #require(try source.claims(of: "r.example", for: .docker).first)
    let common = try #require(try source.claims(of: "all.example", for: .docker).first)
    #expect(gets("ana", .helper, .claimed(registry)) && !gets("ben", .helper, .claimed(registry)))
    #expect(gets("ben", .helper, .claimed(common)))
    credential.variables["registry"] = "r.example"
    try fixture.store(credential, "eve")
    #expect(!gets("eve", .helper, .claimed(registry)))
    #expect(try gets("ana", .kubectl, server("a.example")) && !gets("ben", .kubectl, server("a.example")))
    #expect(try gets("ana", .kubectl, server("us.k8s.example")) && !gets("ana", .kubectl, server("eu.k8s.example")))
  }

  /// A valid token requires no descriptor; the stored agreement decides where it goes.
  @Test func aValidTokenNeedsOnlyTheStoredAgreement() throws {
    let fixture = try Fixture.added(Self.good, variables: ["apikey": Self.key], credential: Fixture.credential())
    _ = try fixture.source.claims(of: "git.example", for: .git)
    try fixture.ship("nothing: right")
    let source = Self.source(fixture)
    let claim = try #require(try source.claims(of: "git.example", for: .git).first)
    for account in [
      try source.handOut(nil, of: "example", by: .token, to: .caller),
      try source.handOut(nil, of: "example", by: .exec, to: .caller),
      try source.handOut(nil, of: "example", by: .helper, to: .claimed(claim)),
      try source.handOut(
        nil, of: "example", by: .kubectl, to: .server(URI(parsing: "https://api.provider.example:443/x"))),
    ] { #expect(account.credential.accessToken == Secret("token-1")) }
    // One provider's claim does not release another's token.
    #expect(throws: CredentialError.notAgreed(provider: "other", origin: "git.example", .helper)) {
      try source.handOut(nil, of: "other", by: .helper, to: .claimed(claim))
    }
  }

  /// Without `hosts`, a descriptor does not limit clusters.
  @Test func aClusterIsComparedWhereHostsAreDeclared() throws {
    let cluster = Destination.server(try URI(parsing: "https://cluster.example:6443"))
    let free = try Fixture.added(
      Fixture.endpoints.replacing("hosts: [api.provider.example]", with: ""), credential: Fixture.credential())
    _ = try free.source.handOut(nil, of: "example", by: .kubectl, to: cluster)
    let bound = try Fixture.added(
      Fixture.endpoints.replacing("[api.", with: "[\"cluster.example:6443\", api."), credential: Fixture.credential())
    _ = try bound.source.handOut(nil, of: "example", by: .kubectl, to: cluster)
    let evil = Destination.server(try URI(parsing: "https://evil.example:6443"))
    #expect(throws: CredentialError.notAgreed(provider: "example", origin: "https://evil.example:6443", .kubectl)) {
      try bound.source.handOut(nil, of: "example", by: .kubectl, to: evil)
    }
  }

  private static let foreign: CredentialError? =
    .notAgreed(provider: "example", origin: "https://k8s.example", .kubectl)
  private static let bound: CredentialError? = .notUsableAlone(provider: "example", .kubectl)

  /// A key that only signs requests goes to no cluster, and a password only to a declared one.
  @Test(arguments: [
    (Grant.secrets, "aws4: { key_id: \"{id}\" }", bound), (.secrets, "aws4: { key_id: \"{id}\" }\n\(clusters)", bound),
    (.secrets, "extra_headers: { X-Id: \"{id}\" }", foreign),
    (.secrets, "extra_headers: { X-Id: \"{id}\" }\n\(clusters)", nil),
    (.basic, "", foreign), (.basic, clusters, nil), (.apiKey, "", nil), (.apiKey, clusters, nil),
  ]) func whatTheUserTypedIsForNoCluster(_ grant: Grant, _ more: String, _ refusal: CredentialError?) throws {
    let variables =
      grant == .secrets ? "variables: { id: { at_login: true }, key: { at_login: true, secret: true } }\n" : ""
    let text = "grant: \(grant.rawValue)\nendpoints: {}\nhosts: [k8s.example]\n" + variables + more
    var credential = Credential(grant: grant, accessToken: Secret("k"), obtainedAt: Fixture.now)
    if grant == .secrets { credential.variables = ["id": "AKIA1", "key": "k"] }
    if grant == .basic { credential.variables = ["username": "ada"] }
    let fixture = try Fixture.added(text, credential: credential)
    let cluster = Destination.server(try URI(parsing: "https://k8s.example"))
    if let refusal {
      #expect(throws: refusal) { try fixture.source.handOut(nil, of: "example", by: .kubectl, to: cluster) }
    } else {
      _ = try fixture.source.handOut(nil, of: "example", by: .kubectl, to: cluster)
    }
  }

  /// Other programs cannot sign requests, so they get no token that needs a key as well. A login would not help.
  @Test(arguments: ["grant: oauth1", "grant: device_code\naws4: { key_id: \"{id}\" }"], [false, true])
  func aBoundTokenGoesToNoOtherProgram(_ rules: String, _ isOver: Bool) throws {
    let fixture = try Fixture()
    try fixture.add(
      rules + """

        variables: { id: { default: i } }
        endpoints:
          temporary_credentials: https://provider.example/r
          authorization: https://provider.example/a
          device_authorization: https://provider.example/d
          token: https://provider.example/t
        hosts: [k8s.example]
        git: { hosts: [git.example] }
        docker: { hosts: [docker.example] }
        kubectl: { hosts: [k8s.example] }
        """)
    let source = Self.source(fixture)
    let git = try #require(try source.claims(of: "git.example", for: .git).first)
    let docker = try #require(try source.claims(of: "docker.example", for: .docker).first)
    let cluster = Destination.server(try URI(parsing: "https://k8s.example"))
    func expectRefusals(sourceLocation: SourceLocation = #_sourceLocation) {
      for (route, destination) in [(Route.helper, .claimed(git)), (.helper, .claimed(docker)), (.kubectl, cluster)] {
        #expect(throws: CredentialError.notUsableAlone(provider: "example", route), sourceLocation: sourceLocation) {
          try source.handOut(nil, of: "example", by: route, to: destination)
        }
      }
    }
    expectRefusals()
    var credential = Fixture.credential()
    credential.grant = rules.hasPrefix("grant: oauth1") ? .oauth1 : .deviceCode
    credential.refreshToken = nil
    if isOver { credential.expiresAt = credential.obtainedAt }
    try fixture.store(credential)
    expectRefusals()
    // An earlier version's agreement does not say how tokens are bound.
    var registration = try #require(try fixture.registration())
    for grant in Grant.allCases { registration.agreement?.settings[Client.binding(of: grant)] = nil }
    _ = try fixture.another().vault(.readWrite).apply([
      .store(registration.encoded, as: Accounts.registration("example"))
    ])
    expectRefusals()
    if !isOver {
      let account = try source.handOut(nil, of: "example", by: .token, to: .caller)
      #expect(try !source.isUsableAlone(account))
    }
  }

  /// A helper's answer then needs neither the descriptor nor the agreement, which take longer to read than the token.
  @Test func aLoginRecordsWhetherItsTokenIsUsableAlone() throws {
    let fixture = try Fixture.added()
    fixture.consent(.token("t-1"), .identity("ana"))
    var account = try fixture.login()
    #expect(account.credential.isUsableAlone == true)
    for isUsable in [false, true] {
      account.credential.isUsableAlone = isUsable
      #expect(try Credential(decoding: account.credential.encoded) == account.credential)
      #expect(try fixture.source.isUsableAlone(account) == isUsable)
    }
  }

  private static let clusters = "kubectl: { hosts: [k8s.example] }"

  /// If a descriptor names clusters, kubectl must name its cluster.
  @Test func aClusterIsNamedWhereClustersAreDeclared() throws {
    let bound = try Fixture.added(
      Fixture.endpoints + "\nkubectl: { hosts: [k8s.example] }", credential: Fixture.credential())
    #expect(throws: CredentialError.clusterNeeded(provider: "example")) {
      try bound.source.handOut(nil, of: "example", by: .kubectl, to: .server(nil))
    }
    let cluster = Destination.server(try URI(parsing: "https://k8s.example:6443"))
    _ = try bound.source.handOut(nil, of: "example", by: .kubectl, to: cluster)
    let free = try Fixture.added(credential: Fixture.credential())
    _ = try free.source.handOut(nil, of: "example", by: .kubectl, to: .server(nil))
  }

  /// The value of an account's own variable is part of the agreement for this account.
  @Test func anAccountsOwnVariables() throws {
    let text = """
      grant: authorization_code
      variables: { tenant: { default: one } }
      endpoints:
        authorization: https://{tenant}.example/authorize
        token: https://{tenant}.example/token
        identity: https://{tenant}.example/me
      """
    let fixture = try Fixture.added(text)
    var credential = Fixture.credential()
    credential.variables = ["tenant": "two"]
    try fixture.store(credential)
    fixture.http.then(HTTPResponse(status: 200, body: Array(#"{"id":1}"#.utf8)))
    _ = try Self.source(fixture).validate(nil, of: "example")
    #expect(fixture.http.requests.map(\.uri.text) == ["https://two.example/me"])
  }
}
