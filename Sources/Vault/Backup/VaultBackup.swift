import CredmgrCryptography
import CredmgrPlatform
import CredmgrSQLite
import CredmgrStore

extension Vault {
  /// The file's bytes between two changes, even while other processes write.
  package func image() throws(VaultError) -> [UInt8] {
    try transaction(.deferred) { _ throws(VaultError) in
      try file.query { connection throws(SQLiteError) in try connection.serialize() }
    }
  }

  /// Opens a vault in memory from the bytes of a file, with the first key file that fits; errors name `path`.
  package static func open(
    image: [UInt8], path: String, keyFiles: [String], random: some RandomSource, holders: [KeyHolder]
  ) throws(VaultError) -> Vault {
    func file(_ keyFile: String) throws(VaultError) -> VaultFile {
      let folder = Path.directory(of: path) ?? "."
      return try VaultFile(image: image, of: VaultLocation(directory: folder, file: path, keyFile: keyFile))
    }
    let slots = try file("").slots()
    let fitting = keyFiles.first { keyFile in (try? KeyFile(path: keyFile)).map { slots.slot(of: $0) != nil } ?? false }
    let file = try file(fitting ?? keyFiles[0])
    return try Vault(file, .readOnly, random: random, opening: VaultOpening(file, holders), holders: holders)
  }

  /// Replaces the records, slots, vault key and key file of another vault with those of this one. Other processes use
  /// them from their next call.
  ///
  /// - Returns: the files with the old vault and its key file; their names end in `.replaced`.
  /// - Throws: `.damaged` or `.damagedRecord` if this vault was altered, `.newerFormat` if a newer program wrote the
  ///   other one. The other vault is unchanged then.
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

  /// Replaces the content in one transaction, so that all processes keep using the same file.
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
      // Uses revisions that no process has seen: a process about to store a change must not mistake this vault's record
      // for the one it knows.
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
    // Many records of a damaged vault may still be readable.
    let present = try? VaultFile(target).slots()
    var kept: [String] = []
    if let old = try Self.contents(of: target.file) { kept.append(try Self.keep(old, as: target.file)) }
    kept += try stageKeyFile(try file.slots(), at: target, over: present)
    let image = try image()
    // SQLite would replay the journal into the new file.
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

  /// Stages this vault's key file next to the other vault, if they differ. Until a commit, the other vault opens as
  /// before.
  ///
  /// - Parameter present: the slots of the other vault, or `nil` if they are unreadable.
  private func stageKeyFile(
    _ slots: [KeySlot], at target: VaultLocation, over present: [KeySlot]?
  ) throws(VaultError) -> [String] {
    // Reads first, because the following steps may move this file.
    let wanted = [location.keyFile, location.nextKeyFile].lazy.compactMap { try? KeyFile(path: $0) }
      .first { slots.slot(of: $0) != nil }
    var kept: [String] = []
    if let next = try? KeyFile(path: target.nextKeyFile) {
      if let present, present.slot(of: next) != nil {
        // Its slot was committed, but its writer died before moving the file.
        try wrapping(VaultError.file, PrivateFile.replace(target.keyFile, next.content))
        FaultPoint.reach("key-file.moved")
      } else if present == nil {
        // Either of the two may be in force.
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
