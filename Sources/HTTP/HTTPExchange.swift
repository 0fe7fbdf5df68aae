package struct HTTPLimits: Sendable, Equatable {
  package var bodyBytes: Int
  package var time: Duration?  // `nil` means no limit except 30 seconds for connecting.

  package init(bodyBytes: Int = 1 << 20, time: Duration? = .seconds(30)) {
    self.bodyBytes = bodyBytes
    self.time = time
  }

  package static let tokenEndpoint = HTTPLimits()
  /// No limits, for a download that the user requested and can interrupt.
  package static let unlimited = HTTPLimits(bodyBytes: .max, time: nil)
}

package enum HTTPPart: Sendable {
  case head(HTTPResponse)  // Status and fields with an empty body; comes once, first.
  case body([UInt8])
}

/// A request body that is read while it is sent, so a large body does not fill the memory.
package protocol HTTPBodySource: AnyObject {
  var length: Int64 { get }

  /// Returns at most `count` bytes, or none at the end.
  func read(atMost count: Int) throws(HTTPError) -> [UInt8]

  /// Goes back to the beginning to repeat a request.
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

/// Sends requests without following redirects, repeating requests or storing cookies.
package protocol HTTPExchange {
  func send(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) -> HTTPResponse

  /// Passes the response to `receive` piece by piece and returns its head, even if `receive` ends the exchange by
  /// returning `false`. `body` replaces the request's body, and is sent from its current position.
  func stream(
    _ request: HTTPRequest, body: (any HTTPBodySource)?, limits: HTTPLimits, receive: @escaping (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse
}
