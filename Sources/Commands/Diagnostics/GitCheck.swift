import CredentialManager
import HTTP
import Platform
import Text

extension Doctor {
  mutating func checkGit(_ claimed: [HostClaim]) {
    guard (try? Launcher.find("git")) != nil else { return ok(.git, "git is not installed") }
    let file = gitFile
    if let file, File.isDirectory(file.path) { return tellGitFile(file.path, .notFile(file.path)) }
    let pattern = #"^credential\.(.*\.)?helper$"#
    let listed = try? Launcher.run(
      "git", ["config", "--null", "--show-scope", "--show-origin", "--get-regexp", pattern], errors: .silenced)
    guard let listed, [0, 1].contains(listed.status) else { return problem(.git, Self.gitFailure()) }
    let entries = GitHelperEntry.entries(String(decoding: listed.output, as: UTF8.self))
    let before = diagnostics.count
    for entry in entries where entry.isOurs { checkProgram(of: entry) }
    let all = Self.asked(entries.filter { $0.pattern == nil })
    if all.contains(where: \.isOurs) {
      tellOthers(in: all)
    } else if entries.contains(where: { $0.isOurs && $0.pattern == nil }) {
      // An empty entry that comes later.
      let empty = entries.last { $0.value.isEmpty && $0.pattern == nil }
      problem(
        .git, "an empty helper behind credmgr's sends it away" + (empty.map { " (\($0.origin))" } ?? ""),
        empty?.removal ?? Self.forgettingCommandLine)
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
      if context.homeFault != nil { return ok(.git, "git does not ask credmgr") }
      // What keeps anything from being written there is told once.
      let isTold = diagnostics.contains { $0.check == .home && $0.severity == .problem }
      if !isTold, let file, let fault = file.fault(isNeeded: !unasked.isEmpty) {
        return tellGitFile(file.path, fault)
      }
      return note(
        .git, "git does not ask credmgr" + (unasked.isEmpty ? "" : " for " + some(unasked)), Self.gitSetup)
    }
    for (entry, hosts) in causes {
      if entry.value.isEmpty {
        let removal = entry.pattern == nil ? entry.removal : entry.removalOfAll
        problem(
          .git, "git asks nobody for \(some(hosts)): its configuration sends all helpers away",
          removal ?? Self.forgettingCommandLine)
      } else {
        problem(
          .git, "git asks the helper \(quoted(entry.shown)) for \(some(hosts)), and not credmgr (\(entry.origin))",
          entry.pattern == nil ? Self.gitSetup : entry.removalOfAll ?? Self.forgettingCommandLine)
      }
    }
    if diagnostics.count == before { ok(.git, "git asks credmgr first") }
  }

  private static let gitSetup: Remedy = "\(credmgr: "git-setup")"

  /// What git was told for this time alone stands in variables (git(1)).
  private static let forgettingCommandLine: Remedy =
    "\(run: "unset", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS")"

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
        "git asks the helper \(quoted(entry.shown)) first" + (host.map { " for \(quoted($0))" } ?? "")
          + ", and tells it what credmgr answers (\(entry.origin))", entry.removal ?? Self.forgettingCommandLine)
    }
    guard !gitKnowsEphemeral else { return }
    for entry in asked.drop(while: { !$0.isOurs }) where !entry.isOurs && (host == nil || entry.pattern != nil) {
      note(
        .git, "git tells the helper \(quoted(entry.shown)) what credmgr answers, for it to keep (\(entry.origin))",
        entry.removal ?? Self.forgettingCommandLine)
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
    let removal = entry.removal ?? Self.forgettingCommandLine
    let setup: Remedy = "\(run: program, "git-setup")"
    if !File.isExecutable(file) {
      problem(
        .git, "git's configuration names \(quoted(file)), which is not there (\(entry.origin))", removal, setup)
    } else if isAnother(file) {
      note(.git, "git asks \(quoted(file)), which is another credmgr than \(quoted(program))", removal, setup)
    }
  }

  /// Whether a file is another program than this one; a link to it is not.
  func isAnother(_ file: String) -> Bool { Path.resolved(file) != Path.resolved(program) }

  // MARK: git's file

  private mutating func tellGitFile(_ path: String, _ fault: FileFault) {
    problem(.git, "git cannot use \(quoted(path)): \(fault.words)", fault.remedy)
  }

  /// The file into which git writes what is for all of a person's repositories (git-config(1)).
  private struct GitFile {
    let path: String
    let isFromEnvironment: Bool

    /// Why git cannot write it.
    ///
    /// - Parameter isNeeded: whether git is to ask us for anything.
    func fault(isNeeded: Bool) -> FileFault? {
      if isFromEnvironment, !File.isLink(path), !File.isDirectory(Path.directory(of: path) ?? "/") {
        return FileFault("there is no such folder (GIT_CONFIG_GLOBAL)", "\(run: "unset", "GIT_CONFIG_GLOBAL")")
      }
      let fault = FileFault.obstacle(to: path)
      return fault?.isFolder == true && !isNeeded ? nil : fault
    }
  }

  private var gitFile: GitFile? {
    if let path = context.environment("GIT_CONFIG_GLOBAL") {
      return path.hasPrefix("/") ? GitFile(path: path, isFromEnvironment: true) : nil
    }
    guard let person = context.home.person else { return nil }
    let own = person + "/.gitconfig"
    if File.exists(own) || File.isLink(own) { return GitFile(path: own, isFromEnvironment: false) }
    let other = (value("XDG_CONFIG_HOME") ?? person + "/.config") + "/git/config"
    return GitFile(path: File.exists(other) ? other : own, isFromEnvironment: false)
  }

  /// Why git cannot read its configuration, as it says itself.
  private static func gitFailure() -> Message {
    let listed = try? Launcher.run("sh", ["-c", "exec git config --list 2>&1 >/dev/null"])
    let said = String(decoding: listed?.output ?? [], as: UTF8.self)
    if let failure = gitFailure(said) { return failure }
    let line = said.split(separator: "\n").first.map(String.init) ?? ""
    return Message(
      "git cannot read its configuration"
        + (line.isEmpty ? "" : ": " + (line.hasPrefix("fatal: ") ? line.dropFirst("fatal: ".count) : line[...])),
      hint: .seeingGitConfiguration, status: .usage)
  }

  /// A mistake in git's configuration, as git says it; `nil` where it says something else.
  static func gitFailure(_ said: String) -> Message? {
    let line = said.split(separator: "\n").first.map(String.init) ?? ""
    guard let mark = line.firstPlace(of: "bad config line ") else { return nil }
    let rest = line[mark.upperBound...]
    guard let place = rest.firstPlace(of: " in file "), let number = Int(rest.prefix { $0.isNumber }) else {
      return nil
    }
    let words = line.hasPrefix("fatal: ") ? String(line.dropFirst("fatal: ".count)) : line
    let file = String(rest[place.upperBound...])
    return Message(
      "git cannot read its configuration: \(words)",
      hint: "correct line \(number), or \(run: "sed", "-i.old", "\(number)s/^/# /", file) to do without it",
      status: .usage)
  }
}

extension Remedy {
  static let seeingGitConfiguration: Remedy =
    "\(run: "git", "config", "--list", "--show-origin"), and mend what it names"
}

/// Why another program's configuration cannot be used.
struct FileFault {
  let words: String
  let remedy: Remedy
  /// Whether nothing can be written in its folder.
  var isFolder = false

  init(_ words: String, _ remedy: Remedy) { (self.words, self.remedy) = (words, remedy) }

  /// There is a folder, or whatever else is no file, in its place.
  static func notFile(_ path: String) -> FileFault { FileFault("it is not an ordinary file", .settingAside(path)) }

  /// We have no rights to it.
  static func unreadable(_ path: String) -> FileFault { FileFault("permission denied", .opening(path)) }

  /// Why a file cannot be written that a program puts in the place of the one before.
  static func obstacle(to path: String) -> FileFault? {
    if File.isLink(path), !File.exists(path) {
      return FileFault("it is a link to where nothing can be", "\(run: "rm", path)")
    }
    guard let folder = Path.directory(of: Path.resolved(path) ?? path), !File.isWritable(folder),
      File.isOwn(folder) == true
    else { return nil }
    var fault = FileFault("nothing can be written in \(quoted(folder))", .opening(folder))
    fault.isFolder = true
    return fault
  }
}
