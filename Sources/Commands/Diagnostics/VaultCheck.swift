import CredmgrCredentialManager
import CredmgrMessages
import CredmgrPlatform
import CredmgrStore
import CredmgrText

extension Doctor {
  /// Checks the vault; returns the accounts, or `nil` if the vault does not open.
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
        .vault, "no vault yet; adding a provider creates it",
        hint: "\(credmgr: "providers") to list the providers")
      return nil
    } catch {
      tell(error, as: .vault)
      return nil
    }
    let ways = status.slots.map { $0.kind?.words ?? "slot of a newer credmgr" }.joined(separator: ", or the ")
    do throws(CredentialError) {
      let accounts = try context.source.accounts()
      let damage = try accounts.verify()
      if damage.isEmpty {
        let unlocked =
          unlockedUntil.map { ", and is unlocked for \(duration(max($0 - context.clock.now(), .zero)))" } ?? ""
        let records = status.recordCount == 1 ? "its record is intact" : "all \(status.recordCount) records are intact"
        ok(.vault, records + (ways.isEmpty ? "" : "; the vault opens with the \(ways)\(unlocked)"))
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
        .vault, "the vault is locked, so its records were not checked; it opens with the \(ways)",
        hint: "\(credmgr: "vault", "unlock"); if you lost the passphrase, \(credmgr: "help", "vault")")
    } catch .vault(.passphraseUnavailable) {
      // The check of the passphrase file reports it.
    } catch { tell(error, as: .vault) }
    return nil
  }

  mutating func tell(_ error: CredentialError, as check: Diagnostic.Check) {
    if case .vault(let error) = error { tell(error, as: check) } else { problem(.accounts, error.message) }
  }

  private mutating func tell(_ error: StoreError, as check: Diagnostic.Check, opensOtherwise: Bool? = nil) {
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
      // The line ending is not part of the passphrase.
      guard !bytes.allSatisfy({ $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) else { throw .endOfInput }
      // Containers often make secrets readable by everyone, which may be fine there, so this is only a note.
      guard let mode = PrivateFile.modeForOthers(path) else { return }
      note(
        .vault, "other users can read the passphrase in \(quoted(path)) (mode \(String(mode, radix: 8)))",
        hint: "\(run: "chmod", "go=", path)")
    } catch .notRegularFile where !File.isDirectory(path) {
      // Do not read a pipe, because its content arrives only once.
    } catch {
      let message = context.passphraseSource.message(error)
      problem(.vault, Message(message.text, hints: message.hints))
    }
  }

  /// Lists records that can be recreated one by one. All other damage is one finding, because only a backup can fix it.
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
    do throws(POSIXError) {
      try KernelKeyring.check()
      return ok(.keyring, "the kernel can store keys, so \"credmgr vault unlock\" works")
    } catch {}
    note(.keyring, "the kernel cannot store keys here, so \"credmgr vault unlock\" does not work")
  }
}
