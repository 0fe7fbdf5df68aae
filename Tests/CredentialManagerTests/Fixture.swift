import CredmgrCryptography
import Glibc
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrDescriptors
import CredmgrSQLite
import Synchronization
import Testing
import CredmgrStore
import CredmgrVault

@testable import CredmgrCredentialManager
import CredmgrText

/// A clock that advances only when a caller waits.
final class ManualClock: WallClock {
  private let elapsed = Mutex(Duration.zero)
  private let onSleep: Mutex<(@Sendable () -> Void)?> = Mutex(nil)

  func now() -> Moment { Fixture.now + passed() }
  func monotonic() -> MonotonicMoment { MonotonicMoment(sinceBoot: passed()) }
  func passed() -> Duration { elapsed.withLock { $0 } }
  func advance(_ time: Duration) { elapsed.withLock { $0 += time } }

  func onSleep(_ body: @escaping @Sendable () -> Void) { onSleep.withLock { $0 = body } }

  func sleep(for time: Duration) throws(POSIXError) {
    advance(time)
    onSleep.withLock { $0 }?()
  }
}

/// Returns known bytes that differ at each call.
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
  /// Reads the complete body and returns the complete answer.
  func stream(
    _ request: HTTPRequest, body source: (any HTTPBodySource)?, limits: HTTPLimits,
    receive: @escaping (HTTPPart) -> Bool
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

/// Returns answers from a list. Fails the test if the list is empty.
final class ScriptedExchange: HTTPExchange {
  typealias Answer = (HTTPRequest) -> Result<HTTPResponse, HTTPError>

  private var answers: [Answer] = []
  private(set) var requests: [HTTPRequest] = []

  func then(_ responses: HTTPResponse...) { for response in responses { answers.append { _ in .success(response) } } }
  func then(_ error: HTTPError) { answers.append { _ in .failure(error) } }
  func then(_ answer: @escaping (HTTPRequest) -> HTTPResponse) { answers.append { .success(answer($0)) } }

  var isDone: Bool { answers.isEmpty }

  func forgetAnswers() { answers = [] }

  func send(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) -> HTTPResponse {
    requests.append(request)
    guard !answers.isEmpty else {
      Issue.record("unexpected request: \(request)")
      throw .unreachable(host: request.uri.host ?? "", reason: .connectionRefused)
    }
    return try answers.removeFirst()(request).get()
  }
}

/// A user who does what the test says.
final class ScriptedUser: User {
  private(set) var steps: [LoginStep] = []
  /// The pages in the browser, and the address that opened it.
  private(set) var opened: [String] = []
  private(set) var launched: [String] = []
  var lines: [String] = []
  /// The browser's action on a page; `nil` if no browser is available.
  var browse: ((String) throws -> Void)?
  /// The browser's requests, each sent after the previous answer.
  var visits: [Visit] = []
  var isCancelled = false
  var typed: [String]?  // The answer to a prompt; `nil` without a terminal.
  private(set) var prompts: [[Step.Prompt.Field]] = []
  var keepsUnverified: Bool?  // The answer to the question about an unverified credential; `nil` without a terminal.
  private(set) var questions: [CredentialError] = []
  var listen: ((LoginStep) throws -> Void)?  // Called with each recorded step.

  func texts(for prompt: Step.Prompt) -> [String]? {
    prompts.append(prompt.fields)
    return typed
  }

  var chosen: Int?  // The answer to the question which entry; `nil` without a terminal.
  private(set) var choices: [[String]] = []

  func choice(among labels: [String], of provider: String) -> Int? {
    choices.append(labels)
    return chosen
  }

  func confirmStoring(unverified error: CredentialError) -> Bool? {
    questions.append(error)
    if stopsAtQuestion { isCancelled = true }
    return keepsUnverified
  }

  var isReplacing: Bool?  // The answer to the question about another user; `nil` without a terminal.
  private(set) var replacements: [String?] = []
  var stopsAtQuestion = false  // Presses Ctrl-C instead of answering it.
  var canAnswer: Bool { isReplacing != nil }

  func givesAway(_ account: String, of expected: String, to found: String?) -> Bool {
    replacements.append(found)
    if stopsAtQuestion { isCancelled = true }
    return isReplacing == true
  }

  func poll() {
    do {
      for visit in visits where try !visit.goOn() { break }
    } catch { Issue.record(error) }
  }

  /// Lets the browser use the page's `redirect_uri` and `state`.
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

  /// Redirects the browser with these parameters; `state` is replaced with that of the request.
  func consent(_ answers: [(String, String)]...) {
    browsing { [unowned self] redirect, state in
      visits += try answers.map { answer in
        let pairs = answer.map { FormParameters.Pair(name: $0, value: $1 == "state" ? state : $1) }
        return try Visit.get(redirect, FormParameters(pairs))
      }
    }
  }

  /// Records each step, but not the repeated waiting.
  func tell(_ step: LoginStep) {
    switch step {
    case .awaiting, .awaitingConsent: break
    default:
      steps.append(step)
      do { try listen?(step) } catch { Issue.record(error) }
    }
  }

  func open(_ url: String) -> Bool {
    launched.append(url)
    // The browser starts at our port, which redirects to the page that the user sees.
    var page = url
    if case .open(let told)? = steps.last, url.contains("/start/") { page = told }
    opened.append(page)
    guard let browse else { return false }
    // Only once, because the closure and the fixture refer to each other.
    self.browse = nil
    do { try browse(page) } catch { Issue.record(error) }
    return true
  }

  func pastedLine(within time: Duration) -> String? { lines.isEmpty ? nil : lines.removeFirst() }

  var pasteDescriptor: Int32? { nil }
}

/// A browser's request to a local port, sent when the server is polled.
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

  /// Sends or receives the available bytes; returns whether the answer is complete.
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

  /// Opens the redirect, as a browser does.
  static func get(
    _ redirectURI: String, _ parameters: FormParameters, fields: [(String, String)] = []
  ) throws -> Visit {
    let uri = try URI(parsing: redirectURI).adding(query: parameters)
    let port = try #require(uri.port)
    let target = uri.path + (uri.query.map { "?" + $0 } ?? "")
    let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
    return Visit(port: port, "GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\(lines)\r\n")
  }

  /// Posts the fragment, as the relay page does.
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
  /// Returns a provider's client, as a route gets it.
  func client(_ provider: String) throws(CredentialError) -> Client { try permit(.validate, provider).client }
}

/// A temporary directory with a provider, and everything for a source.
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

  /// As `endpoints`, but exchanges tokens for a session; `follows` lists the endpoints whose tokens it exchanges.
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

  /// Creates the directory. `environment` extends `CREDMGR_HOME`, and `~` in it is the directory.
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

  /// Returns a fixture with an added provider.
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
    if !http.isDone { Issue.record("a prepared answer was not requested") }
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

  /// Returns a source for another process, which shares only the directory.
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
    token: String? = nil, replaces: Bool = false, confirms: CredentialSource.Consent = { _, _, _ in false }
  ) throws -> Registration? {
    try source.add(
      addition, clientIdentifier: id, clientSecret: secret.map { Secret($0) }, variables: variables,
      initialAccessToken: token.map { Secret($0) }, replaces: replaces, confirms: confirms,
      agrees: { confirms(addition.identifier, [], $0) })
  }

  /// Creates a user's file that is not installed yet.
  func file(
    _ text: String, _ identifier: String = "example", as name: String? = nil
  ) throws -> ProviderAddition {
    try source.addition(Array("provider: \(identifier)\n\(text)\n".utf8), named: "\(identifier).yaml", as: name)
  }

  /// Edits a file in the user's descriptor directory.
  func edit(_ text: String, _ identifier: String = "example") throws {
    try File.createDirectory(home.userProviders)
    try File.replace("\(home.userProviders)/\(identifier).yaml", Array("provider: \(identifier)\n\(text)\n".utf8))
  }

  func registration(_ provider: String = "example") throws -> Registration? {
    try another().accounts().registration(of: provider)
  }

  /// Adds a user's own file.
  func addOwn(
    _ text: String, _ identifier: String = "example", variables: [String: String] = [:], replaces: Bool = false,
    agrees: ([NewPlace]) -> Bool = { _ in false }
  ) throws {
    let bytes = Array("provider: \(identifier)\n\(text)\n".utf8)
    try source.add(
      source.addition(bytes, named: identifier + ".yaml", as: nil), clientIdentifier: "client-1",
      clientSecret: Secret(text.contains("private_key_jwt") ? Self.clientKey : "secret-1"), variables: variables,
      replaces: replaces, confirms: { _, _, _ in false }, agrees: agrees)
  }

  // An RSA key only for tests, made by `openssl genpkey`.
  static let clientKey = """
    -----BEGIN PRIVATE KEY-----
    MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQCM7D8nu4ixFrQ5
    XoaejSGj2EYS7ZypstIh1Bd14c+PH0HCjqc/snlXrxOkenMsYinJZ8asEhOiEJoB
    DTAXjZqGa496wFYWdnYmVGzqp9OZ/bU3lCtXvHQ3N0VWTCO00Xqi6xqtWtQW7gYg
    XrnLdPlmWdMzukqGPd+n1wewipKsNFQLbPvfTR/j7b9UIgaLJrYVzmdHzkUfYndq
    yIwoJLSqBwvfSSuMjtx1WPiSDe1JCzP81OA6mCJhcOLs+FfpE9hv5EG0mxksNfhi
    OLByCo2xTHS66wnXMr0dl/0ajAW/AHI9VuiF59vEsNmS5Pg4Ba0odHjodXDllYHG
    ytCX3NbpAgMBAAECggEAAu4OgPJnNgB+ji9dyks/vc0v5X+06myZEmlEdL6w23rq
    mapeLz/9QdyWRxqYEdmXfD+liF2/2Qi/5l9pP7QdIX7l21l+FUjnhIY1Z8pqndeU
    PmK4QIuVpvqFxj3VTMlmLMRk3wZjjnehkYxvxr/9R3PGEu4bLx/lDs7ZacsXxG+f
    5jeeM5fN3JAPVMpexOGpq8YYSEoWhltx9BZmdPdt7h3vtdWtvutxMt7h1UK/G2TY
    vzdU/5EQoYOljzBIJEtFA3EmLwddqR1pYQ+NFXB9ooYvpZCVPt361kGAQwtBC8kY
    qoPo1bO8NmdWzjagcNdCupPIC8hGrQw1gREXXjfFuQKBgQDAVnMdfmDNJStTyRFK
    HmNlWKUbWcdjc82ehH2q3zlOvtr3C938a5yCg3u2ExFGUJGgLfe3V2sJHeLwvLCT
    5nm8Q0NauR6fIpPs5r5GeskFGrWIpIg+jKC16o7HfJZIyyPEAIacUPqQNlylDAps
    gXcFK5i2eoetnu+Zo7Yb5q4AGwKBgQC7kTVf8woA3i1RIkjOmhhZHIqAJFXMmQOH
    4Ht3K8rqDoTLDxCLL1MPfEo0kOoeAamzrqQcesGzl6wuUHbqSH8huxCSx1cX37jf
    lzeOHwFmGJUeYPU98qCGDfyojQjHEFbg/AVm566BbLO+PxUz1OONLZyDwmoNpHm7
    V8pG/htdSwKBgFl/4NE4nZLYWPED/yeePGJMfYfcnwuIN4Yr4M5CUUhzRzDuNL3g
    1VNmG4r+FGvD0f/XZA3Mf+IeJhwfsYshFESmiBEPU1B5ppv2Q1RIjoHxi8epyDxS
    8/Wyz/3D26rD3EC4fer/Q5kXssSadb9H/zpIryc6nSgNbTDxHSyeixlBAoGAFa4A
    BFocIuOLS2ByF+c5vzsMSyln/WEGRnNM8gZOyuTotmvEVsIekKCmFxNU7Cj3C3y5
    HU2XDAIQ9b15MTU19JkhnkWKLIlAXh+lXTj6OWnH+p3sWr+rjDMbrAO5KwEZeaHH
    ohBPXEhLMkcqVTZbIttNxvD2vyLuqxfHmpMOaKcCgYBcGk9Jqkz4Kpy86IQvqgE4
    IlnK6sf5hsyloZkAPRcW3EIdDEnjJsBvL/V4HeHp7C4qX69ypbzdMg/XbNdE+geY
    4Uj2Lgaa3JBWrusSktVP0ppn1lMlHm2NEUlrSDAycXtuiwjeROCmaiFON5pPJ/D5
    i4LMij97Kwv/W01mF2R+2g==
    -----END PRIVATE KEY-----
    """

  /// Edits an installed file.
  func editOwn(_ text: String, _ identifier: String = "example") throws {
    try File.replace("\(home.userProviders)/\(identifier).yaml", Array("provider: \(identifier)\n\(text)\n".utf8))
  }

  /// Returns a credential that is valid for an hour and has a refresh token.
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

  /// Returns the change that stores a credential for the account "ana".
  static func storing(_ token: String) -> Change {
    var credential = credential(token)
    credential.requestedScope = ["read"]
    return .store(credential.encoded, as: RecordIdentifier(.credential, of: AccountID("example", "ana")))
  }

  func change(_ body: (inout Credential) -> Void) throws {
    var credential = try #require(try stored())
    body(&credential)
    try store(credential)
  }

  func stored(_ account: String = "ana", _ provider: String = "example") throws -> Credential? {
    try another().accounts().account(AccountID(provider, account))?.credential
  }

  /// Leaves the files of a process that was killed during an exchange.
  func leave(_ note: ExchangeNote?, _ answer: KeptAnswer?, _ account: String = "ana") throws {
    let store = try another().accounts(.readWrite).store
    let id = AccountID("example", account.isEmpty ? nil : account)
    let identifier = RecordIdentifier(.pending, of: id)
    try store.apply([note.map { .store($0.encoded, as: identifier) } ?? .remove(identifier)])
    if let answer { try store.makeRoom(for: id).fill(answer.encoded, isForced: false) }
  }

  /// Locks an account as another process until the result is released.
  func lock(_ account: String?) throws -> FileLock? {
    let name = try another().vault().hiddenName(of: AccountID("example", account))
    return try FileLock.acquire(home.vaultLocation.lock(name), timeout: .zero)
  }

  /// The names of saved answer files.
  var answerFiles: [String] { get throws { try File.names(in: home.vault).filter { $0.hasSuffix(".answer") } } }

  /// Overwrites a file in place.
  static func overwrite(_ path: String, with bytes: [UInt8]) throws {
    let file = unsafe Glibc.open(path, O_WRONLY | O_TRUNC)
    defer { close(file) }
    try #require(unsafe Glibc.write(file, bytes, bytes.count) == bytes.count)
  }

  /// Damages the vault so that it is readable but not writable.
  func damageVault() throws { try execute("UPDATE header SET sealed=x'00'") }

  /// Changes the vault's file as an attacker without a key.
  func execute(_ statement: String) throws {
    try Connection(path: home.vaultLocation.file, .readWrite, busyTimeout: .zero).execute(statement)
  }

  var page: FormParameters { get throws { try URI(parsing: #require(user.opened.last)).queryParameters } }

  func fresh(_ policy: RefreshPolicy = RefreshPolicy()) throws(CredentialError) -> Account {
    try source.freshAccount(nil, of: "example", policy)
  }

  /// Returns the notice about an exchange that an earlier process started at 1.
  static func interrupted(_ exchange: Interruption.Exchange, _ account: String? = "ana") -> Notice {
    .interrupted(Interruption(provider: "example", account: account, exchange: exchange, startedAt: 1))
  }

  /// Returns an account's note as another process reads it.
  func note(_ account: String?) throws -> ExchangeNote? { try another().accounts().note(AccountID("example", account)) }

  func login(_ change: (inout LoginOptions) -> Void = { _ in }) throws -> Account {
    var wish = LoginOptions()
    change(&wish)
    return try source.login("example", wish, user: user)
  }

  /// Lets the user consent, and sets the provider's answers.
  func consent(_ responses: HTTPResponse...) {
    user.consent([("code", "code-1"), ("state", "state")])
    for response in responses { http.then(response) }
  }

  /// Expects no exchange in progress and no saved answer.
  func expectNothingLeft(sourceLocation: SourceLocation = #_sourceLocation) throws {
    #expect(try another().interruptedExchanges().isEmpty, sourceLocation: sourceLocation)
    #expect(try answerFiles.isEmpty, sourceLocation: sourceLocation)
  }

  /// Applies changes as another process.
  static func apply(_ changes: [Change], in home: Home) throws {
    let other = CredentialSource(home: home, http: nil, clock: ManualClock(), random: SystemRandomSource())
    _ = try other.accounts(.readWrite).store.apply(changes)
  }

  /// Applies changes as another process while a caller waits.
  func whileWaiting(_ changes: [Change], then: @escaping @Sendable () -> Void = {}) {
    clock.onSleep { [home] in
      if !changes.isEmpty { try? Self.apply(changes, in: home) }
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
