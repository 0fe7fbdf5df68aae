import Cryptography
import Platform
import SQLite
import Store

extension Vault {
  /// Makes a slot, or puts it in the place of the one of its kind.
  ///
  /// - Parameters:
  ///   - now: seconds since 1970, kept with the slot.
  ///   - event: what is noted in the log.
  /// - Returns: the Secret Service's item that is not needed any more.
  /// - Throws: as `apply` does; nothing is changed then.
  @discardableResult
  package func protect(
    with draft: SlotDraft, now: Int64, noting event: Secret? = nil
  ) throws(VaultError) -> String? {
    let replaced = try changeSlots(noting: event) { slots, keys throws(VaultError) in
      try self.stage([draft], over: slots)
      let index = slots.firstIndex { $0.kind == draft.kind.rawValue }
      let number = index.map { slots[$0].number } ?? (slots.map(\.number).max() ?? 0) + 1
      let slot = try draft.slot(number, keys, now: now, random: self.random)
      guard let index else {
        slots.append(slot)
        return nil as KeySlot?
      }
      defer { slots[index] = slot }
      return slots[index]
    }
    FaultPoint.reach("protect.committed")
    // Where this fails the key file is in force in the place where it is, and the next one to come moves it.
    try? settleKeyFile()
    return replaced?.item
  }

  /// Removes the slot of a kind. The key file goes with its slot.
  ///
  /// - Parameter event: what is noted in the log.
  /// - Returns: the Secret Service's item that is not needed any more.
  /// - Throws: `.noSlot`, `.lastSlot`, and as `apply` does; nothing is changed then. `.file` if the slot is removed and
  ///   the key file could not be.
  @discardableResult
  package func unprotect(_ kind: SlotKind, noting event: Secret? = nil) throws(VaultError) -> String? {
    let removed = try changeSlots(noting: event) { slots, _ throws(VaultError) in
      guard let index = slots.firstIndex(where: { $0.kind == kind.rawValue }) else { throw .noSlot(kind) }
      // A slot of a kind that is not known here may be one that nobody can open.
      guard slots.contains(where: { $0.kind != kind.rawValue && SlotKind(rawValue: $0.kind) != nil }) else {
        throw .lastSlot(kind)
      }
      return slots.remove(at: index)
    }
    FaultPoint.reach("unprotect.committed")
    try settleKeyFile()
    return removed.item
  }

  /// The item of the Secret Service in which the slot's key is; `nil` without such a slot.
  ///
  /// - Throws: as `record(_:)` does.
  package var secretServiceItem: String? {
    get throws(VaultError) {
      try transaction(.deferred) { _ throws(VaultError) in
        try Self.slots(self.connection, self.location).compactMap(\.item).first
      }
    }
  }

  /// The items of the Secret Service in which keys of slots are; no key is needed for it.
  ///
  /// - Throws: as `open` does.
  package static func secretServiceItems(of location: VaultLocation) throws(VaultError) -> [String] {
    try slots(try connect(location), location).compactMap(\.item)
  }

  /// Whether the passphrase is the one of the vault; `nil` if the vault has none.
  ///
  /// - Throws: as `record(_:)` does, `.outOfMemory`.
  package func accepts(_ passphrase: Secret) throws(VaultError) -> Bool? {
    let slots = try transaction(.deferred) { _ throws(VaultError) in
      try Self.slots(self.connection, self.location)
    }
    guard let slot = slots.first(where: { $0.kind == SlotKind.passphrase.rawValue }) else { return nil }
    guard let parameters = PassphraseParameters(decoding: slot.parameters) else {
      throw .damaged(path: location.file, .slots)
    }
    return try parameters.key(passphrase) != nil
  }

  private func changeSlots<Result>(
    noting event: Secret?, _ body: (inout [KeySlot], VaultKeys) throws(VaultError) -> Result
  ) throws(VaultError) -> Result {
    try change { change, keys throws(VaultError) in
      var slots = try Self.slots(self.connection, self.location)
      let result = try body(&slots, keys)
      try change.setSlots(slots)
      if let event { change.events.append(event) }
      return result
    }
  }

  // MARK: The key file

  /// Puts the key file of a slot that is about to be committed beside the one that is in force. To be called with the
  /// place of the only writer.
  func stage(_ drafts: [SlotDraft], over slots: [KeySlot]) throws(VaultError) {
    guard let file = drafts.compactMap(\.keyFile).first else { return }
    // What a killed process left may be in force.
    try settle(slots)
    let path = location.nextKeyFile
    try converting { () throws(POSIXError) in try PrivateFile.replace(path, file.content) }
    FaultPoint.reach("key-file.staged")
  }

  /// Moves the key file of a committed slot to its place, and removes one that no slot needs.
  ///
  /// Only who has the place of the only writer may do this: then no slot is about to be committed.
  func settleKeyFile() throws(VaultError) {
    try transaction(.immediate) { _ throws(VaultError) in
      try self.settle(try Self.slots(self.connection, self.location))
    }
  }

  private func settle(_ slots: [KeySlot]) throws(VaultError) {
    let location = location
    let next: KeyFile?
    do throws(VaultError) {
      next = try KeyFile(path: location.nextKeyFile)
    } catch .file(.notFound) {
      next = nil
    } catch .keyFileInvalid {
      next = nil
    }
    try converting { () throws(POSIXError) in
      if let next, slots.name(next) {
        try PrivateFile.replace(location.keyFile, next.content)
        FaultPoint.reach("key-file.moved")
      }
      try File.remove(location.nextKeyFile)
      if !slots.contains(where: { $0.kind == SlotKind.keyFile.rawValue }) { try File.remove(location.keyFile) }
    }
  }
}

extension SlotDraft {
  func slot(
    _ number: Int64, _ keys: VaultKeys, now: Int64, random: some RandomSource
  ) throws(VaultError) -> KeySlot {
    var slot = KeySlot(number: number, kind: kind.rawValue, created: now, parameters: parameters)
    try converting { () throws(CryptographyError) in try slot.wrap(keys, with: key, random: random) }
    return slot
  }
}

extension KeySlot {
  /// The Secret Service's item.
  var item: String? {
    kind == SlotKind.secretService.rawValue ? Hexadecimal.encode(parameters) : nil
  }
}
