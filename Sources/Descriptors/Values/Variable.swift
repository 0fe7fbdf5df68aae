/// A value that a descriptor leaves open: a host, a tenant, an institution.
package struct Variable: Sendable, Equatable {
  /// What kind of text a value must be.
  package enum Format: String, Sendable, CaseIterable {
    /// Any text without line breaks.
    case text
    /// A host name, with a port at most.
    case hostname
    /// An absolute URL, `https` or on loopback.
    case url
    /// A redirect URI: also an application's own scheme, or `urn:ietf:wg:oauth:2.0:oob`.
    case redirect
    /// A whole number.
    case integer
  }

  /// The name that templates use.
  package var name: String
  /// The value where none is given.
  package var defaultValue: String?
  /// What kind of text it is.
  package var format = Format.text
  /// A regular expression that the whole value must match.
  package var pattern: String?
  /// The only values, where the list is not empty.
  package var choices: [String] = []
  /// What it is, for the person who is asked.
  package var help: String?
  /// Whether it may stay empty.
  package var isOptional = false
  /// Whether it is nobody's business: never shown, and never taken from a command line.
  package var isSecret = false

  /// A value to try templates with; `nil` where any text does.
  var sample: String? {
    // `oob` is a redirect, and no URL.
    if let defaultValue, !defaultValue.isEmpty, defaultValue != "oob" || format != .redirect { return defaultValue }
    return switch format {
    case .integer: "1"
    case .url, .redirect: "https://sample.example"
    case .text, .hostname: choices.first
    }
  }

  /// Whether `value` is one that the variable may have.
  package func accepts(_ value: String) -> Bool {
    if value.isEmpty { return isOptional }
    // A key in PEM (RFC 7468) has lines; nothing else has.
    let isOfLines = isSecret && format == .text
    guard value.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F || isOfLines && $0 == "\n" }) else {
      return false
    }
    guard choices.isEmpty || choices.contains(value) else { return false }
    if let pattern {
      guard let expression = Pattern(pattern), expression.matches(value) else { return false }
    }
    switch format {
    case .text: return true
    case .hostname: return URLTemplate.isAuthority(value)
    case .url:
      return (try? URLTemplate(Template(literal: value)).filled { _ in nil }) != nil
    case .redirect:
      return value == "oob" || (try? URLTemplate(Template(literal: value)).anyScheme { _ in nil }) != nil
    case .integer: return Int64(value) != nil
    }
  }
}
