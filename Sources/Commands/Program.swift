import CredentialManager
import Cryptography
import Descriptors
import HTTP
import OAuth
import Platform
import Text
import Store

/// The program: from arguments to an exit status.
package enum Program {
  /// The version, for `--version` and for providers' logs.
  package static let version = "0.1.0"

  /// Makes the network of a program that has one.
  ///
  /// - Parameters:
  ///   - userAgent: what requests are sent with that name none themselves.
  ///   - isCancelled: asked while an exchange goes on.
  package typealias Network = (_ userAgent: String, _ isCancelled: @escaping () -> Bool) throws(HTTPError)
    -> any HTTPExchange

  /// What `credmgr-online` can do and `credmgr`, which has no libraries for it, hands over.
  package struct Online {
    let network: Network
    /// The rows of the QR code of a text, true for a dark module; `nil` if it has none.
    let qrCode: (String) -> [[Bool]]?
    /// Plays a provider.
    let simulate: (Invocation, Context) throws(CommandError) -> ExitStatus

    package init(
      network: @escaping Network, qrCode: @escaping (String) -> [[Bool]]?,
      simulate: @escaping (Invocation, Context) throws(CommandError) -> ExitStatus
    ) {
      self.network = network
      self.qrCode = qrCode
      self.simulate = simulate
    }
  }

  /// Runs the command that the process was started with.
  ///
  /// - Parameter online: `nil` for a program that hands what needs it to `credmgr-online`.
  /// - Returns: the exit status of the process.
  package static func run(_ online: Online? = nil) -> Int32 {
    Terminal.openStandardStreams()
    let coreLimit = ProcessProtection.apply()
    Signals.ignoreFailedWrites()
    CredentialSource.configureForOneShotUse()
    var arguments: [String]
    do throws(POSIXError) {
      arguments = try Environment.arguments().map { String(decoding: $0, as: UTF8.self) }
    } catch {
      return report(.failed(error.message), [])
    }
    // git and docker find their helpers by these names.
    if let name = arguments.first.map(Path.lastComponent),
      ["git-credential-credmgr", "docker-credential-credmgr"].contains(name)
    {
      // Under our own name from here on: the program that takes this one's place must not read the name a second time.
      arguments = ["credmgr", String(name.dropLast("-credmgr".count))] + arguments.dropFirst()
    }
    do throws(CommandError) {
      return try run(Array(arguments.dropFirst()), all: arguments, online, coreLimit).rawValue
    } catch {
      return report(error, arguments)
    }
  }

  private static func report(_ error: CommandError, _ arguments: [String]) -> Int32 {
    guard let message = error.message else { return ExitStatus.unexpected.rawValue }
    StandardError.show(message, after: CommandLine(arguments))
    return message.status.rawValue
  }

  private static func run(
    _ arguments: [String], all: [String], _ online: Online?, _ coreLimit: UInt64?
  ) throws(CommandError) -> ExitStatus {
    guard let name = arguments.first else {
      Terminal.writeError(Help.beginning)
      return .usage
    }
    if let status = try help(name, arguments.dropFirst()) { return status }
    guard let command = Command.named(name) else { throw .unknownCommand(name, arguments) }
    try requireText(all, command)
    let invocation = try Invocation(command, arguments.dropFirst())
    if invocation.asksForHelp {
      try system(Terminal.writeOutput(command.help))
      return .done
    }
    let executable = try system(Path.executable())
    let handOver = { (input: [UInt8]?) throws(CommandError) in
      try replace(executable, all, input, coreLimit)
    }
    let isOffline = command.offlineOption.map(invocation.has) ?? false
    if command.needsNetwork, !isOffline, online == nil { try handOver(nil) }
    let context = try context(executable, online, CommandLine(all, invocation), invocation, coreLimit)
    do throws(CommandError) {
      return try command.run(invocation, context)
    } catch .handOver(let input) where online == nil {
      if let keys = context.source.keysToLeave {
        try system(Launcher.leave(keys.bytes))
      }
      try handOver(input)
    } catch {
      throw context.message(error).map(CommandError.failed) ?? error
    }
  }

  /// Refuses arguments that are not UTF-8: two of them could become the same text. What `exec` hands on is not looked
  /// at.
  private static func requireText(_ arguments: [String], _ command: Command) throws(CommandError) {
    // Swift puts this character in the place of what is none.
    guard arguments.contains(where: { $0.unicodeScalars.contains("\u{FFFD}") }) else { return }
    for argument in try system(Environment.arguments()).dropFirst() {
      if command.passesOptions, argument == Array("--".utf8) { return }
      guard String(validating: argument, as: UTF8.self) == nil else { continue }
      throw .usage("the argument \"\(String(decoding: argument, as: UTF8.self))\" is not UTF-8")
    }
  }

  private static func context(
    _ executable: String, _ online: Online?, _ line: CommandLine, _ invocation: Invocation, _ coreLimit: UInt64?
  ) throws(CommandError) -> Context {
    let home: Home
    var homeFault: CredentialError?
    do throws(CredentialError) {
      home = try Home(environment: Environment.value, executable: executable)
    } catch {
      guard !invocation.command.needsHome else { throw CommandError(error) }
      home = Home(withoutFolders: executable)
      homeFault = error
    }
    let secrets = KnownSecrets()
    var http: (any HTTPExchange)?
    if let online {
      Signals.installInterruptFlag()
      do throws(HTTPError) {
        http = try online.network("credmgr/\(version)") { Signals.isInterrupted }
      } catch {
        throw .failed(error.message())
      }
      if invocation.has("--trace"), let exchange = http {
        let typed = invocation.operands + invocation.all("--set").map { String($0.drop { $0 != "=" }.dropFirst()) }
        let known = {
          KnownPaths(
            CredentialSource(home: home, http: nil, clock: SystemClock(), random: SystemRandomSource()), typed: typed)
        }
        http = TracedExchange(exchange, secrets, known: known) { Terminal.writeError($0) }
      }
    }
    let clock = SystemClock()
    let asksNobody = invocation.command.asksNobody
    // A command may ask a person, too.
    let variable = { (name: String) -> String? in
      asksNobody && name == "CREDMGR_PASSPHRASE_COMMAND" ? nil : Environment.value(name)
    }
    let person = TerminalPassphrase()
    let ask: KeySources.Ask = if asksNobody { TerminalPassphrase.nobody } else { person.ask }
    let keys = KeySources(
      environment: variable, predecessor: Launcher.receiveFromPredecessor().flatMap { OpenedKeys(decoding: $0) },
      lock: home.passphraseLock, ask: ask,
      settle: person.settle)
    let source = CredentialSource(
      home: home, http: http, clock: clock, random: SystemRandomSource(), secrets: secrets, keys: keys)
    source.notice = NoticeTeller(clock).tell
    return Context(
      source: source, homeFault: homeFault, clock: clock, executable: executable, environment: Environment.value,
      coreLimit: coreLimit, online: online, line: line)
  }

  private static func help(_ name: String, _ rest: ArraySlice<String>) throws(CommandError) -> ExitStatus? {
    let text: String
    switch name {
    case "help", "--help", "-h":
      if let topic = rest.first, topic != "help" {
        guard let command = Command.all.first(where: { $0.name == topic }) else { throw .unknownCommand(topic) }
        text = command.help
      } else {
        text = Help.overview
      }
    case "--version", "version":
      text = "credmgr \(version)\n"
    default:
      return nil
    }
    try system(Terminal.writeOutput(text))
    return .done
  }

  /// Puts the program with a network in the place of this one: same arguments, same streams, no state in between but
  /// the standard input that was read already.
  private static func replace(
    _ executable: String, _ arguments: [String], _ input: [UInt8]?, _ coreLimit: UInt64?
  ) throws(CommandError) -> Never {
    guard let online = Home.sibling("credmgr-online", of: executable) else { throw .handOver(input: nil) }
    if let coreLimit { ProcessProtection.lift(coreLimit: coreLimit) }
    do throws(POSIXError) {
      if let input { try Launcher.replaceStandardInput(with: input) }
      // Byte by byte as they came, except for the names in front, which may be ours.
      let given = try Environment.arguments().dropFirst()
      let names = arguments.dropLast(given.count).map { Array($0.utf8) }
      try Launcher.replaceProcess(online, bytes: names + given)
    } catch {
      throw CommandError(error)
    }
  }
}

/// What `credmgr` and `credmgr help` print.
enum Help {
  /// What a new user needs.
  static let beginning = """
    usage: credmgr COMMAND [ARGUMENT]…

    credmgr keeps the credentials of many providers and accounts, and hands fresh
    ones to git, docker, kubectl and your own programs.

    To begin:
      credmgr providers            see which providers there are
      credmgr providers github     where to register a client with one
      credmgr add-provider github --client-id ID --client-secret-file FILE
                                   take it, as that client
      credmgr login github         log in

    And then:
      credmgr token github         print a token that is good
      credmgr status               who is logged in, and until when
      credmgr git-setup            let git ask credmgr
      credmgr doctor               see what is wrong, and mend it

    "credmgr help" lists all commands, and "credmgr help COMMAND" explains one.

    """

  static var overview: String {
    var text = "usage: credmgr COMMAND [ARGUMENT]…\n"
    let width = Command.all.map(\.name.count).max() ?? 0
    for group in Command.groups {
      text += "\n\(group.title):\n"
      for command in group.commands {
        let gap = String(repeating: " ", count: width - command.name.count + 2)
        let indent = String(repeating: " ", count: width + 4)
        text += "  " + command.name + gap
        text += Layout.wrapped(command.summary, first: width + 4, indent: indent) + "\n"
      }
    }
    return text + """

      "credmgr help COMMAND" says more, with examples; "man credmgr" is the manual.
      "credmgr" alone says how to begin.

      """
  }
}
