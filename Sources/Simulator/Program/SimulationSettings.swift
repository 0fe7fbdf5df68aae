/// How a provider is played, beside what its descriptor says.
struct SimulationSettings: Sendable {
  /// Values of the descriptor's variables; a request must have these, and may have any for the others.
  var variables: [String: String] = [:]
  /// Seconds that an access token lives; `nil`: as the descriptor says, else an hour, and OAuth 1.0a tokens for ever.
  var lifetime: Int64?
  /// Seconds for which a refresh token works again after it was replaced.
  var grace: Int64 = 0
  var faults: [Fault] = []
  /// The time that the token endpoint takes.
  var delay = Duration.zero
  /// The git hosts in the descriptor that is written; empty: the simulator itself.
  var gitHosts: [String] = []
  /// Whether a redirect to a page or to a scheme of an application stays as it is.
  var keepsRedirect = false
}

/// A way in which the simulated provider misbehaves on purpose: mostly its token endpoint.
enum Fault: String, CaseIterable, Sendable {
  case html
  /// Half a JSON object.
  case notJSON = "not-json"
  case huge
  /// The client is sent elsewhere.
  case redirect
  /// An error with status 200.
  case errorWithSuccess = "error-200"
  /// The work is done, and the connection closed without an answer.
  case drop
  /// The redirect has another `state`.
  case wrongState = "wrong-state"
  /// A refresh gives no new refresh token, and the old one stays good.
  case noRotation = "no-rotation"
  /// The answer does not say when the token expires.
  case noExpiry = "no-expiry"
  case serverError = "server-error"
  /// The redirect has another `iss` (RFC 9207).
  case wrongIssuer = "wrong-issuer"
}
