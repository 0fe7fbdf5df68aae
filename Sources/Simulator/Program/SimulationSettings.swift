struct SimulationSettings: Sendable {
  /// Values of the descriptor's variables; a request must have these, and may have any for the others.
  var variables: [String: String] = [:]
  /// How long an access token lives; `nil`: as the descriptor says, else an hour, and OAuth 1.0a tokens for ever.
  var lifetime: Duration?
  var grace = Duration.zero  // For how long a refresh token works again after it was replaced.
  var faults: [Fault] = []
  var delay = Duration.zero  // What the token endpoint takes.
  var gitHosts: [String] = []  // The git hosts in the descriptor that is written; empty: the simulator itself.
  var commands: [String] = []  // What a person types to log in, for the start page.
  var keepsRedirect = false  // Whether a redirect to a page or to a scheme of an application stays as it is.
}

/// A way in which the simulated provider misbehaves on purpose: mostly its token endpoint.
enum Fault: String, CaseIterable, Sendable {
  case html
  case notJSON = "not-json"  // Half a JSON object.
  case huge
  case redirect  // The client is sent elsewhere.
  case errorWithSuccess = "error-200"  // An error with status 200.
  case drop  // The work is done, and the connection closed without an answer.
  case wrongState = "wrong-state"  // The redirect has another `state`.
  case noRotation = "no-rotation"  // A refresh gives no new refresh token, and the old one stays good.
  case noExpiry = "no-expiry"  // The answer does not say when the token expires.
  case serverError = "server-error"
  case wrongIssuer = "wrong-issuer"  // The redirect has another `iss` (RFC 9207).

  /// What it does, for the start page.
  var effect: String {
    switch self {
    case .html: "a web page instead of a token"
    case .notJSON: "half a JSON object"
    case .huge: "an answer of 2 MiB"
    case .redirect: "a redirect to another address"
    case .errorWithSuccess: "an error with status 200"
    case .drop: "the work is done, and the connection closed without an answer"
    case .wrongState: "another state in the redirect"
    case .noRotation: "no new refresh token, and the old one stays valid"
    case .noExpiry: "no lifetime of a token"
    case .serverError: "an answer with status 500"
    case .wrongIssuer: "another issuer in the redirect"
    }
  }
}
