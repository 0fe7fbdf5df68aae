import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrPlatform

final class TerminalPassphrase {
  /// Hides input while a passphrase is checked, which takes a second, because the user may already type the next one.
  private var silence: Terminal.Silence?

  func ask(_ question: PassphraseQuestion) throws(POSIXError) -> Secret {
    if silence == nil { silence = try Terminal.Silence() }
    return switch question {
    case .vault(let attempt): try existing("passphrase of the vault: ", attempt)
    case .backup(let attempt): try existing("passphrase of the backup: ", attempt)
    case .export(let attempt): try existing("passphrase of the export file: ", attempt)
    case .newForVault: try new("new passphrase for the vault: ")
    case .newForExport: try new("passphrase for the export file: ")
    }
  }

  /// Shows input again; returns false if the user interrupted meanwhile.
  func settle() -> Bool {
    guard silence != nil else { return true }
    silence = nil
    return !Signals.isInterrupted
  }

  private func existing(_ prompt: String, _ attempt: Int) throws(POSIXError) -> Secret {
    if attempt > 1 { StandardError.tell("wrong passphrase; try again") }
    return Secret(bytes: try Terminal.readPassword(prompt: prompt))
  }

  /// Warns if a new passphrase is too short.
  static func warn(of passphrase: Secret) {
    guard passphrase.count < shortest else { return }
    StandardError.tell("warning: passphrases of fewer than \(shortest) characters are easy to guess")
  }

  private static let shortest = 8

  /// Prompts twice, because a typing mistake would lock the vault permanently.
  private func new(_ prompt: String) throws(POSIXError) -> Secret {
    for _ in 0..<3 {
      let first = try Terminal.readPassword(prompt: prompt)
      if first.isEmpty {
        StandardError.tell("the passphrase is empty; try again")
        continue
      }
      Self.warn(of: Secret(bytes: first))
      if try Terminal.readPassword(prompt: "repeat the passphrase: ") == first { return Secret(bytes: first) }
      StandardError.tell("the passphrases do not match; try again")
    }
    throw .endOfInput
  }
}
