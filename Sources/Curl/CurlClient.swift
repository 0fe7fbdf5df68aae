import HTTP
import Text

/// Certificates are verified, redirects are not followed, and no request is sent twice. The proxy variables of the
/// environment are honoured, but never for loopback. Not for several threads at once.
package final class CurlClient: HTTPExchange {
  /// What a trace is told after each exchange: the request, how it ended, and the time that it took. Of a streamed
  /// answer only the head is there.
  package typealias Trace = (_ request: HTTPRequest, _ outcome: Result<HTTPResponse, HTTPError>, _ time: Duration) ->
    Void

  private let userAgent: String
  private let trust: CurlTrust
  private let isCancelled: () -> Bool
  private let trace: Trace?

  private var session: CurlSession?  // Made at the first request: until then the thread of ``preload()`` has time.

  /// Begins to load libcurl in a thread: the dynamic loader needs as long for it and its forty libraries as a refresh
  /// for all that comes before the request.
  package static func preload() { CurlSession.preload() }

  /// `isCancelled` is asked at least once a second; `trace` sees secrets.
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
    _ request: HTTPRequest, body: (any HTTPBodySource)?, limits: HTTPLimits, receive: (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse {
    try traced(request) { () throws(HTTPError) -> HTTPResponse in
      try perform(request, body: body, limits: limits, receive: receive)
    }
  }

  private func traced(
    _ request: HTTPRequest, _ exchange: () throws(HTTPError) -> HTTPResponse
  ) throws(HTTPError) -> HTTPResponse {
    guard let trace else { return try exchange() }
    let start = Duration.sinceBoot()
    let outcome = Result { () throws(HTTPError) -> HTTPResponse in try exchange() }
    trace(request, outcome, Duration.sinceBoot() - start)
    return try outcome.get()
  }

  private func perform(
    _ request: HTTPRequest, body: (any HTTPBodySource)?, limits: HTTPLimits, receive: (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse {
    if isCancelled() { throw .interrupted }
    guard ["http", "https"].contains(request.uri.scheme) else { throw .unsupported(scheme: request.uri.scheme) }
    let lines = try CurlFields.lines(of: request)
    if session == nil { session = try CurlSession(userAgent: userAgent, trust: trust) }
    var outcome: Result<HTTPResponse, HTTPError> = .failure(.interrupted)
    withoutActuallyEscaping(receive) { receive in
      let transfer = CurlTransfer(limit: limits.bodyBytes, body: body, isCancelled: isCancelled, receive: receive)
      outcome = Result { () throws(HTTPError) -> HTTPResponse in
        guard let session else { throw .interrupted }
        return try session.perform(request, lines: lines, limits: limits, transfer: transfer)
      }
    }
    return try outcome.get()
  }
}

/// What `SSL_CERT_FILE` and `SSL_CERT_DIR` name; empty names mean the certificates of the system.
package struct CurlTrust: Sendable, Equatable {
  package var file: String?  // A file of certificates in PEM.
  package var folder: String?  // A folder of certificates, named by their hashes.

  package init(file: String? = nil, folder: String? = nil) {
    self.file = file?.isEmpty ?? true ? nil : file
    self.folder = folder?.isEmpty ?? true ? nil : folder
  }
}
