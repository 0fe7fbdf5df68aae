/// How a provider is played, beside what its descriptor says.
public struct SimulationSettings: Sendable, Equatable {
  /// Values of the descriptor's variables; a request must have these, and may have any for the others.
  public var variables: [String: String] = [:]
  /// Seconds that an access token lives; `nil`: as the descriptor says, else an hour, and OAuth 1.0a tokens for ever.
  public var lifetime: Int64?
  /// Seconds for which a refresh token works again after it was replaced.
  public var grace: Int64 = 0
  /// What goes wrong.
  public var faults: [Fault] = []
  /// The git hosts in the descriptor that is written; empty: the simulator itself.
  public var gitHosts: [String] = []
  /// Whether a redirect to a page or to a scheme of an application stays as it is.
  public var keepsRedirect = false

  /// A provider without faults.
  public init() {}
}
