import CredmgrCryptography
import CredmgrPlatform
import CredmgrSQLite
import CredmgrStore
import CredmgrText

/// The stored credentials: one SQLite file in which every record is sealed separately (docs/vault-format.md).
///
/// Not thread-safe. Several processes can use a vault concurrently: each call is one transaction, which sees another
/// process's change completely or not at all.
package final class Vault {
  let file: VaultFile
  let random: any RandomSource
  let access: StoreAccess
  private let holders: [KeyHolder]
  var opening: VaultOpening
  /// Compiled once, which takes longer than running the statement; a token needs each statement twice.
  private var keyStatement: Statement?
  private var rowStatement: Statement?

  package var location: VaultLocation { file.location }

  package static func configureForOneShotUse() { Connection.configureForOneShotUse() }

  /// Opens a vault, or creates a missing one with `.readWrite`.
  ///
  /// Two processes that create it concurrently both succeed, with the same key; a killed one leaves at most a key file.
  ///
  /// - Parameters:
  ///   - now: the creation date of a new key slot.
  ///   - busyTimeout: time to wait for other processes; a change takes about 10 ms, and a hundred may queue.
  ///   - holders: the sources of a key in their order, also used after another process has changed the vault key.
  package static func open(
    _ location: VaultLocation, _ access: StoreAccess, random: some RandomSource, now: Moment = 0,
    busyTimeout: Duration = .seconds(20), holders: [KeyHolder] = [.keyFile]
  ) throws(VaultError) -> Vault {
    let file: VaultFile
    do throws(VaultError) {
      file = try VaultFile(location, busyTimeout: busyTimeout)
    } catch .absent where access == .readWrite {
      try create(location, random: random, now: now)
      file = try VaultFile(location, busyTimeout: busyTimeout)
    }
    return try Vault(file, access, random: random, opening: VaultOpening(file, holders), holders: holders)
  }

  init(
    _ file: VaultFile, _ access: StoreAccess, random: any RandomSource, opening: VaultOpening, holders: [KeyHolder] = []
  ) throws(VaultError) {
    self.file = file
    self.access = access
    self.random = random
    self.opening = opening
    self.holders = holders
    if access == .readWrite { try file.makeDurable() }
  }

  /// The vault's keys, for the same vault in another process, and their source.
  package var openedKeys: (vault: String, keys: Secret, foundBy: SlotKind?) {
    (Hexadecimal.encode(opening.keys.identifier), opening.keys.secret, opening.foundBy)
  }

  /// The source of the keys, without a copy of them.
  package var keysFoundBy: SlotKind? { opening.foundBy }

  package var status: VaultStatus { get throws(VaultError) { try file.status() } }

  /// The status of a vault, which is readable without a key.
  package static func status(of location: VaultLocation) throws(VaultError) -> VaultStatus {
    try VaultFile(location).status()
  }

  /// The reason why the key file does not open the vault, or `nil` if it does or the vault needs none.
  package static func keyFileFault(at location: VaultLocation) -> VaultError? {
    do throws(VaultError) {
      _ = try VaultOpening(VaultFile(location), [.keyFile])
      return nil
    } catch .locked {
      return nil
    } catch {
      return error
    }
  }

  /// The name of a vault and its current keys, readable without a key, for `KeyHolder.opened`.
  package static func keyName(of location: VaultLocation) throws(VaultError) -> String {
    Hexadecimal.encode(try VaultFile(location).keyIdentifier())
  }

  /// Runs the body in one snapshot. It must not reopen the file: closing would drop this process's locks (fcntl(2)).
  package func snapshot<Value, Failure: Error>(
    _ body: () throws(Failure) -> Value
  ) throws(VaultError) -> Result<Value, Failure> {
    try transaction(.deferred) { _ in
      do throws(Failure) { return .success(try body()) } catch { return .failure(error) }
    }
  }

  /// Runs the body in one transaction, or as part of the open one, with the current keys of the vault.
  ///
  /// If another process has changed the vault key, this looks for the new one without a lock, because it may have to
  /// prompt. A damaged header does not prevent reading; `.immediate` transactions check it themselves.
  func transaction<Result>(
    _ kind: TransactionKind, _ body: (VaultKeys) throws(VaultError) -> Result
  ) throws(VaultError) -> Result {
    if kind == .deferred, file.connection.isInTransaction { return try body(opening.keys) }
    while true {
      let result = try file.transaction(kind) { () throws(VaultError) -> Result? in
        let current = try running(&keyStatement, VaultFile.keySelection) { statement throws(SQLiteError) in
          try statement.step() ? try statement.bytes(0) : []
        }
        guard current == opening.keys.identifier || current == opening.identifier else { return nil }
        return try body(opening.keys)
      }
      if let result { return result }
      opening = try VaultOpening(file, holders)
    }
  }

  /// The sealed record; call this within `transaction`.
  func row(_ lookup: Int64) throws(VaultError) -> SealedRecord? {
    try running(&rowStatement, SealedRecord.selection + " WHERE lookup=?1") { statement throws(SQLiteError) in
      try statement.bind([.integer(lookup)])
      return try statement.step() ? try SealedRecord(statement) : nil
    }
  }

  private func running<Result>(
    _ kept: inout Statement?, _ sql: @autoclosure () -> String,
    read body: (borrowing Statement) throws(SQLiteError) -> Result
  ) throws(VaultError) -> Result {
    do throws(SQLiteError) {
      let statement = if let kept = kept.take() { kept } else { try file.connection.prepare(sql()) }
      let result = try body(statement)
      statement.reset()
      kept = consume statement
      return result
    } catch {
      throw file.error(error)
    }
  }
}
