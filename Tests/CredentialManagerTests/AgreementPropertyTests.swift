import Cryptography
import Descriptors
import HTTP
import OAuth
import Platform
import Store
import Testing

@testable import CredentialManager

/// For random variables, answers and accounts, no request leaves for an origin outside of the agreement.
struct AgreementPropertyTests {
  /// A generator with a seed, so that a failure comes back.
  private struct Dice {
    var state: UInt64

    mutating func roll(_ count: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % count
    }

    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[roll(elements.count)] }
  }

  private static let hostile = [
    "evil.example", "https://evil.example", "https://evil.example/?", "evil.example:8443", "com", "*", "a@evil.example",
    "evil.example/x", "http://127.0.0.1:1/", "us1", "", "..", "evil.example#", "\\evil.example",
  ]

  /// Answers every request with fields that name other hosts, and notes where it went.
  private final class HostileProvider: HTTPExchange {
    var dice: Dice
    let names: [String]
    var requests: [URI] = []

    init(_ dice: Dice, _ names: [String]) { (self.dice, self.names) = (dice, names) }

    func send(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) -> HTTPResponse {
      requests.append(request.uri)
      var fields = [
        "\"access_token\":\"t\"", "\"refresh_token\":\"r\"", "\"expires_in\":3600", "\"token_type\":\"Bearer\"",
      ]
      for name in names { fields.append("\"\(name)\":\"\(dice.pick(hostile).replacing("\\", with: "\\\\"))\"") }
      var response = HTTPResponse(status: dice.pick([200, 200, 200, 302, 401]))
      response.fields.set("Content-Type", "application/json")
      response.fields.set("Location", "https://evil.example/")
      response.body = Array("{\(fields.joined(separator: ","))}".utf8)
      return response
    }
  }

  private static let providers: [String] = {
    let folder = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined() + "/providers"
    return ((try? File.names(in: folder)) ?? []).filter { $0.hasSuffix(".yaml") }.map { folder + "/" + $0 }
  }()

  /// A descriptor with random places in its URLs and hosts.
  private static func generated(_ dice: inout Dice) -> String {
    let hosts = ["{a}.api.example", "{b}", "api.example", "*.good.example", "{v}.example", "{a || v}.example"]
    let urls = [
      "https://{a}.api.example/t", "{b}/t", "https://api.example/t", "https://{v}.example/t", "https://{v || a}/t",
    ]
    return """
      provider: generated
      grant: [authorization_code, client_credentials]
      variables: { v: { default: var } }
      response: { keep: [a, b] }
      endpoints:
        authorization: https://api.example/authorize
        token: https://api.example/token
        refresh: "\(dice.pick(urls))"
        client_credentials: https://api.example/token
        revocation: "\(dice.pick(urls))"
        identity: "\(dice.pick(urls))"
      hosts: ["\(dice.pick(hosts))", "\(dice.pick(hosts))"]

      """
  }

  private static func check(_ text: [UInt8], _ name: String, _ seed: UInt64) throws {
    var dice = Dice(state: seed)
    let fixture = try Fixture()
    guard let addition = try? fixture.source.addition(text, named: name, as: nil) else { return }
    var variables: [String: String] = [:]
    for variable in addition.descriptor.variables {
      let value = dice.pick(["one", "two.example", "https://three.example", "4"])
      if variable.accepts(value), dice.roll(2) == 0 || variable.defaultValue == nil { variables[variable.name] = value }
    }
    do { try fixture.add(addition, secret: "secret-1", variables: variables) } catch { return }
    let provider = addition.identifier
    let kept = addition.descriptor.endpoints.values.flatMap { $0.response.keep.map(\.name) }
    var credential = Fixture.credential()
    for name in kept { credential.kept[name] = dice.pick(hostile) }
    try fixture.store(credential, "ana", provider)
    let network = HostileProvider(dice, kept)
    let source = fixture.another(http: network)
    let agreement = try #require(try source.accounts().registration(of: provider)?.agreement)
    _ = try? source.validate(nil, of: provider)
    _ = try? source.freshAccount(nil, of: provider, RefreshPolicy(always: true))
    for host in ["https://evil.example/", "https://www.com/", "https://evil.example:8443/x", "http://127.0.0.1:1/"] {
      let request = HTTPRequest(method: "GET", uri: try URI(parsing: host))
      _ = try? source.send(request, account: nil, of: provider, limits: .tokenEndpoint) { _ in true }
    }
    var options = LoginOptions()
    options.grant = .clientCredentials
    _ = try? source.login(provider, options, user: fixture.user)
    _ = try? source.login(provider, LoginOptions(), token: Secret("given"))
    _ = try? source.logout(nil, of: provider, keepsRemote: false)
    for uri in network.requests {
      #expect(agreement.covers(uri), "\(name), seed \(seed): \(uri)")
      // Only what is a place as a whole may be any origin.
      let isAny = agreement.tokenOrigins.contains { $0.hasPrefix("{") }
      let isBare = agreement.tokenOrigins.contains { $0.hasPrefix("https://{") && $0.hasSuffix("}") }
      if !isAny, !isBare { #expect(uri.host?.hasSuffix("evil.example") == false, "\(name), seed \(seed): \(uri)") }
    }
  }

  @Test func shippedDescriptors() throws {
    #expect(Self.providers.count >= 64)
    for (index, path) in Self.providers.enumerated() {
      try Self.check(File.read(path, limit: 1 << 20), path, UInt64(index) + 1)
    }
  }

  @Test(arguments: 1...24) func generatedDescriptors(_ seed: Int) throws {
    var dice = Dice(state: UInt64(seed))
    try Self.check(Array(Self.generated(&dice).utf8), "generated.yaml", UInt64(seed))
  }
}
