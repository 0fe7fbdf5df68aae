import Cryptography
import Platform
import Store
import Text
import Vault

package enum Unlocking: Sendable, Equatable {
  case kept(until: Moment)  // The keys are kept until then.
  case opensByItself  // The key file opens the vault: there is nothing to keep.
}

extension CredentialSource {
  // MARK: Slots

  /// Needs no key. `keyFileFault` is what is wrong with a key file.
  package func vaultStatus() throws(CredentialError) -> (
    status: VaultStatus, unlockedUntil: Moment?, keyFileFault: StoreError?
  ) {
    let location = home.vaultLocation
    return try inStore { () throws(StoreError) in
      let name = try Vault.keyName(of: location)
      let status = try Vault.status(of: location)
      return (status, KeptKeys(name)?.deadline, Vault.keyFileFault(at: location))
    }
  }

  /// Makes a way into the vault, or renews the one of its kind; returns the others. When it throws, nothing is changed.
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
      try changingItems([draft], vault.protect(with: draft, now: clock.now(), noting: note))
      return try vault.status.slots.compactMap(\.kind).filter { $0 != kind }
    }
  }

  package func unprotect(_ kind: SlotKind) throws(CredentialError) {
    let vault = try vault(.readWrite)
    try inStore(changingItems([], vault.unprotect(kind, noting: event(.unprotect, detail: kind.logName))))
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

  /// The Secret Service gets the new key before the vault needs it, and gives up the old one after that.
  private func changingItems(
    _ drafts: [SlotDraft], _ change: @autoclosure () throws(StoreError) -> String?
  ) throws(StoreError) {
    let item = drafts.compactMap(\.item).first
    if let item { try keys.secretService.store(item) }
    let old: String?
    do throws(StoreError) { old = try change() } catch {
      // What went wrong may have done so behind the change. In doubt both keys stay: after a power cut it could be the
      // old one that is needed.
      if let item, let needed = try? Vault.secretServiceItems(of: home.vaultLocation), !needed.contains(item.name) {
        try? keys.secretService.remove(item.name)
      }
      throw error
    }
    // A key that opens nothing any more may stay behind.
    if let old { try? keys.secretService.remove(old) }
  }

  // MARK: Lock and unlock

  package func unlock(for time: Duration) throws(CredentialError) -> Unlocking {
    // One that is not there is not made for it.
    _ = try inStore(Vault.keyName(of: home.vaultLocation))
    let vault = try vault(.readWrite)
    let opened = vault.openedKeys
    if opened.foundBy == .keyFile { return .opensByItself }
    let now = clock.now()
    try inStore(KeptKeys.keep(opened.keys, of: opened.vault, for: time, now: now))
    note(.unlock)
    return .kept(until: now + time)
  }

  /// Whether the kernel kept the keys, and whether the vault can be opened without a person all the same.
  package func lock() throws(CredentialError) -> (wasUnlocked: Bool, opensByItself: Bool) {
    let location = home.vaultLocation
    return try inStore { () throws(StoreError) in
      let name = try Vault.keyName(of: location)
      let wasUnlocked = KeptKeys(name) == nil ? false : try KeptKeys.forget(name)
      return (wasUnlocked, try Vault.status(of: location).slots.contains { $0.kind == .keyFile })
    }
  }

  // MARK: Rotation

  /// Makes a new vault key, and renews every way into the vault but the passphrase itself.
  ///
  /// - Returns: the copy of the old key file, which still opens earlier backups; `nil` if there was no key file.
  @discardableResult
  package func rotateVault() throws(CredentialError) -> String? {
    _ = try self.accounts()
    let accounts = try accounts(.readWrite)
    let vault = try vault(.readWrite)
    // What waits beside the vault is sealed with the key that is about to go.
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
      do throws(StoreError) {
        try changingItems(drafts, vault.rotate(to: drafts, now: clock.now(), noting: event(.rotate)))
      } catch {
        if let keyFile { _ = try? File.remove(keyFile) }
        throw error
      }
      guard let kept = KeptKeys(before) else { return keyFile }
      let opened = vault.openedKeys
      let now = clock.now()
      if kept.deadline > now {
        try? KeptKeys.keep(opened.keys, of: opened.vault, for: kept.deadline - now, now: now)
      }
      _ = try? KeptKeys.forget(before)
      return keyFile
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

  /// Writes the vault as it is into a new file, while others may change it; returns the ways that the backup opens by.
  package func backUpVault(to path: String) throws(CredentialError) -> [SlotKind] {
    let vault = try vault()
    let image = try inStore(vault.image())
    try wrapping(CredentialError.system, PrivateFile.create(path, image))
    note(.backup, path)
    return try inStore(vault.status.slots.compactMap(\.kind))
  }

  /// Returns the files that keep the replaced vault. `keyFile` opens the backup; without it, the current key file and
  /// those that rotations copied are tried.
  package func restoreVault(from path: String, keyFile: String?) throws(CredentialError) -> [String] {
    let image = try wrapping(
      CredentialError.system, File.read(path, limit: 1 << 30, ordinary: !File.isGivenStream(path)))
    let location = home.vaultLocation
    let kept = try inStore { () throws(StoreError) in
      let backup = try keys.asking { () throws(StoreError) in
        try Vault.open(
          image: image, path: path, keyFiles: keyFile.map { [$0] } ?? [location.keyFile] + location.keptKeyFiles,
          random: random, holders: keys.holders)
      }
      let kept = try backup.restore(to: location)
      openVault.close(keeping: OpenedKeys(of: backup))
      return kept
    }
    note(.restore, path)
    return kept
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
