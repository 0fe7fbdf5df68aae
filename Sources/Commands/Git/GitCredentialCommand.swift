import CredmgrText

extension Command {
  static let gitCredential = gitCommand { invocation, context throws(CommandError) in
    let operation = invocation.operands[0]
    if operation == "capability" { return try context.output("version 0\ncapability authtype\ncapability state\n") }
    let lifetime = try lifetime(invocation, context)
    try context.withInput { input throws(CommandError) in
      // Helpers must ignore unknown operations (gitcredentials(7)).
      guard ["get", "store", "erase"].contains(operation) else { return }
      let request = try GitCredential(input)
      let git: GitHelper?
      do throws(CommandError) { git = try GitHelper(request, context) } catch {
        throw operation == "get" ? try GitHelper.ending(error, context) : error
      }
      guard let git else { return }
      switch operation {
      case "get":
        try git.tellMissingScope(context)
        try git.get(context)
      case "store": try store(git, for: lifetime, context)
      default: if !git.wasMisplaced { try HelperSession(helper: git, context: context).erase(git.password) }
      }
    }
  }

  static func lifetime(_ invocation: Invocation, _ context: Context) throws(CommandError) -> Duration? {
    if let seconds = invocation.value("--timeout").flatMap({ Int64($0) }) { return .seconds(seconds) }
    return try context.duration("--timeout", invocation)
  }

  static func store(_ git: GitHelper, for lifetime: Duration?, _ context: Context) throws(CommandError) {
    guard let login = git.login(at: context.clock.now(), lifetime: lifetime) else { return }
    try HelperSession(helper: git, context: context).store(login, isOnly: false)
  }

  static func gitCommand(
    _ run: @escaping @Sendable (Invocation, Context) throws(CommandError) -> Void
  ) -> Command {
    Command(
      name: "git-credential", operands: "get|store|erase|capability", operandCount: 1...1,
      summary: "Answer git as its credential helper",
      options: [
        Option(
          "--timeout", value: "DURATION", "time to keep the credentials that git stores; a plain number is seconds")
      ],
      notes: [
        "\"credmgr git-setup\" adds this command to the configuration of git.",
        "For a host without a provider, git gets the credentials that it stored before.",
      ], examples: [("echo url=https://github.com | credmgr git-credential get", "Show the answer for git")],
      withoutJSON: "it speaks the protocol of git", run: run)
  }
}
