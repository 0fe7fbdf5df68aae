/// An absolute URI (RFC 3986), also `ncipapp:/path` and `urn:ietf:wg:oauth:2.0:oob` (RFC 8252, section 7.1). The
/// description leaves query and fragment out, because they may be secret.
package struct URI: Hashable, Sendable, Redacted {
  package let scheme: String
  /// The host in lower case, an IPv6 address in brackets; nil where there is no `//`, and empty in `app://?a=b`.
  package let host: String?
  package let port: UInt16?
  package let path: String
  package let query: String?
  package let fragment: String?
}

extension URI {
  /// Query and fragment may hold what browsers leave unencoded there (`[]{}|^` and the backtick).
  /// Refuses relative references, user information, numeric hosts other than four decimal numbers, ports outside
  /// 1…65535, and `http` or `https` without a host.
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

  /// The port, or the one that the scheme implies (80, 443); nil for other schemes.
  package var effectivePort: UInt16? { port ?? defaultPort }

  private var defaultPort: UInt16? { ["https": 443, "http": 80][scheme] }

  /// As a browser's `Origin` field (RFC 6454, section 6.2): the implied port is left out.
  package var origin: String {
    guard let host else { return "\(scheme):" }
    guard let port, port != defaultPort else { return "\(scheme)://\(host)" }
    return "\(scheme)://\(host):\(port)"
  }

  /// Whether the host is written as `localhost`, `[::1]` or an address of 127.0.0.0/8. No name is looked up.
  package var isLoopback: Bool {
    guard let host else { return false }
    if host == "localhost" || host == "[::1]" { return true }
    return host.hasPrefix("127.") && address != nil
  }

  /// The four or sixteen bytes of a host that is written as an address; `nil` for a name.
  package var address: [UInt8]? { host.flatMap { URISyntax.address(Array($0.utf8)[...]) } }

  package var isSecure: Bool { scheme == "https" }

  package var queryParameters: FormParameters { FormParameters(decoding: query ?? "") }

  /// Adds parameters behind those of an existing query, and keeps the fragment.
  package func adding(query parameters: FormParameters) -> URI {
    parameters.isEmpty ? self : with(query: joinedQuery(parameters.encoded))
  }

  /// Adds text that is encoded already, for providers that want a parameter in their own encoding.
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

  /// The same with another port; nil leaves the port out. A URI without a host stays as it is.
  package func replacing(port: UInt16?) -> URI {
    guard let host, !host.isEmpty else { return self }
    return URI(scheme: scheme, host: host, port: port, path: path, query: query, fragment: fragment)
  }

  /// The same with another fragment. What cannot stand in a fragment is percent-encoded, and an escape stays an escape.
  package func with(fragment: String?) -> URI {
    URI(
      scheme: scheme, host: host, port: port, path: path, query: query,
      fragment: fragment.map { URISyntax.escaping(Array($0.utf8)) })
  }

  /// RFC 3986, section 5.2; `nil` when it is no reference, or has dots for segments in it.
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
      // RFC 3986, 4.2: a colon in the first segment would be that of a scheme.
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
