import Glibc

/// A lock between processes on a file (flock(2)). It is released when the value ends, and when the process does, in
/// whatever way.
public struct FileLock: ~Copyable, Sendable {
  private let file: Descriptor

  private init(_ file: consuming Descriptor) { self.file = file }

  /// What a waiting caller wants next.
  public enum WaitDecision: Sendable {
    /// Try again.
    case goOn
    /// The lock is not needed any more.
    case giveUp
  }

  /// Takes the lock, and waits for it for as long as `seconds`.
  ///
  /// The file is made if there is none, of mode 0600, and never removed: a process that removes it would let a second
  /// holder in, on a new file of the same name. Its folder is to be private.
  ///
  /// - Parameters:
  ///   - onWait: called before each new try with the seconds waited so far; the caller can look at whether somebody
  ///     else has done the work meanwhile.
  /// - Returns: nil if `onWait` gave up.
  /// - Throws: `timedOut`, `interrupted`, `otherOwner`, `symbolicLink`, `notRegularFile`, or why the file cannot be
  ///   opened.
  public static func acquire(
    _ path: String, seconds: Double, clock: some WallClock = SystemClock(),
    onWait: (_ seconds: Double) throws(POSIXError) -> WaitDecision = { _ in .goOn }
  ) throws(POSIXError) -> FileLock? {
    let start = clock.monotonic()
    var pause = 0.005
    while true {
      let file = try Descriptor(opening: path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode: 0o600)
      let status = try file.status(path)
      if !status.isRegularFile { throw .notRegularFile(path: path) }
      if status.owner != geteuid() { throw .otherOwner(path: path) }
      if try isTaken(file, path) {
        // Somebody may have removed the file between opening and locking, and made a new one.
        if try FileStatus(path: path, following: false)?.identity == status.identity { return FileLock(file) }
        continue
      }
      let waited = clock.monotonic() - start
      if waited >= seconds { throw .timedOut }
      try clock.sleep(seconds: min(pause, seconds - waited))
      pause = min(pause * 1.5, 0.05)
      if try onWait(clock.monotonic() - start) == .giveUp { return nil }
    }
  }

  private static func isTaken(_ file: borrowing Descriptor, _ path: String) throws(POSIXError) -> Bool {
    while flock(file.number, LOCK_EX | LOCK_NB) != 0 {
      if errno == EWOULDBLOCK { return false }
      if errno != EINTR { throw Descriptor.failure("flock", path) }
    }
    return true
  }
}
