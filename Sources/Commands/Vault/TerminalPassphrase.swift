import CredentialManager
import Cryptography
import Platform

final class TerminalPassphrase {
  /// To look at a passphrase takes a second, in which the next one may be typed.
  private var silence: Terminal.Silence?

  func ask(_ question: PassphraseQuestion) throws(POSIXError) -> Secret {
    if silence == nil { silence = try Terminal.Silence() }
    return switch question {
    case .vault(let attempt): try existing("passphrase of the vault: ", attempt)
    case .export(let attempt): try existing("passphrase of the exported file: ", attempt)
    case .newForVault: try new("new passphrase for the vault: ")
    case .newForExport: try new("passphrase for the exported file: ")
    }
  }

  /// Shows again what is typed; false if the person wanted to stop meanwhile.
  func settle() -> Bool {
    guard silence != nil else { return true }
    silence = nil
    return !Signals.isInterrupted
  }

  private func existing(_ prompt: String, _ attempt: Int) throws(POSIXError) -> Secret {
    if attempt > 1 { StandardError.tell("the passphrase is wrong") }
    return Secret(bytes: try Terminal.readPassword(prompt: prompt))
  }

  /// Says that a new passphrase is too short.
  static func warn(of passphrase: Secret) {
    guard passphrase.count < shortest else { return }
    StandardError.tell("warning: a passphrase of fewer than \(shortest) characters is soon guessed")
  }

  private static let shortest = 8

  /// Nobody sees what he types: a mistake would lock the vault for good.
  private func new(_ prompt: String) throws(POSIXError) -> Secret {
    for _ in 0..<3 {
      let first = try Terminal.readPassword(prompt: prompt)
      if first.isEmpty {
        StandardError.tell("an empty passphrase protects nothing")
        continue
      }
      Self.warn(of: Secret(bytes: first))
      if try Terminal.readPassword(prompt: "the same once more: ") == first { return Secret(bytes: first) }
      StandardError.tell("the two are not the same")
    }
    throw .endOfInput
  }
}
