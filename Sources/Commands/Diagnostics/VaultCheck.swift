import CredentialManager
import Platform
import Text
import Store

extension Doctor {
  /// - Returns: the accounts, where the vault opens.
  mutating func checkVault() -> Accounts? {
    guard context.homeFault == nil else { return nil }
    checkPassphraseFile()
    let status: VaultStatus
    let unlockedUntil: Int64?
    do throws(CredentialError) {
      let fault: StoreError?
      (status, unlockedUntil, fault) = try context.source.vaultStatus()
      if let fault { tell(fault, opensOtherwise: status.slots.contains { $0.kind != .keyFile }) }
    } catch .vault(.absent) {
      note(
        .vault, "there is none yet; the first provider that you add makes one",
        "\(credmgr: "providers") to see which there are")
      return nil
    } catch {
      tell(error)
      return nil
    }
    let ways = status.slots.map { $0.kind?.words ?? "way of a newer credmgr" }.joined(separator: ", or the ")
    do throws(CredentialError) {
      let accounts = try context.source.accounts()
      let damage = try context.source.verifyVault()
      if damage.isEmpty {
        let unlocked = unlockedUntil.map { ", and is unlocked for \(duration(max($0 - context.clock.now(), 0)))" } ?? ""
        let records =
          status.recordCount == 1 ? "its one record is as it was" : "all \(status.recordCount) records are as they were"
        ok(.vault, "\(records) written; it opens with the \(ways)\(unlocked)")
      } else {
        tell(damage)
      }
      if status.slots.contains(where: { $0.kind == .secretService }) { checkSecretService() }
      return accounts
    } catch .vault(.passphraseUnavailable(.noTerminal)), .vault(.locked) {
      note(
        .vault, "it is locked, so that nothing in it was looked at; it opens with the \(ways)",
        "\(credmgr: "vault", "unlock")")
    } catch .vault(.passphraseUnavailable) {
      // Told with the file of the passphrase.
    } catch {
      tell(error)
    }
    return nil
  }

  private mutating func tell(_ error: CredentialError) {
    if case .vault(let error) = error { tell(error) } else { problem(.accounts, error.message) }
  }

  private mutating func tell(_ error: StoreError, opensOtherwise: Bool = false) {
    switch error {
    case .file(.otherOwner) where isForeign, .file(.permissionDenied) where isForeign: break
    case .file(.symbolicLink(let path)): tellLink(path)
    case .secretService(let fault):
      problem(.keyring, error.message.with(hints: [fault.remedy(unnamedBus: unnamedBus)]))
    default:
      problem(
        .vault,
        Message(
          error.message.text, hints: error.remedies(context.home.vault, opensOtherwise: opensOtherwise),
          status: .vault))
    }
  }

  private mutating func checkPassphraseFile() {
    guard let path = value("CREDMGR_PASSPHRASE_FILE") else { return }
    do throws(POSIXError) {
      if File.isGivenStream(path) { return }
      let bytes = try File.read(path, limit: 1 << 16, ordinary: true)
      // What ends a line is no part of it.
      guard bytes.allSatisfy({ $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) else {
        // Secrets of containers are often readable by all, which need not matter there: it is no problem by itself.
        guard let mode = PrivateFile.modeForOthers(path) else { return }
        return note(
          .vault, "other users can read the passphrase in \(quoted(path)) (mode \(String(mode, radix: 8)))",
          "\(run: "chmod", "go=", path)")
      }
      throw .endOfInput
    } catch .notRegularFile where !File.isDirectory(path) {
      // A pipe is not read: what writes into it does so once.
    } catch {
      problem(.vault, error.passphraseFileWords(path), Message.mendingPassphraseFile)
    }
  }

  static let shownDamage = 5

  /// Records that can be made anew are told one by one, and all else at once: a backup mends that, or nothing does.
  private mutating func tell(_ damage: [VaultFinding]) {
    var records: [(finding: VaultFinding, record: RecordIdentifier)] = []
    for finding in damage {
      guard case .record(let record, _) = finding, [.credential, .registration, .selection].contains(record.kind) else {
        return problem(
          .vault, damage.map(\.sentence).joined(separator: "; "), .rescuing(context.home.vault), status: .vault)
      }
      records.append((finding, record))
    }
    for (finding, record) in records.prefix(Self.shownDamage) {
      problem(.vault, finding.sentence, record.remedy(), status: .vault)
    }
    let count = records.count - Self.shownDamage
    if count > 0 {
      problem(
        .vault, "\(count) more \(count == 1 ? "record is" : "records are") not as written",
        records[Self.shownDamage].record.remedy(), status: .vault)
    }
  }

  private mutating func checkSecretService() {
    do throws(CredentialError) {
      try context.source.checkSecretService()
      ok(.keyring, "the Secret Service has the key of the vault")
    } catch {
      tell(error)
    }
  }

  /// The socket of the session's bus, where it is there and the environment does not say so.
  private var unnamedBus: String? {
    guard SessionBus.address(environment: context.environment) == nil else { return nil }
    let path = "/run/user/\(UserEntry.identifier)/bus"
    return File.exists(path) ? path : nil
  }

  mutating func checkKeyring() {
    if KernelKeyring.isThere {
      ok(.keyring, "the kernel keeps keys, so that \"credmgr vault unlock\" works")
    } else {
      note(.keyring, "the kernel keeps no keys here, so that \"credmgr vault unlock\" does not work")
    }
  }
}
