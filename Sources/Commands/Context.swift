import CredentialManager
import Cryptography
import HTTP
import JSON
import Messages
import OAuth
import POSIX
import Providers

/// What a command works with.
struct Context {
  let source: CredentialSource
  let clock: any WallClock
  /// The program's own file.
  let executable: String
  let environment: (String) -> String?

  var home: Home { source.home }

  /// Prints a result.
  func output(_ text: String) throws(CommandError) {
    try system { () throws(POSIXError) in try Terminal.writeOutput(text) }
  }

  /// Prints a result as JSON.
  func output(_ value: JSONValue) throws(CommandError) { try output(value.formatted + "\n") }

  /// Tells a person something.
  func tell(_ text: String) { Terminal.writeError("credmgr: " + Message.visible(text) + "\n") }

  /// The account that is asked for: by option, or by the environment.
  func account(_ invocation: Invocation) throws(CommandError) -> String? {
    guard let name = invocation.value("--account") ?? environment("CREDMGR_ACCOUNT").flatMap({ $0.isEmpty ? nil : $0 })
    else { return nil }
    guard Accounts.isName(name) else { throw CommandError(CredentialError.malformedAccount(name)) }
    return name
  }

  /// The identifier of a provider in an operand.
  func provider(_ text: String) throws(CommandError) -> String {
    guard DescriptorLibrary.isIdentifier(text) else {
      throw CommandError(CredentialError.provider(.malformedIdentifier(text)))
    }
    return text
  }

  /// The duration of an option, in seconds.
  func duration(_ option: String, _ invocation: Invocation) throws(CommandError) -> Int64? {
    guard let text = invocation.value(option) else { return nil }
    guard let seconds = seconds(ofDuration: text) else {
      throw .usage("\"\(text)\" is no duration", hint: "durations are written 90s, 5m, 8h or 30d")
    }
    return seconds
  }

  /// Values of the options `--set NAME=VALUE`.
  func variables(_ invocation: Invocation) throws(CommandError) -> [String: String] {
    var variables: [String: String] = [:]
    for text in invocation.all("--set") {
      guard let sign = text.firstIndex(of: "="), sign > text.startIndex else {
        throw .usage("\"\(text)\" is not of the form NAME=VALUE")
      }
      variables[String(text[..<sign])] = String(text[text.index(after: sign)...])
    }
    return variables
  }

  /// A file that an option names; `-` is standard input.
  func file(_ path: String, limit: Int = 1 << 20) throws(CommandError) -> [UInt8] {
    try system { () throws(POSIXError) in
      path == "-" ? try File.readStandardInput(limit: limit) : try File.read(path, limit: limit)
    }
  }

  /// A secret in a file, without the line break at its end.
  func secret(_ path: String) throws(CommandError) -> Secret {
    var bytes = try file(path, limit: 1 << 16)
    while bytes.last == UInt8(ascii: "\n") || bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    guard !bytes.isEmpty, String(validating: bytes, as: UTF8.self) != nil else {
      throw .usage("there is no secret in \"\(path)\"")
    }
    return Secret(bytes: bytes)
  }

  /// A program that lies beside this one, or in `libexec/credmgr` of the same prefix.
  func sibling(_ name: String) -> String? {
    let folder = Path.directory(of: executable) ?? "/"
    return [folder + "/" + name, (Path.directory(of: folder) ?? "") + "/libexec/credmgr/" + name].first {
      File.isExecutable($0)
    }
  }

  func waiting(for provider: String, _ account: String?) -> (Double) -> Void {
    var isTold = false
    return { seconds in
      if seconds >= 1, !isTold, Terminal.isTerminal(2) {
        isTold = true
        tell("waiting for another process with " + (account.map { "\"\($0)\" at " } ?? "") + "\"\(provider)\"")
      }
    }
  }
}
