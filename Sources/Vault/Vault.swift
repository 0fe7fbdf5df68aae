import Cryptography
import Platform
import SQLite
import Store
import Text

/// The credentials at rest: one SQLite file, in which every record is sealed on its own (docs/vault-format.md).
///
/// Not thread-safe. Several processes can use the same vault at once: each call is one transaction, which
/// sees all of another process's change or nothing of it.
package final class Vault {
  let file: VaultFile
  let random: any RandomSource
  let access: StoreAccess
  private let holders: [KeyHolder]
  var opening: VaultOpening
  /// Compiled once: it takes longer than to run them, and a token needs each of them twice.
  private var keyStatement: Statement?
  private var rowStatement: Statement?

  package var location: VaultLocation { file.location }

  package static func configureForOneShotUse() { Connection.configureForOneShotUse() }

  /// Opens a vault, and with `.readWrite` makes it if there is none.
  ///
  /// Two processes that make it at once both succeed, with the same key; one that is killed leaves a key file at most.
  ///
  /// - Parameters:
  ///   - now: kept with a key slot that is made.
  ///   - busyTimeout: milliseconds to wait for other processes: a change takes some ten, and a hundred may queue.
  ///   - holders: asked in their order for a key; also later, when another process has changed the vault key.
  package static func open(
    _ location: VaultLocation, _ access: StoreAccess, random: some RandomSource, now: Moment = 0,
    busyTimeout: Int32 = 20_000, holders: [KeyHolder] = [.keyFile]
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

  /// A name for the lock that is held while an account is refreshed or logged in, and for the file of an answer: 32
  /// hexadecimal digits that say nothing about the account, and that stay the same when the vault key is changed.
  package func lockName(provider: String, account: String) -> String {
    opening.keys.lockName(provider: provider, account: account)
  }

  /// The vault's keys, for the same vault in another process; and how they were found.
  package var openedKeys: (vault: String, keys: Secret, foundBy: SlotKind?) {
    (Hexadecimal.encode(opening.keys.identifier), opening.keys.secret, opening.foundBy)
  }

  /// How the keys were found; asked without a copy of them.
  package var keysFoundBy: SlotKind? { opening.foundBy }

  package var status: VaultStatus { get throws(VaultError) { try file.status() } }

  /// No key is needed for it.
  package static func status(of location: VaultLocation) throws(VaultError) -> VaultStatus {
    try VaultFile(location).status()
  }

  /// Why the key file does not open the vault, when it has a slot for one; `nil` if it does or need not.
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

  /// The name of a vault and of its present keys, without a key to it: `KeyHolder.opened` is asked with it.
  package static func keyName(of location: VaultLocation) throws(VaultError) -> String {
    Hexadecimal.encode(try VaultFile(location).keyIdentifier())
  }

  /// The body must not open the vault's file another way: closing the file drops this process's locks on it (fcntl(2)).
  package func snapshot<Value, Failure: Error>(
    _ body: () throws(Failure) -> Value
  ) throws(VaultError) -> Result<Value, Failure> {
    try transaction(.deferred) { _ in
      do throws(Failure) { return .success(try body()) } catch { return .failure(error) }
    }
  }

  /// Runs the body in one transaction, or as a part of the open one, with the keys that the vault has at this moment.
  ///
  /// Another process may have changed the vault key. The new one is looked for without a lock: a person may have to be
  /// asked for it. A damaged header does not hinder reading: `.immediate` transactions look at it themselves.
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

  /// To be called within `transaction`.
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
