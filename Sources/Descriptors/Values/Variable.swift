/// A value that a descriptor leaves open: a host, a tenant, an institution.
package struct Variable: Sendable, Equatable {
  package enum Format: String, Sendable, CaseIterable {
    case text
    case hostname
    case url
    case redirect  // Also an application's own scheme, or `urn:ietf:wg:oauth:2.0:oob`.
    case integer
  }

  package var name: String
  package var defaultValue: String?
  package var format = Format.text
  package var pattern: String?  // The whole value must match.
  package var choices: [String] = []
  package var help: String?
  package var isOptional = false
  package var isSecret = false  // Never shown, and never taken from a command line.

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

extension Variable {
  /// Whether a whole value matches an expression; `false` for an expression that cannot be read.
  package static func value(_ value: some StringProtocol, matches pattern: String) -> Bool {
    Pattern(pattern)?.matches(String(value)) ?? false
  }

  /// Whether an expression matches a base URL at an origin: the origin alone, or with a path behind it.
  package static func value(beginningWith origin: String, matches pattern: String) -> Bool {
    Pattern(pattern)?.matches(origin, orBefore: "/") ?? false
  }
}
