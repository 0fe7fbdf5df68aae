import CredmgrCryptography
import CredmgrDescriptors
import CredmgrPlatform
import CredmgrStore
import CredmgrText
import CredmgrVault

package enum Unlocking: Sendable, Equatable {
  case kept(until: Moment)  // The kernel keeps the keys until then.
  case opensByItself  // The key file opens the vault, so no keys need to be kept.
}

extension CredentialSource {
  // MARK: Slots

  /// Adds a slot, or renews the one of its kind; returns the others. If this throws, nothing changes.
  package func protect(with kind: SlotKind, passphrase: Secret? = nil) throws(CredentialError) -> [SlotKind] {
    let vault = try vault(.readWrite)
    let draft: SlotDraft
    do throws(StoreError) {
      draft = try keys.asking { () throws(StoreError) in
        guard let passphrase else { return try self.draft(kind, passphrase: keys.passphrase(.newForVault)) }
        return try self.draft(kind, passphrase: passphrase)
      }
    } catch .passphraseUnavailable(let error) {
      throw .newPassphraseUnavailable(error)
    } catch {
      throw .vault(error)
    }
    return try inStore { () throws(StoreError) in
      let note = event(.protect, detail: kind.logName)
      try storingItem(of: [draft], vault.protect(with: draft, now: clock.now(), noting: note))
      return try vault.status.slots.compactMap(\.kind).filter { $0 != kind }
    }
  }

  package func unprotect(_ kind: SlotKind) throws(CredentialError) {
    let vault = try vault(.readWrite)
    try inStore { () throws(StoreError) in
      let item = try vault.unprotect(kind, noting: event(.unprotect, detail: kind.logName))
      // A key that no longer opens the vault may remain.
      if let item { try? keys.secretService.remove(item) }
    }
  }

  private func draft(
    _ kind: SlotKind, passphrase: @autoclosure () throws(StoreError) -> Secret
  ) throws(StoreError) -> SlotDraft {
    switch kind {
    case .keyFile: try .keyFile(random: random)
    case .passphrase: try .passphrase(try passphrase(), random: random)
    case .secretService: try .secretService(random: random)
    }
  }

  /// Stores the new key in the Secret Service before the vault needs it. The old key stays, because earlier backups
  /// open with it.
  ///
  /// - Returns: the Secret Service's item of the old key; `nil` if the Secret Service had no key.
  @discardableResult
  private func storingItem(
    of drafts: [SlotDraft], _ change: @autoclosure () throws(StoreError) -> String?
  ) throws(StoreError) -> String? {
    let item = drafts.compactMap(\.item).first
    if let item { try keys.secretService.store(item) }
    do throws(StoreError) { return try change() } catch {
      // The change may have succeeded. If this is uncertain, both keys stay, because a power failure could undo the
      // change.
      if let item, let needed = try? Vault.secretServiceItems(of: home.vaultLocation), !needed.contains(item.name) {
        try? keys.secretService.remove(item.name)
      }
      throw error
    }
  }

  // MARK: Lock and unlock

  package func unlock(for time: Duration) throws(CredentialError) -> Unlocking {
    // Unlocking must not create a vault.
    _ = try inStore(Vault.keyName(of: home.vaultLocation))
    let vault = try vault(.readWrite)
    let opened = vault.openedKeys
    if opened.foundBy == .keyFile { return .opensByItself }
    let now = clock.now()
    try inStore(KeptKeys.keep(opened.keys, of: opened.vault, for: time, now: now))
    note(.unlock)
    return .kept(until: now + time)
  }

  /// Returns whether the kernel kept the keys, and whether the vault still opens without the user.
  package func lock() throws(CredentialError) -> (wasUnlocked: Bool, opensByItself: Bool) {
    let location = home.vaultLocation
    return try inStore { () throws(StoreError) in
      let name = try Vault.keyName(of: location)
      let wasUnlocked = try KeptKeys.forget(name)
      return (wasUnlocked, try Vault.status(of: location).slots.contains { $0.kind == .keyFile })
    }
  }

  // MARK: Rotation

  /// Makes a new vault key and renews every slot except the passphrase itself.
  ///
  /// - Returns: the copy of the old key file and the old item in the Secret Service, which still open earlier backups;
  ///   `nil` for either that did not exist.
  @discardableResult
  package func rotateVault() throws(CredentialError) -> (keyFile: String?, item: String?) {
    _ = try self.accounts()
    let accounts = try accounts(.readWrite)
    let vault = try vault(.readWrite)
    // Saved answers are encrypted with the old key, so move them first.
    try takeAnswersIn(accounts)
    return try inStore { () throws(StoreError) in
      let before = vault.openedKeys.vault
      let drafts = try keys.asking { () throws(StoreError) in
        var drafts: [SlotDraft] = []
        for slot in try vault.status.slots {
          guard let kind = slot.kind else { throw .otherSlots }
          drafts.append(try draft(kind, passphrase: passphrase(of: vault)))
        }
        return drafts
      }
      let keyFile = drafts.contains { $0.kind == .keyFile } ? try home.vaultLocation.keepKeyFile() : nil
      let item: String?
      do throws(StoreError) {
        item = try storingItem(of: drafts, vault.rotate(to: drafts, now: clock.now(), noting: event(.rotate)))
      } catch {
        // The change may have succeeded, so the copy stays.
        if case .unconfirmed = error { throw error }
        if let keyFile { _ = try? File.remove(keyFile) }
        throw error
      }
      let now = clock.now()
      if let kept = KeptKeys(before, now: now) {
        let opened = vault.openedKeys
        try? KeptKeys.keep(opened.keys, of: opened.vault, for: kept.deadline - now, now: now)
      }
      _ = try? KeptKeys.forget(before)
      return (keyFile, item)
    }
  }

  private func passphrase(of vault: Vault) throws(StoreError) -> Secret {
    var attempt = 1
    while true {
      let passphrase = try keys.passphrase(.vault(attempt: attempt))
      if try vault.accepts(passphrase) != false { return passphrase }
      attempt += 1
    }
  }

  // MARK: Backup

  /// Writes a consistent copy of the vault while others may change it; returns the slots that open the backup.
  package func backUpVault(to path: String) throws(CredentialError) -> [SlotKind] {
    let vault = try vault()
    // A vault that cannot be written is backed up as it is.
    try? keepOwnFiles()
    let image = try inStore(vault.image())
    try wrapping(CredentialError.system, PrivateFile.create(path, image))
    note(.backup, path)
    return try inStore(vault.status.slots.compactMap(\.kind))
  }

  /// Restores the vault, and the descriptors and rules in the backup that this machine does not have. `keyFile` opens
  /// the backup. Without it, tries the current key file and the copies from rotations.
  package func restoreVault(from path: String, keyFile: String?) throws(CredentialError) -> VaultRestoration {
    let image = try wrapping(
      CredentialError.system, File.read(path, limit: 1 << 30, ordinary: !File.isGivenStream(path)))
    let location = home.vaultLocation
    let kept = try inStore { () throws(StoreError) in
      let backup = try keys.asking { () throws(StoreError) in
        try Vault.open(
          image: image, path: path, keyFiles: keyFile.map { [$0] } ?? [location.keyFile] + location.keptKeyFiles,
          random: random, holders: keys.holders(now: clock.now(), ofBackup: true))
      }
      let kept = try backup.restore(to: location)
      openVault.close(keeping: OpenedKeys(of: backup))
      return kept
    }
    note(.restore, path)
    var restoration = VaultRestoration(replaced: kept)
    try restoreOwnFiles(noting: &restoration)
    return restoration
  }
}

/// The files that a restoration changed.
package struct VaultRestoration: Sendable, Equatable {
  package var replaced: [String]  // The old vault and its key file.
  package var files: [String] = []  // The descriptors and rules that were missing.
  package var different: [String] = []  // Those that differ from the backup, and stay.
}

/// Descriptors and rules are files beside the vault. Their copies in the vault are only for backups.
extension CredentialSource {
  private static let rulesCopy = RecordIdentifier(kind: .descriptor, provider: "", account: "rules")

  private func keepOwnFiles() throws(CredentialError) {
    let accounts = try accounts(.readWrite)
    let export = try ownFiles(of: accounts)
    var texts: [RecordIdentifier: String] = [:]
    for (name, text) in export.descriptors {
      texts[RecordIdentifier(kind: .descriptor, provider: name, account: "")] = text
    }
    texts[Self.rulesCopy] = export.rules
    var changes: [Change] = []
    for record in try accounts.records(.descriptor, of: nil) {
      if let text = texts[record.identifier], record.payload == Secret(text) {
        texts[record.identifier] = nil
      } else if texts[record.identifier] == nil {
        changes.append(.remove(record.identifier, if: .any))
      }
    }
    changes += texts.map { Change.store(Secret($0.value), as: $0.key) }
    if !changes.isEmpty { try accounts.apply(changes) }
  }

  private func restoreOwnFiles(noting restoration: inout VaultRestoration) throws(CredentialError) {
    for record in try accounts().records(.descriptor, of: nil) {
      let isRules = record.identifier == Self.rulesCopy
      guard isRules || DescriptorLibrary.isIdentifier(record.identifier.provider) else { continue }
      let path = isRules ? home.accountRules : home.userProviders + "/" + record.identifier.provider + ".yaml"
      let bytes = record.payload.revealBytes()
      if File.exists(path) || File.isLink(path) {
        if (try? File.read(path, limit: 1 << 20)) != bytes { restoration.different.append(path) }
        continue
      }
      do throws(POSIXError) {
        if let folder = Path.directory(of: path) { try File.createDirectory(folder) }
        try File.replace(path, bytes)
      } catch { throw .system(error) }
      restoration.files.append(path)
    }
    restoration.files.sort()
    restoration.different.sort()
  }
}

extension SlotKind {
  package var logName: String {
    switch self {
    case .keyFile: "key-file"
    case .passphrase: "passphrase"
    case .secretService: "secret-service"
    }
  }
}
