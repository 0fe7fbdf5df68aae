import Cryptography
import Platform

/// Accounts at rest: sealed records that are read and changed as one, a lock for each account, room for an answer that
/// must not be lost, and a log. Every store passes the same tests (Tests/StoreTests).
package protocol AccountStore: AnyObject {
  // MARK: Records

  /// Throws `.damagedRecord` if it is not what was written.
  func record(_ identifier: RecordIdentifier) throws(StoreError) -> Record?

  /// The records of a kind, of one provider or of all, in the order of their names; without those that are damaged.
  func records(_ kind: RecordKind, provider: String?) throws(StoreError) -> [Record]

  /// The records that were altered or taken away. Those that are `known` were read already.
  func unreadable(
    _ kind: RecordKind, provider: String?, without known: Set<RecordIdentifier>
  ) throws(StoreError) -> [RecordIdentifier]

  func isLost(_ identifier: RecordIdentifier) throws(StoreError) -> Bool

  /// Reads several records as one; `body` must not wait for anything, and its error is in the result.
  func snapshot<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(StoreError) -> Result<Value, Failure>

  /// Makes all of the changes or none, in their order; returns the revision of what was stored. They last when the call
  /// returns. `.conflict` is the first precondition that does not hold.
  @discardableResult func apply(_ changes: [Change]) throws(StoreError) -> Int64

  /// Checks that records could be stored under these names, with all that a change needs. A provider is asked for a
  /// token after this only: one that cannot be kept is lost.
  func check(_ identifiers: [RecordIdentifier]) throws(StoreError)

  // MARK: Locks

  /// Takes the lock of an account, which ends with the value, and when the process does. `waiting` is called before
  /// each new try with the time waited so far; `false` gives up, because somebody else has done what the lock is for.
  func lock(
    _ account: AccountID, timeout: Duration, clock: any WallClock, waiting: (Duration) -> Bool
  ) throws(LockError) -> LockedAccount

  /// Whether somebody holds the lock of an account. It is not taken for that.
  func isLocked(_ account: AccountID) -> Bool

  // MARK: Answers

  /// Makes room for a provider's answer about an account, in the place of what was kept there. For who holds the lock.
  func makeRoom(for account: AccountID) throws(StoreError) -> any AnswerRoom

  /// The answer that was kept last; `nil` if there is none, or none that this store sealed.
  func answer(for account: AccountID) -> Secret?

  func removeAnswer(for account: AccountID)

  // MARK: The log

  /// Notes an event that is no change of the records, such as that something was handed out.
  func note(_ event: Secret) throws(StoreError)

  /// The events that were noted, here and with `Change.note`, the oldest first; and how many are known to be lost.
  func events() throws(StoreError) -> (events: [Secret], lost: Int)
}

/// Room for one answer, made before the provider is asked: filling it is one step that hardly anything can hinder.
package protocol AnswerRoom: AnyObject {
  /// `isForced`: a power cut must not take it, either; for where no change of the store follows at once.
  func fill(_ answer: Secret, isForced: Bool) throws(StoreError)
}

package enum StoreAccess: Sendable {
  /// Reading. An absent store is an error.
  case readOnly
  /// Reading and writing. What is absent is made.
  case readWrite
}

package enum LockError: Error, Sendable, Equatable {
  case timedOut
  case gaveUp
  case interrupted
  case store(StoreError)
}
