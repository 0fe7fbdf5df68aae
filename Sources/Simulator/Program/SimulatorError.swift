import Descriptors
import Platform

/// Why the simulator cannot start.
package enum SimulatorError: Error, Sendable, Equatable {
  /// The descriptor cannot be used.
  case provider(ProviderError)
  /// No value for this variable satisfies its rule by guessing.
  case variableNeeded(Variable)
  /// The descriptor's signature method or transport, with its variables filled, is none.
  case unknownSignature(String)
  /// The signature method needs a key pair, and the registered secret is no RSA key.
  case keyNeeded(SignatureMethod)
  /// The port cannot be listened on.
  case portUnavailable(UInt16)
  /// The system cannot write what a client needs.
  case system(POSIXError)
}
