import Cryptography
import Glibc
import HTTP
import OAuth
import Platform
import Descriptors
import SQLite
import Synchronization
import Testing
import Store
import Vault

@testable import CredentialManager
import Text

/// A clock that goes on only when somebody waits.
final class ManualClock: WallClock {
  private let elapsed = Mutex(Duration.zero)
  private let onSleep: Mutex<(@Sendable () -> Void)?> = Mutex(nil)

  func now() -> Moment { Fixture.now + monotonic() }
  func monotonic() -> Duration { elapsed.withLock { $0 } }
  func advance(_ time: Duration) { elapsed.withLock { $0 += time } }

  func onSleep(_ body: @escaping @Sendable () -> Void) { onSleep.withLock { $0 = body } }

  func sleep(for time: Duration) throws(POSIXError) {
    advance(time)
    onSleep.withLock { $0 }?()
  }
}

/// Bytes that a test knows, and that are others at each call.
final class KnownRandom: RandomSource {
  private let calls = Mutex<UInt64>(0)

  func bytes(_ count: Int) -> [UInt8] {
    let call = calls.withLock { calls in
      calls += 1
      return calls
    }
    return (0..<count).map { UInt8(truncatingIfNeeded: UInt64($0) &* 31 &+ call &* 7 &+ call >> 8) }
  }
}

extension HTTPExchange {
  /// Takes the whole body and the whole answer first.
  func stream(
    _ request: HTTPRequest, body source: (any HTTPBodySource)?, limits: HTTPLimits, receive: (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse {
    var request = request
    if let source { request.body = try source.readAll() }
    var response = try send(request, limits: limits)
    let body = response.body
    response.body = []
    if receive(.head(response)), !body.isEmpty { _ = receive(.body(body)) }
    return response
  }
}

/// Answers from a list, and fails the test when there is none left.
final class ScriptedExchange: HTTPExchange {
  typealias Answer = (HTTPRequest) -> Result<HTTPResponse, HTTPError>

  private var answers: [Answer] = []
  private(set) var requests: [HTTPRequest] = []

  func then(_ responses: HTTPResponse...) { for response in responses { answers.append { _ in .success(response) } } }
  func then(_ error: HTTPError) { answers.append { _ in .failure(error) } }
  func then(_ answer: @escaping (HTTPRequest) -> HTTPResponse) { answers.append { .success(answer($0)) } }

  var isDone: Bool { answers.isEmpty }

  func send(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) -> HTTPResponse {
    requests.append(request)
    guard !answers.isEmpty else {
      Issue.record("unexpected request: \(request)")
      throw .unreachable(host: request.uri.host ?? "", reason: .connectionRefused)
    }
    return try answers.removeFirst()(request).get()
  }
}

/// A person who does what the test says.
final class ScriptedUser: User {
  private(set) var steps: [LoginStep] = []
  /// The pages that a browser showed, and what it was opened with.
  private(set) var opened: [String] = []
  private(set) var launched: [String] = []
  var lines: [String] = []
  /// What the browser does with a page; `nil` when no browser can be opened.
  var browse: ((String) throws -> Void)?
  /// What the browser sends, each when the one before has its answer.
  var visits: [Visit] = []
  var isCancelled = false

  func poll() {
    do {
      for visit in visits where try !visit.goOn() { break }
    } catch { Issue.record(error) }
  }

  /// The browser does something with the page's `redirect_uri` and `state`.
  private func browsing(_ body: @escaping (_ redirect: String, _ state: String) throws -> Void) {
    browse = { url in
      let page = try URI(parsing: url).queryParameters
      try body(try #require(page[first: "redirect_uri"]), try #require(page[first: "state"]))
    }
  }

  func paste(_ lines: @escaping (_ redirect: String, _ state: String) -> [String]) {
    browsing { [unowned self] in self.lines = lines($0, $1) }
  }

  func visit(_ visits: @escaping (_ redirect: String, _ state: String) throws -> [Visit]) {
    browsing { [unowned self] in self.visits = try visits($0, $1) }
  }

  /// The browser is sent back with these parameters; `state` stands for the one of the request.
  func consent(_ answers: [(String, String)]...) {
    browsing { [unowned self] redirect, state in
      visits += try answers.map { answer in
        let pairs = answer.map { FormParameters.Pair(name: $0, value: $1 == "state" ? state : $1) }
        return try Visit.get(redirect, FormParameters(pairs))
      }
    }
  }

  /// Notes what is said once; that somebody still waits is said again and again.
  func tell(_ step: LoginStep) {
    switch step {
    case .awaiting, .awaitingConsent: break
    default: steps.append(step)
    }
  }

  func open(_ url: String) -> Bool {
    launched.append(url)
    // A browser is led from a port of ours to the page that the person is told.
    var page = url
    if case .open(let told)? = steps.last, url.contains("/start/") { page = told }
    opened.append(page)
    guard let browse else { return false }
    // Once: it holds the fixture, which holds this.
    self.browse = nil
    do { try browse(page) } catch { Issue.record(error) }
    return true
  }

  func pastedLine(within time: Duration) -> String? { lines.isEmpty ? nil : lines.removeFirst() }

  var pasteDescriptor: Int32? { nil }
}

/// A browser's request to a port of this machine. It is not sent before somebody looks.
final class Visit {
  private let port: UInt16
  private let text: String
  private var socket: Int32?
  private var hasEnded = false
  private var received = ""

  init(port: UInt16, _ text: String) {
    self.port = port
    self.text = text
  }

  deinit { if let socket { close(socket) } }

  private func connect() throws -> Int32 {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    let code = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe Glibc.connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    try #require(code == 0)
    let bytes = Array(text.utf8)
    _ = unsafe Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    return socket
  }

  /// Sends, or takes what is there; whether the whole answer is there.
  func goOn() throws -> Bool {
    guard let socket else {
      socket = try connect()
      return false
    }
    while !hasEnded {
      var bytes = [UInt8](repeating: 0, count: 65536)
      let count = unsafe recv(socket, &bytes, bytes.count, Int32(MSG_DONTWAIT))
      if count < 0 { return false }
      hasEnded = count == 0
      received += String(decoding: bytes.prefix(count), as: UTF8.self)
    }
    return true
  }

  func answer() throws -> String {
    _ = try goOn()
    return received
  }

  var status: String { get throws { String(try answer().split(separator: " ").dropFirst().first ?? "") } }

  /// Goes where a provider sends the browser.
  static func get(
    _ redirectURI: String, _ parameters: FormParameters, fields: [(String, String)] = []
  ) throws -> Visit {
    let uri = try URI(parsing: redirectURI).adding(query: parameters)
    let port = try #require(uri.port)
    let target = uri.path + (uri.query.map { "?" + $0 } ?? "")
    let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
    return Visit(port: port, "GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\(lines)\r\n")
  }

  /// What the page does that hands a fragment over.
  static func post(_ redirectURI: String, _ parameters: FormParameters, origin: String? = nil) throws -> Visit {
    let uri = try URI(parsing: redirectURI)
    let port = try #require(uri.port)
    let body = parameters.encoded
    return Visit(
      port: port,
      "POST \(uri.path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nOrigin: \(origin ?? "http://127.0.0.1:\(port)")\r\n"
        + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
  }
}

extension CredentialSource {
  /// The client of a provider, as a route gets it.
  func client(_ provider: String) throws(CredentialError) -> Client { try permit(.validate, provider).client }
}

/// A folder of one's own, a provider in it, and everything that a source is given.
final class Fixture {
  static let now: Moment = 1_700_000_000

  static let endpoints = """
    grant: [authorization_code, device_code, client_credentials]
    endpoints:
      authorization: https://provider.example/authorize
      token: https://provider.example/token
      device_authorization: https://provider.example/device
      revocation: https://provider.example/revoke
      identity: https://api.provider.example/me
    account: login
    hosts: [api.provider.example]
    scope: [read]
    """

  /// The same, with a session that the token of a login becomes; that of a refresh, too, if `follows` says so.
  static func exchanging(_ follows: String = "token") -> String {
    endpoints.replacing(
      "  identity:",
      with: """
          token_exchange:
            url: https://provider.example/session
            parameters: { grant_type: null, subject_token_type: null, client_id: null }
            response: { fields: { access_token: session, refresh_token: [] } }
            authentication: none
            follows: \(follows)
          identity:
        """)
  }

  let root: String
  let home: Home
  let http = ScriptedExchange()
  let clock = ManualClock()
  let user = ScriptedUser()
  let source: CredentialSource
  private(set) var notices: [Notice] = []

  /// `environment` is beside `CREDMGR_HOME`; a `~` in it is the folder.
  init(environment: [String: String] = [:]) throws {
    root = "/tmp/credmgr-manager-" + Hexadecimal.encode(SystemRandomSource().bytes(8))
    try #require(unsafe mkdir(root, 0o700) == 0)
    let root = root
    home = try Home(
      environment: { $0 == "CREDMGR_HOME" ? root + "/home" : environment[$0]?.replacing("~", with: root) },
      executable: root + "/.build/debug/credmgr",
      ownHome: { _ in nil })
    source = CredentialSource(home: home, http: http, clock: clock, random: KnownRandom())
    source.notice = { [unowned self] in notices.append($0) }
  }

  /// With a provider that was added.
  static func added(
    _ text: String = Fixture.endpoints, secret: String? = "secret-1", variables: [String: String] = [:],
    credential: Credential? = nil, account: String = "ana"
  ) throws -> Fixture {
    let fixture = try Fixture()
    try fixture.add(text, secret: secret, variables: variables)
    if let credential { try fixture.store(credential, account) }
    return fixture
  }

  deinit {
    if !http.isDone { Issue.record("an answer that nobody asked for") }
    Self.remove(root)
  }

  private static func remove(_ path: String) {
    if File.isDirectory(path) {
      for name in (try? File.names(in: path)) ?? [] { remove(path + "/" + name) }
      unsafe rmdir(path)
    } else {
      unsafe unlink(path)
    }
  }

  /// Another process: the same folder, and nothing else in common.
  func another(http: (any HTTPExchange)? = nil) -> CredentialSource {
    CredentialSource(home: home, http: http, clock: clock, random: SystemRandomSource())
  }

  func ship(_ text: String, _ identifier: String = "example") throws {
    try File.createDirectory(root + "/providers")
    try File.replace("\(root)/providers/\(identifier).yaml", Array("provider: \(identifier)\n\(text)\n".utf8))
  }

  func add(
    _ text: String = Fixture.endpoints, _ identifier: String = "example", secret: String? = "secret-1",
    variables: [String: String] = [:]
  ) throws {
    try ship(text, identifier)
    try add(source.addition(shipped: identifier, as: nil), secret: secret, variables: variables)
  }

  @discardableResult func add(
    _ addition: ProviderAddition, id: String? = "client-1", secret: String? = nil, variables: [String: String] = [:],
    token: String? = nil, replaces: Bool = false, confirms: CredentialSource.Consent = { _, _ in false }
  ) throws -> Registration? {
    try source.add(
      addition, clientIdentifier: id, clientSecret: secret.map { Secret($0) }, variables: variables,
      initialAccessToken: token.map { Secret($0) }, replaces: replaces, confirms: confirms,
      agrees: { confirms([], $0) })
  }

  /// A file of the person's own, which is not installed yet.
  func file(
    _ text: String, _ identifier: String = "example", as name: String? = nil
  ) throws -> ProviderAddition {
    try source.addition(Array("provider: \(identifier)\n\(text)\n".utf8), named: "\(identifier).yaml", as: name)
  }

  /// Puts a file among the person's own descriptors, as an editor does.
  func edit(_ text: String, _ identifier: String = "example") throws {
    try File.createDirectory(home.userProviders)
    try File.replace("\(home.userProviders)/\(identifier).yaml", Array("provider: \(identifier)\n\(text)\n".utf8))
  }

  func registration(_ provider: String = "example") throws -> Registration? {
    try another().accounts().registration(of: provider)
  }

  /// Adds a person's own file.
  func addOwn(
    _ text: String, _ identifier: String = "example", variables: [String: String] = [:], replaces: Bool = false,
    agrees: ([NewPlace]) -> Bool = { _ in false }
  ) throws {
    let bytes = Array("provider: \(identifier)\n\(text)\n".utf8)
    try source.add(
      source.addition(bytes, named: identifier + ".yaml", as: nil), clientIdentifier: "client-1",
      clientSecret: Secret("secret-1"), variables: variables, replaces: replaces, confirms: { _, _ in false },
      agrees: agrees)
  }

  /// Changes it in its place.
  func editOwn(_ text: String, _ identifier: String = "example") throws {
    try File.replace("\(home.userProviders)/\(identifier).yaml", Array("provider: \(identifier)\n\(text)\n".utf8))
  }

  /// A credential that is good for an hour, and can be refreshed.
  static func credential(
    _ token: String = "token-1", refresh: String? = "refresh-1", identity: String? = nil
  ) -> Credential {
    var credential = Credential(grant: .authorizationCode, accessToken: Secret(token), obtainedAt: now)
    credential.refreshToken = refresh.map { Secret($0) }
    credential.expiresAt = now + .seconds(3600)
    credential.identity = identity
    return credential
  }

  func store(_ credential: Credential, _ account: String = "ana", _ provider: String = "example") throws {
    _ = try another().accounts(.readWrite).store.apply([
      .store(credential.encoded, as: RecordIdentifier(.credential, of: AccountID(provider, account)))
    ])
  }

  /// The change that stores a credential for the account "ana".
  static func storing(_ token: String) -> Change {
    .store(credential(token).encoded, as: RecordIdentifier(.credential, of: AccountID("example", "ana")))
  }

  func change(_ body: (inout Credential) -> Void) throws {
    var credential = try #require(try stored())
    body(&credential)
    try store(credential)
  }

  func stored(_ account: String = "ana", _ provider: String = "example") throws -> Credential? {
    try another().accounts().account(AccountID(provider, account))?.credential
  }

  /// Leaves behind what a process does that is killed in the middle of an exchange.
  func leave(_ note: ExchangeNote?, _ answer: KeptAnswer?, _ account: String = "ana") throws {
    let store = try another().accounts(.readWrite).store
    let id = AccountID("example", account.isEmpty ? nil : account)
    let identifier = RecordIdentifier(.pending, of: id)
    try store.apply([note.map { .store($0.encoded, as: identifier) } ?? .remove(identifier)])
    if let answer { try store.makeRoom(for: id).fill(answer.encoded, isForced: false) }
  }

  /// Another process is at work with an account, for as long as the value lives.
  func lock(_ account: String?) throws -> FileLock? {
    let name = try another().vault().lockName(provider: "example", account: account ?? "")
    return try FileLock.acquire(home.vaultLocation.lock(name), timeout: .zero)
  }

  /// Names of files with answers that are not in the vault.
  var answerFiles: [String] { get throws { try File.names(in: home.vault).filter { $0.hasSuffix(".answer") } } }

  /// Writes over a file where it stands.
  static func overwrite(_ path: String, with bytes: [UInt8]) throws {
    let file = unsafe Glibc.open(path, O_WRONLY | O_TRUNC)
    defer { close(file) }
    try #require(unsafe Glibc.write(file, bytes, bytes.count) == bytes.count)
  }

  /// Makes the vault one that can be read and not be changed.
  func damageVault() throws { try execute("UPDATE header SET sealed=x'00'") }

  /// Changes the vault's file as somebody who has no key.
  func execute(_ statement: String) throws {
    try Connection(path: home.vaultLocation.file, .readWrite, busyTimeout: 0).execute(statement)
  }

  var page: FormParameters { get throws { try URI(parsing: #require(user.opened.last)).queryParameters } }

  func fresh(_ policy: RefreshPolicy = RefreshPolicy()) throws(CredentialError) -> Account {
    try source.freshAccount(nil, of: "example", policy)
  }

  /// What is told of an exchange that an earlier process began at 1.
  static func interrupted(_ exchange: Interruption.Exchange, _ account: String? = "ana") -> Notice {
    .interrupted(Interruption(provider: "example", account: account, exchange: exchange, startedAt: 1))
  }

  /// The note about an account, as another process reads it.
  func note(_ account: String?) throws -> ExchangeNote? { try another().accounts().note(AccountID("example", account)) }

  func login(_ change: (inout LoginOptions) -> Void = { _ in }) throws -> Account {
    var wish = LoginOptions()
    change(&wish)
    return try source.login("example", wish, user: user)
  }

  /// The person consents, and these are the provider's answers.
  func consent(_ responses: HTTPResponse...) {
    user.consent([("code", "code-1"), ("state", "state")])
    for response in responses { http.then(response) }
  }

  /// Nothing is under way, or waits beside the vault.
  func expectNothingLeft(sourceLocation: SourceLocation = #_sourceLocation) throws {
    #expect(try another().interruptedExchanges().isEmpty, sourceLocation: sourceLocation)
    #expect(try answerFiles.isEmpty, sourceLocation: sourceLocation)
  }

  /// While somebody waits, another process applies changes.
  func whileWaiting(_ changes: [Change], then: @escaping @Sendable () -> Void = {}) {
    clock.onSleep { [home] in
      let other = CredentialSource(home: home, http: nil, clock: ManualClock(), random: SystemRandomSource())
      if !changes.isEmpty { _ = try? other.accounts(.readWrite).store.apply(changes) }
      then()
    }
  }
}

extension HTTPResponse {
  static func json(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, fields: ["Content-Type": "application/json"], body: Array(text.utf8))
  }

  static func form(_ text: String) -> HTTPResponse {
    HTTPResponse(status: 200, fields: ["Content-Type": "application/x-www-form-urlencoded"], body: Array(text.utf8))
  }

  static func token(_ token: String, refresh: String? = nil, seconds: Int64 = 3600) -> HTTPResponse {
    let more = refresh.map { ",\"refresh_token\":\"\($0)\"" } ?? ""
    return json("{\"access_token\":\"\(token)\",\"token_type\":\"Bearer\",\"expires_in\":\(seconds)\(more)}")
  }

  static func identity(_ name: String) -> HTTPResponse { json("{\"login\":\"\(name)\"}") }
}

extension HTTPRequest {
  var parameters: FormParameters { FormParameters(decoding: String(decoding: body, as: UTF8.self)) }
}
