import Cryptography
import Descriptors
import HTTP
import OAuth
import Platform
import Store
import Testing

@testable import CredentialManager

/// Every route on which credentials leave the vault asks the agreement: each one runs here with a descriptor that names
/// a new origin. A route that is not in the table does not compile.
struct RouteTests {
  private static let good = Fixture.endpoints + "\ngit: { hosts: [git.example] }\ndocker: { hosts: [docker.example] }"
  private static let evil = good.replacing("provider.example", with: "evil.example")
    .replacing("git.example", with: "git.evil.example").replacing("docker.example", with: "docker.evil.example")

  /// What a command does on a route, with a token that has to be refreshed or a request that the descriptor directs.
  private static func run(_ route: Route, _ source: CredentialSource, _ fixture: Fixture) throws {
    let always = RefreshPolicy(always: true)
    let url = try URI(parsing: "https://api.evil.example/me")
    func claim(_ host: String, _ helper: HostClaim.Helper) throws -> HostClaim {
      try #require(try source.claim(of: host, for: helper))
    }
    switch route {
    case .login: _ = try source.login("example", LoginOptions(), token: Secret("given"))
    case .browser: _ = try source.login("example", LoginOptions(), user: fixture.user)
    case .refresh, .token, .exec, .library: _ = try source.handOut(nil, of: "example", by: route, always)
    case .validate: _ = try source.validate(nil, of: "example")
    case .logout: _ = try source.logout(nil, of: "example", keepsRemote: false)
    case .header: _ = try source.headerFields(nil, of: "example", for: HTTPRequest(method: "GET", uri: url))
    case .request:
      let request = HTTPRequest(method: "GET", uri: url)
      _ = try source.send(request, account: nil, of: "example", limits: .tokenEndpoint) { _ in true }
    case .git:
      #expect(try source.claim(of: "git.evil.example", for: .git) == nil)
      _ = try source.handOut(nil, of: "example", by: .git, to: .claimed(claim("git.example", .git)), always)
    case .docker:
      #expect(try source.claim(of: "docker.evil.example", for: .docker) == nil)
      _ = try source.handOut(nil, of: "example", by: .docker, to: .claimed(claim("docker.example", .docker)), always)
    case .kubectl: _ = try source.handOut(nil, of: "example", by: .kubectl, to: .server(url))
    case .registration:
      try source.add(
        fixture.file(evil), clientIdentifier: nil, clientSecret: nil, variables: [:], replaces: true,
        confirms: { _, _ in false })
    }
  }

  enum Way: CaseIterable {
    case editedInPlace
    /// A shipped or system descriptor that names other places now.
    case shippedAnew
    /// The own descriptor is missing, and another one has its name.
    case anotherOfTheSameName
  }

  @Test(arguments: Route.allCases, Way.allCases) func aNewPlaceGetsNothing(_ route: Route, _ way: Way) throws {
    let fixture = try Fixture()
    if way == .anotherOfTheSameName {
      try fixture.ship(Self.evil)
      try fixture.add(fixture.file(Self.good), secret: "secret-1")
      _ = try File.remove(fixture.home.userProviders + "/example.yaml")
    } else {
      try fixture.add(Self.good)
      try way == .shippedAnew ? fixture.ship(Self.evil) : fixture.edit(Self.evil)
    }
    try fixture.store(Fixture.credential())
    let error = #expect(throws: CredentialError.self) {
      try Self.run(route, fixture.another(http: fixture.http), fixture)
    }
    switch error {
    case .descriptorChanged("example", _, _, let places)?, .destinationChange("example", _, let places)?:
      #expect(places.contains { $0.name == "evil.example" })
    case .notAgreed("example", "https://api.evil.example", route)?: break
    default: Issue.record("\(String(describing: error))")
    }
    // Nothing was sent, and nobody's browser was opened.
    #expect(fixture.http.requests.isEmpty && fixture.user.opened.isEmpty)
  }

  /// A token that is good needs no descriptor, and goes where the sealed agreement says.
  @Test func theSealedAgreementAnswersForAGoodToken() throws {
    let fixture = try Fixture.added(Self.good, credential: Fixture.credential())
    _ = try fixture.source.claim(of: "git.example", for: .git)
    try fixture.ship("nothing: right")
    let source = fixture.another(http: fixture.http)
    let claim = try #require(try source.claim(of: "git.example", for: .git))
    for account in [
      try source.handOut(nil, of: "example", by: .token), try source.handOut(nil, of: "example", by: .exec),
      try source.handOut(nil, of: "example", by: .git, to: .claimed(claim)),
      try source.handOut(
        nil, of: "example", by: .kubectl, to: .server(URI(parsing: "https://api.provider.example:443/x"))),
    ] { #expect(account.credential.accessToken == Secret("token-1")) }
    // A claim of one provider is no reason to hand out another one's token.
    #expect(throws: CredentialError.notAgreed(provider: "other", origin: "git.example", .git)) {
      try source.handOut(nil, of: "other", by: .git, to: .claimed(claim))
    }
  }

  /// The value of an account's own variable is part of what was agreed to for this account.
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
    fixture.http.then(HTTPResponse(status: 200, body: Array("{}".utf8)))
    _ = try fixture.another(http: fixture.http).validate(nil, of: "example")
    #expect(fixture.http.requests.map(\.uri.text) == ["https://two.example/me"])
  }
}
