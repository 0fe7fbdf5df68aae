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
    notes: ["Only our own entry is added or removed; all others stay as they are."],
    examples: [
      Example("credmgr git-setup", "for all your repositories"),
      Example("credmgr git-setup --local", "for the one where you are"),
    ]
  ) { invocation, context throws(CommandError) in
    let scopes = ["--global", "--local", "--system"].filter { invocation.has($0) }
    guard scopes.count <= 1 else { throw .exclusive(scopes) }
    let scope = scopes.first ?? "--global"
    if scope == "--local", try run("git", ["rev-parse", "--is-inside-git-dir"]).output.isEmpty {
      let (status, said) = try refusal(["rev-parse", "--is-inside-git-dir"])
      guard said.firstPlace(of: "not a git repository") != nil else { throw refused(said, status, nil) }
      throw .usage(
        "there is no git repository here", hint: "\(credmgr: "git-setup") for all repositories, or go to the one")
    }
    let entry = helper(context.executable)
    let administrator = scope == "--system" ? [context.program, "git-setup", "--system"] : nil
    let listed = try git(["config", scope, "--get-all", "credential.helper"], administrator)
    let isThere = listed.split(separator: "\n").contains { $0 == entry }
    if invocation.has("--remove") {
      guard isThere else {
        context.tell("git's configuration has no entry of ours")
        return .done
      }
      try change(["config", scope, "--fixed-value", "--unset-all", "credential.helper", entry], administrator)
      context.tell("took the helper out of git's configuration")
    } else if isThere {
      context.tell("git's configuration has the helper already")
    } else {
      try change(["config", scope, "--add", "credential.helper", entry], administrator)
      context.tell("git asks credmgr for credentials now")
    }
    if !invocation.has("--remove") { tellOthers(context) }
    return .done
  }

  /// Other helpers that git asks, or tells what it gets of ours. They are somebody else's entries, so that nothing is
  /// done about them.
  private static func tellOthers(_ context: Context) {
    var doctor = Doctor(context)
    doctor.checkGit((try? context.source.hostClaims())?.filter { $0.helper == .git } ?? [])
    doctor.tellAll()
  }

  /// The value of `credential.helper`: an absolute path is run as it is, anything else by a shell behind a `!`
  /// (gitcredentials(7)).
  private static func helper(_ executable: String) -> String {
    let isPlain = executable.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: "/._-+".utf8.contains(byte)
      }
    }
    if isPlain { return executable + " git-credential" }
    let pieces = executable.split(separator: "'", omittingEmptySubsequences: false)
    return "!'" + pieces.joined(separator: "'\\''") + "' git-credential"
  }

  /// What git says is told with what mends it, in English.
  private static func run(_ command: String, _ arguments: [String]) throws(CommandError) -> Launcher.Completion {
    var environment = Environment.all()
    environment["LC_ALL"] = "C"
    do throws(POSIXError) {
      return try Launcher.run(command, arguments, environment: environment, errors: .silenced)
    } catch .commandNotFound("git") {
      throw .usage("there is no command \"git\"", hint: "\(run: "sudo", "apt-get", "install", "git")")
    } catch {
      throw CommandError(error)
    }
  }

  /// What git has in its configuration.
  ///
  /// - Parameter administrator: the command that changes it, where only the administrator may.
  private static func git(_ arguments: [String], _ administrator: [String]?) throws(CommandError) -> String {
    let completion = try run("git", arguments)
    // It has the status 1 where there is no such key, and where it cannot read a file.
    if completion.status != 0 {
      let (status, said) = try refusal(arguments)
      if status > 1 || !said.isEmpty { throw refused(said, status, administrator) }
    }
    return String(decoding: completion.output, as: UTF8.self)
  }

  /// Lets git change its configuration.
  private static func change(_ arguments: [String], _ administrator: [String]?) throws(CommandError) {
    let (status, said) = try refusal(arguments)
    if status != 0 { throw refused(said, status, administrator) }
  }

  /// What git says on standard error, with its exit status.
  private static func refusal(_ arguments: [String]) throws(CommandError) -> (status: Int32, said: String) {
    _ = try system(Launcher.find("git"))
    let completion = try run("sh", ["-c", "exec git \"$@\" 2>&1 >/dev/null", "sh"] + arguments)
    return (completion.status, String(decoding: completion.output, as: UTF8.self))
  }

  private static func refused(_ said: String, _ status: Int32, _ administrator: [String]?) -> CommandError {
    if let failure = Doctor.gitFailure(said) { return .failed(failure) }
    return .failed(GitRefusal(said: said, status: status, asAdministrator: administrator).message)
  }
}
