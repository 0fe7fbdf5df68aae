import Cryptography
import HTTP
import OAuth
import Platform
import Testing

@testable import CredentialManager
@testable import Credmgr
import Text

/// What other packages use of the library.
struct CredentialsTests {
  private struct Echo: HTTPExchange {
    func send(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) -> HTTPResponse {
      HTTPResponse(status: 200, fields: ["X": "y"], body: Array((request.fields["Authorization"] ?? "").utf8))
    }
  }

  private static func credentials(_ fixture: Fixture, _ network: Credentials.Network? = nil) -> Credentials {
    Credentials(home: fixture.home, network: network, clock: fixture.clock)
  }

  @Test func aTokenWithoutANetwork() throws {
    let fixture = try Fixture()
    let credentials = Self.credentials(fixture)
    #expect(try credentials.accounts(of: "example") == [])
    #expect(throws: CredentialsError.loginRequired(provider: "example", account: nil)) {
      try credentials.token(of: "example")
    }
    try fixture.add()
    try fixture.store(Fixture.credential())
    let token = try credentials.token(of: "example", account: "ana", validFor: .seconds(60))
    #expect(
      token.account == "ana" && token.reveal() == "token-1"
        && token.expiresAt?.secondsSince1970 == Fixture.now.secondsSince1970 + 3600)
    #expect(!"\(token)".contains("token-1"))
    #expect(try credentials.accounts(of: "example") == ["ana"])
    let headers = try credentials.headers(of: "example", for: "https://api.provider.example/things")
    #expect(headers.map(\.name) == ["Authorization"] && headers.map(\.value) == ["Bearer token-1"])
    #expect(
      throws: CredentialsError.failed("oauth(OAuth.OAuthError.foreignHost(\"evil.example\"), provider: \"example\")")
    ) { try credentials.headers(of: "example", for: "https://evil.example/") }
    #expect(throws: CredentialsError.failed("networkNeeded")) {
      try credentials.token(of: "example", validFor: .seconds(7200))
    }
    #expect(throws: CredentialsError.failed("networkNeeded")) {
      try credentials.send(to: "https://api.provider.example/things", of: "example")
    }
  }

  /// The environment that is given is asked for all: also for the passphrase.
  @Test func anEnvironmentOfOnesOwn() throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    _ = try fixture.source.protect(with: .passphrase, passphrase: Secret("of her own"))
    try fixture.source.unprotect(.keyFile)
    let file = fixture.root + "/passphrase"
    try File.replace(file, Array("of her own\n".utf8))
    let credentials = Credentials(home: fixture.home, environment: { ["CREDMGR_PASSPHRASE_FILE": file][$0] })
    #expect(try credentials.accounts(of: "example") == ["ana"])
  }

  @Test func aRequest() throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    let credentials = Self.credentials(fixture) { Echo() }
    let answer = try credentials.send(
      "POST", to: "https://api.provider.example/things", headers: [HeaderField("Content-Type", "text/plain")],
      body: [1], of: "example")
    #expect(answer.status == 200 && answer.headers == [HeaderField("X", "y")])
    #expect(String(decoding: answer.body, as: UTF8.self) == "Bearer token-1")
    #expect(throws: CredentialsError.self) { try credentials.send(to: "https://evil.example/", of: "example") }
    #expect(throws: CredentialsError.self) { try credentials.send(to: "not a URL", of: "example") }
  }

  @Test func severalTasksAtOnce() async throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    let credentials = Self.credentials(fixture)
    let tokens = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<8 { group.addTask { try credentials.token(of: "example").reveal() } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(tokens == Array(repeating: "token-1", count: 8))
  }
}
