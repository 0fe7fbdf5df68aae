import CredmgrHTTP
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

/// A helper in git's configuration (gitcredentials(7)).
struct GitHelperEntry: Equatable {
  /// `system`, `global`, `local`, `worktree` or `command`.
  let scope: String
  /// The file or other source.
  let origin: String
  /// For example `credential.https://github.com.helper`.
  let key: String
  let value: String

  /// Reads `git config --null --show-scope --show-origin --get-regexp`. git before 2.26 prints no scopes, so the file
  /// decides.
  static func entries(_ output: String, hasScopes: Bool = true) -> [GitHelperEntry] {
    let fields = output.split(separator: "\0", omittingEmptySubsequences: false).map(String.init)
    let width = hasScopes ? 3 : 2
    return stride(from: width - 1, to: fields.count, by: width).map { index in
      let pair = fields[index].split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
      let isFile = fields[index - 1].hasPrefix("file:")
      let origin = isFile ? String(fields[index - 1].dropFirst(5)) : fields[index - 1]
      let scope =
        !isFile ? "command" : !origin.hasPrefix("/") ? "local" : origin.hasPrefix("/etc/") ? "system" : "global"
      return GitHelperEntry(
        scope: hasScopes ? fields[index - 2] : scope, origin: origin, key: String(pair[0]),
        value: pair.count > 1 ? String(pair[1]) : "")
    }
  }

  /// The URL for this helper; `nil` for all URLs.
  var pattern: String? {
    let middle = key.dropFirst("credential.".count)
    return middle == "helper" ? nil : String(middle.dropLast(".helper".count))
  }

  /// Returns git's entries in the order of use; `nil` if git cannot read them.
  static func all() -> [GitHelperEntry]? {
    for hasScopes in [true, false] {
      let options = ["config", "--null"] + (hasScopes ? ["--show-scope"] : [])
      let pattern = #"^credential\.(.*\.)?helper$"#
      let listed = try? Launcher.run("git", options + ["--show-origin", "--get-regexp", pattern], errors: .silenced)
      guard let listed, [0, 1].contains(listed.status) else { continue }
      return entries(String(decoding: listed.output, as: UTF8.self), hasScopes: hasScopes)
    }
    return nil
  }

  /// Returns the entries in use: an empty entry removes those before it (gitcredentials(7)).
  static func asked(_ entries: some Sequence<GitHelperEntry>) -> [GitHelperEntry] {
    entries.reduce(into: []) { list, entry in if entry.value.isEmpty { list = [] } else { list.append(entry) } }
  }

  /// Returns the entries that git may use for some repository on a host, unless one for the whole host removes them.
  static func told(_ entries: [GitHelperEntry], at host: String) -> [GitHelperEntry] {
    asked(entries.filter { $0.applies(to: host) || $0.concerns(host) && !$0.value.isEmpty })
  }

  /// Returns the URLs for a host's entries. Loopback hosts also work over http.
  static func urls(of host: String) -> [String] {
    let isLoopback = (try? URI(parsing: "http://" + host))?.isLoopback == true
    return ["https://" + host] + (isLoopback ? ["http://" + host] : [])
  }

  func applies(to host: String) -> Bool { matches(host, wholly: true) }

  /// Whether the entry is for a host, or for a path or user there.
  func concerns(_ host: String) -> Bool { matches(host, wholly: false) }

  private func matches(_ host: String, wholly: Bool) -> Bool {
    guard let pattern else { return true }
    let parts = pattern.pieces(separatedBy: "://")
    let scheme = parts.count > 1 ? parts[0].lowercased() : "https"
    let rest = parts[parts.count > 1 ? 1 : 0].lowercased()
    let authority = rest.prefix { $0 != "/" }
    let name = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
    let isWhole = name.count == authority.count && rest.dropFirst(authority.count).allSatisfy { $0 == "/" }
    guard isWhole || !wholly, Self.urls(of: host).contains(where: { $0.hasPrefix(scheme + "://") }) else {
      return false
    }
    func labels(_ text: String) -> [String] {
      let port = scheme == "https" ? ":443" : ":80"
      let plain = text.hasSuffix(port) ? String(text.dropLast(port.count)) : text
      return plain.pieces(separatedBy: ".").map(String.init)
    }
    let (own, wanted) = (labels(String(name)), labels(host))
    return own.count == wanted.count && zip(own, wanted).allSatisfy { $0 == "*" || $0 == $1 }
  }

  var isOurs: Bool {
    let words = value.split(separator: " ")
    guard let first = words.first else { return false }
    let name = Path.lastComponent(of: String(first.filter { $0 != "'" && $0 != "!" }))
    return name == "git-credential-credmgr" || name == "credmgr"
      || (value.firstPlace(of: "/credmgr'") != nil && value.hasSuffix("git-credential"))
  }

  /// The program that git runs; `nil` if only a shell can tell.
  var program: String? {
    let isShell = value.hasPrefix("!")
    if isShell, !String(value.dropFirst()).isASCIIAlphanumeric(or: "/._-+ ") { return nil }
    let first = value.drop { "! ".contains($0) }.split(separator: " ").first.map(String.init) ?? ""
    if first.hasPrefix("/") { return first }
    if isShell { return try? Launcher.find(first) }
    return (try? Launcher.find("git-credential-" + first)) ?? "git-credential-" + first
  }

  /// Whether the value may be shown: a shell command may contain a password.
  private var isPlain: Bool { !value.hasPrefix("!") || !value.contains { "=;$".contains($0) } }

  /// The start of a shell command, which cannot contain a password.
  private var beginning: String { String(value.prefix { !" =;$".contains($0) }) }

  /// Whether the helper stores credentials only in memory, and never `ephemeral` ones (git-credential-cache(1)).
  var keepsNothing: Bool { value == "cache" || value.hasPrefix("cache ") }

  var shown: String { isPlain ? value : beginning + " …" }

  var removalOfAll: Remedy {
    scope == "command" ? Self.forgettingCommandLine : "\(run: command + ["--unset-all", key])"
  }

  /// Environment variables hold settings for a single git run (git(1)).
  private static let forgettingCommandLine: Remedy = "\(run: "unset", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS")"

  /// Names the file, because a scope may have several files and includes. For a repository's file, uses the scope
  /// instead of a relative path.
  private var command: [String] {
    guard origin.hasPrefix("/") else { return ["git", "config", "--\(scope)"] }
    return (File.isWritable(origin) ? [] : ["sudo"]) + ["git", "config", "--file", origin]
  }

  /// Makes git use only credmgr for its hosts; `nil` if another entry would still follow.
  var ordering: Remedy? {
    switch scope {
    case "system", "global": "\(credmgr: "git-setup") to make git ask only credmgr there"
    case "local": "\(credmgr: "git-setup", "--local") to make git ask only credmgr there"
    default: nil
    }
  }

  var removal: Remedy {
    if scope == "command" { return Self.forgettingCommandLine }
    if isPlain { return "\(run: command + ["--fixed-value", "--unset-all", key, value])" }
    let pattern = beginning.map { $0.isLetter || $0.isNumber || "!/_-".contains($0) ? String($0) : "[\($0)]" }.joined()
    return "\(run: command + ["--unset-all", key, "^" + pattern])"
  }
}
