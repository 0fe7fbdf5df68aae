import Testing

@testable import CredmgrHTTP

struct LoopbackRequestTests {
  @Test func readsOneRequest() {
    let text = "POST /cb?x=1 HTTP/1.1\r\nHost: a\r\nContent-Length:  3 \r\n\r\na=bEXTRA"
    #expect(
      LoopbackRequest.parse(Array(text.utf8))
        == .complete(
          LoopbackRequest(
            method: "POST", target: "/cb?x=1", fields: ["Host": "a", "Content-Length": "3"], body: Array("a=b".utf8))))
  }

  @Test func waitsForEveryByte() {
    let bytes = Array("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab".utf8)
    for count in 0..<bytes.count {
      #expect(LoopbackRequest.parse(Array(bytes[..<count])) == .incomplete)
    }
  }

  @Test(arguments: [
    ("GET /\r\n\r\n", 400), ("GET / HTTP/2\r\n\r\n", 400), ("GET  / HTTP/1.1\r\n\r\n", 400), ("\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nA\r\n\r\n", 400), ("GET / HTTP/1.1\r\nA : b\r\n\r\n", 400), ("G@T / HTTP/1.1\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400), ("GET / HTTP/1.1\r\nA: b\nHost: c\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nA: \0\r\n\r\n", 400), ("GET /é HTTP/1.1\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", 400),
    ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400), ("POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nContent-Length: 65536\r\n\r\n", 413),
    ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
    ("GET /" + String(repeating: "a", count: 65536), 431),
    ("GET /" + String(repeating: "a", count: 65536) + " HTTP/1.1\r\n\r\n", 431),
  ]) func refuses(text: String, status: Int) { #expect(LoopbackRequest.parse(Array(text.utf8)) == .refused(status)) }
}

struct LoopbackEndpointTests {
  /// Returns a request; `line` is its method and target, or the target of a GET.
  private static func request(
    _ line: String, host: String = "127.0.0.1:99", _ fields: [(String, String)] = [], body: String = ""
  ) -> LoopbackRequest {
    var all: HTTPFields = ["Host": host]
    for field in fields { all.append(field.0, field.1) }
    let words = line.split(separator: " ").map(String.init)
    return LoopbackRequest(
      method: words.count > 1 ? words[0] : "GET", target: words[words.count - 1], fields: all, body: Array(body.utf8))
  }

  private static let form = [("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8")]
  private static let own = [("Origin", "http://127.0.0.1:99")]

  @Test(
    arguments: [
      (request("/cb?code=1&state=a+b"), .parameters([("code", "1"), ("state", "a b")])),
      (request("/cb?code=1", host: "127.0.0.1:99"), .parameters([("code", "1")])), (request("/cb"), .refusal(400)),
      (request("/cb?"), .refusal(400)), (request("/favicon.ico"), .refusal(404)),
      (request("/cb/?code=1"), .refusal(404)), (request("/CB?code=1"), .refusal(404)),
      (request("/%63b?code=1"), .refusal(404)), (request("http://127.0.0.1:99/cb?code=1"), .refusal(404)),
      (request("/cb?code=1", host: "evil.example:99"), .refusal(421)),
      (request("/cb?code=1", host: "localhost:99"), .refusal(421)),
      (request("/cb?code=1", host: "127.0.0.1"), .refusal(421)),
      (request("/cb?code=1", [("Host", "127.0.0.1:99")]), .refusal(421)), (request("HEAD /cb?code=1"), .refusal(405)),
      (request("PUT /cb?code=1"), .refusal(405)),
      (request("POST /cb", form, body: "code=1"), .parameters([("code", "1")])),
      (request("POST /cb", form + [("Origin", "https://provider.example")], body: "a=b"), .parameters([("a", "b")])),
      (request("POST /cb", form), .refusal(400)), (request("POST /cb", body: "code=1"), .refusal(415)),
      (request("POST /cb", [("Content-Type", "text/plain")], body: "code=1"), .refusal(415)),
    ] as [(LoopbackRequest, LoopbackEndpoint.Answer)])
  func query(request: LoopbackRequest, answer: LoopbackEndpoint.Answer) {
    let endpoint = LoopbackEndpoint(host: "127.0.0.1", port: 99, path: "/cb", provider: "https://provider.example")
    #expect(endpoint.answer(request) == answer)
  }

  @Test(
    arguments: [
      (request("/cb"), .relay("value")), (request("/cb?error=x"), .besideFragment([("error", "x")])),
      (request("/cb?access_token=t"), .besideFragment([("access_token", "t")])),
      (request("POST /cb", form + own, body: "access_token=t"), .parameters([("access_token", "t")])),
      (request("POST /cb", form, body: "access_token=t"), .refusal(403)),
      (request("POST /cb", form + [("Origin", "null")], body: "access_token=t"), .refusal(403)),
      (request("POST /cb", form + [("Origin", "http://127.0.0.1:98")], body: "access_token=t"), .refusal(403)),
      (request("POST /cb", form + own + own, body: "access_token=t"), .refusal(403)),
      (request("POST /cb", form + own), .refusal(400)),
    ] as [(LoopbackRequest, LoopbackEndpoint.Answer)])
  func fragment(request: LoopbackRequest, answer: LoopbackEndpoint.Answer) {
    let endpoint = LoopbackEndpoint(host: "127.0.0.1", port: 99, path: "/cb", relay: "value")
    #expect(endpoint.answer(request) == answer)
  }

  @Test(
    arguments: [
      (request("/cb?x=1&code=2"), .parameters([("code", "2")])),
      (request("/cb?code=2&x=1"), .parameters([("code", "2")])), (request("/cb?x=1"), .refusal(400)),
      (request("/cb?code=2"), .refusal(404)), (request("/cb?x=2&code=2"), .refusal(404)),
      (request("/cb?x=1&x=1&code=2"), .parameters([("x", "1"), ("code", "2")])),
      (request("POST /cb?x=1", form, body: "code=1"), .parameters([("code", "1")])),
      (request("POST /cb", form, body: "code=1"), .refusal(404)),
    ] as [(LoopbackRequest, LoopbackEndpoint.Answer)])
  func redirectWithQuery(request: LoopbackRequest, answer: LoopbackEndpoint.Answer) {
    let endpoint = LoopbackEndpoint(host: "127.0.0.1", port: 99, path: "/cb?x=1")
    #expect(endpoint.answer(request) == answer)
  }

  @Test(arguments: [
    ("localhost", "LocalHost:80"), ("localhost", "localhost"), ("[::1]", "[::1]"), ("[::1]", "[::1]:80"),
  ]) func impliedPort(host: String, field: String) {
    let endpoint = LoopbackEndpoint(host: host, port: 80, path: "")
    #expect(endpoint.answer(Self.request("/?a=b", host: field)) == .parameters([("a", "b")]))
  }

  private static let navigation = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), document]
  private static let document = ("Sec-Fetch-Dest", "document")
  private static let image = [
    ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image"),
  ]
  private static let frame = [("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")]
  private static let script = [
    ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "cors"), ("Sec-Fetch-Dest", "empty"),
  ]

  /// An image, frame or script of another page requests the address, not the user.
  @Test(arguments: [image, frame, script, [document, document, ("Sec-Fetch-Dest", "image")]])
  func onlyTheUsersBrowserIsAccepted(fields: [(String, String)]) {
    for relay in [nil, "value"] {
      var endpoint = LoopbackEndpoint(host: "127.0.0.1", port: 99, path: "/cb", relay: relay)
      endpoint.start = "/start/name"
      for line in ["/cb?code=1", "/cb?error=x", "/cb", "/start/name"] {
        #expect(endpoint.answer(Self.request(line, fields)) == .refusal(403))
      }
      #expect(endpoint.answer(Self.request("POST /cb", Self.form + fields, body: "code=1")) == .refusal(403))
    }
  }

  @Test func onlyANavigationOpensTheLoginPage() {
    var endpoint = LoopbackEndpoint(host: "127.0.0.1", port: 99, path: "/cb", provider: "https://provider.example")
    endpoint.start = "/start/name"
    let code = LoopbackEndpoint.Answer.parameters([("code", "1")])
    #expect(endpoint.answer(Self.request("/cb?code=1", Self.navigation)) == code)
    #expect(endpoint.answer(Self.request("/start/name", Self.navigation)) == .start)
    #expect(endpoint.answer(Self.request("/start/other", Self.navigation)) == .refusal(404))
    #expect(endpoint.answer(Self.request("/start/name?x", Self.navigation)) == .refusal(404))
    #expect(endpoint.answer(Self.request("HEAD /start/name")) == .refusal(405))
    let fragment = LoopbackEndpoint(host: "127.0.0.1", port: 99, path: "/cb", relay: "value")
    #expect(fragment.answer(Self.request("/cb", Self.navigation)) == .relay("value"))
  }

  /// A form sent by the provider's page, and one sent by another page.
  @Test(arguments: [
    (["https://provider.example"], true), (["null"], true), ([], true), (["https://evil.example"], false),
    (["https://provider.example:8443"], false), (["http://provider.example"], false),
    (["https://provider.example", "https://evil.example"], false), (["http://127.0.0.1:99"], false),
  ]) func formOfTheProvider(origins: [String], isTaken: Bool) {
    let endpoint = LoopbackEndpoint(host: "127.0.0.1", port: 99, path: "/cb", provider: "https://provider.example")
    let fields = Self.form + Self.navigation + origins.map { ("Origin", $0) }
    let request = Self.request("POST /cb", fields, body: "code=1")
    #expect(endpoint.answer(request) == (isTaken ? .parameters([("code", "1")]) : .refusal(403)))
    // Without a state, a page that hides its origin could be any page.
    var strict = endpoint
    strict.needsOrigin = true
    let isKnown = origins == ["https://provider.example"]
    #expect(strict.answer(request) == (isKnown ? .parameters([("code", "1")]) : .refusal(403)))
  }

  /// The relay page's request shows that it comes from this login's page.
  @Test(arguments: [
    ([("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "cors"), ("X-Relay", "value")], true),
    ([("X-Relay", "value")], true), ([], true), ([("X-Relay", "other")], false),
    ([("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "cors")], false),
    ([("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "cors"), ("X-Relay", "value")], false),
    ([("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "navigate"), ("X-Relay", "value")], false),
    ([("X-Relay", "value"), ("X-Relay", "value")], false),
  ]) func relayedByThePageOfThisLogin(fields: [(String, String)], isTaken: Bool) {
    let endpoint = LoopbackEndpoint(host: "127.0.0.1", port: 99, path: "/cb", relay: "value")
    let answer = endpoint.answer(Self.request("POST /cb", Self.form + Self.own + fields, body: "access_token=t"))
    #expect(answer == (isTaken ? .parameters([("access_token", "t")]) : .refusal(403)))
  }
}
