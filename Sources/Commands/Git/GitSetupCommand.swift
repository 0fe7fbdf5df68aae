import CredmgrCredentialManager
import CredmgrJSON
import CredmgrPlatform
import CredmgrText

extension Command {
  static let gitSetup = Command(
    name: "git-setup", operands: "", operandCount: 0...0,
    summary: "Add or remove credmgr as git's credential helper",
    options: [
      Option("--global", "change your own git configuration (default)"),
      Option("--local", "change the configuration of the current repository"),
      Option("--system", "change the configuration of this machine"),
      Option("--remove", "remove the entries of credmgr"), json,
    ],
    notes: [
      "For each host of an added provider, credmgr writes an empty helper entry before its own entry. The empty entry "
        + "keeps git from asking other helpers for these hosts and from giving them tokens. Other hosts keep their "
        + "helpers. Run the command again after adding a provider.",
      "credmgr adds and removes only its own entries.",
    ],
    examples: [
      ("credmgr git-setup", "Set up all your repositories"),
      ("credmgr git-setup --local", "Set up only the current repository"),
    ]
  ) { invocation, context throws(CommandError) in
    let scopes = ["--global", "--local", "--system"].filter { invocation.has($0) }
    guard scopes.count <= 1 else { throw .exclusive(scopes) }
    let scope = scopes.first ?? "--global"
    if scope == "--local" {
      let (status, said) = try git(["rev-parse", "--is-inside-git-dir"])
      if status != 0 {
        guard said.firstPlace(of: "not a git repository") != nil else {
          throw .failed(context.gitRefusal(said, status: status, scope: scope))
        }
        throw .usage(
          "the current directory is not in a git repository",
          hint: "\(credmgr: "git-setup") to set up all repositories")
      }
    }
    let (status, listed) = try git(["config", scope, "--get-all", "credential.helper"])
    // Status 1 means either that the key does not exist or that git cannot read a file.
    if status > 1 || status == 1 && !listed.isEmpty {
      throw .failed(context.gitRefusal(listed, status: status, scope: scope))
    }
    let values = listed.split(separator: "\n").map(String.init)
    // An entry may have options (`credmgr --timeout 8h`) and may be in the system's configuration.
    let inherited = scope == "--global" ? GitHelperEntry.all()?.filter { $0.scope == "system" } ?? [] : []
    let own = values.filter { isOwn($0, context) }
    let existing = own.last ?? inherited.last { $0.pattern == nil && isOwn($0.value, context) }?.value
    let entry = existing ?? helper(context.program)
    let sections = try sections(scope)
    if invocation.has("--remove") {
      let ours = sections.filter { $0.values.contains { isOwn($0, context) } }
      guard !own.isEmpty || !ours.isEmpty else {
        try report(scope, changed: false, hosts: [], context)
        return context.tell("credmgr is not in git's configuration")
      }
      for value in Set(own).sorted() {
        // Use an expression, because "--fixed-value" requires git 2.30.
        let pattern = "^" + value.map { #"\.[]{}()*+?^$|"#.contains($0) ? "\\\($0)" : String($0) }.joined() + "$"
        try change(["config", scope, "--unset-all", "credential.helper", pattern], context)
      }
      for section in ours { try removeOwn(from: section, scope: scope, context) }
      if scope == "--global" { removeIfEmpty(context) }
      try report(scope, changed: true, hosts: [], context)
      return context.tell("removed credmgr from git's configuration")
    }
    if existing != nil {
      context.tell("credmgr is already in git's configuration")
    } else {
      try change(["config", scope, "--add", "credential.helper", entry], context)
      context.tell("git now asks credmgr for credentials")
    }
    let claims = (try? context.source.hostClaims())?.filter { $0.helper == .git } ?? []
    let entries = GitHelperEntry.all() ?? []
    var ordered: [String] = []
    for host in Set(claims.map(\.host)).sorted() {
      let told = GitHelperEntry.told(entries, at: host)
      let isAlone = !told.isEmpty && told.allSatisfy(\.isOurs)
      for key in GitHelperEntry.urls(of: host).map({ "credential.\($0).helper" }) {
        let section = sections.first { $0.key == key }
        let last = section?.values.suffix(2) ?? []
        let isLast = last.count == 2 && last.first == "" && last.last.map { isOwn($0, context) } == true
        if isLast, isAlone { continue }
        // At the end of the file, the empty entry also removes entries added after ours.
        if let section, isLast { try removeOwn(from: section, scope: scope, context) }
        for value in ["", entry] { try change(["config", scope, "--add", key, value], context) }
        if ordered.last != host { ordered.append(host) }
      }
    }
    if !ordered.isEmpty { context.tell("git asks only credmgr for \(some(ordered))") }
    try report(scope, changed: existing == nil || !ordered.isEmpty, hosts: Set(claims.map(\.host)).sorted(), context)
    // Only report other helpers, because those entries are not ours to change.
    var doctor = Doctor(context)
    doctor.checkGit(claims)
    doctor.tellAll()
  }

  private static func report(
    _ scope: String, changed: Bool, hosts: [String], _ context: Context
  ) throws(CommandError) {
    guard context.isJSON else { return }
    try context.output([
      "configuration": .string(String(scope.dropFirst(2))), "changed": .boolean(changed),
      "hosts": .array(hosts.map(JSONValue.string)),
    ])
  }

  /// The key for the helpers of a URL, with its values in one file.
  private typealias Section = (key: String, values: [String])

  /// Whether a helper is this program, with any options.
  private static func isOwn(_ value: String, _ context: Context) -> Bool {
    let entry = GitHelperEntry(scope: "", origin: "", key: "credential.helper", value: value)
    if value == helper(context.program) { return true }
    return entry.isOurs && entry.program.flatMap(Path.resolved) == Path.resolved(context.program)
  }

  private static func sections(_ scope: String) throws(CommandError) -> [Section] {
    let (_, listed) = try git(["config", scope, "--null", "--get-regexp", #"^credential\..*\.helper$"#])
    var sections: [Section] = []
    for line in listed.split(separator: "\0") {
      let pair = line.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      if pair.count == 2 { sections.note(pair[1], of: pair[0]) }
    }
    return sections
  }

  /// Removes our entries for the hosts of a provider that no longer exists. A git that fails keeps them.
  package static func removeGitHelpers(of claims: [HostClaim], _ context: Context) {
    let keys = claims.flatMap { GitHelperEntry.urls(of: $0.host) }.map { "credential.\($0).helper" }
    guard !keys.isEmpty, let sections = try? sections("--global") else { return }
    for section in sections where keys.contains(section.key) && section.values.contains(where: { isOwn($0, context) }) {
      try? removeOwn(from: section, scope: "--global", context)
    }
  }

  /// Removes the user's configuration if nothing is left in it. git creates the file with the first entry.
  private static func removeIfEmpty(_ context: Context) {
    let given = Environment.text("GIT_CONFIG_GLOBAL", context.environment)
    let path = given ?? context.home.person.map { $0 + "/.gitconfig" }
    guard let path, !File.isLink(path), let bytes = try? File.read(path, limit: 1, ordinary: true), bytes.isEmpty else {
      return
    }
    _ = try? File.remove(path)
  }

  /// Removes our entry from a section, and the empty one that we put before it.
  private static func removeOwn(
    from section: Section, scope: String, _ context: Context
  ) throws(CommandError) {
    var kept: [String] = []
    for value in section.values {
      if !isOwn(value, context) { kept.append(value) } else if kept.last == "" { kept.removeLast() }
    }
    try change(["config", scope, "--unset-all", section.key], context)
    for value in kept { try change(["config", scope, "--add", section.key, value], context) }
  }

  /// Returns the value of `credential.helper`. git runs an absolute path directly, and anything after `!` in a shell
  /// (gitcredentials(7)).
  private static func helper(_ executable: String) -> String {
    if executable.isASCIIAlphanumeric(or: "/._-+") { return executable + " git-credential" }
    let pieces = executable.split(separator: "'", omittingEmptySubsequences: false)
    return "!'" + pieces.joined(separator: "'\\''") + "' git-credential"
  }

  /// Runs git in English; returns its exit status and both output streams.
  private static func git(_ arguments: [String]) throws(CommandError) -> (status: Int32, said: String) {
    var environment = Environment.all()
    environment["LC_ALL"] = "C"
    do throws(POSIXError) {
      let completion = try Launcher.run("git", arguments, environment: environment, errors: .withOutput)
      return (completion.status, String(decoding: completion.output, as: UTF8.self))
    } catch .commandNotFound("git") {
      throw .usage("command \"git\" not found", hint: "\(run: "sudo", "apt-get", "install", "git")")
    } catch { throw CommandError(error) }
  }

  private static func change(_ arguments: [String], _ context: Context) throws(CommandError) {
    let (status, said) = try git(arguments)
    if status != 0 { throw .failed(context.gitRefusal(said, status: status, scope: arguments[1])) }
  }
}
