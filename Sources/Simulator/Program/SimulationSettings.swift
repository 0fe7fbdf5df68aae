/// How a provider is played, beside what its descriptor says.
package struct SimulationSettings: Sendable, Equatable {
  /// Values of the descriptor's variables; a request must have these, and may have any for the others.
  package var variables: [String: String] = [:]
  /// Seconds that an access token lives; `nil`: as the descriptor says, else an hour, and OAuth 1.0a tokens for ever.
  package var lifetime: Int64?
  /// Seconds for which a refresh token works again after it was replaced.
  package var grace: Int64 = 0
  /// What goes wrong.
  package var faults: [Fault] = []
  /// The git hosts in the descriptor that is written; empty: the simulator itself.
  package var gitHosts: [String] = []
  /// Whether a redirect to a page or to a scheme of an application stays as it is.
  package var keepsRedirect = false

  /// A provider without faults.
  package init() {}
}
