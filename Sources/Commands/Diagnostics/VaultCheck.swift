import CredentialManager
import Platform
import Store
import Text

extension Doctor {
  /// - Returns: the accounts, where the vault opens.
  mutating func checkVault() -> Accounts? {
    guard context.homeFault == nil else { return nil }
    checkPassphraseFile()
    let status: VaultStatus
    let unlockedUntil: Moment?
    do throws(CredentialError) {
      let fault: StoreError?
      (status, unlockedUntil, fault) = try context.source.vaultStatus()
      if let fault { tell(fault, as: .vault, opensOtherwise: status.slots.contains { $0.kind != .keyFile }) }
    } catch .vault(.absent) {
      note(
        .vault, "there is none yet; the first provider that you add makes one",
        hint: "\(credmgr: "providers") to see which there are")
      return nil
    } catch {
      tell(error, as: .vault)
      return nil
    }
    let ways = status.slots.map { $0.kind?.words ?? "way of a newer credmgr" }.joined(separator: ", or the ")
    do throws(CredentialError) {
      let accounts = try context.source.accounts()
      let damage = try context.source.verifyVault()
      if damage.isEmpty {
        let unlocked =
          unlockedUntil.map { ", and is unlocked for \(duration(max($0 - context.clock.now(), .zero)))" } ?? ""
        let records =
          status.recordCount == 1 ? "its one record is as it was" : "all \(status.recordCount) records are as they were"
        ok(.vault, "\(records) written; it opens with the \(ways)\(unlocked)")
      } else {
        tell(damage)
      }
      if status.slots.contains(where: { $0.kind == .secretService }) {
        do {
          try context.source.checkSecretService()
          ok(.keyring, "the Secret Service has the key of the vault")
        } catch { tell(error, as: .keyring) }
      }
      do { _ = try context.source.log() } catch { tell(error, as: .vault) }
      return accounts
    } catch .vault(.passphraseUnavailable(.noTerminal)), .vault(.locked) {
      note(
        .vault, "it is locked, so that nothing in it was looked at; it opens with the \(ways)",
        hint: "\(credmgr: "vault", "unlock")")
    } catch .vault(.passphraseUnavailable) {
      // Told with the file of the passphrase.
    } catch { tell(error, as: .vault) }
    return nil
  }

  mutating func tell(_ error: CredentialError, as check: Diagnostic.Check) {
    if case .vault(let error) = error { tell(error, as: check) } else { problem(.accounts, error.message) }
  }

  private mutating func tell(_ error: StoreError, as check: Diagnostic.Check, opensOtherwise: Bool = false) {
    let message = error.message(passphrase: context.passphraseSource, opensOtherwise: opensOtherwise)
    switch error {
    case .file(.otherOwner) where isForeign, .file(.permissionDenied) where isForeign: break
    case .file(.symbolicLink(let path)): problem(.home, POSIXError.symbolicLink(path: path).message)
    case .secretService: problem(.keyring, message)
    case .damaged, .damagedRecord, .inputOutput:
      problem(check, message.with(hints: [.restoring(vault: context.home.vaultLocation.file)]))
    default: problem(check, message)
    }
  }

  private mutating func checkPassphraseFile() {
    guard case .file(let path) = context.passphraseSource else { return }
    do throws(POSIXError) {
      if File.isGivenStream(path) { return }
      let bytes = try File.read(path, limit: 1 << 16, ordinary: true)
      // What ends a line is no part of it.
      guard !bytes.allSatisfy({ $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) else { throw .endOfInput }
      // Secrets of containers are often readable by all, which need not matter there: it is no problem by itself.
      guard let mode = PrivateFile.modeForOthers(path) else { return }
      note(
        .vault, "other users can read the passphrase in \(quoted(path)) (mode \(String(mode, radix: 8)))",
        hint: "\(run: "chmod", "go=", path)")
    } catch .notRegularFile where !File.isDirectory(path) {
      // A pipe is not read: what writes into it does so once.
    } catch {
      let message = context.passphraseSource.message(error)
      problem(.vault, Message(message.text, hints: message.hints))
    }
  }

  /// Records that can be made anew are made so one by one, and all else at once: a backup mends that, or nothing does.
  private mutating func tell(_ damage: [VaultFinding]) {
    let records = damage.compactMap { finding -> RecordIdentifier? in
      guard case .record(let record, _) = finding else { return nil }
      return [.credential, .registration, .selection].contains(record.kind) ? record : nil
    }
    let more = damage.count > Self.shown ? "; and \(damage.count - Self.shown) more" : ""
    let remedies = records.prefix(Self.shown).map { $0.remedy() }
    problem(
      .vault,
      .vault(damage.prefix(Self.shown).map(\.sentence).joined(separator: "; ") + more)
        .with(hints: records.count == damage.count ? remedies : [.rescuing(context.home.vault)]))
  }

  mutating func checkKeyring() {
    if KernelKeyring.isThere { return ok(.keyring, "the kernel keeps keys, so that \"credmgr vault unlock\" works") }
    note(.keyring, "the kernel keeps no keys here, so that \"credmgr vault unlock\" does not work")
  }
}
