import CredmgrText
import CredmgrYAML

/// A message about a descriptor for its author, with its place in the file.
package struct Finding: Sendable, Equatable {
  package enum Severity: String, Sendable {
    case error
    case warning
  }

  package enum Problem: Sendable, Equatable {
    case yaml(YAMLError.Reason)
    case unknownKey(String, suggestion: String?)
    case unknownEndpoint(String, allowed: [String])
    case missingKey(String)
    case futureDate(String)  // The file was not verified yet at this date.
    case noSources  // No comment links to a page that shows the facts.
    case wrongType(expected: String)
    case unknownValue(String, allowed: [String], suggestion: String?)
    case malformedName(String)
    case template(TemplateError)
    case unknownTemplateName(String, suggestion: String?)
    case insecureURL(String)
    case invalidURL(String)
    case invalidHost(String)
    case subdomains(String)  // Hosts of git or docker are looked up whole.
    case controlCharacter  // A character that a terminal acts on or that reorders text.
    case tooManyEntries(Int)
    case forbiddenHeader(String)
    case headerInScheme(String)  // `Authorization: token` instead of `token`.
    case ownedParameter(String)
    case fixedParameter(String)  // It has the same name at every provider.
    case shownSecret(String)  // A secret field in a place whose content is shown.
    case computedRedirect  // A redirect that contains a function or an alternative.
    /// `state` may be missing, and nothing else ties the response to the login, for this reason.
    case unprotectedState(UnprotectedState)
    case invalidDuration(String)
    case invalidPattern(String)
    case grantWithoutEndpoint(grant: String, endpoint: String)
    case unknownBase(String)
    case unreadable(path: String, UnreadableDescriptor)
    case cyclicExtends([String])
    case tooManyBases(Int)
    case identifierIsNotFileName(identifier: String, fileName: String)
    case invalidDefault(variable: String)
    case unusedVariable(String)
    case withoutGrant(String, [Grant])  // A key of grants that the descriptor does not have.
    case boundToken(String)  // A key for other programs, which cannot sign requests.
    case readElsewhere(String, [EndpointKind])  // Only the responses of these endpoints contain it.
    case accountWithoutSource(String)  // No `identity` endpoint and no kept field supplies the account's name.
    case emptyList(String)
    case sentByBrowser(String)  // A key for requests of credmgr, at the page that the browser opens.
    case withoutKey(String, needed: String)
    case unverifiableAnswer(needed: String)  // A login could not verify the signed answer of the page.
    case profile(SecurityProfile, ProfileRule)  // The descriptor does not meet a rule of its profile.
    case unusedAssertion  // No endpoint sends the JWT that the client signs.
    case assertionInRequest  // A request to the API, where the JWT that the client signs has no value.
    case tokenOfElement  // Nothing that the account keeps tells the element whose token it has from others.
    case unpromptedVariable(String)  // A variable of the login that has a default.
    case unsentParameter(String, suggestion: String?)
    case bracketInPath(String)
    case blankInScope(String)  // The descriptor has another separator.
    case secretInAddress(String)  // Other programs or servers than the provider's endpoints would see the secret.
    case foreignPage(String)  // A device's code is entered at an origin without an endpoint of the descriptor.
    case keptVariable(String)  // A response would choose a variable's host, or all hosts under one.
    case keptSubdomains(String)
    case keyFileHost(String)  // A key file would choose a host.
    case unboundedHost(String)  // A response may choose any host.
    case newSetting(String, value: String, provider: String)  // The user did not agree to this value of a key.
    case newHost(String, provider: String)  // The user did not agree to this host when adding the provider.

    package enum UnprotectedState: Sendable { case noProofKey, scheme, implicit }

    static func unknownValue(_ text: String, among allowed: [String]) -> Problem {
      .unknownValue(text, allowed: allowed, suggestion: nearMiss(text, among: allowed))
    }

    /// Whether the problem makes the base of the descriptor unavailable.
    var hidesBase: Bool {
      switch self {
      case .yaml(.duplicateKey): false
      case .yaml, .unknownBase, .unreadable, .cyclicExtends, .tooManyBases: true
      default: false
      }
    }

    /// Whether a base that is unavailable could resolve the problem.
    var isOfWhatIsMissing: Bool {
      switch self {
      case .missingKey, .unknownTemplateName, .grantWithoutEndpoint: true
      default: false
      }
    }
  }

  package let severity: Severity
  package let problem: Problem
  package let place: Place

  package init(_ problem: Problem, at place: Place, severity: Severity = .error) {
    self.problem = problem
    self.place = place
    self.severity = severity
  }
}

extension Finding {
  package static func tooLarge(_ name: String) -> Finding {
    Finding(.yaml(.tooLarge(bytes: Limits.bytes)), at: beginning(of: name))
  }

  static func unreadable(_ path: String, _ reason: UnreadableDescriptor) -> Finding {
    reason == .tooLarge ? tooLarge(path) : Finding(.unreadable(path: path, reason), at: beginning(of: path))
  }

  private static func beginning(of name: String) -> Place {
    Place(source: Source(name: name, text: ""), line: 1, column: 1)
  }
}

package enum UnreadableDescriptor: Error, Sendable, Equatable {
  case permissionDenied
  case closedFolder(String)
  case notRegularFile
  case danglingLink
  case tooLarge
  case otherOwner(String)  // Another user owns the file or a parent directory.
  case writableByOthers(String, mode: UInt32)  // Other users can write to the file or a parent directory.
  case failed
}

package enum ProviderError: Error, Sendable, Equatable {
  case invalid([Finding])
  case unknown(identifier: String, suggestion: String?)
  case malformedIdentifier(String)
  case missingVariable(Variable)
  case invalidVariable(Variable, value: String)
  case unknownVariable(String, known: [String])
}
