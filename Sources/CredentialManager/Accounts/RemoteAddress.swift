import HTTP
import Text

/// Where a repository is, as a remote's URL says it: the host and the pieces of the path, whatever the scheme.
package struct RemoteAddress: Sendable, Equatable {
  /// The host in lower case, with a port where it is not the ordinary one of `https`, `http` or `ssh`.
  package let host: String
  /// The pieces of the path in lower case: the hosts of repositories do not tell owners by case.
  package let path: [String]

  package func contains(_ other: RemoteAddress) -> Bool { host == other.host && other.path.starts(with: path) }
}

extension RemoteAddress {
  /// Without user information, query and fragment, which may be secret. The user of `git@host:owner` stays.
  package static func written(_ text: String) -> String {
    let text = text.prefix { $0 != "?" && $0 != "#" }
    guard let start = text.firstPlace(of: "://")?.upperBound else { return String(text) }
    let rest = text[start...]
    let authority = rest.prefix { $0 != "/" }
    let host = authority.lastIndex(of: "@").map { authority.index(after: $0) } ?? start
    return String(text[..<start] + rest[host...])
  }

  /// Reads the forms of git-fetch(1), GIT URLS, and `host/owner`; `nil` for what has no host, such as a local path.
  package init?(_ text: String) {
    var rest = text.prefix { $0 != "?" && $0 != "#" }
    var scheme = "https"
    var (hasScheme, isShort) = (false, false)
    if let end = rest.firstPlace(of: "://") {
      hasScheme = true
      scheme = rest[..<end.lowerBound].lowercased()
      rest = rest[end.upperBound...]
    } else if let colon = rest.firstIndex(of: ":"), !rest[..<colon].contains("/"),
      // A port, and no path: `host:8443/owner`.
      rest[rest.index(after: colon)...].prefix(while: { $0 != "/" }).contains(where: { !("0"..."9").contains($0) })
    {
      isShort = true
    }
    let end = rest.firstIndex { $0 == (isShort ? ":" : "/") } ?? rest.endIndex
    let tail = end == rest.endIndex ? "" : rest[rest.index(after: end)...]
    var authority = rest[..<end].lowercased()
    if let at = authority.lastIndex(of: "@") { authority.removeSubrange(...at) }
    // Of a URL that was mistyped, the password would be taken for a path: `https:/octo:secret@host`. The sign of an
    // owner begins a piece.
    if !hasScheme || authority.contains(":"),
      tail.split(separator: "/").contains(where: { $0.dropFirst().contains("@") })
    {
      return nil
    }
    // The URI's rules for hosts and ports are the stricter ones.
    guard let uri = try? URI(parsing: "https://\(authority)/"), var host = uri.host, !host.isEmpty else { return nil }
    let ordinary: UInt16? = ["https": 443, "http": 80, "ssh": 22, "git+ssh": 22][scheme]
    if let port = uri.port, port != ordinary { host += ":\(port)" }
    self.host = host
    var path = tail.split(separator: "/").map { $0.lowercased() }
    if let last = path.last, last.hasSuffix(".git"), last.count > 4 { path[path.count - 1] = String(last.dropLast(4)) }
    self.path = path
  }

  package init(_ uri: URI, path: String?) {
    let text = uri.origin + "/" + (path ?? uri.path)
    self = RemoteAddress(text) ?? RemoteAddress(host: uri.host ?? "", path: [])
  }
}
