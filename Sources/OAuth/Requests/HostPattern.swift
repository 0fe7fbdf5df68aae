import CredmgrHTTP

/// A host in a descriptor: `api.example.com`, `*.example.com`, `127.0.0.1:8080`, or a base URL with such a host.
package struct HostPattern: Sendable, Equatable {
  private let host: String
  private let port: UInt16?
  private let matchesSubdomains: Bool

  /// Reads a pattern from a descriptor, after its variables are filled in.
  package init(_ text: String) {
    var text = text.lowercased()
    if let uri = try? URI(parsing: text), let authority = Self.authority(uri) { text = authority }
    matchesSubdomains = text.hasPrefix("*.")
    if matchesSubdomains { text.removeFirst(2) }
    if let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) {
      host = String(text[..<colon])
      self.port = port
    } else {
      host = text
      port = nil
    }
  }

  /// Whether the pattern covers a URL. A pattern without a port covers only the default port.
  package func matches(_ uri: URI) -> Bool {
    guard let name = uri.host else { return false }
    guard uri.effectivePort == (port ?? (uri.isSecure ? 443 : 80)) else { return false }
    return matchesSubdomains ? name.hasSuffix("." + host) && name.count > host.count + 1 : name == host
  }

  /// Whether the pattern names exactly this URL's host, without a wildcard.
  package func names(_ uri: URI) -> Bool { !matchesSubdomains && matches(uri) }

  /// Returns the URL's host, with its port unless it is the default one; `nil` without a host.
  package static func authority(_ uri: URI) -> String? {
    guard let host = uri.host else { return nil }
    let ordinary: UInt16 = uri.isSecure ? 443 : 80
    guard let port = uri.port, port != ordinary else { return host }
    return host + ":" + String(port)
  }
}
