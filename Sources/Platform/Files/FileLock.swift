import CPOSIX
import Glibc
import Synchronization

/// What is locked: one byte of a file, which need not be there, and which nobody reads or writes.
package struct LockPlace: Sendable, Equatable {
  /// It lives as long as what the lock protects: removing a file of locks lets a second holder in.
  package let path: String
  package let byte: Int64

  package init(path: String, byte: Int64) {
    self.path = path
    self.byte = byte
  }
}

/// A lock between processes, and between the threads of one, on a byte of a file (fcntl(2), open file description
/// locks). It is released when the value ends, and when the process does, in whatever way.
package struct FileLock: ~Copyable, Sendable {
  private let file: LockableFile
  private let place: LockPlace

  deinit { file.unlock(place) }

  /// Takes the lock, and waits for it for as long as `timeout`.
  ///
  /// - Parameter onWait: called before each new try with the time waited so far; `false` if the lock is not needed
  /// any more: then the answer is `nil`.
  package static func acquire(
    _ place: LockPlace, timeout: Duration, clock: some WallClock = SystemClock(),
    onWait: (_ waited: Duration) throws(POSIXError) -> Bool = { _ in true }
  ) throws(POSIXError) -> FileLock? {
    let start = clock.monotonic()
    var pause = Duration.milliseconds(5)
    while true {
      let file = try LockableFile(place.path)
      if try file.lock(place) {
        // Somebody may have put another file in its place between opening and locking.
        if try file.isStillAt(place.path) { return FileLock(file: file, place: place) }
        file.unlock(place)
        continue
      }
      let waited = clock.monotonic() - start
      if waited >= timeout { throw .timedOut }
      try clock.sleep(for: min(pause, timeout - waited))
      pause = min(pause * 1.5, .milliseconds(50))
      if try !onWait(clock.monotonic() - start) { return nil }
    }
  }

  /// Whether somebody holds the lock. It is not taken for that, so nobody who wants it is hindered.
  package static func isHeld(_ place: LockPlace) throws(POSIXError) -> Bool {
    try LockableFile(place.path).isLocked(place)
  }
}

/// An open file that is never closed: to close it would drop the locks that SQLite holds on the same file in this
/// process (fcntl(2)). Who needs it next in this process gets it again.
private struct LockableFile: ~Copyable, Sendable {
  private struct Spare {
    let identity: [UInt64]
    let number: Int32
  }

  private static let spares = Mutex<[Spare]>([])

  private let identity: [UInt64]
  private let number: Int32

  init(_ path: String) throws(POSIXError) {
    guard let status = try FileStatus(path: path, following: false) else { throw .notFound(path: path) }
    if status.isSymbolicLink { throw .symbolicLink(path: path) }
    if !status.isRegularFile { throw .notRegularFile(path: path) }
    if status.owner != geteuid() { throw .otherOwner(path: path) }
    let spare = Self.spares.withLock { spares in
      spares.firstIndex { $0.identity == status.identity }.map { spares.remove(at: $0) }
    }
    if let spare {
      identity = spare.identity
      number = spare.number
      return
    }
    let file = try Descriptor(opening: path, O_RDWR | O_NOFOLLOW | O_NONBLOCK)
    identity = try file.status(path).identity
    number = file.released()
  }

  deinit {
    let spare = Spare(identity: identity, number: number)
    Self.spares.withLock { $0.append(spare) }
  }

  func isStillAt(_ path: String) throws(POSIXError) -> Bool {
    try FileStatus(path: path, following: false)?.identity == identity
  }

  /// False if somebody else has the lock.
  func lock(_ place: LockPlace) throws(POSIXError) -> Bool {
    while credmgr_lock(number, place.byte, 1) != 0 {
      if errno == EAGAIN || errno == EACCES { return false }
      if errno != EINTR { throw Descriptor.failure("fcntl", place.path) }
    }
    return true
  }

  func unlock(_ place: LockPlace) { _ = credmgr_lock(number, place.byte, 0) }

  func isLocked(_ place: LockPlace) throws(POSIXError) -> Bool {
    let answer = credmgr_is_locked(number, place.byte)
    if answer < 0 { throw Descriptor.failure("fcntl", place.path) }
    return answer > 0
  }
}
