import Platform
import Text

extension Command {
  static let gitSetup = Command(
    name: "git-setup", operands: "", operandCount: 0...0,
    summary: "Enter the helper into git's configuration, or take it out",
    options: [
      Option("--global", "the person's configuration; this is what is taken without an option"),
      Option("--local", "the configuration of the repository here"),
      Option("--system", "the machine's configuration"),
      Option("--remove", "take our entry out again"),
    ],
    notes: [
      "For each host of a provider that was added, an empty entry comes before ours: git asks no other helper there, "
        + "and tells none a token. Other hosts keep their helpers. Run it again after a provider was added.",
      "Only our own entries are added or removed; all others stay as they are.",
    ],
    examples: [
      ("credmgr git-setup", "for all your repositories"),
      ("credmgr git-setup --local", "for the one where you are"),
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
          "there is no git repository here", hint: "\(credmgr: "git-setup") for all repositories, or go to the one")
      }
    }
    let (status, listed) = try git(["config", scope, "--get-all", "credential.helper"])
    // It has the status 1 where there is no such key, and where it cannot read a file.
    if status > 1 || status == 1 && !listed.isEmpty {
      throw .failed(context.gitRefusal(listed, status: status, scope: scope))
    }
    let values = listed.split(separator: "\n").map(String.init)
    // An entry may have options (`credmgr --timeout 8h`), and may be the machine's.
    let inherited = scope == "--global" ? GitHelperEntry.all()?.filter { $0.scope == "system" } ?? [] : []
    let own = values.filter { isOwn($0, context) }
    let existing = own.last ?? inherited.last { $0.pattern == nil && isOwn($0.value, context) }?.value
    let entry = existing ?? helper(context.executable)
    let sections = try sections(scope)
    if invocation.has("--remove") {
      let ours = sections.filter { $0.values.contains { isOwn($0, context) } }
      guard !own.isEmpty || !ours.isEmpty else { return context.tell("git's configuration has no entry of ours") }
      for value in Set(own).sorted() {
        // As an expression, because "--fixed-value" is only for git 2.30 and later.
        let pattern = "^" + value.map { #"\.[]{}()*+?^$|"#.contains($0) ? "\\\($0)" : String($0) }.joined() + "$"
        try change(["config", scope, "--unset-all", "credential.helper", pattern], context)
      }
      for section in ours { try removeOwn(from: section, scope: scope, context) }
      return context.tell("took the helper out of git's configuration")
    }
    if existing != nil {
      context.tell("git's configuration has the helper already")
    } else {
      try change(["config", scope, "--add", "credential.helper", entry], context)
      context.tell("git asks credmgr for credentials now")
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
        // At the end of the file it sends those away, too, that were entered after it.
        if let section, isLast { try removeOwn(from: section, scope: scope, context) }
        for value in ["", entry] { try change(["config", scope, "--add", key, value], context) }
        if ordered.last != host { ordered.append(host) }
      }
    }
    if !ordered.isEmpty { context.tell("for \(some(ordered)) git asks credmgr alone") }
    // Other helpers that git asks, or tells what it gets of ours, are somebody else's entries: they are told only.
    var doctor = Doctor(context)
    doctor.checkGit(claims)
    doctor.tellAll()
  }

  /// A key for the helpers at a URL, with its values in one of git's files.
  private typealias Section = (key: String, values: [String])

  /// Whether a helper is this program, with whatever options.
  private static func isOwn(_ value: String, _ context: Context) -> Bool {
    let entry = GitHelperEntry(scope: "", origin: "", key: "credential.helper", value: value)
    if value == helper(context.executable) { return true }
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

  /// Takes our entry out of a section, with the empty one before it, which is ours, too.
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

  /// The value of `credential.helper`: an absolute path is run as it is, anything else by a shell behind a `!`
  /// (gitcredentials(7)).
  private static func helper(_ executable: String) -> String {
    if executable.isASCIIAlphanumeric(or: "/._-+") { return executable + " git-credential" }
    let pieces = executable.split(separator: "'", omittingEmptySubsequences: false)
    return "!'" + pieces.joined(separator: "'\\''") + "' git-credential"
  }

  /// What git says, on both streams and in English, with its exit status.
  private static func git(_ arguments: [String]) throws(CommandError) -> (status: Int32, said: String) {
    var environment = Environment.all()
    environment["LC_ALL"] = "C"
    do throws(POSIXError) {
      let completion = try Launcher.run("git", arguments, environment: environment, errors: .withOutput)
      return (completion.status, String(decoding: completion.output, as: UTF8.self))
    } catch .commandNotFound("git") {
      throw .usage("there is no command \"git\"", hint: "\(run: "sudo", "apt-get", "install", "git")")
    } catch { throw CommandError(error) }
  }

  private static func change(_ arguments: [String], _ context: Context) throws(CommandError) {
    let (status, said) = try git(arguments)
    if status != 0 { throw .failed(context.gitRefusal(said, status: status, scope: arguments[1])) }
  }
}
