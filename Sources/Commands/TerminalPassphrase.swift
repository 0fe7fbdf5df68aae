import CredentialManager
import Cryptography
import Messages
import POSIX

/// Asks the person at the terminal for a passphrase.
enum TerminalPassphrase {
  private static let attempts = 3

  static func ask(_ question: PassphraseQuestion) throws(POSIXError) -> Secret {
    switch question {
    case .vault(let attempt): try existing("passphrase of the vault: ", attempt)
    case .export(let attempt): try existing("passphrase of the exported file: ", attempt)
    case .newForVault: try new("new passphrase for the vault: ")
    case .newForExport: try new("passphrase for the exported file: ")
    }
  }

  /// Asks nobody.
  static func nobody(_ question: PassphraseQuestion) throws(POSIXError) -> Secret { throw .noTerminal }

  private static func existing(_ prompt: String, _ attempt: Int) throws(POSIXError) -> Secret {
    if attempt > 1 { StandardError.tell("the passphrase is wrong") }
    return Secret(bytes: try Terminal.readPassword(prompt: prompt))
  }

  /// Nobody sees what he types: a mistake would lock the vault for good.
  private static func new(_ prompt: String) throws(POSIXError) -> Secret {
    for _ in 0..<attempts {
      let first = try Terminal.readPassword(prompt: prompt)
      if first.isEmpty {
        StandardError.tell("an empty passphrase protects nothing")
        continue
      }
      if try Terminal.readPassword(prompt: "the same once more: ") == first { return Secret(bytes: first) }
      StandardError.tell("the two are not the same")
    }
    throw .endOfInput
  }
}
