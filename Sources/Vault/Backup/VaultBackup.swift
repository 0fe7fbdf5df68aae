import Cryptography
import Platform
import SQLite
import Store

extension Vault {
  /// The bytes of the vault's file as they are between two changes, also while others write.
  ///
  /// - Throws: as `record(_:)` does.
  package func image() throws(VaultError) -> [UInt8] {
    try transaction(.deferred) { _ throws(VaultError) in
      try self.query { connection throws(SQLiteError) in try connection.serialize() }
    }
  }

  /// A vault in memory, from the bytes of a file: nothing that is done to it reaches the file.
  ///
  /// - Parameter path: the file, for errors.
  /// - Throws: as `open(_:_:random:now:busyTimeout:holders:)` does.
  package static func open(
    image: [UInt8], path: String, keyFile: String, random: some RandomSource, holders: [KeyHolder]
  ) throws(VaultError) -> Vault {
    let location = VaultLocation(directory: Path.directory(of: path) ?? ".", file: path, keyFile: keyFile)
    guard !image.isEmpty else { throw .truncated(path: path) }
    try Format.check(
      fileHeader: Array(image.prefix(100)) + Array(repeating: 0, count: max(0, 100 - image.count)), path: path)
    guard image.count >= Int(Format.number(in: image, at: 28)) * Format.pageSize else { throw .truncated(path: path) }
    let connection = try converting(location) { () throws(SQLiteError) in try Connection(image: image) }
    return try Vault(location, .readOnly, random, connection, holders)
  }

  /// Puts all of this vault in the place of the one at a location: records, slots and vault key, and the key file.
  ///
  /// Other processes go on with it at their next call. What was there is kept in files whose names end in `.replaced`.
  ///
  /// - Returns: the files in which the old vault and its key file are kept.
  /// - Throws: `.damaged` or `.damagedRecord` if anything of this vault is not as it was written, `.newerFormat` if the
  ///   other one is of a newer program, and as `apply` does. The other vault is not changed then.
  package func restore(to target: VaultLocation) throws(VaultError) -> [String] {
    if let finding = try verify().first { throw finding.error(path: location.file) }
    try converting { () throws(POSIXError) in try PrivateFile.createDirectory(target.directory) }
    do throws(VaultError) {
      return try replaceContent(of: try Vault.connect(target), at: target)
    } catch {
      switch error {
      case .absent, .notAVault, .truncated, .damaged: return try replaceFile(at: target)
      default: throw error
      }
    }
  }

  /// In one transaction, so that no process has another file open than the others.
  private func replaceContent(of connection: Connection, at target: VaultLocation) throws(VaultError) -> [String] {
    let (keys, slots, header, rows) = try content()
    let other = Vault(
      target, .readWrite, random, connection,
      VaultOpening(keys: keys, identifier: keys.identifier, foundBy: nil))
    try other.makeDurable()
    let kept = try connection.transaction(
      .immediate, convert: { VaultError($0, target, connection) },
      confirm: { () throws(VaultError) in try target.confirm() }
    ) { () throws(VaultError) in
      try other.requireLength()
      let old = try other.query { connection throws(SQLiteError) in try connection.serialize() }
      var kept = [try Self.keep(old, as: target.file)]
      kept += try stageKeyFile(slots, at: target, over: try Self.slots(connection, target))
      var change = try VaultChange(other, keys, header: header)
      // Revisions that no process has seen: one that is about to store something must not take this vault's record for
      // the one that it knows.
      change.advance(by: Int64(UInt32.random(in: 1 ... .max)))
      try other.query { connection throws(SQLiteError) in
        try connection.execute("DELETE FROM record;DELETE FROM bucket")
        for row in rows.records { try connection.insert(row) }
        for (number, sealed) in rows.buckets { try connection.insert(bucket: number, sealed) }
      }
      try change.setSlots(slots)
      try change.finish()
      return kept
    }
    try? other.settleKeyFile()
    EventLog(target).setAside(unlessOpenedBy: keys)
    return kept
  }

  /// Where there is no vault, or none that could be changed.
  private func replaceFile(at target: VaultLocation) throws(VaultError) -> [String] {
    let (keys, slots, _, _) = try content()
    // Of a damaged vault many a record may still be read.
    let present = try? Self.slots(try Vault.connect(target), target)
    var kept: [String] = []
    if let old = try converting({ () throws(POSIXError) in try Self.contents(of: target.file) }) {
      kept.append(try Self.keep(old, as: target.file))
    }
    kept += try stageKeyFile(slots, at: target, over: present)
    let image = try image()
    try converting { () throws(POSIXError) in
      // It would be played back into the new file.
      try File.remove(target.file + "-journal")
      try PrivateFile.replace(target.file, image)
    }
    let other = Vault(
      target, .readWrite, random, try Vault.connect(target),
      VaultOpening(keys: keys, identifier: keys.identifier, foundBy: nil))
    try? other.settleKeyFile()
    EventLog(target).setAside(unlessOpenedBy: keys)
    return kept
  }

  private static func contents(of path: String) throws(POSIXError) -> [UInt8]? {
    do throws(POSIXError) {
      return try PrivateFile.read(path, limit: 1 << 30)
    } catch .notFound {
      return nil
    }
  }

  private static func keep(_ bytes: [UInt8], as path: String) throws(VaultError) -> String {
    let path = path + ".replaced"
    try converting { () throws(POSIXError) in try PrivateFile.replace(path, bytes) }
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
      .first(where: slots.name)
    var kept: [String] = []
    if let next = try? KeyFile(path: target.nextKeyFile) {
      if let present, present.name(next) {
        // Its slot was committed, and its writer died before it was moved.
        try converting { () throws(POSIXError) in try PrivateFile.replace(target.keyFile, next.content) }
        FaultPoint.reach("key-file.moved")
      } else if present == nil {
        // Nobody knows which of the two is in force.
        kept.append(try Self.keep(next.content, as: target.nextKeyFile))
      }
    }
    if let there = try? KeyFile(path: target.keyFile), slots.name(there) { return kept }
    if let old = try converting({ () throws(POSIXError) in try Self.contents(of: target.keyFile) }) {
      kept.append(try Self.keep(old, as: target.keyFile))
    }
    if let wanted {
      try converting { () throws(POSIXError) in try PrivateFile.replace(target.nextKeyFile, wanted.content) }
      FaultPoint.reach("key-file.staged")
    }
    return kept
  }

  private typealias Rows = (records: [SealedRecord], buckets: [(number: Int64, sealed: [UInt8])])

  private func content() throws(VaultError) -> (keys: VaultKeys, slots: [KeySlot], header: VaultHeader, rows: Rows) {
    try transaction(.deferred) { keys throws(VaultError) in
      let key = try converting { () throws(CryptographyError) in try keys.index() }
      guard let row = try self.headerRow(), let header = VaultHeader(opening: row.sealed, key: key) else {
        throw .damaged(path: self.location.file, .header)
      }
      let rows = try self.query { connection throws(SQLiteError) -> Rows in
        let records = try connection.prepare(SealedRecord.selection)
        var rows: Rows = ([], [])
        while try records.step() { rows.records.append(try SealedRecord(records)) }
        let buckets = try connection.prepare("SELECT number,sealed FROM bucket")
        while try buckets.step() { rows.buckets.append((try buckets.integer(0), try buckets.bytes(1))) }
        return rows
      }
      return (keys, try Self.slots(self.connection, self.location), header, rows)
    }
  }
}

extension [KeySlot] {
  /// Whether one of them is opened by this key file.
  func name(_ file: KeyFile) -> Bool {
    contains { $0.kind == SlotKind.keyFile.rawValue && $0.parameters == file.identifier }
  }
}
