import CredmgrHTTP
import CredmgrText

/// Sends requests with libcurl: verifies certificates, follows no redirect and sends no request twice. It honours the
/// proxy variables of the environment except for loopback. Not thread-safe.
package final class CurlClient: HTTPExchange {
  /// Receives each request with its outcome and its duration. A streamed response has no body here.
  package typealias Trace = (_ request: HTTPRequest, _ outcome: Result<HTTPResponse, HTTPError>, _ time: Duration) ->
    Void

  private let userAgent: String
  private let trust: CurlTrust
  private let isCancelled: () -> Bool
  private let trace: Trace?

  private var session: CurlSession?  // Created by the first request, so that the thread of ``preload()`` has time.

  /// Loads libcurl in a thread: loading it with its forty libraries takes as long as everything that a refresh does
  /// before the request.
  package static func preload() { CurlSession.preload() }

  /// Creates a client that calls `isCancelled` at least once a second; `trace` receives secrets.
  package init(
    userAgent: String, trust: CurlTrust = CurlTrust(), isCancelled: @escaping () -> Bool = { false },
    trace: Trace? = nil
  ) {
    self.userAgent = userAgent
    self.trust = trust
    self.isCancelled = isCancelled
    self.trace = trace
  }

  package func send(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) -> HTTPResponse {
    var body: [UInt8] = []
    return try traced(request) { () throws(HTTPError) -> HTTPResponse in
      var response = try perform(request, body: nil, limits: limits) { part in
        if case .body(let bytes) = part { body += bytes }
        return true
      }
      response.body = body
      return response
    }
  }

  package func stream(
    _ request: HTTPRequest, body: (any HTTPBodySource)?, limits: HTTPLimits, receive: @escaping (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse {
    try traced(request) { () throws(HTTPError) -> HTTPResponse in
      try perform(request, body: body, limits: limits, receive: receive)
    }
  }

  private func traced(
    _ request: HTTPRequest, _ exchange: () throws(HTTPError) -> HTTPResponse
  ) throws(HTTPError) -> HTTPResponse {
    guard let trace else { return try exchange() }
    let start = MonotonicMoment.now()
    let outcome = Result { () throws(HTTPError) -> HTTPResponse in try exchange() }
    trace(request, outcome, MonotonicMoment.now() - start)
    return try outcome.get()
  }

  private func perform(
    _ request: HTTPRequest, body: (any HTTPBodySource)?, limits: HTTPLimits, receive: @escaping (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse {
    if isCancelled() { throw .interrupted }
    guard ["http", "https"].contains(request.uri.scheme) else { throw .unsupported(scheme: request.uri.scheme) }
    let lines = try CurlFields.lines(of: request)
    if session == nil { session = try CurlSession(userAgent: userAgent, trust: trust) }
    guard let session else { throw .interrupted }
    let transfer = CurlTransfer(limit: limits.bodyBytes, body: body, isCancelled: isCancelled, receive: receive)
    return try session.perform(request, lines: lines, limits: limits, transfer: transfer)
  }
}

/// The files that `SSL_CERT_FILE` and `SSL_CERT_DIR` name; empty names select the system's certificates.
package struct CurlTrust: Sendable, Equatable {
  package var file: String?  // A file of PEM certificates.
  package var folder: String?  // A directory of certificates named by their hashes.

  package init(file: String? = nil, folder: String? = nil) {
    self.file = file?.isEmpty ?? true ? nil : file
    self.folder = folder?.isEmpty ?? true ? nil : folder
  }
}
