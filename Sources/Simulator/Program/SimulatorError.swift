import Descriptors

/// Why the simulator cannot start.
public enum SimulatorError: Error, Sendable, Equatable {
  /// The command line is not one of ours.
  case usage(Usage)
  /// The file cannot be read.
  case unreadable(path: String)
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
  /// The HTTP server did not start.
  case serverFailed
  /// The temporary folder could not be made or written.
  case temporaryFolder
  /// Standard output cannot be written.
  case output

  /// What is wrong with a command line.
  public enum Usage: Sendable, Equatable {
    /// An option that is not known; the one that it resembles.
    case unknownOption(String, suggestion: String?)
    /// An option without its value.
    case missingValue(option: String)
    /// A value that the option does not take.
    case invalidValue(option: String, value: String)
    /// A fault that is not known; all that are.
    case unknownFault(String, known: [String])
    /// There is no descriptor.
    case missingDescriptor
    /// There are two.
    case unexpectedArgument(String)
  }
}
