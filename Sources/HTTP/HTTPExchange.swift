/// How much of an answer is taken, and how long it may take.
public struct HTTPLimits: Sendable, Equatable {
  /// The greatest length of a body in bytes; a longer one is an error.
  public var bodyBytes: Int
  /// The time for the whole exchange in seconds; infinity is no limit, except that a connection must come about in 30.
  public var seconds: Double

  /// Makes limits; without arguments those of a token endpoint.
  public init(bodyBytes: Int = 1 << 20, seconds: Double = 30) {
    self.bodyBytes = bodyBytes
    self.seconds = seconds
  }

  /// One MiB in 30 seconds.
  public static let tokenEndpoint = HTTPLimits()
  /// No limit: a download that the person asked for and can interrupt.
  public static let unlimited = HTTPLimits(bodyBytes: .max, seconds: .infinity)
}

/// A piece of an answer that is taken as it comes.
public enum HTTPPart: Sendable {
  /// Status and fields; the body is empty. Comes once, and first.
  case head(HTTPResponse)
  /// The next bytes of the body.
  case body([UInt8])
}

/// Sends requests. Never follows a redirect, never repeats a request, keeps no cookies.
public protocol HTTPExchange {
  /// Sends the request and returns the whole answer, whatever its status.
  ///
  /// - Throws: `unreachable`, `bodyTooLarge`, `invalidField`, `invalidMethod` or `interrupted`.
  func send(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) -> HTTPResponse

  /// Sends the request and hands the answer over piece by piece; returns the head.
  ///
  /// `receive` ends the exchange by returning false, which is no error: the head is returned then, too.
  func stream(
    _ request: HTTPRequest, limits: HTTPLimits, receive: (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse
}

extension HTTPExchange {
  /// Takes the whole answer first; for exchanges that have it in memory anyway.
  public func stream(
    _ request: HTTPRequest, limits: HTTPLimits, receive: (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse {
    var response = try send(request, limits: limits)
    let body = response.body
    response.body = []
    if receive(.head(response)), !body.isEmpty { _ = receive(.body(body)) }
    return response
  }
}
