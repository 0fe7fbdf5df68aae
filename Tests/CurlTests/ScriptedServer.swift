import Glibc
import Synchronization
import Testing

/// A loopback server that records one request per connection and sends the next response of its script.
final class ScriptedServer: Sendable {
  /// The behaviour for one connection.
  struct Turn: Sendable {
    var answer: String
    /// Keeps the connection open until the server ends.
    var keepsOpen = false
    /// Responds without waiting for a request.
    var isImpatient = false

    init(_ answer: String, keepsOpen: Bool = false, isImpatient: Bool = false) {
      self.answer = answer
      self.keepsOpen = keepsOpen
      self.isImpatient = isImpatient
    }
  }

  let port: UInt16
  private let listener: Int32
  private let thread: pthread_t
  private let box: Box

  private final class Work {
    let run: () -> Void
    init(_ run: @escaping () -> Void) { self.run = run }
  }

  /// - Parameter turns: one for each connection, in their order.
  init(_ turns: [Turn]) throws {
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let number = listener
    let code = unsafe withUnsafeMutableBytes(of: &address) { bytes -> Int32 in
      guard let base = unsafe bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return -1 }
      guard unsafe bind(number, base, length) == 0, listen(number, 8) == 0 else { return -1 }
      return unsafe getsockname(number, base, &length)
    }
    try #require(code == 0)
    port = UInt16(bigEndian: address.sin_port)
    // The box exists before the object is complete, and the thread ends before the object does.
    let box = Box()
    var thread = pthread_t()
    let work = unsafe Unmanaged.passRetained(Work { box.serve(number, turns) }).toOpaque()
    let created = unsafe pthread_create(
      &thread, nil,
      { work in
        guard let work = unsafe work else { return nil }
        unsafe Unmanaged<Work>.fromOpaque(work).takeRetainedValue().run()
        return nil
      }, work)
    try #require(created == 0)
    self.thread = thread
    self.box = box
  }

  /// Ends the server and returns the requests in the order of their arrival.
  func finish() -> [String] {
    // Ends a pending accept.
    shutdown(listener, Int32(SHUT_RDWR))
    pthread_join(thread, nil)
    close(listener)
    return box.requests.withLock { $0 }
  }

  private final class Box: Sendable {
    let requests = Mutex<[String]>([])

    func serve(_ listener: Int32, _ turns: [Turn]) {
      var open: [Int32] = []
      for turn in turns {
        let client = accept(listener, nil, nil)
        if client < 0 { break }
        open.append(client)
        let request = turn.isImpatient ? "" : read(client)
        requests.withLock { $0.append(request) }
        let bytes = Array(turn.answer.utf8)
        var done = 0
        while done < bytes.count {
          let count = unsafe bytes[done...].withUnsafeBytes {
            unsafe send(client, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
          }
          if count <= 0 { break }
          done += count
        }
        if !turn.keepsOpen {
          close(client)
          open.removeLast()
        }
      }
      for client in open { close(client) }
    }

    private func read(_ client: Int32) -> String {
      var text: [UInt8] = []
      while true {
        let all = String(decoding: text, as: UTF8.self)
        if let end = all.firstRange(of: "\r\n\r\n") {
          let lines = all[..<end.lowerBound].split(separator: "\r\n")
          let length = lines.first { $0.lowercased().hasPrefix("content-length:") }
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
}
