import OAuth
import Descriptors
import YAML

/// A host to which tokens or the client's secret would go, and to which nobody agreed.
public struct NewHost: Sendable, Equatable {
  /// The host, with its port where that is not the ordinary one (`Client.destinations`).
  public let name: String
  /// Where the descriptor names it; `nil` where no descriptor was read for it.
  public let place: Place?

  /// A host at a place.
  public init(_ name: String, at place: Place?) {
    self.name = name
    self.place = place
  }
}

extension DescriptorLibrary.Loaded {
  /// Hosts with where this descriptor names them.
  func places(of hosts: [String], _ client: Client) -> [NewHost] {
    hosts.map { host in NewHost(host, at: place(ofHost: host) { client.destinations(of: $0) }) }
  }
}

extension CredentialSource {
  /// The hosts of a descriptor that `add` would ask about if it were to replace the one that was added before.
  ///
  /// - Parameter provider: its identifier; most providers were never added, and need not be read again.
  /// - Throws: `CredentialError` where nobody can tell: the vault is locked, a variable has no value.
  public func newHosts(
    of provider: String, _ bytes: [UInt8], named file: String
  ) throws(CredentialError) -> [NewHost] {
    guard let existing = try accountsIfAny(), let previous = try existing.registration(of: provider) else { return [] }
    let addition = try addition(bytes, named: file, as: nil)
    var registration = previous
    registration.variables = previous.variables.filter { addition.descriptor.variable($0.key) != nil }
    do throws(CredentialError) {
      try checkDestinations(
        addition.loaded, try client(addition.descriptor, registration), previous.destinations,
        existing.accounts(of: addition.identifier), keepsSecret: previous.clientSecret != nil,
        keepsVariable: keepsSecretVariable(addition, previous, given: [:])
      ) { _, _ in false }
    } catch .destinationChange(_, _, let hosts) {
      return hosts
    }
    return []
  }
}
