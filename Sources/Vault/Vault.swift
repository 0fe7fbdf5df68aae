import Cryptography
import POSIX
import SQLite

/// The credentials at rest: one SQLite file, in which every record is sealed on its own
/// (docs/vault-format.md).
///
/// Not thread-safe. Several processes can use the same vault at once: each call is one transaction, which
/// sees all of another process's change or nothing of it.
public final class Vault {
  /// Where the vault lies.
  public let location: VaultLocation
  let random: any RandomSource
  let connection: Connection
  let access: VaultAccess
  private var keys: VaultKeys

  /// Opens a vault, and with `.readWrite` makes it if there is none.
  ///
  /// Two processes that make the same vault at once both succeed, with the same key. A process that is killed
  /// meanwhile leaves a key file at most, which the next one uses.
  ///
  /// - Parameters:
  ///   - random: where keys and nonces come from.
  ///   - now: seconds since 1970, kept with a key slot that is made.
  ///   - busyTimeout: the milliseconds to wait for other processes: a change takes some ten of them, and a
  /// hundred     may queue.
  /// - Throws: any case of `VaultError` but `.conflict` and `.tooLarge`; nothing is changed then.
  public static func open(
    _ location: VaultLocation, _ access: VaultAccess, random: some RandomSource, now: Int64 = 0,
    busyTimeout: Int32 = 20_000
  ) throws(VaultError) -> Vault {
    do throws(POSIXError) {
      try PrivateFile.check(location.file)
    } catch .notFound {
      guard access == .readWrite else { throw .absent(path: location.file) }
      try create(location, random: random, now: now)
    } catch {
      throw .file(error)
    }
    // The directory exists: it is only checked.
    try converting { () throws(POSIXError) in try PrivateFile.createDirectory(location.directory) }
    return try Vault(location, access, random, busyTimeout)
  }

  private init(
    _ location: VaultLocation, _ access: VaultAccess, _ random: any RandomSource, _ busyTimeout: Int32
  ) throws(VaultError) {
    self.location = location
    self.access = access
    self.random = random
    connection = try converting(location) { () throws(SQLiteError) in
      // Also for reading: a writer that was killed half-way left a journal, and a connection that may only
      // read could neither undo that nor read past it. SQLite falls back to reading where writing is not
      // allowed.
      try Connection(path: location.file, .readWrite, busyTimeout: busyTimeout)
    }
    try Self.checkFileHeader(connection, location)
    if access == .readWrite {
      let connection = connection
      try converting(location, connection) { () throws(SQLiteError) in
        // EXTRA also syncs the directory after the journal is gone: what was committed stays committed
        // (sqlite.org/pragma.html#pragma_synchronous).
        try connection.execute("PRAGMA synchronous=EXTRA;PRAGMA secure_delete=ON")
      }
    }
    keys = try Self.unlock(try Self.slots(connection, location), location)
  }

  private static func checkFileHeader(
    _ connection: Connection, _ location: VaultLocation
  ) throws(VaultError) {
    guard connection.fileSize != 0 else { throw .truncated(path: location.file) }
    let header = try converting(location, connection) { () throws(SQLiteError) in
      try connection.fileHeader()
    }
    try Format.check(fileHeader: header, path: location.file)
  }

  static func slots(_ connection: Connection, _ location: VaultLocation) throws(VaultError) -> [KeySlot] {
    try converting(location, connection) { () throws(SQLiteError) in
      let statement = try connection.prepare(
        "SELECT number,kind,created,parameters,wrapped FROM slot ORDER BY number")
      var slots: [KeySlot] = []
      while try statement.step() {
        slots.append(
          KeySlot(
            number: try statement.integer(0), kind: try statement.integer(1),
            created: try statement.integer(2), parameters: try statement.bytes(3),
            wrapped: try statement.bytes(4)))
      }
      return slots
    }
  }

  /// Opens the slot of the key file.
  private static func unlock(
    _ slots: [KeySlot], _ location: VaultLocation
  ) throws(VaultError) -> VaultKeys {
    guard !slots.isEmpty else { throw .damaged(path: location.file, .slots) }
    let candidates = slots.filter { $0.kind == SlotKind.keyFile.rawValue }
    guard !candidates.isEmpty else {
      throw .locked(slots.compactMap { SlotKind(rawValue: $0.kind) })
    }
    let keyFile: KeyFile
    do throws(VaultError) {
      keyFile = try KeyFile(path: location.keyFile)
    } catch .file(.notFound) {
      throw .keyFileMissing(path: location.keyFile)
    }
    for slot in candidates where slot.parameters == keyFile.identifier {
      let keys = try converting { () throws(CryptographyError) in
        try slot.unwrap(with: keyFile.key)
      }
      if let keys { return keys }
      throw .damaged(path: location.file, .slots)
    }
    throw .keyFileOfAnotherVault(path: location.keyFile)
  }

  /// A name for the file that is locked while an account is refreshed or logged in: 32 hexadecimal digits
  /// that say nothing about the account, and that stay the same when the vault key is changed.
  public func lockName(provider: String, account: String) -> String {
    keys.lockName(provider: provider, account: account)
  }

  /// What is known of the vault without opening a record.
  ///
  /// - Throws: as `record(_:)` does.
  public var status: VaultStatus {
    get throws(VaultError) {
      try transaction(.deferred) { _ throws(VaultError) in
        let slots = try Self.slots(self.connection, self.location)
        return VaultStatus(
          path: self.location.file, formatVersion: Format.version,
          slots: slots.map { .init(kind: SlotKind(rawValue: $0.kind), created: $0.created) },
          recordCount: Int(
            try self.query { connection throws(SQLiteError) in
              try connection.integer("SELECT count(*) FROM record")
            }))
      }
    }
  }

  /// Runs the body in one transaction, with the keys that the vault has at this moment.
  ///
  /// Another process may have changed the vault key since this one opened the vault. A header that is damaged
  /// does not hinder reading: `.immediate` transactions look at it themselves.
  func transaction<Result>(
    _ kind: TransactionKind, _ body: (VaultKeys) throws(VaultError) -> Result
  ) throws(VaultError) -> Result {
    let (connection, location) = (connection, location)
    return try connection.transaction(kind, convert: { VaultError($0, location, connection) }) {
      () throws(VaultError) in
      let current = try query { connection throws(SQLiteError) -> [UInt8]? in
        let statement = try connection.prepare("SELECT key FROM header")
        return try statement.step() ? try statement.bytes(0) : nil
      }
      if current != keys.identifier {
        keys = try Self.unlock(try Self.slots(connection, location), location)
      }
      return try body(keys)
    }
  }

  /// Runs SQL within `transaction`.
  func query<Result>(
    _ body: (Connection) throws(SQLiteError) -> Result
  ) throws(VaultError) -> Result {
    let connection = connection
    return try converting(location, connection) { () throws(SQLiteError) in try body(connection) }
  }
}

/// What is known of a vault without opening a record.
public struct VaultStatus: Sendable, Equatable {
  /// A way to the vault key.
  public struct Slot: Sendable, Equatable {
    /// How it is opened; `nil` for a kind that this program does not know.
    public let kind: SlotKind?
    /// Seconds since 1970; 0 if nobody said.
    public let created: Int64
  }

  /// The vault's file.
  public let path: String
  /// The version of the file's format.
  public let formatVersion: Int64
  /// The ways to the vault key.
  public let slots: [Slot]
  /// The number of records of all kinds.
  public let recordCount: Int
}
