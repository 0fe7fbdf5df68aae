import CPOSIX
import Glibc

/// Signals that ask the program to end: SIGINT, SIGTERM, SIGHUP. This file alone uses the handler of the shim, whose
/// flag is static to it.
package enum Signals {
  /// From now on the first of these signals sets ``isInterrupted`` and ends waits, and one that comes more than two
  /// seconds after it ends the program. A signal that was ignored at the start stays ignored.
  package static func installInterruptFlag() {
    for number in [SIGINT, SIGTERM, SIGHUP] { credmgr_catch(number) }
  }

  package static var isInterrupted: Bool { credmgr_last_signal() != 0 }

  /// Makes a closed output and a file beyond the process's limit an error of the write, not the program's silent end.
  package static func ignoreFailedWrites() { credmgr_ignore_failed_writes() }

  /// Undoes ``ignoreFailedWrites()``, which would last in the program that takes this one's place.
  static func restoreDefaults() { credmgr_restore_failed_writes() }

  /// Runs `body` while these signals, SIGQUIT and SIGTSTP wait: between a provider's answer and the commit.
  package static func deferring<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result
  { try deferring(()) { _ throws(Failure) in try body() } }

  /// The same for a value that `body` consumes.
  package static func deferring<Value: ~Copyable, Result, Failure: Error>(
    _ value: consuming Value, _ body: (consuming Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var ending = credmgr_ending_signals()
    var before = sigset_t()
    _ = unsafe pthread_sigmask(SIG_BLOCK, &ending, &before)
    defer { _ = unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
    return try body(value)
  }

  /// Whether one of the signals waits inside ``deferring(_:)``.
  package static var isWaiting: Bool { credmgr_ending_signal_waits() != 0 }
}
