import Testing

@testable import CredmgrHTTP

struct LoopbackServerTests {
  /// Serves until the client has its answer.
  private static func exchange(
    _ text: String, encryption: (() -> (any LoopbackEncryption)?)? = nil,
    _ answer: @escaping (HTTPRequest, [UInt8]?) -> LoopbackServer.Answer
  ) throws -> String {
    var server = try LoopbackServer(port: nil, encryption: encryption)
    let client = try LoopbackClient(port: server.encryptedPort ?? server.port)
    client.send(text)
    var rounds = 0
    try server.serve(
      isCancelled: {
        client.look()
        rounds += 1
        return client.hasEnded || rounds > 100
      }, answer: answer)
    return client.received
  }

  private static func echo(_ request: HTTPRequest, _ certificate: [UInt8]?) -> LoopbackServer.Answer {
    let fields: HTTPFields = ["X-Target": request.uri.text, "X-Field": request.fields["X-Given"] ?? ""]
    return .init(HTTPResponse(status: 418, fields: fields, body: Array(request.method.utf8) + request.body))
  }

  @Test("requests and answers pass unchanged") func exchange() throws {
    let body = String(repeating: "b", count: 100_000)
    let answer = try Self.exchange(
      "POST /a%2Fb/c?d=%20e HTTP/1.1\r\nHost: 127.0.0.1:80\r\nX-Given: v\r\n"
        + "Content-Length: \(body.utf8.count)\r\n\r\n" + body, Self.echo)
    #expect(answer.hasPrefix("HTTP/1.1 418 "))
    #expect(answer.contains("X-Target: http://127.0.0.1:80/a%2Fb/c?d=%20e\r\n"))
    #expect(answer.contains("X-Field: v\r\n"))
    #expect(answer.contains("Content-Length: 100004\r\n"))
    #expect(answer.hasSuffix("\r\n\r\nPOST" + body))
  }

  /// Changes the lowest bit of each byte, and greets the client first.
  private final class Flipping: LoopbackEncryption {
    private var isGreeted = false
    var clientCertificate: [UInt8]? { [1, 2, 3] }

    func receive(_ bytes: [UInt8]) -> (content: [UInt8]?, reply: [UInt8]) {
      defer { isGreeted = true }
      return (bytes.contains(0) ? nil : seal(bytes), isGreeted ? [] : Array("hello ".utf8))
    }

    func seal(_ bytes: [UInt8]) -> [UInt8] { bytes.map { $0 ^ 1 } }
  }

  private static func flipped(_ text: String) -> String { String(decoding: text.utf8.map { $0 ^ 1 }, as: UTF8.self) }

  @Test func theOtherPortIsEncrypted() throws {
    let request = "GET /a HTTP/1.1\r\nHost: b\r\n\r\n"
    var seen: [(text: String, certificate: [UInt8]?)] = []
    func answer(_ request: HTTPRequest, _ certificate: [UInt8]?) -> LoopbackServer.Answer {
      seen.append((request.uri.text, certificate))
      return .init(HTTPResponse(status: 200))
    }
    let received = try Self.exchange(Self.flipped(request), encryption: { Flipping() }, answer)
    #expect(received.hasPrefix("hello " + Self.flipped("HTTP/1.1 200 OK\r\n")))
    #expect(seen.map(\.text) == ["https://b/a"] && seen.first?.certificate == [1, 2, 3])
    // A broken connection ends, and none becomes a plain one.
    #expect(try Self.exchange("\0", encryption: { Flipping() }, answer) == "hello ")
    #expect(try Self.exchange(request, encryption: { nil }, answer) == "")
    #expect(seen.count == 1)
  }

  @Test func headHasNoBody() throws {
    let answer = try Self.exchange("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", Self.echo)
    #expect(answer.contains("Content-Length: 4\r\n"))
    #expect(answer.hasSuffix("\r\n\r\n"))
  }

  @Test func anAnswerCanBeDroppedOrLate() throws {
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    var answer = LoopbackServer.Answer(HTTPResponse(status: 200))
    answer.delay = .milliseconds(10)
    let late = answer
    let received = try Self.exchange(request) { _, _ in late }
    #expect(received.hasPrefix("HTTP/1.1 200 OK\r\n"))
    answer.isDropped = true
    let dropped = answer
    let nothing = try Self.exchange(request) { _, _ in dropped }
    #expect(nothing == "")
  }

  @Test(arguments: ["GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET\r\n\r\n"])
  func invalidRequestsAreRefused(text: String) throws {
    let answer = try Self.exchange(text, Self.echo)
    #expect(answer.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
  }
}
