import Descriptors
import Text

/// The command line of `credmgr-simulator`.
struct SimulatorArguments: Equatable {
  /// The identifier of a provider, or the path of a descriptor.
  var descriptor: String
  /// Where to listen; 0 is any free port.
  var port: UInt16 = 0
  /// Folders with descriptors, in order; empty: those of the machine.
  var directories: [String] = []
  /// A file with the secret that the client is registered with; `nil`: a random one.
  var clientSecretFile: String?
  /// How the provider is played.
  var settings = SimulationSettings()

  /// What a command line asks for.
  enum Command: Equatable {
    case help
    case simulate(SimulatorArguments)
  }

  private static let options = [
    "--port", "--set", "--lifetime", "--fault", "--git-host", "--grace", "--descriptors",
    "--client-secret-file",
    "--keep-redirect", "--help",
  ]

  /// Reads the arguments behind the program's name.
  ///
  /// - Throws: `SimulatorError.usage`.
  static func parse(_ arguments: [String]) throws(SimulatorError) -> Command {
    var parsed = SimulatorArguments(descriptor: "")
    var positional: [String] = []
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      guard argument.hasPrefix("-"), argument != "-" else {
        positional.append(argument)
        continue
      }
      let pieces = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(
        String.init)
      let option = pieces[0] == "-h" ? "--help" : pieces[0]
      guard options.contains(option) else {
        throw .usage(.unknownOption(option, suggestion: nearMiss(option, among: options)))
      }
      switch option {
      case "--help": return .help
      case "--keep-redirect": parsed.settings.keepsRedirect = true
      default:
        guard let value = pieces.count > 1 ? pieces[1] : rest.popFirst() else {
          throw .usage(.missingValue(option: option))
        }
        try parsed.set(option, value)
      }
    }
    guard let descriptor = positional.first else { throw .usage(.missingDescriptor) }
    if positional.count > 1 { throw .usage(.unexpectedArgument(positional[1])) }
    parsed.descriptor = descriptor
    return .simulate(parsed)
  }

  private mutating func set(_ option: String, _ value: String) throws(SimulatorError) {
    let invalid = SimulatorError.usage(.invalidValue(option: option, value: value))
    switch option {
    case "--port":
      guard let port = UInt16(value) else { throw invalid }
      self.port = port
    case "--set":
      let pair = value.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard pair.count == 2, !pair[0].isEmpty else { throw invalid }
      settings.variables[pair[0]] = pair[1]
    case "--lifetime":
      guard let seconds = Self.seconds(value), seconds > 0 else { throw invalid }
      settings.lifetime = seconds
    case "--grace":
      guard let seconds = Self.seconds(value) else { throw invalid }
      settings.grace = seconds
    case "--fault":
      guard let fault = Fault(named: value) else { throw .usage(.unknownFault(value, known: Fault.names)) }
      settings.faults.append(fault)
    case "--git-host":
      guard !value.isEmpty, !value.contains("/"), !value.contains("{") else { throw invalid }
      settings.gitHosts.append(value)
    case "--descriptors": directories.append(value)
    default: clientSecretFile = value
    }
  }

  /// A number of seconds, or a duration as elsewhere (`90s`, `8h`).
  private static func seconds(_ text: String) -> Int64? {
    guard let seconds = Int64(text) ?? Text.seconds(ofDuration: text),
      (0...10_000_000_000).contains(seconds)
    else { return nil }
    return seconds
  }
}
