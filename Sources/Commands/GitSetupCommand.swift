import Messages
import POSIX

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
    if scope == "--local", try git(["rev-parse", "--is-inside-git-dir"], allowed: nil, isQuiet: true).isEmpty {
      throw .usage(
        "there is no git repository here", hint: "run \"credmgr git-setup\" for all repositories, or go to the one")
    }
    let entry = helper(context.executable)
    let listed = try git(["config", scope, "--get-all", "credential.helper"], allowed: [0, 1])
    let isThere = listed.split(separator: "\n").contains { $0 == entry }
    if invocation.has("--remove") {
      guard isThere else {
        context.tell("git's configuration has no entry of ours")
        return .done
      }
      _ = try git(["config", scope, "--fixed-value", "--unset-all", "credential.helper", entry])
      context.tell("took the helper out of git's configuration")
    } else if isThere {
      context.tell("git's configuration has the helper already")
    } else {
      _ = try git(["config", scope, "--add", "credential.helper", entry])
      context.tell("git asks credmgr for credentials now")
    }
    if !invocation.has("--remove") { tellOthers(context) }
    return .done
  }

  /// Other helpers that git asks, or tells what it gets of ours. They are somebody else's entries, so that nothing is done
  /// about them.
  private static func tellOthers(_ context: Context) {
    var doctor = Doctor(context)
    doctor.git((try? context.source.claimedHosts())?.git ?? [])
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

  /// Runs git, which says on standard error itself what does not work.
  ///
  /// - Parameters:
  ///   - allowed: `git config --get-all` has the status 1 where there is no such key; `nil` for any status.
  ///   - isQuiet: whether what git says is not for the person.
  private static func git(
    _ arguments: [String], allowed: Set<Int32>? = [0], isQuiet: Bool = false
  ) throws(CommandError) -> String {
    let completion = try system { () throws(POSIXError) in
      try Launcher.run("git", arguments, silencesErrors: isQuiet)
    }
    guard allowed?.contains(completion.status) ?? true else {
      throw .failed(
        Message("git did not change its configuration (status \(completion.status))", status: .unexpected))
    }
    return String(decoding: completion.output, as: UTF8.self)
  }
}
