import Testing

@testable import CredmgrHTTP

struct LoopbackServerTests {
  /// Serves until the client has its answer.
  private static func exchange(
    _ text: String, _ answer: @escaping (HTTPRequest) -> LoopbackServer.Answer
  ) throws -> String {
    var server = try LoopbackServer(port: nil)
    let client = try LoopbackClient(port: server.port)
    client.send(text)
    var rounds = 0
    try server.serve(
      isCancelled: {
        client.look()
        rounds += 1
        return client.hasEnded || rounds > 100
      }, answer: { request, _ in answer(request) })
    return client.received
  }

  private static func echo(_ request: HTTPRequest) -> LoopbackServer.Answer {
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
    let received = try Self.exchange(request) { _ in late }
    #expect(received.hasPrefix("HTTP/1.1 200 OK\r\n"))
    answer.isDropped = true
    let dropped = answer
    let nothing = try Self.exchange(request) { _ in dropped }
    #expect(nothing == "")
  }

  @Test(arguments: ["GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET\r\n\r\n"])
  func invalidRequestsAreRefused(text: String) throws {
    let answer = try Self.exchange(text, Self.echo)
    #expect(answer.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
  }
}
