import CredmgrCryptography
import CredmgrPlatform
import CredmgrSQLite
import CredmgrStore
import CredmgrText

extension Vault {
  /// Creates a slot, or replaces the one of its kind.
  ///
  /// - Returns: the Secret Service's item to delete, or `nil`.
  @discardableResult
  package func protect(with draft: SlotDraft, now: Moment, noting event: Secret? = nil) throws(VaultError) -> String? {
    let replaced = try changeSlots(noting: event) { slots, keys throws(VaultError) in
      try stage([draft], over: slots)
      let index = slots.firstIndex { $0.kind == draft.kind.rawValue }
      let number = index.map { slots[$0].number } ?? (slots.map(\.number).max() ?? 0) + 1
      let slot = try draft.slot(number, keys, now: now, random: random)
      guard let index else {
        slots.append(slot)
        return nil as KeySlot?
      }
      defer { slots[index] = slot }
      return slots[index]
    }
    FaultPoint.reach("protect.committed")
    // If this fails, the key file is in force where it is, and the next process moves it.
    try? settleKeyFile()
    return replaced?.item
  }

  /// Removes the slot of a kind, and with it the key file.
  ///
  /// - Returns: the Secret Service's item to delete, or `nil`.
  /// - Throws: `.file` if the slot is removed but the key file remains; after any other error nothing has changed.
  @discardableResult
  package func unprotect(_ kind: SlotKind, noting event: Secret? = nil) throws(VaultError) -> String? {
    let removed = try changeSlots(noting: event) { slots, _ throws(VaultError) in
      guard let index = slots.firstIndex(where: { $0.kind == kind.rawValue }) else { throw .noSlot(kind) }
      // It may be impossible to open a slot of an unknown kind.
      guard slots.contains(where: { $0.kind != kind.rawValue && SlotKind(rawValue: $0.kind) != nil }) else {
        throw .lastSlot(kind)
      }
      return slots.remove(at: index)
    }
    FaultPoint.reach("unprotect.committed")
    try settleKeyFile()
    return removed.item
  }

  package var secretServiceItem: String? {
    get throws(VaultError) {
      try transaction(.deferred) { _ throws(VaultError) in try file.slots().compactMap(\.item).first }
    }
  }

  /// The items of all slots, which are readable without a key.
  package static func secretServiceItems(of location: VaultLocation) throws(VaultError) -> [String] {
    try VaultFile(location).slots().compactMap(\.item)
  }

  /// Whether the passphrase is correct, or `nil` if the vault has none.
  package func accepts(_ passphrase: Secret) throws(VaultError) -> Bool? {
    let slots = try transaction(.deferred) { _ throws(VaultError) in try file.slots() }
    guard let (_, parameters) = try slots.passphrase(path: location.file) else { return nil }
    return try parameters.key(passphrase) != nil
  }

  private func changeSlots<Result>(
    noting event: Secret?, _ body: (inout [KeySlot], VaultKeys) throws(VaultError) -> Result
  ) throws(VaultError) -> Result {
    try change { change, keys throws(VaultError) in
      var slots = try file.slots()
      let result = try body(&slots, keys)
      try change.setSlots(slots)
      if let event { change.events.append(event) }
      return result
    }
  }

  // MARK: The key file

  /// Puts the key file of an uncommitted slot next to the one in force; requires the lock of the only writer.
  func stage(_ drafts: [SlotDraft], over slots: [KeySlot]) throws(VaultError) {
    guard let keyFile = drafts.compactMap(\.keyFile).first else { return }
    // A file left by a killed process may be in force.
    try settle(slots)
    try wrapping(VaultError.file, PrivateFile.replace(location.nextKeyFile, keyFile.content))
    FaultPoint.reach("key-file.staged")
  }

  /// Moves the key file of a committed slot to its place, and removes one that no slot needs. The lock of the only
  /// writer ensures that no other process is about to commit a slot.
  func settleKeyFile() throws(VaultError) {
    try transaction(.immediate) { _ throws(VaultError) in try settle(try file.slots()) }
  }

  private func settle(_ slots: [KeySlot]) throws(VaultError) {
    let next: KeyFile?
    do throws(VaultError) {
      next = try KeyFile(path: location.nextKeyFile)
    } catch .file(.notFound), .keyFileInvalid {
      next = nil
    }
    if let next, slots.slot(of: next) != nil {
      try wrapping(VaultError.file, PrivateFile.replace(location.keyFile, next.content))
      FaultPoint.reach("key-file.moved")
    }
    for path in [location.nextKeyFile] + (slots.of(.keyFile).isEmpty ? [location.keyFile] : []) {
      _ = try wrapping(VaultError.file, File.remove(path))
    }
  }

  // MARK: The vault key

  /// Creates a new vault key and seals all records and slots again. Other processes notice it at their next call, and
  /// locks keep their names.
  ///
  /// - Parameter drafts: one for each kind of existing slot, because a rotation also renews the wrapping keys.
  /// - Returns: the Secret Service's item to delete, or `nil`.
  /// - Throws: `.otherSlots` if the drafts do not match the slots; `.damaged` or `.damagedRecord` if the vault was
  ///   altered, because a rotation would make the alteration look genuine. Nothing has changed then.
  @discardableResult
  package func rotate(to drafts: [SlotDraft], now: Moment, noting event: Secret? = nil) throws(VaultError) -> String? {
    try requireWritable()
    let (old, fresh, item) = try transaction(.immediate) { old throws(VaultError) in
      try file.requireLength()
      let slots = try file.slots()
      guard slots.map(\.kind).sorted() == drafts.map(\.kind.rawValue).sorted() else { throw .otherSlots }
      var verification = Verification(vault: self, keys: old)
      try verification.run()
      if let finding = verification.findings.first { throw finding.error(path: location.file) }
      let fresh = try VaultKeys(after: old, random: random)
      var change = try VaultChange(self, old)
      try change.begin(anew: fresh)
      try stage(drafts, over: slots)
      var new: [KeySlot] = []
      for slot in slots {
        guard let draft = drafts.first(where: { $0.kind.rawValue == slot.kind }) else { throw .otherSlots }
        new.append(try draft.slot(slot.number, fresh, now: now, random: random))
      }
      try change.setSlots(new)
      for record in verification.records { try change.store(record) }
      try change.finish()
      FaultPoint.reach("rotate.written")
      return (old, fresh, slots.compactMap(\.item).first)
    }
    FaultPoint.reach("rotate.committed")
    opening = VaultOpening(keys: fresh, identifier: fresh.identifier, foundBy: opening.foundBy)
    try? settleKeyFile()
    try? EventLog(location).reseal(old, fresh, random: random)
    if let event { try? note(event) }
    return item
  }
}
