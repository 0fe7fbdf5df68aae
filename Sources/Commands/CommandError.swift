import CredmgrCredentialManager
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

package enum CommandError: Error {
  case failed(Message)
  /// The hints may depend on files and the environment (`Context.message`).
  case credential(CredentialError)
  case docker(DockerError)
  case unknownOption(String, Command)
  /// An operand that looks like an option or a secret.
  case unsafeOperand(String, Command)
  /// `exec` without `--`.
  case missingSeparator([String])
  /// `credmgr-online` must continue, with the standard input already read.
  case handOver(input: [UInt8]?)
  /// The output is complete, or its reader has gone.
  case ended(ExitStatus)

  init(_ error: CredentialError) { self = error == .networkNeeded ? .handOver(input: nil) : .credential(error) }

  package init(_ error: POSIXError) { self = error == .brokenPipe ? .ended(.unexpected) : .failed(error.message) }

  /// The message, made without reading files or the environment (`Context.message`); `nil` if no message applies.
  package var message: Message? {
    switch self {
    case .failed(let message): message
    case .credential(let error): error.message
    case .docker(let error): Message(error.rawValue)
    case .unknownOption(let word, let command): Self.unknownOption(word, of: command)
    case .unsafeOperand(let operand, let command): Self.unsafeOperand(operand, of: command)
    case .missingSeparator: Message("\"--\" is missing before the command", hint: "usage: credmgr exec ID -- COMMAND")
    case .handOver:
      CredentialError.networkNeeded.message.with(hints: [.reinstalling((try? Path.executable()) ?? "/usr/bin/credmgr")])
    case .ended: nil
    }
  }

  package static func usage(_ text: String, hint: Remedy? = nil, hints: [Remedy] = []) -> CommandError {
    .failed(Message(text, hint: hint, hints: hints))
  }

  static func failed(_ text: String, hint: Remedy? = nil, status: ExitStatus) -> CommandError {
    .failed(Message(text, hint: hint, status: status))
  }

  static func exclusive(_ options: [String]) -> CommandError {
    .usage(options.map { "\"\($0)\"" }.joined(separator: " and ") + " cannot be used together")
  }

  /// Suggests a known command. `arguments` are the program's, without its name.
  static func unknownCommand(_ word: String, _ arguments: [String] = []) -> CommandError {
    let isOption = word.hasPrefix("-")
    let known = isOption ? ["--help", "--version"] : Command.all.map(\.name)
    let name = SecretOption.shown(word, among: known)
    if let (meant, count) = SimilarWords.command(for: [name] + arguments.dropFirst()) {
      let words = ["credmgr"] + meant + arguments.dropFirst(count)
      // `exec` also needs a command to run.
      let isWhole =
        !arguments.isEmpty && (meant != ["exec"] || words.contains("--")) && CommandLine(words).shown(words) != nil
      let removes = isWhole && meant == ["remove-provider"] && words.count == 3
      let logout: Remedy = removes ? "\(credmgr: "logout", words[2]) to log out, or " : ""
      return .usage(
        "unknown command \"\(name)\"\(didYouMean(meant.joined(separator: " ")))",
        hint: isWhole ? logout + "\(run: words)" : "\(credmgr: "help", meant[0])")
    }
    let near = nearMiss(name, among: known)
    let ordered = isOption ? ordered(arguments) : nil
    let help: Remedy =
      if let near, !isOption { "\(credmgr: "help", near)" } else { "\(credmgr: "help") to see all commands" }
    return .usage(
      (isOption ? "a command must come before the option" : "unknown command") + " \"\(name)\"\(didYouMean(near))",
      hints: .correcting(name, to: near) + [ordered.map { "\(run: $0)" } ?? help])
  }

  /// Suggests a login if the first word is a provider instead of a command.
  static func missingCommand(before provider: String) -> CommandError {
    .usage(
      "the command is missing before the provider \(quoted(provider))", hint: "\(credmgr: "login", provider) to log in")
  }

  /// Returns the command line with the command first; `nil` if no command follows an option and its value.
  private static func ordered(_ arguments: [String]) -> [String]? {
    guard let place = arguments.prefix(3).firstIndex(where: { Command.named($0) != nil }) else { return nil }
    let words = ["credmgr", arguments[place]] + arguments[..<place] + arguments[(place + 1)...]
    return CommandLine(words).shown(words) == nil ? nil : words
  }

  private static func unknownOption(_ word: String, of command: Command) -> Message {
    if word == "--json", let reason = command.withoutJSON {
      return .usage("\(quoted("credmgr " + command.name)) has no \"--json\": \(reason)")
    }
    // The words before "--" of `exec` may be any option, of which it takes one.
    let known = command.passesOptions ? Command.common.map(\.name) : command.options.map(\.name)
    let name = String(word.prefix { $0 != "=" && $0 != ":" })
    let near = SimilarWords.option(for: name, of: command) ?? nearMiss(name, among: known + ["--help"])
    if name.hasPrefix("--"), SecretOption.isMeant(by: name) { return CommandError.secretOption(name, of: command) }
    let shown = near == nil ? SecretOption.shown(word, among: known) : name
    return Message(
      "unknown option \"\(shown)\"\(didYouMean(near))",
      hints: (SecretOption.isMeant(by: name) ? [] : .correcting(name, to: near)) + [
        "\(credmgr: "help", command.name) to see all options"
      ])
  }
}

/// Runs a step of the manager and converts its error, as do the functions below.
func manager<Result>(_ step: @autoclosure () throws(CredentialError) -> Result) throws(CommandError) -> Result {
  do { return try step() } catch { throw CommandError(error) }
}

func http<Result>(_ step: @autoclosure () throws(HTTPError) -> Result) throws(CommandError) -> Result {
  do { return try step() } catch { throw .failed(error.message()) }
}

func library<Result>(_ step: @autoclosure () throws(ProviderError) -> Result) throws(CommandError) -> Result {
  do { return try step() } catch { throw CommandError(CredentialError.provider(error)) }
}

func system<Result>(_ step: @autoclosure () throws(POSIXError) -> Result) throws(CommandError) -> Result {
  do { return try step() } catch { throw CommandError(error) }
}

extension Remedy {
  /// Returns the command that installs missing parts of `credmgr`, depending on how it was installed.
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
      return "reinstall the package: \(run: "sudo", "dpkg", "-i", file) in its directory"
    }
    let file = "credmgr-\(Program.version)-linux-\(machine).tar.xz"
    let prefix = Path.directory(of: Path.directory(of: program) ?? "") ?? "/usr/local"
    return "unpack the archive again: \(run: "tar", "-xf", file, "--strip-components=1", "-C", prefix) in its directory"
  }
}
