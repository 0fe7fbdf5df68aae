import CredmgrCurl
import Glibc
import CredmgrHTTP
import Testing

struct CurlClientTests {
  @Test func emptyTrustVariablesCountAsUnset() { #expect(CurlTrust(file: "", folder: "") == CurlTrust()) }

  private static func request(
    _ port: UInt16, _ target: String = "/", method: String = "GET", scheme: String = "http",
    fields: HTTPFields = [:], body: String = ""
  ) throws -> HTTPRequest {
    HTTPRequest(
      method: method, uri: try URI(parsing: "\(scheme)://127.0.0.1:\(port)\(target)"), fields: fields,
      body: Array(body.utf8))
  }

  private static let limits = HTTPLimits(bodyBytes: 1000, time: .seconds(20))

  private static func send(_ request: HTTPRequest) throws(HTTPError) -> HTTPResponse {
    try CurlClient(userAgent: "t").send(request, limits: limits)
  }

  private static let ok = ScriptedServer.Turn("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

  @Test func sendsAndReceives() throws {
    let server = try ScriptedServer([
      .init(
        "HTTP/1.1 401 No\r\nContent-Type: Application/JSON; charset=utf-8\r\nX-A: 1\r\nx-a:  2 \r\nX-Empty:\r\n"
          + "Content-Length: 5\r\n\r\nhello")
    ])
    let client = CurlClient(userAgent: "credmgr/test")
    let response = try client.send(
      try Self.request(
        server.port, "/a/../b?x=%2F&y=[]#fragment", method: "POST",
        fields: ["Content-Type": "text/plain", "X-Empty": "", "Accept": "application/json"], body: "body"),
      limits: Self.limits)
    #expect(response.status == 401)
    #expect(String(decoding: response.body, as: UTF8.self) == "hello")
    #expect(response.mediaType == "application/json")
    #expect(response.fields.values("X-A") == ["1", "2"])
    #expect(response.fields["X-Empty"] == "")
    let sent = try #require(server.finish().first)
    #expect(sent.hasPrefix("POST /a/../b?x=%2F&y=[] HTTP/1.1\r\n"))
    #expect(sent.hasSuffix("\r\n\r\nbody"))
    for line in [
      "Host: 127.0.0.1:\(server.port)", "User-Agent: credmgr/test", "Content-Type: text/plain", "Content-Length: 4",
      "Accept: application/json", "X-Empty:",
    ] { #expect(sent.contains("\r\n\(line)\r\n")) }
    #expect(!sent.contains("Expect"))
    #expect(!sent.contains("fragment"))
  }

  /// libcurl asks for the passphrase of such a key.
  @Test func aKeyWithAPassphraseIsAnError() throws {
    let server = try ScriptedServer([Self.ok])
    var request = try Self.request(server.port, scheme: "https")
    request.clientCertificate = Array((Self.encryptedKey + "\n" + Self.certificate).utf8)
    let error = #expect(throws: HTTPError.self) { try Self.send(request) }
    guard case .unreachable(_, .tls)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  private static let encryptedKey = """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgItBkUUIeC2AICCAAw
    DAYIKoZIhvcNAgkFADAdBglghkgBZQMEAQIEELWK9ib+g9rr1Q9HzFfk+cEEgZCO
    i1IplwxwU24HhVA5+/7oIkr046Pr09bjbxzjCz/2RhD+4uyAUhcOidaJIpULw0sZ
    CbwAcBL/5t5UEVbuXsmRHfByGRBBu98Rs8iAhBIJlcfcLIIVzcktUKdwgupUyCr3
    dC+1nMvfaRZWeq2k/e587Bavk4AtRvhk3Ddfb8JeBeYAZLUmEehiBhzZm2v9bG8=
    -----END ENCRYPTED PRIVATE KEY-----
    """

  private static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBDzCBt6ADAgECAgEBMAoGCCqGSM49BAMCMBExDzANBgNVBAMMBmNsaWVudDAg
    Fw0wMDAxMDEwMDAwMDBaGA8yMjAwMDEwMTAwMDAwMFowETEPMA0GA1UEAwwGY2xp
    ZW50MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEwQxs8rRLM9lNfqn8mZUhtbuD
    sTtXESXGgsK6RAOT05qzTCDFxO68+/mY6+abX/qfUYVngcAVuC3PnopIgKDi5TAK
    BggqhkjOPQQDAgNHADBEAiB8HtMIFrqdc79J1vgryDMkMaIppYUT/h8ruoDgdLBt
    CwIgYWXzXu99euE2W8cMmnXf8ds/Rt5UZElcY5qljxfUg6w=
    -----END CERTIFICATE-----
    """

  /// A body in memory that is read like a file.
  private final class Source: HTTPBodySource {
    let length: Int64
    private let bytes: [UInt8]
    private var place = 0

    init(_ text: String, length: Int? = nil) {
      bytes = Array(text.utf8)
      self.length = Int64(length ?? bytes.count)
    }

    func read(atMost count: Int) throws(HTTPError) -> [UInt8] {
      // Small pieces, even if more would fit.
      let piece = bytes[place...].prefix(min(count, 7))
      place += piece.count
      return Array(piece)
    }

    func rewind() { place = 0 }
  }

  @Test(arguments: ["POST", "PUT", "PATCH", "DELETE"]) func streamsABody(method: String) throws {
    let server = try ScriptedServer([Self.ok])
    let client = CurlClient(userAgent: "t")
    let text = String(repeating: "0123456789", count: 100)
    let request = try Self.request(server.port, method: method, fields: ["Content-Type": "text/plain"])
    let head = try client.stream(request, body: Source(text), limits: Self.limits) { _ in true }
    #expect(head.status == 200)
    let sent = try #require(server.finish().first)
    #expect(sent.hasPrefix("\(method) / HTTP/1.1\r\n"))
    #expect(sent.hasSuffix("\r\n\r\n" + text))
    #expect(sent.contains("\r\nContent-Length: 1000\r\n"))
    #expect(!sent.contains("Expect") && !sent.contains("Transfer-Encoding"))
  }

  @Test func streamsAnEmptyBody() throws {
    let server = try ScriptedServer([Self.ok])
    let request = try Self.request(server.port, method: "PUT")
    _ = try CurlClient(userAgent: "t").stream(request, body: Source(""), limits: Self.limits) { _ in true }
    #expect(try #require(server.finish().first).contains("\r\nContent-Length: 0\r\n"))
  }

  /// A file that grows is sent up to its original length; a file that shrinks is an error.
  @Test func bodyLengthChangesWhileSending() throws {
    var server = try ScriptedServer([Self.ok])
    var request = try Self.request(server.port, method: "PUT")
    _ = try CurlClient(userAgent: "t").stream(request, body: Source("abcdef", length: 3), limits: Self.limits) { _ in
      true
    }
    #expect(try #require(server.finish().first).hasSuffix("\r\n\r\nabc"))
    server = try ScriptedServer([Self.ok])
    request = try Self.request(server.port, method: "PUT")
    #expect(throws: HTTPError.system(call: "read", code: 0)) {
      try CurlClient(userAgent: "t").stream(request, body: Source("abc", length: 6), limits: Self.limits) { _ in true }
    }
    _ = server.finish()
  }

  @Test(arguments: [
    ("GET", "", false), ("POST", "", true), ("PUT", "x", true), ("DELETE", "", false), ("PATCH", "a=b", true),
    ("DELETE", "x", true), ("PROPFIND", "", false), ("GET", "x", true),
  ]) func methods(method: String, body: String, hasLength: Bool) throws {
    let server = try ScriptedServer([Self.ok])
    let response = try Self.send(Self.request(server.port, method: method, body: body))
    #expect(response.status == 200)
    let sent = try #require(server.finish().first)
    #expect(sent.hasPrefix("\(method) / HTTP/1.1\r\n"))
    #expect(sent.contains("\r\nContent-Length: \(body.utf8.count)\r\n") == hasLength)
    // libcurl would add a content type.
    #expect(!sent.contains("Content-Type"))
    #expect(sent.hasSuffix("\r\n\r\n\(body)"))
  }

  @Test func headHasNoBody() throws {
    let server = try ScriptedServer([.init("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n")])
    let response = try Self.send(Self.request(server.port, method: "HEAD"))
    #expect(response.fields["Content-Length"] == "2000")
    #expect(response.body == [])
    #expect(server.finish()[0].hasPrefix("HEAD / "))
  }

  @Test func followsNoRedirectAndStoresNoCookies() throws {
    let server = try ScriptedServer([
      .init(
        "HTTP/1.1 302 Found\r\nLocation: /other\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
      Self.ok,
    ])
    let client = CurlClient(userAgent: "t")
    let first = try client.send(
      try Self.request(server.port, "/first", fields: ["Authorization": "Bearer one"]), limits: Self.limits)
    let second = try client.send(try Self.request(server.port, "/second"), limits: Self.limits)
    #expect(first.status == 302)
    #expect(first.fields["Location"] == "/other")
    #expect(second.status == 200)
    let sent = server.finish()
    #expect(sent.count == 2)
    #expect(sent[1].hasPrefix("GET /second "))
    #expect(!sent[1].contains("Cookie") && !sent[1].contains("Bearer"))
  }

  @Test func interimAnswersAndTrailers() throws {
    let server = try ScriptedServer([
      .init(
        "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
          + "3\r\nabc\r\n2\r\nde\r\n0\r\nX-Late: 1\r\n\r\n")
    ])
    let response = try Self.send(Self.request(server.port))
    #expect(response.status == 200)
    #expect(response.fields["X-Early"] == nil)
    #expect(response.fields["X-Late"] == nil)
    #expect(String(decoding: response.body, as: UTF8.self) == "abcde")
    _ = server.finish()
  }

  @Test(arguments: [1000, 1001]) func bodyLimit(count: Int) throws {
    let server = try ScriptedServer([
      .init("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n" + String(repeating: "a", count: count))
    ])
    if count <= 1000 {
      #expect(try Self.send(Self.request(server.port)).body.count == count)
    } else {
      #expect(throws: HTTPError.bodyTooLarge(limit: 1000)) { try Self.send(Self.request(server.port)) }
    }
    _ = server.finish()
  }

  @Test func headLimit() throws {
    let lines = String(repeating: "X-Long: \(String(repeating: "a", count: 90))\r\n", count: 4000)
    let server = try ScriptedServer([.init("HTTP/1.1 200 OK\r\n\(lines)\r\n")])
    #expect(throws: HTTPError.bodyTooLarge(limit: 262144)) {
      try CurlClient(userAgent: "t").send(try Self.request(server.port), limits: .unlimited)
    }
    _ = server.finish()
  }

  /// If a reused connection is dead, libcurl would repeat the request on a new one.
  @Test func postsUseANewConnection() throws {
    let server = try ScriptedServer([.init(Self.ok.answer, keepsOpen: true), Self.ok, .init("")])
    let client = CurlClient(userAgent: "t")
    #expect(try client.send(try Self.request(server.port), limits: Self.limits).status == 200)
    #expect(
      try client.send(try Self.request(server.port, method: "POST", body: "one"), limits: Self.limits).status == 200)
    // Closing the connection without a response causes an error and no second attempt.
    #expect(throws: HTTPError.unreachable(host: "127.0.0.1", reason: .broken)) {
      try client.send(try Self.request(server.port, method: "POST", body: "two"), limits: Self.limits)
    }
    #expect(server.finish().count == 3)
  }

  @Test(arguments: [
    "NONSENSE\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "",
    "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
  ]) func brokenAnswers(answer: String) throws {
    let server = try ScriptedServer([.init(answer)])
    #expect(throws: HTTPError.unreachable(host: "127.0.0.1", reason: .broken)) {
      try Self.send(Self.request(server.port))
    }
    _ = server.finish()
  }

  @Test func connectionRefused() throws {
    let server = try ScriptedServer([])
    _ = server.finish()
    #expect(throws: HTTPError.unreachable(host: "127.0.0.1", reason: .connectionRefused)) {
      try Self.send(Self.request(server.port))
    }
  }

  @Test func noTLS() throws {
    let server = try ScriptedServer([.init("no TLS here, and enough of it to be read as a record", isImpatient: true)])
    let error = #expect(throws: HTTPError.self) { try Self.send(Self.request(server.port, scheme: "https")) }
    _ = server.finish()
    guard case .unreachable(host: "127.0.0.1", .tls(let detail)) = error else {
      Issue.record("another error: \(String(describing: error))")
      return
    }
    #expect(!detail.isEmpty)
  }

  @Test func timeLimit() throws {
    let server = try ScriptedServer([.init("HTTP/1.1 200 OK\r\n", keepsOpen: true), Self.ok])
    #expect(throws: HTTPError.unreachable(host: "127.0.0.1", reason: .timedOut)) {
      try CurlClient(userAgent: "t")
        .send(try Self.request(server.port), limits: HTTPLimits(bodyBytes: 1, time: .milliseconds(50)))
    }
    _ = server.finish()
  }

  @Test func cancelling() throws {
    let server = try ScriptedServer([.init("HTTP/1.1 200 OK\r\n", keepsOpen: true), Self.ok])
    var asked = 0
    let client = CurlClient(
      userAgent: "t",
      isCancelled: {
        asked += 1
        return asked > 2
      })
    #expect(throws: HTTPError.interrupted) { try client.send(try Self.request(server.port), limits: Self.limits) }
    #expect(asked >= 3)
    _ = server.finish()
  }

  @Test(arguments: [
    ("Host", "evil.example"), ("content-length", "5"), ("Transfer-Encoding", "chunked"), ("Connection", "close"),
    ("X-A", "a\r\nX-B: b"), ("X-A", "a\nb"), ("X-A", "a\0b"), ("X A", "b"), ("", "b"), ("X-A: b\r\nX-C", "d"),
  ]) func fieldsThatCannotBeSent(name: String, value: String) throws {
    let request = try Self.request(1, fields: HTTPFields([HTTPField(name: name, value: value)]))
    #expect(throws: HTTPError.invalidField(name: name)) { try Self.send(request) }
  }

  @Test(arguments: ["", "GET /x HTTP/1.1\r\nA:", "G T"]) func methodsThatCannotBeSent(method: String) throws {
    #expect(throws: HTTPError.invalidMethod(method)) { try Self.send(Self.request(1, method: method)) }
  }

  @Test func otherSchemes() throws {
    let uri = try URI(parsing: "file:///etc/hostname?secret")
    #expect(throws: HTTPError.unreachable(host: "", reason: .other(code: 1, text: "Unsupported protocol: file"))) {
      try CurlClient(userAgent: "t").send(HTTPRequest(method: "GET", uri: uri), limits: Self.limits)
    }
  }

  @Test func noProxyForLoopback() throws {
    for name in ["http_proxy", "ALL_PROXY"] {
      try #require(unsafe setenv(name, "http://127.0.0.1:1", 1) == 0)
    }
    let server = try ScriptedServer([Self.ok])
    #expect(try Self.send(Self.request(server.port)).status == 200)
    _ = server.finish()
  }

  @Test(arguments: [(0, ["401"]), (1, ["401", "abc"]), (9, ["401", "abc"])])
  func streams(wanted: Int, expected: [String]) throws {
    let server = try ScriptedServer([.init("HTTP/1.1 401 No\r\nContent-Length: 3\r\n\r\nabc")])
    var parts: [String] = []
    let head = try CurlClient(userAgent: "t").stream(try Self.request(server.port), body: nil, limits: .unlimited) {
      part in
      switch part {
      case .head(let head): parts.append("\(head.status)")
      case .body(let bytes): parts.append(String(decoding: bytes, as: UTF8.self))
      }
      return parts.count <= wanted
    }
    #expect(head.status == 401)
    #expect(head.body == [])
    #expect(parts == expected)
    _ = server.finish()
  }

  @Test func traces() throws {
    let server = try ScriptedServer([Self.ok])
    var lines: [String] = []
    let client = CurlClient(
      userAgent: "t",
      trace: { request, outcome, time in
        lines.append("\(request.method) \((try? outcome.get())?.status ?? 0) \(time >= .zero)")
      })
    _ = try client.send(try Self.request(server.port), limits: Self.limits)
    _ = server.finish()
    _ = try? client.send(try Self.request(server.port), limits: Self.limits)
    #expect(lines == ["GET 200 true", "GET 0 true"])
  }
}
