import Cryptography
import Platform
import SQLite
import Store

extension Vault {
  /// The file's bytes as they are between two changes, also while others write.
  package func image() throws(VaultError) -> [UInt8] {
    try transaction(.deferred) { _ throws(VaultError) in
      try file.query { connection throws(SQLiteError) in try connection.serialize() }
    }
  }

  /// A vault in memory, from the bytes of a file; `path` is for errors.
  package static func open(
    image: [UInt8], path: String, keyFile: String, random: some RandomSource, holders: [KeyHolder]
  ) throws(VaultError) -> Vault {
    let location = VaultLocation(directory: Path.directory(of: path) ?? ".", file: path, keyFile: keyFile)
    let file = try VaultFile(image: image, of: location)
    return try Vault(file, .readOnly, random: random, opening: VaultOpening(file, holders), holders: holders)
  }

  /// Puts records, slots, vault key and key file of this vault in the place of those at a location.
  ///
  /// Other processes go on with it at their next call.
  ///
  /// - Returns: the files in which the old vault and its key file are kept; their names end in `.replaced`.
  /// - Throws: `.damaged` or `.damagedRecord` if anything of this vault is not as it was written, `.newerFormat` if the
  ///   other one is of a newer program. The other vault is not changed then.
  package func restore(to target: VaultLocation) throws(VaultError) -> [String] {
    if let finding = try verify().first { throw finding.error(path: location.file) }
    try wrapping(VaultError.file, PrivateFile.createDirectory(target.directory))
    let (other, kept) = try replaceVault(at: target)
    try? other.settleKeyFile()
    EventLog(target).setAside(unlessOpenedBy: other.opening.keys)
    return kept
  }

  private func replaceVault(at target: VaultLocation) throws(VaultError) -> (Vault, kept: [String]) {
    do throws(VaultError) {
      return try replaceContent(of: try VaultFile(target))
    } catch {
      switch error {
      case .absent, .notAVault, .truncated, .damaged: return try replaceFile(at: target)
      default: throw error
      }
    }
  }

  private func twin(_ file: VaultFile) throws(VaultError) -> Vault {
    let opening = VaultOpening(keys: opening.keys, identifier: opening.keys.identifier, foundBy: nil)
    return try Vault(file, .readWrite, random: random, opening: opening)
  }

  /// In one transaction, so that no process has another file open than the others.
  private func replaceContent(of target: VaultFile) throws(VaultError) -> (Vault, kept: [String]) {
    let keys = opening.keys
    guard let row = try file.header(), let header = VaultHeader(opening: row.sealed, key: try keys.index()) else {
      throw .damaged(path: file.path, .header)
    }
    let other = try twin(target)
    let kept = try target.transaction(.immediate) { () throws(VaultError) in
      try target.requireLength()
      let old = try target.query { connection throws(SQLiteError) in try connection.serialize() }
      var kept = [try Self.keep(old, as: target.path)]
      let slots = try file.slots()
      kept += try stageKeyFile(slots, at: target.location, over: try target.slots())
      // Revisions that no process has seen: one that is about to store something must not take this vault's record for
      // the one that it knows.
      var change = try VaultChange(other, keys, header: header, advancingBy: Int64(UInt32.random(in: 1 ... .max)))
      try target.execute("DELETE FROM record;DELETE FROM bucket")
      for row in try file.rows(SealedRecord.selection, as: SealedRecord.init) { try target.insert(row) }
      for (number, sealed) in try file.buckets() { try target.insert(bucket: number, sealed) }
      try change.setSlots(slots)
      try change.finish()
      return kept
    }
    return (other, kept)
  }

  private func replaceFile(at target: VaultLocation) throws(VaultError) -> (Vault, kept: [String]) {
    // Of a damaged vault many a record may still be read.
    let present = try? VaultFile(target).slots()
    var kept: [String] = []
    if let old = try Self.contents(of: target.file) { kept.append(try Self.keep(old, as: target.file)) }
    kept += try stageKeyFile(try file.slots(), at: target, over: present)
    let image = try image()
    // It would be played back into the new file.
    _ = try wrapping(VaultError.file, File.remove(target.file + "-journal"))
    try wrapping(VaultError.file, PrivateFile.replace(target.file, image))
    return (try twin(try VaultFile(target)), kept)
  }

  private static func contents(of path: String) throws(VaultError) -> [UInt8]? {
    do throws(POSIXError) {
      return try PrivateFile.read(path, limit: 1 << 30)
    } catch .notFound {
      return nil
    } catch {
      throw .file(error)
    }
  }

  private static func keep(_ bytes: [UInt8], as path: String) throws(VaultError) -> String {
    let path = path + ".replaced"
    try wrapping(VaultError.file, PrivateFile.replace(path, bytes))
    return path
  }

  /// The key file that opens this vault goes along, where the other vault has another one. Until the commit, and if
  /// there is none, the other vault opens as before.
  ///
  /// - Parameter present: the slots of the other vault; `nil` if they cannot be read.
  private func stageKeyFile(
    _ slots: [KeySlot], at target: VaultLocation, over present: [KeySlot]?
  ) throws(VaultError) -> [String] {
    // Read first: it may be one of the files that are about to be moved.
    let wanted = [location.keyFile, location.nextKeyFile].lazy.compactMap { try? KeyFile(path: $0) }
      .first { slots.slot(of: $0) != nil }
    var kept: [String] = []
    if let next = try? KeyFile(path: target.nextKeyFile) {
      if let present, present.slot(of: next) != nil {
        // Its slot was committed, and its writer died before it was moved.
        try wrapping(VaultError.file, PrivateFile.replace(target.keyFile, next.content))
        FaultPoint.reach("key-file.moved")
      } else if present == nil {
        // Nobody knows which of the two is in force.
        kept.append(try Self.keep(next.content, as: target.nextKeyFile))
      }
    }
    if let there = try? KeyFile(path: target.keyFile), slots.slot(of: there) != nil { return kept }
    if let old = try Self.contents(of: target.keyFile) { kept.append(try Self.keep(old, as: target.keyFile)) }
    if let wanted {
      try wrapping(VaultError.file, PrivateFile.replace(target.nextKeyFile, wanted.content))
      FaultPoint.reach("key-file.staged")
    }
    return kept
  }
}
