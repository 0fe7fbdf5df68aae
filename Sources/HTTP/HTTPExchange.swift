package struct HTTPLimits: Sendable, Equatable {
  package var bodyBytes: Int
  package var time: Duration?  // `nil` is no limit, except that a connection must come about in 30 seconds.

  package init(bodyBytes: Int = 1 << 20, time: Duration? = .seconds(30)) {
    self.bodyBytes = bodyBytes
    self.time = time
  }

  package static let tokenEndpoint = HTTPLimits()
  /// No limit: a download that the person asked for and can interrupt.
  package static let unlimited = HTTPLimits(bodyBytes: .max, time: nil)
}

package enum HTTPPart: Sendable {
  case head(HTTPResponse)  // Status and fields; the body is empty. Comes once, and first.
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
  func send(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) -> HTTPResponse

  /// Hands the answer over piece by piece and returns its head, also if `receive` ends the exchange by returning false.
  /// `body` replaces the request's own, and is sent from where it stands.
  func stream(
    _ request: HTTPRequest, body: (any HTTPBodySource)?, limits: HTTPLimits, receive: (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse
}
