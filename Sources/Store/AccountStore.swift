import CredmgrCryptography
import CredmgrPlatform

/// The stored accounts: sealed records that change atomically, a lock for each account, space for a response that must
/// not be lost, and a log. Every store passes the same tests (Tests/StoreTests).
package protocol AccountStore: AnyObject {
  // MARK: Records

  /// The record, or `nil` if it does not exist; throws `.damagedRecord` if it was altered.
  func record(_ identifier: RecordIdentifier) throws(StoreError) -> Record?

  /// The undamaged records of a kind, of one provider or of all, in the order of their names.
  func records(_ kind: RecordKind, provider: String?) throws(StoreError) -> [Record]

  /// The records that were altered or removed, without the `known` ones, which were already read.
  func unreadable(
    _ kind: RecordKind, provider: String?, without known: Set<RecordIdentifier>
  ) throws(StoreError) -> [RecordIdentifier]

  func isLost(_ identifier: RecordIdentifier) throws(StoreError) -> Bool

  /// Reads several records as one snapshot. `body` must not wait for anything; its error is in the result.
  func snapshot<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(StoreError) -> Result<Value, Failure>

  /// Makes all changes or none, in their order, and returns the revision of the stored records. The changes survive a
  /// power cut. Throws `.conflict` for the first precondition that does not hold.
  @discardableResult func apply(_ changes: [Change]) throws(StoreError) -> Int64

  /// Checks that records could be stored under these names, and that there is space for a change. Call this before
  /// requesting a token: a token that cannot be stored is lost.
  func check(_ identifiers: [RecordIdentifier]) throws(StoreError)

  /// Everything that was altered since this store wrote it.
  func verify() throws(StoreError) -> [VaultFinding]

  // MARK: Locks

  /// A name that reveals nothing about the account: 32 hexadecimal digits, the same in every process.
  func hiddenName(of account: AccountID) -> String

  /// Takes the lock of an account, which ends with the returned value or the process. `waiting` is called before each
  /// further attempt with the time waited so far; it returns `false` if another process has finished the work.
  func lock(
    _ account: AccountID, timeout: Duration, clock: any WallClock, waiting: (Duration) -> Bool
  ) throws(LockError) -> LockedAccount

  /// Whether a process holds the lock of an account, without taking it.
  func isLocked(_ account: AccountID) -> Bool

  // MARK: Answers

  /// Reserves space for a provider's response about a locked account, replacing the stored response.
  func makeRoom(for account: AccountID) throws(StoreError) -> any AnswerRoom

  /// The last stored response, or `nil` if this store did not seal one.
  func answer(for account: AccountID) -> Secret?

  func removeAnswer(for account: AccountID)

  // MARK: The log

  /// Logs an event that changes no records, such as the return of a token.
  func note(_ event: Secret) throws(StoreError)

  /// The events logged here and by `Change.note`, the oldest first, and the number of known losses.
  func events() throws(StoreError) -> (events: [Secret], lost: Int)
}

/// Space for one response, reserved before the request so that filling it is one step that hardly ever fails.
package protocol AnswerRoom: AnyObject {
  /// Stores the response; `isForced` also protects it from a power cut if no change of the store follows immediately.
  func fill(_ answer: Secret, isForced: Bool) throws(StoreError)
}

package enum StoreAccess: Sendable {
  /// Reads only; a missing store is an error.
  case readOnly
  /// Reads and writes; creates a missing store.
  case readWrite
}

package enum LockError: Error, Sendable, Equatable {
  case timedOut
  case gaveUp
  case interrupted
  case store(StoreError)
}
