import Glibc
import Text

package protocol WallClock: Sendable {
  func now() -> Moment
  /// Never goes back, and goes on while the machine is suspended.
  func monotonic() -> Double
  /// Throws `interrupted` when a signal asked the program to end.
  func sleep(seconds: Double) throws(POSIXError)
}

package struct SystemClock: WallClock {
  package init() {}

  package func now() -> Moment {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Moment(secondsSince1970: Int64(time.tv_sec) + FaultPoint.clockOffset)
  }

  package func monotonic() -> Double {
    var time = timespec()
    unsafe clock_gettime(CLOCK_BOOTTIME, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  package func sleep(seconds: Double) throws(POSIXError) {
    let end = monotonic() + seconds
    while true {
      if Signals.isInterrupted { throw .interrupted }
      // In slices: a signal between the look at the flag and the call would otherwise be noticed only at the end.
      let rest = min(end - monotonic(), 0.2)
      if rest <= 0 { return }
      var time = timespec(tv_sec: 0, tv_nsec: Int(rest * 1e9))
      unsafe nanosleep(&time, nil)
    }
  }
}
