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
    ], notes: ["Only our own entry is added or removed; all others stay as they are."],
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
    let entry = helper(context.executable)
    let (status, listed) = try git(["config", scope, "--get-all", "credential.helper"])
    // It has the status 1 where there is no such key, and where it cannot read a file.
    if status > 1 || status == 1 && !listed.isEmpty {
      throw .failed(context.gitRefusal(listed, status: status, scope: scope))
    }
    let isThere = listed.split(separator: "\n").contains { $0 == entry }
    if invocation.has("--remove") {
      guard isThere else { return context.tell("git's configuration has no entry of ours") }
      try change(["config", scope, "--fixed-value", "--unset-all", "credential.helper", entry], context)
      context.tell("took the helper out of git's configuration")
    } else if isThere {
      context.tell("git's configuration has the helper already")
    } else {
      try change(["config", scope, "--add", "credential.helper", entry], context)
      context.tell("git asks credmgr for credentials now")
    }
    if !invocation.has("--remove") {
      // Other helpers that git asks, or tells what it gets of ours, are somebody else's entries: they are told only.
      var doctor = Doctor(context)
      doctor.checkGit((try? context.source.hostClaims())?.filter { $0.helper == .git } ?? [])
      doctor.tellAll()
    }
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
    } catch {
      throw CommandError(error)
    }
  }

  private static func change(_ arguments: [String], _ context: Context) throws(CommandError) {
    let (status, said) = try git(arguments)
    if status != 0 { throw .failed(context.gitRefusal(said, status: status, scope: arguments[1])) }
  }
}
