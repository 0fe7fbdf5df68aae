import CredmgrHTTP
import CredmgrText

/// A URL with placeholders whose values cannot change its meaning: in the authority a value must be a host name, and
/// after it credmgr percent-encodes the value. A placeholder at the beginning stands for a base URL.
package struct URLTemplate: Sendable, Equatable {
  package let template: Template

  package init(_ template: Template) { self.template = template }

  package func filled(
    _ values: (String) -> String?, calculate: Template.Calculator = { _, _ in nil }
  ) throws(URLTemplateError) -> URI {
    let uri = try anyScheme(values, calculate: calculate)
    guard uri.isSecure || (uri.scheme == "http" && uri.isLoopback) else { throw .insecure(uri.description) }
    return uri
  }

  /// Fills the template like `filled`, for a redirect that may have an application's own scheme.
  package func anyScheme(
    _ values: (String) -> String?, calculate: Template.Calculator = { _, _ in nil }
  ) throws(URLTemplateError) -> URI {
    var text = ""
    var filledFrom = Int.max  // The position of the first value in or after the path.
    for (index, part) in template.parts.enumerated() {
      switch part {
      case .literal(let piece): text += piece
      case .place(let terms):
        let value: String
        do { value = try Template.value(of: terms, values, calculate) } catch { throw .template(error) }
        switch Self.position(after: text) {
        case .beginning:
          // A base URL may end in a slash or not.
          let rest = template.parts.dropFirst(index + 1).first
          guard rest == nil || !value.contains(where: { "?#".contains($0) }) else { throw .base(self.text) }
          let continues = if case .literal(let piece)? = rest { piece.hasPrefix("/") } else { false }
          text += value.hasSuffix("/") && continues ? String(value.dropLast()) : value
        case .authority:
          // A base URL without a slash would become another host.
          if case .place? = template.parts.first { throw .base(self.text) }
          guard Self.isAuthority(value) else { throw .authority(value) }
          text += value
        case .behindAuthority:
          filledFrom = min(filledFrom, text.utf8.count)
          text += PercentEncoding.encode(value)
        }
      }
    }
    // Percent-encoding does not protect dot segments (RFC 3986, 6.2.2.2): removing them would change the path.
    guard !Self.hasDotSegment(text, behind: filledFrom) else { throw .path(self.text) }
    // Shows the template, not the result: a value may be a secret.
    do { return try URI(parsing: text) } catch { throw .url(self.text) }
  }

  /// Whether a path segment that ends after this position is `.` or `..`.
  private static func hasDotSegment(_ text: String, behind place: Int) -> Bool {
    guard place != .max else { return false }
    let path = text.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
    var end = 0
    return path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).contains { segment in
      end += segment.count
      defer { end += 1 }
      return end >= place && (segment.elementsEqual(".".utf8) || segment.elementsEqual("..".utf8))
    }
  }

  enum Position { case beginning, authority, behindAuthority }

  static func position(after text: String) -> Position {
    if text.isEmpty { return .beginning }
    guard let slashes = text.firstPlace(of: "://") else { return .behindAuthority }
    let rest = text[slashes.upperBound...]
    return rest.contains(where: { "/?#".contains($0) }) ? .behindAuthority : .authority
  }

  /// Whether the value is letters, digits, dots and hyphens with an optional port.
  static func isAuthority(_ value: String) -> Bool {
    let pieces = value.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let host = pieces.first, !host.isEmpty, !host.hasPrefix("."), !host.hasPrefix("-") else { return false }
    guard host.utf8.allSatisfy({ $0.isLetterOrDigit || ".-".utf8.contains($0) }) else { return false }
    return pieces.count == 1 || (UInt16(pieces[1]).map { $0 > 0 } ?? false)
  }
}

package enum URLTemplateError: Error, Sendable, Equatable {
  case template(TemplateError)
  case authority(String)
  case path(String)  // A segment of the path is `.` or `..`. The value is the template.
  case base(String)  // The base URL has a query or a fragment, which the rest would extend. The value is the template.
  case url(String)
  case insecure(String)
}

extension URLTemplate { package var text: String { template.text } }
