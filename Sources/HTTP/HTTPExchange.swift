package struct HTTPLimits: Sendable, Equatable {
  package var bodyBytes: Int
  /// `nil` is no limit, except that a connection must come about in 30 seconds.
  package var time: Duration?

  package init(bodyBytes: Int = 1 << 20, time: Duration? = .seconds(30)) {
    self.bodyBytes = bodyBytes
    self.time = time
  }

  package static let tokenEndpoint = HTTPLimits()
  /// No limit: a download that the person asked for and can interrupt.
  package static let unlimited = HTTPLimits(bodyBytes: .max, time: nil)
}

/// A piece of an answer that is taken as it comes.
package enum HTTPPart: Sendable {
  /// Status and fields; the body is empty. Comes once, and first.
  case head(HTTPResponse)
  /// The next bytes of the body.
  case body([UInt8])
}

/// The body of a request that is read while it is sent, so that it is never in memory as a whole.
package protocol HTTPBodySource: AnyObject {
  var length: Int64 { get }

  /// The next bytes, `count` at most; none at the end.
  func read(atMost count: Int) throws(HTTPError) -> [UInt8]

  /// Goes back to the beginning, for a request that is made again.
  func rewind()
}

extension HTTPBodySource {
  package func readAll() throws(HTTPError) -> [UInt8] {
    var bytes: [UInt8] = []
    while true {
      let piece = try read(atMost: 1 << 16)
      if piece.isEmpty { return bytes }
      bytes += piece
    }
  }
}

/// Sends requests. Never follows a redirect, never repeats a request, keeps no cookies.
package protocol HTTPExchange {
  /// Sends the request and returns the whole answer, whatever its status.
  func send(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) -> HTTPResponse

  /// Sends the request and hands the answer over piece by piece; returns the head.
  /// `receive` ends the exchange by returning false, which is no error: the head is returned then, too.
  ///
  /// - Parameter body: sent in the place of the request's own body, from where it stands; `nil`: the request's own.
  func stream(
    _ request: HTTPRequest, body: (any HTTPBodySource)?, limits: HTTPLimits, receive: (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse
}

extension HTTPExchange {
  /// Takes the whole body and the whole answer first; for exchanges that have them in memory anyway.
  package func stream(
    _ request: HTTPRequest, body source: (any HTTPBodySource)?, limits: HTTPLimits, receive: (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse {
    var request = request
    if let source { request.body = try source.readAll() }
    var response = try send(request, limits: limits)
    let body = response.body
    response.body = []
    if receive(.head(response)), !body.isEmpty { _ = receive(.body(body)) }
    return response
  }
}
