import Glibc
import CredmgrText
import Testing

@testable import CredmgrHTTP

/// A client of the receiver that never blocks, so one thread can act for both sides.
final class LoopbackClient {
  private let socket: Int32
  private(set) var received = ""
  private(set) var hasEnded = false

  init(port: UInt16, ipv6: Bool = false) throws {
    socket = Glibc.socket(ipv6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var four = sockaddr_in()
    four.sin_family = sa_family_t(AF_INET)
    four.sin_port = port.bigEndian
    four.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    var six = sockaddr_in6()
    six.sin6_family = sa_family_t(AF_INET6)
    six.sin6_port = port.bigEndian
    six.sin6_addr = in6addr_loopback
    let code =
      ipv6
      ? unsafe withUnsafeBytes(of: &six) { unsafe Self.connect(socket, $0) }
      : unsafe withUnsafeBytes(of: &four) { unsafe Self.connect(socket, $0) }
    try #require(code == 0)
  }

  deinit { close(socket) }

  private static func connect(_ socket: Int32, _ address: UnsafeRawBufferPointer) -> Int32 {
    guard let base = address.baseAddress else { return -1 }
    return unsafe Glibc.connect(socket, base.assumingMemoryBound(to: sockaddr.self), socklen_t(address.count))
  }

  func send(_ text: String) {
    let bytes = Array(text.utf8)
    _ = unsafe Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  /// Receives the available bytes.
  func look() {
    while !hasEnded {
      var bytes = [UInt8](repeating: 0, count: 65536)
      let count = unsafe recv(socket, &bytes, bytes.count, Int32(MSG_DONTWAIT))
      if count < 0 { return }
      if count == 0 { hasEnded = true }
      received += String(decoding: bytes[..<count], as: UTF8.self)
    }
  }

  var status: Int? { received.split(separator: " ").dropFirst().first.flatMap { Int($0) } }
}

extension LoopbackReceiver {
  /// Receives until a request or a line matches.
  fileprivate mutating func receive(
    within time: Duration, alsoReading descriptor: Int32? = nil, isCancelled: () -> Bool = { false },
    judge: (FormParameters) -> (page: Page, isAwaited: Bool)
  ) throws(HTTPError) -> Received {
    while true {
      let received = try receive(within: time, alsoReading: descriptor, isCancelled: isCancelled)
      if received == .tooLong { continue }
      guard case .callback(let parameters) = received else { return received }
      let (page, isAwaited) = judge(parameters)
      reply(page, isAwaited: isAwaited)
      if isAwaited { return received }
    }
  }
}

struct LoopbackReceiverTests {
  private static let good = Page(.done, title: "Done", text: "You can close this window.")
  private static let bad = Page(.ignored, title: "Not this one", text: "")

  private static func judge(_ parameters: FormParameters) -> (page: Page, isAwaited: Bool) {
    parameters[first: "state"] == "right" ? (good, true) : (bad, false)
  }

  private static func get(_ target: String, _ port: UInt16, host: String = "127.0.0.1") -> String {
    "GET \(target) HTTP/1.1\r\nHost: \(host):\(port)\r\n\r\n"
  }

  @Test func takesTheMatchingRequest() throws {
    var receiver = try LoopbackReceiver(interface: .ipv4, port: nil, path: "/callback")
    let port = receiver.port
    // Each request is sent after the previous answer; the last ends the wait.
    let requests = [
      Self.get("/favicon.ico", port), Self.get("/callback?code=a&state=wrong", port), Self.get("/callback", port),
      Self.get("/callback?code=a&state=right", port, host: "evil.example"), "NONSENSE\r\n\r\n",
      "GET /" + String(repeating: "a", count: 100_000), "DELETE /callback HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n",
      Self.get("/callback?code=a&state=right", port),
    ]
    var clients: [LoopbackClient] = []
    var failure: (any Error)?
    let received = try receiver.receive(within: .seconds(300)) {
      clients.last?.look()
      if clients.last?.hasEnded ?? true, clients.count < requests.count {
        do {
          let client = try LoopbackClient(port: port)
          client.send(requests[clients.count])
          clients.append(client)
        } catch { failure = error }
      }
      return failure != nil
    } judge: {
      Self.judge($0)
    }
    #expect(received == .callback([("code", "a"), ("state", "right")]))
    clients.last?.look()
    #expect(clients.map(\.status) == [404, 400, 400, 421, 400, 431, 405, 200])
    #expect(clients[1].received.contains("<h1>Not this one</h1>"))
    #expect(clients[7].received.contains("<h1>Done</h1>"))
    #expect(clients[7].received.contains("history.replaceState"))
    #expect(clients[7].hasEnded)
    #expect(!clients.contains { $0.received.contains("right") })
  }

  /// The provider's answer may be too long, so the user should know. Any program may send many such requests.
  @Test func aRequestThatIsTooLongIsReportedOnce() throws {
    var receiver = try LoopbackReceiver(interface: .ipv4, port: nil, path: "/callback")
    let clients = try (0..<3).map { _ in try LoopbackClient(port: receiver.port) }
    for client in clients.dropLast() { client.send("GET /callback?code=" + String(repeating: "a", count: 100_000)) }
    #expect(try receiver.receive(within: .seconds(300)) == .tooLong)
    clients[2].send(Self.get("/callback?code=a&state=right", receiver.port))
    #expect(try receiver.receive(within: .seconds(300)) == .callback([("code", "a"), ("state", "right")]))
  }

  @Test func idleConnectionsDoNotBlock() throws {
    var receiver = try LoopbackReceiver(interface: .ipv4, port: nil, path: "/")
    let idle = try (0..<20).map { _ in try LoopbackClient(port: receiver.port) }
    idle[0].send("GET / HT")
    let client = try LoopbackClient(port: receiver.port)
    client.send(Self.get("/?state=right", receiver.port))
    let received = try receiver.receive(within: .seconds(300), judge: Self.judge)
    #expect(received == .callback([("state", "right")]))
    client.look()
    #expect(client.status == 200)
  }

  private static func moment(_ seconds: Double) -> MonotonicMoment { MonotonicMoment(sinceBoot: .seconds(seconds)) }

  @Test func slowClientsAreDisconnected() throws {
    var sockets: [Int32] = [-1, -1]
    try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &sockets) == 0)
    defer { for socket in sockets { close(socket) } }
    var connection = LoopbackConnection(socket: sockets[0], now: Self.moment(100))
    // Browsers may open a connection in advance and send nothing at first.
    let isExpired = [104.9, 105].map { connection.isExpired(Self.moment($0)) }
    #expect(isExpired == [false, true])
    _ = unsafe send(sockets[1], "GET", 3, 0)
    let reading = connection.advance()
    let isExpiredNow = connection.isExpired(Self.moment(105))
    #expect(reading == .goOn)
    #expect(!isExpiredNow)
    #expect(connection.state == .answering)
    let answering = connection.advance()
    #expect(answering == .goOn)
    #expect(connection.state == .ending)
    var bytes = [UInt8](repeating: 0, count: 1000)
    let count = unsafe recv(sockets[1], &bytes, bytes.count, 0)
    #expect(String(decoding: bytes[..<count], as: UTF8.self).hasPrefix("HTTP/1.1 408 "))
  }

  @Test func relaysAFragment() throws {
    var receiver = try LoopbackReceiver(interface: .localhost, port: nil, path: "/cb", relay: "value-1")
    let port = receiver.port
    let page = try LoopbackClient(port: port)
    page.send(Self.get("/cb", port, host: "localhost"))
    var post: LoopbackClient?
    let body = "access_token=t&state=right"
    let received = try receiver.receive(within: .seconds(300)) {
      page.look()
      if page.hasEnded, post == nil {
        post = try? LoopbackClient(port: port)
        post?.send(
          "POST /cb HTTP/1.1\r\nHost: localhost:\(port)\r\nOrigin: http://localhost:\(port)\r\n"
            + "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\nX-Relay: value-1\r\n"
            + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
      }
      return false
    } judge: {
      Self.judge($0)
    }
    #expect(received == .callback([("access_token", "t"), ("state", "right")]))
    #expect(page.received.contains(PageDocument.relayScript))
    #expect(page.received.contains("connect-src 'self'"))
    #expect(page.received.contains("data-relay=\"value-1\""))
    post?.look()
    #expect(post?.status == 200)
  }

  private static let hasIPv6 =
    (try? LoopbackSocket.listen(.ipv6, port: 0))?.map { LoopbackSocket.close($0.socket) } != nil

  @Test(.enabled(if: hasIPv6), arguments: [LoopbackReceiver.Interface.ipv6, .localhost])
  func listensOnIPv6(interface: LoopbackReceiver.Interface) throws {
    var receiver = try LoopbackReceiver(interface: interface, port: nil, path: "/")
    let client = try LoopbackClient(port: receiver.port, ipv6: true)
    client.send(Self.get("/?state=right", receiver.port, host: interface.rawValue))
    let received = try receiver.receive(within: .seconds(300), judge: Self.judge)
    #expect(received == .callback([("state", "right")]))
  }

  @Test func takenPort() throws {
    let first = try LoopbackReceiver(interface: .ipv4, port: nil, path: "/")
    let port = first.port
    #expect(throws: HTTPError.portUnavailable(port: port)) {
      _ = try LoopbackReceiver(interface: .ipv4, port: port, path: "/")
    }
    #expect(throws: HTTPError.portUnavailable(port: port)) {
      _ = try LoopbackReceiver(interface: .localhost, port: port, path: "/")
    }
    _ = first.port
  }

  @Test func fixedPortAgainAfterALogin() throws {
    var first = try LoopbackReceiver(interface: .ipv4, port: nil, path: "/")
    let port = first.port
    let client = try LoopbackClient(port: port)
    client.send(Self.get("/?state=right", port))
    _ = try first.receive(within: .seconds(300), judge: Self.judge)
    _ = consume first
    let second = try LoopbackReceiver(interface: .ipv4, port: port, path: "/")
    #expect(second.port == port)
  }

  @Test func endsByTimeAndByCancelling() throws {
    var receiver = try LoopbackReceiver(interface: .ipv4, port: nil, path: "/")
    #expect(throws: HTTPError.receiverTimedOut) { try receiver.receive(within: .zero, judge: Self.judge) }
    #expect(throws: HTTPError.interrupted) {
      try receiver.receive(within: .seconds(300), isCancelled: { true }, judge: Self.judge)
    }
  }

  /// A helper asks so whether git has ended, so it ends within a second as well.
  @Test func asksOftenWhetherToStop() throws {
    var receiver = try LoopbackReceiver(interface: .ipv4, port: nil, path: "/")
    var count = 0
    #expect(throws: HTTPError.interrupted) {
      try receiver.receive(
        within: .seconds(1),
        isCancelled: {
          count += 1
          return count == 3
        }, judge: Self.judge)
    }
  }

  @Test func readsPastedLines() throws {
    var ends: [Int32] = [-1, -1]
    try #require(unsafe pipe(&ends) == 0)
    let (input, output) = (ends[0], ends[1])
    defer { close(input) }
    var receiver = try LoopbackReceiver(interface: .ipv4, port: nil, path: "/")
    let text = "\n  \r\n  https://h/?code=1 \r\nsecond\nthird"
    _ = unsafe write(output, text, text.utf8.count)
    close(output)
    var lines: [LoopbackReceiver.Received] = []
    for _ in 0..<3 {
      lines.append(try receiver.receive(within: .seconds(300), alsoReading: input, judge: Self.judge))
    }
    #expect(lines == [.line("https://h/?code=1"), .line("second"), .line("third")])
    // The input has ended, and the receiver waits without it.
    let client = try LoopbackClient(port: receiver.port)
    client.send(Self.get("/?state=right", receiver.port))
    let received = try receiver.receive(within: .seconds(300), alsoReading: input, judge: Self.judge)
    #expect(received == .callback([("state", "right")]))
  }

  /// All users can read a browser's arguments, which are useless to anyone who comes second.
  @Test func redirectsOneBrowserToThePage() throws {
    var receiver = try LoopbackReceiver(interface: .ipv4, port: nil, path: "/")
    let page = try URI(parsing: "https://provider.example/authorize?state=s&x=$(a)#f")
    let address = receiver.lead(to: page, name: "name-1", needsOrigin: false)
    #expect(address == "http://127.0.0.1:\(receiver.port)/start/name-1")
    let clients = try (0..<3).map { _ in try LoopbackClient(port: receiver.port) }
    clients[0].send(Self.get("/start/name-2", receiver.port))
    clients[1].send(Self.get("/start/name-1", receiver.port))
    #expect(throws: HTTPError.receiverTimedOut) { try receiver.receive(within: .milliseconds(300)) }
    clients[2].send(Self.get("/start/name-1", receiver.port))
    #expect(try receiver.receive(within: .seconds(300)) == .reopened)
    #expect(throws: HTTPError.receiverTimedOut) { try receiver.receive(within: .milliseconds(300)) }
    for client in clients { client.look() }
    #expect(clients.map(\.status) == [404, 302, 410])
    let location = "Location: https://provider.example/authorize?state=s&x=%24%28a%29#f\r\n"
    #expect(clients[1].received.contains(location))
    #expect(!clients[2].received.contains("provider.example"))
  }
}

struct LoopbackPeerTests {
  @Test func ownConnection() throws {
    let (listener, port) = try #require(try LoopbackSocket.listen(.ipv4, port: 0))
    defer { LoopbackSocket.close(listener) }
    var client: LoopbackClient? = try LoopbackClient(port: port)
    client?.send("a")
    _ = try LoopbackSocket.wait([.init(descriptor: listener, forWriting: false)], atMost: .seconds(300))
    let socket = try #require(LoopbackSocket.accept(listener))
    defer { LoopbackSocket.close(socket) }
    #expect(LoopbackPeer(socket: socket).owner() == .own)
    client = nil
    // A process that another test forks holds the connection open until it runs its program.
    var looks = 100_000
    while LoopbackPeer(socket: socket).owner() != .gone, looks > 0 { looks -= 1 }
    #expect(LoopbackPeer(socket: socket).owner() == .gone)
  }

  private static let ours = SocketAddress([127, 0, 0, 1], port: 8080)
  private static let theirs = SocketAddress([127, 0, 0, 1], port: 0x1234)
  private static let head =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

  private static func line(_ local: String, _ remote: String, _ state: String, user: Int, inode: Int) -> String {
    "   1: \(local) \(remote) \(state) 00000000:00000000 00:00000000 00000000  \(user)        0 \(inode) 1 0 20 4 30 10 -1\n"
  }

  private static let listener = line("0100007F:1F90", "00000000:0000", "0A", user: 1000, inode: 7)
  private static let mapped = "0000000000000000FFFF00000100007F"

  #if _endian(little)
    @Test(arguments: [
      (
        listener + line("0100007F:1234", "0100007F:1F90", "01", user: 65534, inode: 8), "",
        LoopbackPeer.Owner.other(user: 65534)
      ), (listener + line("0100007F:1234", "0100007F:1F90", "05", user: 65534, inode: 8), "", .other(user: 65534)),
      (listener, line(mapped + ":1234", mapped + ":1F90", "01", user: 1001, inode: 8), .other(user: 1001)),
      // The connection was closed or is another one.
      (listener + line("0100007F:1234", "0100007F:1F90", "05", user: 0, inode: 0), "", .gone),
      (listener + line("0100007F:1234", "0100007F:1F91", "01", user: 65534, inode: 8), "", .gone),
      (listener + line("0100007F:1F90", "0100007F:1234", "08", user: 1000, inode: 8), "", .gone),
      // The other end is a browser on Windows.
      (listener + line("0100007F:1F90", "0100007F:1234", "01", user: 1000, inode: 8), "", .unknown), ("", "", .unknown),
      (line("0100007F:1F92", "00000000:0000", "0A", user: 0, inode: 7), "garbage\n", .unknown),
    ]) func ownerInTheTables(_ four: String, _ six: String, owner: LoopbackPeer.Owner) {
      let tables = [four, six].map { Array((Self.head + $0).utf8) }
      #expect(LoopbackPeer.owner(of: Self.theirs, to: Self.ours, in: tables) == owner)
    }
  #endif

  /// In a user namespace, all other users have the same number.
  @Test(arguments: [
    ("         0          0 4294967295\n", true), ("", true), ("         0       1000          1\n", false),
    ("         0       1000          1\n         1     100000      65536\n", true),
  ]) func usersOfTheNamespace(map: String, isKnown: Bool) {
    #expect(LoopbackPeer.isKnown(65534, in: Array(map.utf8)) == isKnown)
  }
}
