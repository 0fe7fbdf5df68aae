import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import Synchronization
import Testing
import CredmgrText

@testable import CredmgrCredentialManager
@testable import Credmgr

/// The Swift library, as other packages use it.
struct CredentialsTests {
  private static func credentials(_ fixture: Fixture, _ network: Credentials.Network? = nil) -> Credentials {
    Credentials(home: fixture.home, network: network, clock: fixture.clock)
  }

  private static let withoutNetwork = "cannot use the network: the program \"credmgr-online\" is missing"

  /// Answers every request with 200 and the header that presented the token.
  private struct Echo: Transport {
    func send(_ request: Request) async throws -> Response {
      let token = request.headers.first { $0.name == "Authorization" }?.value ?? ""
      return Response(status: 200, headers: [HeaderField("X", "y")], body: Array(token.utf8))
    }
  }

  /// Answers each refresh with a new token that expires after an hour, and counts them.
  private final class Refreshing: Transport {
    private let count = Mutex(0)
    var refreshes: Int { count.withLock { $0 } }

    func send(_ request: Request) async throws -> Response {
      let number = count.withLock { count in
        count += 1
        return count
      }
      let body =
        #"{"access_token":"new-\#(number)","token_type":"Bearer","expires_in":3600,"refresh_token":"r\#(number)"}"#
      return Response(status: 200, headers: [HeaderField("Content-Type", "application/json")], body: Array(body.utf8))
    }
  }

  @Test func tokenWithoutNetwork() async throws {
    let fixture = try Fixture()
    let credentials = Self.credentials(fixture)
    #expect(try await credentials.accounts(for: "example") == [])
    await #expect(throws: CredentialsError.loginRequired(provider: "example", account: nil)) {
      try await credentials.token(for: "example")
    }
    try fixture.add()
    try fixture.store(Fixture.credential())
    let token = try await credentials.token(for: "example", account: "ana", minimumValidity: .minutes(1))
    #expect(
      token.account == "ana" && token.reveal() == "token-1"
        && token.expiresAt?.secondsSince1970 == Fixture.now.secondsSince1970 + 3600)
    #expect(!"\(token)".contains("token-1"))
    #expect(try await credentials.accounts(for: "example") == ["ana"])
    let headers = try await credentials.headers(for: "example", url: "https://api.provider.example/things")
    #expect(headers.map(\.name) == ["Authorization"] && headers.map(\.value) == ["Bearer token-1"])
    await #expect(
      throws: CredentialsError.failed(
        "the descriptor of \"example\" does not name the host \"evil.example\", so the credential is not sent there")
    ) { try await credentials.headers(for: "example", url: "https://evil.example/") }
    await #expect(throws: CredentialsError.failed(Self.withoutNetwork)) {
      try await credentials.token(for: "example", minimumValidity: .minutes(120))
    }
    await #expect(throws: CredentialsError.failed(Self.withoutNetwork)) {
      try await credentials.send(Request(url: "https://api.provider.example/things"), for: "example")
    }
  }

  /// An error is worded as the program's message. It names no type, and neither does a line of the log.
  @Test func wordsOfErrors() async throws {
    let errors: [CredentialsError] = [
      .init(.oauth(.foreignHost("evil.example"), provider: "notes")), .init(.vault(.wrongPassphrase)),
      .init(.http(.invalidMethod("a b"), provider: "notes")), .init(.timedOut(after: .seconds(300))),
      .init(.loginNeeded(provider: "notes", account: "it's me", .expired)),
      .init(.oauth(.unavailable(.token, status: 503, words: nil, retryAfter: .seconds(90)), provider: "notes")),
    ]
    #expect(
      errors.map { "\($0)" } == [
        "the descriptor of \"notes\" does not name the host \"evil.example\", so the credential is not sent there",
        "wrong passphrase", "invalid HTTP method \"a b\"", "no token is available now: try again later",
        "login required: run \"credmgr login notes --account 'it'\\''s me'\"",
        "no token is available now: try again in 90 s",
      ])
    let fixture = try Fixture.added(credential: Fixture.credential())
    let lines = Mutex<[String]>([])
    let credentials = Credentials(
      home: fixture.home, network: { Unreachable() }, clock: fixture.clock,
      log: { line in lines.withLock { $0.append(line) } })
    await #expect(throws: CredentialsError.unavailable(retryAfter: nil)) {
      try await credentials.token(for: "example", minimumValidity: .minutes(120))
    }
    #expect(
      lines.withLock { $0 } == ["cannot reach the host \"provider.example\" of \"example\": the connection was lost"])
  }

  private struct Unreachable: HTTPExchange {
    func send(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) -> HTTPResponse {
      throw .unreachable(host: request.uri.host ?? "", reason: .broken)
    }

    func stream(
      _ request: HTTPRequest, body: (any HTTPBodySource)?, limits: HTTPLimits, receive: @escaping (HTTPPart) -> Bool
    ) throws(HTTPError) -> HTTPResponse { try send(request, limits: limits) }
  }

  /// The injected environment is asked for everything, also for the passphrase.
  @Test func injectedEnvironment() async throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    _ = try fixture.source.protect(with: .passphrase, passphrase: Secret("of her own"))
    try fixture.source.unprotect(.keyFile)
    let file = fixture.root + "/passphrase"
    try File.replace(file, Array("of her own\n".utf8))
    let credentials = Credentials(home: fixture.home, environment: { ["CREDMGR_PASSPHRASE_FILE": file][$0] })
    #expect(try await credentials.accounts(for: "example") == ["ana"])
  }

  @Test func requestThroughTransport() async throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    let credentials = Self.credentials(fixture) { TransportExchange(transport: Echo()) }
    let response = try await credentials.send(
      Request(
        "POST", url: "https://api.provider.example/things", headers: [HeaderField("Content-Type", "text/plain")],
        body: [1]), for: "example")
    #expect(response.status == 200 && response.headers == [HeaderField("X", "y")])
    #expect(String(decoding: response.body, as: UTF8.self) == "Bearer token-1")
    for url in ["https://evil.example/", "not a URL"] {
      await #expect(throws: CredentialsError.self) { try await credentials.send(Request(url: url), for: "example") }
    }
  }

  @Test func transportThatFails() async throws {
    struct Failing: Transport {
      struct Failure: Error {}
      func send(_ request: Request) async throws -> Response { throw Failure() }
    }
    let fixture = try Fixture.added(credential: Fixture.credential())
    let credentials = Self.credentials(fixture) { TransportExchange(transport: Failing()) }
    await #expect(throws: CredentialsError.unavailable(retryAfter: nil)) {
      try await credentials.token(for: "example", minimumValidity: .minutes(120))
    }
    #expect(try await credentials.token(for: "example").reveal() == "token-1")
  }

  @Test func thousandTasksMakeOneRefresh() async throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    let transport = Refreshing()
    let credentials = Self.credentials(fixture) { TransportExchange(transport: transport) }
    fixture.clock.advance(.minutes(90))
    let tokens = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<1000 { group.addTask { try await credentials.token(for: "example").reveal() } }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(tokens == ["new-1"] && transport.refreshes == 1)
  }

  /// A task that is cancelled while another thread refreshes stops waiting, and the new token is kept.
  @Test func cancellation() async throws {
    struct Waiting: Transport {
      let begun: AsyncStream<Void>.Continuation
      let mayEnd: AsyncStream<Void>
      let answer = Refreshing()
      func send(_ request: Request) async throws -> Response {
        begun.yield()
        for await _ in mayEnd { break }
        return try await answer.send(request)
      }
    }
    let fixture = try Fixture.added(credential: Fixture.credential())
    let (begun, begin) = AsyncStream<Void>.makeStream()
    let (mayEnd, end) = AsyncStream<Void>.makeStream()
    let transport = Waiting(begun: begin, mayEnd: mayEnd)
    let credentials = Self.credentials(fixture) { TransportExchange(transport: transport) }
    fixture.clock.advance(.minutes(90))
    let task = Task { try await credentials.token(for: "example") }
    for await _ in begun { break }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    end.yield()
    #expect(try await credentials.token(for: "example").reveal() == "new-1")
    let cancelled = Task { () async throws -> Token in
      while !Task.isCancelled { await Task.yield() }
      return try await credentials.token(for: "example")
    }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
  }

  /// The sequence yields a new token before the old one expires, and waits when the provider is unavailable.
  @Test func sequenceOfTokens() async throws {
    let fixture = try Fixture.added(credential: Fixture.credential())
    let transport = Refreshing()
    let pauses = Mutex<[Duration]>([])
    let clock = fixture.clock
    let credentials = Credentials(
      home: fixture.home, network: { TransportExchange(transport: transport) }, clock: clock,
      sleep: { time in
        pauses.withLock { $0.append(time) }
        clock.advance(time)
      })
    var seen: [String] = []
    for try await token in credentials.tokens(for: "example") {
      seen.append(token.reveal())
      if seen.count == 3 { break }
    }
    #expect(seen == ["token-1", "new-1", "new-2"])
    #expect(pauses.withLock { Array($0.prefix(2)) } == [.seconds(3540), .seconds(3540)])
  }
}
