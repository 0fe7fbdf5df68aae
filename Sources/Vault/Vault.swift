import Cryptography
import Platform
import SQLite
import Store

/// The credentials at rest: one SQLite file, in which every record is sealed on its own
/// (docs/vault-format.md).
///
/// Not thread-safe. Several processes can use the same vault at once: each call is one transaction, which
/// sees all of another process's change or nothing of it.
package final class Vault {
  /// Where the vault lies.
  package let location: VaultLocation
  let random: any RandomSource
  let connection: Connection
  let access: StoreAccess
  private let holders: [KeyHolder]
  private var opening: VaultOpening
  /// Compiled once: it takes longer than to run them, and a token needs each of them twice.
  private var keyStatement: Statement?
  private var rowStatement: Statement?

  /// Makes a process that opens one vault and ends quicker. For programs, before anything else is done with a vault.
  package static func configureForOneShotUse() { Connection.configureForOneShotUse() }

  /// Opens a vault, and with `.readWrite` makes it if there is none.
  ///
  /// Two processes that make the same vault at once both succeed, with the same key. A process that is killed
  /// meanwhile leaves a key file at most, which the next one uses.
  ///
  /// - Parameters:
  ///   - random: where keys and nonces come from.
  ///   - now: seconds since 1970, kept with a key slot that is made.
  ///   - busyTimeout: the milliseconds to wait for other processes: a change takes some ten of them, and a
  ///     hundred may queue.
  ///   - holders: who may have a key to the vault, in the order in which they are asked; also later, when
  ///     another process has changed the vault key.
  /// - Throws: any case of `VaultError` but `.conflict` and `.tooLarge`; nothing is changed then.
  package static func open(
    _ location: VaultLocation, _ access: StoreAccess, random: some RandomSource, now: Int64 = 0,
    busyTimeout: Int32 = 20_000, holders: [KeyHolder] = [.keyFile]
  ) throws(VaultError) -> Vault {
    do throws(VaultError) {
      return try Vault(location, access, random, try connect(location, busyTimeout), holders)
    } catch .absent where access == .readWrite {
      try create(location, random: random, now: now)
      return try Vault(location, access, random, try connect(location, busyTimeout), holders)
    }
  }

  init(
    _ location: VaultLocation, _ access: StoreAccess, _ random: any RandomSource, _ connection: Connection,
    _ holders: [KeyHolder]
  ) throws(VaultError) {
    self.location = location
    self.access = access
    self.random = random
    self.connection = connection
    self.holders = holders
    opening = try VaultOpening(connection, location, holders)
    if access == .readWrite { try makeDurable() }
  }

  /// A vault whose keys are known.
  init(
    _ location: VaultLocation, _ access: StoreAccess, _ random: any RandomSource, _ connection: Connection,
    _ opening: VaultOpening
  ) {
    self.location = location
    self.access = access
    self.random = random
    self.connection = connection
    self.opening = opening
    holders = []
  }

  func makeDurable() throws(VaultError) {
    try query { connection throws(SQLiteError) in
      // EXTRA also syncs the directory after the journal is gone: what was committed stays committed
      // (sqlite.org/pragma.html#pragma_synchronous).
      try connection.execute("PRAGMA synchronous=EXTRA;PRAGMA secure_delete=ON")
    }
  }

  /// A connection to the file of a vault that is there. No key is needed for it.
  static func connect(
    _ location: VaultLocation, _ busyTimeout: Int32 = 20_000
  ) throws(VaultError) -> Connection {
    do throws(POSIXError) {
      try PrivateFile.check(location.file)
    } catch .notFound {
      // What somebody put in the place of the directory is not the same as nothing.
      if let reason = PrivateFile.inPlaceOfDirectory(location.directory) { throw .file(reason) }
      throw .absent(path: location.file)
    } catch {
      throw .file(error)
    }
    // SQLite looks into them by itself, and would wait for ever for a pipe to say something.
    for suffix in ["-journal", "-wal", "-shm"] {
      do throws(POSIXError) {
        try PrivateFile.check(location.file + suffix)
      } catch .notFound {
        continue
      } catch {
        throw .file(error)
      }
    }
    try converting { () throws(POSIXError) in try PrivateFile.checkDirectory(location.directory) }
    let connection = try converting(location) { () throws(SQLiteError) in
      // Also for reading: a writer that was killed half-way left a journal, and a connection that may only
      // read could neither undo that nor read past it. SQLite falls back to reading where writing is not
      // allowed.
      try Connection(path: location.file, .readWrite, busyTimeout: busyTimeout)
    }
    try checkFileHeader(connection, location)
    return connection
  }

  static func checkFileHeader(
    _ connection: Connection, _ location: VaultLocation
  ) throws(VaultError) {
    guard connection.fileSize != 0 else { throw .truncated(path: location.file) }
    let header = try converting(location, connection) { () throws(SQLiteError) in
      try connection.fileHeader()
    }
    try Format.check(fileHeader: header, path: location.file)
  }

  /// The bytes that the file has beyond what its first page says; a negative number if bytes are missing. To be called
  /// in a transaction that has read something: what a killed process has begun is undone then.
  static func excess(_ connection: Connection, _ location: VaultLocation) throws(VaultError) -> Int64 {
    guard let size = connection.fileSize else { return 0 }
    let header = try converting(location, connection) { () throws(SQLiteError) in try connection.fileHeader() }
    return size - Int64(Format.number(in: header, at: 28)) * Int64(Format.pageSize)
  }

  /// SQLite notices a missing end when it gets there, which may be after a provider was asked for something.
  ///
  /// - Throws: `.truncated`.
  static func checkLength(_ connection: Connection, _ location: VaultLocation) throws(VaultError) {
    if try excess(connection, location) < 0 { throw .truncated(path: location.file) }
  }

  /// Makes sure that a change writes over nothing. To be called with the place of the only writer.
  ///
  /// Who is killed after the commit of a change that makes the file shorter leaves pages behind the end. They are
  /// nobody's if all that is before them fits together without them; if not, the number of pages in the first page was
  /// altered.
  ///
  /// - Throws: `.truncated`, `.damaged`.
  func requireLength() throws(VaultError) {
    let excess = try Self.excess(connection, location)
    if excess < 0 { throw .truncated(path: location.file) }
    if excess > 0 { try requireSoundness() }
  }

  /// - Throws: `.damaged` where SQLite finds that the parts of the file do not fit together.
  private func requireSoundness() throws(VaultError) {
    let isSound = try query { connection throws(SQLiteError) in try connection.isSound() }
    guard isSound else { throw .damaged(path: location.file, .structure) }
  }

  /// Checks that the parts of the file fit together, also those that the next change may need and a first one does not
  /// touch.
  ///
  /// - Throws: `.damaged`, and as `record(_:)` does.
  package func requireStructure() throws(VaultError) {
    try transaction(.deferred) { _ throws(VaultError) in try self.requireSoundness() }
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

  /// A name for the lock that is held while an account is refreshed or logged in, and for the file of an answer: 32
  /// hexadecimal digits that say nothing about the account, and that stay the same when the vault key is changed.
  package func lockName(provider: String, account: String) -> String {
    opening.keys.lockName(provider: provider, account: account)
  }

  var openingKeys: VaultKeys { opening.keys }

  /// The vault's keys, for the same vault in another process; and how they were found.
  package var openedKeys: (vault: String, keys: Secret, foundBy: SlotKind?) {
    (Hexadecimal.encode(opening.keys.identifier), opening.keys.secret, opening.foundBy)
  }

  /// How the keys were found; asked without a copy of them.
  package var keysFoundBy: SlotKind? { opening.foundBy }

  /// What is known of the vault without opening a record.
  ///
  /// - Throws: as `record(_:)` does.
  package var status: VaultStatus {
    get throws(VaultError) { try VaultStatus(connection, location) }
  }

  /// What is known of a vault without a key to it.
  ///
  /// - Throws: as `open` does.
  package static func status(of location: VaultLocation) throws(VaultError) -> VaultStatus {
    try VaultStatus(try connect(location), location)
  }

  /// Why the key file does not open the vault, when it has a slot for one; `nil` if it does or need not.
  package static func keyFileFault(at location: VaultLocation) -> VaultError? {
    do throws(VaultError) {
      _ = try VaultOpening(try connect(location), location, [.keyFile])
      return nil
    } catch .locked {
      return nil
    } catch {
      return error
    }
  }

  /// The name of a vault and of its present keys, without a key to it: `KeyHolder.opened` is asked with it.
  ///
  /// - Throws: as `open` does.
  package static func keyName(of location: VaultLocation) throws(VaultError) -> String {
    Hexadecimal.encode(try keyIdentifier(try connect(location), location))
  }

  /// Lets several records be read as one: no other process changes the vault between them.
  ///
  /// The body must not open the vault's file another way, nor wait for anything: who closes the file drops this
  /// process's locks on it (fcntl(2)), and writers wait for it.
  ///
  /// - Throws: `.busy`, `.damaged`, `.truncated`, `.inputOutput` as `open` does. What the body throws is in the result.
  package func snapshot<Value, Failure: Error>(
    _ body: () throws(Failure) -> Value
  ) throws(VaultError) -> Result<Value, Failure> {
    try transaction(.deferred) { _ in
      do throws(Failure) { return .success(try body()) } catch { return .failure(error) }
    }
  }

  /// Runs the body in one transaction, with the keys that the vault has at this moment; within another one, as a part
  /// of that.
  ///
  /// Another process may have changed the vault key since this one opened the vault. The new one is looked for
  /// without a lock: somebody may have to be asked for it. A header that is damaged does not hinder reading:
  /// `.immediate` transactions look at it themselves.
  func transaction<Result>(
    _ kind: TransactionKind, _ body: (VaultKeys) throws(VaultError) -> Result
  ) throws(VaultError) -> Result {
    if kind == .deferred, connection.isInTransaction { return try body(opening.keys) }
    let (connection, location) = (connection, location)
    while true {
      let result = try connection.transaction(
        kind, convert: { VaultError($0, location, connection) },
        confirm: { () throws(VaultError) in try location.confirm() }
      ) { () throws(VaultError) -> Result? in
        let current = try keyIdentifier()
        guard current == opening.keys.identifier || current == opening.identifier else { return nil }
        return try body(opening.keys)
      }
      if let result { return result }
      opening = try VaultOpening(connection, location, holders)
    }
  }

  /// After this process has changed the vault key.
  func use(_ keys: VaultKeys) {
    opening = VaultOpening(keys: keys, identifier: keys.identifier, foundBy: opening.foundBy)
  }

  /// The identifier of the vault key, as it stands in the header for everybody; none if there is no header.
  static func keyIdentifier(
    _ connection: Connection, _ location: VaultLocation
  ) throws(VaultError) -> [UInt8] {
    try converting(location, connection) { () throws(SQLiteError) in
      try keyIdentifier(try connection.prepare(keySelection))
    }
  }

  private static let keySelection = "SELECT key FROM header"

  private static func keyIdentifier(_ statement: borrowing Statement) throws(SQLiteError) -> [UInt8] {
    try statement.step() ? try statement.bytes(0) : []
  }

  private func keyIdentifier() throws(VaultError) -> [UInt8] {
    try query { connection throws(SQLiteError) in
      let statement = if let kept = keyStatement.take() { kept } else { try connection.prepare(Self.keySelection) }
      let identifier = try Self.keyIdentifier(statement)
      statement.reset()
      keyStatement = consume statement
      return identifier
    }
  }

  /// The row of a record; `nil` if there is none. To be called within `transaction`.
  func row(_ lookup: Int64) throws(VaultError) -> SealedRecord? {
    try query { connection throws(SQLiteError) in
      let statement =
        if let kept = rowStatement.take() { kept } else {
          try connection.prepare(SealedRecord.selection + " WHERE lookup=?1")
        }
      try statement.bind(lookup, at: 1)
      let row = try statement.step() ? try SealedRecord(statement) : nil
      statement.reset()
      rowStatement = consume statement
      return row
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

extension VaultStatus {
  init(_ connection: Connection, _ location: VaultLocation) throws(VaultError) {
    let (slots, count) = try connection.transaction(
      .deferred, convert: { VaultError($0, location, connection) }
    ) { () throws(VaultError) in
      let slots = try Vault.slots(connection, location)
      try Vault.checkLength(connection, location)
      let count = try converting(location, connection) { () throws(SQLiteError) in
        try connection.integer(
          "SELECT count(*) FROM record WHERE kind NOT IN(\(RecordKind.event.rawValue),\(RecordKind.host.rawValue))")
      }
      return (slots, count)
    }
    self.init(
      path: location.file, formatVersion: Format.version,
      slots: slots.map { .init(kind: SlotKind(rawValue: $0.kind), created: $0.created) },
      recordCount: Int(count))
  }
}
