import CredmgrHTTP
import CredmgrText

/// How the user must authenticate for a request that a server refused (RFC 9470, 3).
package struct RequiredAuthentication: Sendable, Equatable {
  package let contexts: [String]  // Values of `acr`, the preferred one first.
  package let maxAge: Duration?  // How long ago the user may have authenticated; `nil` for any time.
  package let scopes: [String]  // The scopes that the request also requires.

  /// Reads the challenges of an answer; `nil` if none demands another authentication.
  package init?(_ head: HTTPResponse) {
    guard let demand = head.challenges.first(where: { $0["error"] == "insufficient_user_authentication" }) else {
      return nil
    }
    contexts = RequiredScope.tokens(demand["acr_values"] ?? "")
    maxAge = demand["max_age"].flatMap { Int64($0) }.flatMap { (0...31_536_000).contains($0) ? .seconds($0) : nil }
    scopes = RequiredScope.tokens(demand["scope"] ?? "")
  }

  /// Returns the options of the login that meets the demand.
  package var loginOptions: [String] {
    ["--step-up"] + scopes.flatMap { ["--scope", $0] } + contexts.flatMap { ["--acr", $0] }
      + (maxAge.map { ["--max-age", "\($0.wholeSeconds)s"] } ?? [])
  }
}
