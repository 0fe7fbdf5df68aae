import CredmgrCredentialManager
import CredmgrMessages
import CredmgrCryptography
import CredmgrPlatform
import CredmgrText

extension Program {
  /// Answers the questions for which the vault suffices. `credmgr-online` does everything else, and explains what went
  /// wrong, so this program contains no other command and no message (decision 77).
  package static func answerFromVault() -> Int32 {
    let coreLimit = begin()
    do throws(CommandError) {
      let words = try words()
      do throws(CommandError) { try answer(words, coreLimit: coreLimit) } catch .ended(let status) {
        return status.rawValue
      } catch {
        let input: [UInt8]? = if case .handOver(let input) = error { input } else { nil }
        if let coreLimit { ProcessProtection.lift(coreLimit: coreLimit) }
        try continueOnline(words, input: input)
      }
      return ExitStatus.done.rawValue
    } catch {
      let executable = (try? Path.executable()) ?? "/usr/bin/credmgr"
      let missing = Message(
        "the program \"credmgr-online\" is missing, which does everything but give out tokens that are still valid",
        hint: .reinstalling(executable), status: .unexpected)
      StandardError.show(missing)
      return missing.status.rawValue
    }
  }

  private static func answer(_ words: [String], coreLimit: UInt64?) throws(CommandError) {
    guard words.count > 1 else { throw .handOver(input: nil) }
    let command = try Command.answering(words[1])
    try requireText(words, command)
    let invocation = try Invocation(command, words.dropFirst(2))
    if invocation.asksForHelp || invocation.has("--refresh") { throw .handOver(input: nil) }
    let executable = try system(Path.executable())
    let home = try manager(Home(environment: Environment.value, executable: executable))
    let clock = SystemClock()
    // Other ways to open the vault may ask the user.
    let source = CredentialSource(
      home: home, clock: clock, random: SystemRandomSource(),
      keys: KeySources(environment: Environment.value, isQuick: true))
    var hasNotice = false
    source.notice = { _ in hasNotice = true }
    let context = Context(
      source: source, homeFault: nil, clock: clock, executable: executable, environment: Environment.value,
      coreLimit: coreLimit, online: nil, hasNotice: { hasNotice },
      line: CommandLine(words, invocation, named: { try? Command.answering($0) }))
    try command.run(invocation, context)
  }

  /// Replaces this program with `credmgr-online`, and passes on the standard input already read.
  private static func continueOnline(_ words: [String], input: [UInt8]?) throws(CommandError) -> Never {
    guard let online = Home.sibling("credmgr-online", of: try system(Path.executable())) else {
      throw .handOver(input: nil)
    }
    if let input { try system(Launcher.replaceStandardInput(with: input)) }
    // Pass the original bytes, except for the leading names, which may be ours.
    let given = try system(Environment.arguments()).dropFirst()
    let names = words.dropLast(given.count).map { Array($0.utf8) }
    try system(Launcher.replaceProcess(online, names + given))
  }
}

extension Command {
  /// Returns the command if the vault can answer it.
  static func answering(_ name: String) throws(CommandError) -> Command {
    switch name {
    case "token": .token
    case "header": .header
    case "exec": .exec
    case "status": .shortStatus
    case "git-credential": .gitAnswer
    case "docker-credential": .dockerAnswer
    case "kubectl-credential": .kubectlAnswer
    default: throw .handOver(input: nil)
    }
  }
}
