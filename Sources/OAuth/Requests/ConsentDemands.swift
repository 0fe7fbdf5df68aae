import CredmgrHTTP
import CredmgrText

/// Demands of a login on the consent, beyond its scopes.
package struct ConsentDemands: Sendable, Equatable {
  /// How the user must authenticate, the preferred way first (OpenID Connect Core 1.0, 3.1.2.1; RFC 9470, 4).
  package var authenticationContexts: [String]
  package var maxAge: Duration?  // How long ago the user may have authenticated; `nil` for any time.

  package init(authenticationContexts: [String] = [], maxAge: Duration? = nil) {
    self.authenticationContexts = authenticationContexts
    self.maxAge = maxAge
  }

  package var isEmpty: Bool { self == ConsentDemands() }

  var parameters: FormParameters {
    var parameters = FormParameters()
    if !authenticationContexts.isEmpty {
      parameters.append("acr_values", authenticationContexts.joined(separator: " "))
    }
    if let maxAge { parameters.append("max_age", "\(maxAge.wholeSeconds)") }
    return parameters
  }
}

extension Client {
  /// Adds the resource (RFC 8707, 2.1) and the demands to a request for the user's consent.
  func add(_ demands: ConsentDemands, to parameters: inout FormParameters) {
    if let resource { parameters.append("resource", resource) }
    parameters.append(contentsOf: demands.parameters)
  }
}
