import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth
import CredmgrTLS
import CredmgrDescriptors
import Synchronization
import Testing

@testable import CredmgrSimulator
import CredmgrText

/// A simulated provider with a clock, and a client created only from the descriptor that the simulator wrote.
struct Play {
  let simulation: Shared
  let client: Client
  let clock: TestClock
  static let origin = "http://127.0.0.1:4711"
  static let certifiedOrigin = "https://127.0.0.1:4712"
  static let authority = Result { try CertificateAuthority(name: "authority", random: SystemRandomSource()) }

  init(
    _ sample: Sample, _ settings: SimulationSettings = SimulationSettings(),
    secret: Secret = Secret("s3cret"), variables: [String: String] = [:]
  ) throws {
    let library = DescriptorLibrary(directories: []) { _ in nil }
    let descriptor = try library.load(Array(sample.text.utf8), name: "test").descriptor
    try self.init(descriptor, settings, secret: secret, variables: variables)
  }

  init(
    _ descriptor: Descriptor, _ settings: SimulationSettings = SimulationSettings(),
    secret: Secret? = Secret("s3cret"), variables: [String: String] = [:],
    fetch: @escaping (URI) -> HTTPResponse? = { _ in nil }
  ) throws {
    let library = DescriptorLibrary(directories: []) { _ in nil }
    clock = TestClock()
    let isCertified = descriptor.usesCertificates
    let practice =
      isCertified ? try Simulation.practiceSecret(ofClientOf: descriptor, Self.authority.get()) : nil
    let secret = isCertified && secret?.reveal().contains("CERTIFICATE") != true ? practice : secret
    simulation = Shared(
      try Simulation(
        descriptor, at: try URI(parsing: Self.origin), settings: settings, clientSecret: secret ?? Secret(""),
        clock: { [clock] in clock.time }, random: TestRandom(),
        certified: isCertified ? (try URI(parsing: Self.certifiedOrigin), try Self.authority.get().certificate) : nil,
        fetch: fetch))
    let written = try library.load(Array(simulation.value.descriptorText.utf8), name: "written")
    #expect(written.warnings == [])
    // The tokens of other issuers, which each exchange reads.
    let key = simulation.value.state.key?.variables.filter { descriptor.variable($0.key)?.isAtExchange == true }
    var client = try Client(
      descriptor: written.descriptor, identifier: secret == nil ? "" : Simulation.clientIdentifier, secret: secret,
      variables: variables.merging(key ?? [:]) { given, _ in given })
    client.bindingKey = client.newBindingKey(of: written.descriptor.grants[0], random: TestRandom())
    self.client = client
  }

  /// The simulation that all copies of a play share.
  final class Shared {
    var value: Simulation
    init(_ value: Simulation) { self.value = value }
  }

  /// Sends a request, with its certificate if the address has TLS.
  func answer(_ request: HTTPRequest) -> LoopbackServer.Answer {
    let text = request.uri.scheme == "https" ? String(decoding: request.clientCertificate ?? [], as: UTF8.self) : ""
    return simulation.value.answer(request, certificate: Certificate.all(inPEM: text).first)
  }

  func send(_ request: HTTPRequest) -> HTTPResponse { answer(request).response }

  func get(_ url: String) throws -> HTTPResponse { send(HTTPRequest(method: "GET", uri: try URI(parsing: url))) }

  func post(_ path: String, _ form: FormParameters = []) throws -> HTTPResponse {
    let fields: HTTPFields = ["Content-Type": "application/x-www-form-urlencoded"]
    let uri = try URI(parsing: Self.origin + path)
    return send(HTTPRequest(method: "POST", uri: uri, fields: fields, body: Array(form.encoded.utf8)))
  }

  /// Presses a button on a page; returns the browser's next address.
  func decide(_ page: URI, _ decision: String = "approve", account: String = "ada") throws -> URI {
    let response = send(HTTPRequest(method: "GET", uri: page))
    #expect(response.status == 200)
    let request = try #require(response.text.hidden("request"))
    let answer = try post("/simulator/consent", [("request", request), ("account", account), ("decision", decision)])
    #expect(answer.status == 302)
    return try URI(parsing: try #require(answer.fields["Location"]))
  }

  // MARK: The engine's part

  var redirectURI: String {
    get throws {
      guard case .loopback(let uri) = try client.redirect() else { return "" }
      return uri.port == nil ? uri.replacing(port: 50_000).text : uri.text
    }
  }

  func authorization(_ grant: Grant, scope: [String]) throws -> AuthorizationRequest {
    try client.authorizationRequest(grant, redirectURI: redirectURI, scope: scope, random: TestRandom(), nonce: nonce())
  }

  /// Returns the address of the page. Pushes the request first if the descriptor says so.
  func page(of request: AuthorizationRequest) throws -> URI {
    guard client.descriptor.endpoints[.pushedAuthorizationRequest] != nil else { return request.uri }
    return try client.page(of: request, pushed: send(client.pushedRequest(request, nonce: nonce()))).uri
  }

  /// Returns the token request after a login in the browser.
  func tokenRequest(scope: [String] = []) throws -> HTTPRequest {
    let request = try authorization(.authorizationCode, scope: scope)
    let response = try client.authorizationResponse(decide(page(of: request)).queryParameters, to: request)
    return try client.tokenRequest(response, nonce: nonce())
  }

  func login(scope: [String] = ["read", "write"], account: String = "ada") throws -> Credential {
    let request = try authorization(.authorizationCode, scope: scope)
    let target = try decide(page(of: request), account: account)
    let response = try client.authorizationResponse(target.queryParameters, to: request)
    return try client.outcome(send(client.tokenRequest(response, nonce: nonce())), after: response, now: clock.now)
      .issued().credential
  }

  func refresh(_ credential: Credential) throws -> Credential {
    let response = send(try client.refreshRequest(credential, nonce: nonce()))
    return try client.outcome(response, .refresh, refreshing: credential, now: clock.now).issued().credential
  }

  func validity(_ credential: Credential) throws -> Validity {
    let leg = try client.validationRequest(credential, nonce: nonce()).kind
    let response = try send(as: credential.grant) { try client.validationRequest(credential, nonce: $0).request }
    return try client.validity(response, leg)
  }

  /// Sends a request, and sends it again if the binding of the grant's tokens says so.
  func send(as grant: Grant, _ make: (RequestNonce) throws -> HTTPRequest) throws -> HTTPResponse {
    let first = nonce()
    let response = send(try make(first))
    guard let next = client.binding(of: grant).nonce(demandedBy: response, after: first) else { return response }
    return send(try make(next))
  }

  func revoke(_ credential: Credential) throws {
    for request in try client.revocationRequests(credential, nonce: nonce()) {
      try client.checkRevocation(send(request))
    }
  }

  func deviceAuthorization(scope: [String] = []) throws -> DeviceAuthorization {
    let response = send(try client.deviceAuthorizationRequest(scope: scope, nonce: nonce()))
    return try client.deviceAuthorization(response, scope: scope, now: clock.now)
  }

  /// Polls after some more seconds.
  func poll(_ device: DeviceAuthorization, after seconds: Double) throws -> DeviceAnswer {
    clock.advance(seconds: seconds)
    let answer = send(try client.deviceTokenRequest(device, nonce: nonce()))
    return try client.deviceAnswer(answer, to: device, now: clock.now)
  }

  func temporaryCredentials(callback: String? = nil, scope: [String] = []) throws -> TemporaryCredentials {
    let callback = try callback ?? redirectURI
    let request = try client.temporaryCredentialsRequest(callback: callback, scope: scope, nonce: nonce())
    return try client.temporaryCredentials(send(request), callback: callback)
  }

  func page(_ temporary: TemporaryCredentials, scope: [String] = []) throws -> URI {
    try client.authorizationPage(temporary, scope: scope, nonce: nonce())
  }

  func credential(
    _ temporary: TemporaryCredentials, _ authorization: ResourceOwnerAuthorization, scope: [String] = []
  ) throws -> Credential {
    let response = send(try client.tokenRequest(temporary, authorization, nonce: nonce()))
    return try client.outcome(response, after: authorization, scope: scope, now: clock.now).issued().credential
  }

  func renewed(_ credential: Credential) throws -> Credential {
    let response = send(try client.refreshRequest(credential, nonce: nonce()))
    return try client.outcome(response, .refresh, refreshing: credential, now: clock.now).issued().credential
  }

  func nonce() -> RequestNonce { RequestNonce(timestamp: clock.now, text: "n\(clock.tick())") }

  /// Requests the API. Only a method with a body can carry a token in it.
  func resource(_ credential: Credential, _ method: String? = nil) throws -> HTTPResponse {
    let standard = if case .body = client.descriptor.headerStyle.location { "POST" } else { "GET" }
    let origin = simulation.value.certified?.origin ?? Self.origin
    let request = HTTPRequest(method: method ?? standard, uri: try URI(parsing: origin + "/simulator/resource/x"))
    return try send(as: credential.grant) { try client.presenting(credential, on: request, nonce: $0) }
  }

  func log(_ name: String) throws -> Int64? {
    try JSONValue.parse(get(Self.origin + "/simulator/log").body)[name]?.integer
  }

  func lastRefusal() throws -> String? {
    let log = try JSONValue.parse(get(Self.origin + "/simulator/log").body)
    return log["last_refusals"]?.elements?.last?["reason"]?.text
  }
}

extension HTTPResponse {
  var text: String { String(decoding: body, as: UTF8.self) }
  var form: FormParameters { FormParameters(decoding: text) }
  func json() throws -> JSONValue { try JSONValue.parse(body) }
}

extension DeviceAnswer {
  var credential: Credential? { if case .issued(let credential, _) = self { credential } else { nil } }
  var isPending: Bool { if case .pending = self { true } else { false } }
  var isSlowDown: Bool { if case .slowDown = self { true } else { false } }
}

extension String {
  /// Returns the value of a hidden field; `nil` without such a field.
  func hidden(_ name: String) -> String? {
    let start = "name=\"\(name)\" value=\""
    guard let range = firstRange(of: start) else { return nil }
    return String(self[range.upperBound...].prefix { $0 != "\"" })
  }
}

/// A clock that advances only on request.
final class TestClock: Sendable {
  private let elapsed = Mutex(Duration.zero)
  private let ticks = Mutex(0)

  var time: Duration { .seconds(1_800_000_000) + elapsed.withLock { $0 } }  // Since 1970.
  var now: Moment { 0 + time }

  func advance(seconds: Double) { elapsed.withLock { $0 += .seconds(seconds) } }
  func tick() -> Int {
    ticks.withLock {
      $0 += 1
      return $0
    }
  }
}

/// Returns bytes that differ at each call but not between runs.
final class TestRandom: RandomSource {
  private let state = Mutex<UInt64>(1)

  func bytes(_ count: Int) -> [UInt8] {
    state.withLock { state in
      (0..<count).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 33)
      }
    }
  }
}
