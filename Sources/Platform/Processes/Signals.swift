import CredmgrCPOSIX
import Glibc

/// The signals that ask the program to end: SIGINT, SIGTERM, SIGHUP.
package enum Signals {
  /// Makes the first of these signals set ``isInterrupted`` and end waits, and a signal more than two seconds later end
  /// the program. A signal that was ignored at the start stays ignored. `catchesQuit` treats SIGQUIT the same, for
  /// programs that leave something behind.
  package static func installInterruptFlag(catchesQuit: Bool = false) {
    for number in [SIGINT, SIGTERM, SIGHUP] + (catchesQuit ? [SIGQUIT] : []) { credmgr_catch(number) }
  }

  package static var isInterrupted: Bool { credmgr_last_signal() != 0 }

  /// Makes waits possible again after an interruption, for programs that clean up. The next signal interrupts them.
  package static func forgetInterruption() { credmgr_forget_signal() }

  /// Makes writing to a closed output, or beyond the file size limit, an error instead of a silent end of the program.
  package static func ignoreFailedWrites() { credmgr_ignore_failed_writes() }

  /// Undoes ``ignoreFailedWrites()``, which a program that replaces this one would inherit.
  static func restoreDefaults() { credmgr_restore_failed_writes() }

  /// Runs `body` with these signals, SIGQUIT and SIGTSTP blocked, between a provider's response and the commit.
  package static func deferring<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result
  { try deferring(()) { _ throws(Failure) in try body() } }

  /// Runs `body` like the other overload, with a value that `body` consumes.
  package static func deferring<Value: ~Copyable, Result, Failure: Error>(
    _ value: consuming Value, _ body: (consuming Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var ending = credmgr_ending_signals()
    var before = sigset_t()
    _ = unsafe pthread_sigmask(SIG_BLOCK, &ending, &before)
    defer { _ = unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
    return try body(value)
  }

  /// Whether one of the signals is pending inside ``deferring(_:)``.
  package static var isWaiting: Bool { credmgr_ending_signal_waits() != 0 }
}
