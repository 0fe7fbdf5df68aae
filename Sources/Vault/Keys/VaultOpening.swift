import CredmgrCryptography
import CredmgrSQLite
import CredmgrStore

/// A possible source of a key to the vault.
package enum KeyHolder {
  case keyFile
  /// A cache of an opened vault's keys, under the name of the vault and its current keys.
  case opened((_ vault: String) -> Secret?)
  /// The Secret Service, under the name of its item.
  case secretService((_ item: String) throws(VaultError) -> Secret)
  /// A user, or a program for them. `attempt` begins with 1 and grows after each wrong answer; throwing
  /// `.wrongPassphrase` ends the attempts.
  case passphrase((_ attempt: Int) throws(VaultError) -> Secret)
}

struct VaultOpening {
  let keys: VaultKeys
  /// The identifier of the vault key that the header had when the vault was opened. With a damaged header, it differs
  /// from the identifier of `keys`.
  let identifier: [UInt8]
  /// The slot that was opened, or `nil` if the keys were cached.
  let foundBy: SlotKind?
}

extension VaultOpening {
  init(_ file: VaultFile, _ holders: [KeyHolder]) throws(VaultError) {
    var seen = try LockedVault(file)
    var isSecondLook = false
    while true {
      do throws(VaultError) {
        self = try seen.opened(holders)
        return
      } catch {
        // Slots and key file are separate files, one of which may have been replaced after reading the other.
        guard error.isOfOneHolder else { throw error }
        let now = try LockedVault(file)
        // After a commit, its process moves the key file to its final place. If that happened between our checks of
        // the two places, we found no key file although the slots are the same. So look once more.
        let isSame = now.slots == seen.slots && now.identifier == seen.identifier
        guard !isSame || error.isOfKeyFile && !isSecondLook else { throw error }
        isSecondLook = isSame
        seen = now
      }
    }
  }
}

extension VaultError {
  fileprivate var isOfKeyFile: Bool {
    switch self {
    case .keyFileMissing, .keyFileOfAnotherVault: true
    default: false
    }
  }

  /// Whether another holder may still have a key.
  fileprivate var isOfOneHolder: Bool {
    switch self {
    case .keyFileMissing, .keyFileInvalid, .keyFileOfAnotherVault, .secretService, .damaged(_, .slots),
      .passphraseUnavailable(.noTerminal):
      true
    default: false
    }
  }
}

/// The part of a vault that is readable without a key, and that opening it needs.
private struct LockedVault {
  let location: VaultLocation
  let slots: [KeySlot]
  let identifier: [UInt8]

  init(_ file: VaultFile) throws(VaultError) {
    location = file.location
    (slots, identifier) = try file.slotsAndIdentifier()
  }

  func opened(_ holders: [KeyHolder]) throws(VaultError) -> VaultOpening {
    guard !slots.isEmpty else { throw .damaged(path: location.file, .slots) }
    var failure: VaultError?
    for holder in holders {
      do throws(VaultError) {
        if let opening = try opened(by: holder) { return opening }
      } catch {
        guard error.isOfOneHolder else { throw error }
        failure = failure ?? error
      }
    }
    throw failure ?? .locked(slots.compactMap { SlotKind(rawValue: $0.kind) })
  }

  private func opened(by holder: KeyHolder) throws(VaultError) -> VaultOpening? {
    switch holder {
    case .keyFile: return try openedByKeyFile()
    case .opened(let keep):
      guard let secret = keep(Hexadecimal.encode(identifier)), secret.count == VaultKeys.byteCount else { return nil }
      let keys = try VaultKeys(secret)
      // The keys are outdated or belong to another vault.
      guard keys.identifier == identifier else { return nil }
      return VaultOpening(keys: keys, identifier: identifier, foundBy: nil)
    case .secretService(let look):
      guard let slot = slots.of(.secretService).first else { return nil }
      let secret = try look(Hexadecimal.encode(slot.parameters))
      guard secret.count == SealingKey.byteCount else { throw .secretService(.noKey) }
      return try opened(slot, with: .new(secret), .secretService)
    case .passphrase(let ask):
      guard let (slot, parameters) = try slots.passphrase(path: location.file) else { return nil }
      var attempt = 1
      while true {
        if let key = try parameters.key(try ask(attempt)) { return try opened(slot, with: key, .passphrase) }
        attempt += 1
      }
    }
  }

  private func opened(_ slot: KeySlot, with key: SealingKey, _ kind: SlotKind) throws(VaultError) -> VaultOpening {
    guard let keys = try slot.unwrap(with: key) else { throw .damaged(path: location.file, .slots) }
    return VaultOpening(keys: keys, identifier: identifier, foundBy: kind)
  }

  private func openedByKeyFile() throws(VaultError) -> VaultOpening? {
    guard !slots.of(.keyFile).isEmpty else { return nil }
    var failure = VaultError.keyFileMissing(path: location.keyFile)
    // The second file is in force if its slot was committed and its writer died before moving it.
    for path in [location.keyFile, location.nextKeyFile] {
      let keyFile: KeyFile
      do throws(VaultError) {
        keyFile = try KeyFile(path: path)
      } catch .file(.notFound) {
        continue
      }
      if let slot = slots.slot(of: keyFile) { return try opened(slot, with: keyFile.key, .keyFile) }
      if path == location.keyFile { failure = .keyFileOfAnotherVault(path: path) }
    }
    throw failure
  }
}
