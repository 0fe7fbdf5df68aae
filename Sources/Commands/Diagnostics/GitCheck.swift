import CredmgrCredentialManager
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

extension Doctor {
  mutating func checkGit(_ claimed: [HostClaim]) {
    guard (try? Launcher.find("git")) != nil else { return ok(.git, "git is not installed") }
    let file = context.gitFile
    if let file, File.isDirectory(file) { return tell(.notFile(file), of: file, as: .git) }
    guard let entries = GitHelperEntry.all() else { return problem(.git, Self.gitFailure()) }
    let before = diagnostics.count
    for entry in entries where entry.isOurs { checkProgram(of: entry) }
    let general = entries.filter { $0.pattern == nil }
    let all = GitHelperEntry.asked(general)
    // A later empty entry removes ours.
    let isSentAway = general.contains(where: \.isOurs) && !all.contains(where: \.isOurs)
    let hosts = Set(claimed.map(\.host)).sorted()
    tellOthers(in: entries, for: hosts)
    if isSentAway, let empty = general.last(where: \.value.isEmpty) {
      problem(.git, "an empty helper entry after credmgr's disables it (\(empty.origin))", hints: empty.removal)
    }
    var unasked: [String] = []
    // Report each cause only once, for all hosts that it affects.
    var causes: [(key: GitHelperEntry, values: [String])] = []
    for host in hosts {
      let own = entries.filter { $0.applies(to: host) }
      let asked = GitHelperEntry.asked(own)
      if asked.contains(where: \.isOurs) { continue }
      unasked.append(host)
      if let cause = asked.last ?? own.last, !isSentAway || cause.pattern != nil { causes.note(host, of: cause) }
    }
    guard entries.contains(where: \.isOurs) else { return tellUnasked(unasked, file) }
    for (entry, hosts) in causes {
      if entry.value.isEmpty {
        problem(
          .git, "git asks no helper for \(some(hosts)): its configuration disables all helpers",
          hints: entry.pattern == nil ? entry.removal : entry.removalOfAll)
      } else {
        problem(
          .git, "git asks the helper \(quoted(entry.shown)) instead of credmgr for \(some(hosts)) (\(entry.origin))",
          hints: entry.pattern == nil ? Self.gitSetup : entry.removalOfAll)
      }
    }
    if diagnostics.count == before { ok(.git, "git asks credmgr first") }
  }

  private static let gitSetup: Remedy = "\(credmgr: "git-setup")"

  /// Reports that git does not use credmgr. First mentions anything that would make `git-setup` fail.
  private mutating func tellUnasked(_ hosts: [String], _ file: String?) {
    // Without a home, git has no configuration to change.
    if context.homeFault != nil { return ok(.git, "git does not ask credmgr") }
    let isTold = diagnostics.contains { $0.check == .home && $0.severity == .problem }
    let isNeeded = !hosts.isEmpty || value("GIT_CONFIG_GLOBAL") != nil
    if !isTold, let file, let fault = context.obstacle(to: file), isNeeded || !fault.isOfFolder {
      return tell(fault, of: file, as: .git)
    }
    note(.git, "git does not ask credmgr" + (hosts.isEmpty ? "" : " for " + some(hosts)), hint: Self.gitSetup)
  }

  /// Reports other helpers that git uses for our hosts. git passes credmgr's answer to all of them, and only its own
  /// cache respects `ephemeral` (git-credential(1)). Without hosts, reports helpers for all hosts.
  mutating func tellOthers(in entries: [GitHelperEntry], for hosts: [String]) {
    struct Other: Equatable { let entry: GitHelperEntry, isFirst: Bool }
    var others: [(key: Other, values: [String])] = []
    for host in hosts.isEmpty ? [""] : hosts {
      let told =
        hosts.isEmpty
        ? GitHelperEntry.asked(entries.filter { $0.pattern == nil }) : GitHelperEntry.told(entries, at: host)
      guard let ours = told.firstIndex(where: \.isOurs) else { continue }
      for (index, entry) in told.enumerated() where !entry.isOurs {
        others.note(host, of: Other(entry: entry, isFirst: index < ours))
      }
    }
    for (other, itsHosts) in others {
      let entry = other.entry
      let remedies = (hosts.isEmpty ? nil : entry.ordering).map { [$0, entry.removal] } ?? [entry.removal]
      let place = (hosts.isEmpty ? "" : " for " + some(itsHosts))
      let text =
        other.isFirst
        ? "git asks the helper \(quoted(entry.shown)) first\(place) and gives it the tokens from credmgr"
        : "git gives the helper \(quoted(entry.shown)) the tokens from credmgr\(place) to store"
      if other.isFirst || !entry.keepsNothing {
        problem(.git, Message("\(text) (\(entry.origin))", hints: remedies))
      } else if !gitKnowsEphemeral {
        note(.git, "\(text) (\(entry.origin))", hint: remedies[0])
      }
    }
  }

  /// Since git 2.46, git's own cache does not store credmgr's tokens.
  private var gitKnowsEphemeral: Bool {
    let output = (try? Launcher.run("git", ["version"]))?.output ?? []
    let numbers = String(decoding: output, as: UTF8.self).split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
    return numbers.count == 2 && (numbers[0], numbers[1]) >= (2, 46)
  }

  private mutating func checkProgram(of entry: GitHelperEntry) {
    guard let file = entry.program else { return }
    let program = context.program
    let remedies: [Remedy] = [entry.removal, "\(run: context.command, "git-setup")"]
    if !File.isExecutable(file) {
      let text = "git's configuration names the missing program \(quoted(file)) (\(entry.origin))"
      problem(.git, Message(text, hints: remedies))
    } else if Path.resolved(file) != Path.resolved(program) {
      let text = "git asks another credmgr: \(quoted(file)) instead of \(quoted(program))"
      note(.git, text, hints: remedies)
    }
  }

  private static func gitFailure() -> Message {
    let listed = try? Launcher.run("sh", ["-c", "exec git config --list 2>&1 >/dev/null"])
    let said = String(decoding: listed?.output ?? [], as: UTF8.self)
    if let failure = gitFailure(said) { return failure }
    let line = said.split(separator: "\n").first.map(plain) ?? ""
    return .usage("git cannot read its configuration" + (line.isEmpty ? "" : ": " + line)).hint(.seeingGitConfiguration)
  }

  fileprivate static func plain(_ line: Substring) -> String {
    let mark = ["fatal: ", "error: ", "warning: "].first { line.hasPrefix($0) } ?? ""
    return String(line.dropFirst(mark.count))
  }

  /// Returns a mistake in git's configuration, as git reports it; `nil` for other output.
  static func gitFailure(_ said: String) -> Message? {
    let words = said.split(separator: "\n").first.map(plain) ?? ""
    guard let mark = words.firstPlace(of: "bad config line ") else { return nil }
    let rest = words[mark.upperBound...]
    guard let place = rest.firstPlace(of: " in file "), let number = Int(rest.prefix { $0.isNumber }) else {
      return nil
    }
    let file = String(rest[place.upperBound...])
    return .usage("git cannot read its configuration: \(words)")
      .hint("correct line \(number), or \(run: "sed", "-i.old", "\(number)s/^/# /", file) to disable it")
  }
}

extension Remedy {
  static let seeingGitConfiguration: Remedy =
    "\(run: "git", "config", "--list", "--show-origin") and correct the file that it names"
}

extension Context {
  /// Reports helpers that git would pass a provider's tokens to, because git was set up before the provider was added.
  func tellOtherGitHelpers(of provider: String) {
    let claims = ((try? source.hostClaims()) ?? []).filter { $0.helper == .git && $0.provider == provider }
    guard !claims.isEmpty, (try? Launcher.find("git")) != nil, let entries = GitHelperEntry.all() else { return }
    var doctor = Doctor(self)
    doctor.tellOthers(in: entries, for: Set(claims.map(\.host)).sorted())
    doctor.tellAll()
  }

  /// The file with git's configuration for all of the user's repositories (git-config(1)); `nil` if unknown.
  var gitFile: String? {
    if let path = environment("GIT_CONFIG_GLOBAL") { return path.hasPrefix("/") ? path : nil }
    guard let person = home.person else { return nil }
    let own = person + "/.gitconfig"
    let other = (Environment.text("XDG_CONFIG_HOME", environment) ?? person + "/.config") + "/git/config"
    return !File.exists(own) && !File.isLink(own) && File.exists(other) ? other : own
  }

  /// Returns the message for a failed git command. `scope` is the option for the configuration file.
  func gitRefusal(_ said: String, status: Int32, scope: String) -> Message {
    if let failure = Doctor.gitFailure(said) { return failure }
    let words = said.split(separator: "\n").first.map(Doctor.plain) ?? "it failed with status \(status)"
    let message = Message.usage("git did not change its configuration: \(words)")
    let file = scope == "--global" ? gitFile : nil
    if ["No space left", "failed to write"].contains(where: { words.firstPlace(of: $0) != nil }) {
      return Message(message.text, hint: .makingRoom(in: file.flatMap(Path.directory) ?? "."), status: .unexpected)
    }
    if let file, let fault = obstacle(to: file) { return message.hint(fault.remedy) }
    if scope == "--system" { return message.hint("\(run: sudo + [program, "git-setup", "--system"])") }
    return message.hint(.seeingGitConfiguration)
  }
}
