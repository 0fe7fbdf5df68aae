import Credmgr
import Glibc

/// A server that calls an API for several accounts: `gateway PROVIDER URL`. It reports its address, and answers
/// `GET /ACCOUNT` with what the API answers for that account.
@main struct Gateway {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3 else { return report("usage: gateway PROVIDER URL") }
    let (provider, url) = (arguments[1], arguments[2])
    let credentials = try Credentials(userAgent: "gateway/1.0") { report("log: \($0)") }
    let listener = try Listener()
    report("http://127.0.0.1:\(listener.port)")
    for await connection in listener.connections {
      // Each request has a task of its own, so a refresh for one account delays no other account.
      Task {
        do {
          let response = try await credentials.send(Request(url: url), for: provider, account: connection.account)
          connection.answer(response.status, response.body)
        } catch CredentialsError.loginRequired(let provider, _) {
          connection.answer(503, Array("run \"credmgr login \(provider)\"\n".utf8))
        } catch {
          connection.answer(502, Array("\(error)\n".utf8))
        }
      }
    }
  }
}

/// Writes a line to standard error, unbuffered.
func report(_ line: String) {
  let bytes = Array((line + "\n").utf8)
  _ = write(2, bytes, bytes.count)
}

/// Accepts connections on a loopback port, in a thread of its own because `accept` and `read` block.
struct Listener {
  let port: UInt16
  let connections: AsyncStream<Connection>

  struct Failure: Error { let code = errno }

  init() throws {
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, length) == 0 && listen(socket, 128) == 0 && getsockname(socket, $0, &length) == 0
      }
    }
    guard isListening else { throw Failure() }
    port = UInt16(bigEndian: address.sin_port)
    let (connections, arrived) = AsyncStream<Connection>.makeStream()
    self.connections = connections
    let work = Unmanaged.passRetained(Accepting(socket: socket, arrived: arrived))
    var thread = pthread_t()
    let code = pthread_create(
      &thread, nil, { Unmanaged<Accepting>.fromOpaque($0.unsafelyUnwrapped).takeRetainedValue().run() }, work.toOpaque()
    )
    guard code == 0 else { throw Failure() }
  }

  private final class Accepting {
    let socket: Int32
    let arrived: AsyncStream<Connection>.Continuation

    init(socket: Int32, arrived: AsyncStream<Connection>.Continuation) {
      self.socket = socket
      self.arrived = arrived
    }

    func run() -> UnsafeMutableRawPointer? {
      while true {
        let descriptor = accept(socket, nil, nil)
        guard descriptor >= 0 else { continue }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(descriptor, &bytes, bytes.count)
        // "GET /ACCOUNT HTTP/1.1"
        let words = String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self).split(separator: " ")
        arrived.yield(Connection(descriptor: descriptor, account: String(words.dropFirst().first?.dropFirst() ?? "")))
      }
    }
  }
}

/// A request that waits for its response.
struct Connection: Sendable {
  let descriptor: Int32
  let account: String

  func answer(_ status: Int, _ body: [UInt8]) {
    let head = "HTTP/1.1 \(status) \r\nContent-Length: \(body.count)\r\nConnection: close\r\n\r\n"
    let bytes = Array(head.utf8) + body
    _ = write(descriptor, bytes, bytes.count)
    close(descriptor)
  }
}
