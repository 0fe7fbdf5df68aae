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
  package var pattern: String?  // Must match the whole value.
  package var choices: [String] = []
  package var help: String?
  package var isOptional = false
  package var isSecret = false  // Never shown, and never read from a command line.
  package var isAtLogin = false  // Each login asks for it, so it belongs to the account.
  /// Whether each exchange reads it again from the place that the user named at the login, so no value is stored.
  package var isAtExchange = false

  /// A value for trying out templates, or `nil` if any text fits.
  var sample: String? {
    // `oob` is a redirect, but not a URL.
    if let defaultValue, !defaultValue.isEmpty, defaultValue != "oob" || format != .redirect { return defaultValue }
    return switch format {
    case .integer: "1"
    case .url, .redirect: "https://sample.example"
    case .text, .hostname: choices.first
    }
  }

  package func accepts(_ value: String) -> Bool {
    if value.isEmpty { return isOptional }
    // Only a key in PEM (RFC 7468) has several lines.
    let isOfLines = isSecret && format == .text
    guard value.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F || isOfLines && $0 == "\n" }) else {
      return false
    }
    guard choices.isEmpty || choices.contains(value) else { return false }
    if let pattern {
      guard let expression = Pattern(pattern), expression.matches(value) else { return false }
    }
    return Self.value(value, has: format)
  }
}

extension Variable {
  package static func value(_ value: String, has format: Format) -> Bool {
    switch format {
    case .text: true
    case .hostname: URLTemplate.isAuthority(value)
    case .url: (try? URLTemplate(Template(literal: value)).filled { _ in nil }) != nil
    case .redirect: value == "oob" || (try? URLTemplate(Template(literal: value)).anyScheme { _ in nil }) != nil
    case .integer: Int64(value) != nil
    }
  }

  /// Whether a pattern matches the whole value; `false` for an invalid pattern.
  package static func value(_ value: some StringProtocol, matches pattern: String) -> Bool {
    Pattern(pattern)?.matches(String(value)) ?? false
  }

  /// Whether a pattern matches a base URL at an origin: the origin alone, or followed by a path.
  package static func value(beginningWith origin: String, matches pattern: String) -> Bool {
    Pattern(pattern)?.matches(origin, orBefore: "/") ?? false
  }
}
