import Glibc
import HTTP
import Testing

@testable import Simulator

struct ServerTests {
  @Test("requests arrive as they were sent, and answers go out as they are")
  func exchange() throws {
    let listener = try SimulatorListener(port: 0)
    let port = listener.port
    let server = try SimulatorServer(listener) { request in
      var answer = SimulatedAnswer(
        HTTPResponse(
          status: 418, fields: ["X-Target": request.uri.text, "X-Field": request.fields["X-Given"] ?? ""],
          body: Array(request.method.utf8) + request.body))
      answer.isDropped = request.uri.path == "/drop"
      return answer
    }
    let body = String(repeating: "b", count: 100_000)
    let answer = try send(
      port,
      "POST /a%2Fb/c?d=%20e HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nX-Given: v\r\nConnection: close\r\n"
        + "Content-Length: \(body.utf8.count)\r\n\r\n" + body)
    #expect(answer.hasPrefix("HTTP/1.1 418 "))
    #expect(answer.contains("X-Target: http://127.0.0.1:\(port)/a%2Fb/c?d=%20e\r\n"))
    #expect(answer.contains("X-Field: v\r\n"))
    #expect(answer.hasSuffix("\r\n\r\nPOST" + body))
    #expect(try send(port, "GET /drop HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n") == "")
    let bad = try send(port, "GET /%zz HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n\r\n")
    #expect(bad.hasPrefix("HTTP/1.1 400 "))
    #expect(throws: SimulatorError.portUnavailable(port)) { _ = try SimulatorListener(port: port).port }
    _ = consume server
    #expect(try SimulatorListener(port: port).port == port)
  }

  @Test("a simulated provider behind it")
  func provider() throws {
    let listener = try SimulatorListener(port: 0)
    let port = listener.port
    let play = try Play(Descriptors.linkedIn)
    let server = try SimulatorServer(listener) { play.provider.answer($0) }
    // Its own origin is another one.
    let answer = try send(
      port, "GET /simulator/log HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 421 "))
    let right = try send(
      port, "GET /simulator/log HTTP/1.1\r\nHost: 127.0.0.1:4711\r\nConnection: close\r\n\r\n")
    #expect(right.hasPrefix("HTTP/1.1 200 "))
    _ = consume server
  }

  /// Sends a request over a socket of its own, and reads until the server closes.
  private func send(_ port: UInt16, _ text: String) throws -> String {
    let connection = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(connection) }
    var limit = timeval(tv_sec: 10, tv_usec: 0)
    unsafe setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let isConnected = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe connect(connection, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    try #require(isConnected)
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let count = unsafe Array(bytes).withUnsafeBytes {
        unsafe Glibc.send(connection, $0.baseAddress, $0.count, 0)
      }
      try #require(count > 0)
      bytes = bytes.dropFirst(count)
    }
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe recv(connection, &buffer, buffer.count, 0)
      if count <= 0 { return String(decoding: received, as: UTF8.self) }
      received += buffer.prefix(count)
    }
  }
}
