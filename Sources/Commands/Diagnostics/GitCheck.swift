import CredentialManager
import Platform
import Text

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
    // An empty entry that comes later.
    let isSentAway = general.contains(where: \.isOurs) && !all.contains(where: \.isOurs)
    let hosts = Set(claimed.map(\.host)).sorted()
    tellOthers(in: entries, for: hosts)
    if isSentAway, let empty = general.last(where: \.value.isEmpty) {
      problem(.git, "an empty helper behind credmgr's sends it away (\(empty.origin))", hints: empty.removal)
    }
    var unasked: [String] = []
    // One cause is told once, for all the hosts that it is the cause for.
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
          .git, "git asks nobody for \(some(hosts)): its configuration sends all helpers away",
          hints: entry.pattern == nil ? entry.removal : entry.removalOfAll)
      } else {
        problem(
          .git, "git asks the helper \(quoted(entry.shown)) for \(some(hosts)), and not credmgr (\(entry.origin))",
          hints: entry.pattern == nil ? Self.gitSetup : entry.removalOfAll)
      }
    }
    if diagnostics.count == before { ok(.git, "git asks credmgr first") }
  }

  private static let gitSetup: Remedy = "\(credmgr: "git-setup")"

  /// git does not know credmgr: what would keep `git-setup` from a change comes first.
  private mutating func tellUnasked(_ hosts: [String], _ file: String?) {
    // Without a home git has no configuration to enter anything into.
    if context.homeFault != nil { return ok(.git, "git does not ask credmgr") }
    let isTold = diagnostics.contains { $0.check == .home && $0.severity == .problem }
    let isNeeded = !hosts.isEmpty || value("GIT_CONFIG_GLOBAL") != nil
    if !isTold, let file, let fault = context.obstacle(to: file), isNeeded || !fault.isOfFolder {
      return tell(fault, of: file, as: .git)
    }
    note(.git, "git does not ask credmgr" + (hosts.isEmpty ? "" : " for " + some(hosts)), hint: Self.gitSetup)
  }

  /// The helpers that git asks beside ours for the hosts of our providers. git tells all of them what credmgr answers,
  /// and only its own cache does not keep what is `ephemeral` (git-credential(1)). Without any host, those for all.
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
        ? "git asks the helper \(quoted(entry.shown)) first\(place), and tells it what credmgr answers"
        : "git tells the helper \(quoted(entry.shown)) what credmgr answers\(place), for it to keep"
      if other.isFirst || !entry.keepsNothing {
        problem(.git, Message("\(text) (\(entry.origin))", hints: remedies))
      } else if !gitKnowsEphemeral {
        note(.git, "\(text) (\(entry.origin))", hint: remedies[0])
      }
    }
  }

  /// From git 2.46 on git's own cache does not keep what credmgr gets from a provider.
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
      let text = "git's configuration names \(quoted(file)), which is not there (\(entry.origin))"
      problem(.git, Message(text, hints: remedies))
    } else if Path.resolved(file) != Path.resolved(program) {
      let text = "git asks \(quoted(file)), which is another credmgr than \(quoted(program))"
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

  /// A mistake in git's configuration, as git says it; `nil` where it says something else.
  static func gitFailure(_ said: String) -> Message? {
    let words = said.split(separator: "\n").first.map(plain) ?? ""
    guard let mark = words.firstPlace(of: "bad config line ") else { return nil }
    let rest = words[mark.upperBound...]
    guard let place = rest.firstPlace(of: " in file "), let number = Int(rest.prefix { $0.isNumber }) else {
      return nil
    }
    let file = String(rest[place.upperBound...])
    return .usage("git cannot read its configuration: \(words)")
      .hint("correct line \(number), or \(run: "sed", "-i.old", "\(number)s/^/# /", file) to do without it")
  }
}

extension Array {
  /// Appends a value to those of a key, unless it is among them.
  mutating func note<Key: Equatable, Value: Equatable>(_ value: Value, of key: Key)
  where Element == (key: Key, values: [Value]) {
    guard let index = firstIndex(where: { $0.key == key }) else { return append((key, [value])) }
    if !self[index].values.contains(value) { self[index].values.append(value) }
  }
}

extension Remedy {
  static let seeingGitConfiguration: Remedy =
    "\(run: "git", "config", "--list", "--show-origin"), and mend what it names"
}

extension Context {
  /// Says which helpers git would tell a provider's tokens: it was set up before the provider was added.
  func tellOtherGitHelpers(of provider: String) {
    let claims = ((try? source.hostClaims()) ?? []).filter { $0.helper == .git && $0.provider == provider }
    guard !claims.isEmpty, (try? Launcher.find("git")) != nil, let entries = GitHelperEntry.all() else { return }
    var doctor = Doctor(self)
    doctor.tellOthers(in: entries, for: Set(claims.map(\.host)).sorted())
    doctor.tellAll()
  }

  /// The file into which git writes what is for all of a person's repositories (git-config(1)).
  var gitFile: String? {
    if let path = environment("GIT_CONFIG_GLOBAL") { return path.hasPrefix("/") ? path : nil }
    guard let person = home.person else { return nil }
    let own = person + "/.gitconfig"
    let other = (Environment.text("XDG_CONFIG_HOME", environment) ?? person + "/.config") + "/git/config"
    return !File.exists(own) && !File.isLink(own) && File.exists(other) ? other : own
  }

  /// - Parameter scope: the option that says which one.
  func gitRefusal(_ said: String, status: Int32, scope: String) -> Message {
    if let failure = Doctor.gitFailure(said) { return failure }
    let words = said.split(separator: "\n").first.map(Doctor.plain) ?? "it ended with the status \(status)"
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
