import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrMessages
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText

package enum Program {
  package static let version = "0.2.0"

  package typealias Network = (_ userAgent: String, _ isCancelled: @escaping () -> Bool) throws(HTTPError)
    -> any HTTPExchange

  /// The features that require libraries. `credmgr` lacks them and starts `credmgr-online` instead.
  package struct Online {
    let network: Network
    /// Loads the libraries of the network while the vault is read.
    let preload: () -> Void
    /// Returns the rows of a text's QR code, with true for dark modules; `nil` if the text is too long.
    let qrCode: (String) -> [[Bool]]?
    let simulate: (Invocation, Context) throws(CommandError) -> Void
    /// Returns the same user, as the logins need it.
    let user: (TerminalUser) -> any User
    /// The vaults in databases that several machines share.
    let vaults: (any SharedVaults)?

    package init(
      network: @escaping Network, preload: @escaping () -> Void, qrCode: @escaping (String) -> [[Bool]]?,
      simulate: @escaping (Invocation, Context) throws(CommandError) -> Void,
      user: @escaping (TerminalUser) -> any User,
      vaults: (any SharedVaults)? = nil
    ) {
      self.network = network
      self.preload = preload
      self.qrCode = qrCode
      self.simulate = simulate
      self.user = user
      self.vaults = vaults
    }
  }

  /// Runs any command.
  package static func run(_ online: Online) -> Int32 {
    let coreLimit = begin()
    var arguments: [String] = []
    do throws(CommandError) {
      arguments = try words()
      try run(arguments, online, coreLimit: coreLimit)
      return ExitStatus.done.rawValue
    } catch {
      if case .ended(let status) = error { return status.rawValue }
      guard let message = error.message else { return ExitStatus.unexpected.rawValue }
      StandardError.show(message, after: CommandLine(arguments))
      return message.status.rawValue
    }
  }

  /// Prepares the process. Returns the core dump limit from before.
  static func begin() -> UInt64? {
    Terminal.openStandardStreams()
    let coreLimit = ProcessProtection.apply()
    Signals.ignoreFailedWrites()
    CredentialSource.configureForOneShotUse()
    return coreLimit
  }

  /// The words of the command line, beginning with the name of the program.
  static func words() throws(CommandError) -> [String] {
    let arguments = try system(Environment.arguments()).map { String(decoding: $0, as: UTF8.self) }
    // git and docker find their helpers by these names.
    let name = arguments.first.map(Path.lastComponent) ?? ""
    guard ["git-credential-credmgr", "docker-credential-credmgr"].contains(name) else { return arguments }
    // Use our own name from here on, so that a program replacing this one does not interpret the name again.
    return ["credmgr", String(name.dropLast("-credmgr".count))] + arguments.dropFirst()
  }

  private static func run(_ words: [String], _ online: Online, coreLimit: UInt64?) throws(CommandError) {
    let arguments = Array(words.dropFirst())
    guard let name = arguments.first else {
      Terminal.writeError(Help.beginning())
      throw .ended(.usage)
    }
    if let text = try help(name, arguments.dropFirst()) { return try system(Terminal.writeOutput(text)) }
    guard let command = Command.named(name) else {
      let library = (try? Home(environment: Environment.value, executable: system(Path.executable())))?.library
      if let library, DescriptorLibrary.isIdentifier(name), library.path(of: name) != nil {
        throw .missingCommand(before: name)
      }
      throw .unknownCommand(name, arguments)
    }
    try requireText(words, command)
    let invocation = try Invocation(command, arguments.dropFirst())
    if invocation.asksForHelp { return try system(Terminal.writeOutput(command.help(on: invocation.operands.first))) }
    if !localCommands.contains(name) { online.preload() }
    let executable = try system(Path.executable())
    let context = try context(
      for: invocation, in: CommandLine(words, invocation, named: Command.named), online, executable: executable,
      coreLimit: coreLimit)
    do throws(CommandError) { try command.run(invocation, context) } catch {
      throw context.message(error).map(CommandError.failed) ?? error
    }
  }

  /// Commands that send no request.
  private static let localCommands = [
    "list", "status", "providers", "check", "log", "use", "completion", "git-setup", "remove-provider",
  ]

  /// Refuses arguments that are not UTF-8, because two of them could become the same text. `exec` accepts any.
  static func requireText(_ arguments: [String], _ command: Command) throws(CommandError) {
    // Swift replaces invalid bytes with this character.
    guard arguments.contains(where: { $0.unicodeScalars.contains("\u{FFFD}") }) else { return }
    for (index, argument) in try system(Environment.arguments()).enumerated().dropFirst() {
      if command.passesOptions, argument == Array("--".utf8) { return }
      guard String(validating: argument, as: UTF8.self) == nil else { continue }
      throw .usage("argument \(index) is not UTF-8")
    }
  }

  private static func context(
    for invocation: Invocation, in line: CommandLine, _ online: Online, executable: String, coreLimit: UInt64?
  ) throws(CommandError) -> Context {
    let home: Home
    var homeFault: CredentialError?
    do throws(CredentialError) { home = try Home(environment: Environment.value, executable: executable) } catch {
      guard !invocation.command.needsHome else { throw CommandError(error) }
      home = Home(withoutFolders: executable)
      homeFault = error
    }
    let secrets = KnownSecrets()
    Signals.installInterruptFlag()
    var http = try CredmgrCommands.http(online.network("credmgr/\(version)") { Signals.isInterrupted })
    if invocation.has("--trace") {
      let typed = invocation.operands + invocation.all("--set").map { String($0.drop { $0 != "=" }.dropFirst()) }
      let known = {
        KnownPaths(
          CredentialSource(home: home, http: nil, clock: SystemClock(), random: SystemRandomSource()), typed: typed)
      }
      http = TracedExchange(http, secrets, known: known) { Terminal.writeError($0) }
    }
    let clock = SystemClock()
    let isQuick = invocation.command.quickOption.map(invocation.has) ?? false
    let asksNobody = invocation.command.asksNobody || isQuick
    // The passphrase command may prompt as well.
    let variable = { (name: String) -> String? in
      asksNobody && name == "CREDMGR_PASSPHRASE_COMMAND" ? nil : Environment.value(name)
    }
    let person = TerminalPassphrase()
    let keys = KeySources(
      environment: variable, lock: home.passphraseLock,
      ask: asksNobody ? { _ throws(POSIXError) in throw .noTerminal } : person.ask,
      settle: person.settle, isQuick: isQuick)
    let source = CredentialSource(
      home: home, http: http, clock: clock, random: SystemRandomSource(), secrets: secrets, keys: keys)
    source.vaults = online.vaults
    var told: [String] = []
    source.notice = { notice in
      guard notice.isDue(atTerminal: Terminal.isTerminal(2)) else { return }
      let message = notice.message(now: clock.now()) { home.title(of: $0) }
      if !told.contains(message.text) { StandardError.tell(notice: message) }
      told.append(message.text)
    }
    return Context(
      source: source, homeFault: homeFault, clock: clock, executable: executable, environment: Environment.value,
      coreLimit: coreLimit, online: online, line: line)
  }

  private static func help(_ name: String, _ rest: ArraySlice<String>) throws(CommandError) -> String? {
    if ["--version", "-V", "version"].contains(name) { return "credmgr \(version)\n" }
    guard ["help", "--help", "-h"].contains(name) else { return nil }
    guard let topic = rest.first, topic != "help" else { return Help.overview }
    guard let command = Command.all.first(where: { $0.name == topic }) else { throw .unknownCommand(topic) }
    if let name = rest.dropFirst().first, !command.operations.isEmpty, command.operation(name) == nil {
      throw command.unknownOperation(name)
    }
    return command.help(on: rest.dropFirst().first)
  }
}

enum Help {
  static func beginning(width columns: Int = Layout.helpWidth) -> String {
    let purpose =
      "credmgr stores credentials for many providers and accounts, refreshes them, and gives them to git, docker, "
      + "kubectl and your own programs."
    let first = [
      (left: "credmgr setup", right: "choose a provider, and get the first token"),
      ("credmgr providers", "list the providers"), ("credmgr import", "move the logins of other tools"),
    ]
    let then = [
      (left: "credmgr token github", right: "print an access token"),
      ("credmgr status", "show your accounts and when they expire"),
      ("credmgr git-setup", "let git use credmgr"), ("credmgr doctor", "find problems and how to fix them"),
    ]
    let end = "\"credmgr help\" lists all commands, and \"credmgr help COMMAND\" explains one."
    return Layout.wrapped("usage: credmgr COMMAND [ARGUMENT]…", width: columns) + "\n\n"
      + Layout.wrapped(purpose, width: columns) + "\n\nFirst steps:\n" + Layout.table(first, width: columns)
      + "\nThen:\n" + Layout.table(then, width: columns) + "\n" + Layout.wrapped(end, width: columns) + "\n"
  }

  static var overview: String { overview(width: Layout.helpWidth) }

  static func overview(width columns: Int) -> String {
    var text = Layout.wrapped("usage: credmgr COMMAND [ARGUMENT]…", width: columns) + "\n"
    let longest = min(Layout.longestQuotation, columns - 4)
    // A narrow terminal shows the summary below the name.
    let isNarrow = columns < 60
    let left = isNarrow ? 4 : 4 + (Command.all.map(\.name.count).max() ?? 0)
    let indent = String(repeating: " ", count: left)
    for group in Command.groups {
      text += "\n\(group.title):\n"
      for command in group.commands {
        text += "  " + command.name + (isNarrow ? "\n" + indent : String(indent.dropFirst(command.name.count + 2)))
        text += Layout.wrapped(command.summary, width: columns, first: left, indent: indent) + "\n"
      }
    }
    let end =
      "\"credmgr help COMMAND\" explains a command, with examples. \"man credmgr\" shows the manual, and \"credmgr\" "
      + "alone shows the first steps."
    return text + "\n" + Layout.wrapped(end, width: columns, longestQuotation: longest) + "\n"
  }
}
