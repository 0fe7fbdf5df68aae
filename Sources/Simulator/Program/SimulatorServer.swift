import CMicroHTTPD
import Glibc
import HTTP

/// A socket that listens on 127.0.0.1.
public struct SimulatorListener: ~Copyable {
  private let socket: Int32
  /// Where it listens.
  public let port: UInt16

  /// Listens on a port; 0 is any free one.
  ///
  /// - Throws: `SimulatorError.portUnavailable`.
  public init(port wanted: UInt16) throws(SimulatorError) {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard socket >= 0 else { throw .portUnavailable(wanted) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = wanted.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    var yes: Int32 = 1
    // What an earlier start left in TIME_WAIT does not count.
    unsafe setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    let isListening = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        unsafe bind(socket, address, length) == 0 && listen(socket, SOMAXCONN) == 0
          && getsockname(socket, address, &length) == 0
      }
    }
    guard isListening else {
      close(socket)
      throw .portUnavailable(wanted)
    }
    self.socket = socket
    port = UInt16(bigEndian: address.sin_port)
  }

  deinit { close(socket) }

  /// Gives the socket away, to be closed by whoever has it then.
  fileprivate consuming func release() -> Int32 {
    let socket = socket
    discard self
    return socket
  }
}

/// HTTP/1.1 on loopback, by libmicrohttpd: one thread of its own, one request after the other.
@safe public struct SimulatorServer: ~Copyable {
  private let daemon: OpaquePointer
  /// Kept here for as long as the daemon has a pointer to it.
  private let answerer: Answerer

  /// Answers what comes to the listener.
  ///
  /// - Throws: `SimulatorError.serverFailed`.
  public init(
    _ listener: consuming SimulatorListener, answer: @escaping @Sendable (HTTPRequest) -> SimulatedAnswer
  ) throws(SimulatorError) {
    answerer = Answerer(answer)
    let context = unsafe Unmanaged.passUnretained(answerer).toOpaque()
    let socket = listener.release()
    let daemon = unsafe credmgr_start_daemon(
      socket, { unsafe Self.handle($0, $1, $3, $5, $6, $7) }, context,
      { _, target, _ in unsafe Self.begin(target) }, { _, _, exchange, _ in unsafe Self.end(exchange) }, 30)
    guard let daemon = unsafe daemon else {
      close(socket)
      throw .serverFailed
    }
    unsafe self.daemon = unsafe daemon
  }

  /// "MHD_stop_daemon: shutdown an HTTP daemon", which closes the socket and ends the thread before it returns.
  deinit { unsafe MHD_stop_daemon(daemon) }

  private static let longestBody = 16 << 20

  /// Called with the target as it was sent, before anything is decoded; what it returns is kept with the request.
  private static func begin(_ target: UnsafePointer<CChar>?) -> UnsafeMutableRawPointer? {
    let text = if let target = unsafe target { unsafe String(cString: target) } else { "" }
    return unsafe Unmanaged.passRetained(Exchange(target: text)).toOpaque()
  }

  /// Called once for each request for which `begin` was called.
  private static func end(_ exchange: UnsafeMutablePointer<UnsafeMutableRawPointer?>?) {
    guard let pointer = unsafe exchange?.pointee else { return }
    unsafe Unmanaged<Exchange>.fromOpaque(pointer).release()
    unsafe exchange?.pointee = nil
  }

  /// Called "after request headers are fully received", for each part of the body, and "when request is fully received".
  private static func handle(
    _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _ method: UnsafePointer<CChar>?,
    _ data: UnsafePointer<CChar>?, _ count: UnsafeMutablePointer<Int>?,
    _ exchange: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
  ) -> MHD_Result {
    guard let context = unsafe context, let pointer = unsafe exchange?.pointee, let method = unsafe method,
      let connection = unsafe connection, let count = unsafe count
    else { return .NO }
    let exchange = unsafe Unmanaged<Exchange>.fromOpaque(pointer).takeUnretainedValue()
    let answerer = unsafe Unmanaged<Answerer>.fromOpaque(context).takeUnretainedValue()
    if !exchange.hasHead {
      exchange.hasHead = true
      return .YES
    }
    if unsafe count.pointee > 0 {
      let bytes = unsafe UnsafeRawBufferPointer(start: data, count: count.pointee)
      if exchange.body.count + bytes.count <= longestBody {
        unsafe exchange.body.append(contentsOf: bytes)
      } else {
        exchange.isTooLong = true
      }
      unsafe count.pointee = 0
      return .YES
    }
    let answer = answerer.answer(unsafe request(String(cString: method), connection, exchange))
    if answer.delay > 0 { usleep(useconds_t(answer.delay) * 1000) }
    // "MHD_NO if the socket must be closed".
    if answer.isDropped { return .NO }
    return unsafe queue(answer.response, connection)
  }

  /// The request as a value; `nil` when it has no target or host that can be read.
  private static func request(
    _ method: String, _ connection: OpaquePointer, _ exchange: Exchange
  ) -> HTTPRequest? {
    let fields = FieldCollector()
    let pointer = unsafe Unmanaged.passUnretained(fields).toOpaque()
    // The collector outlives the call, which calls back before it returns.
    _ = withExtendedLifetime(fields) {
      unsafe MHD_get_connection_values(
        connection, MHD_ValueKind.HEADER_KIND,
        { context, _, name, value in
          guard let context = unsafe context, let name = unsafe name else { return .YES }
          let fields = unsafe Unmanaged<FieldCollector>.fromOpaque(context).takeUnretainedValue()
          let text = if let value = unsafe value { unsafe String(cString: value) } else { "" }
          unsafe fields.fields.append(String(cString: name), text)
          return .YES
        }, pointer)
    }
    guard !exchange.isTooLong, exchange.target.hasPrefix("/"), let host = fields.fields["Host"],
      let uri = try? URI(parsing: "http://" + host + exchange.target)
    else { return nil }
    return HTTPRequest(method: method, uri: uri, fields: fields.fields, body: exchange.body)
  }

  private static func queue(_ answer: HTTPResponse, _ connection: OpaquePointer) -> MHD_Result {
    var body = answer.body
    let response = unsafe body.withUnsafeMutableBytes { bytes in
      // "MHD_RESPMEM_MUST_COPY: buffer is heap-allocated … MHD must make its own copy".
      unsafe MHD_create_response_from_buffer(
        bytes.count, bytes.baseAddress, MHD_ResponseMemoryMode.RESPMEM_MUST_COPY)
    }
    guard let response = unsafe response else { return .NO }
    defer { unsafe MHD_destroy_response(response) }
    for field in answer.fields { _ = unsafe MHD_add_response_header(response, field.name, field.value) }
    return unsafe MHD_queue_response(connection, UInt32(answer.status), response)
  }
}

/// What answers, in a place that C can point to.
private final class Answerer: Sendable {
  private let answerRequest: @Sendable (HTTPRequest) -> SimulatedAnswer

  init(_ answer: @escaping @Sendable (HTTPRequest) -> SimulatedAnswer) { answerRequest = answer }

  func answer(_ request: HTTPRequest?) -> SimulatedAnswer {
    request.map(answerRequest) ?? SimulatedAnswer(.page(.request(.unreadableRequest)))
  }
}

/// A request that is coming in. Only the daemon's own thread touches it.
private final class Exchange {
  let target: String
  var hasHead = false
  var isTooLong = false
  var body: [UInt8] = []

  init(target: String) { self.target = target }
}

/// The fields of a request, as the iterator brings them.
private final class FieldCollector {
  var fields = HTTPFields()
}

/// Removes an empty folder.
func removeFolder(_ path: String) {
  unsafe rmdir(path)
}
