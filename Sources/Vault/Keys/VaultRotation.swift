import Cryptography
import Platform
import SQLite
import Store

extension Vault {
  /// Makes a new vault key, and seals every record and every slot anew: whoever knows the old key cannot open anything
  /// that is written from now on.
  ///
  /// Other processes notice it at their next call. Locks keep their names.
  ///
  /// - Parameters:
  ///   - drafts: one for each kind of slot that there is: a rotation renews the wrapping keys, too.
  ///   - now: seconds since 1970, kept with the slots.
  ///   - event: what is noted in the log.
  /// - Returns: the Secret Service's item that is not needed any more.
  /// - Throws: `.otherSlots` if there are others than the drafts are for; `.damaged` or `.damagedRecord` if anything is
  ///   not as it was written: a rotation would make it look genuine. And as `apply` does. Nothing is changed then.
  @discardableResult
  package func rotate(
    to drafts: [SlotDraft], now: Int64, noting event: Secret? = nil
  ) throws(VaultError) -> String? {
    try requireWritable()
    let (old, fresh, item) = try transaction(.immediate) { old throws(VaultError) in
      try self.requireLength()
      let slots = try Self.slots(self.connection, self.location)
      guard slots.map(\.kind).sorted() == drafts.map(\.kind.rawValue).sorted() else { throw .otherSlots }
      let records = try self.genuineRecords(old)
      let fresh = try converting { () throws(CryptographyError) in try VaultKeys(after: old, random: self.random) }
      var change = try VaultChange(self, old)
      try change.begin(anew: fresh)
      try self.stage(drafts, over: slots)
      var new: [KeySlot] = []
      for slot in slots {
        guard let draft = drafts.first(where: { $0.kind.rawValue == slot.kind }) else { throw .otherSlots }
        new.append(try draft.slot(slot.number, fresh, now: now, random: self.random))
      }
      try change.setSlots(new)
      for record in records { try change.store(record) }
      try change.finish()
      FaultPoint.reach("rotate.written")
      return (old, fresh, slots.compactMap(\.item).first)
    }
    FaultPoint.reach("rotate.committed")
    use(fresh)
    try? settleKeyFile()
    try? EventLog(location).reseal(old, fresh, random: random)
    if let event { try? note(event) }
    return item
  }

  /// All records, of which the index says that they are in force.
  private func genuineRecords(_ keys: VaultKeys) throws(VaultError) -> [Record] {
    var verification = Verification(vault: self, keys: keys)
    try verification.run()
    if let finding = verification.findings.first { throw finding.error(path: location.file) }
    return verification.records
  }
}
