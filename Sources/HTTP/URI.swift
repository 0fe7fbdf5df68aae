/// An absolute URI (RFC 3986), including `ncipapp:/path` and `urn:ietf:wg:oauth:2.0:oob` (RFC 8252, section 7.1).
///
/// The description leaves out the query and the fragment, which may be secret.
package struct URI: Hashable, Sendable, Redacted {
  package let scheme: String
  /// The host in lower case, with brackets around an IPv6 address. `nil` without `//`; empty in `app://?a=b`.
  package let host: String?
  package let port: UInt16?
  package let path: String
  package let query: String?
  package let fragment: String?
}

extension URI {
  /// Parses a URI whose query and fragment may contain the characters that browsers leave unencoded (`[]{}|^` and the
  /// backtick). Rejects relative references, user information, numeric hosts other than four decimal numbers, ports
  /// outside 1…65535, and `http` or `https` without a host.
  package init(parsing text: String) throws(HTTPError) {
    do throws(HTTPError.InvalidURI) {
      self = try URISyntax.parse(Array(text.utf8))
    } catch {
      throw .invalidURI(text: URISyntax.withoutSecrets(text), reason: error)
    }
  }

  package var text: String {
    var result = withoutSecrets
    if let query { result += "?\(query)" }
    if let fragment { result += "#\(fragment)" }
    return result
  }

  package var description: String { withoutSecrets + (query == nil ? "" : "?…") + (fragment == nil ? "" : "#…") }

  private var withoutSecrets: String {
    var result = "\(scheme):"
    if let host { result += "//\(host)" }
    if let port { result += ":\(port)" }
    return result + path
  }

  /// The port, or the default of the scheme (80, 443); `nil` for other schemes.
  package var effectivePort: UInt16? { port ?? defaultPort }

  private var defaultPort: UInt16? { ["https": 443, "http": 80][scheme] }

  /// The origin as in a browser's `Origin` field (RFC 6454, section 6.2), without the scheme's default port.
  package var origin: String {
    guard let host else { return "\(scheme):" }
    guard let port, port != defaultPort else { return "\(scheme)://\(host)" }
    return "\(scheme)://\(host):\(port)"
  }

  /// Whether the host is `localhost`, `[::1]` or an address in 127.0.0.0/8. Does not resolve names.
  package var isLoopback: Bool {
    guard let host else { return false }
    if host == "localhost" || host == "[::1]" { return true }
    return host.hasPrefix("127.") && address != nil
  }

  /// The bytes of an IPv4 or IPv6 address; `nil` for a name.
  package var address: [UInt8]? { host.flatMap { URISyntax.address(Array($0.utf8)[...]) } }

  package var isSecure: Bool { scheme == "https" }

  package var queryParameters: FormParameters { FormParameters(decoding: query ?? "") }

  /// Returns the URI with parameters added to its query and the same fragment.
  package func adding(query parameters: FormParameters) -> URI {
    parameters.isEmpty ? self : with(query: joinedQuery(parameters.encoded))
  }

  /// Returns the URI with encoded text added to its query, for providers that require their own encoding.
  package func adding(encodedQuery: String) throws(HTTPError) -> URI {
    do throws(HTTPError.InvalidURI) {
      try URISyntax.check(Array(encodedQuery.utf8)[...], allowing: URISyntax.isQueryCharacter)
    } catch {
      throw .invalidURI(text: withoutSecrets, reason: error)
    }
    return encodedQuery.isEmpty ? self : with(query: joinedQuery(encodedQuery))
  }

  package var withoutQueryAndFragment: URI {
    URI(scheme: scheme, host: host, port: port, path: path, query: nil, fragment: nil)
  }

  /// Returns the URI with another port; `nil` removes the port. A URI without a host does not change.
  package func replacing(port: UInt16?) -> URI {
    guard let host, !host.isEmpty else { return self }
    return URI(scheme: scheme, host: host, port: port, path: path, query: query, fragment: fragment)
  }

  /// Returns the URI with another fragment. Percent-encodes invalid characters and keeps existing escapes.
  package func with(fragment: String?) -> URI {
    URI(
      scheme: scheme, host: host, port: port, path: path, query: query,
      fragment: fragment.map { URISyntax.escaping(Array($0.utf8)) })
  }

  /// Resolves a reference (RFC 3986, section 5.2). Returns `nil` if the reference is invalid or has dot segments.
  package func resolving(_ reference: String) -> URI? {
    if let whole = try? URI(parsing: reference) { return whole }
    guard let host, !reference.isEmpty else { return nil }
    let authority = "\(scheme)://\(host)" + (port.map { ":\($0)" } ?? "")
    let text: String
    switch reference.first {
    case "/" where reference.hasPrefix("//"): text = "\(scheme):\(reference)"
    case "/": text = authority + reference
    case "?": text = authority + path + reference
    case "#": return nil
    default:
      // A colon in the first segment would make the text before it a scheme (RFC 3986, 4.2).
      guard !reference.prefix(while: { !"/?#".contains($0) }).contains(":") else { return nil }
      let folder = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[...$0]) } ?? "/"
      text = authority + folder + reference
    }
    guard let target = try? URI(parsing: text),
      !target.path.split(separator: "/").contains(where: { $0 == "." || $0 == ".." })
    else { return nil }
    return target
  }

  private func joinedQuery(_ addition: String) -> String {
    guard let query, !query.isEmpty else { return addition }
    return query.hasSuffix("&") ? query + addition : "\(query)&\(addition)"
  }

  private func with(query: String) -> URI {
    URI(scheme: scheme, host: host, port: port, path: path, query: query, fragment: fragment)
  }
}
