import Glibc
import CredmgrText

package protocol WallClock: Sendable {
  func now() -> Moment
  /// Never goes back, and continues while the machine is suspended.
  func monotonic() -> MonotonicMoment
  /// Sleeps, or throws `interrupted` after a signal that asks the program to end.
  func sleep(for time: Duration) throws(POSIXError)
}

package struct SystemClock: WallClock {
  package init() {}

  package func now() -> Moment {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Moment(secondsSince1970: Int64(time.tv_sec) + FaultPoint.clockOffset)
  }

  package func monotonic() -> MonotonicMoment { .now() }

  package func sleep(for time: Duration) throws(POSIXError) {
    let end = monotonic() + time
    while true {
      if Signals.isInterrupted { throw .interrupted }
      // Sleeps in slices: otherwise a signal between the check and the call would be noticed only at the end.
      let rest = min(end - monotonic(), .milliseconds(200))
      if rest <= .zero { return }
      var time = timespec(tv_sec: 0, tv_nsec: Int(rest / .nanoseconds(1)))
      unsafe nanosleep(&time, nil)
    }
  }
}
