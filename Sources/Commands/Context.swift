import CredentialManager
import Cryptography
import Descriptors
import JSON
import Platform
import Text
import Store

package struct Context {
  package let source: CredentialSource
  /// Why there is no home, for a command that does without one.
  let homeFault: CredentialError?
  let clock: any WallClock
  let executable: String
  let environment: (String) -> String?
  /// The limit of core dumps from before this program forbade its own, for one that takes its place.
  let coreLimit: UInt64?
  let online: Program.Online?
  let line: CommandLine

  package var home: Home { source.home }

  func output(_ text: String) throws(CommandError) { try system(Terminal.writeOutput(text)) }

  func output(_ value: JSONValue) throws(CommandError) { try output(value.formatted + "\n") }

  func output(_ text: @autoclosure () -> String, orJSON value: @autoclosure () -> JSONValue) throws(CommandError) {
    try isJSON ? output(value()) : output(text())
  }

  var isJSON: Bool { line.invocation?.has("--json") == true }

  func tell(_ text: String) { StandardError.tell(text) }

  func tell(hint: Remedy) { hint.sentence(after: line).map { tell("hint: " + $0) } }

  /// By option, by the environment, or by a rule of the configuration; `nil` for the default account.
  func account(_ invocation: Invocation, of provider: String) throws(CommandError) -> String? {
    try account(invocation.value("--account"), of: provider)
  }

  func account(_ name: String?, of provider: String) throws(CommandError) -> String? {
    try choice(name, of: provider, remotes: RepositoryContext(environment: environment).remotes)?.name
  }

  /// `nil` where nothing but the default account is meant.
  func choice(
    _ option: String?, of provider: String, remotes: () -> [RemoteAddress]
  ) throws(CommandError) -> AccountChoice? {
    if let option { return AccountChoice(try accountName(option), .option) }
    if let named = environmentAccount(of: provider) { return AccountChoice(try accountName(named), .environment) }
    let folders = RepositoryContext(environment: environment).folders
    let rule = try manager(source.accountRules().first(for: [provider], remotes: remotes, folders: folders))
    return rule.map { AccountChoice($0.account, .rule($0)) }
  }

  /// The account that `CREDMGR_ACCOUNT` names for a provider.
  func environmentAccount(of provider: String) -> String? {
    AccountChoice.named(in: environment("CREDMGR_ACCOUNT") ?? "").first { $0.provider ?? provider == provider }?.name
  }

  private func accountName(_ name: String) throws(CommandError) -> String {
    guard Accounts.isName(name) else { throw CommandError(CredentialError.malformedAccount(name)) }
    return name
  }

  func provider(_ text: String) throws(CommandError) -> String {
    if DescriptorLibrary.isIdentifier(text) { return text }
    let near = nearMiss(text, among: source.knownProviders())
    throw CommandError(
      .provider(near == nil ? .malformedIdentifier(text) : .unknown(identifier: text, suggestion: near)))
  }

  func load(_ provider: String) throws(CommandError) -> DescriptorLibrary.Loaded {
    if let unknown = unknown(provider) { throw CommandError(unknown) }
    return try library(home.library.load(provider))
  }

  func unknown(_ provider: String) -> CredentialError? {
    guard home.library.path(of: provider) == nil else { return nil }
    return .provider(.unknown(identifier: provider, suggestion: nearMiss(provider, among: source.knownProviders())))
  }

  /// Says which accounts are damaged, after the others were dealt with; those that are known are not read again.
  func reportDamagedRecords(_ provider: String?, without known: [Account] = []) throws(CommandError) {
    let damaged = try manager(source.accountsIfAny()?.unreadable(of: provider, without: known) ?? [])
    if !damaged.isEmpty { throw .failed(.damaged(damaged)) }
  }

  /// What a person is told of an error, with what helps here; `nil` where there is nothing to say.
  func message(_ error: CommandError) -> Message? {
    guard case .credential(let error) = error else { return error.message.map { $0.with(hints: resolved($0.hints)) } }
    let message = message(error)
    return message.with(hints: resolved(message.hints))
  }

  private func message(_ error: CredentialError) -> Message {
    switch error {
    case .loginNeeded(let provider, let account, .noCredential): return noCredential(provider, account)
    case .unknownAccount(let name, let provider, let known):
      let isNamed = line.invocation.map { $0.value("--account") != nil || $0.operands.contains(name) } ?? false
      guard !isNamed, environmentAccount(of: provider) == name else { return error.message }
      let accounts = (try? source.accountsIfAny()?.accounts(of: nil)) ?? []
      let others = accounts.filter { $0.name == name }.map(\.provider)
      return CredentialError.unknownAccount(ofEnvironment: name, provider: provider, known: known, others: others)
    case .vault(.damagedRecord(let record)) where record.kind == .selection:
      let names = names(at: record.provider)
      let others = names.count > 1 ? "; there are \(some(names))" : ""
      return Message(error.message.text + others, hint: mending(record), status: .vault)
    case .vault(.secretService(let fault)):
      let slots = (try? source.vaultStatus())?.status.slots ?? []
      return fault.message(opensVault: slots.contains { $0.kind == .secretService })
    case .vault(let error): return error.message(passphrase: passphraseSource)
    default: return error.message
    }
  }

  private func noCredential(_ provider: String, _ account: String?) -> Message {
    if let unknown = unknown(provider) { return unknown.message }
    let message = CredentialError.loginNeeded(provider: provider, account: account, .noCredential).message
    do {
      guard try source.accountsIfAny()?.registration(of: provider) == nil else { return message }
    } catch { return self.message(error) }
    let needs = (try? home.library.load(provider)).map { ClientNeeds($0.descriptor) }
    let add = "\(credmgr: ["add-provider", provider] + (needs?.options ?? ["--client-id", "ID"])), then " as Remedy
    let login = "\(command: ["credmgr", "login", provider] + accountOption(account))" as Remedy
    let register: Remedy = "\(credmgr: "providers", provider) to see where a client is registered"
    return message.with(hints: [add + login] + (needs?.needsIdentifier == false ? [] : [register]))
  }

  func mending(_ record: RecordIdentifier) -> Remedy {
    record.remedy(account: record.kind == .selection ? names(at: record.provider).first : nil)
  }

  private func names(at provider: String) -> [String] {
    (try? source.accountsIfAny()?.accounts(of: provider).map(\.name)) ?? []
  }

  /// The duration of an option.
  func duration(_ option: String, _ invocation: Invocation) throws(CommandError) -> Duration? {
    guard let text = invocation.value(option) else { return nil }
    if let duration = Duration(text) { return duration }
    throw .usage("\"\(text)\" is no duration", hint: "durations are written 90s, 5m, 8h or 30d")
  }

  /// Values of the options `--set NAME=VALUE`, and `NAME=@FILE` for variables that are secret.
  func variables(
    _ invocation: Invocation, of descriptor: Descriptor?,
    read: (_ path: String, _ name: String) throws(CommandError) -> [UInt8]
  ) throws(CommandError) -> [String: String] {
    var variables: [String: String] = [:]
    for text in invocation.all("--set") {
      guard let sign = text.firstIndex(of: "="), sign > text.startIndex else {
        // It may be a value alone.
        throw .usage("the value of \"--set\" is not of the form NAME=VALUE")
      }
      let name = String(text[..<sign])
      var value = String(text[text.index(after: sign)...])
      if let variable = descriptor?.variable(name), variable.isSecret {
        guard value.hasPrefix("@") else { throw .failed(.secretInArguments(variable)) }
        let path = String(value.dropFirst())
        value = try secret(read(path, name), path).reveal()
      }
      variables[name] = value
    }
    return variables
  }

  /// A file that an option or an operand names; `-` is standard input.
  func file(_ path: String, limit: Int, ordinary: Bool = false) throws(CommandError) -> [UInt8] {
    try system(read(path, limit: limit, ordinary: ordinary))
  }

  /// - Parameter patience: for how long a pipe is waited for; without it, for ever. `ordinary` refuses pipes.
  private func read(_ path: String, limit: Int, ordinary: Bool, patience: Duration? = nil) throws(POSIXError) -> [UInt8]
  {
    if path == "-" { return try File.readStandardInput(limit: limit) }
    return try File.read(path, limit: limit, ordinary: ordinary && !File.isGivenStream(path), patience: patience)
  }

  /// A descriptor that an operand names: an ordinary file, `-`, or what a shell puts in the place of `<(…)`.
  package func descriptor(_ path: String) throws(CommandError) -> [UInt8] {
    do throws(POSIXError) { return try read(path, limit: 1 << 20, ordinary: true) } catch {
      guard case .tooLarge = error else { throw CommandError(error) }
      throw .credential(.provider(.invalid([Finding.tooLarge(Self.descriptorName(path))])))
    }
  }

  package static func isDescriptorFile(_ source: String) -> Bool {
    source == "-" || source.contains("/") || source.hasSuffix(".yaml")
  }

  static func descriptorName(_ path: String) -> String { path == "-" ? "<standard input>" : path }

  package func secret(_ path: String, called name: String) throws(CommandError) -> Secret {
    try secret(secretFile(path, called: name, patience: File.isGivenStream(path) ? nil : .seconds(60)), path)
  }

  /// Reads a file with a secret. A missing file's name may be the secret itself, so it is not repeated. At a terminal,
  /// `-` prompts for the secret by its name, without echo.
  func secretFile(_ path: String, called name: String, patience: Duration? = nil) throws(CommandError) -> [UInt8] {
    if path == "-", Terminal.isTerminal(0) {
      return try system(Terminal.readPassword(prompt: StandardError.prompt(name + ":"), limit: 1 << 16))
    }
    do throws(POSIXError) { return try read(path, limit: 1 << 16, ordinary: false, patience: patience) } catch {
      guard File.exists(path) else {
        throw .usage(
          "the file that is to hold the secret does not exist",
          hint: "write the secret into a file, and name that file; \"-\" is standard input")
      }
      throw CommandError(error)
    }
  }

  func secret(_ bytes: [UInt8], _ path: String) throws(CommandError) -> Secret {
    var bytes = bytes
    while bytes.last == UInt8(ascii: "\n") || bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    let place = path == "-" ? "on standard input" : "in \"\(path)\""
    if bytes.isEmpty { throw .usage("there is no secret \(place)") }
    if String(validating: bytes, as: UTF8.self) == nil { throw .usage("the secret \(place) is not UTF-8") }
    return Secret(bytes: bytes)
  }

  /// A secret that a provider gave: one line, or a private key.
  func issuedSecret(_ bytes: [UInt8], _ path: String, called name: String) throws(CommandError) -> Secret {
    let secret = try secret(bytes, path)
    let bytes = secret.revealBytes()
    if bytes.contains(UInt8(ascii: "\n")), !bytes.starts(with: "-----BEGIN ".utf8) {
      let place = path == "-" ? "standard input" : "\"\(path)\""
      throw .usage(
        "\(place) has several lines, and is no \(name)",
        hint: "name a file with the \(name) alone: one line, or a private key as PEM")
    }
    return secret
  }

  func noteHandOut(_ account: Account, by command: String) {
    source.noteHandOut(account, to: command + (ParentProcess.name.map { " for " + $0 } ?? ""))
  }

  /// The file of `credmgr` itself, also where another program of ours has taken its place.
  var program: String {
    let isOther = Path.lastComponent(of: executable) != "credmgr"
    guard isOther, let folder = Path.directory(of: executable) else { return executable }
    let prefix = Path.directory(of: Path.directory(of: folder) ?? "") ?? ""
    return [folder + "/credmgr", prefix + "/bin/credmgr"].first(where: File.isExecutable) ?? executable
  }

  /// How a shell finds this program: by its name, unless that is another program.
  var command: String {
    let found = (try? Launcher.find("credmgr")).flatMap(Path.resolved)
    return found != nil && found == Path.resolved(program) ? "credmgr" : program
  }

  var reinstalling: Remedy { .reinstalling(program) }
}

extension Remedy {
  /// What brings the parts that `credmgr` lacks, by the way it came here.
  static func reinstalling(_ program: String) -> Remedy {
    let parts = program.split(separator: "/")
    #if arch(arm64)
      let (machine, debian) = ("aarch64", "arm64")
    #else
      let (machine, debian) = ("x86_64", "amd64")
    #endif
    if let build = parts.firstIndex(of: ".build") {
      return "\(run: "swift", "build", "--package-path", "/" + parts[..<build].joined(separator: "/"))"
    }
    if program == "/usr/bin/credmgr", File.exists("/usr/share/doc/credmgr/changelog.gz") {
      let file = "credmgr_\(Program.version)_\(debian).deb"
      return "install the package again: \(run: "sudo", "dpkg", "-i", file) where it is"
    }
    let file = "credmgr-\(Program.version)-linux-\(machine).tar.xz"
    let folder = Path.directory(of: Path.directory(of: program) ?? "") ?? "/usr/local"
    return "unpack the archive again: \(run: "tar", "-xf", file, "--strip-components=1", "-C", folder) where it is"
  }
}

func accountOption(_ name: String?) -> [String] { name.map { ["--account", $0] } ?? [] }
