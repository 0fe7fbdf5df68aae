import CredmgrCryptography
import CredmgrPlatform
import CredmgrStore
import CredmgrText
import Synchronization

/// Accounts in memory; several stores share the same records like processes share a file.
final class MemoryStore: AccountStore {
  /// The content that several stores share.
  final class Contents: Sendable {
    fileprivate struct State {
      var records: [RecordIdentifier: Record] = [:]
      var answers: [RecordIdentifier: Secret] = [:]
      var locked: Set<RecordIdentifier> = []
      var log: [Secret] = []
      var revision: Int64 = 0
      var isFull = false
    }
    fileprivate let state = Mutex(State())

    func setFull(_ isFull: Bool) { state.withLock { $0.isFull = isFull } }
  }

  private final class Lock {
    let contents: Contents
    let identifier: RecordIdentifier
    init(_ contents: Contents, _ identifier: RecordIdentifier) {
      (self.contents, self.identifier) = (contents, identifier)
    }
    deinit { contents.state.withLock { _ = $0.locked.remove(identifier) } }
  }

  private final class Room: AnswerRoom {
    let contents: Contents
    let identifier: RecordIdentifier
    init(_ contents: Contents, _ identifier: RecordIdentifier) {
      (self.contents, self.identifier) = (contents, identifier)
    }
    func fill(_ answer: Secret, isForced: Bool) throws(StoreError) {
      if contents.state.withLock({ $0.isFull }) { throw .full(path: "") }
      contents.state.withLock { $0.answers[identifier] = answer }
    }
  }

  private let contents: Contents
  /// The records as seen by the current snapshot.
  private var snapshot: [RecordIdentifier: Record]?

  init(_ contents: Contents) { self.contents = contents }

  private var records: [RecordIdentifier: Record] { snapshot ?? contents.state.withLock { $0.records } }

  func record(_ identifier: RecordIdentifier) -> Record? { records[identifier] }

  func records(_ kind: RecordKind, provider: String?) -> [Record] {
    records.values.filter {
      $0.identifier.kind == kind && (provider ?? $0.identifier.provider) == $0.identifier.provider
    }.sorted { ($0.identifier.provider, $0.identifier.account) < ($1.identifier.provider, $1.identifier.account) }
  }

  func unreadable(_: RecordKind, provider: String?, without: Set<RecordIdentifier>) -> [RecordIdentifier] { [] }

  func isLost(_: RecordIdentifier) -> Bool { false }

  func snapshot<Value, Failure: Error>(_ body: () throws(Failure) -> Value) -> Result<Value, Failure> {
    snapshot = records
    defer { snapshot = nil }
    do throws(Failure) { return .success(try body()) } catch { return .failure(error) }
  }

  func apply(_ changes: [Change]) throws(StoreError) -> Int64 {
    let result = contents.state.withLock { state -> Result<Int64, StoreError> in
      if state.isFull { return .failure(.full(path: "")) }
      var next = state
      next.revision += 1
      func conflict(_ identifier: RecordIdentifier, _ precondition: Precondition) -> StoreError? {
        let actual = next.records[identifier]?.revision
        return switch precondition {
        case .any: nil
        case .absent: actual == nil ? nil : .conflict(identifier, actual: actual)
        case .revision(let expected): actual == expected ? nil : .conflict(identifier, actual: actual)
        }
      }
      for change in changes {
        switch change {
        case .store(let payload, as: let identifier, if: let precondition):
          if let conflict = conflict(identifier, precondition) { return .failure(conflict) }
          next.records[identifier] = Record(identifier: identifier, payload: payload, revision: next.revision)
        case .remove(let identifier, if: let precondition):
          if let conflict = conflict(identifier, precondition) { return .failure(conflict) }
          next.records[identifier] = nil
        case .require(let identifier):
          if next.records[identifier] == nil { return .failure(.conflict(identifier, actual: nil)) }
        case .note(let event): next.log.append(event)
        }
      }
      state = next
      return .success(next.revision)
    }
    return try result.get()
  }

  func check(_ identifiers: [RecordIdentifier]) {}

  func verify() -> [VaultFinding] { [] }

  func hiddenName(of account: AccountID) -> String {
    let name = account.provider + "\0" + (account.name ?? "")
    return Hexadecimal.encode(Array((Array(repeating: 0, count: 16) + Array(name.utf8)).suffix(16)))
  }

  func lock(
    _ account: AccountID, timeout: Duration, clock: any WallClock, waiting: (Duration) -> Bool
  ) throws(LockError) -> LockedAccount {
    let identifier = RecordIdentifier(.pending, of: account)
    let start = clock.monotonic()
    while !contents.state.withLock({ $0.locked.insert(identifier).inserted }) {
      let waited = clock.monotonic() - start
      if waited >= timeout { throw .timedOut }
      do { try clock.sleep(for: .milliseconds(50)) } catch { throw .interrupted }
      if !waiting(clock.monotonic() - start) { throw .gaveUp }
    }
    return LockedAccount(account, of: self, clock: clock, lock: Lock(contents, identifier))
  }

  func isLocked(_ account: AccountID) -> Bool {
    contents.state.withLock { $0.locked.contains(RecordIdentifier(.pending, of: account)) }
  }

  func makeRoom(for account: AccountID) -> any AnswerRoom {
    removeAnswer(for: account)
    return Room(contents, RecordIdentifier(.pending, of: account))
  }

  func answer(for account: AccountID) -> Secret? {
    contents.state.withLock { $0.answers[RecordIdentifier(.pending, of: account)] }
  }

  func removeAnswer(for account: AccountID) {
    contents.state.withLock { $0.answers[RecordIdentifier(.pending, of: account)] = nil }
  }

  func note(_ event: Secret) { contents.state.withLock { $0.log.append(event) } }

  func events() -> (events: [Secret], lost: Int) { (contents.state.withLock { $0.log }, 0) }
}
