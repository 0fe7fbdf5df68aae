import CredentialManager
import HTTP
import JSON
import Messages
import OAuth
import POSIX

/// A helper in git's configuration (gitcredentials(7)).
struct GitHelperEntry {
  /// `system`, `global`, `local`, `worktree` or `command`.
  let scope: String
  /// The file, or whatever else it is from.
  let origin: String
  /// The whole key, such as `credential.https://github.com.helper`.
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
    return own.isSecure && ["", "/"].contains(own.path) && HostPattern(pattern).matches(uri)
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

  /// What a person is shown of it.
  var shown: String { isPlain ? value : (value.split(separator: " ").first.map(String.init) ?? "") + " …" }

  /// What takes it out; `nil` for what stands on a command line.
  var removal: String? {
    guard ["system", "global", "local", "worktree"].contains(scope) else { return nil }
    if !isPlain { return "run \"git config --\(scope) --edit\"" }
    return "run \"git config --\(scope) --fixed-value --unset-all \(argument(key)) \(argument(value))\""
  }
}

extension Doctor {
  // MARK: git

  mutating func git(_ claimed: [CredentialSource.ClaimedHost]) {
    guard (try? Launcher.find("git")) != nil else { return well(.git, "git is not installed") }
    let pattern = #"^credential\.(.*\.)?helper$"#
    let listed = try? Launcher.run(
      "git", ["config", "--null", "--show-scope", "--show-origin", "--get-regexp", pattern], silencesErrors: true)
    guard let listed, [0, 1].contains(listed.status) else {
      return problem(.git, "git cannot read its configuration", "run \"git config --list\"")
    }
    let entries = GitHelperEntry.entries(String(decoding: listed.output, as: UTF8.self))
    let before = findings.count
    for entry in entries where entry.isOurs { checkProgram(of: entry) }
    let all = Self.asked(entries.filter { $0.pattern == nil })
    let isThere = all.contains(where: \.isOurs)
    if isThere {
      tellOthers(in: all)
    } else if entries.contains(where: { $0.isOurs && $0.pattern == nil }) {
      // An empty entry that comes later.
      let empty = entries.last { $0.value.isEmpty && $0.pattern == nil }
      problem(
        .git,
        Message(
          "an empty helper behind credmgr's sends it away" + (empty.map { " (\($0.origin))" } ?? ""),
          hint: empty?.removal, status: .usage))
    }
    var missing: [String] = []
    for host in Set(claimed.map(\.host)).sorted() {
      let asked = Self.asked(entries.filter { $0.applies(to: host) })
      if asked.contains(where: \.isOurs) {
        // Those for all hosts were told.
        tellOthers(in: asked, whereFor: host)
      } else if isThere || !asked.isEmpty {
        tellAlone(asked, host)
      } else {
        missing.append(host)
      }
    }
    if !entries.contains(where: \.isOurs) {
      note(
        .git, "git does not ask credmgr" + (missing.isEmpty ? "" : " for " + some(missing)),
        "run \"credmgr git-setup\"")
    } else if findings.count == before {
      well(.git, "git asks credmgr first")
    }
  }

  /// An empty entry sends those before it away (gitcredentials(7)).
  private static func asked(_ entries: [GitHelperEntry]) -> [GitHelperEntry] {
    entries.reduce(into: []) { list, entry in
      if entry.value.isEmpty { list = [] } else { list.append(entry) }
    }
  }

  private mutating func tellOthers(in asked: [GitHelperEntry], whereFor host: String? = nil) {
    for entry in asked.prefix(while: { !$0.isOurs }) where host == nil || entry.pattern != nil {
      problem(
        .git,
        Message(
          "git asks the helper \"\(entry.shown)\" first" + (host.map { " for \"\($0)\"" } ?? "")
            + ", and tells it what credmgr answers (\(entry.origin))", hint: entry.removal, status: .usage))
    }
    guard !gitKnowsEphemeral else { return }
    for entry in asked.drop(while: { !$0.isOurs }) where !entry.isOurs && (host == nil || entry.pattern != nil) {
      note(
        .git, "git tells the helper \"\(entry.shown)\" what credmgr answers, for it to keep (\(entry.origin))",
        hints: entry.removal.map { [$0] } ?? [])
    }
  }

  /// From git 2.46 on no helper is told what credmgr gets from a provider.
  private var gitKnowsEphemeral: Bool {
    let output = (try? Launcher.run("git", ["version"]))?.output ?? []
    let numbers = String(decoding: output, as: UTF8.self).split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
    return numbers.count == 2 && (numbers[0], numbers[1]) >= (2, 46)
  }

  private mutating func tellAlone(_ asked: [GitHelperEntry], _ host: String) {
    guard let entry = asked.last else {
      return problem(
        .git, "git asks nobody for \"\(host)\": its configuration sends all helpers away",
        "run \"git config --show-origin --get-all credential.https://\(host).helper\"")
    }
    problem(
      .git,
      Message(
        "git asks the helper \"\(entry.shown)\" for \"\(host)\", and not credmgr (\(entry.origin))",
        hint: entry.pattern == nil
          ? "run \"credmgr git-setup\""
          : entry.scope == "command" ? nil : "run \"git config --\(entry.scope) --unset-all \(argument(entry.key))\"",
        status: .usage))
  }

  private mutating func checkProgram(of entry: GitHelperEntry) {
    guard let file = entry.program else { return }
    guard File.isExecutable(file) else {
      return problem(
        .git,
        Message(
          "git's configuration names \"\(file)\", which is not there (\(entry.origin))",
          hints: [entry.removal, "run \"credmgr git-setup\""].compactMap { $0 }, status: .usage))
    }
    if isAnother(file) {
      note(.git, "git asks \"\(file)\", which is another credmgr than \"\(program)\"")
    }
  }

  /// Whether a file is another program than this one; a link to it is not.
  private func isAnother(_ file: String) -> Bool { Path.resolved(file) != Path.resolved(program) }

  // MARK: docker

  mutating func docker(_ claimed: [CredentialSource.ClaimedHost]) {
    let folder = context.environment("DOCKER_CONFIG").flatMap { $0.isEmpty ? nil : $0 }
    guard let path = (folder ?? context.home.person.map { $0 + "/.docker" }).map({ $0 + "/config.json" }),
      let bytes = try? File.read(path, limit: 1 << 20)
    else { return well(.docker, "docker is not set up") }
    guard let configuration = try? JSONValue.parse(bytes), configuration.members != nil else {
      return problem(.docker, "\"\(path)\" is no JSON object", "correct it: docker cannot read it, either")
    }
    let before = findings.count
    let store = configuration["credsStore"]?.text
    var helpers: [String: String] = [:]
    for member in configuration["credHelpers"]?.members ?? [] { helpers[member.name] = member.value.text }
    if store == "credmgr" || helpers.values.contains("credmgr") { checkDockerProgram() }
    let others = Set(claimed.map(\.host)).sorted().filter { helpers[$0] ?? store != "credmgr" }
    if let first = others.first {
      note(
        .docker, "docker does not ask credmgr for " + some(others),
        "write {\"credHelpers\": {\"\(first)\": \"credmgr\"}} into \"\(path)\"")
    }
    let readable = (configuration["auths"]?.members ?? []).filter { !($0.value["auth"]?.text ?? "").isEmpty }
    if let first = readable.first {
      note(
        .docker, "\"\(path)\" has passwords that can be read, for " + some(readable.map(\.name)),
        "run \"docker logout \(argument(first.name))\"")
    }
    guard findings.count == before else { return }
    let isAsked = store == "credmgr" || helpers.values.contains("credmgr")
    well(.docker, isAsked ? "docker asks credmgr" : "docker does not ask credmgr, and no provider has a registry")
  }

  private mutating func checkDockerProgram() {
    let name = "docker-credential-credmgr"
    guard let file = try? Launcher.find(name) else {
      return problem(
        .docker, "docker looks for \"\(name)\" in PATH, and there is none",
        "run \"ln -s \(argument(program)) \(argument(folderInPath + "/" + name))\"")
    }
    if isAnother(file) { note(.docker, "docker asks \"\(file)\", which is another credmgr than \"\(program)\"") }
  }

  /// A folder in which a person can put a program, where there is one.
  private var folderInPath: String {
    let folders = (context.environment("PATH") ?? "").split(separator: ":").map(String.init)
    let own = folders.first { folder in context.home.person.map { folder.hasPrefix($0 + "/") } ?? false }
    return own ?? "/usr/local/bin"
  }
}
