/// A way in which the simulated provider misbehaves on purpose.
package enum Fault: Sendable, Equatable {
  /// The token endpoint answers with a page.
  case html
  /// The token endpoint answers with half a JSON object.
  case notJSON
  /// The token endpoint answers with more than one MiB.
  case huge
  /// The token endpoint sends the client elsewhere.
  case redirect
  /// The token endpoint answers an error with status 200.
  case errorWithSuccess
  /// The token endpoint takes its time.
  case slow(milliseconds: Int)
  /// The token endpoint does its work and closes the connection without an answer.
  case drop
  /// The redirect has another `state`.
  case wrongState
  /// A refresh gives no new refresh token, and the old one stays good.
  case noRotation
  /// The answer does not say when the token expires.
  case noExpiry
  /// The token endpoint answers with status 500.
  case serverError
  /// The redirect has another `iss` (RFC 9207).
  case wrongIssuer

  /// A fault by the name that the command line has for it, `slow=MS` with its milliseconds; `nil` for no fault.
  package init?(named text: String) {
    if text.hasPrefix("slow=") {
      guard let milliseconds = Int(text.dropFirst("slow=".count)), (0...600_000).contains(milliseconds) else {
        return nil
      }
      self = .slow(milliseconds: milliseconds)
      return
    }
    guard let fault = Self.withoutArgument.first(where: { $0.name == text })?.fault else { return nil }
    self = fault
  }

  /// The names on the command line.
  package static let names = withoutArgument.map(\.name) + ["slow=MS"]

  private static let withoutArgument: [(name: String, fault: Fault)] = [
    ("html", .html), ("not-json", .notJSON), ("huge", .huge), ("redirect", .redirect),
    ("error-200", .errorWithSuccess), ("drop", .drop), ("wrong-state", .wrongState),
    ("no-rotation", .noRotation), ("no-expiry", .noExpiry), ("server-error", .serverError),
    ("wrong-issuer", .wrongIssuer),
  ]
}
