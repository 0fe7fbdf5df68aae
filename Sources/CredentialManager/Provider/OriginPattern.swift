import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrText

/// An origin (RFC 6454, 4) as written in an agreement: `https://api.example`, `https://*.example:8443`,
/// `https://{dc}.api.example`. A variable alone, `{instance_url}`, is any origin that the provider returns.
///
/// Earlier versions stored a bare host. It stands for https, and on loopback also for http.
struct OriginPattern {
  /// The kept answer fields, each with the expressions, one per line, that its value must match.
  typealias Bounds = [String: String]

  private let text: String
  private let scheme: String?
  private let host: String
  private let port: UInt16?
  private let isWhole: Bool

  init(_ text: String) {
    self.text = text
    isWhole = text.hasPrefix("{") && text.firstIndex(of: "}") == text.indices.last
    var rest = text[...]
    if !isWhole, let slashes = text.firstPlace(of: "://") {
      scheme = text[..<slashes.lowerBound].lowercased()
      rest = text[slashes.upperBound...]
    } else {
      scheme = nil
    }
    if let colon = rest.lastIndex(of: ":"), let port = UInt16(rest[rest.index(after: colon)...]) {
      self.port = port
      rest = rest[..<colon]
    } else {
      port = nil
    }
    host = String(rest)
  }

  /// Returns the origins of a text that is a URL or an entry of `hosts`. Both may contain variables. A loopback host
  /// also works without TLS.
  static func texts(of text: String) -> [String] {
    if let uri = try? URI(parsing: text), uri.host != nil { return [uri.origin] }
    let (scheme, rest): (String?, Substring) =
      text.firstPlace(of: "://").map { (text[..<$0.lowerBound].lowercased(), text[$0.upperBound...]) } ?? (
        nil, text[...]
      )
    let host = authority(rest)
    if let scheme { return [scheme + "://" + host] }
    if host.hasPrefix("{"), host.firstIndex(of: "}") == host.indices.last { return [host] }
    guard let uri = try? URI(parsing: "http://" + host), uri.isLoopback else { return ["https://" + host] }
    return uri.port == nil ? ["http://" + host, "https://" + host] : ["http://" + host]
  }

  /// Returns the host and port in lowercase. Variables stay unchanged, whatever characters they contain.
  private static func authority(_ text: Substring) -> String {
    var (result, depth) = ("", 0)
    for character in text {
      depth += character == "{" ? 1 : character == "}" ? -1 : 0
      if depth <= 0, "/?#".contains(character) { break }
      result += depth > 0 ? String(character) : character.lowercased()
    }
    return result
  }

  var names: [String] { (try? Template(parsing: text))?.names ?? [] }

  private func defaultPort(for other: String?) -> UInt16 { (scheme ?? other) == "http" ? 80 : 443 }

  /// Whether agreeing to this origin includes the other. At the same port, http includes https. An origin with unfilled
  /// variables includes only itself.
  func includes(_ other: OriginPattern) -> Bool {
    if text.utf8.elementsEqual(other.text.utf8) { return true }
    guard names.isEmpty, !other.isWhole else { return false }
    if scheme == "https", other.scheme == "http" { return false }
    guard port ?? defaultPort(for: other.scheme) == other.port ?? other.defaultPort(for: scheme) else { return false }
    return host == other.host || (host.hasPrefix("*.") && other.host.hasSuffix(host.dropFirst()))
  }

  /// Whether a URL is at this origin. A variable matches every value that its field may have.
  func matches(_ uri: URI, _ bounds: Bounds) -> Bool {
    guard uri.isSecure || (uri.scheme == "http" && uri.isLoopback), let name = uri.host else { return false }
    if isWhole {
      guard case .place(let terms)? = (try? Template(parsing: text))?.parts.first else { return false }
      return terms.contains { Self.isBase(uri, of: $0, within: bounds) }
    }
    if scheme == "https", !uri.isSecure { return false }
    guard uri.effectivePort == port ?? defaultPort(for: uri.scheme) else { return false }
    if host.hasPrefix("*.") { return name.hasSuffix(host.dropFirst()) && name.count > host.count - 1 }
    guard host.contains("{"), let template = try? Template(parsing: host) else { return name == host }
    return Self.matches(name[...], template.parts[...], within: bounds, isAll: template.parts.count == 1)
  }

  /// Whether a cluster is at this origin. Clusters have no default port, so without a port here, any port matches.
  func matches(cluster uri: URI, _ bounds: Bounds) -> Bool {
    !isWhole && (matches(uri, bounds) || (port == nil && matches(uri.replacing(port: nil), bounds)))
  }

  /// Whether the value of a field may be a base URL or a host at the URL's origin.
  private static func isBase(_ uri: URI, of term: Template.Term, within bounds: Bounds) -> Bool {
    if case .literal(let text) = term { return texts(of: text).contains { OriginPattern($0).matches(uri, [:]) } }
    guard let patterns = patterns(of: term, bounds) else { return false }
    return [uri.origin, HostPattern.authority(uri) ?? ""].contains { origin in
      patterns.allSatisfy { Variable.value(beginningWith: origin, matches: $0) }
    }
  }

  private static func matches(
    _ text: Substring, _ parts: ArraySlice<Template.Part>, within bounds: Bounds, isAll: Bool
  ) -> Bool {
    switch parts.first {
    case nil: return text.isEmpty
    case .literal(let piece):
      return text.hasPrefix(piece)
        && matches(text.dropFirst(piece.count), parts.dropFirst(), within: bounds, isAll: isAll)
    case .place(let terms):
      return text.indices.reversed().contains { end in
        matches(text[end...].dropFirst(), parts.dropFirst(), within: bounds, isAll: isAll)
          && terms.contains { Self.isPiece(text[...end], of: $0, within: bounds, isAll: isAll) }
      }
    }
  }

  /// Whether the value of a field may be these labels of a host. A field without an expression is one label, or the
  /// whole host. Matches in both cases, because hosts are in lowercase here but may not be in the answer.
  private static func isPiece(
    _ value: Substring, of term: Template.Term, within bounds: Bounds, isAll: Bool
  ) -> Bool {
    if case .literal(let text) = term { return text.lowercased() == value }
    guard let patterns = patterns(of: term, bounds),
      value.utf8.allSatisfy({ $0.isLetterOrDigit || ".-".utf8.contains($0) })
    else { return false }
    if patterns.isEmpty { return isAll || !value.contains(".") }
    return patterns.allSatisfy { pattern in
      [String(value), value.uppercased()].contains { Variable.value($0, matches: pattern) }
    }
  }

  /// Returns a field's expressions; `nil` if no answer provides the value.
  private static func patterns(of term: Template.Term, _ bounds: Bounds) -> [String]? {
    switch term {
    case .name(let name): bounds[name]?.split(separator: "\n").map(String.init)
    case .call(.lowercase, let terms), .call(.uppercase, let terms):
      terms.first.flatMap { patterns(of: $0, bounds) }
    case .call, .literal: nil
    }
  }
}
