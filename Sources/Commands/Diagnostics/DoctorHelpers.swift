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

  /// What a person is shown of it.
  var shown: String { isPlain ? value : beginning + " …" }

  /// What takes out all that is under its key there; `nil` for what stands on a command line.
  var removalOfAll: Remedy? {
    scope == "command" ? nil : "\(run: command + ["--unset-all", key])"
  }

  /// By its file: there may be several for the same scope, and files that they include. That of a repository is not named from
  /// the folder here.
  private var command: [String] {
    guard origin.hasPrefix("/") else { return ["git", "config", "--\(scope)"] }
    return (File.isWritable(origin) ? [] : ["sudo"]) + ["git", "config", "--file", origin]
  }

  /// What takes it out; `nil` for what stands on a command line.
  var removal: Remedy? {
    if scope == "command" { return nil }
    if isPlain { return "\(run: command + ["--fixed-value", "--unset-all", key, value])" }
    let pattern = beginning.map { $0.isLetter || $0.isNumber || "!/_-".contains($0) ? String($0) : "[\($0)]" }.joined()
    return "\(run: command + ["--unset-all", key, "^" + pattern])"
  }
}

/// Why a file cannot be written that a program puts in the place of the one before.
private func obstacle(to path: String) -> SetUpFinding.FileFault? {
  if File.isLink(path), !File.exists(path) { return .danglingLink }
  let place = Path.resolved(path) ?? path
  guard let folder = Path.directory(of: place) else { return nil }
  return !File.isWritable(folder) && File.isOwn(folder) == true ? .unwritable(folder: folder) : nil
}

extension Doctor {
  // MARK: git

  mutating func git(_ claimed: [HostClaim]) {
    guard (try? Launcher.find("git")) != nil else { return well(.git, "git is not installed") }
    let file = gitFile
    if let file, File.isDirectory(file.path) { return tell(.gitFile(file.path, .notFile)) }
    let pattern = #"^credential\.(.*\.)?helper$"#
    let listed = try? Launcher.run(
      "git", ["config", "--null", "--show-scope", "--show-origin", "--get-regexp", pattern], errors: .silenced)
    guard let listed, [0, 1].contains(listed.status) else { return tell(Self.gitFailure()) }
    let entries = GitHelperEntry.entries(String(decoding: listed.output, as: UTF8.self))
    let before = findings.count
    for entry in entries where entry.isOurs { checkProgram(of: entry) }
    let all = Self.asked(entries.filter { $0.pattern == nil })
    if all.contains(where: \.isOurs) {
      tellOthers(in: all)
    } else if entries.contains(where: { $0.isOurs && $0.pattern == nil }) {
      // An empty entry that comes later.
      let empty = entries.last { $0.value.isEmpty && $0.pattern == nil }
      tell(.gitHelperSentAway(origin: empty?.origin, removal: empty?.removal))
    }
    let isSomewhere = entries.contains(where: \.isOurs)
    // Where ours is sent away everywhere, that was told.
    let isSentAway = entries.contains { $0.isOurs && $0.pattern == nil } && !all.contains(where: \.isOurs)
    var unasked: [String] = []
    // One cause is told once, for all the hosts that it is the cause for.
    var causes: [(entry: GitHelperEntry, hosts: [String])] = []
    for host in Set(claimed.map(\.host)).sorted() {
      let own = entries.filter { $0.applies(to: host) }
      let asked = Self.asked(own)
      if asked.contains(where: \.isOurs) {
        // Those for all hosts were told.
        tellOthers(in: asked, whereFor: host)
        continue
      }
      unasked.append(host)
      guard let cause = asked.last ?? own.last, !isSentAway || cause.pattern != nil else { continue }
      if let index = causes.firstIndex(where: { $0.entry == cause }) {
        causes[index].hosts.append(host)
      } else {
        causes.append((cause, [host]))
      }
    }
    guard isSomewhere else {
      // Without a home git has no configuration to enter anything into.
      if context.homeFault != nil { return well(.git, "git does not ask credmgr") }
      // What keeps anything from being written there is told once.
      let isTold = findings.contains { $0.check == .home && $0.state == .problem }
      if !isTold, let file, let fault = file.fault(isNeeded: !unasked.isEmpty) {
        return tell(.gitFile(file.path, fault))
      }
      return tell(.gitDoesNotAsk(unasked))
    }
    for (entry, hosts) in causes {
      if entry.value.isEmpty {
        tell(.gitAsksNobody(hosts, removal: entry.pattern == nil ? entry.removal : entry.removalOfAll))
      } else if entry.pattern == nil {
        tell(.gitAsksAnother(entry.shown, hosts, origin: entry.origin))
      } else {
        tell(.gitAsksOwn(entry.shown, hosts, origin: entry.origin, removal: entry.removalOfAll))
      }
    }
    if findings.count == before { well(.git, "git asks credmgr first") }
  }

  /// The file into which git writes what is for all of a person's repositories (git-config(1)).
  private struct GitFile {
    let path: String
    let isFromEnvironment: Bool

    /// Why git cannot write it.
    ///
    /// - Parameter isNeeded: whether git is to ask us for anything.
    func fault(isNeeded: Bool) -> SetUpFinding.FileFault? {
      if isFromEnvironment, !File.isLink(path), !File.isDirectory(Path.directory(of: path) ?? "/") {
        return .nowhere(variable: "GIT_CONFIG_GLOBAL")
      }
      let fault = obstacle(to: path)
      if case .unwritable = fault, !isNeeded { return nil }
      return fault
    }
  }

  private var gitFile: GitFile? {
    if let path = context.environment("GIT_CONFIG_GLOBAL") {
      return path.hasPrefix("/") ? GitFile(path: path, isFromEnvironment: true) : nil
    }
    guard let person = context.home.person else { return nil }
    let own = person + "/.gitconfig"
    if File.exists(own) || File.isLink(own) { return GitFile(path: own, isFromEnvironment: false) }
    let folder = context.environment("XDG_CONFIG_HOME").flatMap { $0.isEmpty ? nil : $0 } ?? person + "/.config"
    let other = folder + "/git/config"
    return GitFile(path: File.exists(other) ? other : own, isFromEnvironment: false)
  }

  /// Why git cannot read its configuration, as it says itself.
  private static func gitFailure() -> SetUpFinding {
    let listed = try? Launcher.run("sh", ["-c", "exec git config --list 2>&1 >/dev/null"])
    return gitFailure(String(decoding: listed?.output ?? [], as: UTF8.self))
  }

  /// The same for what git said.
  static func gitFailure(_ text: String) -> SetUpFinding {
    let said = text.split(separator: "\n").first.map(String.init) ?? ""
    let words = said.hasPrefix("fatal: ") ? String(said.dropFirst("fatal: ".count)) : said
    let mark = "bad config line "
    guard let place = words.firstPlace(of: mark) else { return .gitFails(words: words, file: nil, line: nil) }
    let rest = words[place.upperBound...]
    let file = rest.firstPlace(of: " in file ").map { String(rest[$0.upperBound...]) }
    return .gitFails(words: words, file: file, line: Int(rest.prefix { $0.isNumber }))
  }

  /// An empty entry sends those before it away (gitcredentials(7)).
  private static func asked(_ entries: [GitHelperEntry]) -> [GitHelperEntry] {
    entries.reduce(into: []) { list, entry in
      if entry.value.isEmpty { list = [] } else { list.append(entry) }
    }
  }

  private mutating func tellOthers(in asked: [GitHelperEntry], whereFor host: String? = nil) {
    for entry in asked.prefix(while: { !$0.isOurs }) where host == nil || entry.pattern != nil {
      tell(.gitAsksFirst(entry.shown, host: host, origin: entry.origin, removal: entry.removal))
    }
    guard !gitKnowsEphemeral else { return }
    for entry in asked.drop(while: { !$0.isOurs }) where !entry.isOurs && (host == nil || entry.pattern != nil) {
      tell(.gitTells(entry.shown, origin: entry.origin, removal: entry.removal))
    }
  }

  /// From git 2.46 on no helper is told what credmgr gets from a provider.
  private var gitKnowsEphemeral: Bool {
    let output = (try? Launcher.run("git", ["version"]))?.output ?? []
    let numbers = String(decoding: output, as: UTF8.self).split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
    return numbers.count == 2 && (numbers[0], numbers[1]) >= (2, 46)
  }

  private mutating func checkProgram(of entry: GitHelperEntry) {
    guard let file = entry.program else { return }
    guard File.isExecutable(file) else {
      return tell(.gitProgramMissing(file, origin: entry.origin, removal: entry.removal, program: program))
    }
    if isAnother(file) { tell(.gitOtherProgram(file, program: program, removal: entry.removal)) }
  }

  /// Whether a file is another program than this one; a link to it is not.
  private func isAnother(_ file: String) -> Bool { Path.resolved(file) != Path.resolved(program) }

  // MARK: docker

  mutating func docker(_ claimed: [HostClaim]) {
    guard let path = DockerConfiguration.path(context) else { return well(.docker, "docker is not set up") }
    let bytes: [UInt8]
    do throws(POSIXError) {
      bytes = try File.read(path, limit: 1 << 20, ordinary: true)
    } catch .notFound {
      if File.isLink(path) { return tell(.dockerFile(path, .danglingLink)) }
      return well(.docker, "docker is not set up")
    } catch .notRegularFile {
      return tell(.dockerFile(path, .notFile))
    } catch .permissionDenied where File.isOwn(path) == true {
      return tell(.dockerFile(path, .unreadable))
    } catch {
      return well(.docker, "docker is not set up")
    }
    guard let configuration = DockerConfiguration(bytes) else { return tell(.dockerUnreadable(path)) }
    let before = findings.count
    if configuration.asksUs { checkDockerProgram() }
    for (name, registries) in configuration.others
    where (try? Launcher.find("docker-credential-" + name)) == nil {
      tell(.dockerHelperMissing(name, registries))
    }
    let others = Set(claimed.map(\.host)).sorted().filter { configuration.helper(of: $0) != "credmgr" }
    if !others.isEmpty {
      if let fault = obstacle(to: path) { return tell(.dockerFile(path, fault)) }
      tell(.dockerDoesNotAsk(others))
    }
    let readable = configuration.readablePasswords
    if !readable.isEmpty { tell(.dockerPasswords(path, readable)) }
    guard findings.count == before else { return }
    well(
      .docker,
      configuration.asksUs ? "docker asks credmgr" : "docker does not ask credmgr, and no provider has a registry")
  }

  private mutating func checkDockerProgram() {
    let name = "docker-credential-credmgr"
    guard let file = try? Launcher.find(name) else {
      let folder = folderInPath
      return tell(
        .dockerProgramMissing(
          program: program, link: folder + "/" + name, needsRoot: File.exists(folder) && !File.isWritable(folder)))
    }
    if isAnother(file) {
      let folder = Path.directory(of: file) ?? "/"
      tell(.dockerOtherProgram(file, program: program, needsRoot: !File.isWritable(folder)))
    }
  }

  /// A folder in which a person can put a program, where there is one.
  private var folderInPath: String {
    let folders = (context.environment("PATH") ?? "").split(separator: ":").map(String.init)
    let own = folders.first { folder in context.home.person.map { folder.hasPrefix($0 + "/") } ?? false }
    return own ?? "/usr/local/bin"
  }
}
