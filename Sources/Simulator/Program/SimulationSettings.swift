struct SimulationSettings: Sendable {
  /// The required values of the descriptor's variables. Other variables may have any value.
  var variables: [String: String] = [:]
  /// The lifetime of access tokens; `nil` for the descriptor's, or else an hour (unlimited for OAuth 1.0a).
  var lifetime: Duration?
  var grace = Duration.zero  // How long a replaced refresh token still works.
  var faults: [Fault] = []
  var delay = Duration.zero  // The delay of the token endpoint.
  var gitHosts: [String] = []  // Git hosts for the descriptor; empty for the simulator.
  var commands: [String] = []  // The login commands for the start page.
  var keepsRedirect = false  // Whether redirects to web pages and app schemes stay unchanged.
}

/// A deliberate fault of the simulated provider, mostly at its token endpoint.
enum Fault: String, CaseIterable, Sendable {
  case html
  case notJSON = "not-json"  // Half a JSON object.
  case huge
  case redirect  // Redirects the client.
  case errorWithSuccess = "error-200"  // An error with status 200.
  case drop  // Does the work, then closes the connection.
  case wrongState = "wrong-state"  // Returns another `state`.
  case noRotation = "no-rotation"  // A refresh returns no new refresh token; the old one stays valid.
  case noExpiry = "no-expiry"  // The answer omits the token's expiry.
  case serverError = "server-error"
  case proofNonce = "nonce"  // Demands a nonce in each proof (RFC 9449, 8).
  case wrongIssuer = "wrong-issuer"  // Returns another `iss` (RFC 9207).

  /// The effect, for the start page.
  var effect: String {
    switch self {
    case .html: "a web page instead of a token"
    case .notJSON: "half a JSON object"
    case .huge: "an answer of 2 MiB"
    case .redirect: "a redirect to another address"
    case .errorWithSuccess: "an error with status 200"
    case .drop: "the request is processed and the connection closed without an answer"
    case .wrongState: "another state in the redirect"
    case .noRotation: "no new refresh token, and the old one stays valid"
    case .noExpiry: "no token lifetime in the answer"
    case .serverError: "an answer with status 500"
    case .proofNonce: "a nonce is demanded in each proof of a key"
    case .wrongIssuer: "another issuer in the redirect"
    }
  }
}
