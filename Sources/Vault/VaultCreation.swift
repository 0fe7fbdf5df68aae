import CredmgrCryptography
import CredmgrPlatform
import CredmgrSQLite
import CredmgrStore
import CredmgrText

extension Vault {
  /// Creates the missing files, the key file first: a killed process leaves a key without a vault, never the reverse.
  static func create(_ location: VaultLocation, random: some RandomSource, now: Moment) throws(VaultError) {
    try wrapping(VaultError.file, PrivateFile.createDirectory(location.directory))
    let image = try image(try obtainKeyFile(location, random: random), location, random: random, now: now)
    do throws(POSIXError) {
      try PrivateFile.create(location.file, image)
    } catch .exists {
      // Another process was faster; its vault opens with the same key file.
    } catch {
      throw .file(error)
    }
  }

  private static func obtainKeyFile(
    _ location: VaultLocation, random: some RandomSource
  ) throws(VaultError) -> KeyFile {
    do throws(VaultError) {
      return try KeyFile(path: location.keyFile)
    } catch .file(.notFound) {
      let new = try KeyFile(random: random)
      do throws(POSIXError) {
        try PrivateFile.create(location.keyFile, new.content)
        return new
      } catch .exists {
        return try KeyFile(path: location.keyFile)
      } catch {
        throw .file(error)
      }
    }
  }

  /// An empty vault, created in memory so that the whole file appears in one step.
  private static func image(
    _ keyFile: KeyFile, _ location: VaultLocation, random: some RandomSource, now: Moment
  ) throws(VaultError) -> [UInt8] {
    var slot = KeySlot(number: 1, kind: SlotKind.keyFile.rawValue, created: now, parameters: keyFile.identifier)
    let keys = try VaultKeys(random: random)
    try slot.wrap(keys, with: keyFile.key, random: random)
    let header = try VaultHeader(slots: keys.digest([slot])).sealed(key: try keys.index(), random: random)
    return try converting(path: location.file) { () throws(SQLiteError) in
      let connection = try Connection(path: "", .memory, busyTimeout: .zero)
      try connection.execute(
        """
        PRAGMA page_size=\(Format.pageSize);PRAGMA auto_vacuum=INCREMENTAL;PRAGMA encoding='UTF-8';
        PRAGMA application_id=\(Format.applicationID);PRAGMA user_version=\(Format.version);BEGIN
        """)
      for (_, sql) in Format.schema { try connection.execute(sql) }
      try connection.insert(slot)
      try connection.replaceHeader(key: keys.identifier, sealed: header)
      try connection.execute("COMMIT")
      return try connection.serialize()
    }
  }
}
