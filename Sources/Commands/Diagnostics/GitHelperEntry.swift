import CredentialManager
import HTTP
import JSON
import OAuth
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

  /// Reads `git config --null --show-scope --show-origin --get-regexp`.
  static func entries(_ output: String) -> [GitHelperEntry] {
    let fields = output.split(separator: "\0", omittingEmptySubsequences: false).map(String.init)
    return stride(from: 0, to: fields.count - 2, by: 3).map { index in
      let pair = fields[index + 2].split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
      let origin = fields[index + 1]
      return GitHelperEntry(
        scope: fields[index], origin: origin.hasPrefix("file:") ? String(origin.dropFirst(5)) : origin,
        key: String(pair[0]), value: pair.count > 1 ? String(pair[1]) : "")
    }
  }

  /// The URL that it is for; `nil` for all.
  var pattern: String? {
    let middle = key.dropFirst("credential.".count)
    return middle == "helper" ? nil : String(middle.dropLast(".helper".count))
  }

  /// Whether it is for every repository on a host.
  func applies(to host: String) -> Bool {
    guard let pattern else { return true }
    guard let uri = try? URI(parsing: "https://" + host),
      let own = try? URI(parsing: pattern.firstPlace(of: "://") != nil ? pattern : "https://" + pattern)
    else { return false }
    guard ["", "/"].contains(own.path) else { return false }
    if own.isSecure { return HostPattern(pattern).matches(uri) }
    // On this machine nobody needs https, and git has another entry for each scheme.
    guard own.scheme == "http", uri.isLoopback, let plain = try? URI(parsing: "http://" + host) else { return false }
    return HostPattern.authority(own) == HostPattern.authority(plain)
  }

  /// Whether it is one of credmgr, of this program or of another.
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

  var shown: String { isPlain ? value : beginning + " …" }

  /// What takes out all that is under its key there.
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

  /// What takes it out.
  var removal: Remedy {
    if scope == "command" { return Self.forgettingCommandLine }
    if isPlain { return "\(run: command + ["--fixed-value", "--unset-all", key, value])" }
    let pattern = beginning.map { $0.isLetter || $0.isNumber || "!/_-".contains($0) ? String($0) : "[\($0)]" }.joined()
    return "\(run: command + ["--unset-all", key, "^" + pattern])"
  }
}
