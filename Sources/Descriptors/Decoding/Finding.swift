import Text
import YAML

/// Something about a descriptor that its author should know, with the place where it stands.
package struct Finding: Sendable, Equatable {
  /// Whether the descriptor can be used all the same.
  package enum Severity: String, Sendable {
    /// The descriptor is refused.
    case error
    /// The descriptor works; this is probably not what was meant.
    case warning
  }

  /// What was found.
  package enum Problem: Sendable, Equatable {
    /// The text is not YAML that we read.
    case yaml(YAMLError.Reason)
    /// A key that means nothing here; the known key that it resembles.
    case unknownKey(String, suggestion: String?)
    /// A key that has to be there.
    case missingKey(String)
    /// A value of another type; what was expected.
    case wrongType(expected: String)
    /// A value outside the ones that are known; the one that it resembles.
    case unknownValue(String, allowed: [String], suggestion: String?)
    /// An identifier of a provider, variable or kept field that is not letters, digits, `-`, `_` (and `.`).
    case malformedName(String)
    /// A template that cannot be read.
    case template(TemplateError)
    /// A template that uses a name that nothing defines here.
    case unknownTemplateName(String, suggestion: String?)
    /// An endpoint that is neither `https` nor on loopback.
    case insecureURL(String)
    /// A text that is not an absolute URL.
    case invalidURL(String)
    /// A host that is not a host name, with a leading `*.` and a port at most.
    case invalidHost(String)
    /// A host of git or docker with `*.`: they are looked up whole.
    case subdomains(String)
    /// A text for people with something in it that a terminal acts on, or that reorders what stands there.
    case controlCharacter
    /// More variables than anybody needs; the bound.
    case tooManyVariables(Int)
    /// A header that is no header, or that the HTTP client owns.
    case forbiddenHeader(String)
    /// A parameter that the engine owns: it can be renamed, never set.
    case ownedParameter(String)
    /// A duration that is not a number with `s`, `m`, `h` or `d`.
    case invalidDuration(String)
    /// A regular expression that cannot be read.
    case invalidPattern(String)
    /// A grant whose endpoint is not given.
    case grantWithoutEndpoint(grant: String, endpoint: String)
    /// `extends` names a provider that is not there.
    case unknownBase(String)
    /// A file of the path is there, and cannot be read.
    case unreadable(path: String, UnreadableDescriptor)
    /// `extends` comes back to itself; the chain.
    case cyclicExtends([String])
    /// More files that extend each other than anybody can follow; the bound.
    case tooManyBases(Int)
    /// The identifier is not the file's name.
    case identifierIsNotFileName(identifier: String, fileName: String)
    /// The default of a variable does not satisfy the variable's own rule.
    case invalidDefault(variable: String)
    /// A variable that nothing uses.
    case unusedVariable(String)
    /// A host to which nobody agreed when the provider was added.
    case newHost(String, provider: String)

    /// A value outside the ones that are known.
    static func unknownValue(_ text: String, among allowed: [String]) -> Problem {
      .unknownValue(text, allowed: allowed, suggestion: nearMiss(text, among: allowed))
    }

    /// Whether what the descriptor extends is not there because of it.
    var hidesBase: Bool {
      switch self {
      case .yaml(.duplicateKey): false
      case .yaml, .unknownBase, .unreadable, .cyclicExtends, .tooManyBases: true
      default: false
      }
    }

    /// Whether it may be no fault once what the descriptor extends is there.
    var isOfWhatIsMissing: Bool {
      switch self {
      case .missingKey, .unknownTemplateName, .grantWithoutEndpoint: true
      default: false
      }
    }
  }

  /// How bad it is.
  package let severity: Severity
  /// What it is.
  package let problem: Problem
  /// Where it stands.
  package let place: Place

  /// A finding at a place.
  package init(_ problem: Problem, at place: Place, severity: Severity = .error) {
    self.problem = problem
    self.place = place
    self.severity = severity
  }
}

extension Finding {
  /// For a file that is so long that nobody read it.
  package static func tooLarge(_ name: String) -> Finding {
    Finding(.yaml(.tooLarge(bytes: Limits().bytes)), at: beginning(of: name))
  }

  /// For a file that nobody could read.
  static func unreadable(_ path: String, _ reason: UnreadableDescriptor) -> Finding {
    reason == .tooLarge ? tooLarge(path) : Finding(.unreadable(path: path, reason), at: beginning(of: path))
  }

  private static func beginning(of name: String) -> Place {
    Place(source: Source(name: name, text: ""), line: 1, column: 1)
  }
}

/// Why a descriptor that is there cannot be read.
package enum UnreadableDescriptor: Error, Sendable, Equatable {
  /// We have no rights to it.
  case permissionDenied
  /// A folder on the way to it does not let us through, whether it is there or not.
  case closedFolder(String)
  /// It is a folder, a pipe or a device.
  case notRegularFile
  /// It is a link to what is not there.
  case danglingLink
  /// It is longer than any descriptor.
  case tooLarge
  /// The system failed.
  case failed
}

/// A descriptor that cannot be used.
package enum ProviderError: Error, Sendable, Equatable {
  /// The file was read, and at least one finding is an error.
  case invalid([Finding])
  /// No descriptor with this identifier along the path; the known identifier that it resembles.
  case unknown(identifier: String, suggestion: String?)
  /// The text is no identifier of a provider.
  case malformedIdentifier(String)
  /// A variable has no value and no default.
  case missingVariable(Variable)
  /// A value that does not satisfy its variable's rule.
  case invalidVariable(Variable, value: String)
  /// There is no variable with this name; those that there are.
  case unknownVariable(String, known: [String])
}
