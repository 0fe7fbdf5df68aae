import HTTP
import Platform
import Text

/// A helper in git's configuration (gitcredentials(7)).
struct GitHelperEntry: Equatable {
  /// `system`, `global`, `local`, `worktree` or `command`.
  let scope: String
  /// The file, or whatever else it is from.
  let origin: String
  /// Such as `credential.https://github.com.helper`.
  let key: String
  let value: String

  /// Reads `git config --null --show-scope --show-origin --get-regexp`. Before git 2.26 there are no scopes, so the
  /// file tells them.
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

  /// The URL that it is for; `nil` for all.
  var pattern: String? {
    let middle = key.dropFirst("credential.".count)
    return middle == "helper" ? nil : String(middle.dropLast(".helper".count))
  }

  /// The entries that git has, in the order in which it asks them; `nil` where it cannot read them.
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

  /// Those that git asks: an empty entry sends those before it away (gitcredentials(7)).
  static func asked(_ entries: some Sequence<GitHelperEntry>) -> [GitHelperEntry] {
    entries.reduce(into: []) { list, entry in if entry.value.isEmpty { list = [] } else { list.append(entry) } }
  }

  /// Those that git may ask for some repository on a host, and that nothing for all of the host sends away.
  static func told(_ entries: [GitHelperEntry], at host: String) -> [GitHelperEntry] {
    asked(entries.filter { $0.applies(to: host) || $0.concerns(host) && !$0.value.isEmpty })
  }

  /// The URLs for which git has a host's entries: on this machine nobody needs https.
  static func urls(of host: String) -> [String] {
    let isLoopback = (try? URI(parsing: "http://" + host))?.isLoopback == true
    return ["https://" + host] + (isLoopback ? ["http://" + host] : [])
  }

  func applies(to host: String) -> Bool { matches(host, wholly: true) }

  /// Whether it is for a host, or for a path or a user there.
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

  /// The file that git runs; `nil` where only a shell knows.
  var program: String? {
    if value.hasPrefix("!") { return nil }
    let first = value.split(separator: " ").first.map(String.init) ?? ""
    if first.hasPrefix("/") { return first }
    return (try? Launcher.find("git-credential-" + first)) ?? "git-credential-" + first
  }

  /// Whether the value can be shown: a line of a shell may have a password in it.
  private var isPlain: Bool { !value.hasPrefix("!") || !value.contains { "=;$".contains($0) } }

  /// The beginning of a line of a shell, in which no password can be.
  private var beginning: String { String(value.prefix { !" =;$".contains($0) }) }

  /// Whether it keeps what it is told in memory only, and nothing that is of use only now (git-credential-cache(1)).
  var keepsNothing: Bool { value == "cache" || value.hasPrefix("cache ") }

  var shown: String { isPlain ? value : beginning + " …" }

  var removalOfAll: Remedy {
    scope == "command" ? Self.forgettingCommandLine : "\(run: command + ["--unset-all", key])"
  }

  /// What git was told for this time alone stands in variables (git(1)).
  private static let forgettingCommandLine: Remedy = "\(run: "unset", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS")"

  /// By its file: there may be several for the same scope, and files that they include. That of a repository is not
  /// named from the folder here.
  private var command: [String] {
    guard origin.hasPrefix("/") else { return ["git", "config", "--\(scope)"] }
    return (File.isWritable(origin) ? [] : ["sudo"]) + ["git", "config", "--file", origin]
  }

  /// What has git ask credmgr alone for its hosts; `nil` where another entry would still come later.
  var ordering: Remedy? {
    switch scope {
    case "system", "global": "\(credmgr: "git-setup") to have git ask credmgr alone there"
    case "local": "\(credmgr: "git-setup", "--local") to have git ask credmgr alone there"
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
