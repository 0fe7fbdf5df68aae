import CredmgrCryptography
import CredmgrPlatform

/// An account that no other process can refresh, log in or log out meanwhile.
package struct LockedAccount: ~Copyable {
  package let id: AccountID
  let store: any AccountStore
  let clock: any WallClock
  private let lock: AnyObject

  /// Takes `lock`, which holds the lock as long as it is referenced.
  package init(_ id: AccountID, of store: any AccountStore, clock: any WallClock, lock: AnyObject) {
    self.id = id
    self.store = store
    self.clock = clock
    self.lock = lock
  }

  deinit { withExtendedLifetime(lock) {} }

  /// Begins an exchange with a provider that must not happen twice, such as one that consumes a refresh token. It
  /// stores a note for the next process in case this one dies, and proves that the response can be stored. A failure
  /// leaves no traces. `keepsAnswer` reserves space for the response, replacing the stored one; one of `accounts`
  /// receives it.
  package borrowing func begin(
    noting note: Secret, keepsAnswer: Bool = true, for accounts: [AccountID]? = nil
  ) throws(StoreError) -> PendingExchange {
    let identifier = RecordIdentifier(.pending, of: id)
    try store.check((accounts ?? [id]).map { RecordIdentifier(.credential, of: $0) })
    let before = try store.record(identifier)?.payload
    let room = keepsAnswer ? try store.makeRoom(for: id) : nil
    do throws(StoreError) {
      try store.apply([.store(note, as: identifier)])
    } catch {
      if keepsAnswer { store.removeAnswer(for: id) }
      throw error
    }
    return PendingExchange(id: id, before: before, store: store, clock: clock, room: room, isResumed: false)
  }

  /// Continues the exchange of a process that died after storing the response.
  package borrowing func resume() -> PendingExchange {
    PendingExchange(id: id, before: nil, store: store, clock: clock, room: nil, isResumed: true)
  }
}

/// An exchange with a provider that must not happen twice: it begins once, on a locked account, and ends once. A
/// process that dies in between leaves its note and its stored response to the next one.
package struct PendingExchange: ~Copyable {
  package let id: AccountID
  /// The earlier note; `nil` without one.
  package let before: Secret?
  fileprivate let store: any AccountStore
  fileprivate let clock: any WallClock
  fileprivate let room: (any AnswerRoom)?
  fileprivate let isResumed: Bool
  fileprivate var isFinished = false

  // `discard` needs properties that need no clean-up, so `finish` sets a flag.
  deinit { assert(isFinished, "an exchange was dropped without an outcome") }

  /// Stores the response until the commit. If this fails, only the commit can save the response.
  package borrowing func keep(_ answer: Secret, isForced: Bool) { try? room?.fill(answer, isForced: isForced) }
}

package enum ExchangeOutcome {
  /// Stores a response in the account's record, with further changes, unless another process has changed the record
  /// since the exchange began.
  case renewed(Secret, replacing: (Secret) -> Bool, [Change])
  /// Stores the changes. After a conflict over a record, the function decides what comes next.
  case committed([Change], after: (RecordIdentifier) -> ConflictDecision = { _ in .discard })
  /// Nothing to store except a note; `nil` restores the earlier one.
  case ended(noting: Secret?)
  /// A response may be lost or may still follow, so the note stays.
  case unfinished
}

package enum ConflictDecision {
  case retry([Change])
  case discard  // The response.
  case keep  // The next process continues.
}

package struct CommitError: Error, Sendable {
  package let reason: StoreError
  /// Whether the response is stored, so that the next process can continue.
  package let isKept: Bool
}

extension PendingExchange {
  /// Ends the exchange, even with a conflict, which discards the response. Returns the stored revision, or `nil` if
  /// another process has stored a newer credential.
  @discardableResult package consuming func finish(_ outcome: ExchangeOutcome) throws(CommitError) -> Int64? {
    isFinished = true
    switch outcome {
    case .renewed(let answer, let replaces, let changes): return try renew(answer, replacing: replaces, changes)
    case .committed(var changes, let decide):
      while true {
        do {
          let revision = try store.apply(changes + [noteRemoval])
          store.removeAnswer(for: id)
          return revision
        } catch .conflict(let identifier, let actual) {
          switch decide(identifier) {
          case .retry(let others): changes = others
          case .discard:
            forget()
            throw CommitError(reason: .conflict(identifier, actual: actual), isKept: false)
          case .keep: throw CommitError(reason: .conflict(identifier, actual: actual), isKept: true)
          }
        } catch {
          throw CommitError(reason: error, isKept: store.answer(for: id) != nil)
        }
      }
    case .ended(let note):
      let note = note ?? before
      do {
        try store.apply([note.map { .store($0, as: RecordIdentifier(.pending, of: id)) } ?? noteRemoval])
      } catch {
        // The note stays and says less than we know, but a response stored by another process is not lost.
        if isResumed { throw CommitError(reason: error, isKept: true) }
      }
      if isResumed || room != nil { store.removeAnswer(for: id) }
      return nil
    case .unfinished: return nil
    }
  }

  private var noteRemoval: Change { .remove(RecordIdentifier(.pending, of: id)) }

  private borrowing func forget() {
    _ = try? store.apply([noteRemoval])
    store.removeAnswer(for: id)
  }

  private borrowing func renew(
    _ answer: Secret, replacing replaces: (Secret) -> Bool, _ changes: [Change]
  ) throws(CommitError) -> Int64? {
    let identifier = RecordIdentifier(.credential, of: id)
    // A response that is not committed now may be lost, so a full or busy disk gets a few more seconds.
    var pauses: ArraySlice<Duration> = [.milliseconds(100), .milliseconds(400), .seconds(1), .seconds(2)]
    while true {
      do throws(StoreError) {
        guard let precondition = try precondition(identifier, replaces) else {
          // This may be our own response: a commit can fail after it took effect.
          forget()
          return nil
        }
        let revision = try store.apply([.store(answer, as: identifier, if: precondition), noteRemoval] + changes)
        store.removeAnswer(for: id)
        return revision
      } catch .conflict(_, actual: nil) {
        // An account that no longer exists (after restoring a backup) must not reappear.
        forget()
        throw CommitError(reason: .conflict(identifier, actual: nil), isKept: false)
      } catch .conflict {
        continue
      } catch {
        guard let pause = pauses.popFirst() else {
          throw CommitError(reason: error, isKept: store.answer(for: id) != nil)
        }
        do { try clock.sleep(for: pause) } catch { pauses = [] }
      }
    }
  }

  /// The condition for storing the response, or `nil` if another process has stored another one.
  private borrowing func precondition(
    _ identifier: RecordIdentifier, _ replaces: (Secret) -> Bool
  ) throws(StoreError) -> Precondition? {
    do {
      if let record = try store.record(identifier) {
        return replaces(record.payload) ? .revision(record.revision) : nil
      }
    } catch .damagedRecord {
      // The response replaces the damaged record.
      return .any
    }
    guard try store.isLost(identifier) else { throw .conflict(identifier, actual: nil) }
    return .any
  }
}
