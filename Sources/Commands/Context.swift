import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrDescriptors
import CredmgrJSON
import CredmgrMessages
import CredmgrPlatform
import CredmgrText
import CredmgrStore

package final class Context {
  package private(set) var source: CredentialSource
  /// Why no home is available, for commands that work without one.
  let homeFault: CredentialError?
  let clock: any WallClock
  let executable: String
  let environment: (String) -> String?
  /// The core dump limit before this program set its own, for a program that replaces it.
  let coreLimit: UInt64?
  /// `nil` in the program that only answers from the vault.
  let online: Program.Online?
  let hasNotice: () -> Bool  // Whether that program has something to tell.
  private(set) var line: CommandLine
  private(set) var seenDigest: String?  // Of the destinations that a setup showed for its login.

  init(
    source: CredentialSource, homeFault: CredentialError?, clock: any WallClock, executable: String,
    environment: @escaping (String) -> String?, coreLimit: UInt64?, online: Program.Online?,
    hasNotice: @escaping () -> Bool = { false }, line: CommandLine
  ) {
    (self.source, self.homeFault, self.clock, self.executable) = (source, homeFault, clock, executable)
    (self.environment, self.coreLimit, self.online, self.hasNotice) = (environment, coreLimit, online, hasNotice)
    self.line = line
  }

  private var copy: Context {
    let copy = Context(
      source: source, homeFault: homeFault, clock: clock, executable: executable, environment: environment,
      coreLimit: coreLimit, online: online, hasNotice: hasNotice, line: line)
    copy.seenDigest = seenDigest
    return copy
  }

  package var home: Home { source.home }

  /// Returns the context for a command that this one runs, so that hints repeat that command.
  func running(_ line: CommandLine, seeing digest: String? = nil) -> Context {
    let context = copy
    (context.line, context.seenDigest) = (line, digest)
    return context
  }

  /// Returns the context with the accounts of another source.
  func replacing(source: CredentialSource) -> Context {
    let context = copy
    context.source = source
    return context
  }

  func output(_ text: String) throws(CommandError) {
    try leaveNotices()
    try system(Terminal.writeOutput(text))
  }

  package func output(_ value: JSONValue) throws(CommandError) { try output(value.versioned.formatted + "\n") }

  func output(_ text: @autoclosure () -> String, orJSON value: @autoclosure () -> JSONValue) throws(CommandError) {
    try isJSON ? output(value()) : output(text())
  }

  package var isJSON: Bool { line.invocation?.has("--json") == true }

  func tell(_ text: String) { StandardError.tell(text) }

  /// Tells something that is not an error, and what to do about it.
  func tell(note: Remedy) { note.sentence(after: line).map { tell($0) } }

  package func tell(hint: Remedy) { hint.sentence(after: line).map { tell("hint: " + $0) } }

  /// Returns the account from the option, the environment or a rule; `nil` for the default account.
  func account(_ invocation: Invocation, of provider: String) throws(CommandError) -> String? {
    try account(invocation.value("--account"), of: provider)
  }

  func account(_ name: String?, of provider: String) throws(CommandError) -> String? {
    try choice(name, of: provider, remotes: RepositoryContext(environment: environment).remotes)?.name
  }

  /// Returns the chosen account; `nil` for the default account.
  func choice(
    _ option: String?, of provider: String, remotes: () -> [RemoteAddress]
  ) throws(CommandError) -> AccountChoice? {
    if let option { return AccountChoice(try accountName(option), .option) }
    if let named = try environmentAccount(of: provider) { return AccountChoice(try accountName(named), .environment) }
    let folders = RepositoryContext(environment: environment).folders
    let rule = try manager(source.accountRules().first(for: [provider], remotes: remotes, folders: folders))
    return rule.map { AccountChoice($0.account, .rule($0)) }
  }

  /// Returns the account that `CREDMGR_ACCOUNT` names for a provider.
  func environmentAccount(of provider: String) throws(CommandError) -> String? {
    let text = environment("CREDMGR_ACCOUNT") ?? ""
    if let fault = AccountChoice.fault(in: text) { throw .failed(.malformedAccounts(fault)) }
    return AccountChoice.named(in: text).first { $0.provider ?? provider == provider }?.name
  }

  private func accountName(_ name: String) throws(CommandError) -> String {
    guard Accounts.isName(name) else { throw CommandError(CredentialError.malformedAccount(name)) }
    return name
  }

  func provider(_ text: String) throws(CommandError) -> String {
    if DescriptorLibrary.isIdentifier(text) { return text }
    let unknown = source.unknown(text)
    if case .unknown(_, nil) = unknown, !SetupChoice(self).finds(text) {
      throw CommandError(.provider(.malformedIdentifier(text)))
    }
    throw CommandError(.provider(unknown))
  }

  func load(_ provider: String) throws(CommandError) -> DescriptorLibrary.Loaded {
    if let unknown = unknown(provider) { throw CommandError(unknown) }
    return try library(home.library.load(provider))
  }

  func unknown(_ provider: String) -> CredentialError? {
    guard home.library.path(of: provider) == nil else { return nil }
    return .provider(source.unknown(provider))
  }

  /// Reports damaged accounts after the command has handled the others. Skips the `known` ones.
  func reportDamagedRecords(_ provider: String?, without known: [Account] = []) throws(CommandError) {
    let damaged = try manager(source.accountsIfAny()?.unreadable(of: provider, without: known) ?? [])
    if !damaged.isEmpty { throw .failed(.damaged(damaged)) }
  }

  /// Returns an error's message with the hints that apply here; `nil` if no message applies.
  func message(_ error: CommandError) -> Message? {
    if case .missingSeparator(let operands) = error { return error.message?.with(hints: [separated(operands)]) }
    guard case .credential(let error) = error else { return error.message.map { $0.with(hints: resolved($0.hints)) } }
    let message = message(source.sharedName.map(error.inVault) ?? error)
    return message.with(hints: resolved(message.hints))
  }

  private func message(_ error: CredentialError) -> Message {
    switch error {
    case .loginNeeded(let provider, let account, .noCredential): return noCredential(provider, account)
    case .loginNeeded(let provider, let account, let reason) where reason.isRejection && !canValidate(provider):
      let login = ["login", provider] + (account.map { ["--account", $0] } ?? [])
      return error.message(titled: titled).with(hints: ["\(credmgr: login)"])
    case .provider(.unknown(let word, suggestion: nil)) where SetupChoice(self).finds(word):
      return error.message.with(hints: ["\(credmgr: "providers", "--search", word) to see the providers that match"])
    case .notAdded(let provider, _) where isAddedByLogin(provider) || Question.canAsk && !isJSON:
      let command = isAddedByLogin(provider) ? "login" : "setup"
      return error.message(titled: titled).with(hints: ["\(credmgr: command, provider)"])
    // The user interrupted the question.
    case .destinationChange where Signals.isInterrupted, .peculiar where Signals.isInterrupted:
      return CredentialError.interrupted.message
    case .unknownAccount(let name, let provider, let known):
      let isNamed = line.invocation.map { $0.value("--account") != nil || $0.operands.contains(name) } ?? false
      guard !isNamed, (try? environmentAccount(of: provider)) == name else { return error.message(titled: titled) }
      let accounts = (try? source.accountsIfAny()?.accounts(of: nil)) ?? []
      let others = accounts.filter { $0.name == name }.map(\.provider)
      return CredentialError.unknownAccount(
        ofEnvironment: name, provider: provider, known: known, others: others, titled: titled)
    case .vault(.damagedRecord(let record)) where record.kind == .selection:
      let names = names(at: record.provider)
      let others = names.count > 1 ? "; its accounts are \(some(names))" : ""
      return Message(error.message.text + others, hint: mending(record), status: .vault)
    case .vault(.secretService(let fault)):
      let slots = (try? source.vaultStatus())?.status.slots ?? []
      return fault.message(opensVault: slots.contains { $0.kind == .secretService })
    case .vault(.wrongPassphrase) where passphraseSource.remedy == nil:
      return error.message.with(hints: [.lostPassphrase(home.vault)])
    case .vault(let error): return error.message(passphrase: passphraseSource)
    case .oauth(let fault, let provider) where fault.deniesEndpoint && source.knownMetadata(of: provider) != nil:
      return error.message(titled: titled).with(hints: [
        "\(credmgr: "add-provider", provider, "--update") to read its metadata again"
      ])
    case .oauth(let fault, let provider) where fault.refusesClient || fault.mayRefuseClient && isShipped(provider):
      return error.message(titled: titled).with(hints: anotherClient(of: provider))
    default: return error.message(titled: titled)
    }
  }

  func titled(_ provider: String) -> String { home.title(of: provider) }

  /// Returns the message for a provider without an account.
  func noCredential(_ provider: String, _ account: String?) -> Message {
    if let unknown = unknown(provider) {
      // A warning has just named the reason.
      return source.withheld.contains(provider) ? .usage("cannot use \(quoted(provider)) here") : message(unknown)
    }
    let error = CredentialError.loginNeeded(provider: provider, account: account, .noCredential)
    let message = error.message(titled: titled)
    do {
      guard try source.accountsIfAny()?.registration(of: provider) == nil else { return message }
    } catch { return self.message(error) }
    if isAddedByLogin(provider) { return message }
    let needs = (try? home.library.load(provider)).map { ClientNeeds($0.descriptor) }
    return Message(
      message.text + (needs?.registration ?? ""),
      hint: Question.canAsk && !isJSON
        ? "\(credmgr: "setup", provider)"
        : "\(credmgr: ["add-provider", provider] + (needs?.options ?? ["--client-id", "ID"])) first",
      status: message.status)
  }

  func mending(_ record: RecordIdentifier) -> Remedy {
    record.remedy(account: record.kind == .selection ? names(at: record.provider).first : nil)
  }

  private func names(at provider: String) -> [String] {
    (try? source.accountsIfAny()?.accounts(of: provider).map(\.name)) ?? []
  }

  /// Parses the duration of an option.
  func duration(_ option: String, _ invocation: Invocation) throws(CommandError) -> Duration? {
    guard let text = invocation.value(option) else { return nil }
    if let duration = Duration(text) { return duration }
    throw .usage("invalid duration\(shown(text))", hint: "use a form like 90s, 5m, 8h or 30d")
  }

  /// Returns the values of `--set NAME=VALUE`, and of `NAME=@FILE` for secret variables.
  func variables(
    _ invocation: Invocation, of descriptor: Descriptor?,
    read: (_ path: String, _ name: String) throws(CommandError) -> [UInt8]
  ) throws(CommandError) -> [String: String] {
    var variables: [String: String] = [:]
    for text in invocation.all("--set") {
      guard let sign = text.firstIndex(of: "="), sign > text.startIndex else {
        // Do not repeat the text, because it may be a value without a name.
        throw .usage("invalid value of \"--set\": it must have the form NAME=VALUE")
      }
      let name = String(text[..<sign])
      var value = String(text[text.index(after: sign)...])
      if let variable = descriptor?.variable(name), variable.isAtExchange {
        variables[name] = try subjectTokenPlace(value, of: variable).text
        continue
      }
      if let variable = descriptor?.variable(name), variable.isSecret {
        guard value.hasPrefix("@") else { throw .failed(.secretInArguments(variable)) }
        let path = String(value.dropFirst())
        value = try secret(read(path, name), path).reveal()
      }
      variables[name] = value
    }
    return variables
  }

  /// Parses the place of a token of another issuer: `@FILE`, or `env:VARIABLE`.
  private func subjectTokenPlace(_ text: String, of variable: Variable) throws(CommandError) -> SubjectTokenPlace {
    if text.hasPrefix("@"), text != "@", text != "@-" {
      let path = String(text.dropFirst())
      return .file(path.hasPrefix("/") ? path : Path.joining(try system(Path.currentDirectory()), path))
    }
    if case .environment(let name)? = SubjectTokenPlace(text), !name.isEmpty { return .environment(name) }
    throw .usage(
      "cannot set \(quoted(variable.name)): each exchange reads it again from a file or an environment variable",
      hint: "use \"--set \(variable.name)=@FILE\" or \"--set \(variable.name)=env:VARIABLE\"")
  }

  /// Returns the variables of an addition that have no value yet.
  func missing(_ given: [String: String], of addition: ProviderAddition) throws(CommandError) -> [Variable] {
    let before = try manager(source.accountsIfAny()?.registration(of: addition.identifier)?.variables)
    return addition.descriptor.variables.filter { variable in
      let value = given[variable.name] ?? before?[variable.name] ?? variable.defaultValue ?? ""
      return value.isEmpty && !variable.isOptional && !variable.isAtLogin
    }
  }

  /// Reads a file that an option or an operand names; `-` is standard input.
  func file(_ path: String, limit: Int, ordinary: Bool = false) throws(CommandError) -> [UInt8] {
    try system(read(path, limit: limit, ordinary: ordinary))
  }

  /// Reads a file. `patience` limits the wait for a pipe. `ordinary` refuses pipes.
  private func read(_ path: String, limit: Int, ordinary: Bool, patience: Duration? = nil) throws(POSIXError) -> [UInt8]
  {
    if path == "-" { return try File.readStandardInput(limit: limit) }
    return try File.read(path, limit: limit, ordinary: ordinary && !File.isGivenStream(path), patience: patience)
  }

  /// Reads a descriptor: an ordinary file, `-`, or the pipe that a shell creates for `<(…)`.
  package func descriptor(_ path: String) throws(CommandError) -> [UInt8] {
    do throws(POSIXError) { return try read(path, limit: 1 << 20, ordinary: true) } catch {
      guard case .tooLarge = error else { throw CommandError(error) }
      throw .credential(.provider(.invalid([Finding.tooLarge(Self.descriptorName(path))])))
    }
  }

  package func descriptorFolders(_ invocation: Invocation) throws(CommandError) -> [String] {
    for folder in invocation.all("--descriptors") where !File.isDirectory(folder) {
      throw .usage("cannot read the directory of \"--descriptors\": \(quoted(folder)) is not a directory")
    }
    return invocation.all("--descriptors")
  }

  package static func isDescriptorFile(_ source: String) -> Bool {
    source == "-" || source.contains("/") || source.hasSuffix(".yaml")
  }

  static func descriptorName(_ path: String) -> String { path == "-" ? "<standard input>" : path }

  package func secret(_ path: String, called name: String) throws(CommandError) -> Secret {
    try secret(
      secretFile(path, called: name, patience: File.isGivenStream(path) ? nil : .seconds(60)), path,
      called: name)
  }

  /// Reads a file with a secret. Does not repeat the name of a missing file, which may be the secret itself. At a
  /// terminal, `-` prompts for the secret by its name, without echo.
  func secretFile(_ path: String, called name: String, patience: Duration? = nil) throws(CommandError) -> [UInt8] {
    if path == "-", Terminal.isTerminal(0) {
      return try system(Terminal.readPassword(prompt: StandardError.prompt(name + ":"), limit: 1 << 16))
    }
    do throws(POSIXError) { return try read(path, limit: 1 << 16, ordinary: false, patience: patience) } catch {
      guard File.exists(path) else {
        throw .usage(
          "the secret file does not exist",
          hint: "pass the name of a file that contains the secret, or \"-\" for standard input")
      }
      throw CommandError(error)
    }
  }

  /// Reads a file with a private key, which no other user may read; `-` is standard input.
  func keyFile(_ path: String) throws(CommandError) -> String {
    if path == "-" { return String(decoding: try file(path, limit: 1 << 17), as: UTF8.self) }
    if File.isDirectory(path) {
      throw .usage(
        "cannot read the key file: \(quoted(path)) is a directory",
        hint: "\(add: "--key-file", "FILE") with the file that the provider gave you")
    }
    return try system(Self.keyFile(at: path))
  }

  static func keyFile(at path: String) throws(POSIXError) -> String {
    // The name may be the key itself.
    if !File.exists(path) { throw .keyFileMissing }
    if !File.isGivenStream(path) { try PrivateFile.checkUnreadable(path) }
    return String(decoding: try File.read(path, limit: 1 << 16, patience: .seconds(60)), as: UTF8.self)
  }

  func secret(_ bytes: [UInt8], _ path: String, called name: String = "secret") throws(CommandError) -> Secret {
    var bytes = bytes
    while bytes.last == UInt8(ascii: "\n") || bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    let place = path == "-" ? "on standard input" : "in \"\(path)\""
    if bytes.isEmpty {
      throw .usage(
        "no \(name) found \(place)",
        hint: path == "-"
          ? "pipe the \(name) to this command, or name a file that contains it" : "write the \(name) to that file")
    }
    if String(validating: bytes, as: UTF8.self) == nil { throw .usage("the secret \(place) is not UTF-8") }
    return Secret(bytes: bytes)
  }

  /// Parses a secret from a provider: one line, or a private key, which no other user may read, or both.
  func issuedSecret(_ bytes: [UInt8], _ path: String, called name: String) throws(CommandError) -> Secret {
    let secret = try secret(bytes, path, called: name)
    let bytes = secret.revealBytes()
    if bytes.contains(UInt8(ascii: "\n")), !bytes.starts(with: "-----BEGIN ".utf8), !secret.isBesideKey {
      let place = path == "-" ? "standard input" : "\"\(path)\""
      throw .usage(
        "invalid \(name): \(place) has several lines",
        hint: "use a file that contains only the \(name): one line, or a private key as PEM")
    }
    try checkUnreadable(bytes, path)
    return secret
  }

  /// The path of `credmgr`, even if another of its programs has replaced it.
  var program: String {
    let isOther = Path.lastComponent(of: executable) != "credmgr"
    guard isOther, let folder = Path.directory(of: executable) else { return executable }
    let prefix = Path.directory(of: Path.directory(of: folder) ?? "") ?? ""
    return [folder + "/credmgr", prefix + "/bin/credmgr"].first(where: File.isExecutable) ?? executable
  }

  /// The name for running this program from a shell, or its path if the name runs another program.
  var command: String {
    let found = (try? Launcher.find("credmgr")).flatMap(Path.resolved)
    return found != nil && found == Path.resolved(program) ? "credmgr" : program
  }

  var reinstalling: Remedy { .reinstalling(program) }
}

extension JSONValue {
  /// The output with the version of its fields, in each element of a list. The version increases if a field disappears
  /// or changes its meaning: docs/output.schema.json.
  fileprivate var versioned: JSONValue {
    if let elements { return .array(elements.map(\.versioned)) }
    return members.map { .object([Member("version", .integer(1))] + $0) } ?? self
  }
}
