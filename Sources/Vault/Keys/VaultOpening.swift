import Cryptography
import SQLite
import Store

/// How a vault was opened.
struct VaultOpening {
  let keys: VaultKeys
  /// The identifier of the vault key that stood in the header then. It is another one than that of the keys if the
  /// header is damaged.
  let identifier: [UInt8]
  /// The slot that was opened; `nil` when the keys were somebody's already.
  let foundBy: SlotKind?

  init(keys: VaultKeys, identifier: [UInt8], foundBy: SlotKind?) {
    self.keys = keys
    self.identifier = identifier
    self.foundBy = foundBy
  }

  /// Asks one holder after the other.
  init(
    _ connection: Connection, _ location: VaultLocation, _ holders: [KeyHolder]
  ) throws(VaultError) {
    var seen = try LockedVault(connection, location)
    var isSecondLook = false
    while true {
      do throws(VaultError) {
        self = try seen.opened(holders)
        return
      } catch {
        // Slots and key file are two files: one of them may have been exchanged after the other one was read.
        guard error.isOfOneHolder else { throw error }
        let now = try LockedVault(connection, location)
        // The key file of a commit is moved to its place behind it, which changes no slot: between our looks at the one
        // place and at the other.
        guard now != seen || error.isOfKeyFile && !isSecondLook else { throw error }
        isSecondLook = now == seen
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

  /// Whether somebody else may have a key all the same.
  fileprivate var isOfOneHolder: Bool {
    switch self {
    case .keyFileMissing, .keyFileInvalid, .keyFileOfAnotherVault, .secretService, .damaged(_, .slots),
      .passphraseUnavailable(.noTerminal):
      true
    default: false
    }
  }
}

/// What a vault shows of itself to everybody, and all that opening it needs.
private struct LockedVault: Equatable {
  let location: VaultLocation
  let slots: [KeySlot]
  let identifier: [UInt8]

  init(_ connection: Connection, _ location: VaultLocation) throws(VaultError) {
    self.location = location
    (slots, identifier) = try connection.transaction(
      .deferred, convert: { VaultError($0, location, connection) }
    ) { () throws(VaultError) in
      let slots = try Vault.slots(connection, location)
      try Vault.checkLength(connection, location)
      return (slots, try Vault.keyIdentifier(connection, location))
    }
  }

  func opened(_ holders: [KeyHolder]) throws(VaultError) -> VaultOpening {
    guard !slots.isEmpty else { throw .damaged(path: location.file, .slots) }
    var failure: VaultError?
    for holder in holders {
      do throws(VaultError) {
        if let opening = try opened(holder) { return opening }
      } catch {
        guard error.isOfOneHolder else { throw error }
        failure = failure ?? error
      }
    }
    throw failure ?? .locked(slots.compactMap { SlotKind(rawValue: $0.kind) })
  }

  private func opened(_ holder: KeyHolder) throws(VaultError) -> VaultOpening? {
    switch holder {
    case .keyFile: try openedByKeyFile()
    case .opened(let keep): try opened(keep)
    case .secretService(let key): try openedBySecretService(key)
    case .passphrase(let ask): try openedByPassphrase(ask)
    }
  }

  private func slots(_ kind: SlotKind) -> [KeySlot] { slots.filter { $0.kind == kind.rawValue } }

  private func opened(_ slot: KeySlot, with key: SealingKey, _ kind: SlotKind) throws(VaultError) -> VaultOpening {
    guard let keys = try converting({ () throws(CryptographyError) in try slot.unwrap(with: key) }) else {
      throw .damaged(path: location.file, .slots)
    }
    return VaultOpening(keys: keys, identifier: identifier, foundBy: kind)
  }

  private func openedByKeyFile() throws(VaultError) -> VaultOpening? {
    let candidates = slots(.keyFile)
    guard !candidates.isEmpty else { return nil }
    var failure = VaultError.keyFileMissing(path: location.keyFile)
    // The second one is in force when its slot was committed and its writer died before it was moved.
    for path in [location.keyFile, location.nextKeyFile] {
      let keyFile: KeyFile
      do throws(VaultError) {
        keyFile = try KeyFile(path: path)
      } catch .file(.notFound) {
        continue
      }
      if let slot = candidates.first(where: { $0.parameters == keyFile.identifier }) {
        return try opened(slot, with: keyFile.key, .keyFile)
      }
      if path == location.keyFile { failure = .keyFileOfAnotherVault(path: path) }
    }
    throw failure
  }

  private func opened(_ keep: (String) -> Secret?) throws(VaultError) -> VaultOpening? {
    guard let secret = keep(Hexadecimal.encode(identifier)), secret.count == VaultKeys.byteCount else { return nil }
    let keys = try converting { () throws(CryptographyError) in try VaultKeys(secret) }
    // Keys of another time, or of another vault.
    guard keys.identifier == identifier else { return nil }
    return VaultOpening(keys: keys, identifier: identifier, foundBy: nil)
  }

  private func openedBySecretService(
    _ key: (String) throws(VaultError) -> Secret
  ) throws(VaultError) -> VaultOpening? {
    guard let slot = slots(.secretService).first else { return nil }
    let secret = try key(Hexadecimal.encode(slot.parameters))
    guard secret.count == SealingKey.byteCount else { throw .secretService(.noKey) }
    let key = try converting { () throws(CryptographyError) in try SealingKey(secret) }
    return try opened(slot, with: key, .secretService)
  }

  private func openedByPassphrase(
    _ ask: (Int) throws(VaultError) -> Secret
  ) throws(VaultError) -> VaultOpening? {
    guard let slot = slots(.passphrase).first else { return nil }
    guard let parameters = PassphraseParameters(decoding: slot.parameters) else {
      throw .damaged(path: location.file, .slots)
    }
    var attempt = 1
    while true {
      if let key = try parameters.key(try ask(attempt)) { return try opened(slot, with: key, .passphrase) }
      attempt += 1
    }
  }
}
