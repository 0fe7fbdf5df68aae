import CredmgrCPOSIX
import CredmgrText
import Glibc
import Synchronization

/// The target of a lock: one byte of a file. The byte need not exist and is never read or written.
package struct LockPlace: Sendable, Equatable {
  /// A file that exists as long as the protected data: removing a lock file lets in a second holder.
  package let path: String
  package let byte: Int64

  package init(path: String, byte: Int64) {
    self.path = path
    self.byte = byte
  }
}

/// A lock on a byte of a file between processes and between threads (fcntl(2), open file description locks). It is
/// released with the value, and in any case when the process ends.
package struct FileLock: ~Copyable, Sendable {
  private let file: LockableFile
  private let place: LockPlace

  deinit { file.unlock(place) }

  /// Takes the lock, waiting up to `timeout`.
  ///
  /// - Parameter onWait: called before each further attempt with the time waited so far; returns `false` if the lock is
  ///   no longer needed, which makes the result `nil`.
  package static func acquire(
    _ place: LockPlace, timeout: Duration, clock: some WallClock = SystemClock(),
    onWait: (_ waited: Duration) throws(POSIXError) -> Bool = { _ in true }
  ) throws(POSIXError) -> FileLock? {
    let start = clock.monotonic()
    var pause = Duration.milliseconds(5)
    while true {
      let file = try LockableFile(place.path)
      if try file.lock(place) {
        // Another process may have replaced the file between opening and locking.
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

  /// Whether a process holds the lock. The check itself does not lock, so it hinders no other process.
  package static func isHeld(_ place: LockPlace) throws(POSIXError) -> Bool {
    try LockableFile(place.path).isLocked(place)
  }
}

/// An open file that is never closed, because closing it would drop this process's SQLite locks on the same file
/// (fcntl(2)). The next caller in this process uses it again.
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

  /// Takes the lock; returns `false` if another holder has it.
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
