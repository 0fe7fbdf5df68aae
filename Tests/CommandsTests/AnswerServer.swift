import Glibc
import CredmgrPlatform
import Synchronization

/// A loopback server that returns fixed answers and records its requests.
final class AnswerServer: Sendable {
  /// The answers to a method and path, in order. The last one repeats.
  struct Answer: Sendable {
    let route: String
    /// The status; 0 closes the connection without an answer, and `never` waits until the client closes it.
    let status: String
    let fields: [String]
    let body: [UInt8]

    /// Reads a status line, headers, an empty line and the body. JSON alone is the body of a successful answer. The
    /// line `Filled-To: N` pads the body with spaces to N bytes.
    init(route: String, _ text: String) {
      self.route = route
      let whole =
        text.hasPrefix("{") || text.hasPrefix("[") ? "200 OK\nContent-Type: application/json\n\n" + text : text
      var lines = whole.split(separator: "\n", omittingEmptySubsequences: false)
      status = lines.isEmpty ? "" : String(lines.removeFirst())
      let end = lines.firstIndex(of: "") ?? lines.endIndex
      let filling = "Filled-To: "
      fields = lines[..<end].filter { !$0.hasPrefix(filling) }.map(String.init)
      var body = Array(lines[end...].dropFirst().joined(separator: "\n").utf8)
      let size = lines[..<end].first { $0.hasPrefix(filling) }.flatMap { Int($0.dropFirst(filling.count)) } ?? 0
      body += [UInt8](repeating: UInt8(ascii: " "), count: max(size - body.count, 0))
      self.body = body
    }

    var bytes: [UInt8] {
      let head = ["HTTP/1.1 \(status)"] + fields + ["Content-Length: \(body.count)", "Connection: close", "", ""]
      return Array(head.joined(separator: "\r\n").utf8) + body
    }
  }

  let port: UInt16
  private let listener: Int32
  private let thread: pthread_t

  private final class Work {
    let run: () -> Void
    init(_ run: @escaping () -> Void) { self.run = run }
  }

  struct NoServer: Error {}

  /// Calls `note` with each request before answering it.
  init(_ answers: @escaping (String) -> [Answer], note: @escaping (String) -> Void) throws {
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let number = listener
    let code = unsafe withUnsafeMutableBytes(of: &address) { bytes -> Int32 in
      guard let base = unsafe bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return -1 }
      guard unsafe bind(number, base, length) == 0, listen(number, 16) == 0 else { return -1 }
      return unsafe getsockname(number, base, &length)
    }
    guard code == 0 else { throw NoServer() }
    port = UInt16(bigEndian: address.sin_port)
    var thread = pthread_t()
    let prepared = answers("127.0.0.1:\(port)")
    let work = unsafe Unmanaged.passRetained(Work { Self.serve(number, prepared, note) }).toOpaque()
    let created = unsafe pthread_create(
      &thread, nil,
      { work in
        guard let work = unsafe work else { return nil }
        unsafe Unmanaged<Work>.fromOpaque(work).takeRetainedValue().run()
        return nil
      }, work)
    guard created == 0 else { throw NoServer() }
    self.thread = thread
  }

  deinit {
    // Ends the pending accept.
    shutdown(listener, Int32(SHUT_RDWR))
    pthread_join(thread, nil)
    close(listener)
  }

  private static func serve(_ listener: Int32, _ answers: [Answer], _ note: (String) -> Void) {
    var waiting = answers
    while true {
      let client = accept(listener, nil, nil)
      if client < 0 { return }
      defer { close(client) }
      // A client that sends half a request must not block the others.
      var patience = timeval(tv_sec: 10, tv_usec: 0)
      unsafe setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
      let request = read(client)
      guard let line = request.split(separator: "\r\n").first else { continue }
      note(request)
      let words = line.split(separator: " ")
      let path = words.count > 1 ? words[1].split(separator: "?").first ?? "" : ""
      let route = "\(words[0]) \(path)"
      var answer = Answer(route: route, "404 Not Found\n\n")
      if let index = waiting.firstIndex(where: { $0.route == route }) {
        answer = waiting[index]
        if waiting[(index + 1)...].contains(where: { $0.route == route }) { waiting.remove(at: index) }
      }
      switch answer.status {
      case "0": break
      case "never": _ = read(client)
      default: write(answer.bytes, client)
      }
    }
  }

  private static func write(_ bytes: [UInt8], _ client: Int32) {
    var done = 0
    while done < bytes.count {
      let count = unsafe bytes[done...].withUnsafeBytes {
        unsafe send(client, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count <= 0 { return }
      done += count
    }
  }

  private static func read(_ client: Int32) -> String {
    var text: [UInt8] = []
    while true {
      let all = String(decoding: text, as: UTF8.self)
      if let end = all.firstRange(of: "\r\n\r\n") {
        let length = all[..<end.lowerBound].split(separator: "\r\n")
          .first { $0.lowercased().hasPrefix("content-length:") }
          .flatMap { Int($0.split(separator: " ").last ?? "") }
        if all[end.upperBound...].utf8.count >= length ?? 0 { return all }
      }
      var bytes = [UInt8](repeating: 0, count: 65536)
      let count = unsafe recv(client, &bytes, bytes.count, 0)
      if count <= 0 { return all }
      text += bytes[..<count]
    }
  }
}
