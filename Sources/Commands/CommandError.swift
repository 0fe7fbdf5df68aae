import CredentialManager
import Descriptors
import HTTP
import Platform
import Text
import Vault

/// Why a command ends before it is done.
package enum CommandError: Error {
  /// A person is told something.
  case failed(Message)
  /// There is no such account; those that there are. What helps depends on who named it.
  case unknownAccount(String, provider: String, known: [String])
  /// The choice of the default account is damaged; what helps depends on the accounts that there are.
  case damagedSelection(provider: String)
  /// There is nothing to hand out; what helps depends on whether the provider is known and was added.
  case noCredential(provider: String, account: String?)
  /// A descriptor has errors; all of them are reported.
  case invalidDescriptor([Finding])
  /// The rules for accounts have errors; all of them are reported.
  case invalidRules([Finding])
  /// The program with a network has to do it; the standard input that was read already.
  case handOver(input: [UInt8]?)
  /// The reader of standard output is gone, which is nothing to speak of.
  case brokenPipe

  init(_ error: CredentialError) {
    switch error {
    case .networkNeeded: self = .handOver(input: nil)
    case .loginNeeded(let provider, let account, .noCredential):
      self = .noCredential(provider: provider, account: account)
    case .unknownAccount(let name, let provider, let known):
      self = .unknownAccount(name, provider: provider, known: known)
    case .vault(.damagedRecord(let record)) where record.kind == .selection:
      self = .damagedSelection(provider: record.provider)
    case .provider(.invalid(let findings)): self = .invalidDescriptor(findings)
    case .malformedRules(let findings): self = .invalidRules(findings)
    default: self = .failed(error.message)
    }
  }

  package init(_ error: POSIXError) {
    self = error == .brokenPipe ? .brokenPipe : .failed(error.message)
  }

  /// What a person is told of it: findings with their places, and a sentence; `nil` where there is nothing to say.
  var told: (findings: [Finding], message: Message)? {
    switch self {
    case .failed(let message): ([], message)
    case .unknownAccount(let name, let provider, let known):
      ([], CredentialError.unknownAccount(name, provider: provider, known: known).message)
    case .damagedSelection(let provider):
      ([], .damaged([RecordIdentifier(kind: .selection, provider: provider, account: "")]))
    case .noCredential(let provider, let account):
      ([], CredentialError.loginNeeded(provider: provider, account: account, .noCredential).message)
    case .invalidDescriptor(let findings): (findings, ProviderError.invalid(findings).message)
    case .invalidRules(let findings): (findings, CredentialError.malformedRules(findings).message)
    case .handOver:
      (
        [],
        CredentialError.networkNeeded.message.with(
          hint: SetUpFinding.Installation(of: (try? Path.executable()) ?? "/usr/bin/credmgr").hint)
      )
    case .brokenPipe: nil
    }
  }

  /// A mistake in the arguments.
  package static func usage(_ text: String, hint: String? = nil, mistyped: Message.Mistyped? = nil) -> CommandError {
    .failed(Message(text, hint: hint, status: .usage, mistyped: mistyped))
  }

  /// Options of which one alone can be meant.
  static func exclusive(_ options: [String]) -> CommandError {
    .usage(options.map { "\"\($0)\"" }.joined(separator: " and ") + " exclude each other")
  }

  /// - Parameter arguments: those of the program, without its name.
  static func unknownCommand(_ name: String, _ arguments: [String] = []) -> CommandError {
    if name.hasPrefix("-") {
      let near = nearMiss(name, among: ["--help", "--version"])
      return .usage(
        "there is no command before the option \"\(name)\"\(didYouMean(near))",
        hint: ordered(arguments).map { "run \"\($0)\"" } ?? "run \"credmgr help\" to see all commands",
        mistyped: .init(name, meant: near))
    }
    let near = nearMiss(name, among: Command.all.map(\.name))
    return .usage(
      "unknown command \"\(name)\"\(didYouMean(near))", hint: "run \"credmgr help\" to see all commands",
      mistyped: .init(name, meant: near))
  }

  /// The command line with the command first; `nil` where there is none behind an option and its value.
  private static func ordered(_ arguments: [String]) -> String? {
    guard let place = arguments.prefix(3).firstIndex(where: { Command.named($0) != nil }) else { return nil }
    let words = [arguments[place]] + arguments[..<place] + arguments[(place + 1)...]
    let command = (["credmgr"] + words).map(argument).joined(separator: " ")
    return Message.isShown(arguments) && command.count <= Message.longestCommand ? command : nil
  }

  static func unknownOption(_ name: String, of command: Command, among known: [String]) -> CommandError {
    let near = nearMiss(name, among: known + ["--help"])
    return .usage(
      "unknown option \"\(name)\"\(didYouMean(near))",
      hint: "run \"credmgr help \(command.name)\" to see all options", mistyped: .init(name, meant: near))
  }
}

/// Runs a step of the manager.
func manager<Result>(_ step: () throws(CredentialError) -> Result) throws(CommandError) -> Result {
  do { return try step() } catch { throw CommandError(error) }
}

/// Runs a step of the system.
func system<Result>(_ step: () throws(POSIXError) -> Result) throws(CommandError) -> Result {
  do { return try step() } catch { throw CommandError(error) }
}
