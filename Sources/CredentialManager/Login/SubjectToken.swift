import CredmgrDescriptors
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

/// The place of a token of another issuer (RFC 8693, 1.1): a file or an environment variable, which the user names at
/// the login. No descriptor names one, so no stranger chooses what credmgr reads.
package enum SubjectTokenPlace: Sendable, Equatable {
  case file(String)
  case environment(String)

  private static let prefixes = (file: "file:", environment: "env:")

  /// The text that is stored with the account.
  package var text: String {
    switch self {
    case .file(let path): Self.prefixes.file + path
    case .environment(let name): Self.prefixes.environment + name
    }
  }

  package init?(_ text: String) {
    if text.hasPrefix(Self.prefixes.file) {
      self = .file(String(text.dropFirst(Self.prefixes.file.utf8.count)))
    } else if text.hasPrefix(Self.prefixes.environment) {
      self = .environment(String(text.dropFirst(Self.prefixes.environment.utf8.count)))
    } else {
      return nil
    }
  }
}

/// Why credmgr does not send the token of another issuer. Contains no part of it.
package enum SubjectTokenFault: Error, Sendable, Equatable {
  case unset  // The environment variable has no value.
  case unreadable(POSIXError)
  case empty
  case notText  // Several lines, or bytes that are not printable ASCII.
  case expired(Moment)
}

extension SubjectTokenPlace {
  /// Reads the token, without the blanks and line ends around it. A server would refuse a JWT that has expired
  /// (RFC 7519, 4.1.4), so it is not sent.
  func read(at now: Moment, environment: (String) -> String?) throws(SubjectTokenFault) -> String {
    let text: String
    switch self {
    case .environment(let name):
      guard let value = environment(name) else { throw .unset }
      text = value
    case .file(let path):
      do throws(POSIXError) {
        text = String(decoding: try File.read(path, limit: Self.longest, patience: .seconds(10)), as: UTF8.self)
      } catch {
        throw .unreadable(error)
      }
    }
    let isBlank = { (scalar: Unicode.Scalar) in "\r\n\t ".unicodeScalars.contains(scalar) }
    var scalars = text.unicodeScalars.drop(while: isBlank)
    while let last = scalars.last, isBlank(last) { scalars.removeLast() }
    if scalars.isEmpty { throw .empty }
    guard scalars.allSatisfy({ (0x21...0x7E).contains($0.value) }), scalars.count <= Self.longest else {
      throw .notText
    }
    let token = String(scalars)
    if let expiry = SubjectToken.expiry(of: token), expiry + Self.tolerance <= now { throw .expired(expiry) }
    return token
  }

  private static let longest = 65_536
  private static let tolerance = Duration.seconds(60)  // Two clocks are never equal.
}

extension CredentialSource {
  /// Returns the variables for a request: an exchange reads each token of another issuer now, and no other request
  /// gets one.
  func read(
    _ variables: [String: String], of descriptor: Descriptor, for route: Route
  ) throws(CredentialError) -> [String: String] {
    guard descriptor.readsAtExchange else { return variables }
    if shared != nil { try requireShareable(variables, of: descriptor) }
    var values = variables
    for variable in descriptor.variables where variable.isAtExchange {
      guard let text = values.removeValue(forKey: variable.name), let place = SubjectTokenPlace(text),
        route == .login || route == .refresh
      else { continue }
      do throws(SubjectTokenFault) {
        values[variable.name] = try place.read(at: clock.now(), environment: keys.environment)
      } catch {
        throw .subjectToken(provider: descriptor.identifier, variable, place, error)
      }
    }
    return values
  }
}
