import Cryptography
import Platform

/// An account that nobody else refreshes, logs in or logs out meanwhile.
package struct LockedAccount: ~Copyable {
  package let id: AccountID
  let store: any AccountStore
  let clock: any WallClock
  private let lock: AnyObject

  /// `lock` holds the lock until its last reference is gone.
  package init(_ id: AccountID, of store: any AccountStore, clock: any WallClock, lock: AnyObject) {
    self.id = id
    self.store = store
    self.clock = clock
    self.lock = lock
  }

  deinit { withExtendedLifetime(lock) {} }

  /// Begins an exchange with a provider that must not happen twice, such as one that uses up a refresh token. When it
  /// returns there is a note, which tells the next process if this one dies, and the proof that the answer can be
  /// stored. Where it fails nothing is left of it. `keepsAnswer`: the answer must not be lost, and takes the place of
  /// what was kept before. `accounts` are those of which one gets the answer.
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

  /// Goes on with an exchange whose process died, and of which an answer is kept.
  package borrowing func resume() -> PendingExchange {
    PendingExchange(id: id, before: nil, store: store, clock: clock, room: nil, isResumed: true)
  }
}

/// An exchange with a provider that must not happen twice: begun once, on a locked account, and finished once.
/// Whoever dies in between leaves its note, and what it kept, to the next one.
package struct PendingExchange: ~Copyable {
  package let id: AccountID
  /// What was noted before.
  package let before: Secret?
  fileprivate let store: any AccountStore
  fileprivate let clock: any WallClock
  fileprivate let room: (any AnswerRoom)?
  fileprivate let isResumed: Bool

  /// Keeps the answer until it is committed. Where this fails, the commit is the only chance.
  package borrowing func keep(_ answer: Secret, isForced: Bool) { try? room?.fill(answer, isForced: isForced) }
}

package enum ExchangeOutcome {
  /// An answer, which takes the place of what the account's record holds, unless that is not any more what the
  /// exchange was made from. The changes are made with it.
  case renewed(Secret, replacing: (Secret) -> Bool, [Change])
  case committed([Change])
  /// Nothing that has to be kept; what is to be noted, or else what was noted before.
  case ended(noting: Secret?)
  /// An answer may be lost, or waits for the next one: the note stays.
  case unfinished
}

package struct CommitError: Error, Sendable {
  package let reason: StoreError
  /// Whether it is kept, so that the next one can go on from there.
  package let isKept: Bool
}

extension PendingExchange {
  /// Ends the exchange, also with a conflict: the answer is nobody's any more then. Returns the revision of what was
  /// stored; `nil` if nothing was, because somebody else stored something newer.
  @discardableResult package consuming func finish(_ outcome: ExchangeOutcome) throws(CommitError) -> Int64? {
    switch outcome {
    case .renewed(let answer, let replaces, let changes): return try renew(answer, replaces, changes)
    case .committed(let changes):
      do {
        let revision = try store.apply(changes + [noteRemoval])
        store.removeAnswer(for: id)
        return revision
      } catch .conflict(let identifier, let actual) {
        forget()
        throw CommitError(reason: .conflict(identifier, actual: actual), isKept: false)
      } catch {
        throw CommitError(reason: error, isKept: store.answer(for: id) != nil)
      }
    case .ended(let note):
      let note = note ?? before
      do {
        try store.apply([note.map { .store($0, as: RecordIdentifier(.pending, of: id)) } ?? noteRemoval])
      } catch {
        // The note stays as it is, and says less than we know; but an answer that somebody else kept is not lost.
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
    _ answer: Secret, _ replaces: (Secret) -> Bool, _ changes: [Change]
  ) throws(CommitError) -> Int64? {
    let identifier = RecordIdentifier(.credential, of: id)
    // What is not committed now may be lost: a disk that is full or busy gets some more seconds.
    var pauses: ArraySlice<Duration> = [.milliseconds(100), .milliseconds(400), .seconds(1), .seconds(2)]
    while true {
      do throws(StoreError) {
        guard let precondition = try precondition(identifier, replaces) else {
          // It may be ours: a commit can fail behind the moment from which on it counts.
          forget()
          return nil
        }
        let revision = try store.apply([.store(answer, as: identifier, if: precondition), noteRemoval] + changes)
        store.removeAnswer(for: id)
        return revision
      } catch .conflict(_, actual: nil) {
        // An account that is gone (a backup was put back) stays gone.
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

  /// The condition for the answer to be stored; `nil` if somebody else has stored another one.
  private borrowing func precondition(
    _ identifier: RecordIdentifier, _ replaces: (Secret) -> Bool
  ) throws(StoreError) -> Precondition? {
    do {
      if let record = try store.record(identifier) {
        return replaces(record.payload) ? .revision(record.revision) : nil
      }
    } catch .damagedRecord {
      // The answer mends it.
      return .any
    }
    guard try store.isLost(identifier) else { throw .conflict(identifier, actual: nil) }
    return .any
  }
}
