import CredmgrHTTP
import CredmgrText

/// The location of a repository from a remote's URL: the host and the parts of the path, whatever the scheme.
package struct RemoteAddress: Sendable, Equatable {
  /// The host in lowercase, with its port unless it is the default of `https`, `http` or `ssh`.
  package let host: String
  /// The parts of the path in lowercase, because git hosts ignore the case of owners.
  package let path: [String]
  /// Whether the text names `http` or `https`, so that the port is that of git's requests.
  let isHTTP: Bool

  package static func == (one: Self, other: Self) -> Bool { one.host == other.host && one.path == other.path }

  package func contains(_ other: RemoteAddress) -> Bool { host == other.host && other.path.starts(with: path) }
}

extension RemoteAddress {
  /// Removes user information, query and fragment, which may be secret. The user of `git@host:owner` stays.
  package static func written(_ text: String) -> String {
    let text = text.prefix { $0 != "?" && $0 != "#" }
    guard let start = text.firstPlace(of: "://")?.upperBound else { return String(text) }
    let rest = text[start...]
    let authority = rest.prefix { $0 != "/" }
    let host = authority.lastIndex(of: "@").map { authority.index(after: $0) } ?? start
    return String(text[..<start] + rest[host...])
  }

  /// Reads the forms in git-fetch(1), GIT URLS, and `host/owner`; `nil` for a text without a host, such as a local
  /// path.
  package init?(_ text: String) {
    var rest = text.prefix { $0 != "?" && $0 != "#" }
    var scheme = "https"
    var (hasScheme, isShort) = (false, false)
    if let end = rest.firstPlace(of: "://") {
      hasScheme = true
      scheme = rest[..<end.lowerBound].lowercased()
      rest = rest[end.upperBound...]
    } else if let colon = rest.firstIndex(of: ":"), !rest[..<colon].contains("/"),
      // A port without a path: `host:8443/owner`.
      rest[rest.index(after: colon)...].prefix(while: { $0 != "/" }).contains(where: { !("0"..."9").contains($0) })
    {
      isShort = true
    }
    let end = rest.firstIndex { $0 == (isShort ? ":" : "/") } ?? rest.endIndex
    let tail = end == rest.endIndex ? "" : rest[rest.index(after: end)...]
    var authority = rest[..<end].lowercased()
    if let at = authority.lastIndex(of: "@") { authority.removeSubrange(...at) }
    // In a mistyped URL, the password would look like a path: `https:/octo:secret@host`. An `@` is allowed only at the
    // start of a part, where it marks an owner.
    if !hasScheme || authority.contains(":"),
      tail.split(separator: "/").contains(where: { $0.dropFirst().contains("@") })
    {
      return nil
    }
    // The URI parser checks hosts and ports more strictly.
    guard let uri = try? URI(parsing: "https://\(authority)/"), var host = uri.host, !host.isEmpty else { return nil }
    let ordinary: UInt16? = ["https": 443, "http": 80, "ssh": 22, "git+ssh": 22][scheme]
    if let port = uri.port, port != ordinary { host += ":\(port)" }
    self.host = host
    var path = tail.split(separator: "/").map { $0.lowercased() }
    if let last = path.last, last.hasSuffix(".git"), last.count > 4 { path[path.count - 1] = String(last.dropLast(4)) }
    self.path = path
    isHTTP = hasScheme && ["https", "http"].contains(scheme)
  }

  package init(_ uri: URI, path: String?) {
    let text = uri.origin + "/" + (path ?? uri.path)
    self = RemoteAddress(text) ?? RemoteAddress(host: uri.host ?? "", path: [], isHTTP: true)
  }
}
