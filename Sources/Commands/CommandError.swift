import CredentialManager
import HTTP
import Messages
import POSIX
import Providers

/// Why a command ends before it is done.
enum CommandError: Error {
  /// A person is told something.
  case failed(Message)
  /// A descriptor has errors; all of them are reported.
  case invalidDescriptor([Finding])
  /// The program with a network has to do it; the standard input that was read already.
  case handOver(input: [UInt8]?)
  /// The reader of standard output is gone, which is nothing to speak of.
  case brokenPipe

  init(_ error: CredentialError) {
    switch error {
    case .networkNeeded: self = .handOver(input: nil)
    case .provider(.invalid(let findings)): self = .invalidDescriptor(findings)
    default: self = .failed(error.message)
    }
  }

  init(_ error: POSIXError) {
    self = error == .brokenPipe ? .brokenPipe : .failed(error.message)
  }

  /// A mistake in the arguments.
  static func usage(_ text: String, hint: String? = nil) -> CommandError {
    .failed(Message(text, hint: hint, status: .usage))
  }

  static func unknownOption(_ name: String, of command: Command, among known: [String]) -> CommandError {
    let near = nearMiss(name, among: known + ["--help"]).map { " (did you mean \"\($0)\"?)" } ?? ""
    return .usage("unknown option \"\(name)\"\(near)", hint: "run \"credmgr help \(command.name)\"")
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
