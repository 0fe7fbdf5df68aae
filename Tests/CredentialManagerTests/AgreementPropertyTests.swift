import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import Testing

@testable import CredmgrCredentialManager

/// Tests that no request leaves for a place that was not agreed to, with random variables, accounts, answers and edits.
/// A second, simple implementation decides which places are agreed: the origins of the added descriptor's templates.
/// `script/siege` runs the long form, with more edits and seeds.
struct AgreementPropertyTests {
  private static let isSiege = Environment.value("CREDMGR_KILLS") != nil

  /// A generator with a seed, so failures are repeatable.
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
    "evil.example/x", "http://127.0.0.1:1/", "us1", "", "..", "evil.example#", "\\evil.example", "a.b",
  ]

  /// Answers every request with fields that name other hosts, and records its destination.
  private final class HostileProvider: HTTPExchange {
    var dice: Dice
    let names: [String]
    var requests: [HTTPRequest] = []

    init(_ dice: Dice, _ names: [String]) { (self.dice, self.names) = (dice, names) }

    func send(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) -> HTTPResponse {
      requests.append(request)
      var fields = [
        "\"access_token\":\"t\"", "\"refresh_token\":\"r-1\"", "\"expires_in\":3600", "\"token_type\":\"Bearer\"",
      ]
      for name in names { fields.append("\"\(name)\":\"\(dice.pick(hostile).replacing("\\", with: "\\\\"))\"") }
      var response = HTTPResponse(status: dice.pick([200, 200, 200, 302, 401]))
      response.fields.set("Content-Type", "application/json")
      response.fields.set("Location", "https://evil.example/")
      response.body = Array("{\(fields.joined(separator: ","))}".utf8)
      return response
    }
  }

  // MARK: The agreed places

  /// Whether a URL is at a template's origin, with these values or values allowed in answers.
  private static func isWithin(_ uri: URI, _ template: String, _ agreed: Agreed) -> Bool {
    var expansions = [""]
    for (index, piece) in template.split(separator: "{", omittingEmptySubsequences: false).enumerated() {
      let halves = piece.split(separator: "}", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard index > 0, halves.count == 2 else {
        expansions = expansions.map { $0 + piece }
        continue
      }
      let choices = halves[0].split(separator: " || ").flatMap { name -> [String] in
        guard let patterns = agreed.kept[String(name)] else { return agreed.values[String(name)] ?? [] }
        guard let pattern = patterns.first, template.hasPrefix("{") else { return ["{}"] }
        // The only limited base URL is an origin.
        return (try? Regex(pattern).wholeMatch(in: uri.origin)) == nil ? [] : [uri.origin]
      }
      expansions = expansions.flatMap { text in choices.map { text + $0 + halves[1] } }
    }
    return expansions.contains { isAt(uri, $0.contains("://") ? $0 : "https://" + $0) }
  }

  /// Whether a URL matches. Braces match one label of a host, or a complete host; a leading star matches any labels.
  private static func isAt(_ uri: URI, _ text: String) -> Bool {
    let pieces = text.split(separator: "/", omittingEmptySubsequences: false)
    guard pieces.count > 2, pieces[0] == uri.scheme + ":" || (pieces[0] == "https:" && uri.isLoopback) else {
      return false
    }
    let authority = pieces[2].split(separator: ":")
    guard let host = authority.first, let name = uri.host else { return false }
    if host == "{}" { return true }
    let port = authority.count > 1 ? UInt16(authority[1]) : uri.isSecure ? 443 : 80
    if uri.effectivePort != port { return false }
    if host.hasPrefix("*."), name.hasSuffix(host.dropFirst()) { return true }
    let (own, other) = (host.split(separator: "."), name.split(separator: "."))
    return own.count == other.count && zip(own, other).allSatisfy { $0 == $1 || $0 == "{}" }
  }

  private struct Agreed {
    let descriptor: Descriptor
    var values: [String: [String]] = [:]
    var kept: [String: [String]] = [:]

    init(_ descriptor: Descriptor) {
      self.descriptor = descriptor
      for field in descriptor.endpoints.values.flatMap(\.response.keep) {
        kept[field.name, default: []] += [field.pattern].compactMap { $0 }
      }
    }

    func allows(_ request: HTTPRequest) -> Bool {
      let endpoints = descriptor.endpoints.values.map(\.url.text)
      let sent =
        String(decoding: request.body, as: UTF8.self) + request.uri.text
        + request.fields.map(\.value).joined(separator: " ")
      let basic = Base64.encode(Array("client-1:secret-1".utf8))
      let isSecret = ["secret-1", "refresh-1", "r-1", basic].contains(where: sent.contains)
      return (isSecret ? endpoints : endpoints + descriptor.hosts.map(\.text)).contains {
        isWithin(request.uri, $0, self)
      }
    }
  }

  // MARK: Descriptors

  private static let providers: [String] = {
    let folder = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined() + "/providers"
    return ((try? File.names(in: folder)) ?? []).filter { $0.hasSuffix(".yaml") }.map { folder + "/" + $0 }
  }()

  /// Returns a descriptor with random variables in its URLs and hosts.
  private static func generated(_ dice: inout Dice) -> String {
    let hosts = [
      "{a}.api.example", "{b}.x.example", "api.example", "*.good.example", "{v}.example", "{a || v}.example",
    ]
    let urls = [
      "https://{a}.api.example/t", "https://api.example/t", "https://{v}.example/t", "https://{v || a}.b.example/t",
      "https://{w}.w.example/{a}", "https://api.example/{w}/t",
    ]
    return """
      provider: generated
      grant: [authorization_code, client_credentials]
      variables: { v: { default: var }, w: { optional: true }, k: { secret: true } }
      response: { keep: [a, b] }
      extra_headers: { X-Key: "{k}", X-Other: "{w}{b}" }
      endpoints:
        authorization: https://api.example/authorize
        token: https://api.example/token
        refresh: "\(dice.pick(urls))"
        client_credentials: https://api.example/token
        revocation: "\(dice.pick(urls))"
        identity: "\(dice.pick(urls))"
      hosts: ["\(dice.pick(hosts))", "\(dice.pick(hosts))"]
      git: { hosts: [git.example] }

      """
  }

  /// Edits that a stranger could make to an added file: other hosts, kinds and values.
  private static let edits: [(String, String)] = [
    ("api.example", "evil.example"), ("https://", "https://evil.example/"), ("https://{", "https://evil.example/{"),
    ("  token: https://", "  refresh: https://git.example/r\n  token: https://"),
    ("hosts: [", "hosts: [evil.example, "), ("hosts: [", "hosts: [\"*.example\", "), ("default: ", "default: evil"),
    ("default: ", "optional: true } #"), ("{a}", "{b}"), ("{v}", "{w}"), ("{v", "{a"), ("keep: [a", "keep: [A, a"),
    ("{a}", "{A}"), ("secret: true", "help: x"), ("X-Other", "X-Else"), (".example/", ".example.evil.example/"),
    ("optional: true", "default: evil"), ("keep: [a, b]", "keep: [a, b, v]"), ("keep: [a, b]", "keep: [a]"),
  ]

  private static func run(_ text: String, _ name: String, _ seed: UInt64, edits count: Int) throws -> Int {
    var dice = Dice(state: seed)
    let fixture = try Fixture()
    guard let addition = try? fixture.source.addition(Array(text.utf8), named: name, as: nil) else { return 0 }
    let provider = addition.identifier
    var agreed = Agreed(addition.descriptor)
    func some(_ isAll: Bool) -> [String: String] {
      var values: [String: String] = [:]
      for variable in addition.descriptor.variables {
        let value = dice.pick(["one", "two.example", "https://three.example", "4"])
        let isWanted = dice.roll(2) == 0 || (isAll && variable.defaultValue == nil && !variable.isOptional)
        if variable.accepts(value), isWanted { values[variable.name] = value }
      }
      return values
    }
    let (variables, own) = (some(true), some(false))
    for variable in addition.descriptor.variables {
      agreed.values[variable.name] = [variables, own].compactMap { $0[variable.name] } + [variable.defaultValue ?? ""]
    }
    agreed.values["client_id"] = ["client-1"]
    do { try fixture.add(addition, secret: "secret-1", variables: variables) } catch { return 0 }
    let kept = addition.descriptor.endpoints.values.flatMap { $0.response.keep.map(\.name) } + ["A", "v", "w"]
    var credential = Fixture.credential()
    credential.variables = own
    for name in kept { credential.kept[name] = dice.pick(hostile) }
    try fixture.store(credential, "ana", provider)
    let network = HostileProvider(dice, kept)
    let source = CredentialSource(home: fixture.home, http: network, clock: fixture.clock, random: KnownRandom())
    for edit in [nil] + (0..<count).map({ _ in dice.pick(edits) }) {
      if let edit {
        try File.replace(
          fixture.home.userProviders + "/\(provider).yaml", Array(text.replacing(edit.0, with: edit.1).utf8))
      }
      _ = try? source.validate(nil, of: provider)
      _ = try? source.handOut(nil, of: provider, by: .token, to: .caller, RefreshPolicy(always: true, asksAgain: true))
      for host in ["https://evil.example/", "https://www.com/", "https://api.example/", "http://127.0.0.1:1/"] {
        let request = HTTPRequest(method: "GET", uri: try URI(parsing: host))
        _ = try? source.send(request, account: nil, of: provider, limits: .tokenEndpoint) { _ in true }
      }
      var options = LoginOptions()
      options.grant = .clientCredentials
      _ = try? source.login(provider, options, user: fixture.user)
      _ = try? source.login(provider, LoginOptions(), token: Secret("given"))
      try fixture.store(credential, "ana", provider)
    }
    _ = try? source.logout("ana", of: provider, keepsRemote: false)
    for request in network.requests {
      #expect(agreed.allows(request), "\(name), seed \(seed): \(request.uri)")
    }
    return network.requests.count
  }

  @Test func shippedDescriptors() throws {
    #expect(Self.providers.count >= 64)
    var requests = 0
    for (index, path) in Self.providers.enumerated() {
      requests += try Self.run(
        String(decoding: File.read(path, limit: 1 << 20), as: UTF8.self), path, UInt64(index) + 1,
        // Each descriptor as it is, and every third one with an edit.
        edits: Self.isSiege ? 6 : index % 3 == 0 ? 1 : 0)
    }
    #expect(requests > 100)
  }

  @Test func generatedDescriptors() throws {
    var requests = 0
    for seed in 1...(Self.isSiege ? 480 : 24) {
      var dice = Dice(state: UInt64(seed))
      requests += try Self.run(Self.generated(&dice), "generated.yaml", UInt64(seed), edits: 3)
    }
    #expect(requests > 100)
  }
}
