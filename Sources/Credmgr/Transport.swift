import Dispatch
import CredmgrHTTP
import Synchronization

/// Sends requests for credmgr, for example with the HTTP client that a server has already.
///
/// A transport verifies certificates, follows no redirect, repeats no request and keeps no cookie.
public protocol Transport: Sendable {
  /// Sends one request and returns its response.
  ///
  /// credmgr reports an error that this method throws as ``CredentialsError/unavailable(retryAfter:)``, and cancels
  /// the task that waits for longer than 30 seconds.
  func send(_ request: Request) async throws -> Response
}

/// A request to a provider.
public struct Request: Sendable {
  /// The method, for example `GET`.
  public var method: String
  /// The absolute URL.
  public var url: String
  /// The header fields in order.
  public var headers: [HeaderField]
  /// The body.
  public var body: [UInt8]

  /// Makes a request.
  public init(_ method: String = "GET", url: String, headers: [HeaderField] = [], body: [UInt8] = []) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
  }
}

/// A response of a provider.
public struct Response: Sendable {
  /// The status code.
  public var status: Int
  /// The header fields in order.
  public var headers: [HeaderField]
  /// The body.
  public var body: [UInt8]

  /// Makes a response.
  public init(status: Int, headers: [HeaderField] = [], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// A header field of a request or response.
public struct HeaderField: Sendable, Equatable {
  /// The field's name.
  public let name: String
  /// The field's value.
  public let value: String

  /// Makes a field.
  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// Lets the protocol core, which blocks its thread, wait for an asynchronous transport. The thread is never one of
/// Swift's concurrency, so the transport's tasks go on.
struct TransportExchange: HTTPExchange {
  let transport: any Transport

  func send(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) -> HTTPResponse {
    let host = request.uri.host ?? ""
    let asked = Request(
      request.method, url: request.uri.text, headers: request.fields.map { HeaderField($0.name, $0.value) },
      body: request.body)
    let done = DispatchSemaphore(value: 0)
    let answered = Answered()
    let task = Task { [transport] in
      let result: Result<Response, HTTPError>
      do { result = .success(try await transport.send(asked)) } catch {
        result = .failure(.unreachable(host: host, reason: Task.isCancelled ? .timedOut : .broken))
      }
      answered.result.withLock { $0 = result }
      done.signal()
    }
    if let time = limits.time, done.wait(timeout: .now() + .nanoseconds(Int(time / .nanoseconds(1)))) == .timedOut {
      task.cancel()
      throw .unreachable(host: host, reason: .timedOut)
    } else if limits.time == nil {
      done.wait()
    }
    guard let response = try answered.result.withLock({ $0 })?.get() else {
      throw .unreachable(host: host, reason: .broken)
    }
    guard response.body.count <= limits.bodyBytes else { throw .bodyTooLarge(limit: limits.bodyBytes) }
    return HTTPResponse(
      status: response.status, fields: HTTPFields(response.headers.map { HTTPField(name: $0.name, value: $0.value) }),
      body: response.body)
  }

  func stream(
    _ request: HTTPRequest, body source: (any HTTPBodySource)?, limits: HTTPLimits,
    receive: @escaping (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse {
    var request = request
    if let source { request.body = try source.readAll() }
    var head = try send(request, limits: limits)
    let body = head.body
    head.body = []
    if receive(.head(head)), !body.isEmpty { _ = receive(.body(body)) }
    return head
  }
}

private final class Answered: Sendable {
  let result = Mutex<Result<Response, HTTPError>?>(nil)
}
