import Cryptography
import HTTP
import Descriptors
import Synchronization

/// A provider that behaves as its descriptor says, strictly: requests in, answers out, without a socket.
package final class SimulatedProvider: Sendable {
  /// The identifier of its one client.
  package static let clientIdentifier = "simulator-client"

  /// The descriptor of the simulated provider: the given one, with its endpoints on this machine.
  package let descriptor: Descriptor
  private let gitHosts: [String]
  private let simulation: Mutex<Simulation>

  /// - Parameters:
  ///   - descriptor: how the provider behaves.
  ///   - origin: scheme, host and port that requests come to.
  ///   - clientSecret: the secret of its client; for RSA signatures, a private key as PEM.
  ///   - clock: milliseconds since 1970.
  ///   - random: where codes and tokens come from.
  /// - Throws: `SimulatorError.provider` and `.variableNeeded` for the values of variables; `.unknownSignature` and
  ///   `.keyNeeded` for OAuth 1.0a.
  package init(
    _ descriptor: Descriptor, at origin: URI, settings: SimulationSettings = SimulationSettings(),
    clientSecret: Secret, clock: @escaping @Sendable () -> Int64, random: any RandomSource
  ) throws(SimulatorError) {
    gitHosts = settings.gitHosts
    self.descriptor = try descriptor.simulated(at: origin, settings)
    simulation = Mutex(
      try Simulation(
        descriptor: self.descriptor, origin: origin.origin, settings: settings, clientSecret: clientSecret,
        clock: clock, random: random))
  }

  /// The descriptor as a file that can be added as it is.
  package var descriptorText: String {
    var written = descriptor
    if written.git == nil, !gitHosts.isEmpty {
      written.git = GitRules(hosts: gitHosts.map { Template(literal: $0) })
    }
    return Self.mark + "\n" + written.yaml
  }

  private static let mark = "# The provider as credmgr-simulator plays it: it is gone when the simulator ends."

  /// Whether a descriptor was written here.
  static func isOurs(_ bytes: [UInt8]) -> Bool { bytes.starts(with: mark.utf8) }

  /// Answers a request.
  package func answer(_ request: HTTPRequest) -> LoopbackServer.Answer {
    simulation.withLock { $0.answer(request) }
  }
}
